"""A final with noise, keyed and on the integer grid: its reach and coverage are exact, and epsilon counts it."""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from cases import for_each
from guard.forging import recompute, seal_again, sql
from scipy.stats import binom
from within_reach import GRID, certificate_of

from reusable_holdout import Plan, ReusableHoldout, verify
from reusable_holdout.certainty import Shares
from reusable_holdout.errors import InputError, LedgerMismatchError
from reusable_holdout.guard.kinds import State, Terms
from reusable_holdout.guard.kinds.final import Final
from reusable_holdout.metrics import mae
from reusable_holdout.noise import DiscreteLaplace, KeyedNoise, key_from_seed

ROWS = 2_000
SCALE = 0.004


def final_of(**changes):
    certificate = replace(certificate_of("thresholdout", **changes), shares=Shares(0.5, 0.5))
    return Final(certificate, KeyedNoise(bytes(32)))


def own_beta(certificate):
    """What a final's noise may fail with: a fiftieth of the final's quarter."""
    mechanism = 0.95 if certificate.noise_scale else 1.0
    return mechanism * certificate.beta * 0.25 * 0.02


# ---- the reach, exactly


@for_each("span", [1.0, 2.0, 7.0])
@for_each("scale", [1e-7, 1e-4, 0.01, 0.2])
@for_each("answers", [1, 3, 100])
@for_each("noise_scale", [0.0, 1e-3])
def test_the_noise_of_all_answers_stays_within_reach_as_often_as_it_must_and_no_oftener(
    span, scale, answers, noise_scale
):
    certificate = final_of(upper=span, final_noise=scale * span, noise_scale=noise_scale).certificate
    law, reach = DiscreteLaplace(scale * GRID), certificate.final_reach(answers)
    assert law.scale == pytest.approx(scale * GRID)

    def beyond(off):
        """That the noise of one of the answers is farther off."""
        return answers * 2.0 * math.exp(law.log_tail(math.floor(off / span * GRID) + 1))

    assert beyond(reach + certificate.grid_slack) <= own_beta(certificate)
    assert beyond(reach - 0.01 * certificate.final_noise - certificate.grid_slack) > own_beta(certificate)


