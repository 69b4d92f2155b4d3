"""An automatic optimiser that climbs for a thousand steps: its reported score, and the score on fresh rows.

It changes one thing at a time and keeps a change that looks better: features, penalty and threshold of a classifier, or
the recorded prompt that answers a bucket of questions. It climbs in three ways. It trusts its development rows. Or it
asks a home-made gate, which compares each proposal on the holdout and allows 200 looks. Or it asks a box, which agrees
with the development score or deviates; then it draws other development rows. It reports its development score, the
holdout's score, or the box's final.

    python examples/hill_climbing_agent.py                                # drawn worlds, ten climbs of each
    python examples/hill_climbing_agent.py --quick
    python examples/hill_climbing_agent.py --data FOLDER --worlds madelon spambase hellaswag --picture climbing.png
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from climbing.ways import WAYS, Climb
from climbing.worlds import WORLDS, made_world


def climbs(world: str, way: str, *, steps: int, runs: int, data: Path | None) -> list[Climb]:
    """Run some climbs in worlds of this kind."""
    found = []
    for seed in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            found.append(WAYS[way](made_world(world, seed, data), steps, seed, Path(folder)))
    return found


def line(world: str, way: str, runs: list[Climb]) -> dict[str, object]:
    """Return one line of the table."""
    certified = [run for run in runs if not np.isnan(run.low)]
    honest = sum(run.honest for run in runs)
    return {
        "world": world,
        "asks": way,
        "reported": np.mean([run.reported for run in runs]),
        "fresh": np.mean([run.fresh for run in runs]),
        "reported - fresh": np.mean([run.reported - run.fresh for run in runs]),
        "half-width": np.mean([(run.high - run.low) / 2.0 for run in certified]) if certified else np.nan,
        "within": f"{sum(run.low <= run.fresh <= run.high for run in certified)}/{len(certified)}",
        "honest taken": sum(run.accepted for run in runs) / honest if honest else np.nan,
        "questions": np.mean([run.questions for run in runs]),
        "charges": np.mean([run.charges for run in runs]),
        "seconds": np.mean([run.seconds for run in runs]),
    }


def draw(found: dict[tuple[str, str], list[Climb]], path: Path) -> None:
    """Draw the first climb of each kind: reported scores, and scores on fresh rows."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - needed for a picture only

    worlds = list(dict.fromkeys(world for world, _ in found))
    figure = Figure(figsize=(11.0, 3.2 * len(worlds)), layout="constrained")
    for row, world in enumerate(worlds):
        seen = np.array([point[1:] for way in WAYS for point in found[world, way][0].trace])
        for column, way in enumerate(WAYS):
            run = found[world, way][0]
            axes = figure.add_subplot(len(worlds), len(WAYS), row * len(WAYS) + column + 1)
            steps, reported, fresh = (np.array(one) for one in zip(*run.trace, strict=True))
            axes.plot(steps, reported, color="tab:red", label="reported")
            axes.plot(steps, fresh, color="tab:blue", label="fresh rows")
            if not np.isnan(run.low):
                axes.errorbar(
                    steps[-1],
                    run.reported,
                    [[run.reported - run.low], [run.high - run.reported]],
                    fmt="o",
                    color="tab:red",
                    capsize=4,
                    label="final",
                )
            axes.set_ylim(seen.min() - 0.02, seen.max() + 0.02)
            axes.set_title(f"{world}: {way}")
            axes.set_xlabel("step")
            axes.legend(loc="lower right", fontsize="small")
    figure.savefig(path, dpi=110)


def main(arguments: list[str] | None = None) -> None:
    """Print the table, and draw the picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--worlds", nargs="+", default=list(WORLDS), help=f"{', '.join(WORLDS)}; others need --data"
    )
    parser.add_argument("--data", type=Path, help="folder with madelon.npz, spambase.csv.gz, nlu_models.npz")
    parser.add_argument("--steps", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=10, help="climbs of each")
    parser.add_argument("--quick", action="store_true", help="2 climbs of each")
    parser.add_argument("--picture", type=Path, help="where to draw the first climb of each")
    options = parser.parse_args(arguments)
    runs = min(2, options.runs) if options.quick else options.runs
    found = {
        (world, way): climbs(world, way, steps=options.steps, runs=runs, data=options.data)
        for world in options.worlds
        for way in WAYS
    }
    table = pd.DataFrame([line(world, way, climbed) for (world, way), climbed in found.items()])
    print(f"{options.steps:,} steps, {runs} climbs of each\n")
    print(table.to_string(index=False, float_format="{:.3f}".format, na_rep=""))
    if options.picture is not None:
        draw(found, options.picture)


if __name__ == "__main__":
    main()
