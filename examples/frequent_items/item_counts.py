"""Counts of items: the scores of which the largest are selected."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reusable_holdout.demo.datasets import load_adult

ZIPF_ITEMS, ZIPF_RECORDS = 10_000, 1_000_000


class ItemCounts(NamedTuple):
    """A data set: the number of records that contain each item, largest first."""

    name: str
    title: str
    counts: NDArray[np.float64]


def zipf() -> ItemCounts:
    """Make counts proportional to 1/i, as of words in a text, that add up to the number of records.

    The paper states the numbers of records and items, but not the scale. With this scale all methods are "very
    inaccurate" from c = 100 on, as the paper says; with a largest count of 1,000,000 they would not be.
    """
    shares = 1.0 / np.arange(1, ZIPF_ITEMS + 1)
    counts = np.rint(ZIPF_RECORDS * shares / shares.sum())
    return ItemCounts("zipf", "Zipf, 10,000 items, 1,000,000 records", counts)


def adult_pairs() -> ItemCounts:
    """Count the records of UCI Adult that have both of two values, for all pairs of values of two attributes.

    A record counts in 28 pairs, and adding one raises each of them by one: sensitivity 1, monotonic. Pairs that
    never occur are candidates too, for the set of pairs that occur is private.
    """
    features, _ = load_adult()
    text = features.select_dtypes(exclude="number")
    tables = [
        pd.crosstab(text[one], text[other]).to_numpy().ravel()
        for one, other in itertools.combinations(text, 2)
    ]
    counts = np.sort(np.concatenate(tables))[::-1].astype(np.float64)
    return ItemCounts("adult", f"Adult, {len(counts):,} pairs of values, {len(text):,} records", counts)


def from_file(path: Path) -> ItemCounts:
    """Read counts from a text file, one in each line, plain or compressed."""
    counts = np.sort(np.loadtxt(path, dtype=np.float64, ndmin=1))[::-1]
    if len(counts) < 2 or not np.isfinite(counts).all() or counts[-1] < 0 or counts[0] == 0:
        raise SystemExit(f"{path} must have at least two counts, none negative and not all zero, one a line")
    name = path.name.split(".")[0]
    return ItemCounts(name, f"{name}, {len(counts):,} items", counts)


BUILT_IN = {"zipf": zipf, "adult": adult_pairs}
