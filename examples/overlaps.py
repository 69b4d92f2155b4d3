"""Whether a holdout has rows that were trained on: how often fresh rows are refused, and how many are found.

A real table is cut at random into a holdout and training rows, again and again. No row of the one is in the other, so
whatever agrees does so by chance: what is refused is refused wrongly. Then some of the holdout's rows take the place of
training rows, and are to be found. The owner is told where more agree than chance explains in 99 of 100 cases; where an
analyst's `X_train` shows it, and a wrong alarm would cost a charge, in all but one of a million.

    python examples/overlaps.py             # 1,000 cuts of each table
    python examples/overlaps.py --quick
    python examples/overlaps.py --table magic.csv:class,part
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn import datasets

from reusable_holdout.demo.datasets import load_adult
from reusable_holdout.guard.row_sets import ANALYSTS, OWNERS, RowSet, by_chance, row_hashes, rows_of_table

PLANTED = (1, 5, 20, 100)
COARSE = ["workclass", "education", "marital_status", "occupation", "sex", "hours_per_week"]


def tables(others: list[str]) -> Iterator[tuple[str, Any]]:
    """Real tables, by their names; features alone."""
    adult, _ = load_adult()
    yield "adult", adult
    yield "adult, 6 columns", adult[COARSE]
    for name in ("breast_cancer", "diabetes", "digits", "iris"):
        yield name, getattr(datasets, f"load_{name}")().data
    for other in others:
        file, _, left_out = other.partition(":")
        yield Path(file).name, pd.read_csv(file).drop(columns=left_out.split(",") if left_out else [])


def line(name: str, hashes: NDArray[np.uint64], bits: float, share: float, cuts: int) -> dict[str, object]:
    """One table, cut at one share: how often fresh rows are refused, and in how many cuts planted ones are found."""
    rng, held = np.random.default_rng(0), round(share * len(hashes))
    refused = alarms = agree = 0
    found = {(rule, count): 0 for rule in (OWNERS, ANALYSTS) for count in PLANTED}
    for _ in range(cuts):
        order = rng.permutation(hashes)
        holdout, training = order[:held], order[held:]
        one, other = RowSet(holdout, bits), RowSet(training)
        common = one.common(other)
        agree += common
        refused += common > by_chance(one.copies, other.copies, OWNERS)
        alarms += common > by_chance(one.copies, other.copies, ANALYSTS)
        for count in PLANTED:
            if count < held:
                mixed = RowSet(np.concatenate([training[count:], holdout[:count]]))
                for rule in (OWNERS, ANALYSTS):
                    found[rule, count] += one.common(mixed) > by_chance(one.copies, mixed.copies, rule)
    return {
        "table": name,
        "rows": len(hashes),
        "held out": held,
        "agree by chance": agree / cuts,
        "refused": refused / cuts,
        **{f"{count} found": found[OWNERS, count] / cuts for count in PLANTED if count < held},
        "alarms": alarms / cuts,
        **{
            f"{count} found by X_train": found[ANALYSTS, count] / cuts
            for count in PLANTED[2:]
            if count < held
        },
    }


def costs() -> None:
    """Print what numbering the rows of a table takes."""
    adult, _ = load_adult()
    large = np.random.default_rng(0).normal(size=(1_000_000, 20))
    for name, table in (
        ("10,000 rows of adult, 14 columns", adult[:10_000]),
        ("1,000,000 rows of 20 numbers", large),
    ):
        began = time.perf_counter()
        rows = rows_of_table(table)
        numbered = time.perf_counter()
        rows.common(rows)
        compared = time.perf_counter()
        rows.text(bytes(32))
        kept = time.perf_counter()
        print(
            f"{name}: {numbered - began:.3f} s to number, {compared - numbered:.3f} s to compare, "
            f"{kept - compared:.3f} s to key for the ledger"
        )


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cuts", type=int, default=1_000)
    parser.add_argument("--table", action="append", default=[], help="a CSV file, and columns to leave out")
    parser.add_argument("--quick", action="store_true", help="20 cuts")
    options = parser.parse_args(arguments)
    cuts = 20 if options.quick else options.cuts
    lines = [
        line(name, *row_hashes(table), share, cuts)
        for name, table in tables(options.table)
        for share in (0.2, 0.5)
    ]
    print(pd.DataFrame(lines).to_string(index=False, float_format="{:.3f}".format, na_rep=""))
    print()
    costs()


if __name__ == "__main__":
    main()
