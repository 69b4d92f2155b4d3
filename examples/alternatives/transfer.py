"""Theorems from accuracy on the holdout to accuracy on the population, by differential privacy.

A mechanism is (alpha, beta)-sample-accurate if with probability at least ``1 - beta`` all its answers are within alpha
of the query's mean over the holdout's rows. The theorems bound the distance of such answers from the population, for
means of values in [0, 1] and queries chosen in any way.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from reusable_holdout.errors import InputError

__all__ = [
    "TransferSlack",
    "bassily_error",
    "expected_error",
    "transfer_error",
    "transfer_failure",
    "transfer_slack",
]


class TransferSlack(NamedTuple):
    """The two free numbers of the transfer theorem, in [0, 1]: the costs of sample accuracy and of delta."""

    c: float
    d: float


def transfer_slack(*, sample_beta: float, delta: float, beta: float) -> TransferSlack:
    """Compute the best ``c`` and ``d`` of the transfer theorem.

    No other choice with ``sample_beta/c + delta/d <= beta`` gives a smaller ``c + 2d``.

    Parameters
    ----------
    sample_beta : float
        Failure probability of sample accuracy, in [0, 1).
    delta : float
        Delta of (epsilon, delta)-differential privacy, in [0, 1).
    beta : float
        Failure probability on the population, in (0, 1).

    Raises
    ------
    InputError
        If a probability is out of its range.

    Notes
    -----
    By Lagrange ``c = (b + sqrt(2 b delta)) / beta`` and ``d = (delta + sqrt(b delta / 2)) / beta``, b being
    `sample_beta`, so that ``c + 2d = (sqrt(b) + sqrt(2 delta))^2 / beta``.

    Examples
    --------
    >>> transfer_slack(sample_beta=0.001, delta=0.0005, beta=0.5)
    TransferSlack(c=0.004, d=0.002)
    """
    _check_probability("sample_beta", sample_beta)
    _check_probability("delta", delta)
    _check_beta(beta)
    cross = math.sqrt(2.0 * sample_beta * delta)
    return TransferSlack((sample_beta + cross) / beta, (delta + cross / 2.0) / beta)


def transfer_error(
    *, sample_error: float, sample_beta: float, epsilon: float, delta: float, beta: float
) -> float:
    """Bound the error on the population by the transfer theorem, at its best free parameters.

    With probability at least ``1 - beta`` every answer of an (epsilon, delta)-differentially private and (sample_error,
    sample_beta)-sample-accurate mechanism is within the result of the population value.

    Parameters
    ----------
    sample_error : float
        Largest distance of an answer from the mean over the holdout; fraction of the range, >= 0.
    sample_beta : float
        Probability of a larger distance, in [0, 1).
    epsilon, delta : float
        Differential privacy of all answers together, for the replacement of one row; epsilon finite, >= 0.
    beta : float
        Failure probability of the result, in (0, 1).

    Returns
    -------
    float
        Fraction of the range; 1 or more says nothing.

    Raises
    ------
    InputError
        If a number is out of its range.

    Notes
    -----
    The theorem: ``sample_error + (exp(epsilon) - 1) + c + 2d`` with probability ``1 - (sample_beta/c + delta/d)``, for
    every ``c, d > 0``; :func:`transfer_slack` has the best ones.

    References
    ----------
    .. [1] Jung, Ligett, Neel, Roth, Sharifi-Malvajerdi and Shenfeld (2020), "A New Analysis of Differential Privacy's
       Generalization Guarantees", Theorem 1.2.

    Examples
    --------
    >>> round(transfer_error(sample_error=0.02, sample_beta=1e-6, epsilon=0.05, delta=1e-6, beta=0.05), 4)
    0.0714
    """
    slack = transfer_slack(sample_beta=sample_beta, delta=delta, beta=beta)
    return _checked_error(sample_error) + _expm1(epsilon) + slack.c + 2.0 * slack.d


def transfer_failure(
    *, sample_error: float, sample_beta: float, epsilon: float, delta: float, error: float
) -> float:
    """Bound the failure probability at a stated error; the inverse of :func:`transfer_error`.

    An answer is farther than `error` from the population value with at most the resulting probability; 1 if the theorem
    says nothing.

    Parameters
    ----------
    sample_error, sample_beta, epsilon, delta
        As in :func:`transfer_error`.
    error : float
        Fraction of the range, > 0.

    Raises
    ------
    InputError
        If a number is out of its range.

    Examples
    --------
    >>> round(transfer_failure(sample_error=0.02, sample_beta=1e-6, epsilon=0.05, delta=1e-6, error=0.0714), 3)
    0.045
    """
    _check_probability("sample_beta", sample_beta)
    _check_probability("delta", delta)
    if not (math.isfinite(error) and error > 0.0):
        raise InputError(f"error is finite and above 0; got {error}")
    room = error - _checked_error(sample_error) - _expm1(epsilon)
    cost = (math.sqrt(sample_beta) + math.sqrt(2.0 * delta)) ** 2
    return min(1.0, cost / room) if room > 0.0 else 1.0


def expected_error(*, epsilon: float, delta: float) -> float:
    """Bound the bias of a query that was chosen by a differentially private mechanism.

    The query's mean over the holdout and its population value differ by at most this in expectation; it says
    nothing about a single choice.

    Parameters
    ----------
    epsilon, delta : float
        Differential privacy of the choice, for the replacement of one row; epsilon finite, >= 0; delta in [0, 1).

    Raises
    ------
    InputError
        If a number is out of its range.

    Notes
    -----
    ``exp(epsilon) - 1 + delta``, for queries with values in [0, 1].

    References
    ----------
    .. [1] Dwork, Feldman, Hardt, Pitassi, Reingold and Roth (2015), "Preserving Statistical Validity in Adaptive Data
       Analysis", who owe it to McSherry.

    Examples
    --------
    >>> round(expected_error(epsilon=0.1, delta=1e-6), 4)
    0.1052
    """
    _check_probability("delta", delta)
    return _expm1(epsilon) + delta


def bassily_error(
    *, sample_error: float, sample_beta: float, epsilon: float, delta: float, beta: float
) -> float:
    """Bound the error on the population by the monitor argument, which is older than :func:`transfer_error`.

    With probability at least ``1 - beta`` every answer is within the result of the population value.

    Parameters
    ----------
    sample_error, sample_beta, epsilon, delta, beta
        As in :func:`transfer_error`.

    Raises
    ------
    InputError
        If a number is out of its range.

    Notes
    -----
    ``(sample_error + exp(epsilon) - 1 + T (sample_beta + delta)) / (1 - (1 - beta)^T)`` with ``T = floor(1/beta)``: a
    monitor runs T copies of the interaction on fresh holdouts and picks the worst answer of all; its expected error
    would exceed the bound of its own privacy. The article's main theorem has rounder constants; these are those of its
    proof, with answers clipped to [0, 1].

    References
    ----------
    .. [1] Bassily, Nissim, Smith, Steinke, Stemmer and Ullman (2016), "Algorithmic Stability for Adaptive Data
       Analysis", Lemma 3.3 and Theorem 3.4.

    Examples
    --------
    >>> round(bassily_error(sample_error=0.02, sample_beta=1e-6, epsilon=0.05, delta=1e-6, beta=0.05), 4)
    0.1112
    """
    _check_probability("sample_beta", sample_beta)
    _check_probability("delta", delta)
    _check_beta(beta)
    copies = math.floor(1.0 / beta)
    caught = -math.expm1(copies * math.log1p(-beta))
    return (_checked_error(sample_error) + _expm1(epsilon) + copies * (sample_beta + delta)) / caught


def _check_beta(beta: float) -> None:
    if not 0.0 < beta < 1.0:
        raise InputError(f"beta lies in (0, 1); got {beta}")


def _check_probability(name: str, value: float) -> None:
    if not 0.0 <= value < 1.0:
        raise InputError(f"{name} lies in [0, 1); got {value}")


def _checked_error(sample_error: float) -> float:
    if not (math.isfinite(sample_error) and sample_error >= 0.0):
        raise InputError(f"sample_error is finite and at least 0; got {sample_error}")
    return sample_error


def _expm1(epsilon: float) -> float:
    """Return ``exp(epsilon) - 1``; infinity where it has no float."""
    if not (math.isfinite(epsilon) and epsilon >= 0.0):
        raise InputError(f"epsilon is finite and at least 0; got {epsilon}")
    try:
        return math.expm1(epsilon)
    except OverflowError:
        return math.inf
