"""Metrics of several labels for each row: y and predictions are matrices of zeros and ones, a column for each label.

In all of them n is the number of holdout rows: a row is one independent draw, with all its labels, and one term.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.errors import InputError
from reusable_holdout.metrics.definition import Definition
from reusable_holdout.metrics.metric import Metric, unit_metric
from reusable_holdout.metrics.scoring import Agreement, Mean, MeanLoss
from reusable_holdout.metrics.targets import ClassTargets

__all__ = ["SetScore", "hamming_loss", "score_of_sets"]

SetScore = Literal["f1", "jaccard", "precision", "recall"]


def hamming_loss() -> Metric:
    """Mean over the rows of the share of a row's labels that are predicted wrong.

    Replacing one row, labels and features, changes it by at most 1/n.

    Notes
    -----
    A mean of n terms in [0, 1]: c_r = 1/n, sensitivity 1/n, sum of c_r^2 = 1/n. With one label for each row it is the
    :func:`~reusable_holdout.metrics.zero_one_loss`.

    Examples
    --------
    >>> hamming_loss().measure([[0, 1], [1, 1]], [[0, 1], [0, 1]])
    0.25
    """
    return unit_metric("hamming_loss", "labels", _share_amiss, greater_is_better=False)


def score_of_sets(score: SetScore) -> Metric:
    """Mean over the rows of how well a row's set of labels is predicted; scikit-learn's average "samples".

    Replacing one row, labels and features, changes it by at most 1/n.

    Parameters
    ----------
    score : {"f1", "jaccard", "precision", "recall"}
        Labels in both sets, as a share of the sets' mean size, of the labels in either, of the predicted ones, of the
        true ones; 0 where there are none. In :func:`resolve_metric` "f1_samples", "jaccard_samples", ...

    Raises
    ------
    InputError
        If there is no such score; when binding, if a row has one label only.

    Notes
    -----
    A mean of n terms in [0, 1]: c_r = 1/n, sensitivity 1/n, sum of c_r^2 = 1/n.

    Examples
    --------
    >>> score_of_sets("jaccard").measure([[0, 1], [1, 1]], [[0, 1], [0, 1]])
    0.75
    """
    if score not in get_args(SetScore):
        raise InputError(f"score must be one of {get_args(SetScore)}; got {score!r}; choose one")
    return unit_metric(f"{score}_samples", "labels", _Overlap(score))


def _share_amiss(metric: Definition, targets: ClassTargets) -> Mean:
    """Share of a row's labels that differ."""
    if targets.outputs == 1:
        return Agreement(targets, errors=True)
    return metric.mean_of(lambda query: (query != targets.codes).mean(axis=1), targets.rows)


@dataclass(frozen=True)
class _Overlap:
    """Kernel of the score of two sets."""

    score: SetScore

    def __call__(self, metric: Definition, targets: ClassTargets) -> MeanLoss:
        if targets.outputs == 1:
            raise InputError(
                f"for {metric.name} the labels must be a matrix of zeros and ones, a column for each label; got one "
                f'column; use "{"f1" if self.score == "jaccard" else self.score}"'
            )
        truth = targets.codes.astype(np.bool_)
        return metric.mean_of(lambda query: self._of(truth, query.astype(np.bool_)), targets.rows)

    def _of(self, truth: NDArray[Any], predicted: NDArray[Any]) -> NDArray[Any]:
        hits, true, named = (one.sum(axis=1) for one in (truth & predicted, truth, predicted))
        sizes = {"f1": (true + named) / 2, "jaccard": true + named - hits, "precision": named, "recall": true}
        shares: NDArray[Any] = hits / np.maximum(sizes[self.score], 0.5)  # of no labels none are hit
        return shares
