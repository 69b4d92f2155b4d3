"""A natural hyperparameter search: honest priors, and now and then a model that has memorised its rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attacks.guard_like import AnswerLike, GuardLike
from attacks.questions import Questions
from attacks.result import AttackResult, is_paid
from attacks.truth import as_truth, whole
from reusable_holdout.errors import InputError
from reusable_holdout.metrics import Metric

__all__ = ["SearchProblem", "hyperparameter_search"]

_INFORMATIVE = 10
_FOLDS = 5
_METRICS = ("accuracy", "zero_one_loss", "balanced_accuracy", "brier", "roc_auc")


@dataclass(frozen=True, kw_only=True, eq=False)
class SearchProblem:
    """Two classes that a line separates with noise, so that the population score of every linear model is known.

    Scores are exact, not estimated on fresh rows.

    Parameters
    ----------
    X_train, y_train : numpy.ndarray of shape (train_rows, features), (train_rows,)
        The analyst's rows.
    X, y : numpy.ndarray of shape (rows, features), (rows,)
        The holdout's; the attack reads X alone.
    weights : numpy.ndarray of shape (features,)
        Of the line.
    noise : float
        Standard deviation of what is added before the sign is taken.

    Notes
    -----
    Features are independent standard normal, the label is 1 if ``X w + noise`` is positive. The correlation of a
    model's ``X v`` with it is ``r = v.w / (|v| sqrt(|w|**2 + noise**2))``; by the orthant probabilities of normal
    variables its accuracy is ``1 - arccos(r)/pi``, and its area under the ROC curve ``1/2 + 2 arcsin(r/sqrt(2))/pi``.

    Examples
    --------
    >>> problem = SearchProblem.draw(rows=1_000, seed=0)
    >>> round(problem.truth(problem.weights, "accuracy"), 3), round(problem.truth(problem.weights, "roc_auc"), 3)
    (0.75, 0.833)
    """

    X_train: NDArray[np.float64]
    y_train: NDArray[np.int64]
    X: NDArray[np.float64]
    y: NDArray[np.int64]
    weights: NDArray[np.float64]
    noise: float

    @classmethod
    def draw(
        cls,
        *,
        rows: int,
        train_rows: int | None = None,
        features: int = 60,
        noise: float = 1.0,
        seed: int = 0,
    ) -> SearchProblem:
        """Draw training rows and holdout.

        Parameters
        ----------
        rows : int
            Of the holdout.
        train_rows : int, optional
            The analyst's; as many as the holdout has by default. At least twice as many as features.
        features : int
            At least 10. The first ten carry the signal, each a fifth less of it than the one before; the others none.
        noise : float
            Standard deviation of what is added to the signal, whose own is 1, before its sign becomes the label.
        seed : int

        Raises
        ------
        InputError
            If a number is out of its range.
        """
        features = whole("features", features, least=_INFORMATIVE)
        own = whole("train_rows", rows if train_rows is None else train_rows, least=2 * features)
        if not (math.isfinite(noise) and noise >= 0.0):
            raise InputError(f"noise must be finite and at least 0; got {noise!r}; nothing was drawn")
        rng = np.random.default_rng(seed)
        weights = np.zeros(features)
        weights[:_INFORMATIVE] = 0.8 ** np.arange(_INFORMATIVE)
        weights /= np.linalg.norm(weights)
        X = rng.standard_normal((own + whole("rows", rows, least=2), features))
        y = (X @ weights + noise * rng.standard_normal(len(X)) > 0.0).astype(np.int64)
        return cls(
            X_train=X[:own], y_train=y[:own], X=X[own:], y=y[own:], weights=weights, noise=float(noise)
        )

    def truth(self, model: NDArray[np.float64], metric: str) -> float:
        """Population score of a linear model; its probabilities are 1/4 and 3/4."""
        spread = float(np.linalg.norm(model)) * math.hypot(float(np.linalg.norm(self.weights)), self.noise)
        r = min(max(float(model @ self.weights[: len(model)]) / spread, -1.0), 1.0) if spread else 0.0
        if metric == "roc_auc":
            return 0.5 + 2.0 * math.asin(r / math.sqrt(2.0)) / math.pi
        accuracy = 1.0 - math.acos(r) / math.pi
        if metric == "brier":
            return 9.0 / 16.0 - accuracy / 2.0
        return 1.0 - accuracy if metric == "zero_one_loss" else accuracy

    @cached_property
    def folds(self) -> list[NDArray[np.int64]]:
        """Rows of each fold of the cross-validation."""
        return np.array_split(np.arange(len(self.y_train)), _FOLDS)

    @cached_property
    def moments(self) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Moments of each fold, ``X'X`` and ``X's`` with the labels' signs s: all that ridge regressions need."""
        signs = 2.0 * self.y_train - 1.0
        return [
            (self.X_train[fold].T @ self.X_train[fold], self.X_train[fold].T @ signs[fold])
            for fold in self.folds
        ]


class _Candidate(NamedTuple):
    """Hyperparameters: how many features are used, and how far the ridge shrinks them."""

    features: int
    penalty: float


