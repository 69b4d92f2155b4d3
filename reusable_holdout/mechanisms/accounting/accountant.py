"""A privacy accountant, which computes the joint cost of private releases by the tightest theory that applies."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting.bisection import smallest_from_zero
from reusable_holdout.mechanisms.accounting.composition import MOST_RELEASES
from reusable_holdout.mechanisms.accounting.events import MOST_REPEATED, PrivacyEvent, has_profile
from reusable_holdout.mechanisms.accounting.gaussian import gaussian_delta
from reusable_holdout.mechanisms.accounting.losses import Profile, composed_delta, composed_epsilon
from reusable_holdout.mechanisms.accounting.renyi import ORDERS, renyi_deltas, renyi_epsilon
from reusable_holdout.noise.composition import float_of

_MOST_COMPOSED = 10**7  # releases; with more, no grid is fine enough to be tighter than Renyi divergences
_ROUND_UP = 1 + 1e-9
_HALVINGS = 13  # bisection steps with a formula that is slow to compute
_DEEPEST = 3.0  # the formula's log of delta is sought up to this far below that of other theories


class PrivacyCost(NamedTuple):
    """The joint cost of releases: together they are (`epsilon`, `delta`)-differentially private.

    Attributes
    ----------
    epsilon, delta : float
        Privacy parameters of all releases together.
    route : str
        Name of the theory that proves this cost.
    """

    epsilon: float
    delta: float
    route: str


class PrivacyAccountant:
    """An accountant for private releases of any kind, whose kinds and parameters are fixed beforehand.

    All events together are (``epsilon(delta).epsilon``, delta)-differentially private, however adaptively the questions
    that they answer were chosen. If their number or their parameters depend on earlier outcomes, use a `PrivacyFilter`
    or a `PrivacyOdometer`.

    The `route` of a cost names its theory. The amount of work is bounded: for more than ten million releases that are
    not all equal, the cost comes from Renyi divergences if all events have them, which is a larger bound.

    Examples
    --------
    >>> from reusable_holdout.mechanisms.accounting import GaussianEvent, PureEvent
    >>> accountant = PrivacyAccountant()
    >>> accountant.add(PureEvent(0.05), count=100)
    >>> accountant.add(GaussianEvent(10.0), count=3)
    >>> cost = accountant.epsilon(1e-6)
    >>> round(cost.epsilon, 2), cost.route
    (2.36, 'privacy-loss distributions')
    """

    def __init__(self) -> None:
        self._counts: dict[PrivacyEvent, int] = {}

    def __repr__(self) -> str:
        return f"PrivacyAccountant({self._counts})"

    def add(self, event: PrivacyEvent, *, count: int = 1) -> None:
        """Add an event to the account.

        Parameters
        ----------
        event : PrivacyEvent
            The private release.
        count : int
            How often it happens; at least 1. In total one event may happen at most 10**15 times.

        Raises
        ------
        InputError
            If the count is out of range; nothing is noted.
        """
        if not (isinstance(count, int | np.integer) and count >= 1):
            raise InputError(f"a count is a whole number of at least 1; got {count}; nothing was noted")
        after = self._counts.get(event, 0) + int(count)
        if after > MOST_REPEATED:
            raise InputError(
                f"an event happens at most {MOST_REPEATED:,} times; got {after}; nothing was noted"
            )
        self._counts[event] = after

    @property
    def events(self) -> tuple[tuple[PrivacyEvent, int], ...]:
        """The events, each with the number of times it happened."""
        return tuple(self._counts.items())

    def epsilon(self, delta: float) -> PrivacyCost:
        """Return the joint cost at a delta, by the theory that gives the smallest epsilon.

        Parameters
        ----------
        delta : float
            Delta of all releases together, in [0, 1).

        Returns
        -------
        PrivacyCost
            Its epsilon is infinite if no theory covers all events at this delta.

        Raises
        ------
        InputError
            If delta is out of range.
        """
        if not 0 <= delta < 1:
            raise InputError(f"delta lies in [0, 1); got {delta}")
        with np.errstate(over="ignore"):  # a sum beyond all floats is infinite
            costs = [PrivacyCost(epsilon, delta, route) for epsilon, route in self._epsilons(delta)]
        return min(costs, default=PrivacyCost(math.inf, delta, "none"))

    def delta(self, epsilon: float) -> PrivacyCost:
        """Return the joint cost at an epsilon, by the theory that gives the smallest delta.

        Parameters
        ----------
        epsilon : float
            Epsilon of all releases together; finite, at least 0.

        Raises
        ------
        InputError
            If epsilon is out of range.
        """
        if not (math.isfinite(epsilon) and epsilon >= 0):
            raise InputError(f"epsilon is finite and at least 0; got {epsilon}")
        with np.errstate(over="ignore"):
            costs = [PrivacyCost(epsilon, delta, route) for delta, route in self._deltas(epsilon)]
        return min(costs, key=lambda cost: cost.delta)

    def _epsilons(self, delta: float) -> Iterator[tuple[float, str]]:
        """Yield the epsilon that each theory gives, with its name; if one is exact, no further theory is tried."""
        if not self._counts:
            yield 0.0, "nothing happened"
            return
        failing = self._failure()
        if failing <= delta and math.isfinite(self._pure()):
            yield self._pure(), "basic composition"
        if delta <= failing:
            return
        shift = self._squared_shift()
        if shift is not None:
            yield _gaussian_epsilon(shift, delta), "Gaussian"
            return
        if len(self._counts) == 1:
            [(event, count)] = self._counts.items()
            if (known := event.repeated_epsilon(count, delta)) is not None:
                yield known
                if count <= MOST_RELEASES:
                    return
        by_renyi = renyi_epsilon(ORDERS, _renyi(self._counts), delta - failing)
        yield by_renyi, "Renyi"
        if self._composable() or math.isinf(by_renyi):
            yield composed_epsilon(self._profiles(), delta), "privacy-loss distributions"

    def _deltas(self, epsilon: float) -> Iterator[tuple[float, str]]:
        """Yield the delta that each theory gives, with its name; if one is exact, no further theory is tried."""
        yield 1.0, "none"
        if not self._counts:
            yield 0.0, "nothing happened"
            return
        if self._pure() <= epsilon:
            yield self._failure(), "basic composition"
        shift = self._squared_shift()
        if shift is not None:
            yield gaussian_delta(epsilon=epsilon, deviation=1 / math.sqrt(shift)) * _ROUND_UP, "Gaussian"
            return
        by_renyi = self._failure() + float(renyi_deltas(ORDERS, _renyi(self._counts), np.array([epsilon]))[0])
        yield by_renyi, "Renyi"
        known = min(1.0, by_renyi)
        if self._composable() or known == 1:
            known = composed_delta(self._profiles(), epsilon)
            yield known, "privacy-loss distributions"
        if len(self._counts) == 1 and 0 < known < 1:
            yield from self._by_formula(epsilon, known)

    def _by_formula(self, epsilon: float, start: float) -> Iterator[tuple[float, str]]:
        """Yield the delta from the formula for equal events, found by bisection of its log, if it is below `start`."""
        [(event, count)] = self._counts.items()

        def cost(log_delta: float) -> tuple[float, str]:
            return event.repeated_epsilon(count, math.exp(log_delta)) or (math.inf, "none")

        high = math.log(start)
        known, name = cost(high)
        if known > epsilon:
            return
        low = high - _DEEPEST
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            known, name = cost(middle)
            low, high = (low, middle) if known <= epsilon else (middle, high)
        yield math.exp(high), name

    def _composable(self) -> bool:
        """Return True if the losses of all events fit a grid that is fine enough."""
        return sum(self._counts.values()) <= _MOST_COMPOSED

    def _failure(self) -> float:
        return math.fsum(count * event.failure() for event, count in self._counts.items())

    def _pure(self) -> float:
        """Return the exact sum of the epsilons, each taken as the decimal it is written as: fifty times 0.02 is 1."""
        costs = [(event.pure(), count) for event, count in self._counts.items()]
        if any(math.isinf(epsilon) for epsilon, _ in costs):
            return math.inf
        return float_of(sum(count * Fraction(repr(float(epsilon))) for epsilon, count in costs))

    def _squared_shift(self) -> float | None:
        """Return the total squared shift if every event's privacy loss is that of a shifted normal law, else None."""
        total = 0.0
        for event, count in self._counts.items():
            shift = event.squared_shift()
            if shift is None:
                return None
            total += count * shift
        return total

    def _profiles(self) -> list[tuple[Profile, int]]:
        """Return the privacy profiles of all events; events that only have Renyi divergences share one profile."""
        rest = {event: count for event, count in self._counts.items() if not has_profile(event)}
        parts = [(_profile(event), count) for event, count in self._counts.items() if event not in rest]
        if rest:
            costs = _renyi(rest)
            parts.append((lambda epsilons: _convex(epsilons, renyi_deltas(ORDERS, costs, epsilons)), 1))
        return parts


