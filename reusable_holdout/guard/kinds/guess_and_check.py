"""Guess and check: the analyst's guess, within the tolerance that she names for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from reusable_holdout.errors import InputError
from reusable_holdout.guard.kinds.check import Asked, Check
from reusable_holdout.plan import round_up

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from reusable_holdout.guard.kinds.kind import State

__all__ = ["GuessAndCheck"]

_TOLERANCE_GRID = 2**28  # tolerances that differ by less are the same question


class GuessAndCheck(Check):
    """Compare with the analyst's guess, within the tolerance she names for it.

    References
    ----------
    .. [1] Rogers, Roth, Smith, Srebro, Thakkar and Woodworth (2020), "Guaranteed validity for empirical approaches to
       adaptive data analysis", Algorithm 1.
    """

    name: ClassVar[str] = "guess-and-check"

    def asked(self, prior: object, tolerance: object, metric: str) -> Asked:
        """Check prior and tolerance; another tolerance is another question."""
        stated = super().asked(prior, None, metric)
        if tolerance is None:
            return stated
        (limit,) = self._checked(np.array([tolerance], dtype=object), 1).tolist()
        return Asked(stated.prior, limit, self._unit(stated.unit, limit))

    def asked_many(
        self, priors: ArrayLike | None, tolerances: ArrayLike | None, count: int, metric: str
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | None, list[int]]:
        """Check priors and tolerances of a batch."""
        stated, _, units = super().asked_many(priors, None, count, metric)
        if tolerances is None:
            return stated, None, units
        limits = self._checked(tolerances, count)
        return stated, limits, [self._unit(*pair) for pair in zip(units, limits.tolist(), strict=True)]

    def _unit(self, unit: int, tolerance: float) -> int:
        return unit + (round(tolerance / self.certificate.span * _TOLERANCE_GRID) << 33)

    def _checked(self, tolerances: ArrayLike, count: int) -> NDArray[np.float64]:
        span = self.certificate.span
        try:
            limits = np.asarray(tolerances, dtype=np.float64)
        except (TypeError, ValueError):
            limits = np.zeros(0)
        if limits.shape != (count,) or not ((limits >= span / _TOLERANCE_GRID) & (limits <= span)).all():
            raise InputError(
                f"tolerances must be {count} numbers in (0, {span:g}], one for each question; got {tolerances!r}; "
                "nothing was asked and nothing was charged"
            )
        return limits

    def check_room(
        self, priors: NDArray[np.float64], tolerances: NDArray[np.float64] | None, state: State
    ) -> None:
        """Refuse tolerances that cannot be kept now, before anything is decided.

        Raises
        ------
        InputError
            Naming a tolerance that can be kept.
        """
        if tolerances is None:
            return
        least = self.certificate.least_threshold
        for prior, tolerance in zip(priors.tolist(), tolerances.tolist(), strict=True):
            wider = tolerance
            while self._exact(prior, state, wider) < least:
                wider = round_up(wider * 1.001)
            if wider != tolerance:
                raise InputError(
                    f"a tolerance must be at least {wider:g} at this prior after {state.charges} charges; got "
                    f"{tolerance:g}; nothing was asked and nothing was charged; widen it"
                )

    def threshold(self, prior: float, state: State, tolerance: float | None) -> float:
        """Threshold that keeps this tolerance, or the least there is.

        Inside a batch an earlier charge may have made the tolerance too narrow. Refusing it then would tell that there
        was a charge and take it back; so the least threshold serves, and the interval says how wide it has become.
        """
        if tolerance is None:
            return super().threshold(prior, state, tolerance)
        return max(self._exact(prior, state, tolerance), self.certificate.least_threshold)

    def thresholds(
        self, priors: NDArray[np.float64], state: State, tolerances: NDArray[np.float64] | None
    ) -> NDArray[np.float64]:
        """Thresholds that keep these tolerances."""
        if tolerances is None:
            return super().thresholds(priors, state, tolerances)
        pairs = zip(priors.tolist(), tolerances.tolist(), strict=True)
        return np.array([self.threshold(prior, state, tolerance) for prior, tolerance in pairs])

    def _exact(self, prior: float, state: State, tolerance: float) -> float:
        certificate = self.certificate
        length = self.length(state)
        return float(certificate.threshold_of_length(prior, length, tolerance=tolerance, least=-np.inf))