def hyperparameter_search(
    holdout: GuardLike,
    problem: SearchProblem,
    *,
    metric: Literal["accuracy", "zero_one_loss", "balanced_accuracy", "brier", "roc_auc"]
    | Metric = "accuracy",
    questions: int = 200,
    overfitting_every: int = 50,
    seed: int = 0,
) -> AttackResult:
    """Ask about one ridge classifier after another, and choose the one with the best answer.

    Priors are cross-validated. Now and then there is one that is not: a model fitted on no more rows than it has
    features and half as many, whose prior is its score on those very rows.

    Parameters
    ----------
    holdout : GuardLike
        Made from ``problem.y``.
    problem : SearchProblem
        Data, and the population score of every model.
    metric : str or Metric
        What the holdout measures, of the catalogue.
    questions : int
        Candidates.
    overfitting_every : int
        Each so-many-th question has the overfitting prior; 0 for none.
    seed : int
        Of the candidates.

    Returns
    -------
    AttackResult
        Its details: `overfitting` and `overfitting_charged`, questions of that kind answered and charged;
        `honest_charged`.

    Raises
    ------
    InputError
        If a number is out of its range, or the metric's population score is not known here.

    Examples
    --------
    >>> from attacks import PlainHoldout
    >>> problem = SearchProblem.draw(rows=1_000, seed=0)
    >>> search = hyperparameter_search(PlainHoldout(problem.y), problem)
    >>> search.questions, abs(search.overfit) < 0.05
    (200, True)
    """
    every = whole("overfitting_every", overfitting_every, least=0)
    asked = Questions(holdout, lambda _: math.nan, metric)  # truths are stated with the questions
    name, response = asked.metric.name, asked.metric.response
    if name not in _METRICS:
        raise InputError(f"the metric must be one of {', '.join(_METRICS)}; got {name!r}; choose one of them")
    rng = np.random.default_rng(seed)
    best: AnswerLike | None = None
    kinds: list[bool] = []
    with asked:
        for place in range(1, whole("questions", questions, least=1) + 1):
            overfitting = every > 0 and place % every == 0
            if overfitting:
                model, prior = _memorised(problem, asked.metric, rng)
            else:
                model, prior = _cross_validated(problem, asked.metric, _candidate(problem, rng))
            predictions, truth = _predictions(problem.X, model, response), problem.truth(model, name)
            answer = asked.ask(predictions, prior=prior, truth=truth)
            kinds.append(overfitting)
            if best is None or asked.better(answer.value, best.value):
                best = answer
                asked.submit(predictions, answer.value, truth)
    return asked.result("hyperparameter search", _counts(kinds, asked))


def _counts(kinds: list[bool], asked: Questions) -> dict[str, float]:
    charged = [is_paid(answer) for answer in asked.answers]
    wrong = sum(kind and paid for kind, paid in zip(kinds, charged, strict=True))
    return {
        "overfitting": float(sum(kinds)),
        "overfitting_charged": float(wrong),
        "honest_charged": float(sum(charged) - wrong),
    }


def _candidate(problem: SearchProblem, rng: np.random.Generator) -> _Candidate:
    return _Candidate(
        features=int(rng.integers(3, problem.X_train.shape[1] + 1)),
        penalty=float(10.0 ** rng.uniform(-2.0, 4.0)),
    )


def _ridge(gram: NDArray[np.float64], cross: NDArray[np.float64], penalty: float) -> NDArray[np.float64]:
    return np.asarray(np.linalg.solve(gram + penalty * np.eye(len(gram)), cross), dtype=np.float64)


def _cross_validated(
    problem: SearchProblem, metric: Metric, candidate: _Candidate
) -> tuple[NDArray[np.float64], float]:
    """Model fitted on all training rows, and its cross-validated score."""
    used = slice(candidate.features)
    grams = [gram[used, used] for gram, _ in problem.moments]
    crosses = [cross[used] for _, cross in problem.moments]
    gram, cross = np.sum(grams, axis=0), np.sum(crosses, axis=0)
    parts = []
    for fold, fold_gram, fold_cross in zip(problem.folds, grams, crosses, strict=True):
        model = _ridge(gram - fold_gram, cross - fold_cross, candidate.penalty)
        parts.append(_predictions(problem.X_train[fold], model, metric.response))
    prior = as_truth(problem.y_train, metric)(np.concatenate(parts))
    return _ridge(gram, cross, candidate.penalty), prior


def _memorised(
    problem: SearchProblem, metric: Metric, rng: np.random.Generator
) -> tuple[NDArray[np.float64], float]:
    """Model fitted on few rows, and its score on the same."""
    features = problem.X_train.shape[1]
    rows = rng.choice(len(problem.y_train), size=features + features // 2, replace=False)
    X, y = problem.X_train[rows], problem.y_train[rows]
    model = _ridge(X.T @ X, X.T @ (2.0 * y - 1.0), 1e-6)
    return model, as_truth(y, metric)(_predictions(X, model, metric.response))


def _predictions(X: NDArray[np.float64], model: NDArray[np.float64], response: str) -> NDArray[Any]:
    scores = X[:, : len(model)] @ model
    if response == "scores":
        return scores
    positive = scores > 0.0
    return positive.astype(np.uint8) if response == "labels" else np.where(positive, 0.75, 0.25)
