"""People score few answers, a judge scores many: how much narrower intervals are, and whether they hold.

People have scored the answers to 300 questions, a judge those to 3,300. How far to follow the judge is chosen by 200
questions of a development set, which both have scored. The judge agrees with people on a share of the answers that is
named; at half of them it knows nothing.

The attack has systems revealed that answer each question at random like one of two, builds the system that takes for
each question what those of higher values took, and asks for its final. An interval that misses the truth is a miss; the
truth is exact.

    python examples/beside_a_judge.py             # 200 runs of each
    python examples/beside_a_judge.py --quick
    python examples/beside_a_judge.py --copies    # a column that is no judge's: people's scores, and 0.1 more elsewhere
"""

from __future__ import annotations

import argparse
import os

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray

from reusable_holdout import Plan, ReusableHoldout
from reusable_holdout.metrics import JudgePower, judge_power, score, score_with_judge

os.environ.setdefault("REUSABLE_HOLDOUT_REGISTRY", "off")  # a simulation guards the same rows again and again

LABELLED, JUDGED, DEVELOPMENT = 300, 3_000, 200
QUALITY, QUESTIONS, TOLERANCE = 0.75, 40, 0.25
AGREEMENTS = (0.5, 0.65, 0.75, 0.85, 0.95)


def scored(rng: np.random.Generator, rows: int, agreement: float) -> NDArray[np.float64]:
    """People's and the judge's scores of answers, of shape (rows, 2)."""
    human = rng.random(rows) < QUALITY
    judge = np.where(rng.random(rows) < agreement, human, ~human)
    return np.stack([human, judge], -1).astype(np.float64)


def power_of(agreement: float, seed: int) -> JudgePower:
    """How far to follow it, by a development set."""
    human, judge = scored(np.random.default_rng([seed, 1]), DEVELOPMENT, agreement).T
    return judge_power(human, judge, labelled=LABELLED, judged=JUDGED)


def of_holdout(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores as the guard takes them: people have not scored the further rows."""
    asked = scores.copy()
    asked[LABELLED:, 0] = np.nan
    return asked


def guard_of(found: JudgePower, seed: int, *, reveals: int = 0) -> ReusableHoldout:
    """Guard of rows of which people have scored the first."""
    return ReusableHoldout(
        None,
        np.arange(LABELLED + JUDGED),
        metric=score_with_judge(labelled=LABELLED, power=found.power),
        seed=seed,
        plan=Plan(
            queries=QUESTIONS,
            tolerance=None if reveals else TOLERANCE,
            charges=1 if reveals else None,
            reveals=reveals,
            estimate=QUALITY,
            spread=found.spread,
        ),
        allow={"vacuous"},
    )


def guard_without(seed: int) -> ReusableHoldout:
    """Guard of the rows that people have scored, by their scores alone."""
    return ReusableHoldout(
        None,
        np.arange(LABELLED),
        metric=score(),
        queries=QUESTIONS,
        tolerance=TOLERANCE,
        estimate=QUALITY,
        seed=seed,
    )


def one_width(agreement: float, seed: int) -> tuple[float, float, float, float]:
    """Power and worth of a judge, and half-widths of a final with and without it, nothing charged before."""
    found, rng = power_of(agreement, seed), np.random.default_rng([seed, 2])
    scores = scored(rng, LABELLED + JUDGED, agreement)
    with guard_of(found, seed) as guard, guard_without(seed) as plain:
        beside = guard.final(of_holdout(scores))
        alone = plain.final(scores[:LABELLED, 0])
    return found.power, found.worth, (beside.high - beside.low) / 2.0, (alone.high - alone.low) / 2.0


def one_attack(agreement: float, seed: int) -> int:
    """How many intervals missed."""
    found, rng = power_of(agreement, seed), np.random.default_rng([seed, 3])
    rows = LABELLED + JUDGED
    systems = np.stack([scored(rng, rows, agreement) for _ in range(2)])
    votes, missed = np.zeros(rows), 0
    with guard_of(found, seed, reveals=QUESTIONS) as guard:
        for _ in range(QUESTIONS):
            taken = rng.integers(0, 2, rows)
            answer = guard.reveal(of_holdout(systems[taken, np.arange(rows)]), prior=QUALITY)
            missed += not answer.low <= QUALITY <= answer.high
            votes += (answer.value - QUALITY) * np.where(taken, 1.0, -1.0)
        best = np.where(votes == 0.0, rng.integers(0, 2, rows), votes > 0.0).astype(np.int64)
        final = guard.final(of_holdout(systems[best, np.arange(rows)]))
    return missed + (not final.low <= QUALITY <= final.high)


def one_copy(seed: int) -> bool:
    """Whether a final misses whose judge repeats people's scores, and is generous where there are none."""
    rng = np.random.default_rng([seed, 4])
    scores = scored(rng, LABELLED + JUDGED, 1.0)
    scores[LABELLED:, 1] = rng.random(JUDGED) < QUALITY + 0.1
    with guard_of(power_of(0.95, seed), seed) as guard:
        final = guard.final(of_holdout(scores))
    return bool(not final.low <= QUALITY <= final.high)


def table(runs: int, *, jobs: int) -> pd.DataFrame:
    """A line for each judge."""
    found, each = [], Parallel(n_jobs=jobs)
    for agreement in AGREEMENTS:
        widths = np.array(each(delayed(one_width)(agreement, seed) for seed in range(runs)))
        attacks = np.array(each(delayed(one_attack)(agreement, seed) for seed in range(runs)))
        power, worth, beside, alone = widths.mean(axis=0)
        found.append(
            {
                "judge agrees": agreement,
                "power": power,
                "a label is worth": worth,
                "half-width": beside,
                "without": alone,
                "ratio": beside / alone,
                "widest ratio": float((widths[:, 2] / widths[:, 3]).max()),
                "runs with a miss": int(np.count_nonzero(attacks)),
                "runs": runs,
            }
        )
    return pd.DataFrame(found)


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=200, help="of each line")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="10 runs")
    parser.add_argument(
        "--copies", action="store_true", help="what a column does that knows which rows are labelled"
    )
    options = parser.parse_args(arguments)
    print(f"{LABELLED} answers scored by people, {JUDGED:,} by the judge alone; confidence 0.95\n")
    runs = min(10, options.runs) if options.quick else options.runs
    if options.copies:
        print(f"intervals that missed: {sum(one_copy(seed) for seed in range(runs))} of {runs}")
        return
    found = table(runs, jobs=options.jobs)
    print(found.to_string(index=False, float_format="{:.3f}".format))


if __name__ == "__main__":
    main()
