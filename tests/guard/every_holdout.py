"""All holdouts of a few 0/1 rows against the worst analyst: exact dynamic programming over what she has been told.

The features are known and the labels are independent coins, so the population accuracy of any predictions is known. A
state is the set of label vectors that are consistent with what was told, as the bits of one integer, and the public
state. No sampling, no noise.
"""

import itertools
import math
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from types import SimpleNamespace

import numpy as np
from within_reach import ALONE

from reusable_holdout.certainty import THEORY, Certificate, ConfidenceBound, Shares
from reusable_holdout.metrics import GRID
from reusable_holdout.noise import KeyedNoise
from reusable_holdout.rules import Distance
from reusable_holdout.rules.evidence import ByEvidence
from reusable_holdout.rules.samples import MeanSample
from reusable_holdout.ways import FAILED, State, Terms
from reusable_holdout.ways import Told as Named
from reusable_holdout.ways.check import Asked, Check
from reusable_holdout.ways.final import Final
from reusable_holdout.ways.gate import Gate
from reusable_holdout.ways.reveal import Choose
from reusable_holdout.ways.table import WAYS

HALVES = Shares(0.5, 0.5)
NOISE = KeyedNoise(bytes(32))
_EQUAL = SimpleNamespace(relative_weights=None)


@dataclass(frozen=True)
class Told:
    """One outcome, and which measurements lead to it.

    `missed`: whether an interval of it misses the population value. `last`: index of its last charge, from 1, among
    those that the question takes.
    """

    measured: tuple
    missed: bool
    charges: int
    nats: float
    last: int = 0


