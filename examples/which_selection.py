"""Compare the ways to select the best few: the tables of docs/mechanisms.md.

    python examples/which_selection.py

The data are counts of 1,000 candidates, at epsilon 1. The tables show the noise that ranks them, the noise if their
scores are released as well, and the epsilon that one run of a private algorithm may have. Nothing is sampled.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from reusable_holdout.mechanisms import compare_selections
from reusable_holdout.mechanisms.accounting import Repetitions, one_shot_top_k_epsilon_each

CANDIDATES = 1000
SIZES = (1, 3, 10, 30, 100, 300)


def main() -> None:
    """Print the tables."""
    for delta in (0.0, 1e-6):
        _print(f"standard deviation of the noise, delta {delta:g}", ways(delta))
    _print(
        "selected and measured, delta 1e-06: noise of the choice, and scale of the told scores", measured()
    )
    _print("epsilon of each run, of an algorithm that is run for many candidates, delta 1e-06", shares())


def ways(delta: float) -> pd.DataFrame:
    """Return the standard deviation of every selection's noise, by the number selected."""
    columns = {}
    for count in SIZES:
        rows = compare_selections(
            epsilon=1.0, delta=delta, count=count, candidates=CANDIDATES, monotonic=True
        )
        columns[f"c = {count}"] = {row.selection: row.sd for row in rows}
    return pd.DataFrame(columns).sort_index()


def measured() -> pd.DataFrame:
    """Return the noise of the choice and of the scores, if they are released."""
    columns = {}
    for count in SIZES:
        rows = compare_selections(
            epsilon=1.0, delta=1e-6, count=count, candidates=CANDIDATES, monotonic=True, answers=True
        )
        found = {row.selection: row for row in rows}
        columns[f"c = {count}"] = {
            name: f"{found[name].sd:.1f}, {found[name].answer:.1f}"
            for name in ("permute_and_flip_top", "exponential_top", "one_shot_top_k")
        } | {"the tightest": rows[0].selection}
    return pd.DataFrame(columns)


def shares() -> pd.DataFrame:
    """Return the epsilon that one run may have, if the best run is released."""
    columns = {}
    for candidates in (10, 100, 1000):
        columns[f"{candidates} candidates"] = {
            "one_shot_top_k(algorithm=), each once": one_shot_top_k_epsilon_each(
                k=1, candidates=candidates, epsilon=1.0, delta=1e-6
            ),
            "private_selection, logarithmic, as many runs on average": Repetitions(
                mean=candidates
            ).epsilon_each(1.0),
            "private_selection, geometric": Repetitions(mean=candidates, shape=1).epsilon_each(1.0),
            "private_selection, Poisson": Repetitions(mean=candidates, shape=np.inf).epsilon_each(1.0),
        }
    return pd.DataFrame(columns)


def _print(title: str, table: pd.DataFrame) -> None:
    print(f"\n{title}\n")
    print("| |" + "|".join(f" {name} " for name in table.columns) + "|")
    print("|---|" + "---|" * len(table.columns))
    for name, row in table.iterrows():
        print(f"| {name} |" + "|".join(f" {_cell(cell)} " for cell in row) + "|")


def _cell(cell: object) -> str:
    return cell if isinstance(cell, str) else f"{cell:.3g}" if abs(float(cell)) < 100 else f"{cell:.0f}"


if __name__ == "__main__":
    main()
