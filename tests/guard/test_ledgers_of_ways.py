"""Ledgers of every way to ask: resumed, shared by processes, drawn, verified; a forged answer is found."""

import pickle
import sqlite3

import numpy as np
import pytest
from cases import for_each
from joblib import Parallel, delayed

from reusable_holdout import verify
from reusable_holdout.errors import Halted, ModelError
from reusable_holdout.guard import released
from reusable_holdout.ledger import Row
from reusable_holdout.ledger.records import genesis, seal
from reusable_holdout.metrics import mae

WAYS = ["check", "gate", "claim"]
SHARED = {"charges": 20, "queries": 200}
BOARD = {"board": "claims", "threshold": None, "noise": None, "charges": 5}


class Crashing:
    """A model that fails on the holdout."""

    def predict(self, X):
        raise RuntimeError(X)


@pytest.fixture
def make(make_guard):
    """Guards by the way that they are asked."""

    def guard(way, ledger=None, **changes):
        own = {"check": {"threshold": 0.05}, "gate": {"gates": True, "threshold": None}, "claim": BOARD}
        return make_guard(ledger, **{**SHARED, **changes, **own[way]})

    return guard


def ask(guard, way, subject, prior, name=None):
    if way == "gate":
        return guard.gate(subject, prior, name=name)
    return guard.evaluate(subject, prior=prior, name=name)


def ask_much(guard, way, scoring):
    """Single questions, a failure, a batch; up to a halt."""
    try:
        for k, score in enumerate((0.5, 0.55, 0.72, 0.6)):
            ask(guard, way, scoring(score, k), 0.6, name=str(k))
        with pytest.raises(ModelError):
            ask(guard, way, Crashing(), 0.7)
        asked = [scoring(score, 20 + k) for k, score in enumerate((0.7, 0.81, 0.6, 0.9, 0.88, 0.95))]
        ask(guard, way, asked, [0.75] * 6)
        ask(guard, way, scoring(0.97), 0.7)
    except Halted:
        pass


def rewrite(ledger, **rows):
    """What a forger who has read the source does: change rows, `q3={"value": ...}`, and seal all again."""
    connection = sqlite3.connect(ledger, isolation_level=None)
    connection.execute("PRAGMA ignore_check_constraints = ON")
    for query, changes in rows.items():
        for column, value in changes.items():
            connection.execute(f"UPDATE answers SET {column} = ? WHERE query = ?", [value, int(query[1:])])
    columns = ", ".join(Row._fields)
    found = [Row(*row) for row in connection.execute(f"SELECT {columns} FROM answers ORDER BY query")]
    sealed = {row[0] for row in connection.execute("SELECT query FROM answers WHERE seal IS NOT NULL")}
    previous, commit = genesis(connection.execute("SELECT text FROM configuration").fetchone()[0]), []
    for row in found:
        commit.append(row)
        if row.query in sealed:
            previous, commit = seal(previous, commit), []
            connection.execute("UPDATE answers SET seal = ? WHERE query = ?", [previous, row.query])
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


# ---- verification


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("noise", [0.0, 0.003])
def test_the_ledger_of_every_way_is_sound(make, ledger, scoring, way, noise):
    guard = make(way, ledger, X=np.zeros((2_000, 1)), noise=noise, seed=5)
    ask_much(guard, way, scoring)
    history = guard.history()
    found = verify(ledger)
    assert (found.problems, found.charges) == ([], int(history["charged"].sum()))
    assert 3 <= found.charges < found.queries
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
    wish = {"tolerance": 0.2, "queries": 100, "charges": None, "threshold": None}
    guard = make_guard(ledger, **wish)
    for k, score in enumerate((0.7, 0.5, 0.72)):
        guard.evaluate(scoring(score, k), prior=0.7, tolerance=tolerance)
    guard.evaluate([scoring(0.6, 7), scoring(0.5, 8)], prior=[0.7, 0.7], tolerance=[0.15, 0.2])
    assert verify(ledger).problems == []


@pytest.mark.parametrize(
    "forged", [{"value": 0.61}, {"high": 0.9}, {"prior": 0.65}, {"nats": 0.0}, {"charged": 0}]
)
def test_a_forged_yes_of_a_gate_is_found(make, ledger, scoring, forged):
    with make("gate", ledger) as guard:
        guard.gate(scoring(0.75), 0.6)
    rewrite(ledger)
    assert verify(ledger).problems == []
    rewrite(ledger, q1=forged)
    assert verify(ledger).problems


@pytest.mark.parametrize("way", WAYS)
def test_a_ledger_is_not_that_of_a_plan_for_other_ways(make, ledger, scoring, way):
    with make(way, ledger, X=np.zeros((2_000, 1))) as guard:
        ask_much(guard, way, scoring)
    asks = {"check": "all", "gate": "gates", "claim": "claims"}
    connection = sqlite3.connect(ledger)
    text = connection.execute("SELECT text FROM configuration").fetchone()[0]
    for other in {*asks.values()} - {asks[way]}:
        changed = text.replace(f'"asks":"{asks[way]}"', f'"asks":"{other}"')
        assert changed != text
        connection.execute("UPDATE configuration SET text = ?", [changed])
        connection.commit()
        rewrite(ledger)
        assert verify(ledger).problems
    connection.close()


# ---- resuming and sharing


@pytest.mark.parametrize("way", WAYS)
def test_a_guard_resumes_where_it_was(make, reopen, ledger, scoring, way):
    through = make(way, ledger.with_name("other.db"), noise=0.003, seed=5)
    scores = [0.5, 0.62, 0.58, 0.75, 0.7, 0.9]
    expected = [ask(through, way, scoring(score, k), 0.7) for k, score in enumerate(scores)]
    make(way, ledger, noise=0.003, seed=5, another_budget=True).close()
    answers = []
    for k, score in enumerate(scores):
        guard = reopen(ledger, seed=5)
        assert guard.plan.asks == through.plan.asks
        answers.append(ask(guard, way, scoring(score, k), 0.7))
        guard.close()
    assert [answer._replace(another_budget=False) for answer in answers] == expected
    assert verify(ledger).problems == []


@pytest.mark.parametrize("way", WAYS)
def test_a_guard_goes_to_workers_with_its_plan(make, ledger, scoring, way):
    guard = make(way, ledger)
    assert pickle.loads(pickle.dumps(guard)).plan == guard.plan
    answers = Parallel(n_jobs=2, backend="loky")(
        delayed(ask)(guard, way, scoring(0.7 + 0.02 * k, k), 0.65) for k in range(4)
    )
    assert sorted(answer.query for answer in answers) == list(range(1, 5))
    assert ask(guard, way, scoring(0.7), 0.65).replayed
    assert verify(ledger).problems == []


# ---- looking at it


@for_each("way", WAYS)
def test_a_history_can_be_drawn(make, scoring, way):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    guard = make(way, X=np.zeros((2_000, 1)))
    guard.plot()
    ask_much(guard, way, scoring)
    axes = guard.plot()
    axes.figure.canvas.draw()
    pyplot.close("all")


@for_each("way", WAYS)
def test_a_history_says_all_that_was_answered(make, scoring, way):
    guard = make(way)
    answers = [
        ask(guard, way, scoring(score, k), 0.65, name=str(k)) for k, score in enumerate((0.5, 0.6, 0.72))
    ]
    history = guard.history()
    for name in ("value", "charged", "low", "high", "prior", "query", "charges_left", "threshold", "name"):
        assert history[name].tolist() == [getattr(answer, name) for answer in answers]
