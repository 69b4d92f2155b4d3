"""Privacy filters and odometers: accounting for releases whose number and parameters depend on earlier outcomes."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from reusable_holdout.deferred import special
from reusable_holdout.errors import BudgetError, InputError
from reusable_holdout.mechanisms.accounting.bisection import smallest_between
from reusable_holdout.mechanisms.accounting.events import PrivacyEvent
from reusable_holdout.noise.composition import float_of

_ORDERS = 1 + np.geomspace(0.05, 2000.0, 40)
_MAIN_SHARE = 0.9  # of the weight, on the best order for concentrated events; the others share the rest
_ROUND_UP = 1 + 1e-12  # a margin for the rounding of a sum


class _Spent:
    """The running sums of the events' costs; they are valid even if earlier results decide which event comes next."""

    def __init__(self, orders: npt.NDArray[np.float64], events: int = 0) -> None:
        self.orders = orders
        self.renyi = np.zeros(len(orders))
        self.pure: Fraction | float = Fraction(0)  # each epsilon as the decimal it is written as
        self.failure, self.events = 0.0, events

    @np.errstate(over="ignore")  # a sum beyond all floats is infinite
    def with_event(self, event: PrivacyEvent) -> _Spent:
        """Return the sums after one more event."""
        after = _Spent(self.orders, self.events + 1)
        after.renyi = (self.renyi + event.renyi(self.orders)) * _ROUND_UP
        pure = event.pure()
        after.pure = self.pure + (Fraction(repr(float(pure))) if math.isfinite(pure) else math.inf)
        after.failure = (self.failure + event.failure()) * _ROUND_UP
        return after


class PrivacyFilter:
    """A privacy budget for releases whose kinds and parameters are chosen one after another.

    All admitted events together are (epsilon, delta)-differentially private. Each event may depend on all earlier
    outcomes, and you may stop at any time. An event that would exceed the budget is refused.

    Parameters
    ----------
    epsilon, delta : float
        Privacy parameters of all events together; epsilon finite and above 0, delta in (0, 1).
    failures : float
        Part of `delta` that is set aside for events that are only approximately private: the largest sum of their
        deltas. At least 0, less than `delta`.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Notes
    -----
    Let ``L`` be the privacy loss so far and ``S_a`` the sum of the events' Renyi divergences at order ``a``. Given the
    data, ``exp((a-1)(L - S_a))`` is a supermartingale for each ``a``, and so is a mixture of them with fixed weights
    ``w_a``. For every ``a``, ``max(0, 1 - exp(E - L)) <= c_a exp((a-1)(L - E))`` with ``c_a = (1 - 1/a)**(a-1)/a``.
    So the delta at ``E`` is at most ``d`` if, at the time of stopping, the sum of ``w_a exp((a-1)(E - S_a)) / c_a`` is
    at least ``1/d``. Nine tenths of the weight lie on the order at which the most concentrated events are affordable.
    Therefore adaptivity costs only a term ``ln(10/9)``, added to ``ln(1/delta)``. Pure events whose epsilons add up to
    at most `epsilon` are always admitted, because their loss never exceeds it.

    References
    ----------
    .. [1] Rogers, Roth, Ullman and Vadhan (2016), "Privacy odometers and filters: pay-as-you-go composition".
    .. [2] Feldman and Zrnic (2021), "Individual privacy accounting via a Renyi filter", Theorem 4.3.
    .. [3] Whitehouse, Ramdas, Rogers and Wu (2023), "Fully-adaptive composition in differential privacy", Theorem 1.
    .. [4] Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential privacy", Proposition 12.

    Examples
    --------
    >>> from reusable_holdout.mechanisms.accounting import PureEvent
    >>> budget = PrivacyFilter(epsilon=1.0, delta=1e-6)
    >>> admitted = 0
    >>> while budget.affords(PureEvent(0.02)):
    ...     budget.admit(PureEvent(0.02))
    ...     admitted += 1
    >>> admitted
    124
    """

    def __init__(self, *, epsilon: float, delta: float, failures: float = 0.0) -> None:
        if not 0 < epsilon < math.inf:
            raise InputError(f"epsilon is finite and above 0; got {epsilon}")
        if not 0 < delta < 1:
            raise InputError(f"a filter needs a delta in (0, 1); got {delta}")
        if not 0 <= failures < delta:
            raise InputError(f"failures are at least 0 and less than delta, {delta}; got {failures}")
        self._epsilon, self._delta, self._failures = epsilon, delta, failures
        self._slack = (delta - failures) * (1 - 1e-12)
        main = _main_order(epsilon, self._slack)
        orders = np.append(_ORDERS, main)
        weights = np.append(np.full(len(_ORDERS), (1 - _MAIN_SHARE) / len(_ORDERS)), _MAIN_SHARE)
        self._log_weights = np.log(weights) - _log_shape(orders)
        self._spent = _Spent(orders)

    def __repr__(self) -> str:
        return f"PrivacyFilter(epsilon={self._epsilon}, delta={self._delta}, events={self.events})"

    @property
    def events(self) -> int:
        """Number of events admitted so far."""
        return self._spent.events

    def affords(self, event: PrivacyEvent) -> bool:
        """Return True if an event would be admitted; nothing is spent.

        Parameters
        ----------
        event : PrivacyEvent
            The next event.
        """
        return self._holds(self._spent.with_event(event))

    def admit(self, event: PrivacyEvent) -> None:
        """Charge the budget for an event, before the event happens.

        Parameters
        ----------
        event : PrivacyEvent
            The next event.

        Raises
        ------
        BudgetError
            If the event would exceed the budget. Nothing was spent, and the event must not happen. A cheaper event may
            still be affordable.
        """
        after = self._spent.with_event(event)
        if not self._holds(after):
            raise BudgetError(
                f"all events stay within epsilon {self._epsilon} and delta {self._delta}; after {self.events} events "
                f"{event} would exceed that; nothing was spent; a cheaper event may still be affordable"
            )
        self._spent = after

    @np.errstate(over="ignore")
    def _holds(self, spent: _Spent) -> bool:
        if spent.failure > self._failures:
            return False
        if spent.pure <= Fraction(repr(float(self._epsilon))):
            return True
        exponents = (spent.orders - 1) * (self._epsilon - spent.renyi)
        return bool(special.logsumexp(exponents + self._log_weights) >= -math.log(self._slack))


