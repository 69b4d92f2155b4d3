"""Which selection when: the tables of docs/selection.md.

    python examples/which_selection.py            # a minute
    python examples/which_selection.py --exact    # without the last table, which is drawn

Counts of one of 1,000 candidates each at epsilon 1: what noise ranks them, how far the best must lead so that all of
them are found in 95 of 100 runs, what is told of their scores, what share of epsilon a run of a private algorithm has,
and, drawn, how many of the best are missed by the joint choice and by rounds where scores fall gradually.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd
from frequent_items.error_rates import false_negative_rate
from frequent_items.item_counts import BUILT_IN

from reusable_holdout.mechanisms import compare_selections, select_top
from reusable_holdout.mechanisms.accounting import Repetitions, one_shot_top_k_epsilon_each

CANDIDATES = 1000
SIZES = (1, 3, 10, 30, 100, 300)
RUNS = 100


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--exact", action="store_true", help="without the table that is drawn")
    options = parser.parse_args()
    for delta in (0.0, 1e-6):
        _print(f"standard deviation of the noise, delta {delta:g}", ways(delta=delta, value="sd"))
        _print(f"lead at which all of the best are found, delta {delta:g}", ways(delta=delta, value="lead"))
    _print(
        "selected and measured, delta 1e-06: noise of the choice, and scale of the told scores", measured()
    )
    _print("epsilon of each run, of an algorithm that is run for many candidates, delta 1e-06", shares())
    if not options.exact:
        _print(f"fraction of the best that is missed at epsilon 0.1, delta 0, {RUNS} runs", missed())


def ways(*, delta: float, value: str) -> pd.DataFrame:
    """One value of every selection, by the number selected."""
    columns = {}
    for count in SIZES:
        rows = compare_selections(
            epsilon=1.0, delta=delta, count=count, candidates=CANDIDATES, monotonic=True
        )
        columns[f"c = {count}"] = {row.selection: getattr(row, value) for row in rows}
    return pd.DataFrame(columns).dropna().sort_index()


def measured() -> pd.DataFrame:
    """Noise of the choice and of the scores, where they are told."""
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
    """Epsilon that one run may have, where the best run is told."""
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


def missed() -> pd.DataFrame:
    """False negative rates without delta, on counts that fall gradually."""
    found = {}
    for data, make in BUILT_IN.items():
        counts = make().counts
        for name in ("exponential_top", "joint_exponential_top"):
            found[f"{data}, {name}"] = {
                f"c = {c}": np.mean(
                    [
                        false_negative_rate(
                            counts[
                                select_top(counts, c, epsilon=0.1, monotonic=True, mechanism=name, seed=seed)
                            ],
                            counts[:c],
                        )
                        for seed in range(RUNS)
                    ]
                )
                for c in (10, 25, 50, 100)
            }
    return pd.DataFrame(found).T


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
