"""The policies ladder, guess-and-check and gate: what each tells, what it charges, and what it refuses."""

import contextlib
from typing import get_args

import numpy as np
import pytest
from cases import for_each

from reusable_holdout import ReusableHoldout
from reusable_holdout.certainty import (
    THEORY,
    Policy,
)
from reusable_holdout.errors import BudgetError, Halted, InputError, LedgerMismatchError, ModelError
from reusable_holdout.metrics import mae

MECHANISMS = ["numeric-sparse", "noiseless"]
POLICIES = get_args(Policy)
NEW = ["ladder", "guess-and-check", "gate"]
LADDERS = {"ladder", "parameter-free-ladder"}
ALL = [*NEW, "parameter-free-ladder"]
EXACT = {"charges": 8}  # steps of the threshold; enough budget for a first best


class Crashing:
    """A model that fails on the holdout."""

    def predict(self, X):
        raise RuntimeError(X)


@pytest.fixture
def ladder(make_guard):
    """Without noise: a new best is told if and only if it is better by at least 0.1, in steps of 0.1."""
    return make_guard(policy="ladder", **EXACT)


@pytest.fixture
def gate(make_guard):
    return make_guard(policy="gate", charges=8)


def stated(policy, prior=0.7):
    """What a question of the policy must state."""
    return {} if policy in LADDERS else {"prior": prior}


def own(policy):
    """Settings that a policy leaves no choice of."""
    return {"threshold": None} if policy == "parameter-free-ladder" else {}


def untouched(guard):
    return guard.queries_asked == 0 and not len(guard.history())


# ---- the ladder


def test_a_ladder_tells_the_best_in_whole_steps_and_nothing_of_the_rest(ladder, scoring):
    told = [ladder.evaluate(scoring(score)) for score in (0.52, 0.55, 0.3, 0.59, 0.64, 0.45)]
    assert [answer.value for answer in told] == [0.5, 0.5, 0.5, 0.5, 0.6, 0.6]
    assert [answer.charged for answer in told] == [True, False, False, False, True, False]
    assert [answer.prior for answer in told] == [0.0, 0.5, 0.5, 0.5, 0.5, 0.6]


def test_an_agreed_answer_of_a_ladder_is_the_same_whatever_the_score(make_guard, scoring):
    """All scores below the step above the best give the same answer: nothing but the query's number differs."""
    answers = set()
    for score in (0.0, 0.2, 0.5, 0.599):
        guard = make_guard(policy="ladder", **EXACT)
        guard.evaluate(scoring(0.5))
        answers.add(guard.evaluate(scoring(score, 7)))
    (answer,) = answers
    assert (answer.value, answer.charged, answer.low) == (0.5, False, 0.0)
    assert answer.high > 0.6


def test_a_ladder_of_a_loss_descends(make_guard):
    y = np.zeros(2_000)
    guard = make_guard(policy="ladder", y=y, metric=mae(lower=0.0, upper=1.0), estimate=0.3, **EXACT)
    told = [guard.evaluate(np.full(2_000, score)) for score in (0.5, 0.45, 0.9, 0.22, 0.2)]
    assert [answer.value for answer in told] == [0.5, 0.5, 0.5, 0.3, 0.2]
    assert [answer.prior for answer in told] == [1.0, 0.5, 0.5, 0.5, 0.3]
    assert (told[1].high, told[2].high) == (1.0, 1.0)
    assert all(answer.low < score for answer, score in zip(told, (0.5, 0.45, 0.9, 0.22, 0.2), strict=True))


def test_the_same_file_gets_the_same_answer_free_whatever_is_best_by_now(ladder, scoring):
    first = ladder.evaluate(scoring(0.5))
    ladder.evaluate(scoring(0.7))
    again = ladder.evaluate(scoring(0.5))
    assert again == first._replace(replayed=True, charges_left=again.charges_left)
    (batch,) = ladder.evaluate([scoring(0.5)])
    assert batch == again
    assert ladder.queries_asked == 2


