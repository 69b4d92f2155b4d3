"""Final with an exam: the value of all rows, and that of those that were kept from every question before."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Self, cast

from reusable_holdout.guard.answer import APART
from reusable_holdout.guard.kinds.final import Final
from reusable_holdout.guard.kinds.kind import FAILED, Outcome, Terms
from reusable_holdout.queries import GRID
from reusable_holdout.validity import ConfidenceBound, Interval

if TYPE_CHECKING:
    from typing import Any

    from reusable_holdout.guard.kinds.samples import Sample
    from reusable_holdout.queries import BoundMetric
    from reusable_holdout.validity import Certificate

__all__ = ["ExamFinal", "Measured", "MeasuredBoth"]

_NONE = "none"


class Measured(NamedTuple):
    """What was measured on some rows, and all that its interval rests on.

    Attributes
    ----------
    value : float
        In the metric's unit; of :class:`MeasuredBoth` on the grid.
    family, rows, sum_of_squares
        As for :class:`ConfidenceBound`.
    """

    value: float
    family: Any
    rows: int
    sum_of_squares: float

    @classmethod
    def of(cls, score: int, bound: BoundMetric) -> Self:
        """Score on the grid, of a bound metric's rows."""
        return cls(score, bound.family, bound.effective_rows, bound.sum_of_squares)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what :meth:`text` wrote."""
        value, family, rows, sum_of_squares = text.split()
        return cls(float(value), family, int(rows), float(sum_of_squares))

    def text(self) -> str:
        """Numbers and the family, for the ledger."""
        return f"{self.value!r} {self.family} {self.rows} {self.sum_of_squares!r}"

    def interval(self, certificate: Certificate, length: float) -> Interval:
        """Interval of the population value."""
        bound = ConfidenceBound(self.family, rows=self.rows, sum_of_squares=self.sum_of_squares)
        own = replace(certificate, bound=bound)
        return own.final_interval(self.value, reach=certificate.grid_slack, length=length)


class MeasuredBoth(NamedTuple):
    """What a final with an exam measures; the exam is None where the metric is not defined on its rows.

    Samples, where these decide.
    """

    every: Measured | Sample
    exam: Measured | Sample | None


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
