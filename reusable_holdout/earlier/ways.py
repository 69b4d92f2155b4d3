"""Ways to ask that only versions before 0.3 had, as far as verification needs them, and their rows scaled to [0, 1]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from reusable_holdout.certainty import (
    GRID_SLACK,
    Certificate,
    ConfidenceBound,
    Interval,
    Shares,
    ThresholdTable,
)
from reusable_holdout.earlier.plans import Certificates, StepCode
from reusable_holdout.errors import InputError
from reusable_holdout.ledger import Row
from reusable_holdout.metrics.bound import Unit
from reusable_holdout.noise import KeyedNoise
from reusable_holdout.rules import Distance, Floats
from reusable_holdout.rules.evidence import ByEvidence
from reusable_holdout.rules.sets import BySets
from reusable_holdout.ways import (
    AGREED,
    ALL,
    FAILED,
    NO,
    STEPS,
    VALUE,
    YES,
    Outcome,
    State,
    Terms,
    Told,
    Way,
    tidy,
)
from reusable_holdout.ways.check import Check
from reusable_holdout.ways.claim import Claims
from reusable_holdout.ways.final import Final
from reusable_holdout.ways.gate import Gate, GuardedGate
from reusable_holdout.ways.reveal import Choose, Reveal

PAIRED = frozenset({"compare", "guess-and-compare", "gate-compare", "guarded-compare"})
_NOBODYS = KeyedNoise(bytes(32))
_GATES = {"gate", "gate-compare", "guarded-gate", "guarded-compare"}
_KINDS = {
    "thresholdout": {"check", "compare"},
    "guess-and-check": {"guess-and-check", "guess-and-compare", "compare"},
    "gate": _GATES,
    "ladder": {"ladder"},
    "claims": {"claim"},
}
MAIN = {
    "thresholdout": "check",
    "guess-and-check": "guess-and-check",
    "gate": "gate",
    "ladder": "ladder",
    "parameter-free-ladder": "ladder",
    "claims": "claim",
}
"""The main way to ask of each policy, which a halt ends."""
_APART = "; apart"  # two intervals of a final with an exam that do not meet


class _Table(ThresholdTable):
    """Thresholds of a metric for which less is better: its cells divide its own unit, in mirrored order."""

    def at(self, prior: float) -> float:
        """Return the threshold at one prior."""
        return float(self.at_each(np.array([prior]))[0])

    def at_each(self, priors: Floats) -> Floats:
        """Return thresholds at many priors."""
        own = np.minimum(((1.0 - priors) * self._count).astype(np.int64), self._count - 1)
        thresholds: Floats = self._cells[self._count - 1 - own]
        return thresholds


class _Mirrored(Distance):
    """The rule by distance, for a metric for which less is better."""

    def _made_table(self, charges: int, nats: float) -> ThresholdTable:
        return _Table(self.certificate, charges=charges, nats=nats)


class Ladder(Check):
    """A comparison with the best score of a series so far; it releases only improvements of at least one step."""

    by_series = True

    def outcome(self, told: Told, terms: Terms) -> Outcome:
        """Return an outcome: "agreed", "failed" (the best stays), or a number of steps from 1."""
        if told == Told(AGREED):
            return Outcome(told, terms.prior, False, 0.0)
        code = StepCode(self._places(terms), self.certificate.theory.steps_failed)
        if told == Told(FAILED):
            return Outcome(told, terms.prior, True, code.failure_nats)
        place = told.place or 0
        if told != Told(STEPS, place) or place not in range(1, code.places + 1):
            raise self.unknown(told)
        return Outcome(told, tidy(terms.prior + terms.unit * place), True, code.nats(place))

    def interval(self, told: Told, terms: Terms, length: float) -> Interval:
        """Return the interval of a new best; for any other answer, only an upper end is known."""
        certificate = self.certificate
        if told.failed:
            return ALL
        if told.place is None:
            return Interval(0.0, self.rule.agreed(terms.prior, terms.unit, length).high)
        value = self.outcome(told, terms).value
        slack = certificate.theory.step_rounding * terms.unit
        worse = max(certificate.answer_tail, certificate.comparison_tail) + slack
        better = terms.unit + certificate.answer_tail
        share = certificate.shares.charged
        return certificate.around(value - worse, value + better, length=length, share=share)

    def calm_intervals(self, priors: Floats, units: Floats, length: float) -> Interval:
        """Return the intervals of submissions that were no new best."""
        return Interval(np.zeros(len(priors)), np.asarray(self.rule.agreed(priors, units, length).high))

    def _places(self, terms: Terms) -> int:
        return max(1, math.ceil(1.0 / terms.unit - self.certificate.theory.step_rounding))


class _NoisyFinal(Final):
    """A final whose value has noise; its unit is the largest noise that the interval allows for."""

    def __init__(
        self, certificate: Certificate, name: str, noise: float, answers: int, *, halved: bool
    ) -> None:
        super().__init__(certificate, name)
        self._noise, self._answers, self._halved = noise, answers, halved
        self.by_rows = self.by_rows and not noise  # without noise an interval was released

    def unit(self, prior: float, state: State, tolerance: float | None) -> float:
        """Return a bound on the noise that holds for all answers of a final together."""
        if not self._noise:
            return 0.0
        theory, certificate = self.certificate.theory, self.certificate
        own = math.exp(certificate.log_level(0.0, theory.final_share * theory.final_noise_share))
        return self._noise * math.log(self._answers / own)

    def length(self, state: State, answers: int = 1) -> float:
        """Return the description length; an exam had half of the final's share, if there was one."""
        return super().length(state, answers) + (math.log(2.0) if self._halved else 0.0)

    def interval(self, told: Told, terms: Terms, length: float) -> Interval:
        """Return the interval around a value with noise."""
        if told.value is None or told.ends is not None or not self._noise:
            return super().interval(told, terms, length)
        reach, share = terms.unit + GRID_SLACK, 0.5 * (1.0 - self.certificate.theory.final_noise_share)
        return self.certificate.around(told.value - reach, told.value + reach, length=length, share=share)

    def outcome(self, told: Told, terms: Terms) -> Outcome:
        """Return an outcome; with an exam, the interval was released, or follows from released numbers."""
        if self._halved and told.value is not None and told.ends is not None:
            return Outcome(told, told.value, False, 0.0)
        return super().outcome(told, terms)