def test_a_ladder_at_the_bound_is_never_charged_again(make_guard, labels):
    guard = make_guard(policy="ladder", charges=20, noise=0.002, seed=3)
    best = guard.evaluate(labels)
    assert best.value == 1.0
    for k in range(10):
        flipped = labels.copy()
        flipped[k] ^= 1
        answer = guard.evaluate(flipped)
        assert (answer.value, answer.charged) == (1.0, False)


def test_a_failure_keeps_the_best_and_takes_a_charge(make_guard, scoring):
    guard = make_guard(policy="ladder", X=np.zeros((2_000, 1)), **EXACT)
    guard.evaluate(scoring(0.6))
    for _ in range(2):
        with pytest.raises(ModelError):
            guard.evaluate(Crashing())
    assert guard.queries_asked == 2
    history = guard.history()
    assert history["value"][0] == 0.6
    assert history["charged"].tolist() == [True, True]
    assert history.loc[1, ["value", "low", "high"]].isna().all()
    answer = guard.evaluate(scoring(0.69))
    assert (answer.prior, answer.value, answer.charged) == (0.6, 0.6, False)


def test_a_failure_before_all_else_leaves_the_worst_score_as_the_best(make_guard, scoring):
    guard = make_guard(policy="ladder", X=np.zeros((2_000, 1)), **EXACT)
    with pytest.raises(ModelError):
        guard.evaluate(Crashing())
    assert guard.history()["value"].isna().all()
    assert guard.evaluate(scoring(0.6)).value == 0.6


def test_a_ladder_of_two_charges_can_tell_two_bests(make_guard, scoring):
    guard = make_guard(policy="ladder", tolerance=0.1, charges=2, queries=100, threshold=None)
    assert guard.evaluate(scoring(0.5)).charges_left == 1
    assert guard.evaluate(scoring(0.9)).charged


def test_a_ladder_is_left_its_charges_whatever_its_steps(make_guard, scoring):
    guard = make_guard(policy="ladder", threshold=0.1, charges=6)
    told = [guard.evaluate(scoring(score)) for score in (0.31, 0.42, 0.63, 0.74, 0.85, 0.96)]
    assert [answer.told for answer in told] == [f"steps {steps}" for steps in (3, 1, 2, 1, 1, 1)]
    assert [answer.charges_left for answer in told] == [5, 4, 3, 2, 1, 0]


@for_each("steps", [1, 2, 5, 10])
def test_a_new_best_costs_by_the_steps_that_it_is_better(make_guard, scoring, steps):
    """Ten steps of 0.1: half the weight falls with the square, half is even; 3% is a failure's."""
    answer = make_guard(policy="ladder", **EXACT).evaluate(scoring(steps / 10))
    weight = 0.97 * (0.5 / (steps * (steps + 1)) + 0.5 / 10)
    assert (answer.way, answer.told, answer.value) == ("ladder", f"steps {steps}", steps / 10)
    assert answer.nats == pytest.approx(-np.log(weight))


# ---- the gate


def test_a_gate_says_whether_the_score_is_at_least_what_was_named(gate, scoring):
    yes = gate.evaluate(scoring(0.75), prior=0.7)
    no = gate.evaluate(scoring(0.65), prior=0.7)
    assert (yes.charged, yes.value, yes.high) == (True, 0.7, 1.0)
    assert (no.charged, no.value, no.low) == (False, 0.7, 0.0)
    assert yes.low < 0.7 < no.high
    assert yes.threshold == no.threshold == 0.0


def test_a_score_that_is_exactly_what_was_named_passes(make_guard, scoring):
    for right in range(1, 2_000, 97):
        guard = make_guard(policy="gate")
        assert not guard.evaluate(scoring(right / 2_000), prior=(right + 1) / 2_000).charged
        assert guard.evaluate(scoring(right / 2_000), prior=right / 2_000).charged


def test_a_gate_of_a_loss_accepts_what_is_at_most_the_named(make_guard):
    guard = make_guard(policy="gate", y=np.zeros(2_000), metric=mae(lower=0.0, upper=1.0), charges=8)
    yes = guard.evaluate(np.full(2_000, 0.25), prior=0.3)
    no = guard.evaluate(np.full(2_000, 0.35), prior=0.3)
    assert (yes.charged, yes.low, no.charged, no.high) == (True, 0.0, False, 1.0)
    assert no.low < 0.3 < yes.high


