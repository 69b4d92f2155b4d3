"""How many rows a series of yes-or-no tests needs: ease.ml/ci's published sample sizes, and smaller ones.

A release gate compares models one after another with a bar, or with the incumbent, on the same holdout, and says only
"pass" or "no". The developer sees these bits and may adapt to them. All functions give rows n such that, with
probability at least ``1 - beta``, none of the tests errs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from reusable_holdout.deferred import optimize, special
from reusable_holdout.errors import InputError
from reusable_holdout.validity.log_tails import log_binomial_tail

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = [
    "GateFamily",
    "bennett_rows",
    "difference_rows",
    "gate_rows",
    "histories",
    "hoeffding_rows",
    "interval_rows",
    "paired_gate_rows",
]

GateFamily: TypeAlias = Literal["binomial", "bounded"]

_MOST_ROWS = 10**9
_MOST_TILT = 512.0  # any will do for a bound; beyond, exp has no float


def histories(*, steps: int, passes: int | None = None) -> int:
    """Count the tests that could ever be made, over all strategies of a developer who sees each verdict.

    A union bound over so many tests is valid, because the i-th model is a function of the i - 1 verdicts before it.

    Parameters
    ----------
    steps : int
        Tests H that are made at most, >= 1.
    passes : int, optional
        Passes after which the rows are retired, >= 1. By default never, which is ease.ml/ci's "full" adaptivity; 1 is
        its "firstChange", and costs no more than H models fixed beforehand ("none").

    Raises
    ------
    InputError
        If a number is out of its range.

    Notes
    -----
    ``sum_i sum_(j < passes) C(i - 1, j)``; without a limit ``2^H - 1``.

    Examples
    --------
    >>> histories(steps=32, passes=1), histories(steps=32, passes=3), histories(steps=32) == 2**32 - 1
    (32, 5488, True)
    """
    if steps < 1 or (passes is not None and passes < 1):
        raise InputError(f"steps and passes are at least 1; got {steps} and {passes}")
    most = steps if passes is None else min(passes, steps)
    # the hockey stick: C(0, j) + ... + C(H - 1, j) = C(H, j + 1)
    return sum(math.comb(steps, j + 1) for j in range(most))


# ---- published


def hoeffding_rows(*, error: float, steps: int, beta: float, passes: int | None = None) -> int:
    """Rows at which no accuracy is overestimated by more than an error, as ease.ml/ci computes them.

    With probability at least ``1 - beta`` no tested model scores more than `error` above its population accuracy.

    Parameters
    ----------
    error : float
        One-sided error tolerance, in (0, 1).
    steps, passes
        As in :func:`histories`.
    beta : float
        Failure probability of all tests together, in (0, 1): one less the reliability.

    Raises
    ------
    InputError
        If a number is out of its range.

    Notes
    -----
    ``ln(N / beta) / (2 error^2)`` with N histories.

    References
    ----------
    .. [1] Renggli et al. (2019), "Continuous Integration of Machine Learning Models with ease.ml/ci", section 3.

    Examples
    --------
    >>> [hoeffding_rows(error=e, steps=32, beta=1e-4, passes=p) for e in (0.05, 0.01) for p in (1, None)]
    [2536, 6279, 63381, 156956]
    """
    return math.ceil(_nats(error, steps, beta, passes) / (2.0 * error**2))


def bennett_rows(
    *, error: float, disagreement: float, steps: int, beta: float, passes: int | None = None
) -> int:
    """Rows at which no difference of two models' accuracies is off by more than an error, as ease.ml/ci computes them.

    With probability at least ``1 - beta`` every observed difference is within `error` of the population's, if the
    models disagree on at most a fraction `disagreement` of the population; half of beta is set aside for testing that.

    Parameters
    ----------
    error : float
        Error tolerance, in (0, 1).
    disagreement : float
        Bound p on the probability that the two models' predictions differ, in (0, 1].
    steps, beta, passes
        As in :func:`hoeffding_rows`.

    Raises
    ------
    InputError
        If a number is out of its range.

    Notes
    -----
    Bennett's inequality, ``ln(4N / beta) / (p h(error / p))`` with ``h(u) = (1 + u) ln(1 + u) - u``.

    References
    ----------
    .. [1] Renggli et al. (2019), section 4: "only 29K samples" and "67K".

    Examples
    --------
    >>> [bennett_rows(error=0.01, disagreement=0.1, steps=32, beta=1e-4, passes=p) for p in (1, None)]
    [29048, 67706]
    """
    nats = _nats(error, steps, beta, passes) + math.log(4.0)
    _check_disagreement(disagreement)
    ratio = error / disagreement
    return math.ceil(nats / (disagreement * ((1.0 + ratio) * math.log1p(ratio) - ratio)))


# ---- the same promises with fewer rows


def interval_rows(*, error: float, steps: int, beta: float, passes: int | None = None) -> int:
    """Rows for the promise of :func:`hoeffding_rows`, by the exact binomial distribution.

    With probability at least ``1 - beta`` no tested model scores more than `error` above its population accuracy,
    whatever that is.

    Parameters
    ----------
    error, steps, beta, passes
        As in :func:`hoeffding_rows`, which is never smaller.

    Raises
    ------
    InputError
        If a number is out of its range.

    Notes
    -----
    A score of x/n is too high only for accuracies up to ``x/n - error``, and likeliest at the largest: so the promise
    fails with probability at most ``N max_x P(Bin(n, x/n - error) >= x)``. The result meets it; one row fewer does not.

    References
    ----------
    .. [1] Clopper and Pearson (1934).

    Examples
    --------
    >>> interval_rows(error=0.05, steps=32, beta=1e-4, passes=1) < 0.83 * 2536
    True
    """
    nats = _nats(error, steps, beta, passes)

    def holds(rows: int) -> bool:
        counts = np.arange(math.floor(rows * error) + 1, rows + 1, dtype=np.float64)
        accuracies = np.maximum(counts / rows - error, 1e-300)
        open_ = (
            rows * _divergence(counts / rows, accuracies) < nats
        )  # the others are settled by Chernoff's bound
        if not open_.any():
            return True
        tails = log_binomial_tail(counts[open_], rows=rows, probability=accuracies[open_])
        return bool(np.max(tails) <= -nats)

    return _least(holds)


def gate_rows(
    *,
    bar: float,
    error: float,
    steps: int,
    beta: float,
    passes: int | None = None,
    family: GateFamily = "binomial",
) -> int:
    """Rows at which a score `error` above a bar is enough to pass.

    With probability at least ``1 - beta`` no model passes whose population value is below the bar.

    Parameters
    ----------
    bar : float
        Least population value, in (0, 1).
    error : float
        What the score must exceed the bar by, above 0 and less than ``1 - bar``.
    steps, beta, passes
        As in :func:`hoeffding_rows`.
    family : {"binomial", "bounded"}
        Accuracies, by the exact binomial distribution, or means of any values in [0, 1], by Chernoff's bound.

    Raises
    ------
    InputError
        If a number is out of its range.

    Notes
    -----
    Binomial: ``P(Bin(n, bar) >= n (bar + error)) <= beta / N``, with the incomplete beta function between whole
    numbers, which is larger: so more rows are enough too. Bounded: ``ln(N / beta) / kl(bar + error, bar)``.

    References
    ----------
    .. [1] Clopper and Pearson (1934).
    .. [2] Hoeffding (1963), Theorem 1, inequality (2.1).

    Examples
    --------
    >>> gate_rows(bar=0.9, error=0.05, steps=32, beta=1e-4, passes=1) < 0.3 * 2536
    True
    """
    nats = _nats(error, steps, beta, passes)
    if family not in get_args(GateFamily):
        raise InputError(f"family is one of {', '.join(get_args(GateFamily))}; got {family!r}")
    if not (bar > 0.0 and bar + error < 1.0):
        raise InputError(f"bar lies in (0, 1) and error below 1 - bar; got {bar} and {error}")
    if family == "bounded":
        return math.ceil(nats / float(_divergence(np.array([bar + error]), np.array([bar]))[0]))
    return _least(lambda rows: _log_tail(rows * (bar + error), rows, bar) <= -nats)


def difference_rows(
    *, error: float, disagreement: float, steps: int, beta: float, passes: int | None = None
) -> int:
    """Rows for the promise of :func:`bennett_rows`, by the exact moment generating function.

    With probability at least ``1 - beta`` every observed difference of two models' accuracies is within `error` of the
    population's, if they disagree on at most a fraction `disagreement` of the population.

    Parameters
    ----------
    error, disagreement, steps, beta, passes
        As in :func:`bennett_rows`; nothing is set aside for testing the disagreement, so the like of that function's
        promise is at ``beta / 2``.

    Raises
    ------
    InputError
        If a number is out of its range.

    Notes
    -----
    A row contributes -1, 0 or 1. With mean D and disagreement at most p the log moment generating function of its
    deviation is at most ``ln(1 + p (cosh t - 1) + D sinh t) - D t``, which is concave in D and largest at
    ``D = 1/t - (1 + p (cosh t - 1)) / sinh t`` (psi(t), say); Chernoff's bound at the best t then holds for every D:
    ``ln(2N / beta) / sup_t (t error - psi(t))``. Bennett's ``p (exp(t) - 1 - t)`` is larger than psi(t).

    Examples
    --------
    >>> rows = [difference_rows(error=0.01, disagreement=0.1, steps=32, beta=5e-5, passes=p) for p in (1, None)]
    >>> rows[0] < 29048, rows[1] < 67706
    (True, True)
    """
    nats = _nats(error, steps, beta, passes) + math.log(2.0)
    _check_disagreement(disagreement)
    return math.ceil(nats / _difference_exponent(error, disagreement))


def paired_gate_rows(
    *, error: float, disagreement: float, steps: int, beta: float, passes: int | None = None
) -> int:
    """Rows at which a model that scores `error` better than the incumbent passes, by the exact sign test.

    With probability at least ``1 - beta`` no model passes that is no better than the incumbent, however often they
    disagree: `disagreement` matters only for the rows that are enough.

    Parameters
    ----------
    error : float
        What the model's score must exceed the incumbent's by, in (0, disagreement).
    disagreement : float
        Largest share of the rows on which one of the two is right and the other wrong, in (0, 1].
    steps, beta, passes
        As in :func:`hoeffding_rows`.

    Raises
    ------
    InputError
        If a number is out of its range.

    Notes
    -----
    Given m such rows, the wins of a model that is no better are at most ``Bin(m, 1/2)``: it passes if ``P(Bin(m, 1/2)
    >= wins) <= beta / N``. A lead of ``n error`` is the least convincing at the largest m, ``floor(n disagreement)``.
    The incomplete beta function between whole numbers covers both parities of m.

    References
    ----------
    .. [1] McNemar (1947); the exact form.

    Examples
    --------
    >>> rows = [paired_gate_rows(error=0.01, disagreement=0.1, steps=32, beta=1e-4, passes=p) for p in (1, None)]
    >>> rows[0] < 0.75 * 29048, rows[1] < 0.87 * 67706
    (True, True)
    """
    nats = _nats(error, steps, beta, passes)
    _check_disagreement(disagreement)
    if error >= disagreement:
        raise InputError(f"error is less than disagreement, {disagreement}; got {error}")

    def holds(rows: int) -> bool:
        differ = math.floor(rows * disagreement)
        return differ > 0 and _log_tail((differ + rows * error) / 2.0, differ, 0.5) <= -nats

    return _least(holds)


# ---- arithmetic


def _nats(error: float, steps: int, beta: float, passes: int | None) -> float:
    """Log of the histories over beta."""
    if not 0.0 < error < 1.0:
        raise InputError(f"error lies in (0, 1); got {error}")
    if not 0.0 < beta < 1.0:
        raise InputError(f"beta lies in (0, 1); got {beta}")
    return math.log(histories(steps=steps, passes=passes)) - math.log(beta)


def _check_disagreement(disagreement: float) -> None:
    if not 0.0 < disagreement <= 1.0:
        raise InputError(f"disagreement lies in (0, 1]; got {disagreement}")


def _log_tail(successes: float, rows: int, probability: float) -> float:
    return log_binomial_tail(successes, rows=rows, probability=probability)


def _divergence(value: NDArray[np.float64], mean: NDArray[np.float64]) -> NDArray[np.float64]:
    """``kl(value, mean)`` for values in (0, 1] above means in (0, 1)."""
    return np.asarray(special.rel_entr(value, mean) + special.rel_entr(1.0 - value, 1.0 - mean))


def _difference_exponent(error: float, disagreement: float) -> float:
    """Chernoff exponent per row of a deviation by an error, for the worst mean; from below."""

    def rate(t: float) -> float:
        spread, tilt = 1.0 + disagreement * (math.cosh(t) - 1.0), math.sinh(t)
        mean = min(max(1.0 / t - spread / tilt, -disagreement), disagreement)
        up, down = (disagreement + mean) / 2.0, (disagreement - mean) / 2.0
        moment = 1.0 - disagreement + up * math.exp(t) + down * math.exp(-t)
        return t * (error + mean) - math.log(moment)

    found = optimize.minimize_scalar(  # the rate is concave in t
        lambda t: -rate(t), bounds=(0.0, _MOST_TILT), method="bounded", options={"xatol": 1e-9}
    )
    return -float(found.fun)


def _least(holds: Callable[[int], bool]) -> int:
    """Rows at which a condition holds and one row below which it does not."""
    refused, kept = 0, 1
    while not holds(kept):
        refused, kept = kept, 2 * kept
        if kept > _MOST_ROWS:
            raise InputError(f"more than {_MOST_ROWS:,} rows would be needed; ask for a larger error")
    while kept - refused > 1:
        middle = (refused + kept) // 2
        refused, kept = (refused, middle) if holds(middle) else (middle, kept)
    return kept
