"""Ledgers of every policy: resumed, shared by processes, drawn, verified; a forged ladder is found."""

import contextlib
import pickle
import sqlite3

import numpy as np
import pytest
from cases import for_each
from children import Child
from joblib import Parallel, delayed

from reusable_holdout import verify
from reusable_holdout.errors import Halted, ModelError
from reusable_holdout.guard import released
from reusable_holdout.ledger import Row
from reusable_holdout.ledger.records import genesis, seal
from reusable_holdout.metrics import mae

POLICIES = ["thresholdout", "ladder", "guess-and-check", "gate"]
SHARED = {"threshold": 0.05, "charges": 20, "queries": 200}

_CLIMB = """
import sys
import numpy as np
from reusable_holdout import ReusableHoldout
labels = np.random.default_rng(0).integers(0, 2, 2_000)
guard = ReusableHoldout.open(sys.argv[1], None, labels)
print(guard.policy, flush=True)
sys.stdin.readline()
for right in range(int(sys.argv[2]), 1_900, 100):
    wrong = np.roll(np.arange(2_000) >= right, int(sys.argv[3]))
    print(guard.evaluate(np.where(wrong, 1 - labels, labels)).value, flush=True)
"""


class Crashing:
    """A model that fails on the holdout."""

    def predict(self, X):
        raise RuntimeError(X)


def stated(policy, prior=0.7):
    return {} if policy == "ladder" else {"prior": prior}


def ask_much(guard, scoring):
    """Single questions, a failure, a batch; up to a halt."""
    policy = guard.policy
    try:
        for k, score in enumerate((0.5, 0.55, 0.72, 0.6)):
            guard.evaluate(scoring(score, k), **stated(policy, 0.6), name=str(k))
        with pytest.raises(ModelError):
            guard.evaluate(Crashing(), **stated(policy))
        asked = [scoring(score, 20 + k) for k, score in enumerate((0.7, 0.81, 0.6, 0.9, 0.88, 0.95))]
        guard.evaluate(list(asked), prior=None if policy == "ladder" else [0.75] * 6)
        guard.evaluate(scoring(0.97), **stated(policy))
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


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("noise", [0.0, 0.003])
@pytest.mark.parametrize("mechanism", ["numeric-sparse", "target-charging"])
def test_the_ledger_of_every_policy_is_sound(make_guard, ledger, scoring, policy, noise_scale, mechanism):
    settings = {**SHARED, "noise": noise_scale, "mechanism": mechanism, "seed": 5}
    guard = make_guard(ledger, X=np.zeros((2_000, 1)), policy=policy, **settings)
    ask_much(guard, scoring)
    history = guard.history()
    found = verify(ledger)
    assert (found.problems, found.charges) == ([], int(history["charged"].sum()))
    assert 3 <= found.charges < found.queries
    assert released(ledger).history.equals(history)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_ledger_of_a_plan_by_tolerance_and_of_a_loss_is_sound(make_guard, ledger, policy):
    y, wish = np.zeros(2_000), {"tolerance": 0.6, "charges": None, "threshold": None}
    metric = mae(lower=-1.0, upper=3.0)
    guard = make_guard(ledger, y=y, metric=metric, policy=policy, queries=60, estimate=0.5, **wish)
    priors = None if policy == "ladder" else [0.7] * 6
    answers = guard.evaluate(list(np.outer([0.5, 1.5, 0.7, 0.1, 0.6, 0.2], np.ones(2_000))), prior=priors)
    assert verify(ledger).problems == []
    assert 0 < sum(answer.charged for answer in answers) < 6


@pytest.mark.parametrize("tolerance", [None, 0.25])
def test_a_ledger_of_tolerances_is_sound(make_guard, ledger, scoring, tolerance):
    wish = {"tolerance": 0.2, "queries": 100, "charges": None, "threshold": None}
    guard = make_guard(ledger, policy="guess-and-check", **wish)
    for k, score in enumerate((0.7, 0.5, 0.72)):
        guard.evaluate(scoring(score, k), prior=0.7, tolerance=tolerance)
    guard.evaluate([scoring(0.6, 7), scoring(0.5, 8)], prior=[0.7, 0.7], tolerance=[0.15, 0.2])
    assert verify(ledger).problems == []


