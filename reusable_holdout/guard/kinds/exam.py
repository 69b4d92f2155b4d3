"""Final with an exam: the value of all rows, and that of those that were kept from every question before."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, Self, cast

from reusable_holdout.guard.kinds.final import Final
from reusable_holdout.guard.kinds.kind import APART, FAILED, Outcome, Terms
from reusable_holdout.guard.kinds.samples import Measured, MeasuredBoth
from reusable_holdout.queries import GRID
from reusable_holdout.validity import Interval

if TYPE_CHECKING:
    from reusable_holdout.guard.kinds.samples import Sample

__all__ = ["ExamFinal"]

_NONE = "none"


class _Told(NamedTuple):
    """An outcome in parts."""

    value: float
    answers: int
    every: Measured
    exam: Measured | None
    apart: bool

    @classmethod
    def parse(cls, told: str) -> Self:
        said, apart = told.removesuffix(APART), told.endswith(APART)
        point, every, exam = said.split("; ")
        _, value, _, answers = point.split()
        own = exam.removeprefix("exam ")
        measured = None if own == _NONE else Measured.parse(own)
        return cls(float(value), int(answers), Measured.parse(every.removeprefix("all ")), measured, apart)

    def text(self) -> str:
        exam = _NONE if self.exam is None else self.exam.text()
        said = f"value {self.value!r} of {self.answers}; all {self.every.text()}; exam {exam}"
        return said + APART if self.apart else said


class ExamFinal(Final):
    """Final whose interval is the one of all rows and the one of the exam's rows together.

    The interval of the exam owes nothing to what was asked before: nothing was told of its rows. Each of the two has
    half of the final's share of the failure probability, and they are intersected. Should they not meet, which has
    probability below it, then the answer has both, and says that they lie apart. The value is that of all rows, moved
    into the interval if it is not inside.
    """

    def outcome(self, told: str, terms: Terms) -> Outcome:
        """Outcome by its name: "failed", or the value and all that its interval rests on."""
        if told == FAILED:
            return super().outcome(told, terms)
        certificate = self.certificate
        try:
            parts = _Told.parse(told)
        except ValueError:
            raise self.unknown(told) from None
        values = [parts.value, parts.every.value, *([] if parts.exam is None else [parts.exam.value])]
        if not all(certificate.lower <= value <= certificate.upper for value in values):
            raise self.unknown(told)
        return Outcome(parts.text(), parts.value, False, 0.0)

    def interval(self, outcome: Outcome, terms: Terms, length: float) -> Interval:
        """Both intervals' intersection, or all that lies between them if they do not meet."""
        if outcome.told == FAILED:
            return super().interval(outcome, terms, length)
        parts = _Told.parse(outcome.told)
        interval, apart = self._together(parts.every, parts.exam, length, parts.answers)
        if apart != parts.apart or not math.isclose(
            parts.value, _inside(parts.every.value, interval), rel_tol=1e-9, abs_tol=1e-9
        ):
            raise self.unknown(outcome.told)
        return interval

    def _together(
        self, every: Measured, exam: Measured | None, length: float, answers: int
    ) -> tuple[Interval, bool]:
        """Interval, and whether it is that of two that do not meet."""
        certificate = self.certificate
        one = every.interval(certificate, length)
        if exam is None:
            return one, False
        two = exam.interval(certificate, certificate.exam_length(answers))
        low, high = max(one.low, two.low), min(one.high, two.high)
        if low <= high:
            return Interval(low, high), False
        return Interval(min(one.low, two.low), max(one.high, two.high)), True

    # ---- rule

    def _told(
        self, measured: MeasuredBoth | Sample | int, question: bytes, length: float, answers: int
    ) -> str:
        """Both scores, and what lies between."""
        scores = cast("MeasuredBoth", measured)
        every = self._tidy(cast("Measured", scores.every))
        exam = None if scores.exam is None else self._tidy(cast("Measured", scores.exam))
        interval, apart = self._together(every, exam, length, answers)
        told = _Told(_inside(every.value, interval), answers, every, exam, apart)
        return told.text()

    def _tidy(self, score: Measured) -> Measured:
        certificate = self.certificate
        value = certificate.tidy(certificate.lower + score.value / GRID * certificate.span)
        return score._replace(value=value)


def _inside(value: float, interval: Interval) -> float:
    return float(min(max(value, interval.low), interval.high))
