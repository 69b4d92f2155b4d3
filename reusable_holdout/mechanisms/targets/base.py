"""The base class of interactions with private algorithms."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NoReturn, TypeVar

from reusable_holdout.errors import BudgetError, HandleError, InputError

Outcome = TypeVar("Outcome")


class Interaction(ABC):
    """An interaction that runs private calls one at a time, charges for target hits, and adds up the calls' deltas.

    Parameters
    ----------
    delta : float
        Privacy parameter of the whole interaction.
    calls_delta : float
        Part of `delta` that the deltas of the calls may add up to.
    targets : int
        Number of targets of each call.

    Raises
    ------
    InputError
        If `delta` or `calls_delta` is out of range.
    """

    def __init__(self, delta: float, calls_delta: float, targets: int) -> None:
        if not 0 < delta < 1:
            raise InputError(f"an interaction needs a delta in (0, 1); got {delta}")
        if not (calls_delta >= 0 and Fraction(calls_delta) * targets < Fraction(delta)):
            raise InputError(
                f"calls_delta is at least 0 and less than delta / targets, {delta / max(targets, 1)}; got {calls_delta}"
            )
        rest = float(Fraction(delta) - Fraction(calls_delta) * targets)
        self._charging_delta = math.nextafter(rest, 0.0) if calls_delta else delta
        self._calls_delta = self._delta_left = Fraction(calls_delta)
        self._running = False

    def __reduce__(self) -> NoReturn:
        raise HandleError("an interaction cannot be pickled or copied: a copy would spend its budget again")

    @property
    def delta_left(self) -> float:
        """Largest sum that the deltas of further calls may have; rounded down."""
        left = float(self._delta_left)
        return left if Fraction(left) <= self._delta_left else math.nextafter(left, 0.0)

    def _check_idle(self) -> None:
        """Refuse a call that is made inside another one."""
        if self._running:
            raise BudgetError("one call at a time; another one is running; nothing was run")

    def _spend(self, delta: float) -> None:
        """Take a call's delta from the part that is set aside for calls."""
        if not 0 <= delta < 1:
            raise InputError(f"a call's delta lies in [0, 1); got {delta}; nothing was run")
        if Fraction(delta) > self._delta_left:
            raise BudgetError(
                f"the deltas of all calls add up to at most {float(self._calls_delta)} here (calls_delta); "
                f"{self.delta_left} is left; got {delta}; nothing was run"
            )
        self._delta_left -= Fraction(delta)

    def _run(self, algorithm: Callable[[], Outcome], hits_of: Callable[[Outcome], Sequence[bool]]) -> Outcome:
        """Run a call and charge its hits; a call that fails hits all targets."""
        hits: Sequence[bool] | None = None
        self._running = True
        try:
            outcome = algorithm()
            hits = hits_of(outcome)
            return outcome
        finally:
            self._running = False
            self._charge(hits)

    @abstractmethod
    def _charge(self, hits: Sequence[bool] | None) -> None:
        """Charge a call for each target that it hit; None stands for all targets."""
