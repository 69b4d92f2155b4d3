"""Finals that version 0.2.0 certified with `exam=`, as their ledgers say: they are verified, and never asked again.

Their certificate rested on a mistake. It took the exam's rows for rows of which nothing was told before the final. But
models were run on all rows of X at every question, so a model that fails where its score on the exam's rows is extreme
told that score by failing.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple, Self

from reusable_holdout.certainty import Certificate, ConfidenceBound, Interval
from reusable_holdout.guard.kinds import Outcome, State, Terms
from reusable_holdout.guard.kinds.final import EvidenceFinal, Final

__all__ = ["MISTAKE", "EvidenceExam", "ExamFinal"]

MISTAKE = (
    "it was made with exam= by version 0.2.0, and the certificate of its final rests on a mistake: models were run on "
    "the exam's rows at every question, so a model that fails could tell its score on them; do not rely on a final of "
    "it; its other answers hold"
)
"""The mistake in the certificate, for readers of such a ledger."""

_APART = "; apart"  # the two intervals do not meet: the answer is all that lies between their ends
_NONE = "none"


class _Measured(NamedTuple):
    """Measured value of some rows, with all that its interval rests on: a :class:`ConfidenceBound`."""

    value: float  # in the metric's unit
    family: Any
    rows: int
    sum_of_squares: float

    @classmethod
    def parse(cls, text: str) -> Self:
        value, family, rows, sum_of_squares = text.split()
        return cls(float(value), family, int(rows), float(sum_of_squares))

    def text(self) -> str:
        return f"{self.value!r} {self.family} {self.rows} {self.sum_of_squares!r}"

    def interval(self, certificate: Certificate, length: float) -> Interval:
        """Interval of the population value."""
        bound = ConfidenceBound(self.family, rows=self.rows, sum_of_squares=self.sum_of_squares)
        own = replace(certificate, bound=bound)
        return own.final_interval(self.value, reach=certificate.grid_slack, length=length)


class _Told(NamedTuple):
    """The value, and what the intervals of all rows and of the exam's rest on."""

    value: float
    answers: int
    every: _Measured
    exam: _Measured | None  # none where the metric was not defined on its rows
    apart: bool

    @classmethod
    def parse(cls, told: str) -> Self:
        point, every, exam = told.removesuffix(_APART).split("; ")
        _, value, _, answers = point.split()
        own = exam.removeprefix("exam ")
        measured = None if own == _NONE else _Measured.parse(own)
        every_measured = _Measured.parse(every.removeprefix("all "))
        return cls(float(value), int(answers), every_measured, measured, told.endswith(_APART))

    def text(self) -> str:
        exam = _NONE if self.exam is None else self.exam.text()
        said = f"value {self.value!r} of {self.answers}; all {self.every.text()}; exam {exam}"
        return said + _APART * self.apart


class _Halved(Final):
    """Final of half of a final's share of the failure probability; the exam's interval has the other half."""

    def length(self, state: State, answers: int = 1) -> float:
        """Description length of a final of so many answers."""
        return super().length(state, answers) + math.log(2.0)


class ExamFinal(_Halved):
    """Verify a final whose interval is that of all rows cut with that of the exam's, each at half of the final's share.

    Of two that do not meet it is all between their ends. The value is that of all rows, moved into the interval.
    """

    def _read(self, told: str) -> tuple[str, float]:
        """The value, and what both intervals rest on."""
        parts = _Told.parse(told)
        values = [parts.value, parts.every.value, *([] if parts.exam is None else [parts.exam.value])]
        if not all(map(self._is_value, values)):
            raise ValueError
        return parts.text(), parts.value

    def _interval(self, outcome: Outcome, terms: Terms, length: float) -> Interval:
        """Both intervals' intersection, or all that lies between their ends."""
        parts, certificate = _Told.parse(outcome.told), self.certificate
        low, high = parts.every.interval(certificate, length)
        apart = False
        if parts.exam is not None:
            own = math.log(2.0 * parts.answers / certificate.theory.final_share)
            least, most = parts.exam.interval(certificate, own)
            apart = bool(max(low, least) > min(high, most))
            ends = (min(low, least), max(high, most)) if apart else (max(low, least), min(high, most))
            low, high = map(float, ends)
        inside = min(max(parts.every.value, low), high)
        if apart != parts.apart or not math.isclose(parts.value, inside, rel_tol=1e-9, abs_tol=1e-9):
            raise self.unknown(outcome.told)
        return Interval(low, high)


class EvidenceExam(_Halved, EvidenceFinal):
    """Verify the same of what the rows' evidence left; the interval was told."""

    def _read(self, told: str) -> tuple[str, float]:
        """The value and its interval."""
        text, value = super()._read(told.removesuffix(_APART))
        return text + _APART * told.endswith(_APART), value

    def _interval(self, outcome: Outcome, terms: Terms, length: float) -> Interval:
        """The interval that was told."""
        said = outcome._replace(told=outcome.told.removesuffix(_APART))
        return super()._interval(said, terms, length)