def test_without_noise_nothing_reaches_anywhere():
    kind = final_of()
    assert kind.certificate.final_reach(5) == 0.0
    outcome = kind.decide(GRID // 2, b"question")
    assert (outcome.value, kind.terms(outcome, 5)) == (0.5, Terms(0.5, 0.0))


@for_each("greater", [True, False])
@for_each("score", [0, 1, GRID // 3, GRID - 1, GRID])
def test_what_is_told_is_the_value_with_the_noise_of_its_question_within_the_bounds(score, greater):
    kind = final_of(lower=-2.0, upper=3.0, final_noise=0.5, greater_is_better=greater)
    for question in (b"one", b"another", b"a third"):
        noise = KeyedNoise(bytes(32)).draw(DiscreteLaplace(0.1 * GRID), label="final", question=question)
        value = min(max(-2.0 + 5.0 * (score + noise) / GRID, -2.0), 3.0)
        outcome = kind.decide(score, question)
        assert outcome == kind.decide(score, question)
        assert outcome.value == pytest.approx(value, abs=1e-8)
        assert kind.outcome(outcome.told, kind.terms(outcome)) == outcome
        reach, length = kind.certificate.final_reach(), kind.length(State())
        if abs(noise) / GRID * 5.0 <= reach:
            low, high = kind.interval(outcome, kind.terms(outcome), length)
            exact = final_of(lower=-2.0, upper=3.0, greater_is_better=greater).interval(
                outcome._replace(value=-2.0 + 5.0 * score / GRID), Terms(0.0, 0.0), length
            )
            assert low <= exact.low <= exact.high <= high


# ---- coverage, exactly: no draw is made


def missed(kind, truth, *, terms, length):
    """Probability over rows and noise that a final's interval misses the population's value."""
    rows, law = kind.certificate.bound.rows, DiscreteLaplace(kind.certificate.final_noise * GRID)

    @cache
    def ends(told):
        outcome = kind.outcome(f"value {told / GRID!r}", Terms(0.0, 0.0))
        return kind.interval(outcome, terms, length)

    # what is told lies on the grid: it misses from one number on, and up to another; beyond the grid none is told
    above = _first(lambda told: ends(told).low > truth)
    below = _first(lambda told: ends(told).high >= truth) - 1
    below = below if below >= 0 else -10 * GRID
    scores = [count * GRID // rows for count in range(rows + 1)]
    return sum(
        chance * (_at_least(law, above - score) + _at_least(law, score - below))
        for score, chance in zip(scores, binom.pmf(range(rows + 1), rows, truth), strict=True)
    )


def _first(holds):
    """Smallest told number on the grid at which something holds that holds from some number on."""
    refused, kept = -1, GRID + 1
    while kept - refused > 1:
        middle = (refused + kept) // 2
        refused, kept = (refused, middle) if holds(middle) else (middle, kept)
    return kept if kept <= GRID else 10 * GRID  # none is told


def _at_least(law, m):
    """Of the noise that is at least m."""
    if m > 5 * GRID:
        return 0.0
    return math.exp(law.log_tail(m)) if m >= 0 else 1.0 - math.exp(law.log_tail(1 - m))


@for_each("scale", [1e-3, 0.01, 0.05])
@for_each("beta", [0.05, 0.4])
def test_a_final_with_noise_misses_no_more_than_its_share_whatever_the_population(scale, beta):
    kind = final_of(rows=40, beta=beta, final_noise=scale)
    length = kind.length(State())
    share = kind.certificate.beta * 0.95 * (math.exp(-length) * 0.98 + 0.25 * 0.02)
    terms = Terms(0.0, kind.certificate.final_reach())
    truths = np.linspace(0.01, 0.99, 23)
    assert max(missed(kind, truth, terms=terms, length=length) for truth in truths) <= share


def test_without_its_reach_the_interval_would_miss_too_often():
    kind = final_of(rows=40, beta=0.4, final_noise=0.05)
    length = kind.length(State())
    share = 0.4 * 0.95 * (math.exp(-length) * 0.98 + 0.25 * 0.02)
    truths = np.linspace(0.01, 0.99, 23)
    assert max(missed(kind, truth, terms=Terms(0.0, 0.0), length=length) for truth in truths) > 2.0 * share


def test_the_shares_of_a_final_and_its_noise_are_the_finals_quarter():
    kind = final_of(beta=0.05, final_noise=0.01)
    certificate, length = kind.certificate, kind.length(State(), 3)
    code = 2.0 * math.exp(certificate.log_level(length, 0.5 * 0.98))  # both sides of one of three answers
    noise = 3.0 * math.exp(-certificate.final_reach(3) / 0.01)
    assert 3.0 * code + noise <= 0.95 * 0.05 * 0.25


# ---- privacy, exactly


@for_each("rows", [200, 2_000, 10_000])
def test_each_model_of_a_final_costs_the_epsilon_that_the_plan_adds(rows):
    """Two holdouts that differ in one row: the ratio of the probabilities of what is told is largest far off."""
    plan = Plan(rows=rows, queries=20, charges=1, final_noise=SCALE)
    law = DiscreteLaplace(SCALE * GRID)
    step = math.ceil(GRID / rows)
    loss = max(abs(law.log_pmf(x) - law.log_pmf(x - step)) for x in (-(10**9), 0, step // 2, step, 10**9))
    assert loss == pytest.approx(plan.final_epsilon, rel=1e-5)
    assert plan.final_epsilon == pytest.approx(1 / rows / SCALE)


@for_each("mechanism", ["numeric-sparse", "noiseless"])
def test_epsilon_includes_a_final_with_noise_and_its_table_says_so(mechanism):
    wish = {
        "rows": 5_000,
        "queries": 50,
        "charges": 2,
        "estimate": 0.9,
        "mechanism": mechanism,
        "delta": 1e-6,
    }
    without, plan = Plan(**wish), Plan(**wish, final_noise=SCALE)
    assert without.final_epsilon == 0.0
    assert plan.epsilon == without.epsilon + plan.final_epsilon
    assert "; without the final" in str(without)
    assert f"; with a final of one model; each more adds {plan.final_epsilon:.3g}" in str(plan)
    assert "; of a final 0.004" in str(plan)


# ---- the plan


def test_it_changes_nothing_but_the_final():
    wish = {"rows": 5_000, "queries": 50, "tolerance": 0.06, "estimate": 0.9}
    without, plan = Plan(**wish), Plan(**wish, final_noise=SCALE)
    assert {*plan.stated} == {*without.stated, "final_noise"}
    assert {**plan.record(), "final_noise": None, "stated": list(without.stated)} == without.record()
    assert plan.threshold == without.threshold
    assert plan.half_width(query=50, charges=1) == without.half_width(query=50, charges=1)
    assert plan.final_half_width() == pytest.approx(
        without.final_half_width() + plan.certificate().final_reach(), rel=0.02
    )
    assert plan.final_half_width(answers=4) - plan.final_half_width() > SCALE * math.log(4)


def test_a_plan_is_the_same_from_its_record_and_one_of_before_has_none():
    plan = Plan(rows=5_000, queries=50, charges=2, final_noise=SCALE)
    record = plan.record()
    assert Plan.from_record(record) == plan
    assert Plan.from_record(record).final_noise == SCALE
    del record["final_noise"]
    assert Plan.from_record(record).final_noise == 0.0
    assert Plan.from_record(record).record()["final_noise"] is None
    assert Plan(rows=5_000, queries=50, charges=2, final_noise=0).record()["final_noise"] is None


@for_each("wrong", [-0.1, 1.5, math.nan, math.inf, "0.1", True, [], "none"])
def test_a_scale_that_is_none_is_refused(wrong):
    with pytest.raises(InputError, match="final_noise must be a number in"):
        Plan(rows=5_000, queries=50, charges=2, final_noise=wrong)


# ---- the guard


def test_a_guards_final_carries_the_noise_of_its_key_and_question(make_guard, scoring):
    told = set()
    for seed in range(5):
        guard = make_guard(seed=seed, final_noise=SCALE)
        answer = guard.final_predictions(scoring(0.7))
        question = guard._content.question(guard._holdout.bound.prepare(scoring(0.7)), 0, b"final")
        noise = KeyedNoise(key_from_seed(seed)).draw(
            DiscreteLaplace(SCALE * GRID), label="final", question=question
        )
        assert answer.value == pytest.approx(0.7 + noise / GRID, abs=1e-8)
        assert (answer.nats, answer.charged, answer.prior) == (0.0, False, answer.value)
        assert answer.threshold == pytest.approx(
            SCALE * math.log(1.0 / own_beta(guard._ways.final.certificate))
        )
        assert (
            answer.low < answer.value - answer.threshold < 0.7 < answer.value + answer.threshold < answer.high
        )
        assert guard.final_predictions(scoring(0.7)) == answer._replace(replayed=True)
        told.add(answer.value)
    assert len(told) == 5


def test_a_finals_noise_is_another_than_that_of_other_answers_about_the_same(make_guard, scoring):
    noise = KeyedNoise(key_from_seed(0))
    law = DiscreteLaplace(SCALE * GRID)
    assert noise.draw(law, label="final", question=b"same") != noise.draw(
        law, label="answer", question=b"same"
    )


def test_several_reach_a_little_farther_each_with_noise_of_its_own(make_guard, scoring):
    shares = (0.7, 0.6, 0.8)
    one = make_guard(seed=3, final_noise=SCALE).final_predictions(scoring(0.7))
    answers = make_guard(seed=3, final_noise=SCALE).final_predictions([scoring(share) for share in shares])
    off = [answer.value - share for answer, share in zip(answers, shares, strict=True)]
    assert len({round(one, 9) for one in off}) == 3
    assert answers[0].value == one.value
    for answer in answers:
        assert answer.threshold == pytest.approx(one.threshold + SCALE * math.log(3))
        assert answer.high - answer.low > one.high - one.low


def test_final_width_foretells_it(make_guard, scoring):
    guard = make_guard(seed=1, final_noise=SCALE)
    answer = guard.final_predictions(scoring(0.7))
    assert make_guard(seed=1, final_noise=SCALE).final_width == pytest.approx(
        (answer.high - answer.low) / 2, abs=1e-3
    )
    assert make_guard(seed=1).final_width < guard.final_width - 0.9 * answer.threshold


def test_of_losses_in_other_units(make_guard):
    metric = mae(lower=-1.0, upper=3.0)
    guard = make_guard(y=np.zeros(ROWS), metric=metric, estimate=0.5, threshold=0.4, final_noise=0.02, seed=2)
    answer = guard.final_predictions(np.full(ROWS, 0.625))
    assert (
        0.0
        < abs(answer.value - 0.625)
        < answer.threshold
        == pytest.approx(0.02 * math.log(1.0 / own_beta(guard._ways.final.certificate)))
    )


def test_it_lasts_and_is_verified_and_cannot_be_changed(make_guard, reopen, ledger, scoring):
    with make_guard(ledger, final_noise=SCALE) as guard:
        guard.evaluate_predictions(scoring(0.7), prior=0.85)
        answers = guard.final_predictions([scoring(0.7), scoring(0.6)])
    assert verify(ledger).sound
    again = reopen(ledger)
    assert again.plan.final_noise == SCALE
    assert again.final_predictions([scoring(0.7), scoring(0.6)]) == [
        answer._replace(replayed=True) for answer in answers
    ]
    again.close()
    with pytest.raises(
        LedgerMismatchError, match=r"final_noise is 0\.004 in the ledger, and None was asked for"
    ):
        make_guard(ledger)
    recompute(ledger, 2)
    assert verify(ledger).sound
    sql(ledger, ("UPDATE answers SET threshold = threshold / 2 WHERE kind = 'final'",))
    seal_again(ledger)
    assert any("threshold" in problem for problem in verify(ledger).problems)


def test_one_of_several_metrics_is_verified(make_guard, ledger, labels):
    """Its noise reaches as far as that of all the answers together."""
    with make_guard(ledger, final_noise=SCALE) as guard:
        first, second = guard.final_predictions(labels, also=[guard.on("zero_one_loss", tolerance=0.2)])
        assert first.threshold == second.threshold > 0
    assert verify(ledger).sound


def test_a_rotated_guard_keeps_the_scale_and_draws_anew(make_guard, scoring, labels):
    guard = make_guard(final_noise=SCALE, seed=4)
    first = guard.final_predictions(scoring(0.7))
    y = 1 - labels
    second = guard.rotate(None, y).guard
    assert second.plan.final_noise == SCALE
    told = second.final_predictions(1 - scoring(0.7))
    assert told.value not in {0.7, first.value}
    assert isinstance(second, ReusableHoldout)