def test_a_ledger_of_guesses_at_a_small_stated_threshold_is_sound(make_guard, ledger, scoring):
    guard = make_guard(ledger, policy="guess-and-check", threshold=0.01)
    guard.evaluate(scoring(0.7), prior=0.7)
    assert verify(ledger).problems == []


FORGED = {  # rows of 0.5 (charged), 0.55, 0.72 (charged), 0.6: bests 0.5, 0.5, 0.7, 0.7
    "a prior that is not the best before": {"q2": {"prior": 0.45, "value": 0.45}},
    "a first prior that is not the start": {"q1": {"prior": 0.1}},
    "a best that was beaten in the row before": {"q4": {"prior": 0.5, "value": 0.5}},
    "an improvement of half a step": {"q3": {"value": 0.725}, "q4": {"prior": 0.725, "value": 0.725}},
    "an improvement that is none": {"q3": {"value": 0.45}, "q4": {"prior": 0.45, "value": 0.45}},
    "a step more than was paid for": {"q3": {"value": 0.75}, "q4": {"prior": 0.75, "value": 0.75}},
    "a value of its own for what is no new best": {"q4": {"value": 0.6}},
    "an interval that is closed to the bad side": {"q4": {"low": 0.5}},
    "a good end that is better": {"q4": {"high": 0.71}},
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_ladder_is_found(make_guard, ledger, scoring, name):
    with make_guard(ledger, policy="ladder", **SHARED) as guard:
        for k, score in enumerate((0.5, 0.55, 0.72, 0.6)):
            guard.evaluate(scoring(score, k))
        assert guard.history()["value"].tolist() == [0.5, 0.55, 0.7, 0.7]
    rewrite(ledger)
    assert verify(ledger).problems == []
    rewrite(ledger, **FORGED[name])
    assert verify(ledger).problems


def test_a_ladder_whose_ledger_was_replaced_climbs_from_what_stands_there(make_guard, ledger, scoring):
    guard = make_guard(ledger, policy="ladder", **SHARED)
    low = guard.evaluate_predictions(scoring(0.55)).value
    assert guard.evaluate_predictions(scoring(0.8)).value > low
    assert guard.evaluate_predictions(scoring(0.5, 1)).prior > low  # it has looked behind the second row
    with contextlib.closing(sqlite3.connect(ledger)) as database, database:
        database.execute("DELETE FROM answers WHERE query > 1")  # as an older copy is
    for variant in (2, 3, 4):  # up to the number of rows that it has seen
        assert guard.evaluate_predictions(scoring(0.5, variant)).prior == low
    assert verify(ledger).problems == []


@pytest.mark.parametrize("prior", [0.5, 0.65])
def test_a_ladder_that_forgets_its_best_is_found_though_all_else_follows(make_guard, ledger, scoring, prior):
    """A forger who also recomputes the interval: only the order of the bests gives it away."""
    with make_guard(ledger, policy="ladder", **SHARED) as guard:
        for k, score in enumerate((0.5, 0.55, 0.72, 0.6)):
            answer = guard.evaluate(scoring(score, k))
        kind, row = guard._view.ways.main, guard.history().iloc[-1]
        length = kind.length(guard._state())
        honest = kind.agreed(answer.prior, answer.threshold, length)
        assert (row["low"], row["high"]) == pytest.approx(tuple(honest), abs=1e-12)
        forged = kind.agreed(prior, answer.threshold, length)
    rewrite(ledger, q4={"prior": prior, "value": prior, "low": float(forged.low), "high": float(forged.high)})
    assert verify(ledger).problems == ["query 4: its prior is not the best answer before it"]


@pytest.mark.parametrize(
    "forged", [{"value": 0.61}, {"high": 0.9}, {"prior": 0.65}, {"nats": 0.0}, {"charged": 0}]
)
def test_a_forged_yes_of_a_gate_is_found(make_guard, ledger, scoring, forged):
    with make_guard(ledger, policy="gate") as guard:
        guard.evaluate(scoring(0.75), prior=0.6)
    rewrite(ledger, q1=forged)
    assert verify(ledger).problems


@pytest.mark.parametrize("policy", POLICIES)
def test_a_ledger_is_not_that_of_another_policy(make_guard, ledger, scoring, policy):
    with make_guard(ledger, X=np.zeros((2_000, 1)), policy=policy, **SHARED) as guard:
        ask_much(guard, scoring)
    connection = sqlite3.connect(ledger)
    text = connection.execute("SELECT text FROM configuration").fetchone()[0]
    for other in {"ladder", "gate", "thresholdout"} - {policy}:
        if (policy, other) == ("guess-and-check", "thresholdout"):
            continue  # without tolerances the two are the same
        changed = text.replace(f'"policy":"{policy}"', f'"policy":"{other}"')
        assert changed != text
        connection.execute("UPDATE configuration SET text = ?", [changed])
        connection.commit()
        rewrite(ledger)
        assert verify(ledger).problems
    connection.close()


# ---- resuming and sharing


@pytest.mark.parametrize("policy", POLICIES)
def test_a_guard_resumes_where_it_was(make_guard, reopen, ledger, scoring, policy):
    settings = {**SHARED, "noise": 0.003, "policy": policy}
    through = make_guard(ledger.with_name("other.db"), seed=5, **settings)
    scores = [0.5, 0.62, 0.58, 0.75, 0.7, 0.9]
    expected = [through.evaluate(scoring(score, k), **stated(policy)) for k, score in enumerate(scores)]
    make_guard(ledger, seed=5, **settings).close()
    answers = []
    for k, score in enumerate(scores):
        guard = reopen(ledger, seed=5)
        assert guard.policy == policy
        answers.append(guard.evaluate(scoring(score, k), **stated(policy)))
        guard.close()
    assert answers == expected
    assert verify(ledger).problems == []


def test_two_processes_share_one_best(make_guard, ledger):
    make_guard(ledger, policy="ladder", **SHARED)
    told = [(300, 0), (350, 7)]
    children = [Child(_CLIMB, ledger, *each) for each in told]
    assert [process.stdout.readline() for process in children] == ["ladder\n"] * 2
    for process in children:
        process.stdin.write("go\n")
        process.stdin.flush()
    outputs = [process.communicate().split() for process in children]
    # a climb by single steps cannot be affordable for both: a halt ends a process, and no more than that
    history = released(ledger).history
    assert sum(map(len, outputs)) == len(history) > 5
    assert history["prior"].tolist() == [0.0, *history["value"][:-1]]
    assert history["value"].is_monotonic_increasing
    assert all(values == sorted(values) for values in ([float(each) for each in out] for out in outputs))
    assert verify(ledger).problems == []


@pytest.mark.parametrize("policy", POLICIES)
def test_a_guard_goes_to_workers_with_its_policy(make_guard, ledger, scoring, policy):
    guard = make_guard(ledger, policy=policy, **SHARED)
    assert pickle.loads(pickle.dumps(guard)).policy == policy
    answers = Parallel(n_jobs=2, backend="loky")(
        delayed(guard.evaluate)(scoring(0.7 + 0.02 * k, k), **stated(policy, 0.65)) for k in range(6)
    )
    assert sorted(answer.query for answer in answers) == list(range(1, 7))
    assert guard.evaluate(scoring(0.7), **stated(policy, 0.65)).replayed
    assert verify(ledger).problems == []


# ---- looking at it


@for_each("policy", POLICIES)
def test_a_history_can_be_drawn(make_guard, scoring, policy):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    guard = make_guard(X=np.zeros((2_000, 1)), policy=policy, **SHARED)
    guard.plot()
    ask_much(guard, scoring)
    axes = guard.plot()
    axes.figure.canvas.draw()
    pyplot.close("all")


@for_each("policy", POLICIES)
def test_a_history_says_all_that_was_answered(make_guard, scoring, policy):
    guard = make_guard(policy=policy, **SHARED)
    answers = [
        guard.evaluate(scoring(score, k), **stated(policy, 0.65), name=str(k))
        for k, score in enumerate((0.5, 0.6, 0.72))
    ]
    history = guard.history()
    for name in ("value", "charged", "low", "high", "prior", "query", "charges_left", "threshold", "name"):
        assert history[name].tolist() == [getattr(answer, name) for answer in answers]
