"""What a restored or copied ledger meets at each kind of witness."""

import os
import shutil
import sqlite3
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from cases import for_each

from reusable_holdout import ReusableHoldout, verify
from reusable_holdout.cli import main
from reusable_holdout.errors import InputError, LedgerError, NoWitnessWarning, RolledBackError
from reusable_holdout.ledger.storage import SqlLedger
from reusable_holdout.witness import FileWitness, Head, witness_at

LABELS = np.random.default_rng(0).integers(0, 2, 2_000)
PLAN = {"queries": 500, "tolerance": 0.1, "estimate": 0.9}


def predictions(number, rate=0.9):
    wrong = np.random.default_rng([1, number]).random(len(LABELS)) > rate
    return np.where(wrong, 1 - LABELS, LABELS)


@pytest.fixture(params=["file", "git", "git with a remote"])
def place(request, tmp_path):
    """Place of a witness of each kind that needs no server."""
    if request.param == "file":
        return str(tmp_path / "elsewhere.heads")
    made = [tmp_path / "repository"]
    if request.param != "git":
        made.insert(0, tmp_path / "remote")
        git("init", "--quiet", "--bare", str(made[0]))
    git("init", "--quiet", str(made[-1]))
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    git("-C", str(made[-1]), *identity, "commit", "--quiet", "--allow-empty", "--message", "first")
    if len(made) == 1:
        return f"git:{made[0]}"
    git("-C", str(made[1]), "remote", "add", "theirs", str(made[0]))
    return f"git:{made[1]}@theirs#guard-7"


def git(*arguments):
    subprocess.run(["git", *arguments], check=True)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "guard.db"


def made(path, place, **more):
    return ReusableHoldout(None, LABELS, ledger=path, witness=place, **PLAN, **more)


def opened(path, **more):
    return ReusableHoldout.open(path, None, LABELS, **more)


def copy_of(path, name="copy.db"):
    """Copy of a ledger whose guard is open."""
    copy = path.with_name(name)
    for old in path.parent.glob(f"{name}*"):
        old.unlink()
    source, target = sqlite3.connect(path), sqlite3.connect(copy)
    source.backup(target)
    source.close()
    target.close()
    return copy


def restore(copy, path):
    for old in path.parent.glob(f"{path.name}-*"):
        old.unlink()
    shutil.copy(copy, path)


def test_a_restored_ledger_is_refused_by_opening_asking_and_verifying(path, place):
    with made(path, place) as guard:
        guard.evaluate_predictions(predictions(0), prior=0.9)
        copy = copy_of(path)
        guard.evaluate_predictions(predictions(1), prior=0.9)
    assert verify(path).sound
    assert verify(path).witnessed
    restore(copy, path)
    with pytest.raises(RolledBackError, match=r"seen, 2 answers of epoch 1; .* has 1 of epoch 1"):
        opened(path)
    with pytest.raises(RolledBackError, match="an older copy was restored"):
        made(path, place)
    assert "an older copy was restored" in verify(path).problems[0]


def test_a_hundred_restores_are_refused_a_hundred_times(path, tmp_path):
    refused = 0
    with made(path, tmp_path / "heads") as guard:
        for number in range(100):
            copy = copy_of(path)
            guard.evaluate_predictions(predictions(number), prior=0.9)
            shutil.copy(path.with_name("guard.db.key"), copy.with_name("copy.db.key"))
            before = copy.read_bytes()
            with pytest.raises(RolledBackError):
                opened(copy)
            with pytest.raises(RolledBackError):
                opened(copy, witness=tmp_path / "heads")
            refused += not verify(copy).sound
            assert copy.read_bytes() == before
    assert refused == 100
    assert verify(path).sound


def test_a_guard_that_is_open_while_its_ledger_is_restored_answers_nothing(path, place):
    with made(path, place) as guard:
        guard.evaluate_predictions(predictions(0), prior=0.9)
        copy = copy_of(path)
        answer = guard.evaluate_predictions(predictions(1), prior=0.9)
    with opened(path) as guard:
        source, target = sqlite3.connect(copy), sqlite3.connect(path)
        source.backup(target)  # the very file, in place
        source.close()
        target.close()
        for number in (1, 2):
            with pytest.raises(RolledBackError):
                guard.evaluate_predictions(predictions(number), prior=0.9)
        assert guard.queries_asked == 1
    assert not answer.replayed


def test_two_copies_cannot_both_go_on(path, tmp_path):
    place = tmp_path / "heads"
    with made(path, place) as guard:
        guard.evaluate_predictions(predictions(0), prior=0.9)
    copy = copy_of(path)
    shutil.copy(path.with_name("guard.db.key"), copy.with_name("copy.db.key"))
    with opened(path) as one, opened(copy) as other:
        one.evaluate_predictions(predictions(1), prior=0.9)
        with pytest.raises(RolledBackError):
            other.evaluate_predictions(predictions(2), prior=0.9)
        with pytest.raises(RolledBackError):
            other.evaluate_predictions(predictions(1), prior=0.9)
        one.evaluate_predictions(predictions(2), prior=0.9)


