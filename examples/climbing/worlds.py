"""Systems that an automatic optimiser may change, and their scores on three sets of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.datasets import make_classification

__all__ = ["WORLDS", "World", "made_world"]

_PENALTIES = (1.0, 10.0, 100.0)
_BUCKETS = 80


class World(ABC):
    """Development rows, holdout rows and fresh rows, and systems that can be scored on them.

    Attributes
    ----------
    judged : bool
        True if a harness scores the rows, and there are no labels.
    charges, estimate : int, float
        Settings of its box.
    """

    judged = False
    charges: int
    estimate: float

    @abstractmethod
    def start(self) -> Any:
        """Return the first system."""

    @abstractmethod
    def proposed(self, system: Any, rng: np.random.Generator) -> Any:
        """Return a system that differs a little."""

    @abstractmethod
    def split(self, rng: np.random.Generator) -> None:
        """Draw new development rows from the rows that the optimiser may see."""

    @abstractmethod
    def development(self, system: Any) -> float:
        """Return its score on development rows."""

    @abstractmethod
    def asked(self, system: Any) -> NDArray[Any]:
        """Return predictions for the holdout's rows, or a harness's scores of them."""

    @property
    @abstractmethod
    def labels(self) -> NDArray[Any]:
        """Labels of the holdout, or ids of judged rows."""

    def holdout(self, system: Any) -> float:
        """Return its score on the holdout, which only the home-made gate uses."""
        asked = self.asked(system)
        return float(np.mean(asked if self.judged else asked == self.labels))

    @abstractmethod
    def fresh(self, system: Any) -> float:
        """Return its score on rows that nobody asks about."""


@dataclass(frozen=True)
class Pipeline:
    """A ridge classifier: its features, penalty and threshold."""

    features: frozenset[int]
    penalty: float
    threshold: float


class Pipelines(World):
    """A search over features, penalty and threshold of a classifier.

    Parameters
    ----------
    X, y : numpy.ndarray of shape (rows, features) and (rows,)
        Labels are 0 and 1.
    rng : numpy.random.Generator
        Assigns `seen` rows to the optimiser and `kept` rows to the holdout; the rest is fresh.
    """

    def __init__(
        self,
        X: NDArray[np.float64],
        y: NDArray[np.int64],
        rng: np.random.Generator,
        *,
        seen: int,
        kept: int,
        charges: int,
        estimate: float,
    ) -> None:
        self.charges, self.estimate = charges, estimate
        order = rng.permutation(len(y))
        X = (X - X[order[:seen]].mean(axis=0)) / (X[order[:seen]].std(axis=0) + 1e-9)
        parts = np.split(order, [seen, seen + kept])
        (self._X, self._y), (self._held, self._labels), (self._others, self._truth) = (
            (X[part], y[part]) for part in parts
        )
        self._last: tuple[Pipeline, NDArray[np.float64]] | None = None
        self.split(rng)

    def start(self) -> Pipeline:
        """Return a classifier of the first five features."""
        return Pipeline(frozenset(range(5)), 10.0, 0.5)

    def proposed(self, system: Pipeline, rng: np.random.Generator) -> Pipeline:
        """Add or drop one or two features, or change the penalty or the threshold."""
        kind = rng.random()
        if kind < 0.1:
            return replace(system, penalty=float(rng.choice(_PENALTIES)))
        if kind < 0.2:
            return replace(system, threshold=float(np.clip(system.threshold + rng.normal(0, 0.03), 0.2, 0.8)))
        flipped = rng.choice(self._X.shape[1], size=int(rng.integers(1, 3)), replace=False).tolist()
        return replace(system, features=system.features.symmetric_difference(flipped) or system.features)

    def split(self, rng: np.random.Generator) -> None:
        """Train on half of the rows, and keep the other half for development."""
        order = rng.permutation(len(self._y))
        self._train, self._develop = np.array_split(order, 2)
        design = np.column_stack([self._X[self._train], np.ones(len(self._train))])
        self._gram, self._moments = design.T @ design, design.T @ self._y[self._train]
        self._last = None

    def development(self, system: Pipeline) -> float:
        """Return the accuracy on development rows."""
        return float(np.mean(self._says(system, self._X[self._develop]) == self._y[self._develop]))

    def asked(self, system: Pipeline) -> NDArray[np.int64]:
        """Return predicted classes."""
        return self._says(system, self._held)

    @property
    def labels(self) -> NDArray[np.int64]:
        """Classes."""
        return self._labels

    def fresh(self, system: Pipeline) -> float:
        """Return the accuracy on fresh rows."""
        return float(np.mean(self._says(system, self._others) == self._truth))

    def _says(self, system: Pipeline, X: NDArray[np.float64]) -> NDArray[np.int64]:
        chosen = sorted(system.features)
        if self._last is None or self._last[0] != system:
            used = np.array([*chosen, len(self._gram) - 1])
            ridge = self._gram[np.ix_(used, used)] + system.penalty * np.eye(len(used))
            self._last = system, np.linalg.solve(ridge, self._moments[used])
        weights = self._last[1]
        says: NDArray[np.int64] = (X[:, chosen] @ weights[:-1] + weights[-1] > system.threshold).astype(
            np.int64
        )
        return says


class Prompts(World):
    """A search that assigns one of several recorded prompts (or models) to each bucket of questions.

    Parameters
    ----------
    right : numpy.ndarray of bool of shape (prompts, questions)
    rng : numpy.random.Generator
        Assigns the questions.
    """

    judged = True

    def __init__(
        self, right: NDArray[np.bool_], rng: np.random.Generator, *, seen: int, kept: int, charges: int
    ) -> None:
        order = rng.permutation(right.shape[1])
        parts = np.split(order, [seen, seen + kept])
        self._seen, self._held, self._others = (right[:, part].astype(np.float64) for part in parts)
        buckets: NDArray[np.int64] = rng.integers(0, _BUCKETS, size=(right.shape[1],))
        self._buckets = [buckets[part] for part in parts]
        ranked: NDArray[np.int64] = np.argsort(self._seen.mean(axis=1))
        self._first = int(ranked[len(ranked) * 4 // 5])
        self.charges, self.estimate = charges, float(self._seen[self._first].mean())
        self.split(rng)

    def start(self) -> NDArray[np.int64]:
        """Return the prompt that is better than four fifths of them, for all questions."""
        return np.full(_BUCKETS, self._first)

    def proposed(self, system: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """Take another prompt for some buckets."""
        other = system.copy()
        other[rng.random(_BUCKETS) < rng.choice([0.02, 0.2, 1.0])] = rng.integers(len(self._seen))
        return other

    def split(self, rng: np.random.Generator) -> None:
        """Draw half of the visible questions for development."""
        self._develop = rng.permutation(self._seen.shape[1])[: self._seen.shape[1] // 2]

    def development(self, system: NDArray[np.int64]) -> float:
        """Return the share of right answers."""
        return float(self._right(system, self._seen, self._buckets[0])[self._develop].mean())

    def asked(self, system: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return a harness's score of each answer."""
        return self._right(system, self._held, self._buckets[1])

    @property
    def labels(self) -> NDArray[np.int64]:
        """Numbers of the questions."""
        return np.arange(self._held.shape[1])

    def fresh(self, system: NDArray[np.int64]) -> float:
        """Return the share of right answers to fresh questions."""
        return float(self._right(system, self._others, self._buckets[2]).mean())

    @staticmethod
    def _right(
        system: NDArray[np.int64], right: NDArray[np.float64], buckets: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        found: NDArray[np.float64] = right[system[buckets], np.arange(right.shape[1])]
        return found


def _drawn_features(rng: np.random.Generator) -> World:
    """Draw rows like Madelon's: few features carry signal, most are noise."""
    X, y = make_classification(
        n_samples=24_000,
        n_features=500,
        n_informative=5,
        n_redundant=15,
        n_clusters_per_class=4,
        class_sep=1.5,
        random_state=int(rng.integers(2**31)),
    )
    return Pipelines(X, y, rng, seen=1_600, kept=2_000, charges=6, estimate=0.75)


def _drawn_prompts(rng: np.random.Generator) -> World:
    """Draw thirty prompts of similar quality, and questions of different difficulty."""
    quality, difficulty = rng.normal(0.8, 0.25, 30), rng.normal(0.0, 1.2, 24_000)
    right = rng.random((30, 24_000)) < 1.0 / (1.0 + np.exp(-(quality[:, None] - difficulty)))
    return Prompts(right, rng, seen=1_600, kept=2_000, charges=6)


def _madelon(folder: Path, rng: np.random.Generator) -> World:
    with np.load(folder / "madelon.npz") as file:
        X = np.concatenate([file["X_train"], file["X_valid"]]).astype(np.float64)
        y = np.concatenate([file["y_train"], file["y_valid"]])
    return Pipelines(X, (y > 0).astype(np.int64), rng, seen=800, kept=800, charges=6, estimate=0.6)


def _spambase(folder: Path, rng: np.random.Generator) -> World:
    table = pd.read_csv(folder / "spambase.csv.gz").drop_duplicates()
    X = np.log1p(table.drop(columns="spam").to_numpy(np.float64))
    y = table["spam"].to_numpy(np.int64)
    return Pipelines(X, y, rng, seen=800, kept=1_500, charges=6, estimate=0.88)


def _hellaswag(folder: Path, rng: np.random.Generator) -> World:
    with np.load(folder / "nlu_models.npz") as file:
        right = file["hellaswag"] > 0
    return Prompts(
        right if right.shape[0] < right.shape[1] else right.T, rng, seen=1_000, kept=1_500, charges=6
    )


WORLDS = {"features": _drawn_features, "prompts": _drawn_prompts}
_RECORDED = {"madelon": _madelon, "spambase": _spambase, "hellaswag": _hellaswag}


def made_world(name: str, seed: int, data: Path | None) -> World:
    """Return a world by its name: a drawn one, or one from a folder with recorded data."""
    rng = np.random.default_rng([seed, 7])
    if name in WORLDS:
        return WORLDS[name](rng)
    if data is None:
        raise SystemExit(f"{name} needs --data, a folder with the file it is recorded in")
    return _RECORDED[name](data, rng)
