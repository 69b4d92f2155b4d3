"""Ten teams: six that build models, one that is lucky, three that attack.

Each plays on any board that answers like a guard: the served one, or one that tells exact scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from attacks import AttackResult, GuardLike, boosting_attack, flip_attack, log_loss_attack
from incomes import Incomes, Rows, Sizes
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from reusable_holdout import Metric
from reusable_holdout.errors import Halted

Scores = NDArray[np.float64]

NAN = float("nan")


class Entry(NamedTuple):
    """One submission of a model: predictions for a board's rows, the claim, and its loss on fresh rows."""

    predictions: NDArray[Any]
    claim: float
    truth: float


class Game(NamedTuple):
    """What a team asked and was told, in order; loss on fresh rows beside it."""

    told: Scores
    lows: Scores
    highs: Scores
    truths: Scores
    charges: int
    halted: bool

    @property
    def best(self) -> int:
        """Number of the submission that the board shows: of a guarded board that with the best certified end."""
        ends = self.told if np.isnan(self.highs).all() else self.highs
        return int(len(ends) - 1 - np.argmin(ends[::-1]))


@dataclass(frozen=True)
class Team:
    """A name, a kind ("honest", "lucky" or "attack") and a way to play."""

    name: str
    kind: str
    play: Callable[[GuardLike], Game]


class Outcome(NamedTuple):
    """A team on both boards."""

    team: Team
    plain: Game
    guarded: Game


# ---- honest and lucky


def ladder_of_models(sizes: Sizes) -> dict[str, list[Any]]:
    """Models of the honest teams, from poor to good."""
    n = sizes.models
    leaves = np.unique(np.linspace(2, 24, n).astype(int)).tolist()
    return {
        "Balanced": [
            LogisticRegression(C=0.01, max_iter=300, class_weight={0: 1.0, 1: weight})
            for weight in np.geomspace(1.5, 30, n).tolist()
        ],
        "Neighbours": [KNeighborsClassifier(k) for k in np.linspace(3, 60, n).astype(int).tolist()],
        "Trees": [DecisionTreeClassifier(max_leaf_nodes=k, random_state=0) for k in leaves],
        "Linear": [LogisticRegression(C=c, max_iter=300) for c in np.logspace(-5, 0, n).tolist()],
        "Forest": [
            RandomForestClassifier(25, min_samples_leaf=k, random_state=0)
            for k in np.unique(np.geomspace(3, 120, n).astype(int)).tolist()
        ],
        "Boosters": [
            HistGradientBoostingClassifier(max_iter=k, random_state=0)
            for k in np.unique(np.geomspace(3, 100, n).astype(int)).tolist()
        ],
    }


def entry(model: Any, data: Incomes, rows: Rows, metric: Metric) -> Entry:
    """Train a model; it claims the loss of its cross-validation."""
    seen, loss = data.training, loss_of(metric)
    folds = cross_val_predict(model, seen.X, seen.y, cv=3, method="predict_proba")[:, 1]
    fitted = model.fit(seen.X, seen.y)

    def predict(part: Rows) -> NDArray[Any]:
        return as_predictions(fitted.predict_proba(part.X)[:, 1], metric)

    claim = loss(as_predictions(folds, metric), seen.y)
    return Entry(predict(rows), claim, loss(predict(data.fresh), data.fresh.y))


def lucky_entries(data: Incomes, rows: Rows, count: int) -> list[Entry]:
    """Trees that differ by their seeds alone; they all claim the mean of what the first ones reach in validation."""
    seen, half = data.training, len(data.training.y) // 2
    trees = [
        DecisionTreeClassifier(splitter="random", max_features=0.5, random_state=seed).fit(
            seen.X[:half], seen.y[:half]
        )
        for seed in range(count)
    ]
    claim = float(np.mean([np.mean(tree.predict(seen.X[half:]) != seen.y[half:]) for tree in trees[:50]]))
    return [
        Entry(tree.predict(rows.X), claim, float(np.mean(tree.predict(data.fresh.X) != data.fresh.y)))
        for tree in trees
    ]


