"""Certificates with every kind of bound and mechanism, and kinds whose noise is as large as a test says."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from hypothesis import strategies as st

from reusable_holdout.certainty import Certificate, ConfidenceBound, Interval, Policy, policy_code
from reusable_holdout.noise import GuardMechanism
from reusable_holdout.ways import State
from reusable_holdout.ways.told import AGREED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reusable_holdout.noise.keyed import NoiseLaw
    from reusable_holdout.ways import Outcome, Terms
    from reusable_holdout.ways.check import Check

__all__ = ["FAMILIES", "GRID", "certificate_of", "certificates_of", "certified", "noisy", "sides", "units"]

FAMILIES = ("binomial", "bounded", "bounded-difference")
GRID = 2**32

units = st.floats(0.0, 1.0)
sides = st.floats(-1.0, 1.0)


def certificate_of(
    policy: Policy, *, rows: int = 1_000, family: str = "binomial", **changes: Any
) -> Certificate:
    """Certificate of a policy whose plan leaves room for everything."""
    standard = Certificate(
        bound=ConfidenceBound(family, rows=rows, sum_of_squares=1.0 / rows),  # type: ignore[arg-type]
        queries=300,
        charges=8,
        beta=0.05,
        noise=1e-3,
        lower=0.0,
        upper=1.0,
        tolerance=0.15,
        fixed_threshold=None,
        least_threshold=0.01,
        charge_nats=policy_code(policy, places=100.0).charge_nats,
        shares=policy_code(policy, places=100.0).shares,
    )
    changed = replace(standard, **changes)
    return replace(changed, noise=0.0) if changed.mechanism == "noiseless" else changed


def certificates_of(policy: Policy) -> st.SearchStrategy[Certificate]:
    """Certificates of a policy with all bounds, mechanisms and directions."""
    return st.builds(
        certificate_of,
        st.just(policy),
        rows=st.sampled_from((50, 1_000, 10**6)),
        family=st.sampled_from(FAMILIES),
        mechanism=st.sampled_from(get_args(GuardMechanism)),
        greater_is_better=st.booleans(),
        noise=st.sampled_from((0.0, 1e-4, 3e-3)),
        lower=st.sampled_from((0.0, -2.0)),
        upper=st.sampled_from((1.0, 3.0)),
    )


class _Noise:
    """Of each label what it says, in grid units; the threshold's is part of the comparison's."""

    def __init__(self, comparison: int, answer: int) -> None:
        self.drawn = {"query": comparison, "answer": answer, "threshold": 0}

    def draw(self, law: NoiseLaw, *, label: str, question: bytes) -> int:
        return self.drawn[label]

    def draw_many(self, law: NoiseLaw, *, label: str, questions: Sequence[bytes]) -> np.ndarray:
        return np.full(len(questions), self.drawn[label], dtype=np.int64)


def noisy(kind: type[Check], certificate: Certificate, comparison: float, answer: float) -> Check:
    """Kind whose noise is these shares of its reach, in [-1, 1]."""
    tails, scale = certificate.tails, certificate.noise / certificate.span * GRID
    noise = _Noise(
        math.trunc(comparison * tails.comparison * scale), math.trunc(answer * tails.answer * scale)
    )
    return kind(certificate, noise)  # type: ignore[arg-type]


def certified(
    kind: Check, score: float, terms: Terms, *, length: float, shares: tuple[float, float]
) -> tuple[Outcome, Interval]:
    """Decide a question with this score, and hold its interval against all that the score leaves possible.

    The confidence set around the true score, whose sides have the share of what was agreed or of what was charged, lies
    in the interval; and what is told can be read from its name alone.
    """
    certificate = kind.certificate
    unit = (score - certificate.lower) / certificate.span
    outcome = kind.decide(math.floor(unit * GRID), terms, b"question", State())
    assert kind.outcome(outcome.told, terms) == outcome
    interval = kind.interval(outcome, terms, length)
    assert certificate.lower <= interval.low <= outcome.value + 1e-9
    assert outcome.value - 1e-9 <= interval.high <= certificate.upper
    level = certificate.log_level(length, shares[0] if outcome.told == AGREED else shares[1])
    least, most = (
        bound(unit, log_level=level) for bound in (certificate.bound.lower, certificate.bound.upper)
    )
    assert interval.low <= certificate.lower + least * certificate.span + 1e-9
    assert interval.high >= certificate.lower + most * certificate.span - 1e-9
    return outcome, interval
