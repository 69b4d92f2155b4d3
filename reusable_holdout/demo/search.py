"""The search: tune the decision threshold of one random subgroup after another, and keep changes that score better.

People do this to a validation score, only more slowly. Each edit moves about one row in a hundred, so its true effect
is tiny and its apparent effect is luck; thousands of lucky edits add up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.errors import Halted
from reusable_holdout.guard import ReusableHoldout

_SHARE = 0.01  # of the rows that one edit touches


@dataclass(frozen=True)
class Part:
    """One part of the data, with the facts about its rows that the search needs.

    Attributes
    ----------
    ranks : numpy.ndarray of shape (rows, features)
        Features as ranks in [0, 1).
    probability : numpy.ndarray of shape (rows,)
        Probability of the positive class, by a model that has not seen these rows.
    label : numpy.ndarray of bool, shape (rows,)
    """

    ranks: NDArray[np.float64]
    probability: NDArray[np.float64]
    label: NDArray[np.bool_]

    def score(self, thresholds: NDArray[np.float64]) -> float:
        """Return the accuracy if each row is decided at its threshold."""
        return float(np.mean((self.probability > thresholds) == self.label))


@dataclass(frozen=True)
class Edit:
    """Another decision threshold for the subgroup of rows whose two features lie in two intervals."""

    features: tuple[int, int]
    starts: tuple[float, float]
    threshold: float

    def apply(self, part: Part, thresholds: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the thresholds after the edit."""
        width = _SHARE**0.5
        inside = np.ones(len(thresholds), dtype=bool)
        for feature, start in zip(self.features, self.starts, strict=True):
            column = part.ranks[:, feature]
            inside &= (column >= start) & (column < start + width)
        return np.where(inside, self.threshold, thresholds)


@dataclass(frozen=True)
class Step:
    """One edit that a search kept, or a final.

    Attributes
    ----------
    query : int
        Question at which it was kept.
    reported : float
        Score the search saw.
    fresh : float
        Score on fresh rows, which the search did not see.
    low, high : float
        Ends of the interval that came with it; from 0 to 1 without a guard.
    """

    query: int
    reported: float
    fresh: float
    low: float = 0.0
    high: float = 1.0


def propose(count: int, *, features: int, seed: int) -> list[Edit]:
    """Return random edits, the same for every search."""
    rng = np.random.default_rng(seed)
    edits = []
    for _ in range(count):
        first, second = rng.choice(features, size=2, replace=False).tolist()
        starts = rng.uniform(0.0, 1.0 - _SHARE**0.5, size=2).tolist()
        edits.append(Edit((first, second), (starts[0], starts[1]), float(rng.uniform(0.25, 0.75))))
    return edits


def plain_search(
    edits: Iterable[Edit], *, holdout: Part, fresh: Part, tick: Callable[[], object]
) -> list[Step]:
    """Keep every edit that raises the score of a plain holdout."""
    thresholds, outside = np.full(len(holdout.label), 0.5), np.full(len(fresh.label), 0.5)
    steps = [Step(0, holdout.score(thresholds), fresh.score(outside))]
    for query, edit in enumerate(edits, start=1):
        edited = edit.apply(holdout, thresholds)
        score = holdout.score(edited)
        if score > steps[-1].reported:
            thresholds, outside = edited, edit.apply(fresh, outside)
            steps.append(Step(query, score, fresh.score(outside)))
        tick()
    return steps


def guarded_search(
    edits: Iterable[Edit],
    guard: ReusableHoldout,
    *,
    train: Part,
    holdout: Part,
    fresh: Part,
    tick: Callable[[], object],
) -> tuple[list[Step], NDArray[np.bool_], Halted | None]:
    """Keep every edit that raises the guard's answer; stop at a halt.

    Returns the edits that were kept, the predictions of the classifier with all of them for the holdout, and the halt.
    The prior is the training estimate, less the amount by which the last charged answer showed it to be too high.
    """
    parts = {"train": train, "holdout": holdout, "fresh": fresh}
    thresholds = {name: np.full(len(part.label), 0.5) for name, part in parts.items()}
    correction, kept_score = 0.0, train.score(thresholds["train"])
    steps: list[Step] = []
    halted = None
    try:
        for edit in (None, *edits):
            edited = {
                name: thresholds[name] if edit is None else edit.apply(part, thresholds[name])
                for name, part in parts.items()
            }
            score = train.score(edited["train"])
            predictions, name = holdout.probability > edited["holdout"], "first" if edit is None else ""
            answer = guard.evaluate(predictions, prior=score - correction, name=name)
            if answer.charged:
                correction = score - answer.value
            if edit is None or answer.value > kept_score - correction:
                thresholds, kept_score = edited, score
                true = fresh.score(edited["fresh"])
                steps.append(Step(answer.query, answer.value, true, answer.low, answer.high))
            tick()
    except Halted as halt:
        halted = halt
    return steps, holdout.probability > thresholds["holdout"], halted
