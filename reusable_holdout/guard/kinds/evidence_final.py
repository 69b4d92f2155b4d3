"""Finals whose interval is the set that the rows' evidence leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self, cast

from reusable_holdout.guard.kinds.final import Final
from reusable_holdout.guard.kinds.kind import APART, FAILED, Outcome, Terms
from reusable_holdout.queries import GRID
from reusable_holdout.validity import Interval

if TYPE_CHECKING:
    from reusable_holdout.guard.kinds.samples import MeasuredBoth, Sample

__all__ = ["EvidenceExam", "EvidenceFinal"]


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
