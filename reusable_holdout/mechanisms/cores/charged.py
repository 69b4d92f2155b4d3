"""What the cores that a guard runs on share: a budget of charges, and the scales of their noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reusable_holdout.errors import BudgetError, InputError

if TYPE_CHECKING:
    from fractions import Fraction

__all__ = ["Charged", "NoiseScales"]


@dataclass(frozen=True, slots=True)
class NoiseScales:
    """Scales of the three noises of a sparse vector mechanism, in grid units.

    Zero means no noise: without noise on the queries there is no privacy, without it on the threshold what
    `target_charging` says.

    Parameters
    ----------
    threshold : Fraction
        Noise of the threshold.
    query : Fraction
        Noise of each comparison.
    answer : Fraction
        Noise of a released number; 0 when the mechanism releases none.

    Examples
    --------
    >>> from fractions import Fraction
    >>> NoiseScales(threshold=Fraction(2), query=Fraction(4), answer=Fraction(0)).query
    Fraction(4, 1)
    """

    threshold: Fraction
    query: Fraction
    answer: Fraction


class Charged:
    """Counts charges, and remembers which question made the last one.

    Parameters
    ----------
    charges : int
        Charges that can be afforded in all; at least 0.
    spent : int
        Charges already made.
    last_charged : bytes
        Digest of the question that was charged last; empty if none was.

    Raises
    ------
    InputError
        If not ``0 <= spent <= charges``.
    """

    def __init__(self, *, charges: int, spent: int, last_charged: bytes) -> None:
        if not 0 <= spent <= charges:
            raise InputError(f"charges spent lie between 0 and the budget; got {spent} of {charges}")
        self._charges = charges
        self._spent = spent
        self._last_charged = last_charged

    @property
    def charges(self) -> int:
        """Charges that can be afforded in all."""
        return self._charges

    @property
    def spent(self) -> int:
        """Charges made so far."""
        return self._spent

    @property
    def last_charged(self) -> bytes:
        """Digest of the question that was charged last; empty if none was."""
        return self._last_charged

    @property
    def halted(self) -> bool:
        """Whether the budget is spent."""
        return self._spent >= self._charges

    def _check_budget(self) -> None:
        if self._spent >= self._charges:
            raise BudgetError(
                f"1 charge asked, 0 left of {self._charges}; nothing was answered and nothing was charged; "
                f"start again on fresh data"
            )

    def _spend(self, question: bytes) -> None:
        self._spent += 1
        self._last_charged = question