def named(kind: str, policy: str, rules: Certificates, unit: Unit, finals: int, *, exam: bool) -> Way | None:
    """Return the way to ask of a kind, with a policy's certificates; None if the policy had no such way."""
    told = replace(rules.scores, shares=Shares(0.5, 0.5))
    if kind in {"reveal", "choose"}:
        asked = Reveal if kind == "reveal" else Choose
        return asked(told, kind, _NOBODYS, by_rows=rules.by_rows)
    if kind == "final":
        return _NoisyFinal(told, kind, rules.final_noise, finals, halved=exam)
    if kind not in _KINDS[policy]:
        return None
    certificate = rules.pairs if kind in PAIRED else rules.scores
    if kind == "claim":
        return Claims(certificate, kind, _NOBODYS)
    rule = _rule(certificate, unit, gate=kind in _GATES)
    if kind in _GATES:
        gate = Gate(certificate, kind, _NOBODYS, rule)
        return GuardedGate(gate, kind) if kind.startswith("guarded") else gate
    way = Ladder if kind == "ladder" else Check
    return way(certificate, kind, _NOBODYS, rule)


def _rule(certificate: Certificate, unit: Unit, *, gate: bool) -> Distance:
    if certificate.decides == "sets":
        return BySets(certificate, gate=gate)
    if certificate.decides == "evidence":
        return ByEvidence(certificate, gate=gate)
    return (Distance if unit.greater_is_better else _Mirrored)(certificate, gate=gate)


# ---- rows


def row_in_unit(row: Row, unit: Unit, way: Way, finals: int) -> Row:
    """Return a row scaled to [0, 1], its outcome in this version's words; InputError if the outcome is unknown."""
    ends = (_raw(unit, row.low), _raw(unit, row.high))
    return row._replace(
        prior=_raw(unit, row.prior),
        value=_raw(unit, row.value),
        threshold=row.threshold / unit.span,
        tolerance=row.tolerance / unit.span,
        low=min(ends),
        high=max(ends),
        told=_told(row, unit, way, finals).text(),
    )


def _raw(unit: Unit, value: float) -> float:
    return unit.unit(value)


def _told(row: Row, unit: Unit, way: Way, finals: int) -> Told:
    text = row.told
    if row.kind == "final" and text != FAILED:
        return _final(text, unit, way, finals)
    if row.kind in {"gate", "gate-compare"}:
        text = {AGREED: NO, "cell 0": YES}.get(text, text)
    told = Told.parse(text)
    if told is None:
        raise InputError(f"query {row.query}: {row.told!r} is no outcome")
    return told


def _final(text: str, unit: Unit, way: Way, finals: int) -> Told:
    """Return a final's value and interval; for one with an exam, they follow from the released numbers."""
    plain = text.removesuffix(_APART)
    if "; " in plain:
        return _exam(plain.split("; "), unit, way, finals, apart=text.endswith(_APART))
    told = Told.parse(plain)
    if told is None or told.value is None:
        raise InputError(f"{text!r} is not the outcome of a final")
    own = None
    if told.ends is not None:
        own = (min(map(unit.unit, told.ends)), max(map(unit.unit, told.ends)))
    return Told(VALUE, value=unit.unit(told.value), ends=own)


def _exam(parts: Sequence[str], unit: Unit, way: Way, finals: int, *, apart: bool) -> Told:
    """Intersect the intervals of all rows and of the exam, each at half of the final's share; their hull if apart."""
    point, every, exam = parts
    words = point.split()
    value, answers = unit.unit(float(words[1])), int(words[3])
    own = math.log(2.0 * answers / way.certificate.theory.final_share)
    low, high = _of_rows(every.removeprefix("all "), unit, way, None)
    if exam != "exam none":
        least, most = _of_rows(exam.removeprefix("exam "), unit, way, own)
        is_apart = max(low, least) > min(high, most)
        if is_apart is not apart:
            raise InputError("a final must say whether its two intervals overlap; what it says is wrong")
        low, high = (min(low, least), max(high, most)) if apart else (max(low, least), min(high, most))
    return Told(VALUE, value=value, ends=(low, high))


def _of_rows(text: str, unit: Unit, way: Way, length: float | None) -> tuple[float, float]:
    """Return the interval of a value measured on some rows; `length` is by default the final's own."""
    value, family, rows, squares = text.split()
    bound = ConfidenceBound(family, rows=int(rows), sum_of_squares=float(squares))  # type: ignore[arg-type]
    certificate: Any = replace(way.certificate, bound=bound)
    at = unit.unit(float(value))
    length = getattr(way, "own_length", 0.0) if length is None else length
    low, high = certificate.around(at - GRID_SLACK, at + GRID_SLACK, length=length, share=0.5)
    return float(low), float(high)
