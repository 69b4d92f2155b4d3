"""One budget on a PostgreSQL server, however many processes ask and however they die."""

import json
import pickle
import subprocess
import sys
from urllib.parse import urlsplit

import pytest
from cases import refuses
from children import Child, fresh_workers
from guard.killing import (
    ASK_ON,
    DEATHS,
    DYING,
    LAST_QUESTIONS,
    after_a_death,
    as_told,
    died,
    kill_until_halted,
)
from joblib import Parallel, delayed
from long_tests import GUARD
from servers import PASSWORD
from sqlalchemy import make_url

from reusable_holdout import Answer, ReusableHoldout, verify
from reusable_holdout.errors import Halted, HandleError, LedgerError, LedgerKeyError
from reusable_holdout.guard import frozen_guard
from reusable_holdout.ledger.connection import without_password

pytestmark = pytest.mark.long(*GUARD)

CHARGES = 40

# coin flips against a prior five hundredths above: five standard deviations beyond the threshold, so each is charged
_COMMON = """
import json, os, signal, sys
from pathlib import Path
import numpy as np
from reusable_holdout import Plan, ReusableHoldout
from reusable_holdout.errors import Halted

def guard_of(ledger, key):
    labels = np.random.default_rng(0).integers(0, 2, 10_000)
    plan = Plan(queries=1_000, charges=40, threshold=0.025, noise=1e-4)
    return ReusableHoldout(None, labels, ledger=ledger, plan=plan, key=Path(key))

def question(number):
    return np.random.default_rng([1, number]).integers(0, 2, 10_000), 0.55 + number * 1e-5

def ask(guard, number):
    predictions, prior = question(number)
    return guard.evaluate(predictions, prior=prior, name=str(number))
"""
_ASK_UNTIL_HALTED = """
guard, own = guard_of(*sys.argv[1:3]), int(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()  # until all are
try:
    for number in range(50):
        if number < 10:  # all ask these
            print(json.dumps(ask(guard, number)), flush=True)
        print(json.dumps(ask(guard, 100 * own + number)), flush=True)
except Halted as halt:
    print(json.dumps(halt.reason), flush=True)
"""


@pytest.fixture(autouse=True)
def _password(monkeypatch):
    """Handles carry none; processes take it from their environment."""
    monkeypatch.setenv("PGPASSWORD", PASSWORD)


@pytest.fixture
def key(tmp_path):
    """Where the key of a ledger on a server may be made."""
    return tmp_path / "guard.key"


@pytest.fixture(scope="module")
def here():
    """The functions that the children have too."""
    names = {}
    exec(_COMMON, names)
    return names


def child(script, *arguments):
    return Child(_COMMON + script, *arguments)


# ---- processes


def test_four_processes_that_ask_the_same_and_different_questions_never_exceed_the_budget(
    server_url, key, here
):
    """Ten common questions and two hundred others want a charge each; there are forty."""
    with here["guard_of"](server_url, key) as guard:
        children = [child(_ASK_UNTIL_HALTED, server_url, key, own) for own in (1, 2, 3, 4)]
        assert [process.stdout.readline() for process in children] == ["ready\n"] * 4
        for process in children:
            process.stdin.write("go\n")
            process.stdin.flush()
        printed = [list(map(json.loads, process.communicate().splitlines())) for process in children]
        assert [process.returncode for process in children] == [0] * 4
        assert [lines[-1] for lines in printed] == ["charges"] * 4
        answers = [Answer(*line) for lines in printed for line in lines[:-1]]
        paid = [answer for answer in answers if not answer.replayed]
        assert sorted(answer.query for answer in paid) == list(range(1, CHARGES + 1))
        assert all(answer.charged for answer in paid)
        values = {answer.query: answer.value for answer in paid}
        assert [values[answer.query] for answer in answers] == [answer.value for answer in answers]
        names = [answer.name for answer in paid]
        assert len(set(names)) == CHARGES  # no question was paid twice
        assert guard.history()["name"].tolist() == [
            answer.name for answer in sorted(paid, key=lambda answer: answer.query)
        ]
        assert guard.halt_reason == "charges"
    assert verify(server_url).problems == []


def test_joblib_workers_share_one_budget_on_a_server(make_guard, server_url, key, scoring):
    guard = make_guard(server_url, key=key, charges=25, queries=200)
    tasks = [delayed(guard.evaluate)(scoring(0.7, k), prior=0.85, name=str(k)) for k in range(25)]
    with fresh_workers():  # others began before the password was in the environment
        answers = Parallel(n_jobs=2, backend="loky")(tasks)
        assert sorted(answer.query for answer in answers) == list(range(1, 26))
        assert [answer.name for answer in answers] == [str(k) for k in range(25)]
        assert guard.charges_left == 0
        again = Parallel(n_jobs=2, backend="loky")(tasks)
        assert all(answer.replayed for answer in again)
        with pytest.raises(Halted, match="all 25 charges are spent"):
            Parallel(n_jobs=2, backend="loky")(
                delayed(guard.evaluate)(scoring(0.7, k), prior=0.85) for k in range(30, 34)
            )
        assert verify(server_url).problems == []


# ---- deaths


def test_charged_answers_on_a_server_survive_kill_9_at_random_moments(server_url, key, here):
    script = "guard = guard_of(*sys.argv[1:3])" + ASK_ON
    told, rounds = kill_until_halted(lambda questions: child(script, server_url, key, questions))
    assert rounds >= 3
    with here["guard_of"](server_url, key) as guard:
        history = guard.history()
        as_told(told, history, charges=CHARGES, rounds=rounds)
        for number in range(CHARGES):
            again = here["ask"](guard, number)
            assert (again.replayed, again.query) == (True, number + 1)
        refuses(Halted, "", here["ask"], guard, CHARGES)
    found = verify(server_url)
    assert (found.problems, found.queries, found.charges) == ([], CHARGES, CHARGES)


