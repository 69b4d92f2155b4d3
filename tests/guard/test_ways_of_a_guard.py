"""Checks, gates and claims: what each tells, what it charges, what it refuses, and what all of them share."""

import contextlib

import numpy as np
import pytest
from cases import for_each

from reusable_holdout import Question, ReusableHoldout
from reusable_holdout.certainty import THEORY
from reusable_holdout.errors import BudgetError, Halted, InputError, LedgerMismatchError
from reusable_holdout.metrics import mae

WAYS = ["check", "gate", "claim"]
BOARD = {"board": "claims", "threshold": None, "noise": None, "tolerance": None}


@pytest.fixture
def make(make_guard):
    """Guards by the way that they are asked."""

    def guard(way, **changes):
        settings = {"gate": {"gates": True, "threshold": None}, "claim": BOARD}.get(way, {})
        return make_guard(**{**changes, **settings})

    return guard


@pytest.fixture
def gate(make):
    return make("gate", charges=8)


def ask(guard, way, subject, prior):
    return guard.gate(subject, prior) if way == "gate" else guard.evaluate(subject, prior=prior)


def untouched(guard):
    return guard.queries_asked == 0 and not len(guard.history())


# ---- the gate


def test_a_gate_says_whether_the_score_is_at_least_what_was_named(gate, scoring):
    yes = gate.gate(scoring(0.75), 0.7)
    no = gate.gate(scoring(0.65), 0.7)
    assert (yes.charged, yes.value, yes.high) == (True, 0.7, 1.0)
    assert (no.charged, no.value, no.low) == (False, 0.7, 0.0)
    assert yes.low < 0.7 < no.high
    assert yes.threshold == no.threshold == 0.0


def test_a_score_that_is_exactly_what_was_named_passes(make, scoring):
    for right in range(1, 2_000, 97):
        guard = make("gate")
        assert not guard.gate(scoring(right / 2_000), (right + 1) / 2_000).charged
        assert guard.gate(scoring(right / 2_000), right / 2_000).charged


def test_a_gate_of_a_loss_accepts_what_is_at_most_the_named(make):
    guard = make("gate", y=np.zeros(2_000), metric=mae(lower=0.0, upper=1.0), charges=8)
    yes = guard.gate(np.full(2_000, 0.25), 0.3)
    no = guard.gate(np.full(2_000, 0.35), 0.3)
    assert (yes.charged, yes.low, no.charged, no.high) == (True, 0.0, False, 1.0)
    assert no.low < 0.3 < yes.high


def test_a_gate_tells_one_bit(make, scoring):
    """Whatever the score, there are two answers to a question, and what follows depends on no more."""
    seen = set()
    for score in (0.0, 0.1, 0.5, 0.69, 0.7, 0.71, 0.9, 1.0):
        guard = make("gate")
        first = guard.gate(scoring(score), 0.7)
        seen.add((first, guard.gate(scoring(0.6, 9), 0.5), guard.charges_left))
    assert len(seen) == 2
    assert {(first.way, first.charged, first.told) for first, _, _ in seen} == {
        ("gate", True, "yes"),
        ("gate", False, "no"),
    }
    assert {first.nats for first, _, _ in seen} == {0.0, THEORY.gate.nats[0]}


def test_a_gate_by_the_score_alone_takes_no_tolerance_of_a_question(gate, scoring):
    with pytest.raises(InputError, match="a question's own tolerance"):
        gate.gate(scoring(0.7), 0.7, tolerance=0.1)
    assert untouched(gate)


# ---- wrong use


def test_a_prior_must_be_stated(make, labels):
    for way in ("check", "claim"):
        guard = make(way, another_budget=True)
        for subject in (labels, [labels, 1 - labels]):
            with pytest.raises(InputError, match="a prior must be stated"):
                guard.evaluate(subject)
        assert untouched(guard)


@for_each("way", ["check", "gate"])
def test_series_belong_to_a_board(make, labels, way):
    guard = make(way, another_budget=True)
    for subject, prior in ((labels, 0.7), ([labels], [0.7])):
        with pytest.raises(InputError, match="belongs to a board of claims"):
            guard.evaluate(subject, prior=prior, series="a") if way == "check" else guard.ask(
                [Question("gate", subject, prior, series="a")]
            )
    assert untouched(guard)


@for_each("board", ["", "Claims", "ladder", 3])
def test_a_board_that_does_not_exist_is_refused(make_guard, board):
    with pytest.raises(InputError, match='board must be "claims"'):
        make_guard(board=board)


def test_a_plan_for_other_ways_is_another_budget(make_guard, ledger):
    make_guard(ledger, gates=True, threshold=None).close()
    with pytest.raises(LedgerMismatchError, match="cannot be changed"):
        make_guard(ledger, threshold=None)


# ---- what all ways share


@for_each("noise", [0.0, 0.004])
@for_each("way", ["check", "gate"])
def test_a_batch_decides_as_single_questions_do(make, labels, way, noise):
    """With noise as large as the deviations; a batch only shares the history before it."""
    rng = np.random.default_rng(5)
    wrong = rng.random((30, len(labels))) < np.linspace(0.5, 0.2, 30)[rng.permutation(30)][:, None]
    predictions = np.where(wrong, 1 - labels, labels)
    settings = {"noise": noise, "seed": 4, "charges": 30, "threshold": 0.02, "queries": 60}
    single, batch = (make(way, **settings) for _ in range(2))
    alone = []
    with contextlib.suppress(Halted):
        alone.extend(ask(single, way, row, 0.65) for row in predictions)
    try:
        together = ask(batch, way, list(predictions), [0.65] * 30)
    except Halted as halt:
        together = halt.answers
    assert [(a.value, a.charged, a.prior, a.threshold) for a in alone] == [
        (a.value, a.charged, a.prior, a.threshold) for a in together
    ]
    assert 0 < sum(answer.charged for answer in alone) < len(alone)
    for mine, theirs in zip(alone, together, strict=True):
        assert mine.low <= theirs.low + 1e-12  # the batch shares the history before it
        assert mine.high >= theirs.high - 1e-12


@for_each("way", ["check", "gate"])
def test_it_halts_when_the_queries_are_asked_and_replays_stay_free(make, scoring, way):
    guard = make(way, queries=3, charges=3)
    with pytest.raises(BudgetError, match="3 left of 3"):
        ask(guard, way, [scoring(0.05, k) for k in range(4)], [0.7] * 4)
    answers = [ask(guard, way, scoring(0.05, k), 0.06) for k in (0, 0, 0)]
    assert [answer.replayed for answer in answers] == [False, True, True]


@for_each("way", ["check", "gate"])
def test_it_halts_when_the_charges_are_spent(make, scoring, way):
    guard = make(way, charges=1)
    ask(guard, way, scoring(0.9), 0.7)
    assert guard.halt_reason == "charges"
    with pytest.raises(Halted, match=r"the only charge is spent \(on query 1\)"):
        ask(guard, way, scoring(0.6), 0.7)
    assert ask(guard, way, scoring(0.9), 0.7).replayed


@for_each("way", WAYS)
def test_models_are_asked_in_each_way(problem, make, way):
    linear = pytest.importorskip("sklearn.linear_model").LogisticRegression()
    X_train, y_train, X, y = problem
    guard = make(way, X=X, y=y, charges=8)
    linear.fit(X_train, y_train)
    answer = ask(guard, way, linear, 0.6)
    assert isinstance(guard, ReusableHoldout)
    assert answer.low < 0.81 < answer.high  # the best there is has 1/2 + asin(sqrt(9/13))/pi = 0.813
    assert ask(guard, way, linear, 0.6).replayed
