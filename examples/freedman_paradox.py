"""Freedman's paradox, and how a guarded holdout escapes it: both experiments of Dwork et al. (Science 2015).

An analyst selects attributes whose correlation with the label has the same sign on training and holdout rows, combines
the best k into a classifier, and measures it on the same holdout. Without any signal, a plain holdout then reports an
accuracy of 0.63 for a coin flip. The guarded holdout answers the same questions from one budget: attributes are
compared with their training correlation, at most 50 charges; of the 12 classifiers it reveals the value, to a cell.

    python examples/freedman_paradox.py                      # full size: n = d = 10,000; about 7 s per repetition
    python examples/freedman_paradox.py --size 2000 --repetitions 2

The correlation of an attribute is the mean over rows of x * y, which is unbounded: it is clipped to [-4, 4], and so is
what the certificate says about it. A classifier's accuracy is asked as the same statistic, for it is
(1 + mean of prediction * y) / 2.

The last column has the figures of the article's published recipe at full size: T = 0.04, Gaussian noise, the threshold
redrawn at each query, no budget (20 repetitions of it made 218 charges on average).
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from reusable_holdout import Metric, Plan, ReusableHoldout
from reusable_holdout.plotting import pyplot

os.environ.setdefault("REUSABLE_HOLDOUT_REGISTRY", "off")  # a simulation guards the same rows again and again

CHOSEN = [10, 20, 30, 45, 70, 100, 150, 200, 250, 300, 400, 500]
SIGNALS, STRENGTH = 20, 6.0
BOUND = 4.0
BLOCK = 500  # attributes drawn and asked at a time

Floats = NDArray[np.float32]


class Curves(NamedTuple):
    """Accuracies by number of chosen attributes: what one holdout reported, beside training and fresh rows."""

    train: NDArray[np.float64]
    reported: NDArray[np.float64]
    fresh: NDArray[np.float64]


class Data(NamedTuple):
    """Training, holdout and fresh rows: signs y, and attributes one block after another."""

    labels: list[Floats]
    attributes: list[Floats]  # each (attributes, rows)


def clipped_product(y: NDArray[np.float64], p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Loss of one row: its share in the correlation."""
    return np.clip(y * p, -BOUND, BOUND)


def draw(rng: np.random.Generator, *, size: int, signal: bool) -> Data:
    """Independent normal attributes and fair signs; with signal, the first 20 attributes lean towards the label."""
    labels = [np.where(rng.random(size) < 0.5, -1, 1).astype(np.float32) for _ in range(3)]
    attributes = []
    for y in labels:
        X = rng.standard_normal((size, size), dtype=np.float32)
        if signal:
            X[:SIGNALS] += np.float32(STRENGTH / size**0.5) * y
        attributes.append(X)
    return Data(labels, attributes)


def correlations(data: Data, part: int) -> NDArray[np.float64]:
    """Correlation of every attribute with the label, on one part."""
    return (data.attributes[part] @ data.labels[part]).astype(np.float64) / len(data.labels[part])


def votes(data: Data, part: int, chosen: NDArray[np.int64], signs: NDArray[np.float64]) -> Floats:
    """Predictions of the unweighted vote of the chosen attributes; shape (rows,)."""
    return np.where(signs.astype(np.float32) @ data.attributes[part][chosen] >= 0, 1.0, -1.0).astype(
        np.float32
    )


def agreement(data: Data, part: int, predictions: Floats) -> float:
    """Mean of prediction * y: twice the accuracy less one."""
    return float(np.mean(predictions * data.labels[part]))


def select(train: NDArray[np.float64], answered: NDArray[np.float64], size: int) -> NDArray[np.int64]:
    """Attributes that look good on both, best training correlation first."""
    least = 1.0 / size**0.5
    good = (np.abs(train) >= least) & (np.abs(answered) >= least) & (np.sign(train) == np.sign(answered))
    eligible = np.flatnonzero(good)
    return eligible[np.argsort(-np.abs(train[eligible]))]


def plain(data: Data) -> Curves:
    """Use the holdout as everybody does."""
    train, holdout = correlations(data, 0), correlations(data, 1)
    order = select(train, holdout, len(train))
    rows = []
    for k in CHOSEN:
        chosen = order[:k]
        rows.append(
            [agreement(data, part, votes(data, part, chosen, np.sign(train[chosen]))) for part in range(3)]
        )
    return Curves(*(np.array(rows).T + 1.0) / 2.0)


