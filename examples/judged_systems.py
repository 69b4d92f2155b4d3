"""Fifty comparisons of judged systems, and a small benchmark: widths and coverage of the intervals.

Every answer is judged five times, and a question's score is the mean. A question's difficulty is drawn from a beta
distribution, and each judgement passes by chance. The guard knows only how often it will be asked.

compare: fifty systems are compared with an incumbent; each answers a question at random like one of two equally good
systems. The prior is the difference on a development set as large as the holdout. In the second half the optimiser
answers each question as the better systems did. Or it lies: its priors are off by one and a half tolerances, so it is
charged and gets the holdout's value, until it halts after five charges.
benchmark: 198 questions, as many as GPQA Diamond has, and a guessed spread of .35. The questions are the same, and the
optimiser's best system gets the final: once with the mean of five judgements as a row's score, and once with five rows
for each question and `groups=`.

The truth is exact: both systems answer a fresh question equally well. A run holds if all of its fifty intervals hold.

    python examples/judged_systems.py             # 400 runs of each
    python examples/judged_systems.py --quick
"""

from __future__ import annotations

import argparse
import os
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.stats import beta

from reusable_holdout import Plan, ReusableHoldout, Rows

os.environ.setdefault("REUSABLE_HOLDOUT_REGISTRY", "off")  # a simulation guards the same rows again and again

LOOKS, REPEATS, QUALITY, CONCENTRATION, CHARGES = 50, 5, 0.6, 2.0, 5
TOLERANCES = {500: 0.11, 2_000: 0.05}
QUESTIONS, SPREAD = 198, 0.35


class Run(NamedTuple):
    """The result of fifty looks.

    Attributes
    ----------
    agreed : int
        Looks that were within the tolerance of the prior.
    width : float
        Mean half-width of the intervals.
    missed : int
        Intervals without the truth.
    asked : int
    """

    agreed: int
    width: float
    missed: int
    asked: int


def answers(rng: np.random.Generator, rows: int, systems: int) -> NDArray[np.float64]:
    """Draw judgements of equally good systems, of shape (systems, rows, repeats)."""
    easy = rng.beta(CONCENTRATION * QUALITY, CONCENTRATION * (1.0 - QUALITY), rows)[:, None]
    return (rng.random((systems, rows, REPEATS)) < easy).astype(np.float64)


def taken(rng: np.random.Generator, look: int, votes: NDArray[np.float64]) -> NDArray[np.int64]:
    """Choose one of two systems for each question: at random, or as the optimiser has learnt."""
    if look < LOOKS // 2:
        return rng.integers(0, 2, len(votes))
    followed = rng.random(len(votes)) < 0.9
    return np.where(followed & (votes != 0.0), votes > 0.0, rng.integers(0, 2, len(votes)) > 0).astype(
        np.int64
    )


def compared(rows: int, seed: int, *, lies: bool) -> Run:
    """Make fifty comparisons with an incumbent."""
    rng = np.random.default_rng([seed, rows])
    first, second, incumbent = answers(rng, rows, 3)
    both, tolerance = np.stack([first, second]), TOLERANCES[rows]
    votes, widths, agreed, missed = np.zeros(rows), [], 0, 0
    with ReusableHoldout(
        None, np.arange(rows), metric="score", queries=LOOKS, charges=CHARGES, seed=seed, allow={"vacuous"}
    ) as guard:
        for look in range(LOOKS):
            if guard.halted:
                break
            chosen = taken(rng, look, votes)
            fresh = answers(rng, rows, 2)
            honest = float((fresh[0] - fresh[1]).mean())
            answer = guard.compare(
                both[chosen, np.arange(rows)],
                incumbent,
                prior=1.5 * tolerance if lies else honest,
                tolerance=tolerance,
            )
            widths.append((answer.high - answer.low) / 2.0)
            agreed += not answer.charged
            missed += not answer.low <= 0.0 <= answer.high
            votes += answer.value * np.where(chosen, 1.0, -1.0)
    return Run(agreed, float(np.mean(widths)), missed, len(widths))


def benchmarked(seed: int, *, grouped: bool) -> Run:
    """Look at a small benchmark forty-nine times, and ask for a final."""
    rng = np.random.default_rng([seed, QUESTIONS])
    both, ids = answers(rng, QUESTIONS, 2), np.arange(QUESTIONS * (REPEATS if grouped else 1))
    votes, found = np.zeros(QUESTIONS), []
    with ReusableHoldout(
        Rows(None, ids, groups=np.repeat(np.arange(QUESTIONS), REPEATS) if grouped else None),
        metric="score",
        seed=seed,
        plan=Plan(queries=LOOKS, charges=1, estimate=QUALITY, spread=SPREAD),
    ) as guard:

        def scores(look: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
            chosen = taken(rng, look, votes)
            judged = both[chosen, np.arange(QUESTIONS)]
            return chosen, judged.ravel() if grouped else judged

        for look in range(LOOKS - 1):
            if guard.halted:
                break
            chosen, judged = scores(look)
            found.append(guard.evaluate(judged, prior=float(answers(rng, QUESTIONS, 1).mean())))
            votes += (found[-1].value - QUALITY) * np.where(chosen, 1.0, -1.0)
        found.append(guard.final(scores(LOOKS)[1]))
    return Run(
        sum(not answer.charged for answer in found[:-1]),
        float(np.mean([(answer.high - answer.low) / 2.0 for answer in found])),
        sum(not answer.low <= QUALITY <= answer.high for answer in found),
        len(found),
    )


def line(name: str, runs: list[Run]) -> dict[str, object]:
    """Return one line of the table."""
    held = sum(not run.missed for run in runs)
    asked = sum(run.asked for run in runs)
    return {
        "what": name,
        "looks answered": asked / len(runs),
        "agreed": sum(run.agreed for run in runs) / asked,
        "mean half-width": float(np.mean([run.width for run in runs])),
        "runs": len(runs),
        "all held": held / len(runs),
        "at least (99%)": float(beta.ppf(0.01, held, len(runs) - held + 1)) if held else 0.0,
    }


def table(runs: int, *, jobs: int) -> pd.DataFrame:
    """Return a line for each way to ask."""
    each, found = Parallel(n_jobs=jobs), []
    for lies, (rows, tolerance) in product((False, True), TOLERANCES.items()):
        name = f"{'lie' if lies else 'compare'}, {rows:,} questions, tolerance {tolerance}"
        found.append(line(name, each(delayed(compared)(rows, seed, lies=lies) for seed in range(runs))))
    for grouped in (False, True):
        name = f"benchmark, {QUESTIONS} questions, {'rows with groups=' if grouped else 'means of five'}"
        found.append(line(name, each(delayed(benchmarked)(seed, grouped=grouped) for seed in range(runs))))
    return pd.DataFrame(found)


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=400, help="of each line")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="20 runs")
    options = parser.parse_args(arguments)
    found = table(min(20, options.runs) if options.quick else options.runs, jobs=options.jobs)
    print(found.to_string(index=False, float_format="{:.3f}".format))


if __name__ == "__main__":
    main()
