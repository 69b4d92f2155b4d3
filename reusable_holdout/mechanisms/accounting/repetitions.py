"""The cost of running a private algorithm a random number of times and publishing only the best run."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reusable_holdout.deferred import optimize
from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting.bisection import largest_between

__all__ = ["Repetitions"]

_ROUND_UP = 1 + 1e-12  # pays for a few floating-point operations
_LEAST_STOP, _NEAREST = 1e-280, 1e-12
_ORDERS = np.logspace(-6, 6, 481)  # orders less 1 that are tried for the second term of a Renyi cost


@dataclass(frozen=True, slots=True)
class Repetitions:
    """The law of a random number of runs of a private algorithm, with the cost of publishing only the best run.

    With a fixed number of runs the best one costs as much as all of them together. With a random number it costs less
    than three runs, however many there are on average: the best run does not tell how many there were.

    Parameters
    ----------
    mean : float
        Mean number of runs, which is the time that a selection takes; at least 1, and above 0 for the Poisson law.
    shape : float
        Law of the number of runs, above -1. A smaller shape is cheaper; with a larger one very few runs are rarer. 1 is
        the geometric law, 0 the logarithmic law, ``math.inf`` the Poisson law, which may give no run at all. In general
        it is the parameter ``eta`` of the negative binomial law without 0 (truncated).

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    With the stopping probability ``g`` of that mean: ``P(K = k)`` is proportional to ``(1-g)**k Gamma(k + eta) / k!``,
    k = 1, 2, ... Its generating function is ``G(z) = ((1 - (1-g) z)**-eta - 1) / (g**-eta - 1)``, or ``ln(1 - (1-g) z)
    / ln g`` for ``eta = 0``; that of the Poisson law is ``exp(mean (z - 1))``.

    References
    ----------
    .. [1] Liu and Talwar (2019), "Private selection from private candidates", for the geometric law.
    .. [2] Papernot and Steinke (2022), "Hyperparameter tuning with Renyi differential privacy".

    Examples
    --------
    >>> round(Repetitions(mean=100).epsilon(0.5), 3), round(Repetitions(mean=100, shape=1).epsilon(0.5), 3)
    (0.998, 1.479)
    """

    mean: float
    shape: float = 0.0

    def __post_init__(self) -> None:
        if not self.shape > -1 or 0 < abs(self.shape) < _NEAREST:
            raise InputError(
                f"shape is 0, or above -1 and at least {_NEAREST:g} away from 0; got {self.shape}"
            )
        if self.poisson and not 0 < self.mean < math.inf:
            raise InputError(f"the mean of a Poisson law is finite and above 0; got {self.mean}")
        if not self.poisson and not 1 <= self.mean < _mean(_LEAST_STOP, self.shape):
            raise InputError(
                f"the mean number of runs is finite and at least 1, and smaller the closer shape is to -1; got "
                f"{self.mean} with shape {self.shape}"
            )

    @property
    def poisson(self) -> bool:
        """True if the law is the Poisson law."""
        return self.shape == math.inf

    @property
    def stop(self) -> float:
        """Stopping probability ``g`` of the truncated negative binomial law; the Poisson law has none.

        Raises
        ------
        InputError
            If the law is the Poisson law.

        Examples
        --------
        >>> Repetitions(mean=4, shape=1).stop
        0.25
        """
        if self.poisson:
            raise InputError("a Poisson law has no stopping probability")
        return _stop(self.mean, self.shape)

    def epsilon(self, epsilon: float) -> float:
        """Compute the epsilon of a selection, each run of which is epsilon-differentially private.

        The selection is (result, 0)-differentially private, and no smaller number is true of all algorithms. If the
        runs are (epsilon, d)-differentially private it is (result, `delta` of d)-differentially private.

        Parameters
        ----------
        epsilon : float
            Privacy parameter of one run; finite, at least 0.

        Returns
        -------
        float
            Rounded up.

        Raises
        ------
        InputError
            If epsilon is out of range.

        Notes
        -----
        Published with random tie-breaking, outcome ``y`` has probability ``P(y)`` times the mean of ``G'(z)`` over
        ``P(worse) <= z <= P(worse) + P(y)``. Between neighbours ``P(y)`` changes by ``exp(e)``, and ``z`` is the
        probability of an event: ``G'(z) / G'(z')`` is largest where it goes from ``1/(1 + exp(e))`` to ``exp(e)/(1 +
        exp(e))``. Together ``e + (1 + eta) ln((exp(e) + g) / (1 + g exp(e)))``, below the ``(2 + eta) e`` of [1]_, and
        ``e + mean tanh(e/2)`` for the Poisson law. An algorithm that is randomized response between a good and a bad
        half, with an outcome at the border whose probability vanishes, attains it.

        References
        ----------
        .. [1] Papernot and Steinke (2022), "Hyperparameter tuning with Renyi differential privacy".

        Examples
        --------
        >>> Repetitions(mean=1).epsilon(0.5)
        0.5
        """
        if not 0 <= epsilon < math.inf:
            raise InputError(f"epsilon is finite and at least 0; got {epsilon}")
        if self.poisson:
            return (epsilon + self.mean * math.tanh(epsilon / 2)) * _ROUND_UP
        stop = self.stop
        if stop == 1:
            return epsilon
        gained = math.log1p((1 - stop) * -math.expm1(-epsilon) / (math.exp(-epsilon) + stop))
        return (epsilon + (1 + self.shape) * gained) * _ROUND_UP

    def epsilon_each(self, epsilon: float) -> float:
        """Compute the largest epsilon that each run may have.

        Parameters
        ----------
        epsilon : float
            Privacy parameter of the selection; finite, above 0.

        Returns
        -------
        float
            Rounded down: `epsilon` of the result is at most the epsilon of the selection.

        Raises
        ------
        InputError
            If epsilon is out of range.

        Examples
        --------
        >>> round(Repetitions(mean=100).epsilon_each(1.0), 4)
        0.5008
        """
        if not 0 < epsilon < math.inf:
            raise InputError(f"epsilon is finite and above 0; got {epsilon}")
        return _largest(self.epsilon, epsilon)

    def delta(self, delta: float) -> float:
        """Compute the delta of a selection, each run of which is (epsilon, delta)-differentially private.

        Parameters
        ----------
        delta : float
            Delta of one run, in [0, 1].

        Returns
        -------
        float
            Rounded up; at most `mean` times `delta`.

        Raises
        ------
        InputError
            If delta is out of range.

        Notes
        -----
        ``1 - G(1 - d)``. An (e, d)-private run is a mixture: with probability ``1 - d`` an e-private run, otherwise any
        run. So with probability ``G(1 - d)`` all runs are e-private; given that, the number of runs has a law of the
        same shape with a larger stopping probability, or a Poisson law of smaller mean, which costs less.

        Examples
        --------
        >>> 0.98e-5 < Repetitions(mean=10, shape=1).delta(1e-6) <= 1e-5
        True
        """
        if not 0 <= delta <= 1:
            raise InputError(f"delta lies in [0, 1]; got {delta}")
        if self.poisson:
            return min(1.0, -math.expm1(-self.mean * delta) * _ROUND_UP)
        if self.stop == 1:
            return delta
        grown = math.log1p(delta * (1 - self.stop) / self.stop)
        if self.shape == 0:
            return min(1.0, grown / -math.log(self.stop) * _ROUND_UP)
        share = math.expm1(-self.shape * grown) / math.expm1(self.shape * math.log(self.stop))
        return min(1.0, share * _ROUND_UP)

    def delta_each(self, delta: float) -> float:
        """Compute the largest delta that each run may have.

        Parameters
        ----------
        delta : float
            Delta of the selection, in [0, 1).

        Returns
        -------
        float
            Rounded down: `delta` of the result is at most the delta of the selection.

        Raises
        ------
        InputError
            If delta is out of range.

        Examples
        --------
        >>> Repetitions(mean=10).delta_each(0.0)
        0.0
        """
        if not 0 <= delta < 1:
            raise InputError(f"delta lies in [0, 1); got {delta}")
        return _largest(self.delta, delta) if delta else 0.0

    def renyi(self, order: float, run: Callable[[float], float]) -> float:
        """Compute the Renyi divergence of a selection from the divergences of a run.

        Parameters
        ----------
        order : float
            Order of the divergence; finite, above 1.
        run : Callable[[float], float]
            Takes an order above 1 and returns a bound of the divergence of that order between the outcomes of one run
            on neighbouring data, such as ``lambda order: order * rho`` for rho-zCDP.

        Returns
        -------
        float
            The selection is (order, result)-Renyi-differentially private.

        Raises
        ------
        InputError
            If the order is out of range, or the law is a Poisson law of mean below 1.

        Notes
        -----
        ``run(a) + (1 + eta) min_b ((1 - 1/b) run(b) + ln(1/g) / b) + ln(mean) / (a - 1)``, and for the Poisson law
        ``run(a) + mean d + ln(mean) / (a - 1)`` with ``d`` the delta of a run at ``ln(1 + 1/(a - 1))``, here the
        smallest that follows from its divergences.

        References
        ----------
        .. [1] Papernot and Steinke (2022), "Hyperparameter tuning with Renyi differential privacy", Theorems 2 and 6.
        .. [2] Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential privacy", Proposition 12,
           for the delta.

        Examples
        --------
        >>> round(Repetitions(mean=20).renyi(16.0, lambda order: 0.01 * order), 2)
        0.77
        """
        if not 1 < order < math.inf:
            raise InputError(f"an order is finite and above 1; got {order}")
        if self.mean < 1:
            raise InputError(
                f"the Renyi cost of a Poisson law is known for a mean of at least 1; got {self.mean}"
            )
        runs = [run(float(1 + other)) for other in _ORDERS]
        if self.poisson:
            delta = _delta_of(runs, math.log1p(1 / (order - 1)))
            return (run(order) + self.mean * delta + math.log(self.mean) / (order - 1)) * _ROUND_UP
        others = (
            (other * cost - math.log(self.stop)) / (1 + other)
            for other, cost in zip(_ORDERS.tolist(), runs, strict=True)
        )
        second = min(-math.log(self.stop), *others)
        return float(run(order) + (1 + self.shape) * second + math.log(self.mean) / (order - 1)) * _ROUND_UP


def _delta_of(runs: list[float], epsilon: float) -> float:
    """Compute the smallest delta at an epsilon that follows from the divergences of the orders tried."""
    logs = [
        other * (cost - epsilon) + other * math.log(other) - (1 + other) * math.log1p(other)
        for other, cost in zip(_ORDERS.tolist(), runs, strict=True)
    ]
    return math.exp(min(0.0, *logs))


@functools.lru_cache(maxsize=256)
def _stop(mean: float, shape: float) -> float:
    """Find the stopping probability at which the law has a mean, to the last few digits of a float."""
    if mean == 1:
        return 1.0
    if shape == 1:
        return 1 / mean

    def excess(log_stop: float) -> float:
        return math.log(_mean(math.exp(-log_stop), shape) / mean)

    if excess(_NEAREST) >= 0:  # a mean that is 1 to twelve digits
        return math.exp(-_NEAREST)
    found = optimize.brentq(excess, _NEAREST, -math.log(_LEAST_STOP), xtol=1e-14, rtol=1e-14)
    return math.exp(-float(found))


def _mean(stop: float, shape: float) -> float:
    """Compute the mean number of runs."""
    log = math.log(stop)
    if shape == 0:
        return (1 - stop) / (-log * stop)
    return shape * (1 - stop) / (stop * -math.expm1(shape * log))


def _largest(cost: Callable[[float], float], wanted: float) -> float:
    """Find the largest argument whose cost is at most the one wanted; costs rise and are at least their argument."""
    if cost(wanted) <= wanted:
        return wanted
    return largest_between(lambda each: cost(each) <= wanted, 0.0, wanted)