@pytest.mark.parametrize("how", ["single", "batch"])
@DEATHS
def test_a_death_at_the_worst_moment_on_a_server_neither_loses_nor_doubles_nor_renews_an_answer(
    server_url, key, here, moment, recorded, how
):
    here["guard_of"](server_url, key).close()
    script = DYING + "guard = guard_of(*sys.argv[1:3])" + LAST_QUESTIONS
    died(child(script, server_url, key, moment, how))
    twin = here["guard_of"](key.with_name("twin.db"), key)
    with here["guard_of"](server_url, key) as guard, twin:
        after_a_death(guard, twin, here["question"], recorded=recorded, how=how)
    assert verify(server_url).problems == []


# ---- handles


@pytest.fixture
def guard(make_guard, server_url, key):
    return make_guard(server_url, key=key)


def test_a_pickled_guard_on_a_server_is_a_handle_to_the_same_budget(guard, scoring):
    other = pickle.loads(pickle.dumps(guard))
    assert other is not guard
    assert other.evaluate(scoring(0.7), prior=0.85).query == 1
    assert guard.evaluate(scoring(0.7, 1), prior=0.85).query == 2
    assert guard.evaluate(scoring(0.7), prior=0.85).replayed
    assert pickle.loads(pickle.dumps(other)) is other  # one for each process
    other.close()


def test_a_handle_works_in_a_process_that_never_saw_the_guard_on_the_server(guard, scoring, tmp_path):
    guard.evaluate(scoring(0.7), prior=0.85)
    (tmp_path / "guard.pickle").write_bytes(pickle.dumps(guard))
    script = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb')).queries_asked)"
    command = [sys.executable, "-c", script, str(tmp_path / "guard.pickle")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "1\n"


def test_the_holdout_of_a_guard_on_a_server_lies_beside_its_key_for_its_owner_alone(guard, key, labels):
    blob = pickle.dumps(guard)
    assert sorted(path.name for path in key.parent.iterdir()) == ["guard.key", "guard.key.holdout"]
    assert key.with_name("guard.key.holdout").stat().st_mode & 0o777 == 0o600
    assert len(blob) < 1_000
    assert labels.tobytes()[:64] not in blob
    assert key.read_text().strip().encode() not in blob
    assert bytes.fromhex(key.read_text()) not in blob


def test_a_handle_carries_no_password(guard, server_url, monkeypatch):
    """Each machine has its own: in a file, or in the environment."""
    handle = pickle.dumps(guard) and guard._handle
    assert PASSWORD.encode() not in pickle.dumps(guard)
    assert handle.ledger == server_url.replace(f":{PASSWORD}@", "@")
    of_options = make_url(server_url).set(query={"password": PASSWORD, "sslmode": "prefer"})
    cleaned = without_password(of_options.render_as_string(hide_password=False))
    assert cleaned == f"{handle.ledger}?sslmode=prefer"
    assert PASSWORD not in repr(guard)
    monkeypatch.delenv("PGPASSWORD")
    caught = refuses(LedgerError, "", handle.open)
    assert PASSWORD not in str(caught)


def test_what_is_deployed_names_the_server_alone(guard, key, server_url, scoring):
    guard.evaluate(scoring(0.7), prior=0.85)
    certificate = guard.certificate()
    assert certificate.machine == urlsplit(server_url).hostname
    assert verify(server_url, certificate=certificate).problems == []
    content = pickle.dumps(frozen_guard(guard, certificate))
    for private in (PASSWORD, urlsplit(server_url).path, str(key.parent), key.read_text().strip()):
        assert private.encode() not in content


def test_what_fails_behind_a_handle_quotes_no_password(guard):
    handle = pickle.dumps(guard) and guard._handle
    elsewhere = handle._replace(ledger=handle.ledger.rsplit("/", 1)[0] + "/nowhere")
    caught = refuses(LedgerError, "", elsewhere.open)
    assert PASSWORD not in f"{caught!r}"
    assert caught.__cause__ is caught.__context__ is None


def test_a_relative_key_is_found_from_another_folder(make_guard, server_url, key, monkeypatch):
    monkeypatch.chdir(key.parent)
    blob = pickle.dumps(make_guard(server_url, key=key.relative_to(key.parent)))
    monkeypatch.chdir("/")
    with pickle.loads(blob) as guard:
        assert guard.queries_asked == 0


def test_a_guard_on_a_server_needs_its_key_in_a_file_to_leave_its_process(make_guard, server_url):
    refuses(HandleError, "key=Path", pickle.dumps, make_guard(server_url, key=bytes(range(32))))


def test_a_handle_whose_key_is_gone_is_refused(guard, key):
    blob = pickle.dumps(guard)
    key.unlink()
    refuses(LedgerKeyError, "must lie in", pickle.loads(blob).history)


def test_a_server_whose_ledger_was_made_anew_is_not_asked_with_the_old_holdout(
    make_guard, server_url, key, labels, scoring
):
    import psycopg

    with make_guard(server_url, key=key) as old:
        pickle.loads(pickle.dumps(old))
    key.unlink()
    with psycopg.connect(server_url.replace("+psycopg", ""), autocommit=True) as connection:
        for (table,) in connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        ).fetchall():
            connection.execute(f"DROP TABLE {table}")
    new = make_guard(server_url, y=1 - labels, key=key)  # another holdout under the same name
    with pickle.loads(pickle.dumps(new)) as again:
        # of the new labels the score is 0.3; of the old it is 0.7, in cell 4
        assert again.evaluate(scoring(0.7), prior=0.85).told == "cell 2"
    assert new.queries_asked == 1
    assert isinstance(again, ReusableHoldout)
