"""A holdout that grows: how wide a final is after rows were added, and when fresh rows alone would be better.

Each run asks about random flips of a model until so many were charged, adds rows and asks for a final. "Rotated" is the
final of a guard of the new rows alone. Last, the rows that come are those on which the model failed: then finals miss.

    python examples/growing.py            # 200 runs of each, a minute
    python examples/growing.py --quick
"""

from __future__ import annotations

import argparse
import os

import numpy as np
import pandas as pd

from reusable_holdout import Plan, ReusableHoldout

SETTINGS = {"1,000 + 100, nothing charged": (1_000, 100, 0), "5,000 + 5,000, 3 charges": (5_000, 5_000, 3)}
RIGHT = 0.85


def final_of(
    rows: int, added: int, charges: int, share: float, seed: int, *, failed: bool = False
) -> tuple[float, bool, float]:
    """Return a final's half-width after rows were added, if an interval missed, and from how many rows to rotate."""
    rng, plan = (
        np.random.default_rng(seed),
        Plan(queries=100, charges=3, estimate=RIGHT, noise=0.0, growth_share=share),
    )
    labels = rng.integers(0, 2, rows + added)
    right = rng.random(rows + added) < RIGHT
    right[rows:] &= not failed
    guess = np.where(right, labels, 1 - labels)
    guard = ReusableHoldout(None, labels[:rows], plan=plan, seed=seed, allow={"vacuous"})
    told = [(guard.evaluate(np.roll(guess[:rows], turn + 1), prior=RIGHT), 0.5) for turn in range(charges)]
    least = guard.plan.rows_to_rotate(guard.final_width)
    if added:
        guard = guard.extend(None, labels[rows:], allow={"vacuous"})
    told.append((guard.final(guess), RIGHT))
    missed = any(not answer.low <= truth <= answer.high for answer, truth in told)
    return (told[-1][0].high - told[-1][0].low) / 2.0, missed, least


def main(argv: list[str] | None = None) -> None:
    """Print the widths, how many runs missed, and the plan's advice."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="20 runs of each")
    runs = range(20 if parser.parse_args(argv).quick else 200)
    os.environ["REUSABLE_HOLDOUT_REGISTRY"] = "off"
    table = {}
    for name, (rows, added, charges) in SETTINGS.items():
        ways = {"not extended": (rows, 0, charges, 0.0), "extended": (rows, added, charges, 0.0)}
        ways |= {"growth_share=1/8": (rows, added, charges, 0.125), "rotated": (added, 0, 0, 0.0)}
        found = {
            way: np.array([final_of(*given, seed) for seed in runs]).mean(axis=0)
            for way, given in ways.items()
        }
        table[name] = {way: f"{width:.4f} (missed {missed:.1%})" for way, (width, missed, _) in found.items()}
        table[name]["rotate from"] = f"{found['extended'][2]:,.0f} new rows"
    print(pd.DataFrame(table).T.to_string())
    missed = np.mean([final_of(1_000, 400, 0, 0.0, seed, failed=True)[1] for seed in runs])
    print(f"\n400 rows that came because the model failed on them: {missed:.0%} of finals missed")


if __name__ == "__main__":
    main()
