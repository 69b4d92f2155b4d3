"""Final: the certified end of a project. The holdout's own value, once, and nothing afterwards.

Its interval is the plan's, or the set that the rows' evidence leaves.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar, NamedTuple, Self, cast

from reusable_holdout.certainty import Certificate, Interval
from reusable_holdout.guard.kinds import FAILED, FINAL, HaltReason, Kind, Outcome, State, Terms
from reusable_holdout.guard.kinds.samples import Sample
from reusable_holdout.metrics import GRID
from reusable_holdout.noise import DiscreteLaplace, KeyedNoise

Found = Sample | int

__all__ = ["EvidenceFinal", "Final"]


_VALUE = "value "


class Final(Kind):
    """Tell the holdout's value as it is, with the narrowest interval: nothing is asked of these rows afterwards.

    With the plan's confidence, the intervals of a final and of all answers before it hold together. A final has a share
    of the failure probability of its own, and no place to pay for: given the places of the charges and what was told,
    the analyst's strategy itself fixes when it is asked. What it tells costs nobody anything. The earlier the last
    charge was, the less the places cost.

    It has no noise, and the plan's epsilon excludes it, unless the plan names `final_noise`: then each value carries
    Laplace noise of its own, on the integer grid, and the interval its reach.
    """

    name: ClassVar[str] = FINAL
    ends: ClassVar[bool] = True

    def __init__(self, certificate: Certificate, noise: KeyedNoise) -> None:
        super().__init__(certificate)
        self._law = DiscreteLaplace(Fraction(certificate.final_noise) / Fraction(certificate.span) * GRID)
        self._noise = noise

    def halt_reason(self, state: State) -> HaltReason | None:
        """A final is the one thing that is answered after a halt, and once."""
        return "final" if state.closed else None

    def length(self, state: State, answers: int = 1) -> float:
        """Description length of a final of so many answers."""
        return self.certificate.final_length(
            charges=state.charges, nats=state.nats, answers=answers, last_charge=state.last_charge
        )

    def takes(self, told: str) -> int:
        """None."""
        return 0

    def outcome(self, told: str, terms: Terms) -> Outcome:
        """Outcome by its name: "failed", or the value and all that its interval rests on."""
        if told == FAILED:
            return Outcome(FAILED, self.worst, False, 0.0)
        try:
            told_again, value = self._read(told)
        except ValueError:
            raise self.unknown(told) from None
        return Outcome(told_again, value, False, 0.0)

    def interval(self, outcome: Outcome, terms: Terms, length: float) -> Interval:
        """Interval of the population value, after a value was told."""
        return self.all_values if outcome.told == FAILED else self._interval(outcome, terms, length)

    def _read(self, told: str) -> tuple[str, float]:
        """An outcome's name, and its value, which is exact; ValueError if there is no such outcome."""
        value = float(told.removeprefix(_VALUE))
        if not told.startswith(_VALUE) or not self._is_value(value):
            raise ValueError
        return f"{_VALUE}{value!r}", value

    def _is_value(self, value: float) -> bool:
        return self.certificate.lower <= value <= self.certificate.upper

    def _interval(self, outcome: Outcome, terms: Terms, length: float) -> Interval:
        reach = terms.threshold + self.certificate.grid_slack
        return self.certificate.final_interval(outcome.value, reach=reach, length=length)

    def terms(self, outcome: Outcome, answers: int = 1) -> Terms:
        """A final is compared with nothing: its prior is its value, its unit how far the noise reaches."""
        return Terms(outcome.value, self.certificate.final_reach(answers))

    # ---- rule

    def decide(
        self, measured: Found | None, question: bytes, *, length: float = 0.0, answers: int = 1
    ) -> Outcome:
        """Tell what was measured, at a description length; None if the model or metric failed on the holdout."""
        told = FAILED if measured is None else self._told(measured, question, length, answers)
        return self.outcome(told, Terms(0.0, 0.0))

    def _told(self, measured: Found, question: bytes, length: float, answers: int) -> str:
        """Name of the outcome: here of a score on the grid."""
        score = cast("int", measured)
        noisy = min(max(score + self._noise.draw(self._law, label="final", question=question), 0), GRID)
        return f"{_VALUE}{self._value(noisy)!r}"

    def _value(self, score: float) -> float:
        """Score on the grid, in the metric's unit."""
        certificate = self.certificate
        return certificate.tidy(certificate.lower + score / GRID * certificate.span)


class _Told(NamedTuple):
    """An outcome in parts."""

    value: float
    low: float
    high: float

    @classmethod
    def parse(cls, told: str) -> Self:
        word, value, within, low, high = told.split(" ")
        if (word, within) != ("value", "within"):
            raise ValueError
        return cls(float(value), float(low), float(high))

    def text(self) -> str:
        return f"value {self.value!r} within {self.low!r} {self.high!r}"


class EvidenceFinal(Final):
    """Tell the holdout's value, and the interval that its rows leave: as narrow as they spread little.

    The interval depends on the rows in any way, and is told with the value: a final may show it, for nothing is asked
    afterwards that it could help. Both ends are rounded outwards.
    """

    by_sample: ClassVar[bool] = True

    def _read(self, told: str) -> tuple[str, float]:
        """The value and its interval."""
        parts, certificate = _Told.parse(told), self.certificate
        if not certificate.lower <= parts.low <= parts.value <= parts.high <= certificate.upper:
            raise ValueError
        return parts.text(), parts.value

    def _interval(self, outcome: Outcome, terms: Terms, length: float) -> Interval:
        """The interval that was told."""
        parts = _Told.parse(outcome.told)
        return Interval(parts.low, parts.high)

    def _told(self, measured: Found, question: bytes, length: float, answers: int) -> str:
        """The value and what its rows leave."""
        sample, certificate = cast("Sample", measured), self.certificate
        low, high = map(float, certificate.left_by(sample.ends(certificate.final_set(length))))
        value = self._value(sample.score)
        return _Told(value, min(low, value), max(high, value)).text()
