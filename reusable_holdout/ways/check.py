"""Check: agree with the analyst's own estimate, or release the sign and approximate size of its error."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.certainty import Certificate, Interval
from reusable_holdout.metrics import GRID
from reusable_holdout.noise import Calibration, KeyedNoise, NoiseScales, SparseVector
from reusable_holdout.rules import Distance, Floats, Integers
from reusable_holdout.ways import AGREED, ALL, FAILED, Outcome, State, Terms, Told, Way, tidy

_FAILED = Told(FAILED)


class Asked(NamedTuple):
    """Questions that are to be decided; each part has one entry, or one row, for each question."""

    digests: Sequence[bytes]
    priors: Floats
    tolerances: Floats | None
    weighed: Integers | None  # the numbers that the rule decides by; None if all failed on the holdout
    failed: NDArray[np.bool_]
    beyond: Floats  # what each prior's own standard error adds to the plan's

    def at(self, places: Sequence[int]) -> Asked:
        """Return the questions at some places."""
        return Asked(
            [self.digests[place] for place in places],
            self.priors[places],
            None if self.tolerances is None else self.tolerances[places],
            None if self.weighed is None else self.weighed[places],
            self.failed[places],
            self.beyond[places],
        )


class Batch(NamedTuple):
    """A batch that was decided, up to a halt; each part of shape (decided,)."""

    units: Floats
    outcomes: list[Outcome | None]  # None: agreed


class Noisy(Way):
    """A way whose outcomes carry the noise of the sparse vector."""

    def __init__(self, certificate: Certificate, name: str, noise: KeyedNoise) -> None:
        super().__init__(certificate, name)
        self._calibration = Calibration(certificate.mechanism, certificate.charges)
        self._scale, self._noise = Fraction(certificate.noise_scale) * GRID, noise

    def core(self, state: State) -> SparseVector:
        """Return the sparse vector in a state."""
        return SparseVector(
            scales=NoiseScales(*(Fraction(each) * self._scale for each in self._calibration.scales)),
            noise=self._noise,
            charges=self._calibration.charges,
            spent=state.charges,
            last_charged=state.last_charged,
        )

    def noisy(self, core: SparseVector, score: int, digest: bytes) -> float:
        """Return a value with the noise of an answer, in [0, 1]."""
        return min(max(core.charge(score, digest), 0), GRID) / GRID


class Check(Noisy):
    """A comparison with a prior: agreement is free, and a deviation that the rule rejects is charged and released.

    "Agreed" costs nothing: the transcript code accounts for the positions of the charges.
    """

    batches: ClassVar[bool] = True
    #: The outcome of a question that is not charged.
    calm: ClassVar[Told] = Told(AGREED)

    def __init__(self, certificate: Certificate, name: str, noise: KeyedNoise, rule: Distance) -> None:
        super().__init__(certificate, name, noise)
        self.rule = rule
        self._core: SparseVector | None = None
        self.by_rows = rule.by_rows
        self.takes_tolerances = rule.takes_tolerances and not self.by_series

    # ---- public

    def tolerances(self, stated: Floats | None, beyond: Floats, state: State) -> Floats | None:
        """Return the tolerance of each question of a batch that begins in this state; None if none matters."""
        return self.rule.tolerances(stated, beyond, self.length(state))

    def unit(self, prior: float, state: State, tolerance: float | None, beyond: float = 0.0) -> float:
        """Return the unit of a question's outcomes."""
        return self.rule.unit(prior, state.charges, state.nats, tolerance, beyond)

    def keeps(self, prior: float, tolerance: float, length: float) -> bool:
        """Return True if an answer whose history costs this many nats (its description length) can keep a tolerance."""
        return self.rule.keeps(prior, tolerance, length)

    def outcome(self, told: Told, terms: Terms) -> Outcome:
        """Return an outcome: "agreed", "failed", or a charge of the rule's."""
        if told == self.calm:
            return Outcome(told, terms.prior, False, 0.0)
        nats = self.rule.cost(told)
        if nats is None or told != Told(told.word, told.place):
            raise self.unknown(told)
        value = 0.0 if told.place is None else tidy(self.rule.value(told.place, terms.prior, terms.unit))
        return Outcome(told, value, True, nats)

    def interval(self, told: Told, terms: Terms, length: float) -> Interval:
        """Return the interval around the prior, or around the released charge."""
        if told.word == AGREED:
            return self.rule.agreed(terms.prior, terms.unit, length)
        return ALL if told.place is None else self.rule.charged(told.place, terms.prior, terms.unit, length)

    def calm_intervals(self, priors: Floats, units: Floats, length: float) -> Interval:
        """Return the intervals of questions that were not charged; each part of shape (questions,)."""
        return self.rule.agreed(priors, units, length)

    # ---- private

    def decide(self, asked: Asked, state: State) -> Batch:
        """Decide a batch in order, up to a halt; stretches between charges are compared at once."""
        count, start = len(asked.digests), 0
        units = np.empty(count)
        outcomes: list[Outcome | None] = [None] * count
        named = np.array([self.grid(prior) for prior in asked.priors.tolist()], dtype=np.int64)
        noise = self._at(state).query_noise(asked.digests)
        length = self.length(state)
        while start < count and state.charges < self.certificate.charges:
            core, rest = self._at(state), slice(start, None)
            own = None if asked.tolerances is None else asked.tolerances[rest]
            units[rest] = self.rule.units(
                asked.priors[rest], state.charges, state.nats, own, asked.beyond[rest]
            )
            failed = np.flatnonzero(asked.failed[rest])
            here = start + int(failed[0]) if len(failed) else count
            if here > start and asked.weighed is not None:
                some = slice(start, here)
                compared = self.rule.compared(
                    asked.weighed[some], named[some], asked.priors[some], units[some], self.length(state)
                )
                above = core.first_above(*compared, asked.digests[some], query_noise=noise[some])
                here = here if above is None else start + above
            start = here + 1
            if here == count:
                break
            outcomes[here] = outcome = self._charge(core, asked, here, float(units[here]), length)
            state = state._replace(
                charges=state.charges + outcome.charged,
                nats=state.nats + outcome.nats,
                last_charged=asked.digests[here],
            )
        return Batch(units[:start], outcomes[:start])

    def decide_one(self, asked: Asked, state: State) -> tuple[Terms, Outcome]:
        """Decide the first question as a batch of one; a charge must be left."""
        (weighed, failed), length = (asked.weighed, asked.failed[0]), self.length(state)
        prior, beyond = float(asked.priors[0]), float(asked.beyond[0])
        tolerance = None if asked.tolerances is None else float(asked.tolerances[0])
        terms = Terms(prior, self.unit(prior, state, tolerance, beyond))
        if weighed is None or failed or self.deviates(weighed[0], terms, asked.digests[0], state, length):
            return terms, self._charge(self._at(state), asked, 0, terms.unit, length)
        return terms, self.outcome(self.calm, terms)

    def deviates(self, weighed: Integers, terms: Terms, digest: bytes, state: State, length: float) -> bool:
        """Return True if one question is charged, after noise is added."""
        named = np.array([self.grid(terms.prior)])
        one = self.rule.compared(
            weighed[None], named, np.array([terms.prior]), np.array([terms.unit]), length
        )
        return self._at(state).is_above(int(one.deviations[0]), int(one.limits[0]), digest)

    def _charge(self, core: SparseVector, asked: Asked, place: int, unit: float, length: float) -> Outcome:
        terms = Terms(float(asked.priors[place]), unit)
        if asked.failed[place] or asked.weighed is None:
            return self.outcome(_FAILED, terms)
        return self.outcome(
            self._told(core, asked.weighed[place], asked.digests[place], terms, length), terms
        )

    def _told(
        self, core: SparseVector, weighed: Integers, digest: bytes, terms: Terms, length: float
    ) -> Told:
        noisy = self.noisy(core, self.rule.score(weighed), digest)
        return self.rule.place(weighed, noisy, terms.prior, terms.unit, length)

    def _at(self, state: State) -> SparseVector:
        """Return the sparse vector of this state; a new one if another process has charged, or a commit has failed."""
        core = self._core
        if core is None or (core.spent, core.last_charged) != (state.charges, state.last_charged):
            core = self._core = self.core(state)
        return core