def test_of_two_copies_that_race_one_answer_leaves(path, tmp_path):
    """Both begin where the witness stands; the one whose commit it hears of second keeps its answer."""
    with made(path, tmp_path / "heads") as guard:
        guard.evaluate_predictions(predictions(0), prior=0.9)
    copy = copy_of(path)
    one, other = SqlLedger(path), SqlLedger(copy)
    for ledger in (one, other):
        ledger.watched_by(FileWitness(tmp_path / "heads"), may_begin=False)
    row = one.rows()[0]
    begun = [one.transaction(), other.transaction()]
    for number, transaction in enumerate(begun):
        transaction.__enter__()
        digest = bytes([number]) * 32
        transaction.append([row._replace(query=2, batch=2, asked=2, digest=digest)])
    begun[0].__exit__(None, None, None)
    with pytest.raises(RolledBackError):
        begun[1].__exit__(None, None, None)
    one.close()
    other.close()


def test_threads_and_processes_of_one_ledger_do_not_disturb_each_other(path, tmp_path):
    with made(path, tmp_path / "heads") as guard, ThreadPoolExecutor(4) as threads:
        others = [opened(path) for _ in range(3)]
        ask = [one.evaluate_predictions for one in (guard, *others)]
        done = [threads.submit(ask[number % 4], predictions(number), prior=0.9) for number in range(60)]
        assert sorted(one.result().query for one in done) == list(range(1, 61))
        for one in others:
            one.close()
        assert guard.queries_asked == 60
    found = verify(path)
    assert (found.sound, found.witnessed) == (True, True)
    assert FileWitness(tmp_path / "heads").read().query == 60


