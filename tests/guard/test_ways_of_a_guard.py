"""Checks, gates and claims: what each tells, charges and refuses, what all of them share, and their ledgers."""

import contextlib
import pickle

import numpy as np
import pytest
from cases import for_each, refuses
from guard.counting import Crashing
from guard.forging import all_rows, seal_again, sql
from joblib import Parallel, delayed
from sklearn.linear_model import LogisticRegression

from reusable_holdout import Question, verify
from reusable_holdout.certainty import THEORY
from reusable_holdout.errors import BudgetError, Halted, InputError, LedgerMismatchError, ModelError
from reusable_holdout.guard import released
from reusable_holdout.metrics import mae

WAYS = ["check", "gate", "claim"]
BOARD = {"board": "claims", "threshold": None, "noise": None, "tolerance": None}


SHARED = {"charges": 20, "queries": 200}


@pytest.fixture
def make(make_guard):
    """Guards by the way that they are asked."""

    def guard(way, ledger=None, **changes):
        settings = {"gate": {"gates": True, "threshold": None}, "claim": BOARD}.get(way, {})
        return make_guard(ledger, **{**changes, **settings})

    return guard


@pytest.fixture
def gate(make):
    return make("gate", charges=8)


def ask(guard, way, subject, prior, name=None):
    asked = (
        guard.gate if way == "gate" else lambda one, prior, name: guard.evaluate(one, prior=prior, name=name)
    )
    return asked(subject, prior, name=name)


def ask_much(guard, way, scoring):
    """Single questions, a failure, a batch; up to a halt."""
    with contextlib.suppress(Halted):
        for k, score in enumerate((0.5, 0.55, 0.72, 0.6)):
            ask(guard, way, scoring(score, k), 0.6, name=str(k))
        refuses(ModelError, "", ask, guard, way, Crashing(), 0.7)
        asked = [scoring(score, 20 + k) for k, score in enumerate((0.7, 0.81, 0.6, 0.9, 0.88, 0.95))]
        ask(guard, way, asked, [0.75] * 6)
        ask(guard, way, scoring(0.97), 0.7)


def untouched(guard):
    return guard.queries_asked == 0 and not len(guard.history())


# ---- the gate


def test_a_gate_says_whether_the_score_is_at_least_what_was_named(gate, scoring):
    yes = gate.gate(scoring(0.75), 0.7)
    no = gate.gate(scoring(0.65), 0.7)
    assert (yes.charged, yes.value, yes.low, yes.high) == (True, 0.7, 0.7, 1.0)
    assert (no.charged, no.value, no.low, no.high) == (False, 0.7, 0.0, 1.0)
    assert yes.threshold == no.threshold == 0.0


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
    refuses(InputError, "a question's own tolerance", gate.gate, scoring(0.7), 0.7, tolerance=0.1)
    assert untouched(gate)


# ---- wrong use


def test_a_prior_must_be_stated(make, labels):
    for way in ("check", "claim"):
        guard = make(way, another_budget=True)
        for subject in (labels, [labels, 1 - labels]):
            refuses(InputError, "a prior must be stated", guard.evaluate, subject)
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
    refuses(InputError, 'board must be "claims"', make_guard, board=board)
    refuses(InputError, "tolerance", make_guard, **BOARD | {"charges": None, "tolerance": 0.1})


def test_a_plan_for_other_ways_is_another_budget(make_guard, ledger):
    make_guard(ledger, gates=True, threshold=None).close()
    refuses(LedgerMismatchError, "cannot be changed", make_guard, ledger, threshold=None)


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
    alone, named = [], 0.65 if way == "check" else 0.5
    with contextlib.suppress(Halted):
        alone.extend(ask(single, way, row, named) for row in predictions)
    try:
        together = ask(batch, way, list(predictions), [named] * 30)
    except Halted as halt:
        together = halt.answers
    assert [(a.value, a.charged, a.prior, a.threshold) for a in alone] == [
        (a.value, a.charged, a.prior, a.threshold) for a in together
    ]
    assert 0 < sum(answer.charged for answer in alone) < len(alone)
    for mine, theirs in zip(alone, together, strict=True):
        assert mine.low <= theirs.low + 1e-12  # the batch shares the history before it
        assert mine.high >= theirs.high - 1e-12
    if way == "gate":
        return  # whose intervals do not depend on the history
    assert any(mine.low < theirs.low - 1e-6 for mine, theirs in zip(alone, together, strict=True))


