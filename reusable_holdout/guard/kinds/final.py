"""Final: the certified end of a project. The holdout's own value, once, and nothing afterwards.

Its interval is the plan's, or the set that the rows' evidence leaves; with an exam, together with that of the rows that
were kept from every question before.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self, cast

from reusable_holdout.guard.kinds import APART, FAILED, FINAL, HaltReason, Kind, Outcome, State, Terms
from reusable_holdout.guard.kinds.samples import Measured, MeasuredBoth
from reusable_holdout.mechanisms import DiscreteLaplace
from reusable_holdout.queries import GRID
from reusable_holdout.validity import Interval

if TYPE_CHECKING:
    from reusable_holdout.guard.kinds.samples import Sample
    from reusable_holdout.mechanisms import KeyedNoise
    from reusable_holdout.validity import Certificate

    Found = MeasuredBoth | Sample | int

__all__ = ["EvidenceExam", "EvidenceFinal", "ExamFinal", "Final"]


_VALUE = "value "
_NONE = "none"


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

    def _read(self, told: str) -> tuple[str, float]:
        """The value and its interval."""
        parts, certificate = _Told.parse(told), self.certificate
        ordered = certificate.lower <= parts.low <= parts.value <= parts.high <= certificate.upper
        if not ordered or (parts.apart and not certificate.exam_rows):
            raise ValueError
        return parts.text(), parts.value

    def _interval(self, outcome: Outcome, terms: Terms, length: float) -> Interval:
        """The interval that was told."""
        parts = _Told.parse(outcome.told)
        return Interval(parts.low, parts.high)

    def _told(self, measured: Found, question: bytes, length: float, answers: int) -> str:
        """The value and what its rows leave."""
        sample, certificate = cast("Sample", measured), self.certificate
        return self._named(sample.score, certificate.left_by(sample.ends(certificate.final_set(length))))

    def _named(self, score: int, left: Interval, *, apart: bool = False) -> str:
        certificate = self.certificate
        low, high = float(left.low), float(left.high)
        value = self._value(score)
        if certificate.exam_rows:
            value = min(max(value, low), high)
        return _Told(value, min(low, value), max(high, value), apart).text()


class _ToldBoth(NamedTuple):
    """The same with what both scores' intervals rest on."""

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

    def _read(self, told: str) -> tuple[str, float]:
        """The value, and what both intervals rest on."""
        parts = _ToldBoth.parse(told)
        values = [parts.value, parts.every.value, *([] if parts.exam is None else [parts.exam.value])]
        if not all(map(self._is_value, values)):
            raise ValueError
        return parts.text(), parts.value

    def _interval(self, outcome: Outcome, terms: Terms, length: float) -> Interval:
        """Both intervals' intersection, or all that lies between them if they do not meet."""
        parts = _ToldBoth.parse(outcome.told)
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
        return _both(one, exam.interval(certificate, certificate.exam_length(answers)))

    # ---- rule

    def _told(self, measured: Found, question: bytes, length: float, answers: int) -> str:
        """Both scores, and what lies between."""
        scores = cast("MeasuredBoth", measured)
        every = self._in_unit(scores.every)
        exam = None if scores.exam is None else self._in_unit(scores.exam)
        interval, apart = self._together(every, exam, length, answers)
        return _ToldBoth(_inside(every.value, interval), answers, every, exam, apart).text()

    def _in_unit(self, measured: Measured | Sample) -> Measured:
        score = cast("Measured", measured)
        return score._replace(value=self._value(score.value))


class EvidenceExam(EvidenceFinal):
    """Final with an exam: what all rows leave and what the exam's leave, together; see :class:`ExamFinal`."""

    def _told(self, measured: Found, question: bytes, length: float, answers: int) -> str:
        """The value of all rows, moved into the interval."""
        certificate, both = self.certificate, cast("MeasuredBoth", measured)
        every, exam = cast("Sample", both.every), cast("Sample | None", both.exam)
        all_rows = certificate.of_rows(certificate.bound.rows + certificate.exam_rows)
        one = certificate.left_by(every.ends(all_rows.final_set(length)))
        if exam is None:
            return self._named(every.score, one)
        kept = certificate.of_rows(certificate.exam_rows)
        two = certificate.left_by(exam.ends(kept.final_set(certificate.exam_length(answers))))
        interval, apart = _both(one, two)
        return self._named(every.score, interval, apart=apart)


def _both(one: Interval, two: Interval) -> tuple[Interval, bool]:
    """What two intervals leave together; or all that lies between their ends, and that they do not meet."""
    low, high = max(one.low, two.low), min(one.high, two.high)
    if low <= high:
        return Interval(low, high), False
    return Interval(min(one.low, two.low), max(one.high, two.high)), True


def _inside(value: float, interval: Interval) -> float:
    return float(min(max(value, interval.low), interval.high))
