"""Guess and check: the analyst's guess, within the tolerance that she names for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from reusable_holdout.errors import InputError
from reusable_holdout.guard.kinds.check import Check
from reusable_holdout.guard.kinds.stated import StatedWithTolerance
from reusable_holdout.plan import round_up

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reusable_holdout.guard.kinds.kind import State

__all__ = ["GuessAndCheck"]


class GuessAndCheck(StatedWithTolerance, Check):
    """Compare with the analyst's guess, within the tolerance she names for it.

    References
    ----------
    .. [1] Rogers, Roth, Smith, Srebro, Thakkar and Woodworth (2020), "Guaranteed validity for empirical approaches to
       adaptive data analysis", Algorithm 1.
    """

    name: ClassVar[str] = "guess-and-check"

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
            if self._exact(prior, state, tolerance) < least:
                wider = self._least(prior, state, tolerance)
                raise InputError(
                    f"a tolerance must be at least {wider:g} at this prior after {state.charges} charges; got "
                    f"{tolerance:g}; nothing was asked and nothing was charged; widen it"
                )

    def _least(self, prior: float, state: State, refused: float) -> float:
        """Tolerance that can be kept, and hardly larger than the least one."""
        least, kept = self.certificate.least_threshold, 2.0 * self.certificate.span
        while kept - refused > 1e-4 * kept:
            middle = (refused + kept) / 2.0
            if self._exact(prior, state, middle) < least:
                refused = middle
            else:
                kept = middle
        return round_up(kept)

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