@for_each("way", ["check", "gate"])
def test_it_halts_when_the_queries_are_asked_and_replays_stay_free(make, scoring, way):
    guard = make(way, queries=3, charges=3)
    refuses(BudgetError, "3 left of 3", ask, guard, way, [scoring(0.05, k) for k in range(4)], [0.7] * 4)
    answers = [ask(guard, way, scoring(0.05, k), 0.06) for k in (0, 0, 0)]
    assert [answer.replayed for answer in answers] == [False, True, True]


@for_each("way", [*WAYS, "reveal", "choose", "final", "compare"])
def test_models_are_asked_in_each_way(problem, make, way):
    """Beside one that is worse, where two are asked about; with a prior from cross-validation where there is one."""
    X_train, y_train, X, y = problem
    guard = make(way, X=X, y=y, charges=8, reveals=1, choices=[2])
    model = LogisticRegression().fit(X_train, y_train)
    worse = LogisticRegression().fit(X_train * [0, 0, 0, 1], y_train)
    asks = {
        "check": lambda **prior: guard.evaluate(model, X_train, y_train, **prior),
        "claim": lambda **prior: guard.evaluate(model, X_train, y_train, **prior),
        "gate": lambda **_: guard.gate(model, 0.6),
        "reveal": lambda **prior: guard.reveal(model, X_train, y_train, **prior),
        "choose": lambda **_: guard.choose([worse, model], [0.5, 0.8]).answer,
        "final": lambda **_: guard.final([model, worse])[0],
        "compare": lambda **prior: guard.compare(model, worse, X_train, y_train, **prior),
    }
    answer, truth = asks[way](), model.score(X, y) - (worse.score(X, y) if way == "compare" else 0.0)
    assert answer.low <= truth <= answer.high
    assert guard.history()["way"].tolist()[0] == answer.way == way
    pair = "LogisticRegression less LogisticRegression"
    assert answer.name == {"compare": pair, "choose": ""}.get(way, "LogisticRegression")
    assert asks[way](prior=answer.prior).replayed
    if way == "choose":
        assert answer.told.startswith("candidate 1 of 2, rank 1")


# ---- their ledgers


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("noise", [0.0, 0.003])
def test_the_ledger_of_every_way_is_sound_and_can_be_drawn(make, ledger, scoring, way, noise):
    guard = make(way, ledger, X=np.zeros((2_000, 1)), noise=noise, seed=5, **SHARED | {"threshold": 0.05})
    guard.plot()
    ask_much(guard, way, scoring)
    guard.plot().figure.canvas.draw()
    pytest.importorskip("matplotlib.pyplot").close("all")
    history, found = guard.history(), verify(ledger)
    assert (found.problems, found.charges) == ([], int(history["charged"].sum()))
    assert (2 if way == "gate" else 3) <= found.charges < found.queries
    assert released(ledger).history.equals(history)


@pytest.mark.parametrize("way", ["check", "gate"])
def test_the_ledger_of_a_plan_by_tolerance_and_of_a_loss_is_sound(make_guard, ledger, way):
    y, wish = np.zeros(2_000), {"tolerance": 0.6, "charges": None, "threshold": None}
    metric = mae(lower=-1.0, upper=3.0)
    guard = make_guard(ledger, y=y, metric=metric, gates=way == "gate", queries=60, estimate=0.5, **wish)
    answers = ask(guard, way, list(np.outer([0.5, 1.5, 0.7, 0.1, 0.6, 0.2], np.ones(2_000))), [0.7] * 6)
    assert verify(ledger).problems == []
    assert 0 < sum(answer.charged for answer in answers) < 6


@pytest.mark.parametrize("tolerance", [None, 0.25])
def test_a_ledger_of_tolerances_is_sound(make_guard, ledger, scoring, tolerance):
    guard = make_guard(ledger, tolerance=0.2, queries=100, charges=None, threshold=None)
    for k, score in enumerate((0.7, 0.5, 0.72)):
        guard.evaluate(scoring(score, k), prior=0.7, tolerance=tolerance)
    guard.evaluate([scoring(0.6, 7), scoring(0.5, 8)], prior=[0.7, 0.7], tolerance=[0.15, 0.2])
    assert verify(ledger).problems == []


