"""Restored and copied ledgers, as each kind of witness meets them."""

import json
import sqlite3
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from cases import for_each, refuses
from golden.asking import goldens
from made_guards import made_guard
from witness.guards import FRESH, LABELS, PLAN, copy_of, git, made, opened, predictions

from reusable_holdout import verify
from reusable_holdout.cli import main
from reusable_holdout.errors import InputError, NoWitnessWarning, RolledBackError
from reusable_holdout.ledger import SqlLedger
from reusable_holdout.witness import FileWitness, Head, witness_at


@pytest.fixture(params=["file", "git", "git with a remote"])
def place(request, tmp_path):
    """Place of a witness of each kind."""
    if request.param == "file":
        return str(tmp_path / "elsewhere.heads")
    repository, remote = tmp_path / "repository", tmp_path / "remote"
    git("init", repository)
    git("-C", repository, "commit", "--allow-empty", "--message", "first")
    if request.param == "git":
        return f"git:{repository}"
    git("init", "--bare", remote)
    git("-C", repository, "remote", "add", "theirs", remote)
    return f"git:{repository}@theirs#guard-7"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "guard.db"


@pytest.fixture
def heads(tmp_path):
    return tmp_path / "heads"


def restore(copy, path, *, in_place=False):
    """Put an older copy back: in place of the file, or page by page into the file that is open."""
    if in_place:
        with closing(sqlite3.connect(copy)) as source, closing(sqlite3.connect(path)) as target:
            source.backup(target)
        return
    for old in path.parent.glob(f"{path.name}-*"):
        old.unlink()
    path.write_bytes(copy.read_bytes())


def test_a_restored_ledger_is_refused_by_opening_asking_and_verifying(path, place):
    with made(path, place, answers=1) as guard:
        copy = copy_of(path)
        guard.evaluate(predictions(1), prior=0.9)
    found = verify(path)
    assert found.sound
    assert found.witnessed
    restore(copy, path)
    refuses(RolledBackError, r"seen, 2 answers of epoch 1; .* has 1 of epoch 1", opened, path)
    refuses(RolledBackError, "an older copy was restored", made, path, place)
    assert "an older copy was restored" in verify(path).problems[0]


def test_a_hundred_restores_are_refused_a_hundred_times(path, heads):
    with made(path, heads) as guard:
        for number in range(100):
            copy = copy_of(path)
            guard.evaluate(predictions(number), prior=0.9)
            before = copy.read_bytes()
            for more in ({}, {"witness": heads}):
                refuses(RolledBackError, "", opened, copy, **more)
            assert not verify(copy).sound
            assert copy.read_bytes() == before
    assert verify(path).sound


def test_a_guard_that_is_open_while_its_ledger_is_restored_answers_nothing(path, place):
    with made(path, place, answers=1) as guard:
        copy = copy_of(path)
        assert not guard.evaluate(predictions(1), prior=0.9).replayed
    with opened(path) as guard:
        restore(copy, path, in_place=True)
        for number in (1, 2):
            refuses(RolledBackError, "", guard.evaluate, predictions(number), prior=0.9)
        assert guard.queries_asked == 1


def test_two_copies_cannot_both_go_on(path, heads):
    with made(path, heads, answers=1):
        copy = copy_of(path)
    with opened(path) as one, opened(copy) as other:
        one.evaluate(predictions(1), prior=0.9)
        for number in (2, 1):
            refuses(RolledBackError, "", other.evaluate, predictions(number), prior=0.9)
        one.evaluate(predictions(2), prior=0.9)


def test_of_two_copies_that_race_one_answer_leaves(path, heads):
    """Both begin where the witness stands; the one whose commit it hears of second keeps its answer."""
    with made(path, heads, answers=1):
        copy = copy_of(path)
    with closing(SqlLedger(path)) as one, closing(SqlLedger(copy)) as other:
        for ledger in (one, other):
            ledger.watched_by(FileWitness(heads), may_begin=False)
        row = one.rows()[0]
        begun = [one.transaction(), other.transaction()]
        for number, transaction in enumerate(begun):
            transaction.__enter__()
            transaction.append([row._replace(query=2, batch=2, asked=2, digest=bytes([number]) * 32)])
        begun[0].__exit__(None, None, None)
        refuses(RolledBackError, "", begun[1].__exit__, None, None, None)