@dataclass
class Game:
    """A guard of few rows, and the freedom of its analyst.

    Parameters
    ----------
    kinds : set of str
        Of "main" (a check or a gate), `ALONE`, "compare", "choose", "batch", "failure", "final".
    heads : float
        Probability of label 1.
    tolerance : float, optional
        Then the rows' evidence decides, of scores and of differences.
    twin : callable, optional
        Changes the length at which an answer is certified: a wrong code.
    """

    rows: int
    queries: int
    charges: int
    beta: float
    threshold: float
    gate: bool = False
    kinds: frozenset = frozenset({"main", "reveal", "final"})
    heads: float = 0.5
    finals: tuple = (1,)
    priors: int = 2
    beam: int | None = None
    twin: object = None
    unit: float | None = None
    tolerance: float | None = None
    nodes: int = field(default=0, init=False)

    def __post_init__(self):
        spread = self.unit or math.sqrt(0.5 / self.rows)
        shares = THEORY.scores if self.tolerance is None else THEORY.by_evidence
        dearest = max(THEORY.charge.worst, THEORY.spans.worst, THEORY.gate.worst)
        self.certificate = Certificate(
            bound=ConfidenceBound("binomial", rows=self.rows, sum_of_squares=1.0 / self.rows),
            queries=self.queries,
            charges=self.charges,
            beta=self.beta,
            noise_scale=0.0,
            tolerance=self.tolerance or 1.0,
            fixed_threshold=0.0 if self.gate and self.tolerance is None else self.threshold,
            least_threshold=spread,
            charge_nats=THEORY.gate.worst if self.gate else dearest,
            decides="distance" if self.tolerance is None else "evidence",
            shares=Shares(1.0, 1.0) if self.gate else shares,
            first_share=THEORY.first_share_of_gates if self.gate else 0.0,
            sensitivity=1.0 / self.rows,
            spread=self.tolerance,
        )
        halves = replace(self.certificate, shares=HALVES)
        paired = replace(
            self.certificate,
            bound=ConfidenceBound("bounded", rows=self.rows, sum_of_squares=1.0 / self.rows),
            tolerance=self.certificate.tolerance / 2.0,
            fixed_threshold=self.certificate.fixed_threshold / 2.0,
            shares=shares,
        )
        rule, by_rows = (Distance, False) if self.tolerance is None else (ByEvidence, True)
        own = rule(self.certificate, gate=self.gate)
        self.ask = (
            Gate(self.certificate, "gate", NOISE, own)
            if self.gate
            else Check(self.certificate, "check", NOISE, own)
        )
        plan = SimpleNamespace(told=halves, reveals_by_rows=by_rows)
        ways = SimpleNamespace(plan=plan, noise=NOISE)
        self.alone = {name: WAYS[name].make(ways, name) for name in ALONE}
        self.choose = Choose(replace(halves, spread=None), "choose", NOISE, by_rows=False)
        self.final = Final(halves, "final", 0.1)
        self.compare = Check(paired, "compare", NOISE, rule(paired))
        self.stated = sorted(
            {step / (self.priors * self.rows) for step in range(self.priors * self.rows + 1)}
        )
        for name in (
            *("told_one", "told_difference", "told_choice", "told_batch", "missed_by_a_final", "hopeless"),
        ):
            setattr(self, name, cache(getattr(self, name)))
        self.agreeing = cache(self.agreeing)
        self.known = {}

    # ---- what the public numbers say

    def length(self, kind, state, answers=1):
        length = kind.length(state, answers)
        return length if self.twin is None else self.twin(self, kind, state, length)

    def population(self, ones):
        """Accuracy of predictions with so many ones."""
        return (ones * self.heads + (self.rows - ones) * (1.0 - self.heads)) / self.rows

    def misses(self, interval, truth):
        low, high = interval
        return not low <= truth <= high

    def measured(self, way, score, rows):
        """What is measured for a reveal or a final: the score, and if evidence decides the rows' terms."""
        if not way.by_rows:
            return score
        return MeanSample(score, (np.array(rows) * GRID).astype(np.int64), None)

    def decided(self, way, scores, rows, priors, names, failed, state):
        """Decide a batch of checks or gates by its scores and its rows' terms; the outcomes, up to a halt."""
        numbers = [
            [score, *(np.array(row) * GRID).astype(np.int64)] for score, row in zip(scores, rows, strict=True)
        ]
        stated = np.array(priors)
        measured = np.array(numbers, dtype=np.int64)
        weighed = way.rule.weighed(_EQUAL, measured if way.rule.by_rows else measured[:, :1], stated, None)
        asked = Asked(names, stated, None, weighed, np.array(failed), np.zeros(len(names)))
        batch = way.decide(asked, state)
        outcomes = [
            way.outcome(way.calm, Terms(prior, unit)) if one is None else one
            for one, prior, unit in zip(batch.outcomes, priors, batch.units.tolist(), strict=False)
        ]
        if outcomes:
            first = way.decide_one(asked.at([0]), state)
            assert first == (Terms(priors[0], batch.units[0]), outcomes[0])
        return batch.units.tolist(), outcomes

    def decided_alone(self, way, score, rows, prior, state):
        """Terms and outcome of one question."""
        if not isinstance(way, Check):
            return way.decide(self.measured(way, score, rows), prior, b"question", state)
        (unit,), (outcome,) = self.decided(way, [score], [rows], [prior], [b"question"], [False], state)
        return Terms(prior, unit), outcome

    def told_one(self, name, prior, state, truth):
        """Outcomes of one question by its score."""
        way = self.alone.get(name, self.ask)
        found = {}
        for score in range(self.rows + 1):
            rows = [1.0] * score + [0.0] * (self.rows - score)
            decided = self.decided_alone(way, score * GRID // self.rows, rows, prior, state)
            found.setdefault(decided, []).append(score)
        return self._told(way, found, state, truth)

    def told_difference(self, prior, state, differing):
        """Outcomes of a comparison by how many of the differing rows the first has right; fair labels only."""
        found = {}
        for right in range(differing + 1):
            difference = ((2 * right - differing) * GRID // self.rows + GRID) >> 1
            rows = [1.0] * right + [0.0] * (differing - right) + [0.5] * (self.rows - differing)
            decided = self.decided_alone(self.compare, difference, rows, (1.0 + prior) / 2.0, state)
            found.setdefault(decided, []).append(right)
        return self._told(self.compare, found, state, 0.5)

    def _told(self, way, found, state, truth):
        length = self.length(way, state)
        return tuple(
            Told(
                tuple(scores),
                self.misses(way.interval(outcome.told, terms, length), truth),
                int(outcome.charged),
                outcome.nats,
                int(outcome.charged),
            )
            for (terms, outcome), scores in found.items()
        )

    def told_choice(self, priors, state, truths, fails=(None, None)):
        """Outcomes of a choice by the candidates' scores; missed if the winner's interval or the others' bound is.

        Of each candidate, at which scores it fails.
        """
        found, terms_of = {}, {}
        for scores in itertools.product(range(self.rows + 1), repeat=len(priors)):
            grid = [
                None if broken(score, when) else score * GRID // self.rows
                for score, when in zip(scores, fails, strict=True)
            ]
            names = [b"candidate %d" % place for place in range(len(priors))]
            terms, outcome = self.choose.choose(grid, np.array(priors), names, state)
            found.setdefault(outcome, []).append(scores)
            terms_of[outcome] = terms
        told, length = [], self.length(self.choose, state)
        for outcome, scores in found.items():
            winner, terms = outcome.told.winner.candidate, terms_of[outcome]
            missed = self.misses(self.choose.interval(outcome.told, terms, length), truths[winner])
            others = self.choose.others(outcome.told, terms, length)
            beaten = any(truth > others for place, truth in enumerate(truths) if place != winner)
            told.append(Told(tuple(scores), missed or beaten, 0, outcome.nats))
        return tuple(told)

    def told_batch(self, priors, state, truths, fails=(None, None)):
        """Outcomes of a batch by its scores, up to a halt, as the transcript certifies them.

        Of each question, at which scores it fails.
        """
        found = {}
        length = self.length(self.ask, state)
        for scores in itertools.product(range(self.rows + 1), repeat=len(priors)):
            rows = [[1.0] * score + [0.0] * (self.rows - score) for score in scores]
            grid = [score * GRID // self.rows for score in scores]
            names = [b"question %d" % place for place in range(len(priors))]
            failed = [broken(score, when) for score, when in zip(scores, fails, strict=True)]
            units, outcomes = self.decided(self.ask, grid, rows, priors, names, failed, state)
            each = list(zip(outcomes, priors, units, truths, strict=False))
            missed = any(
                self.misses(self.ask.interval(outcome.told, Terms(prior, unit), length), truth)
                for outcome, prior, unit, truth in each
            )
            charged = [outcome for outcome in outcomes if outcome.charged]
            nats = sum(outcome.nats for outcome in charged)
            last = max((place for place, one in enumerate(outcomes, start=1) if one.charged), default=0)
            key = (tuple(one.told for one in outcomes), missed, len(charged), nats, last)
            found.setdefault(key, []).append(scores)
        return tuple(Told(tuple(scores), *key[1:]) for key, scores in found.items())

    def weightings(self, answers):
        """Weights of a final's answers: as the priors have it, which the analyst chooses."""
        if answers == 1:
            return [(None,)]
        skewed = itertools.permutations([1.0] + [0.0] * (answers - 1))
        return {tuple(self.final.weights(priors, answers, 1)) for priors in [(0.0,) * answers, *skewed]}

    def missed_by_a_final(self, state, weight, truth):
        """Scores at which an answer of a final misses."""
        length = self.length(self.final, state)
        missed = []
        for score in range(self.rows + 1):
            rows = [1.0] * score + [0.0] * (self.rows - score)
            measured = self.measured(self.final, score * GRID // self.rows, rows)
            terms, outcome = self.final.decide(measured, length, weight=weight)
            if self.misses(self.final.interval(outcome.told, terms, length), truth):
                missed.append(score)
        return tuple(missed)

    # ---- sets of holdouts

    @cached_property
    def everything(self):
        return (1 << (1 << self.rows)) - 1

    @cached_property
    def by_ones(self):
        """Holdouts by how many labels are 1, with the probability of each."""
        return [
            (
                self.agreeing((1 << self.rows) - 1)[ones],
                self.heads**ones * (1 - self.heads) ** (self.rows - ones),
            )
            for ones in range(self.rows + 1)
        ]

    def agreeing(self, predicted):
        """Holdouts by how many labels predictions have right."""
        labels = np.arange(1 << self.rows)
        right = self.rows - np.bitwise_count(labels ^ predicted)
        return [bits(right == score) for score in range(self.rows + 1)]

    def agreeing_on(self, predicted, rows):
        """Holdouts by how many labels of some rows predictions have right."""
        labels = np.arange(1 << self.rows)
        chosen = sum(1 << row for row in rows)
        right = len(rows) - np.bitwise_count((labels ^ predicted) & chosen)
        return [bits(right == score) for score in range(len(rows) + 1)]

    def probability(self, holdouts):
        if self.heads == 0.5:
            return holdouts.bit_count() / (1 << self.rows)
        return math.fsum((holdouts & some).bit_count() * each for some, each in self.by_ones)

    def predictions(self, groups):
        """One of each orbit of predictions, rows within a group being alike; with the groups that it leaves."""
        for ones in itertools.product(*(range(len(group) + 1) for group in groups)):
            predicted = sum(
                1 << row for group, count in zip(groups, ones, strict=True) for row in group[:count]
            )
            left = [
                part
                for group, count in zip(groups, ones, strict=True)
                for part in (group[:count], group[count:])
            ]
            yield predicted, tuple(part for part in left if part)

    # ---- the analyst

    def hopeless(self, state):
        """Whether no interval from here on can miss: the rarest score is likelier than the largest level."""
        rarest = min(self.heads, 1.0 - self.heads) ** self.rows
        if self.twin is not None:
            return False
        lengths = []
        for more in range(self.charges - state.charges + 1):
            soonest = state.asked + more if more else state.last_charge
            later = state._replace(
                charges=state.charges + more, nats=state.nats + 0.69 * more, last_charge=soonest
            )
            lengths.append(self.final.length(later))
            if later.charges < self.charges and state.asked < self.queries:
                lengths.append(self.ask.length(later))
        return math.log(self.beta) - min(lengths) < math.log(rarest)

    def worst(self):
        """Largest probability that an interval misses."""
        if self.heads == 0.5:  # then any first predictions are alike
            start = (tuple(range(self.rows)),)
            return self.value(self.everything, start, State(last_charge=0), first=True)
        return self.value(self.everything, (tuple(range(self.rows)),), State(last_charge=0))

    def value(self, holdouts, groups, state, *, first=False):
        """Probability of these holdouts and a miss from here on, at best."""
        if not holdouts or self.hopeless(state):
            return 0.0
        key = (holdouts, state.asked, state.charges, round(state.nats, 9), state.last_charge)
        if key not in self.known:
            self.nodes += 1
            self.known[key] = max(self.moves(holdouts, groups, state, first), default=0.0)
        return self.known[key]

    def moves(self, holdouts, groups, state, first):
        own = list(self.predictions(groups))
        if first:
            own = own[:1]
        if "final" in self.kinds:
            yield from self.ends(holdouts, own, state)
        if state.asked >= self.queries or state.charges >= self.charges:
            return
        moves = list(self.questions(holdouts, own, state, first))
        if (
            self.beam is not None
        ):  # the most promising by the probability of a miss now, and by their fineness
            moves.sort(key=lambda move: self.promise(move, state), reverse=True)
            moves = moves[: self.beam]
        for parts, left, takes in moves:
            yield self.after(parts, left, state, takes)

    def promise(self, move, state):
        parts, _, _ = move
        now = sum(self.probability(some) for some, told in parts if told.missed)
        kept = sum(self.probability(some) * math.exp(-told.nats) for some, told in parts)
        return (now, kept, len(parts))

    def after(self, parts, groups, state, takes):
        total = 0.0
        for some, told in parts:
            if told.missed:
                total += self.probability(some)
                continue
            later = State(
                state.query + takes,
                state.asked + takes,
                state.charges + told.charges,
                state.nats + told.nats,
                False,
                state.asked + told.last if told.last else state.last_charge,
            )
            total += self.value(some, groups, later)
        return total

    def ends(self, holdouts, own, state):
        for answers in self.finals:
            each = itertools.combinations([one for one, _ in own], answers)
            for several, weights in itertools.product(each, self.weightings(answers)):
                both = tuple(zip(several, weights, strict=True))
                yield self.probability(self.missed_at_the_end(holdouts, both, state))

    def missed_at_the_end(self, holdouts, several, state):
        """Holdouts of which a final misses one of its answers; each is predictions and their weight."""
        public, missed = state._replace(query=0, asked=0), 0
        for predicted, weight in several:
            truth = self.population(predicted.bit_count())
            for score in self.missed_by_a_final(public, weight, truth):
                missed |= holdouts & self.agreeing(predicted)[score]
        return missed

    def questions(self, holdouts, own, state, first):
        public = state._replace(query=0, asked=0, last_charge=None)  # a question's length depends on none
        for predicted, left in own:
            truth = self.population(predicted.bit_count())
            agreeing = [holdouts & some for some in self.agreeing(predicted)]
            for told in self.distinct(public, truth):
                yield split(agreeing, told), left, 1
            if "failure" in self.kinds:
                others = self.predictions(left) if first else [(predicted, left)]
                yield from self.failures(holdouts, agreeing, others, public, truth)
        if "compare" in self.kinds:
            yield from self.comparisons(holdouts, own, public, first)
        if state.asked + 2 <= self.queries:
            yield from self.pairs(holdouts, own, public)

    def distinct(self, state, truth):
        """Questions about one vector that differ in what they tell."""
        found = {}
        for name in ("main", *self.alone):
            for prior in self.stated if name in self.kinds else ():
                told = self.told_one(name, prior, state, truth)
                found.setdefault(frozenset(told), told)
        return found.values()

    def failures(self, holdouts, agreeing, others, state, truth):
        """Metrics that raise where some predictions are right often, or seldom."""
        terms = Terms(0.0, self.ask.unit(0.0, state, None))
        failed = self.ask.outcome(Named(FAILED), terms)
        missed = self.misses(self.ask.interval(failed.told, terms, self.length(self.ask, state)), truth)
        outcome = Told((), missed, int(failed.charged), failed.nats, int(failed.charged))
        for predicted, left in others:
            by_score = self.agreeing(predicted)
            for when in self.ways_to_fail:
                raising = 0
                for score in range(self.rows + 1):
                    raising |= by_score[score] if broken(score, when) else 0
                for told in self.distinct(state, truth):
                    rest = split([some & ~raising for some in agreeing], told)
                    yield [*rest, (holdouts & raising, outcome)], left, 1

    def comparisons(self, holdouts, own, state, first):
        for predicted, left in own[:1] if first else own:
            for differing, finer in self.predictions(left):
                rows = [row for row in range(self.rows) if differing >> row & 1]
                if not rows:
                    continue
                agreeing = [holdouts & some for some in self.agreeing_on(predicted, rows)]
                for prior in (-0.9, -0.5, -0.2, 0.0, 0.2, 0.5, 0.9):
                    yield split(agreeing, self.told_difference(prior, state, len(rows))), finer, 1

    def pairs(self, holdouts, own, state):
        """Choices of two, and batches of two."""
        stated = self.stated[:: max(1, len(self.stated) // 4)]
        for predicted, left in own:
            for other, finer in self.predictions(left):
                both = [
                    [holdouts & one & two for two in self.agreeing(other)] for one in self.agreeing(predicted)
                ]
                truths = (self.population(predicted.bit_count()), self.population(other.bit_count()))
                failing = [(None, None)]
                if "failure" in self.kinds:
                    few = [(self.rows // 2, low) for low in (True, False)]
                    failing += [one for when in few for one in ((when, None), (None, when), (when, when))]
                for priors, fails in itertools.product(itertools.product(stated, repeat=2), failing):
                    if "choose" in self.kinds:
                        yield split_pairs(both, self.told_choice(priors, state, truths, fails)), finer, 2
                    if "batch" in self.kinds:
                        yield split_pairs(both, self.told_batch(priors, state, truths, fails)), finer, 2

    @property
    def ways_to_fail(self):
        """Scores below which, or not below which, a metric or model raises."""
        return list(itertools.product((1, self.rows // 2, self.rows), (True, False)))


def broken(score, when):
    """Return True if a model that fails below a score, or not below it, fails at this one."""
    return when is not None and (score < when[0]) == when[1]


def bits(chosen):
    """Bits of an integer, the first lowest."""
    return int.from_bytes(np.packbits(chosen, bitorder="little").tobytes(), "little")


def split(agreeing, told):
    """Holdouts of each outcome."""
    parts = []
    for outcome in told:
        some = 0
        for score in outcome.measured:
            some |= agreeing[score]
        if some:
            parts.append((some, outcome))
    return parts


def split_pairs(both, told):
    parts = []
    for outcome in told:
        some = 0
        for one, two in outcome.measured:
            some |= both[one][two]
        if some:
            parts.append((some, outcome))
    return parts