def test_a_gate_tells_one_bit(make_guard, scoring):
    """Whatever the score, there are two answers to a question, and what follows depends on no more."""
    seen = set()
    for score in (0.0, 0.1, 0.5, 0.69, 0.7, 0.71, 0.9, 1.0):
        guard = make_guard(policy="gate")
        first = guard.evaluate(scoring(score), prior=0.7)
        seen.add((first, guard.evaluate(scoring(0.6, 9), prior=0.5), guard.charges_left))
    assert len(seen) == 2
    assert {(first.way, first.charged, first.told) for first, _, _ in seen} == {
        ("gate", True, "cell 0"),
        ("gate", False, "agreed"),
    }
    assert {first.nats for first, _, _ in seen} == {0.0, THEORY.gate.nats[0]}


# ---- wrong use


@for_each("policy", ["thresholdout", "guess-and-check", "gate"])
def test_a_prior_must_be_stated_unless_the_policy_has_its_own(make_guard, labels, policy):
    guard = make_guard(policy=policy)
    with pytest.raises(InputError, match="a prior must be stated"):
        guard.evaluate(labels)
    with pytest.raises(InputError, match="a prior must be stated"):
        guard.evaluate([labels, 1 - labels])
    assert untouched(guard)


def test_each_series_of_a_ladder_has_a_best_of_its_own_and_all_share_the_budget(ladder, scoring):
    first = ladder.evaluate(scoring(0.6), series="a")
    same = ladder.evaluate(scoring(0.6), series="b")
    none = ladder.evaluate(scoring(0.6, 1), series="a")
    assert (first.charged, same.charged, none.charged) == (True, True, False)
    assert (first.prior, same.prior, none.prior) == (0.0, 0.0, first.value)
    assert not same.replayed
    assert ladder.evaluate(scoring(0.6), series="a").replayed
    (batch,) = ladder.evaluate([scoring(0.8)], series="b")
    assert (batch.prior, batch.charged) == (same.value, True)
    assert ladder.history()["series"].tolist() == ["a", "b", "a", "b"]
    assert ladder.history()["charged"].sum() == 3
    with pytest.raises(InputError, match="names must be text"):
        ladder.evaluate(scoring(0.6), series=7)


@for_each("policy", ["thresholdout", "guess-and-check", "gate"])
def test_other_policies_have_no_series(make_guard, labels, policy):
    guard = make_guard(policy=policy)
    for ask in (
        lambda: guard.evaluate(labels, prior=0.7, series="a"),
        lambda: guard.evaluate([labels], prior=[0.7], series="a"),
    ):
        with pytest.raises(InputError, match="belongs to a ladder"):
            ask()
    assert guard.queries_asked == 0


def test_a_ladder_takes_no_prior(ladder, labels):
    for prior in (0.7, 0.0, "cross-validation"):
        with pytest.raises(InputError, match="takes no prior"):
            ladder.evaluate(labels, prior=prior)
    with pytest.raises(InputError, match="takes no prior"):
        ladder.evaluate([labels], prior=[0.7])
    assert untouched(ladder)


@for_each("policy", ["thresholdout", "ladder", "gate"])
def test_a_tolerance_belongs_to_guess_and_check(make_guard, labels, policy):
    guard = make_guard(policy=policy)
    priors = {} if policy == "ladder" else {"priors": [0.7]}
    with pytest.raises(InputError, match="guess-and-check"):
        guard.evaluate(labels, tolerance=0.1, **stated(policy))
    with pytest.raises(InputError, match="guess-and-check"):
        guard.evaluate([labels], tolerance=[0.1], **priors)
    assert untouched(guard)


@for_each("policy", ["", "Ladder", "guess and check", None, 3])
def test_a_policy_that_does_not_exist_is_refused(make_guard, policy):
    with pytest.raises(InputError, match="policy is one of thresholdout, ladder, guess-and-check, gate"):
        make_guard(policy=policy)


def test_another_policy_is_another_ledger(make_guard, ledger):
    make_guard(ledger, policy="gate").close()
    with pytest.raises(LedgerMismatchError, match="cannot be changed"):
        make_guard(ledger, policy="ladder")