def test_threads_and_processes_of_one_ledger_do_not_disturb_each_other(path, heads):
    with made(path, heads) as guard, ThreadPoolExecutor(4) as threads:
        guards = [guard, *(opened(path) for _ in range(3))]
        done = [
            threads.submit(guards[number % 4].evaluate, predictions(number), prior=0.9)
            for number in range(60)
        ]
        assert sorted(one.result().query for one in done) == list(range(1, 61))
        for one in guards[1:]:
            one.close()
    found = verify(path)
    assert (found.sound, found.witnessed, FileWitness(heads).read().query) == (True, True, 60)


def test_a_lost_witness_is_said_and_begins_anew_by_its_owner_alone(path, heads, capsys):
    with made(path, heads, answers=1) as guard:
        heads.unlink()
        with pytest.raises(
            RolledBackError, match=r"it was lost, or is another.*reusable-holdout witness LEDGER"
        ):
            guard.evaluate(predictions(1), prior=0.9)
    another = heads.with_name("another")
    for use in (lambda: opened(path), lambda: made(path, heads), lambda: opened(path, witness=another)):
        refuses(RolledBackError, "it was lost", use)
    assert not verify(path).witnessed
    assert main(["witness", str(path)]) == 0
    assert "remembers the ledger from now on" in capsys.readouterr().out
    with opened(path) as guard:
        assert guard.queries_asked == 1  # nothing is refilled
    assert main(["witness", str(path)]) == 1
    assert "can begin anew only if it remembers nothing" in capsys.readouterr().err


@pytest.mark.parametrize("answers", [0, 1])
def test_a_ledger_that_was_removed_is_not_made_anew(path, place, answers):
    made(path, place, answers).close()
    for old in path.parent.glob("guard.db*"):
        old.unlink()
    refuses(RolledBackError, f"{answers} answers of epoch 1", made, path, place)


def test_rotation_is_witnessed_and_cannot_be_taken_back(path, place):
    with made(path, place, answers=1) as guard:
        copy = copy_of(path)
        guard.rotate(None, FRESH, early=True).guard.close()
    assert witness_at(place).read()[:2] == (2, 0)
    with opened(path, FRESH) as guard:
        guard.evaluate(FRESH, prior=1.0)
    assert verify(path).sound
    restore(copy, path)
    refuses(RolledBackError, r"1 answers of epoch 2; .* has 1 of epoch 1", opened, path)
    assert not verify(path).sound


def test_a_ledger_without_a_witness_says_once_what_a_copy_of_it_can_do(path):
    with pytest.warns(NoWitnessWarning, match="older copy"):
        made(path, None).close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made(path, None).close()
        opened(path).close()
        for name, place in (("second.db", False), ("third.db", path.with_name("w"))):
            made(path.with_name(name), place).close()
        made_guard(None, LABELS, **PLAN).close()


def test_a_witness_may_come_later(path, heads):
    with made(path, False, answers=1):
        copy = copy_of(path)
    with opened(path, witness=heads) as guard:
        guard.evaluate(predictions(1), prior=0.9)
    restore(copy, path)
    refuses(RolledBackError, "", opened, path, witness=heads)
    assert not verify(path, witness=heads).sound


@for_each(
    ("place", "words"),
    [
        ("", "must be a file, or git:repository"),
        ("git:", "got an empty place"),
        (7, "got int"),
        ("https://host/heads", "got a URL"),
    ],
)
def test_a_place_that_is_none_is_refused_in_plain_words(tmp_path_factory, place, words):
    with pytest.raises(InputError, match=words) as caught:
        made(tmp_path_factory.mktemp("slip") / "guard.db", place) if place != "" else witness_at(place)
    assert "secret" not in str(caught.value)


def test_a_budget_in_memory_has_no_witness_and_a_ledger_is_opened_with_its_own(path, heads):
    refuses(InputError, "this budget is in memory", made, None, heads)
    made(path, heads).close()
    with pytest.raises(InputError, match=r"must be opened with it; this one has"):
        made_guard(None, LABELS, ledger=path, allow={"no witness"}, **PLAN)


def test_the_witness_of_a_ledger_of_an_earlier_version_is_asked_too(tmp_path):
    golden = next(one for one in goldens() if not one.is_asked)
    ledger, heads = golden.copied(tmp_path / "earlier"), tmp_path / "its heads"
    witness_at(heads).advance(Head(1, 10_000, bytes(32)), after=None)
    with closing(sqlite3.connect(ledger)) as database:
        (text,) = database.execute("SELECT text FROM configuration").fetchone()
        changed = json.dumps(
            json.loads(text) | {"witness": str(heads)}, sort_keys=True, separators=(",", ":")
        )
        database.execute("UPDATE configuration SET text = ?", (changed,))
        database.commit()
    found = verify(ledger)
    assert found.witnessed
    assert any("its witness has seen 10000 answers of epoch 1" in problem for problem in found.problems)
