"""The Thresholdout policy: agree with the prior, or pay for a fresh value.

Knows scores and noise only as integers on the grid; everything else it computes is public.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from reusable_holdout.errors import InputError
from reusable_holdout.holdout.inputs import checked_prior, checked_priors
from reusable_holdout.mechanisms import Calibration, GuardCore, KeyedNoise
from reusable_holdout.queries import GRID
from reusable_holdout.validity import FAILURE_NATS, Certificate, ThresholdTable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import ArrayLike, NDArray

    from reusable_holdout.queries import BoundMetric

__all__ = ["Asked", "Decision", "Decisions", "HaltReason", "State", "Thresholdout"]

_NO_PRIOR = "a prior must be stated, the analyst's own estimate of the score; got none; pass prior="
_NO_TOLERANCE = "a question's own tolerance is for policy='guess-and-check'; leave it out; nothing was asked"

HaltReason = Literal["charges", "code", "queries"]


class State(NamedTuple):
    """What has been asked and spent: public, and all that a decision depends on besides the holdout."""

    query: int
    charges: int
    nats: float
    value: float | None = None  # the last one released


class Asked(NamedTuple):
    """What a question states besides its predictions."""

    prior: float  # not a number where the policy has its own
    tolerance: float | None
    unit: int  # what tells it from other questions about the same predictions


class Decision(NamedTuple):
    """One question, decided but not yet certified."""

    prior: float
    value: float
    charged: bool
    threshold: float
    nats: float
    failed: bool = False


class Decisions(NamedTuple):
    """A batch, decided up to a halt; each an array of shape (decided,)."""

    priors: NDArray[np.float64]
    values: NDArray[np.float64]
    charged: NDArray[np.bool_]
    thresholds: NDArray[np.float64]
    nats: NDArray[np.float64]


class Thresholdout:
    """A mechanism that finds deviations, with thresholds that follow the tolerance.

    Releases are (epsilon, delta)-differentially private as the plan states; the intervals are valid by the transcript
    code, whatever the noise.

    Parameters
    ----------
    certificate : Certificate
        Of the plan; it names the mechanism.
    noise : KeyedNoise
        Source of all noise.
    paired : bool
        Whether its questions compare two models.

    Notes
    -----
    A question is charged when its score deviates from its prior past a threshold, all with the noise that
    :class:`~reusable_holdout.mechanisms.Calibration` says, in integers, ties included.

    References
    ----------
    .. [1] Dwork, Feldman, Hardt, Pitassi, Reingold, Roth (2015), "The reusable holdout", Science 349; "Generalization
       in Adaptive Data Analysis and Holdout Reuse", Figure 1.
    """

    def __init__(self, certificate: Certificate, noise: KeyedNoise, *, paired: bool = False) -> None:
        self.certificate = certificate
        self.paired = paired
        self._calibration = Calibration(certificate.mechanism, certificate.charges)
        self._scale = Fraction(certificate.noise_scale) / Fraction(certificate.span) * GRID
        self._noise = noise
        self._mechanism = self._resumed(0)
        self.table = lru_cache(maxsize=4)(self._make_table)
        self.charges_left = lru_cache(maxsize=256)(self._count_charges_left)

    @classmethod
    def check(cls, bound: BoundMetric, ledger: str | Path | None) -> None:
        """Refuse a metric or a ledger that the policy cannot be for, before anything is made; here none."""

    # ---- what is public

    def halt_reason(self, state: State) -> HaltReason | None:
        """Which budget has run out, if any."""
        if state.charges >= self.certificate.charges:
            return "charges"
        if self.charges_left(state.charges, state.nats) == 0:
            return "code"
        return "queries" if state.query >= self.certificate.queries else None

    def grid_units(self, priors: NDArray[np.float64]) -> NDArray[np.int64]:
        """Priors on the integer grid."""
        unit = (priors - self.certificate.lower) / self.certificate.span
        return np.rint(unit * GRID).astype(np.int64)

    def grid_unit(self, prior: float) -> int:
        """One prior on the integer grid; the same number as `grid_units` gives."""
        return round((prior - self.certificate.lower) / self.certificate.span * GRID)

    def asked(self, prior: object, tolerance: object, metric: str) -> Asked:
        """Check what a question states.

        Raises
        ------
        InputError
            If a prior is missing or out of bounds, or there is a tolerance where none belongs.
        """
        if tolerance is not None:
            raise InputError(_NO_TOLERANCE)
        if prior is None:
            raise InputError(_NO_PRIOR)
        stated = checked_prior(prior, self.certificate.lower, self.certificate.upper, metric)
        return Asked(stated, None, self.grid_unit(stated))

    def asked_many(
        self, priors: ArrayLike | None, tolerances: ArrayLike | None, count: int, metric: str
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | None, list[int]]:
        """Check what the questions of a batch state: priors, tolerances, units.

        Raises
        ------
        InputError
            As for `asked`.
        """
        if tolerances is not None:
            raise InputError(_NO_TOLERANCE)
        if priors is None:
            raise InputError(_NO_PRIOR)
        certificate = self.certificate
        stated = checked_priors(priors, count, certificate.lower, certificate.upper, metric)
        return stated, None, self.grid_units(stated).tolist()

    #: Whether a question is compared with the last answer of its series.
    climbs = False

    def series_unit(self, series: object) -> int:
        """Part of a question's name that its series is.

        Raises
        ------
        InputError
            If one is named where there are none.
        """
        if series != "":
            raise InputError(
                f"a series of answers, such as one team's, belongs to a ladder; got {series!r}; leave it out; nothing "
                "was asked"
            )
        return 0

    def prior(self, stated: float, state: State) -> float:
        """Prior of a question: the analyst's own."""
        return stated

    def priors(self, stated: NDArray[np.float64], state: State) -> NDArray[np.float64]:
        """Priors of several questions in the same state."""
        return stated

    def check_room(
        self, priors: NDArray[np.float64], tolerances: NDArray[np.float64] | None, state: State
    ) -> None:
        """Refuse what cannot be kept in this state, before anything is decided; here nothing."""

    def threshold(self, prior: float, state: State, tolerance: float | None) -> float:
        """Threshold of a question."""
        return self.table(state.charges, state.nats).at(prior)

    def thresholds(
        self, priors: NDArray[np.float64], state: State, tolerances: NDArray[np.float64] | None
    ) -> NDArray[np.float64]:
        """Thresholds of several questions."""
        return self.table(state.charges, state.nats).at_each(priors)

    # ---- what is not

    def measured(self, bound: BoundMetric, prepared: NDArray[np.generic]) -> NDArray[np.int64]:
        """What decisions are made on, for each question: its score on the grid; shape (queries,).

        Raises
        ------
        ModelError
            If a metric of the user's own fails on the holdout.
        """
        return bound.score(prepared)

    def decide(
        self,
        score: int | NDArray[np.int64],
        stated: float,
        question: bytes,
        state: State,
        tolerance: float | None = None,
    ) -> Decision:
        """Decide one question, by what was measured; nothing is final until the ledger has it."""
        score, prior = int(score), self.prior(stated, state)
        threshold = self.threshold(prior, state, tolerance)
        mechanism = self._at(state)
        limit = math.floor(threshold / self.certificate.span * GRID)
        if not mechanism.deviates(score, self.grid_unit(prior), limit, question):
            return Decision(prior, prior, False, threshold, 0.0)
        return self._charge(mechanism, score, prior, question, threshold)

    def fail(self, stated: float, state: State, tolerance: float | None = None) -> Decision:
        """Decide a question that failed on the holdout: a charge, for that it did is a fact about the holdout."""
        prior = self.prior(stated, state)
        threshold = self.threshold(prior, state, tolerance)
        return Decision(
            prior, self.certificate.failed_value(prior), True, threshold, FAILURE_NATS, failed=True
        )

    def decide_many(
        self,
        scores: NDArray[np.int64],
        stated: NDArray[np.float64],
        questions: Sequence[bytes],
        state: State,
        tolerances: NDArray[np.float64] | None = None,
    ) -> Decisions:
        """Decide a batch in order, up to a halt; stretches between charges are compared at once.

        Returns
        -------
        Decisions
            One for each question, or fewer if the budget ran out on the way.
        """
        query_noise = self._at(state).query_noise(questions)
        priors, nats = stated.copy(), np.zeros(len(stated))
        values, thresholds = np.empty(len(stated)), np.empty(len(stated))
        charged = np.zeros(len(stated), dtype=np.bool_)
        start = 0
        while start < len(priors) and self.halt_reason(state) is None:
            rest = slice(start, None)
            mechanism = self._at(state)
            priors[rest] = values[rest] = self.priors(stated[rest], state)
            thresholds[rest] = self.thresholds(
                priors[rest], state, None if tolerances is None else tolerances[rest]
            )
            above = mechanism.first_deviation(
                scores[rest],
                self.grid_units(priors[rest]),
                self._threshold_units(thresholds[rest]),
                questions[rest],
                query_noise=query_noise[rest],
            )
            if above is None:
                start = len(priors)
                break
            here = start + above
            decision = self._charge(
                mechanism, int(scores[here]), float(priors[here]), questions[here], float(thresholds[here])
            )
            values[here], charged[here], nats[here] = decision.value, True, decision.nats
            state = State(state.query, state.charges + 1, state.nats + decision.nats, decision.value)
            start = here + 1
        decided = slice(start)
        return Decisions(
            priors[decided], values[decided], charged[decided], thresholds[decided], nats[decided]
        )

    def _charge(
        self, mechanism: GuardCore, score: int, prior: float, question: bytes, threshold: float
    ) -> Decision:
        certificate = self.certificate
        noisy = min(max(mechanism.charge(score, question), 0), GRID) / GRID * certificate.span
        value = certificate.rounded(certificate.lower + noisy, prior, threshold)
        nats = certificate.value_nats(value, prior=prior, threshold=threshold)
        return Decision(prior, value, True, threshold, nats)

    def _threshold_units(self, thresholds: NDArray[np.float64]) -> NDArray[np.int64]:
        return np.floor(thresholds / self.certificate.span * GRID).astype(np.int64)

    def _at(self, state: State) -> GuardCore:
        """Give the mechanism of this state: another process may have charged, or a commit may have failed."""
        if self._mechanism.spent != state.charges:
            self._mechanism = self._resumed(state.charges)
        return self._mechanism

    def _resumed(self, spent: int) -> GuardCore:
        return self._calibration.core(
            scale=self._scale, noise=self._noise, spent=spent, direction=self.certificate.direction
        )

    def _make_table(self, charges: int, nats: float) -> ThresholdTable:
        return ThresholdTable(self.certificate, charges=charges, nats=nats)

    def _count_charges_left(self, charges: int, nats: float) -> int:
        return self.certificate.charges_left(charges=charges, nats=nats)
