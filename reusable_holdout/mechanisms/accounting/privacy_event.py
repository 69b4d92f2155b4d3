"""The base of all private releases: each says what it costs, by the theories that know it."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from reusable_holdout.mechanisms.accounting.losses import pure_profile, pure_renyi

__all__ = ["PrivacyEvent", "has_profile"]


def has_profile(event: PrivacyEvent) -> bool:
    """Return True if its delta is known at every epsilon, and so at any."""
    return event.delta(np.array([math.e])) is not None


class PrivacyEvent:
    """One private release, or an interaction that counts as one.

    A theory that knows nothing of it says infinity, or None; an accountant takes the theories that know all events.
    Events are values: equal ones are the same event, happened again.
    """

    __slots__ = ()

    def parts(self) -> tuple[tuple[PrivacyEvent, int], ...]:
        """Return its parts, each with its count."""
        return ((self, 1),)

    def failure(self) -> float:
        """Chance that the release is not what the other costs say; their epsilon is that of the rest."""
        return 0.0

    def pure(self) -> float:
        """Epsilon with no delta but `failure`; infinite if there is none."""
        return math.inf

    def renyi(self, orders: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Bound of the Renyi divergence at each order above 1, either way round; shape of `orders`."""
        return pure_renyi(self.pure(), orders)

    def delta(self, epsilons: npt.NDArray[np.float64]) -> npt.NDArray[np.float64] | None:
        """Bound of delta at each epsilon of at least 0, `failure` included; None where only Renyi is known."""
        known = pure_profile(self.pure(), epsilons)
        return self.failure() + (1 - self.failure()) * known

    def squared_shift(self) -> float | None:
        """Squared shift of a normal law with the same privacy profile, in its variance; None if it has another."""
        return None

    def repeated_epsilon(self, count: int, delta: float) -> tuple[float, str] | None:
        """Epsilon of so many of the same by the formula for them, and its name; None if there is none."""
        return None

    def repeated_deltas(
        self, count: int, epsilons: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64] | None:
        """Deltas of so many of the same by the formula for them; None if there is none."""
        return None
