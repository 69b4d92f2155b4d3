"""The log-loss oracle: one exact loss tells the labels of a whole batch of rows."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attacks.guard_like import GuardLike
from attacks.questions import Questions
from attacks.result import AttackResult
from attacks.truth import Truth, whole
from reusable_holdout.errors import InputError
from reusable_holdout.metrics import Metric

__all__ = ["log_loss_attack"]

_MOST_BITS = 48  # of the batch: a float has 53


def log_loss_attack(
    holdout: GuardLike,
    *,
    rows: int,
    truth: Truth | ArrayLike,
    metric: str | Metric = "log_loss",
    questions: int | None = None,
    precision: float = 1e-9,
    seed: int = 0,
) -> AttackResult:
    """Choose probabilities whose losses add up to a number that spells the labels of a batch of rows.

    Against losses that are off by at most `precision` every label of every batch asked about is read without error; the
    final submission is sure of all of them.

    Parameters
    ----------
    holdout, rows, truth
        As for `boosting_attack`.
    metric : str or Metric
        "log_loss", or the catalogue's with another clip; labels are 0 and 1.
    questions : int, optional
        Batches at most; by default enough for all rows. The final submission is one question more.
    precision : float
        How far an answer may be from the holdout's loss, in nats; 0.005 for a leaderboard of two decimals.
    seed : int
        Of the order of the rows.

    Returns
    -------
    AttackResult
        Its details: `batch`, the rows of one question; `read`, the rows asked about.

    Raises
    ------
    InputError
        If a number is out of its range, or the metric is no log loss.

    Notes
    -----
    Row j of a batch of b gets the probability ``1 / (1 + exp(d_j))`` of class 1, ``d_j = d 2**-j``, and the other rows
    one half. Its loss is ``ln(1 + exp(d_j))``, less d_j if its label is 0. So n times the loss, taken from what it
    would be if all were 1, is the sum of the d_j of the zeros: in units of the last one, a binary number of b digits.
    The largest d that a clip c allows is ``ln((1 - c) / c)``, and b is such that the last d_j is at least four times n
    times the precision.

    References
    ----------
    .. [1] Whitehill (2017), "Climbing the Kaggle leaderboard by exploiting the log-loss oracle".

    Examples
    --------
    >>> from attacks import PlainHoldout
    >>> labels = np.random.default_rng(0).integers(0, 2, 1_000)
    >>> attack = log_loss_attack(PlainHoldout(labels, "log_loss"), rows=1_000, truth=1 - labels)
    >>> attack.details["batch"], bool(((attack.final > 0.5) == labels).all())
    (21.0, True)
    """
    asked = Questions(holdout, truth, metric, rows=rows)
    clip = asked.metric.parameters.get("clip")
    if asked.metric.name != "log_loss" or clip is None:
        raise InputError(
            f"the metric must be a log loss with a clip; got {asked.metric.name!r}; pass log_loss(clip=...)"
        )
    if not (math.isfinite(precision) and precision > 0.0):
        raise InputError(f"precision must be finite and above 0; got {precision!r}; nothing was asked")
    rows = whole("rows", rows, least=2)
    gaps = _gaps(rows, clip, precision)
    order = np.random.default_rng(seed).permutation(rows)
    batches = [order[start : start + len(gaps)] for start in range(0, rows, len(gaps))]
    if questions is not None:
        batches = batches[: whole("questions", questions, least=1)]
    final = np.full(rows, 0.5)
    read = 0
    with asked:
        for batch in batches:
            mine = gaps[: len(batch)]
            answer = asked.ask(_spelling(rows, batch, mine), prior=_expected(rows, mine))
            zeros = _decoded(answer.value, rows, mine)
            final[batch] = np.where(zeros, clip, 1.0 - clip)
            read += len(batch)
    believed = (read * -math.log1p(-clip) + (rows - read) * math.log(2.0)) / rows
    with asked:
        asked.ask_and_submit(final, prior=believed)
    return asked.result("log-loss oracle", {"batch": float(len(gaps)), "read": float(read)})


def _gaps(rows: int, clip: float, precision: float) -> NDArray[np.float64]:
    """Difference of a row's two losses, for each row of a batch; each is half the one before."""
    largest = math.log((1.0 - clip) / clip) if clip < 0.5 else 0.0
    if largest <= 0.0:
        raise InputError(f"a clip must be below one half to be an oracle; got {clip!r}; nothing was asked")
    digits = 1 + math.floor(math.log2(max(1.0, largest / (4.0 * rows * precision))))
    gaps: NDArray[np.float64] = largest * 0.5 ** np.arange(min(digits, _MOST_BITS, rows), dtype=np.float64)
    return gaps


def _spelling(rows: int, batch: NDArray[np.int64], gaps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities of class 1; those of the batch are the smaller side, which floats hold to the last digit."""
    probabilities = np.full(rows, 0.5)
    probabilities[batch] = 1.0 / (1.0 + np.exp(gaps))
    return probabilities


def _all_ones(rows: int, gaps: NDArray[np.float64]) -> float:
    """Sum of the losses if all labels of the batch are 1."""
    return float((rows - len(gaps)) * math.log(2.0) + np.logaddexp(0.0, gaps).sum())


def _expected(rows: int, gaps: NDArray[np.float64]) -> float:
    """Loss that is expected if labels are coins."""
    return (_all_ones(rows, gaps) - float(gaps.sum()) / 2.0) / rows


def _decoded(loss: float, rows: int, gaps: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which labels of the batch are 0."""
    digits = len(gaps)
    number = round((_all_ones(rows, gaps) - rows * loss) / float(gaps[-1]))
    number = min(max(number, 0), 2**digits - 1)
    return np.array([number >> place & 1 for place in range(digits - 1, -1, -1)], dtype=np.bool_)
