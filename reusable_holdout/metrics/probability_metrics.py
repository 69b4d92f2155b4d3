"""Metrics of predicted probabilities and scores.

In all of them n is the number of holdout rows, n_k the number of rows of class k, and c_r the most that
replacing row r can change the statistic after it is normalised to [0, 1].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.errors import InputError
from reusable_holdout.metrics import ranks
from reusable_holdout.metrics.definition import Definition, is_finite
from reusable_holdout.metrics.metric import Metric, unit_metric
from reusable_holdout.metrics.scoring import MeanLoss
from reusable_holdout.metrics.targets import ClassTargets

__all__ = ["average_precision", "brier", "log_loss", "roc_auc", "roc_auc_ovr"]


def brier() -> Metric:
    """Mean squared distance of the predicted probabilities from the truth.

    Replacing one row, label and features, changes it by at most 1/n.

    Notes
    -----
    Binary: (p - y)^2 with p the probability of the last of the sorted classes, in [0, 1]. More classes: half
    of sum_k (p_k - [y = k])^2, in [0, 1] on the simplex and equal to the binary form for K = 2. A mean of n
    terms in [0, 1]: c_r = 1/n, sensitivity 1/n, sum of c_r^2 = 1/n. The set of classes is public.

    References
    ----------
    .. [1] Brier (1950), "Verification of forecasts expressed in terms of probability".

    Examples
    --------
    >>> brier().measure([0, 1], [0.0, 0.5])
    0.125
    """
    return unit_metric("brier", "probabilities", _squared_distance, greater_is_better=False)


def log_loss(*, clip: float = 0.01) -> Metric:
    """Mean negative logarithm of the true class's probability, probabilities below `clip` raised to it.

    Replacing one row, label and features, changes it by at most ln(1/clip)/n nats.

    Parameters
    ----------
    clip : float
        Smallest probability that is told apart; in (0, 1). Without it one row could change the mean without limit.

    Raises
    ------
    InputError
        If `clip` is out of range.

    Notes
    -----
    -ln max(p_y, clip) lies in [0, ln(1/clip)]. Normalised by that bound it is a mean of n terms in [0, 1]:
    c_r = 1/n, sensitivity 1/n, sum of c_r^2 = 1/n. The set of classes is public.

    Examples
    --------
    >>> round(log_loss().measure([0, 1], [0.5, 0.5]), 4)
    0.6931
    """
    if not (is_finite(clip) and 1e-300 < clip < 1):
        raise InputError(f"clip must be a probability in (0, 1); got {clip!r}; 0.01 is usual")
    return Metric(
        name="log_loss",
        response="probabilities",
        lower=0,
        upper=-math.log(clip),
        greater_is_better=False,
        parameters={"clip": float(clip)},
        kernel=_clipped_logarithm,
    )


def roc_auc() -> Metric:
    """Area under the receiver operating characteristic of two classes.

    Replacing one row's features, its label kept, changes it by at most 1/min(n_0, n_1).

    Notes
    -----
    U/(n_0 n_1), U the number of pairs (positive, negative) in which the positive has the larger score, ties
    counting one half; the positive class is the last of the sorted ones. Class counts are public and equal
    between neighbours. A positive is in n_0 of the pairs, so c_r = n_0/(n_0 n_1) = 1/n_1; a negative's is
    1/n_0. Sensitivity: the larger, 1/min(n_0, n_1). Sum of c_r^2 = n_1/n_1^2 + n_0/n_0^2 = 1/n_0 + 1/n_1. Its family is
    "bounded", with min(n_0, n_1) effective rows: :class:`~reusable_holdout.metrics.ranks.PairOrder`.

    References
    ----------
    .. [1] Agarwal, Graepel, Herbrich, Har-Peled, Roth (2005), "Generalization bounds for the area under
       the ROC curve", JMLR 6, Theorem 2.

    Examples
    --------
    >>> roc_auc().measure([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8])
    0.875
    """
    return unit_metric("roc_auc", "scores", _pair_order)


def roc_auc_ovr(*, weighted: bool = False) -> Metric:
    """Mean over the classes of the area under each one's ROC curve against all others.

    Replacing one row's features, its label kept, changes it by at most w_k/n_k + sum over j other than k of
    w_j/(n - n_j), k the row's class.

    Parameters
    ----------
    weighted : bool
        Whether a class counts by its rows, w_k = n_k/n, or like every other, w_k = 1/K over the K that have rows. In
        :func:`resolve_metric` "roc_auc_ovr_weighted" and "roc_auc_ovr".

    Raises
    ------
    InputError
        When binding, if fewer than two classes have rows.

    Notes
    -----
    Class counts are public and equal between neighbours. Class k's area orders the n_k (n - n_k) pairs of one of its
    rows and another row by the probability of k, ties counting one half. A row of class k is in n - n_k of these pairs,
    and in n_j of class j's n_j (n - n_j): c_r as above. Sensitivity: the largest. Sum of c_r^2: over the classes n_k
    times the square. Given the labels an area is unbiased, so the interval is about the population's at these shares.
    With two classes this is :func:`roc_auc`.

    References
    ----------
    .. [1] Provost and Domingos (2000), "Well-trained PETs: Improving probability estimation trees", section 6.2.

    Examples
    --------
    >>> ranked = [[0.6, 0.2, 0.2], [0.4, 0.5, 0.1], [0.3, 0.3, 0.4], [0.1, 0.5, 0.4]]
    >>> round(roc_auc_ovr().measure([0, 1, 2, 2], ranked), 4)
    0.9444
    """
    name = "roc_auc_ovr_weighted" if weighted else "roc_auc_ovr"
    return unit_metric(name, "probabilities", _OneVersusRest(weighted), family="bounded-difference")


def average_precision() -> Metric:
    """Mean over the positive rows of the precision among all rows scored at least as high.

    Replacing one row's features, its label kept, changes it by at most about ln(n_1)/n_1, n_1 the rows of the positive
    class.

    Notes
    -----
    (1/P) times the sum over positives of t/(t + f), with t positives and f negatives scored at least as high; the
    positive class is the last of the sorted ones; scikit-learn's definition. With P and N rows of the classes, public
    and equal between neighbours, and H the harmonic numbers:

    - a negative row: c_r = (H(P + 1) - 1)/P, when it passes all positives and was the only negative to do so;
    - a positive row: c_r = (N/n + sum over t < P of F/((t + F)(t + F + 1)))/P, F = min(t, N), about (ln P)/(4 P): it
      passes all rows, in which the classes take turns, and lifts the precision at every other positive.

    Both are attained; derivations in :class:`~reusable_holdout.metrics.ranks.AveragePrecision`. Sensitivity: the
    larger. Sum of c_r^2: P and N times the squares, about (ln P)^2 (1/(16 P) + N/P^2): intervals are several times as
    wide as a :func:`roc_auc`'s, and say nothing where positives are rare. They are about the mean of this statistic
    over fresh holdouts of the same class counts.

    Examples
    --------
    >>> round(average_precision().measure([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]), 4)
    0.8333
    """
    return unit_metric("average_precision", "scores", _average_precision, family="bounded-difference")


# ---- how they are computed, once the labels are known


def _pair_order(metric: Definition, targets: ClassTargets) -> ranks.PairOrder:
    """Area under the ROC curve; there must be two classes, both present."""
    targets.check_two(metric.name)
    return ranks.PairOrder(targets)


def _average_precision(metric: Definition, targets: ClassTargets) -> ranks.AveragePrecision:
    """Area under the precision-recall curve, as steps; there must be two classes, both present."""
    targets.check_two(metric.name)
    return ranks.AveragePrecision(targets)


@dataclass(frozen=True)
class _OneVersusRest:
    """Mean of the classes' areas, or that by rows; of two classes it is the area itself."""

    weighted: bool

    def __call__(self, metric: Definition, targets: ClassTargets) -> ranks.OneVersusRest | ranks.PairOrder:
        targets.check_several(metric.name)
        if len(targets.counts) == 2:
            return ranks.PairOrder(targets)
        counts = {code: rows for code, rows in enumerate(targets.counts.tolist()) if rows}
        return ranks.OneVersusRest(targets, counts if self.weighted else dict.fromkeys(counts, 1))


def _squared_distance(metric: Definition, targets: ClassTargets) -> MeanLoss:
    """Brier score; of several classes half the squared distance of the probabilities from 1 for the true class."""
    if len(targets.counts) == 2:
        truth = targets.codes.astype(np.float64)
        return metric.mean_of(lambda p: np.square(p - truth), targets.rows)
    return metric.mean_of(
        lambda p: 0.5 * np.square(p).sum(axis=1) - _of_truth(p, targets) + 0.5, targets.rows
    )


def _clipped_logarithm(metric: Definition, targets: ClassTargets) -> MeanLoss:
    """Negative logarithm of the true class's probability, raised to the parameter `clip`."""
    clip = metric.parameters["clip"]
    return metric.mean_of(lambda p: -np.log(np.maximum(_of_truth(p, targets), clip)), targets.rows)


def _of_truth(p: NDArray[Any], targets: ClassTargets) -> NDArray[Any]:
    """Probability given to the true class; `p` is the last of two classes' or (rows, classes)."""
    if p.ndim == 1:
        return np.where(targets.codes == 1, p, 1 - p)
    truth: NDArray[Any] = p[np.arange(targets.rows), targets.codes]
    return truth
