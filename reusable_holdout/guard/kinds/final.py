"""Final: the certified end of a project. The holdout's own value, once, and nothing afterwards.

Its interval is the plan's, or the set that the rows' evidence leaves.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self, cast

from reusable_holdout.guard.kinds.kind import APART, FAILED, FINAL, HaltReason, Kind, Outcome, State, Terms
from reusable_holdout.mechanisms import DiscreteLaplace
from reusable_holdout.queries import GRID
from reusable_holdout.validity import Interval

if TYPE_CHECKING:
    from reusable_holdout.guard.kinds.samples import MeasuredBoth, Sample
    from reusable_holdout.mechanisms import KeyedNoise
    from reusable_holdout.validity import Certificate

__all__ = ["EvidenceExam", "EvidenceFinal", "Final"]


_VALUE = "value "


class Final(Kind):
    """Tell the holdout's value as it is, with the narrowest interval: nothing is asked of these rows afterwards.

    With the plan's confidence, the intervals of a final and of all answers before it hold together.

    Notes
    -----
    A final has a share of the failure probability of its own, and no place to pay for: given the places of the charges
    and what was told, the analyst's strategy itself fixes when it is asked. What it tells costs nobody anything. The
    earlier the last charge was, the less the places cost.

    It has no noise, and the plan's epsilon excludes it, unless the plan names `final_noise`: then each value carries
    Laplace noise of its own, on the integer grid, and the interval its reach.

    Parameters
    ----------
    certificate : Certificate
        Of the plan.
    noise : KeyedNoise
        Source of its noise, if it has any.
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
        """Outcome by its name: "failed", or "value" and the number, which is exact."""
        certificate = self.certificate
        if told == FAILED:
            return Outcome(FAILED, self.worst, False, 0.0)
        try:
            value = float(told.removeprefix(_VALUE))
        except ValueError:
            value = certificate.upper + 1.0
        if not told.startswith(_VALUE) or not certificate.lower <= value <= certificate.upper:
            raise self.unknown(told)
        return Outcome(f"{_VALUE}{value!r}", value, False, 0.0)

    def interval(self, outcome: Outcome, terms: Terms, length: float) -> Interval:
        """Interval around the value."""
        certificate = self.certificate
        if outcome.told == FAILED:
            return self.all_values
        reach = terms.threshold + certificate.grid_slack
        return certificate.final_interval(outcome.value, reach=reach, length=length)

    def terms(self, outcome: Outcome, answers: int = 1) -> Terms:
        """A final is compared with nothing: its prior is its value, its unit how far the noise reaches."""
        return Terms(outcome.value, self.certificate.final_reach(answers))

    # ---- rule

    def decide(
        self,
        measured: MeasuredBoth | Sample | int | None,
        question: bytes,
        *,
        length: float = 0.0,
        answers: int = 1,
    ) -> Outcome:
        """Tell what was measured, at a description length; None if the model or metric failed on the holdout."""
        told = FAILED if measured is None else self._told(measured, question, length, answers)
        return self.outcome(told, Terms(0.0, 0.0))

    def _told(
        self, measured: MeasuredBoth | Sample | int, question: bytes, length: float, answers: int
    ) -> str:
        """Name of the outcome: here of a score on the grid."""
        certificate, score = self.certificate, cast("int", measured)
        noisy = min(max(score + self._noise.draw(self._law, label="final", question=question), 0), GRID)
        value = certificate.tidy(certificate.lower + noisy / GRID * certificate.span)
        return f"{_VALUE}{value!r}"


class _Told(NamedTuple):
    """An outcome in parts."""

    value: float
    low: float
    high: float
    apart: bool = False

    @classmethod
    def parse(cls, told: str) -> Self:
        word, value, within, low, high = told.removesuffix(APART).split(" ")
        if (word, within) != ("value", "within"):
            raise ValueError
        return cls(float(value), float(low), float(high), told.endswith(APART))

    def text(self) -> str:
        return f"value {self.value!r} within {self.low!r} {self.high!r}{APART if self.apart else ''}"


class EvidenceFinal(Final):
    """Tell the holdout's value, and the interval that its rows leave: as narrow as they spread little.

    The interval depends on the rows in any way, and is told with the value: a final may show it, for nothing is asked
    afterwards that it could help. Both ends are rounded outwards.
    """

    by_sample: ClassVar[bool] = True

    def outcome(self, told: str, terms: Terms) -> Outcome:
        """Outcome by its name: "failed", or the value and its interval."""
        if told == FAILED:
            return super().outcome(told, terms)
        certificate = self.certificate
        try:
            parts = _Told.parse(told)
        except ValueError:
            raise self.unknown(told) from None
        ordered = certificate.lower <= parts.low <= parts.value <= parts.high <= certificate.upper
        if not ordered or (parts.apart and not certificate.exam_rows):
            raise self.unknown(told)
        return Outcome(parts.text(), parts.value, False, 0.0)

    def interval(self, outcome: Outcome, terms: Terms, length: float) -> Interval:
        """The interval that was told."""
        if outcome.told == FAILED:
            return super().interval(outcome, terms, length)
        parts = _Told.parse(outcome.told)
        return Interval(parts.low, parts.high)

    def _told(
        self, measured: MeasuredBoth | Sample | int, question: bytes, length: float, answers: int
    ) -> str:
        """The value and what its rows leave."""
        sample = cast("Sample", measured)
        return self._named(
            sample.score, self.certificate.left_by(sample.ends(self.certificate.final_set(length)))
        )

    def _named(self, score: int, left: Interval, *, apart: bool = False) -> str:
        certificate = self.certificate
        value = certificate.tidy(certificate.lower + score / GRID * certificate.span)
        low, high = float(left.low), float(left.high)
        if certificate.exam_rows:
            value = min(max(value, low), high)
        return _Told(value, min(low, value), max(high, value), apart).text()


class EvidenceExam(EvidenceFinal):
    """Final with an exam: what all rows leave and what the exam's leave, together; see :class:`ExamFinal`."""

    def _told(
        self, measured: MeasuredBoth | Sample | int, question: bytes, length: float, answers: int
    ) -> str:
        """The value of all rows, moved into the interval."""
        certificate, both = self.certificate, cast("MeasuredBoth", measured)
        every, exam = cast("Sample", both.every), cast("Sample | None", both.exam)
        all_rows = certificate.of_rows(certificate.bound.rows + certificate.exam_rows)
        one = certificate.left_by(every.ends(all_rows.final_set(length)))
        if exam is None:
            return self._named(every.score, one)
        kept = certificate.of_rows(certificate.exam_rows)
        two = certificate.left_by(exam.ends(kept.final_set(certificate.exam_length(answers))))
        low, high = max(one.low, two.low), min(one.high, two.high)
        if low <= high:
            return self._named(every.score, Interval(low, high))
        return self._named(every.score, Interval(min(one.low, two.low), max(one.high, two.high)), apart=True)