def _renyi(counts: dict[PrivacyEvent, int]) -> npt.NDArray[np.float64]:
    """Return the joint Renyi divergences of all events, at each order in `ORDERS`."""
    total = np.zeros(len(ORDERS))
    for event, count in counts.items():
        total += count * event.renyi(ORDERS)
    return total


def _profile(event: PrivacyEvent) -> Profile:
    return lambda epsilons: np.asarray(event.delta(epsilons))


def _convex(epsilons: npt.NDArray[np.float64], deltas: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the lower convex hull of deltas over ``exp(epsilon)``; it bounds the profile, too, which is convex."""
    heights = np.exp(epsilons)
    hull: list[int] = []
    for place in range(len(epsilons)):
        while len(hull) > 1 and (deltas[hull[-1]] - deltas[hull[-2]]) * (
            heights[place] - heights[hull[-1]]
        ) >= (deltas[place] - deltas[hull[-1]]) * (heights[hull[-1]] - heights[hull[-2]]):
            hull.pop()
        hull.append(place)
    return np.asarray(np.interp(heights, heights[hull], deltas[hull]))


def _gaussian_epsilon(squared_shift: float, delta: float) -> float:
    """Return the smallest epsilon at a delta for a normal law with this squared shift, rounded up."""
    deviation = 1 / math.sqrt(squared_shift)
    return (
        smallest_from_zero(lambda epsilon: gaussian_delta(epsilon=epsilon, deviation=deviation) <= delta)
        * _ROUND_UP
    )
