"""Certificates with every bound and mechanism, and ways to ask whose noise is as large as a test says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from reusable_holdout import Plan
from reusable_holdout.certainty import Certificate, ConfidenceBound, Interval, Shares
from reusable_holdout.errors import InputError
from reusable_holdout.noise.discrete_laplace import GeometricNoise
from reusable_holdout.rules import Distance
from reusable_holdout.ways import Outcome, State, Terms, Told, Way
from reusable_holdout.ways.check import Asked, Check
from reusable_holdout.ways.claim import Claims
from reusable_holdout.ways.gate import Gate
from reusable_holdout.ways.reveal import Choose, Reveal
from reusable_holdout.ways.table import ON_REQUEST

__all__ = [
    "ALONE",
    "FAMILIES",
    "GRID",
    "answered",
    "certificate_of",
    "certificates_of",
    "certified",
    "noisy",
    "refused",
    "sides",
    "told_of",
    "units",
]

ALONE = tuple(name for name in ON_REQUEST if name not in {"choose", "final"})
"""Ways that are asked one question at a time, about one subject, and tell what they were asked for."""

FAMILIES = ("binomial", "bounded", "bounded-difference")
GRID = 2**32

units = st.floats(0.0, 1.0)
sides = st.floats(-1.0, 1.0)


@cache
def _planned(asks: str) -> Certificate:
    """Certificate of a plan, for the prices and shares of what it is for."""
    if asks == "claims":
        return Plan(rows=100_000, queries=300, board="claims").scores
    plan = Plan(rows=100_000, queries=300, charges=8, gates=asks == "gates")
    return plan.gates(plan.scores) if asks == "gates" else plan.scores


def certificate_of(asks: str, *, rows: int = 1_000, family: str = "binomial", **changes: Any) -> Certificate:
    """Certificate of a plan for "all", "gates" or "claims", which leaves room for everything."""
    standard = replace(
        _planned(asks),
        bound=ConfidenceBound(family, rows=rows, sum_of_squares=1.0 / rows),  # type: ignore[arg-type]
        queries=300,
        charges=8,
        beta=0.05,
        noise_scale=1e-3,
        tolerance=0.15,
        least_threshold=0.01,
        reserved_nats=0.0,
        mechanism="numeric-sparse",
        sensitivity=1.0 / rows,
    )
    changed = replace(standard, **changes)
    return replace(changed, noise_scale=0.0) if changed.mechanism == "noiseless" else changed


def certificates_of(asks: str) -> st.SearchStrategy[Certificate]:
    """Certificates with all bounds, and the mechanisms that guards run on."""
    return st.builds(
        certificate_of,
        st.just(asks),
        rows=st.sampled_from((50, 1_000, 10**6)),
        family=st.sampled_from(FAMILIES),
        mechanism=st.sampled_from(("numeric-sparse", "noiseless")),
        noise_scale=st.sampled_from((0.0, 1e-4, 3e-3)),
    )


def told_of(certificate: Certificate) -> Certificate:
    """Certificate of what is told because it is asked for."""
    return replace(certificate, shares=Shares(0.5, 0.5))


class _Noise:
    """Of each label what it says, in grid units; the threshold's is part of the comparison's."""

    def __init__(self, comparison: int, answer: int) -> None:
        self.drawn = {"query": comparison, "answer": answer, "threshold": 0}

    def draw(self, law: GeometricNoise, *, label: str, question: bytes) -> int:
        return self.drawn[label]

    def draw_many(self, law: GeometricNoise, *, label: str, questions: Sequence[bytes]) -> np.ndarray:
        return np.full(len(questions), self.drawn[label], dtype=np.int64)


def noisy(
    way: type[Way], certificate: Certificate, comparison: float, answer: float, rule: Any = Distance
) -> Any:
    """Way to ask whose noise is these shares of its reach, in [-1, 1]."""
    tails, scale = certificate.tails, certificate.noise_scale * GRID
    noise: Any = _Noise(
        math.trunc(comparison * tails.comparison * scale), math.trunc(answer * tails.answer * scale)
    )
    if issubclass(way, Reveal):
        return way(certificate, "choose" if way is Choose else "reveal", noise, by_rows=False)
    if way is Claims:
        return Claims(certificate, "claim", noise)
    if way is Gate:
        return Gate(certificate, "gate", noise, rule(certificate, gate=True))
    return Check(certificate, "check", noise, rule(certificate))


def answered(
    way: Check, weighed: Any, prior: float, *, tolerance: float | None = None, state: State | None = None
) -> tuple[Terms, Outcome]:
    """Decide one question of a check or a gate, as a batch of one; of None it failed on the holdout."""
    asked = Asked(
        [b"question"],
        np.array([prior]),
        None if tolerance is None else np.array([tolerance]),
        None if weighed is None else np.atleast_1d(np.asarray(weighed, dtype=np.int64))[None],
        np.array([weighed is None]),
        np.zeros(1),
    )
    decided = way.decide(asked, state or State())
    (unit,), (outcome,) = decided
    terms = Terms(prior, float(unit))
    return terms, way.outcome(way.calm, terms) if outcome is None else outcome


def certified(
    way: Check | Reveal,
    score: float,
    prior: float,
    *,
    length: float,
    shares: tuple[float, float],
    tolerance: float | None = None,
) -> tuple[Terms, Outcome]:
    """Decide a question with this score, and hold its interval against all that the score leaves possible.

    The confidence set around the true score, whose sides have the share of what was not charged or of what was, lies in
    the interval; and what is told can be read from what a ledger writes of it.
    """
    grid = math.floor(score * GRID)
    if isinstance(way, Check):
        terms, outcome = answered(way, grid, prior, tolerance=tolerance)
        calm = outcome.told == way.calm
    else:
        (terms, outcome), calm = way.decide(grid, prior, b"question", State()), False
    assert Told.parse(outcome.told.text()) == outcome.told
    assert way.outcome(outcome.told, terms) == outcome
    interval = way.interval(outcome.told, terms, length)
    if calm and isinstance(way, Check):  # those of a large batch are found at once
        many = way.calm_intervals(np.array([prior] * 2), np.array([terms.unit] * 2), length)
        assert np.allclose(many, np.array(interval)[:, None], rtol=0.0, atol=1e-10)
    assert 0.0 <= interval.low <= outcome.value + 1e-9
    assert outcome.value - 1e-9 <= interval.high <= 1.0
    _check_holds(
        way.certificate, score, interval, way.certificate.log_level(length, shares[0 if calm else 1])
    )
    return terms, outcome


def _check_holds(certificate: Certificate, score: float, interval: Interval, level: Any) -> None:
    """Hold that the confidence set around a score lies in an interval."""
    assert interval.low <= certificate.bound.lower(score, log_level=level) + 1e-9
    assert interval.high >= certificate.bound.upper(score, log_level=level) - 1e-9


def refused(way: Way, text: str, terms: Any) -> None:
    """Hold that a way has no outcome that a ledger writes like this."""
    told = Told.parse(text)
    if told is not None:
        with pytest.raises(InputError, match="has no outcome"):
            way.outcome(told, terms)