@pytest.mark.parametrize("way", WAYS)
def test_a_ledger_is_not_that_of_a_plan_for_other_ways(make, ledger, scoring, way):
    with make(way, ledger, X=np.zeros((2_000, 1)), **SHARED) as guard:
        ask_much(guard, way, scoring)
    asks, text = {"check": "all", "gate": "gates", "claim": "claims"}, all_rows(ledger)[0]
    for other in {*asks.values()} - {asks[way]}:
        changed = text.replace(f'"asks":"{asks[way]}"', f'"asks":"{other}"')
        assert changed != text
        sql(ledger, ("UPDATE configuration SET text = ?", changed))
        seal_again(ledger)
        assert verify(ledger).problems


@pytest.mark.parametrize("way", WAYS)
def test_a_guard_resumes_where_it_was_and_its_history_says_all(make, reopen, ledger, scoring, way):
    settings = {"noise": 0.003, "seed": 5, **SHARED}
    through, scores = make(way, ledger.with_name("other.db"), **settings), [0.5, 0.62, 0.58, 0.75, 0.7, 0.9]
    expected = [ask(through, way, scoring(score, k), 0.7, name=str(k)) for k, score in enumerate(scores)]
    history = through.history()
    for name in ("value", "charged", "low", "high", "prior", "query", "charges_left", "threshold", "name"):
        assert history[name].tolist() == [getattr(answer, name) for answer in expected]
    make(way, ledger, another_budget=True, **settings).close()
    answers = []
    for k, score in enumerate(scores):
        with reopen(ledger, seed=5) as guard:
            assert guard.plan.asks == through.plan.asks
            answers.append(ask(guard, way, scoring(score, k), 0.7, name=str(k)))
    assert [answer._replace(another_budget=False) for answer in answers] == expected
    assert verify(ledger).problems == []


@pytest.mark.parametrize("way", WAYS)
def test_a_guard_goes_to_workers_with_its_plan(make, ledger, scoring, way):
    guard = make(way, ledger, **SHARED)
    assert pickle.loads(pickle.dumps(guard)).plan == guard.plan
    answers = Parallel(n_jobs=2, backend="loky")(
        delayed(ask)(guard, way, scoring(0.7 + 0.02 * k, k), 0.65) for k in range(4)
    )
    assert sorted(answer.query for answer in answers) == list(range(1, 5))
    assert ask(guard, way, scoring(0.7), 0.65).replayed
    assert verify(ledger).problems == []


# ---- what is asked for

ASKED_FOR = {
    "reveal": (lambda guard, one: guard.reveal(one, prior=0.65, name="which?"), "revealed"),
    "choose": (lambda guard, one: guard.choose([one, 1 - one], [0.65, 0.3], name="which?"), "chosen"),
    "final": (lambda guard, one: guard.final(one, name="which?"), "final"),
}


@pytest.mark.parametrize("way", ASKED_FOR)
def test_what_is_asked_for_stands_in_history_plot_and_ledger(make_guard, reopen, ledger, scoring, way):
    ask_for, word = ASKED_FOR[way]
    guard, heard = make_guard(ledger, reveals=3, choices=[2]), []
    guard.subscribe(heard.append)
    whole = [guard.evaluate(scoring(0.7), prior=0.7), ask_for(guard, scoring(0.6))]
    ask_for(guard, scoring(0.6))
    answers = [getattr(one, "answer", one) for one in whole]
    assert heard == [[one] for one in answers]
    assert str(answers[1]).endswith(f"({word}; query 2, 3 charges left)")
    history = guard.history()
    assert history["asked"].tolist() == [1, {"reveal": 2, "choose": 3, "final": 1}[way]]
    for column in {*history} & {*answers[0]._fields}:
        found = [None if one != one else one for one in history[column].tolist()]
        assert found == [getattr(answer, column) for answer in answers]
    (drawn,) = (line for line in guard.plot().lines if line.get_label() == "reveal, choice, final")
    assert drawn.get_xydata().tolist() == [[2.0, answers[1].value]]
    pytest.importorskip("matplotlib.pyplot").close("all")
    guard.close()
    assert verify(ledger).problems == []
    again = ask_for(reopen(ledger), scoring(0.6))
    assert getattr(again, "answer", again) == answers[1]._replace(replayed=True)
    assert getattr(again, "others", None) == getattr(whole[1], "others", None)