class PrivacyOdometer:
    """A running bound of the privacy cost of releases that are chosen one after another; it can be read at any time.

    With probability at least ``1 - delta`` over all outcomes the privacy loss is never above the reading. Each event
    may depend on all earlier outcomes and readings. If you stop, for whatever reason, at a reading of at most some
    epsilon that was fixed beforehand, all outcomes are (epsilon, delta)-differentially private.

    Parameters
    ----------
    delta : float
        Probability that the loss may exceed the reading, in (0, 1).
    failures
        As for `PrivacyFilter`, with the same errors.

    Notes
    -----
    The mixture of `PrivacyFilter`, here with equal weights on orders from 1.05 to 2001, is a supermartingale that
    starts at 1. By Ville's inequality it ever exceeds ``1/delta`` with probability at most delta. The reading is the
    loss at which it would reach ``1/delta``, or the sum of the pure epsilons if that is smaller. Compared with a filter
    it adds the log of the number of orders, 3.7, to ``ln(1/delta)``.

    References
    ----------
    .. [1] Rogers, Roth, Ullman and Vadhan (2016), "Privacy odometers and filters: pay-as-you-go composition".
    .. [2] Whitehouse, Ramdas, Rogers and Wu (2023), "Fully-adaptive composition in differential privacy", Theorem 4.

    Examples
    --------
    >>> from reusable_holdout.mechanisms.accounting import PureEvent
    >>> odometer = PrivacyOdometer(delta=1e-6)
    >>> readings = []
    >>> for _ in range(200):
    ...     odometer.add(PureEvent(0.02))
    ...     readings.append(round(odometer.epsilon, 2))
    >>> readings[9], readings[99], readings[199]
    (0.2, 1.15, 1.66)
    """

    def __init__(self, *, delta: float, failures: float = 0.0) -> None:
        if not 0 < delta < 1:
            raise InputError(f"an odometer needs a delta in (0, 1); got {delta}")
        if not 0 <= failures < delta:
            raise InputError(f"failures are at least 0 and less than delta, {delta}; got {failures}")
        self._delta, self._failures = delta, failures
        self._slack = (delta - failures) * (1 - 1e-12)
        self._spent = _Spent(_ORDERS)

    def __repr__(self) -> str:
        return f"PrivacyOdometer(delta={self._delta}, events={self.events}, epsilon={self.epsilon})"

    @property
    def events(self) -> int:
        """Number of events so far."""
        return self._spent.events

    @property
    @np.errstate(over="ignore")
    def epsilon(self) -> float:
        """The current reading, a bound of the privacy loss; it never decreases."""
        target = -math.log(self._slack) + math.log(len(_ORDERS))
        high = float(np.min(self._spent.renyi + target / (_ORDERS - 1)))
        if not math.isfinite(high):
            return float_of(self._spent.pure)

        def exceeded(reading: float) -> bool:
            return bool(special.logsumexp((_ORDERS - 1) * (reading - self._spent.renyi)) >= target)

        reading = smallest_between(exceeded, 0.0, high)
        return min(reading * _ROUND_UP, float_of(self._spent.pure))

    def add(self, event: PrivacyEvent) -> None:
        """Add the next event.

        Parameters
        ----------
        event : PrivacyEvent
            An event whose `failure` is 0, or at most what is left of `failures`.

        Raises
        ------
        BudgetError
            If the event's `failure` is more than is left of `failures`. Nothing was added, and the event must not
            happen.
        """
        after = self._spent.with_event(event)
        if after.failure > self._failures:
            raise BudgetError(
                f"deltas of events add up to at most {self._failures}; {self._spent.failure} is spent, and {event} "
                f"would add {event.failure()}; nothing was noted"
            )
        self._spent = after


def _log_shape(orders: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the log of ``c_a``, as defined in the notes of `PrivacyFilter`, for each order ``a``."""
    return (orders - 1) * np.log1p(-1 / orders) - np.log(orders)


def _main_order(epsilon: float, delta: float) -> float:
    """Return the order at which concentrated events with the largest total rho are affordable."""
    orders = 1 + np.geomspace(1e-3, 1e6, 4000)
    needed = (-math.log(delta) + _log_shape(orders) - math.log(_MAIN_SHARE)) / (orders - 1)
    return float(orders[np.argmax((epsilon - needed) / orders)])