def test_a_process_killed_before_it_told_its_witness_is_no_rollback(path, tmp_path):
    place = tmp_path / "heads"
    made(path, place).close()
    code = f"""
import os, sys
import numpy as np
from reusable_holdout import ReusableHoldout
from reusable_holdout.witness import FileWitness
labels = np.random.default_rng(0).integers(0, 2, 2_000)
guard = ReusableHoldout.open({str(path)!r}, None, labels)
FileWitness.advance = lambda *_, **__: os.kill(os.getpid(), 9)
guard.evaluate_predictions(labels, prior=1.0)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    assert FileWitness(place).read().query == 0  # and the ledger is ahead by one
    assert verify(path).sound
    with opened(path) as guard:
        assert FileWitness(place).read().query == 1
        assert guard.evaluate_predictions(LABELS, prior=1.0).replayed


def test_an_answer_stays_inside_until_the_witness_can_be_told(path, tmp_path, monkeypatch):
    place = tmp_path / "heads"
    with made(path, place) as guard:
        with monkeypatch.context() as full:
            full.setattr(
                os, "write", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device"))
            )
            with pytest.raises(LedgerError, match=r"No space left.*recorded, and told once") as caught:
                guard.evaluate_predictions(predictions(0), prior=0.5)
        assert "0.9" not in str(caught.value)
        assert guard.queries_asked == 1
        answer = guard.evaluate_predictions(predictions(0), prior=0.5)
        assert answer.replayed
        assert FileWitness(place).read().query == 1


def test_a_witness_that_cannot_be_read_lets_nothing_be_asked(path, tmp_path):
    place = tmp_path / "folder" / "heads"
    place.parent.mkdir()
    with made(path, place) as guard:
        guard.evaluate_predictions(predictions(0), prior=0.9)
        (tmp_path / "folder").rename(tmp_path / "away")
        (tmp_path / "folder").write_text("no folder")
        with pytest.raises(LedgerError, match="witness must be a file"):
            guard.evaluate_predictions(predictions(1), prior=0.9)
        assert guard.queries_asked == 1
        (tmp_path / "folder").unlink()
        (tmp_path / "away").rename(tmp_path / "folder")
        assert guard.evaluate_predictions(predictions(1), prior=0.9).query == 2


def test_a_lost_witness_is_said_and_begins_anew_by_its_owner_alone(path, tmp_path, capsys):
    place = tmp_path / "heads"
    with made(path, place) as guard:
        guard.evaluate_predictions(predictions(0), prior=0.9)
        place.unlink()
        with pytest.raises(
            RolledBackError, match=r"it was lost, or is another.*reusable-holdout witness LEDGER"
        ):
            guard.evaluate_predictions(predictions(1), prior=0.9)
    with pytest.raises(RolledBackError, match="it was lost"):
        opened(path)
    with pytest.raises(RolledBackError, match="it was lost"):
        made(path, place)
    with pytest.raises(RolledBackError, match="it was lost"):
        opened(path, witness=tmp_path / "another")
    assert not verify(path).witnessed
    assert main(["witness", str(path)]) == 0
    assert "remembers the ledger from now on" in capsys.readouterr().out
    with opened(path) as guard:
        assert guard.queries_asked == 1  # nothing is refilled
    assert main(["witness", str(path)]) == 1
    assert "begins anew where it has seen nothing" in capsys.readouterr().err


def test_a_ledger_that_was_removed_is_not_made_anew(path, place):
    with made(path, place) as guard:
        guard.evaluate_predictions(predictions(0), prior=0.9)
    for old in path.parent.glob("guard.db*"):
        old.unlink()
    with pytest.raises(RolledBackError, match="1 answers of epoch 1"):
        made(path, place)


def test_rotation_is_witnessed_and_cannot_be_taken_back(path, place):
    fresh = np.random.default_rng(5).integers(0, 2, 2_000)
    with made(path, place) as guard:
        guard.evaluate_predictions(predictions(0), prior=0.9)
        copy = copy_of(path)
        rotation = guard.rotate(None, fresh, early=True)
        rotation.guard.close()
    assert witness_at(place).read()[:2] == (2, 0)
    with ReusableHoldout.open(path, None, fresh) as guard:
        guard.evaluate_predictions(fresh, prior=1.0)
    assert verify(path).sound
    restore(copy, path)
    with pytest.raises(RolledBackError, match=r"1 answers of epoch 2; .* has 1 of epoch 1"):
        opened(path)
    assert not verify(path).sound


def test_a_ledger_without_a_witness_says_once_what_a_copy_of_it_can_do(path, tmp_path):
    with pytest.warns(NoWitnessWarning, match="older copy"):
        ReusableHoldout(None, LABELS, ledger=path, **PLAN).close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ReusableHoldout(None, LABELS, ledger=path, **PLAN).close()
        opened(path).close()
        ReusableHoldout(None, LABELS, ledger=tmp_path / "second.db", witness=False, **PLAN).close()
        ReusableHoldout(None, LABELS, ledger=tmp_path / "third.db", witness=tmp_path / "w", **PLAN).close()
        ReusableHoldout(None, LABELS, **PLAN).close()


def test_a_witness_may_come_later(path, tmp_path):
    with made(path, False) as guard:
        guard.evaluate_predictions(predictions(0), prior=0.9)
        copy = copy_of(path)
    with opened(path, witness=tmp_path / "heads") as guard:
        guard.evaluate_predictions(predictions(1), prior=0.9)
    restore(copy, path)
    with pytest.raises(RolledBackError):
        opened(path, witness=tmp_path / "heads")
    assert not verify(path, witness=tmp_path / "heads").sound


@for_each(
    ("place", "words"),
    [
        ("", "must be a file, git:repository"),
        (7, "got int"),
        ("ftp://host/heads", "http or https"),
        ("https://user:secret@host/heads", "without a user"),
    ],
)
def test_a_place_that_is_none_is_refused_in_plain_words(tmp_path_factory, place, words):
    path = tmp_path_factory.mktemp("slip") / "guard.db"
    with pytest.raises(InputError, match=words) as caught:
        made(path, place) if place != "" else witness_at(place)
    assert "secret" not in str(caught.value)


def test_a_budget_in_memory_has_no_witness(tmp_path):
    with pytest.raises(InputError, match="this budget is in memory"):
        ReusableHoldout(None, LABELS, witness=tmp_path / "heads", **PLAN)
    with made(tmp_path / "guard.db", tmp_path / "heads"):
        pass
    with pytest.raises(InputError, match="witness=False"):
        opened(tmp_path / "guard.db", witness=False)


def test_a_file_that_is_no_witness_is_refused(path, tmp_path):
    (tmp_path / "heads").write_text("something else\n" * 20)
    with pytest.raises(LedgerError, match="something else"):
        made(path, tmp_path / "heads")


def test_a_head_that_a_dying_process_half_wrote_does_not_count(tmp_path):
    witness = FileWitness(tmp_path / "heads")
    first, second = Head(1, 1, b"a" * 32), Head(1, 2, b"b" * 32)
    assert witness.advance(first, after=None) == first
    with (tmp_path / "heads").open("ab") as file:
        file.write(second.record()[:50])
    assert witness.read() == first
    assert witness.advance(second, after=first) == second
    assert witness.read() == second
    assert witness.advance(first, after=first) == second


def test_a_pickled_guard_finds_its_witness_again(path, tmp_path):
    import pickle

    with made(path, tmp_path / "heads") as guard:
        code = f"""
import pickle, numpy as np
guard = pickle.loads(bytes.fromhex({pickle.dumps(guard).hex()!r}))
labels = np.random.default_rng(0).integers(0, 2, 2_000)
print(guard.evaluate_predictions(labels, prior=1.0).query)
"""
        ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        assert ran.stdout.split() == ["1"]
        assert FileWitness(tmp_path / "heads").read().query == 1
