"""The guard's policies: what a question is compared with, and what is told of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from reusable_holdout.errors import InputError
from reusable_holdout.holdout.thresholdout import Asked, Thresholdout
from reusable_holdout.validity import certificate_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from reusable_holdout.holdout.thresholdout import State
    from reusable_holdout.mechanisms import KeyedNoise
    from reusable_holdout.validity import Certificate, Policy

__all__ = ["POLICIES", "GuessAndCheck", "Ladder", "make_policy"]

_TOLERANCE_GRID = 2**28  # tolerances that differ by less are the same question


class Ladder(Thresholdout):
    """Compare with the best score so far, and tell improvements of at least a step.

    Notes
    -----
    The last released value is the best: a submission that is no new best is answered with it.

    References
    ----------
    .. [1] Blum and Hardt (2015), "The Ladder: a reliable leaderboard for machine learning competitions", Algorithm 1.
    """

    def asked(self, prior: object, tolerance: object, metric: str) -> Asked:
        """Nothing is stated: the same predictions are the same question, whatever is best by now."""
        _refuse_prior(prior)
        if tolerance is not None:
            super().asked(prior, tolerance, metric)
        return Asked(math.nan, None, 0)

    def asked_many(
        self, priors: ArrayLike | None, tolerances: ArrayLike | None, count: int, metric: str
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | None, list[int]]:
        """Nothing is stated for any of them."""
        _refuse_prior(priors)
        if tolerances is not None:
            super().asked_many(priors, tolerances, count, metric)
        return np.full(count, math.nan), None, [0] * count

    def prior(self, stated: float, state: State) -> float:
        """Best score so far."""
        return self.certificate.start if state.value is None else state.value

    def priors(self, stated: NDArray[np.float64], state: State) -> NDArray[np.float64]:
        """Best score so far, for each."""
        return np.full(len(stated), self.prior(0.0, state))


class GuessAndCheck(Thresholdout):
    """Compare with the analyst's guess, within the tolerance she names for it.

    References
    ----------
    .. [1] Rogers, Roth, Smith, Srebro, Thakkar and Woodworth (2020), "Guaranteed validity for empirical approaches to
       adaptive data analysis", Algorithm 1.
    """

    def asked(self, prior: object, tolerance: object, metric: str) -> Asked:
        """Check prior and tolerance; another tolerance is another question."""
        stated = super().asked(prior, None, metric)
        if tolerance is None:
            return stated
        (limit,) = self._checked(np.asarray(tolerance).reshape(-1)[:1], 1).tolist()
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
        if limits.shape != (count,) or not ((limits > 0) & (limits <= span)).all():
            raise InputError(
                f"tolerances must be {count} numbers in (0, {span:g}], one for each question; got {tolerances!r}; "
                "nothing was asked and nothing was charged"
            )
        return limits

    def threshold(self, prior: float, state: State, tolerance: float | None) -> float:
        """Threshold that keeps this tolerance.

        Raises
        ------
        InputError
            If the tolerance cannot be kept now; nothing is asked.
        """
        if tolerance is None:
            return super().threshold(prior, state, tolerance)
        certificate = self.certificate
        length = certificate.last_length(charges=state.charges, nats=state.nats)
        threshold = float(certificate.threshold_of_length(prior, length, tolerance=tolerance, least=-np.inf))
        least = certificate.least_threshold
        if threshold < least:
            low, high = certificate.agreed(prior, least, length)
            raise InputError(
                f"a tolerance must be at least {max(prior - low, high - prior):.4g} at this prior after "
                f"{state.charges} charges; got {tolerance:g}; nothing was asked and nothing was charged; widen it"
            )
        return threshold

    def thresholds(
        self, priors: NDArray[np.float64], state: State, tolerances: NDArray[np.float64] | None
    ) -> NDArray[np.float64]:
        """Thresholds that keep these tolerances."""
        if tolerances is None:
            return super().thresholds(priors, state, tolerances)
        pairs = zip(priors.tolist(), tolerances.tolist(), strict=True)
        return np.array([self.threshold(prior, state, tolerance) for prior, tolerance in pairs])


def _refuse_prior(prior: object) -> None:
    if prior is not None:
        raise InputError(
            "a ladder compares with the best score so far, and takes no prior; got one; leave it out; nothing was asked"
        )


POLICIES: dict[Policy, type[Thresholdout]] = {
    "thresholdout": Thresholdout,
    "ladder": Ladder,
    "guess-and-check": GuessAndCheck,
    "gate": Thresholdout,
}


def make_policy(
    name: Policy, certificate: Certificate, noise: KeyedNoise, *, paired: bool = False
) -> Thresholdout:
    """Policy of a name, on the certificate of a plan; `paired` if it compares two models."""
    return POLICIES[name](certificate_of(name, certificate), noise, paired=paired)
