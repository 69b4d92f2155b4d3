"""Conditional release on integers: a noisy score is published where it deviates from its prior, and else kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reusable_holdout.mechanisms.cores.guard_core import GuardCore
from reusable_holdout.mechanisms.noise.discrete_laplace import DiscreteLaplace

if TYPE_CHECKING:
    from fractions import Fraction

    from reusable_holdout.mechanisms.noise.keyed import KeyedNoise

__all__ = ["ConditionalRelease"]


class ConditionalRelease(GuardCore):
    """Finds the first score whose noisy value deviates from its prior past a threshold; that value is the answer.

    With noise of scale ``D/e`` each question is a conditional release of an e-differentially private score, so the
    whole stream costs what `target_charging` says for `charges` hits with `not_prior_q`. It halts after the last one.

    Parameters
    ----------
    scale : Fraction
        Of the noise of each score, grid units.
    noise : KeyedNoise
        Source of all noise.
    charges, spent, last_charged, direction
        As for `SparseVector`.

    Raises
    ------
    InputError
        If more is spent than can be afforded.

    Notes
    -----
    A question is charged when ``|score + noise - prior| >= threshold``. There is no hidden threshold noise, and the
    published value is the very number that was compared: the target "not released" is what target charging needs, where
    the sparse vector technique would need fresh noise.

    References
    ----------
    .. [1] Cohen and Lyu (2023), "The target-charging technique for privacy analysis across interactive computations",
       Lemma 2.4.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from reusable_holdout.mechanisms import KeyedNoise, key_from_seed
    >>> core = ConditionalRelease(scale=Fraction(40), noise=KeyedNoise(key_from_seed(0)), charges=1)
    >>> core.deviates(5000, 0, 1000, b"first"), abs(core.charge(5000, b"first") - 5000) < 1000, core.halted
    (True, True, True)
    """

    def __init__(
        self,
        *,
        scale: Fraction,
        noise: KeyedNoise,
        charges: int,
        spent: int = 0,
        last_charged: bytes = b"",
        direction: int = 0,
    ) -> None:
        super().__init__(DiscreteLaplace(scale), noise, charges, spent, last_charged, direction)

    def charge(self, value: int, question: bytes) -> int:
        """Spend one charge and release the noisy score that was compared; see `GuardCore`."""
        self._check_budget()
        self._spend(question)
        return int(value) + self._drawn(question)

    def _past(self, difference: Any, threshold: Any, noise: Any) -> Any:
        return self._deviation(difference + noise) >= threshold
