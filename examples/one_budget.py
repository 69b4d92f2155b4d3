"""One budget for twenty slices and metrics of the same 1,000 rows, or a guard for each.

An analyst wants one number that lies. She asks about random predictions on nineteen random slices and by the Brier
score, wherever she still can, and takes from each answer whether the holdout is above or below one half. A prediction
that was below is turned around; all vote, and the vote is what she has certified at last, by a guard that she
has kept for it. Labels are coins: every population value is known, one half (0.29, of the Brier score).

A guard for each slice knows nothing of the others, though all of them read the same rows. With `guard.on(...)` they are
one tree: one number of queries, one of charges, one certificate. A run misses if any interval of any answer does not
contain its population value.

    python examples/one_budget.py             # 1,000 runs of one budget, 20 of twenty guards
    python examples/one_budget.py --quick
"""

from __future__ import annotations

import argparse
import os
from typing import NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.stats import beta

from reusable_holdout import Answer, ReusableHoldout, Rows
from reusable_holdout.errors import Halted

os.environ.setdefault("REUSABLE_HOLDOUT_REGISTRY", "off")  # a simulation guards the same rows again and again

ROWS, VIEWS = 1_000, 20
SLICES = np.random.default_rng(0).random((VIEWS - 1, ROWS)) < 0.5
QUESTIONS = 60  # of each guard, or of each slice
PLAN = {"charges": 5, "estimate": 0.5}
SURE = 0.7  # a probability for the Brier score
BRIER = (SURE**2 + (1.0 - SURE) ** 2) / 2.0  # of labels that are coins


class Run(NamedTuple):
    """What one run gave.

    Attributes
    ----------
    missed : bool
        Whether an interval did not contain the population value.
    charges : int
    told : float
        Value of the vote, which is worth one half.
    half_width : float
        Of its interval.
    """

    missed: bool
    charges: int
    told: float
    half_width: float


def guards_of(labels: NDArray[np.int64], *, shared: bool, seed: int) -> list[ReusableHoldout]:
    """Guards of all rows, of each slice, and by the Brier score; the first has the vote certified."""
    if shared:
        first = ReusableHoldout(None, labels, queries=VIEWS * QUESTIONS, seed=seed, **PLAN)  # type: ignore[arg-type]
        return [
            first,
            *(first.on(sample_weight=part, allow={"vacuous"}) for part in SLICES),
            first.on("brier", estimate=BRIER),
        ]
    one = {"queries": QUESTIONS, **PLAN}
    weights = [None, *SLICES]
    guards = [
        ReusableHoldout(Rows(None, labels, sample_weight=part), seed=seed + place, **one)  # type: ignore[arg-type]
        for place, part in enumerate(weights)
    ]
    brier = ReusableHoldout(None, labels, metric="brier", seed=seed + VIEWS, **one | {"estimate": BRIER})  # type: ignore[arg-type]
    return [*guards, brier]


def one_run(*, shared: bool, seed: int) -> Run:
    """Vote over everything that can be learnt, and certify the vote."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, ROWS)
    guards = guards_of(labels, shared=shared, seed=1_000 * seed)
    votes, answers = np.zeros(ROWS), []
    for guard in guards[1:]:
        truth = BRIER if guard.metric.name == "brier" else 0.5
        for _ in range(QUESTIONS):
            guess = rng.integers(0, 2, ROWS)
            try:
                answer = ask(guard, guess, truth)
            except Halted:
                break
            answers.append((answer, truth))
            votes += (2 * guess - 1) * (1 if answer.charged else -1)
    answers.append((guards[0].final((votes > 0).astype(int)), 0.5))
    last = answers[-1][0]
    return Run(
        any(not answer.low <= truth <= answer.high for answer, truth in answers),
        sum(answer.charged for answer, _ in answers),
        last.value,
        (last.high - last.low) / 2.0,
    )


def ask(guard: ReusableHoldout, guess: NDArray[np.int64], truth: float) -> Answer:
    """Ask so that a charge says "better than its population value", and no charge "worse": off by the threshold."""
    made = guard.plan.charges - guard.charges_left
    off = guard.plan.threshold_at(charges=min(made, guard.plan.charges - 1))
    prior = truth - off if guard.metric.greater_is_better else truth + off
    predictions = SURE * guess + (1.0 - SURE) * (1 - guess) if guard.metric.name == "brier" else guess
    return guard.evaluate(predictions, prior=min(max(prior, 0.0), 1.0))


def table(runs: int, few: int, *, jobs: int) -> pd.DataFrame:
    """Both ways, with how often they miss."""
    rows = {}
    for name, shared, count in (("a guard for each", False, few), ("one budget: guard.on", True, runs)):
        found = Parallel(n_jobs=jobs)(delayed(one_run)(shared=shared, seed=seed) for seed in range(count))
        missed = sum(run.missed for run in found)
        rows[name] = {
            "runs": count,
            "missed": missed,
            "at most (99%)": 1.0 if missed == count else beta.ppf(0.99, missed + 1, count - missed),
            "charges": np.mean([run.charges for run in found]),
            "the vote, worth .5, was told": np.mean([run.told for run in found]),
            "+-": np.mean([run.half_width for run in found]),
        }
    return pd.DataFrame(rows).T


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=1_000, help="of one budget")
    parser.add_argument("--guards", type=int, default=20, help="runs of twenty guards")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="25 and 5 runs")
    options = parser.parse_args(arguments)
    runs, few = (25, 5) if options.quick else (options.runs, options.guards)
    print(f"{ROWS:,} rows, {VIEWS} slices and metrics, {QUESTIONS} questions of each, confidence 0.95\n")
    print(table(runs, few, jobs=options.jobs).to_string(float_format="{:.3f}".format))


if __name__ == "__main__":
    main()