def guarded(data: Data, *, seed: int) -> tuple[Curves, int]:
    """Ask a guard instead; returns the charges as well."""
    train = correlations(data, 0)
    metric = Metric(
        name="clipped_correlation", lower=-BOUND, upper=BOUND, greater_is_better=True, loss=clipped_product
    )
    guard = ReusableHoldout(
        None,
        data.labels[1],
        metric=metric,
        seed=seed,
        plan=Plan(
            queries=len(train) + len(CHOSEN),
            charges=50,
            noise=0.001,
            reveals=len(CHOSEN),
            threshold=0.05 * (10_000 / len(data.labels[1])) ** 0.5,
        ),
        allow={"vacuous"},
    )
    answered = np.empty_like(train)
    for start in range(0, len(train), BLOCK):
        block = slice(start, start + BLOCK)
        answers = guard.evaluate(list(data.attributes[1][block]), prior=train[block])
        answered[block] = [answer.value for answer in answers]
    order = select(train, answered, len(train))
    rows, told = [], None
    for k in CHOSEN:
        chosen, signs = order[:k], np.sign(train[order[:k]])
        own = agreement(data, 0, votes(data, 0, chosen, signs))
        prior = own if told is None else told  # what training rows say of many is known to be too good
        told = guard.reveal(votes(data, 1, chosen, signs), prior=prior, name=f"vote of {k}").value
        rows.append([own, told, agreement(data, 2, votes(data, 2, chosen, signs))])
    return Curves(*(np.array(rows).T + 1.0) / 2.0), int(guard.history()["charged"].sum())


def picture(results: dict[str, dict[str, Curves]], path: Path) -> None:
    """Draw reported against fresh accuracy, plain and guarded, without and with signal."""
    figure, axes = pyplot().subplots(2, 2, figsize=(11, 8), sharex=True, sharey=True, layout="constrained")
    for row, (experiment, holdouts) in zip(axes, results.items(), strict=True):
        for ax, (holdout, curves) in zip(row, holdouts.items(), strict=True):
            for name, values in curves._asdict().items():
                ax.plot(CHOSEN, values, marker=".", label={"reported": "holdout says"}.get(name, name))
            ax.set(title=f"{holdout} holdout, {experiment}", xlabel="attributes chosen", ylabel="accuracy")
            ax.grid(alpha=0.2)
            ax.legend()
    figure.savefig(path, dpi=120)
    pyplot().close(figure)


def main() -> None:
    """Run both experiments and print reported against fresh accuracies."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=10_000, help="rows n and attributes d (default 10,000)")
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("freedman_paradox.png"))
    options = parser.parse_args()
    results: dict[str, dict[str, Curves]] = {}
    for experiment in ("no signal", "signal"):
        found: dict[str, list[Curves]] = {"plain": [], "guarded": []}
        charges = []
        for repetition in tqdm(range(options.repetitions), desc=experiment, leave=False):
            rng = np.random.default_rng([options.seed, experiment == "signal", repetition])
            data = draw(rng, size=options.size, signal=experiment == "signal")
            found["plain"].append(plain(data))
            curves, paid = guarded(data, seed=repetition)
            found["guarded"].append(curves)
            charges.append(paid)
        results[experiment] = {
            name: Curves(*np.mean([list(curves) for curves in runs], axis=0)) for name, runs in found.items()
        }
        _print(experiment, results[experiment], charges)
    picture(results, options.out)
    print(f"\nwrote {options.out}")


PUBLISHED = {  # reported and fresh accuracy under the published recipe: plain, Thresholdout
    ("no signal", 500): "0.632 and 0.502; 0.514 and 0.500",
    ("signal", 20): "0.606 and 0.606; 0.606 and 0.606",
    ("signal", 500): "0.648 and 0.523; 0.535 and 0.522",
}


def _print(experiment: str, holdouts: dict[str, Curves], charges: list[int]) -> None:
    print(f"\n{experiment}: charges {np.mean(charges):.1f} on average, {max(charges)} at most, of 50")
    print(f"{'k':>5} {'plain says':>11} {'fresh':>7} {'guard says':>11} {'fresh':>7}   published recipe")
    for place, k in enumerate(CHOSEN):
        cells = [
            getattr(holdouts[name], what)[place]
            for name in ("plain", "guarded")
            for what in ("reported", "fresh")
        ]
        published = PUBLISHED.get((experiment, k), "")
        print(f"{k:>5} {cells[0]:>11.4f} {cells[1]:>7.4f} {cells[2]:>11.4f} {cells[3]:>7.4f}   {published}")
    error = holdouts["guarded"].reported - holdouts["guarded"].fresh
    print(f"guard minus fresh, average over k: {error.mean():+.4f}; at k = 500: {error[-1]:+.4f}")


if __name__ == "__main__":
    main()
