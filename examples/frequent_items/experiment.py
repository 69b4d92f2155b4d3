"""Runs of every method at every c on freshly shuffled items."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from tqdm import tqdm

from frequent_items.error_rates import false_negative_rate, missed_score, score_error_rate
from frequent_items.item_counts import ItemCounts
from frequent_items.methods import methods

COLUMNS = ["data", "run", "c", "setting", "method", "ser", "fnr", "missed", "selected"]


def experiment(
    items: ItemCounts, *, sizes: Sequence[int], runs: int, seed: int, jobs: int, passes: bool
) -> pd.DataFrame:
    """Make all runs on one data set; the result has a row for each run, c and method.

    Parameters
    ----------
    items : ItemCounts
        The data set.
    sizes : Sequence[int]
        The values of c; a data set with fewer than c + 1 items is left out.
    runs, seed, jobs : int
        Repetitions, the seed of all randomness, and processes.
    passes : bool
        True if retraversal makes its passes; otherwise its selection is drawn from its law.
    """
    possible = [c for c in sizes if c < len(items.counts)]
    work = partial(one_run, items, sizes=possible, seed=seed, passes=passes)
    done = Parallel(n_jobs=jobs, return_as="generator")(delayed(work)(run=run) for run in range(runs))
    rows = [row for found in tqdm(done, desc=items.name, total=runs, leave=False) for row in found]
    return pd.DataFrame(rows, columns=COLUMNS)


def one_run(
    items: ItemCounts, *, sizes: Sequence[int], seed: int, run: int, passes: bool
) -> list[tuple[object, ...]]:
    """Make one run: every method is asked in the same order of the items, so methods can be compared run by run."""
    return list(_rows(items, sizes=sizes, seed=seed, run=run, passes=passes))


def _rows(
    items: ItemCounts, *, sizes: Sequence[int], seed: int, run: int, passes: bool
) -> Iterator[tuple[object, ...]]:
    data = zlib.crc32(items.name.encode())  # results do not depend on which other data sets are run
    asked = np.random.default_rng([seed, data, run]).permutation(items.counts)
    for c in sizes:
        top = items.counts[:c]
        threshold = float(items.counts[c - 1] + items.counts[c]) / 2
        for number, method in enumerate(methods(passes=passes)):
            words = np.random.SeedSequence([seed, data, run, c, number]).generate_state(2, np.uint64)
            chosen = asked[method.select(asked, threshold, c, int(words[0]))]
            rates = score_error_rate(chosen, top), false_negative_rate(chosen, top), missed_score(chosen, top)
            yield items.name, run, c, method.setting, method.name, *rates, len(chosen)


def summary(runs: pd.DataFrame) -> pd.DataFrame:
    """Compute the mean and standard deviation over runs, in the order of the methods."""
    grouped = runs.groupby(["data", "c", "setting", "method"], sort=False)[
        ["ser", "fnr", "missed", "selected"]
    ]
    table = grouped.agg(["mean", "std"])
    table.columns = [f"{rate}_{what}" for rate, what in table.columns]
    return table.drop(columns="selected_std").reset_index()