def hand_in(entries: Iterable[Entry], board: GuardLike) -> Game:
    """Submit one after the other."""
    answers, truths, halted = [], [], False
    for one in entries:
        try:
            answers.append(board.evaluate(one.predictions, prior=one.claim))
        except Halted:
            halted = True
            break
        truths.append(one.truth)
    ends = [[NAN if end is None else end for end in (one.low, one.high)] for one in answers]
    lows, highs = np.array(ends, dtype=np.float64).reshape(-1, 2).T
    values = np.array([one.value for one in answers], dtype=np.float64)
    return Game(values, lows, highs, np.array(truths), sum(one.charged for one in answers), halted)


# ---- attacks


def attack(play: Callable[..., AttackResult], board: GuardLike) -> Game:
    """Attack a board."""
    found = play(board)
    return Game(found.values, found.lows, found.highs, found.truths, found.charges, found.halted is not None)


# ---- losses


def as_predictions(chances: NDArray[np.float64], metric: Metric) -> NDArray[Any]:
    """Probabilities of class 1, or the likelier class."""
    return chances if metric.response == "probabilities" else (chances > 0.5).astype(np.int64)


def loss_of(metric: Metric) -> Callable[[NDArray[Any], NDArray[Any]], float]:
    """Plain loss of predictions."""
    if metric.response == "labels":
        return lambda predictions, y: float(np.mean(predictions != y))
    clip = float(metric.parameters["clip"])

    def log_loss(predictions: NDArray[Any], y: NDArray[Any]) -> float:
        chances = np.clip(predictions, clip, 1.0 - clip)
        return float(-np.mean(np.where(y == 1, np.log(chances), np.log(1.0 - chances))))

    return log_loss


def loss_of_nothing_known(metric: Metric, base_rate: float) -> Callable[[NDArray[Any]], float]:
    """Loss on fresh rows of predictions that no model made: they have nothing to do with the rows' labels."""
    loss = loss_of(metric)

    def truth(predictions: NDArray[Any]) -> float:
        ones, zeros = (loss(predictions, np.full(len(predictions), label)) for label in (1, 0))
        return base_rate * ones + (1.0 - base_rate) * zeros

    return truth


# ---- all of them


def class_teams(data: Incomes, sizes: Sizes, metric: Metric) -> list[Team]:
    """Teams of the board for labels."""
    rows = data.classes
    teams = [
        Team(name, "honest", partial(hand_in, [entry(model, data, rows, metric) for model in models]))
        for name, models in ladder_of_models(sizes).items()
    ]
    known = {
        "rows": len(rows.y),
        "truth": loss_of_nothing_known(metric, data.base_rate),
        "metric": metric,
        "seed": 3,
    }
    votes = partial(boosting_attack, questions=sizes.votes, keep="not worse", **known)
    flips = partial(flip_attack, questions=sizes.flips, **known)
    return [
        *teams,
        Team("Lucky", "lucky", partial(hand_in, lucky_entries(data, rows, sizes.lucky))),
        Team("Boosting", "attack", partial(attack, votes)),
        Team("Flips", "attack", partial(attack, flips)),
    ]


def chance_teams(data: Incomes, sizes: Sizes, metric: Metric) -> list[Team]:
    """Teams of the board for probabilities: the last model of each honest team, and the oracle."""
    rows = data.chances
    teams = [
        Team(name, "honest", partial(hand_in, [entry(models[-1], data, rows, metric)]))
        for name, models in ladder_of_models(sizes).items()
    ]
    truth = loss_of_nothing_known(metric, data.base_rate)
    oracle = partial(log_loss_attack, rows=len(rows.y), truth=truth, metric=metric)
    return [*teams, Team("Oracle", "attack", partial(attack, oracle))]