# ---- what all policies share


def noisy_settings(mechanism):
    scale = 0.0 if mechanism == "noiseless" else 0.004
    return {"mechanism": mechanism, "noise": scale, "seed": 4, "charges": 30, "threshold": 0.02}


@for_each("mechanism", MECHANISMS)
@for_each("policy", NEW)
def test_a_batch_decides_as_single_questions_do(make_guard, labels, policy, mechanism):
    """With noise as large as the deviations; a batch only shares the history before it."""
    rng = np.random.default_rng(5)
    wrong = rng.random((30, len(labels))) < np.linspace(0.5, 0.2, 30)[rng.permutation(30)][:, None]
    predictions = np.where(wrong, 1 - labels, labels)
    settings = {**noisy_settings(mechanism), "queries": 60}
    single, batch = (make_guard(policy=policy, **settings) for _ in range(2))
    priors = None if policy == "ladder" else [0.65] * 30
    alone = []
    with contextlib.suppress(Halted):
        alone.extend(single.evaluate(row, **stated(policy, 0.65)) for row in predictions)
    try:
        together = batch.evaluate(list(predictions), prior=priors)
    except Halted as halt:
        together = halt.answers
    assert [(a.value, a.charged, a.prior, a.threshold) for a in alone] == [
        (a.value, a.charged, a.prior, a.threshold) for a in together
    ]
    assert 0 < sum(answer.charged for answer in alone) < len(alone)
    for mine, theirs in zip(alone, together, strict=True):
        assert mine.low <= theirs.low + 1e-12  # the batch shares the history before it
        assert mine.high >= theirs.high - 1e-12


@for_each("policy", ALL)
def test_it_halts_when_the_queries_are_asked_and_replays_stay_free(make_guard, scoring, policy):
    guard = make_guard(policy=policy, **{"queries": 3, "charges": 3, **own(policy)})
    priors = None if policy in LADDERS else [0.7] * 4
    with pytest.raises(BudgetError, match="3 left of 3"):
        guard.evaluate([scoring(0.05, k) for k in range(4)], prior=priors)
    answers = [guard.evaluate(scoring(0.05, k), **stated(policy, 0.05)) for k in (0, 0, 0)]
    assert [answer.replayed for answer in answers] == [False, True, True]


@for_each("policy", ALL)
def test_it_halts_when_the_charges_are_spent(make_guard, scoring, policy):
    guard = make_guard(policy=policy, **{"charges": 1, **own(policy)})
    guard.evaluate(scoring(0.9), **stated(policy))
    assert guard.halt_reason == "charges"
    with pytest.raises(Halted, match=r"the only charge is spent \(on query 1\)"):
        guard.evaluate(scoring(0.6), **stated(policy))
    assert guard.evaluate(scoring(0.9), **stated(policy)).replayed


@for_each("policy", ALL)
def test_the_threshold_is_a_function_of_the_transcript(make_guard, scoring, policy):
    """Recomputed from what was released, without the holdout."""
    guard = make_guard(policy=policy, **{**EXACT, **own(policy)})
    for k, score in enumerate((0.5, 0.45, 0.65, 0.3)):
        told = guard.history()["value"].tolist()
        state = guard._state()._replace(value=told[-1] if told else None)
        answer = guard.evaluate(scoring(score, k), **stated(policy, 0.5))
        prior = guard._view.ways.main.prior(0.5, state)
        assert answer.prior == prior
        assert answer.threshold == guard._view.ways.main.threshold(prior, state, None)


def test_models_are_asked_under_each_policy(problem, make_guard):
    linear = pytest.importorskip("sklearn.linear_model").LogisticRegression()
    X_train, y_train, X, y = problem
    for policy in ALL:
        guard = make_guard(policy=policy, X=X, y=y, **{**EXACT, **own(policy)})
        prior = {"prior": 0.6} if policy == "gate" else {}
        answer = guard.evaluate(linear, X_train, y_train, **prior)
        assert isinstance(guard, ReusableHoldout)
        assert answer.low < 0.81 < answer.high  # the best there is has 1/2 + asin(sqrt(9/13))/pi = 0.813
        assert guard.evaluate(linear, X_train, y_train, **prior).replayed
