"""Gates: one bit, whose two intervals need no division of the failure probability."""

from __future__ import annotations

import math
from itertools import product

import pytest
from cases import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from long_tests import GUARD, examples
from reusable_holdout.guard.kinds.gate import GateCompare
from scipy import stats
from within_reach import FAMILIES, certificate_of, certificates_of, certified, noisy, sides, units

from reusable_holdout.errors import InputError
from reusable_holdout.ways import State, Terms
from reusable_holdout.ways.gate import Gate
from reusable_holdout.ways.told import AGREED, FAILED

YES = "cell 0"
SHARES = (1.0, 1.0)


@settings(max_examples=examples(400))
@given(
    kind=st.sampled_from((Gate, GateCompare)),
    plan=certificates_of("gate"),
    score=units,
    named=units,
    near=st.booleans(),
    noise=st.tuples(sides, sides),
    length=st.floats(0.0, 500.0),
)
def test_an_interval_contains_all_that_the_score_alone_leaves_possible(
    kind, plan, score, named, near, noise, length
):
    terms = Terms(plan.lower + named * plan.span, 0.0)
    score = plan.lower + score * plan.span
    if near:  # where decisions are made
        reach = 1.2 * plan.tails.comparison * plan.noise + 1e-8
        score = min(max(terms.prior + noise[1] * reach, plan.lower), plan.upper)
    outcome, _ = certified(noisy(kind, plan, *noise), score, terms, length=length, shares=SHARES)
    assert outcome.told in {AGREED, YES}
    assert outcome.value == terms.prior


@pytest.mark.long(*GUARD)
@for_each(("family", "greater"), list(product(FAMILIES, (True, False))))
def test_every_score_of_a_small_holdout_is_covered_at_every_name(family, greater):
    """All 31 x 31 pairs of score and name, the noise at both ends of its reach and at none."""
    plan = certificate_of("gate", rows=30, family=family, greater_is_better=greater, noise=2e-3)
    told = set()
    for noise in (-1.0, 0.0, 1.0):
        kind = noisy(Gate, plan, noise, 0.0)
        for score, named in product(range(31), repeat=2):
            terms = Terms(named / 30, 0.0)
            told.add(certified(kind, score / 30, terms, length=9.0, shares=SHARES)[0].told)
    assert told == {AGREED, YES}


@for_each("truth", [0.05, 0.3, 0.5, 0.83])
@for_each("length", [0.0, 3.0])
def test_one_question_misses_with_at_most_what_its_node_may_spend(truth, length):
    """Yes or no, at every name, exactly: the holdout's value is binomial, and there is no noise."""
    rows, worst = 60, 0.0
    plan = certificate_of("gate", rows=rows, noise=0.0)
    kind, chances = noisy(Gate, plan, 0.0, 0.0), stats.binom.pmf(range(rows + 1), rows, truth).tolist()
    for named in range(rows + 1):
        missed, terms = 0.0, Terms(named / rows, 0.0)
        for score, chance in enumerate(chances):
            outcome = kind.decide(math.floor(score / rows * 2**32), terms, b"", State())
            low, high = kind.interval(outcome, terms, length)
            missed += chance * (not low <= truth <= high)
        worst = max(worst, missed)
    assert worst <= plan.beta * math.exp(-length)
    if length == 0.0 and truth > 0.1:
        assert worst > 0.5 * plan.beta  # a side has more than a half: nothing is given away


@given(plan=certificates_of("gate"), named=units, length=st.floats(0.0, 500.0))
def test_what_is_not_told_leaves_the_interval_open(plan, named, length):
    kind, terms = noisy(Gate, plan, 0.0, 0.0), Terms(plan.lower + named * plan.span, 0.0)
    ends = (plan.lower, plan.upper) if plan.greater_is_better else (plan.upper, plan.lower)
    assert ends[0] in kind.interval(kind.outcome(AGREED, terms), terms, length)
    assert ends[1] in kind.interval(kind.outcome(YES, terms), terms, length)


def test_yes_and_a_failure_are_all_that_costs_and_their_weights_sum_to_one():
    kind, terms = noisy(Gate, certificate_of("gate"), 0.0, 0.0), Terms(0.4, 0.0)
    yes, failed = kind.outcome(YES, terms), kind.outcome(FAILED, terms)
    assert math.exp(-yes.nats) + math.exp(-failed.nats) == pytest.approx(1.0, abs=1e-12)
    assert max(yes.nats, failed.nats) == kind.certificate.charge_nats
    for told in ("cell 1", "steps 1", "no"):
        with pytest.raises(InputError, match="has no outcome"):
            kind.outcome(told, terms)


@for_each("greater", [True, False])
def test_a_failure_says_nothing_of_the_population(greater):
    plan = certificate_of("gate", greater_is_better=greater)
    kind, terms = noisy(Gate, plan, 0.0, 0.0), Terms(0.6, 0.0)
    outcome = kind.fail(terms, State())
    assert (outcome.charged, outcome.value) == (True, 0.0 if greater else 1.0)
    assert kind.interval(outcome, terms, 5.0) == (0.0, 1.0)


def test_failures_alone_break_no_promise_of_the_plan_up_to_the_last_charge():
    plan = certificate_of("gate")
    assert plan.charges > 2
    kind, terms, state = noisy(Gate, plan, 0.0, 0.0), Terms(0.6, 0.0), State()
    while state.charges < plan.charges - 1:
        failed = kind.fail(terms, state)
        assert failed.told == FAILED
        state = State(charges=state.charges + 1, nats=state.nats + failed.nats)
        assert plan.room(charges=state.charges, nats=state.nats) >= 0.0


@for_each("greater", [True, False])
def test_a_score_that_is_exactly_as_named_passes(greater):
    plan = certificate_of("gate", noise=0.0, greater_is_better=greater)
    kind = noisy(Gate, plan, 0.0, 0.0)
    for named in (0.1, 1 / 3, 0.5, 0.7):
        score = kind.grid_unit(named)
        assert kind.decide(score, Terms(named, 0.0), b"", State()).told == YES
        assert kind.decide(score - plan.better, Terms(named, 0.0), b"", State()).told == AGREED
