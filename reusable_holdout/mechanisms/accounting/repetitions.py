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

_ROUND_UP = 1 + 1e-12  # pays for a few floating-point operations
_LEAST_STOP, _NEAREST = 1e-280, 1e-12
_ORDERS = np.logspace(-6, 6, 481)  # orders, minus 1, that are tried for the second term of a Renyi cost


@dataclass(frozen=True, slots=True)
class Repetitions:
    """The distribution of a random number of runs of a private algorithm, with the cost of publishing the best run.

    With a fixed number of runs, publishing the best one costs as much as publishing all. With a random number that is
    geometric or logarithmic it costs less than three runs, however large the mean is, because the best run does not
    reveal the number of runs.

    Parameters
    ----------
    mean : float
        Mean number of runs, on which the running time depends; at least 1, or for the Poisson distribution above 0.
    shape : float
        Shape of the distribution, above -1: the parameter ``eta`` of the negative binomial distribution truncated at 0.
        1 is the geometric distribution, 0 the logarithmic one, and ``math.inf`` the Poisson distribution, which may
        give no run at all. A smaller shape costs less; with a larger shape a very small number of runs is less likely.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    Let ``g`` be the stopping probability that gives this mean. ``P(K = k)`` is proportional to ``(1-g)**k Gamma(k +
    eta) / k!`` for k = 1, 2, ... The generating function is ``G(z) = ((1 - (1-g) z)**-eta - 1) / (g**-eta - 1)``, or
    ``ln(1 - (1-g) z) / ln g`` for ``eta = 0``. For the Poisson distribution it is ``exp(mean (z - 1))``.

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
        """Compute the epsilon of publishing the best run, if each run is epsilon-differentially private.

        The selection is (result, 0)-differentially private, and no smaller number holds for all algorithms. If the runs
        are (epsilon, d)-differentially private, the selection is (result, ``self.delta(d)``)-differentially private.

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
        With random tie-breaking the probability that outcome ``y`` is published is ``P(y)`` times the mean of ``G'(z)``
        over ``P(worse) <= z <= P(worse) + P(y)``. Between neighbours ``P(y)`` changes by a factor of at most
        ``exp(e)``, with ``e`` epsilon. As ``z`` is the probability of an event, ``G'(z) / G'(z')`` is largest if ``z``
        changes from ``1/(1 + exp(e))`` to ``exp(e)/(1 + exp(e))``. Together this gives ``e + (1 + eta) ln((exp(e) + g)
        / (1 + g exp(e)))``, which is below the ``(2 + eta) e`` of [1]_, and ``e + mean tanh(e/2)`` for the Poisson
        distribution. It is attained by randomized response between good and bad outcomes, with one more outcome between
        them whose probability tends to 0.

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
            Epsilon of a run, rounded down: with it, the method `epsilon` returns no more than the selection's epsilon.

        Examples
        --------
        >>> round(Repetitions(mean=100).epsilon_each(1.0), 4)
        0.5008
        """
        if not 0 < epsilon < math.inf:
            raise InputError(f"epsilon is finite and above 0; got {epsilon}")
        return _largest(self.epsilon, epsilon)

    def delta(self, delta: float) -> float:
        """Compute the delta of publishing the best run, if each run is (epsilon, delta)-differentially private.

        Parameters
        ----------
        delta : float
            Delta of one run, in [0, 1].

        Returns
        -------
        float
            Rounded up; at most `mean` times `delta`.

        Notes
        -----
        With ``d`` the delta of a run the result is ``1 - G(1 - d)``. An (e, d)-private run is a mixture: with
        probability ``1 - d`` it is an e-private run, and otherwise it is arbitrary. So with probability ``G(1 - d)``
        all runs are e-private. Given that, the number of runs has a distribution of the same shape with a larger
        stopping probability, or a Poisson distribution with a smaller mean, which costs less.

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
            Delta of a run, rounded down: the method `delta` returns at most the selection's delta for it.

        Examples
        --------
        >>> Repetitions(mean=10).delta_each(0.0)
        0.0
        """
        if not 0 <= delta < 1:
            raise InputError(f"delta lies in [0, 1); got {delta}")
        return _largest(self.delta, delta) if delta else 0.0

    def renyi(self, order: float, run: Callable[[float], float]) -> float:
        """Compute the Renyi divergence of publishing the best run, from the Renyi divergences of one run.

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
            Bound of the divergence: the selection is (order, result)-Renyi-differentially private.

        Raises
        ------
        InputError
            If the order is out of range, or the law is a Poisson law of mean below 1.

        Notes
        -----
        At order ``a`` the result is ``run(a) + (1 + eta) min_b ((1 - 1/b) run(b) + ln(1/g) / b) + ln(mean) / (a - 1)``.
        For the Poisson distribution it is ``run(a) + mean d + ln(mean) / (a - 1)``, where ``d`` is the delta of a run
        at the epsilon ``ln(1 + 1/(a - 1))``: the smallest that follows from the run's divergences.

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
    """Compute the smallest delta at an epsilon that follows from the divergences at the orders tried."""
    logs = [
        other * (cost - epsilon) + other * math.log(other) - (1 + other) * math.log1p(other)
        for other, cost in zip(_ORDERS.tolist(), runs, strict=True)
    ]
    return math.exp(min(0.0, *logs))


@functools.lru_cache(maxsize=256)
def _stop(mean: float, shape: float) -> float:
    """Find the stopping probability that gives a mean number of runs, accurate to the last few digits of a float."""
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
    """Compute the mean number of runs from the stopping probability and the shape."""
    log = math.log(stop)
    if shape == 0:
        return (1 - stop) / (-log * stop)
    return shape * (1 - stop) / (stop * -math.expm1(shape * log))


def _largest(cost: Callable[[float], float], wanted: float) -> float:
    """Find the largest argument whose cost is at most `wanted`; costs increase and are at least their argument."""
    if cost(wanted) <= wanted:
        return wanted
    return largest_between(lambda each: cost(each) <= wanted, 0.0, wanted)
