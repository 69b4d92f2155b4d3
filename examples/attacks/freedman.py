"""Freedman's paradox: select among noise what looks good twice, and combine it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attacks.guard_like import GuardLike
from attacks.questions import Questions
from attacks.result import AttackResult
from attacks.truth import Truth, as_truth, whole
from attacks.votes import Votes
from reusable_holdout.metrics import Metric

__all__ = ["freedman_attack"]


def freedman_attack(
    holdout: GuardLike,
    *,
    rows: int,
    truth: Truth | ArrayLike,
    metric: str | Metric = "accuracy",
    features: int = 500,
    chosen: int | None = None,
    train_rows: int | None = None,
    seed: int = 0,
) -> AttackResult:
    """Ask about every noise feature with its training score, keep those good on both, and submit their majority.

    On a plain holdout the majority of k features errs on about ``Phi(-sqrt(2 k / (pi n)))`` of the rows. Nothing is
    done that an honest analyst would not do: the priors are her training scores.

    Parameters
    ----------
    holdout, rows, truth, metric
        As for `boosting_attack`.
    features : int
        Noise features asked about, as one batch; the majority is one question more.
    chosen : int, optional
        Features in the majority at most, the best training scores first; by default all that qualify.
    train_rows : int, optional
        Rows of the analyst's own, drawn here with labels that are coins; as many as the holdout's by default.
    seed : int
        Of features and training labels.

    Returns
    -------
    AttackResult
        Its details: `kept`, the features in the majority.

    Raises
    ------
    InputError
        If a number is out of its range or the metric has no classes.

    References
    ----------
    .. [1] Freedman (1983), "A note on screening regression equations", The American Statistician 37.
    .. [2] Dwork, Feldman, Hardt, Pitassi, Reingold, Roth (2015), "The reusable holdout", Science 349.

    Examples
    --------
    >>> from attacks import PlainHoldout, coin_truth
    >>> labels = np.random.default_rng(0).integers(0, 2, 1_000)
    >>> freedman_attack(PlainHoldout(labels), rows=1_000, truth=coin_truth(1_000), features=200).overfit > 0.05
    True
    """
    asked = Questions(holdout, truth, metric, rows=rows)
    rng = np.random.default_rng(seed)
    rows, count = whole("rows", rows, least=2), whole("features", features, least=1)
    own = whole("train_rows", rows if train_rows is None else train_rows, least=4)
    most = whole("chosen", count if chosen is None else chosen, least=1)
    votes, training = Votes(asked.metric, rows, rng), Votes(asked.metric, own, rng)
    labels = rng.permutation(np.arange(own) % 2)  # both classes, whatever the metric
    train_score = as_truth(labels, asked.metric)
    columns, train_columns = votes.draw(count), training.draw(count)
    priors = np.array([train_score(column) for column in train_columns], dtype=np.float64)
    with asked:
        asked.ask_many(columns, priors)
    answered = np.array([answer.value for answer in asked.answers], dtype=np.float64)
    gains = asked.sign * (priors - training.chances(train_columns))
    kept = _selected(gains, asked.sign * (answered - votes.chances(columns[: len(answered)])))[:most]
    if not len(kept):
        kept = np.arange(min(most, count))
    signs = gains[kept] >= 0.0
    final = votes.majority(_signed(votes, columns[kept], signs))
    with asked:
        asked.ask_and_submit(
            final, prior=train_score(training.majority(_signed(training, train_columns[kept], signs)))
        )
    return asked.result("Freedman selection", {"kept": float(len(kept))})


def _selected(trained: NDArray[np.float64], answered: NDArray[np.float64]) -> NDArray[np.int64]:
    """Features whose gains agree in sign, the largest training gain first."""
    eligible = np.flatnonzero(trained[: len(answered)] * answered > 0.0)
    return eligible[np.argsort(-np.abs(trained[eligible]), kind="stable")]


def _signed(votes: Votes, columns: NDArray[Any], signs: NDArray[np.bool_]) -> NDArray[Any]:
    """Features, reversed where they speak against the label."""
    return np.where(signs[:, None], columns, votes.reverse(columns))
