"""Rows that belong together: whether the promise holds, and how wide the intervals are.

Every user of a product leaves ten rows, and a model is right about most of a user's rows or wrong about most of them:
the correlation within a user is .63. Or each row is there twenty times. Fifty questions are fixed beforehand, each of
them about another model. A guard that takes the rows for independent draws is narrow, and often wrong; with `groups=` a
user, or a row with its copies, is one draw.

    python examples/groups.py             # 1,000 runs of each
    python examples/groups.py --quick
    python examples/groups.py --rows copies --runs 200
"""

from __future__ import annotations

import argparse
import math
import os
from typing import NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.stats import beta

from reusable_holdout import Plan, ReusableHoldout, Rows

os.environ.setdefault("REUSABLE_HOLDOUT_REGISTRY", "off")  # a simulation guards the same rows again and again

QUESTIONS, ACCURACY, GROUPS = 50, 0.87, 200
CORRELATION = 0.63


class Kind(NamedTuple):
    """How the rows of a holdout come.

    Attributes
    ----------
    name : str
    size : int
        Rows of each group.
    correlation : float
        Of a model's mistakes within a group.
    """

    name: str
    size: int
    correlation: float

    @property
    def spread(self) -> float:
        """Standard deviation of a group's mean."""
        part = self.correlation + (1.0 - self.correlation) / self.size
        return math.sqrt(ACCURACY * (1.0 - ACCURACY) * part)


KINDS = {"users": Kind("10 rows of each user", 10, CORRELATION), "copies": Kind("each row 20 times", 20, 1.0)}


def mistakes(rng: np.random.Generator, rows: Kind) -> NDArray[np.int64]:
    """Predictions of each model about labels that are all 1, the question first: right as often as its accuracy says.

    A row takes its user's coin with a probability whose square is the correlation, else one of its own.
    """
    groups = np.repeat(np.arange(GROUPS), rows.size)
    users = rng.random((QUESTIONS, GROUPS)) < ACCURACY
    own = rng.random((QUESTIONS, len(groups))) < ACCURACY
    theirs = rng.random((QUESTIONS, len(groups))) < np.sqrt(rows.correlation)
    return np.where(theirs, users[:, groups], own).astype(np.int64)


def guard_of(rows: Kind, size: int, *, grouped: bool, seed: int, reveals: int = 0) -> ReusableHoldout:
    """Guard of so many rows of each group, whose labels are all 1."""
    groups = np.repeat(np.arange(GROUPS), size)
    return ReusableHoldout(
        Rows(None, np.ones(len(groups), dtype=np.int64), groups=groups if grouped else None, classes=[0, 1]),
        seed=seed,
        plan=Plan(
            queries=QUESTIONS,
            charges=1,
            reveals=reveals,
            estimate=ACCURACY,
            spread=rows.spread if grouped and size > 1 else None,
        ),
        allow={"vacuous"},
    )


def one_run(rows: Kind, *, grouped: bool, seed: int) -> bool:
    """Whether all intervals of fifty questions hold."""
    guard = guard_of(rows, rows.size, grouped=grouped, seed=seed, reveals=QUESTIONS)
    models = mistakes(np.random.default_rng(seed), rows)
    answers = (guard.reveal(one, prior=ACCURACY) for one in models)
    return all(answer.low <= ACCURACY <= answer.high for answer in answers)


def width(rows: Kind, *, grouped: bool) -> float:
    """Half-width of a final's interval, nothing charged, of groups or of as many single rows."""
    return guard_of(rows, rows.size if grouped else 1, grouped=grouped, seed=0).plan.final_half_width()


def table(kinds: list[str], runs: int, *, jobs: int) -> pd.DataFrame:
    """Each kind of rows, with and without `groups=`."""
    found = []
    for rows in (KINDS[kind] for kind in kinds):
        for grouped in (False, True):
            held = sum(
                Parallel(n_jobs=jobs)(
                    delayed(one_run)(rows, grouped=grouped, seed=seed) for seed in range(runs)
                )
            )
            found.append(
                {
                    "rows": rows.name,
                    "groups=": "yes" if grouped else "no",
                    "runs": runs,
                    "all intervals held": held / runs,
                    "at least (99%)": beta.ppf(0.01, held, runs - held + 1) if held else 0.0,
                    "width / that of as many single rows": width(rows, grouped=True)
                    / width(rows, grouped=False)
                    if grouped
                    else np.nan,
                }
            )
    return pd.DataFrame(found)


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=1_000, help="of each line")
    parser.add_argument("--rows", nargs="+", choices=list(KINDS), default=list(KINDS), help="how they come")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="40 runs")
    options = parser.parse_args(arguments)
    print(f"{GROUPS} groups, {QUESTIONS} fixed questions, confidence 0.95\n")
    found = table(options.rows, min(40, options.runs) if options.quick else options.runs, jobs=options.jobs)
    print(found.to_string(index=False, float_format="{:.3f}".format, na_rep=""))


if __name__ == "__main__":
    main()
