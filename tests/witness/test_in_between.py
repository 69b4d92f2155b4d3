"""Between a commit and its witness: a process that dies, another that rotates, and one that means harm."""

import os
import pickle

import pytest
from witness.guards import FRESH, LABELS, PLAN, copy_of, made, opened, predictions, run

from reusable_holdout import verify
from reusable_holdout.errors import InputError, LedgerError
from reusable_holdout.witness import FileWitness, Head

DIE = "FileWitness.advance = lambda *_, **__: os.kill(os.getpid(), 9)\n"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "guard.db"


@pytest.fixture
def place(tmp_path):
    return tmp_path / "heads"


@pytest.fixture
def before(monkeypatch):
    """Do something once, before a witness is first told or read."""

    def do(method, action):
        real, races = getattr(FileWitness, method), iter([True])

        def late(*arguments, **named):
            if next(races, False):
                action()
            return real(*arguments, **named)

        monkeypatch.setattr(FileWitness, method, late)

    return do


def rotated(path):
    """Another process goes on to other rows."""
    with opened(path) as other:
        other.rotate(None, FRESH, early=True).guard.close()


def test_a_process_killed_while_it_makes_a_guard_leaves_one_that_opens(path, place):
    code = f"{DIE}ReusableHoldout(None, labels, ledger=path, witness=place, **plan)"
    assert run(code, path=str(path), place=str(place), plan=PLAN)[0] == -9
    assert not place.exists()
    with made(path, place) as guard:
        assert guard.evaluate(LABELS, prior=1.0).query == 1
    assert FileWitness(place).read().query == 1


def test_a_process_killed_before_it_told_its_witness_is_no_rollback(path, place):
    made(path, place).close()
    code = f"guard = ReusableHoldout.open(path, None, labels)\n{DIE}guard.evaluate(labels, prior=1.0)"
    assert run(code, path=str(path))[0] == -9
    assert FileWitness(place).read().query == 0  # and the ledger is ahead by one
    assert verify(path).sound
    with opened(path) as guard:
        assert FileWitness(place).read().query == 1
        assert guard.evaluate(LABELS, prior=1.0).replayed


def test_an_answer_stays_inside_until_the_witness_can_be_told(path, place, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    with made(path, place) as guard:
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            with pytest.raises(LedgerError, match=r"No space left.*recorded, and held back") as caught:
                guard.evaluate(predictions(0), prior=0.5)
        assert "0.9" not in str(caught.value)
        assert guard.queries_asked == 1
        assert guard.evaluate(predictions(0), prior=0.5).replayed
        assert FileWitness(place).read().query == 1


def test_a_witness_that_cannot_be_read_lets_nothing_be_asked(path, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    with made(path, folder / "heads", answers=1) as guard:
        folder.rename(tmp_path / "away")
        folder.write_text("no folder")
        with pytest.raises(LedgerError, match="witness must be a file"):
            guard.evaluate(predictions(1), prior=0.9)
        assert guard.queries_asked == 1
        folder.unlink()
        (tmp_path / "away").rename(folder)
        assert guard.evaluate(predictions(1), prior=0.9).query == 2


def test_a_guard_that_another_process_has_just_made_is_opened_before_its_witness_heard(path, place, before):
    met = []

    def ask():
        with opened(path) as other:
            met.append(other.evaluate(LABELS, prior=1.0).query)

    before("advance", ask)
    with made(path, place) as guard:
        assert met == [guard.queries_asked] == [1]


def test_an_answer_whose_epoch_ends_before_its_witness_hears_of_it_is_given(path, place, before):
    with made(path, place) as guard:
        before("advance", lambda: rotated(path))
        assert guard.evaluate(LABELS, prior=1.0).query == 1
    assert FileWitness(place).read()[:2] == (2, 0)
    assert verify(path).sound


def test_a_ledger_that_is_rotated_while_it_is_opened_opens_or_says_so(path, place, before):
    with made(path, place):
        before("read", lambda: rotated(path))
        with opened(path) as other, pytest.raises(LedgerError, match="last epoch, 2"):
            other.evaluate(LABELS, prior=1.0)


def test_a_copy_does_not_go_on_with_a_witness_that_was_forged_for_it(path, place, tmp_path):
    with made(path, place, answers=1):
        copy, forged = copy_of(path), tmp_path / "forged"
    forged.write_bytes(Head(1, 1, bytes.fromhex(verify(copy).head)).record())
    for use in (lambda: opened(copy, witness=forged), lambda: made(path, forged)):
        with pytest.raises(InputError, match="its own witness"):
            use()


def test_a_witness_that_was_moved_whole_goes_on_where_it_is(path, place, tmp_path):
    made(path, place).close()
    moved = place.rename(tmp_path / "moved")
    with opened(path, witness=moved) as guard:
        assert guard.evaluate(LABELS, prior=1.0).query == 1
    assert FileWitness(moved).read().query == 1


def test_a_pickled_guard_finds_its_witness_again(path, place):
    with made(path, place) as guard:
        code = "print(pickle.loads(content).evaluate(labels, prior=1.0).query)"
        assert run(code, content=pickle.dumps(guard)) == (0, "1\n")
        assert FileWitness(place).read().query == 1
