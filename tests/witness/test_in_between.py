"""What stands between a commit and its witness: a process that dies, another that rotates, and one that means harm."""

import shutil
import subprocess
import sys

import numpy as np
import pytest

from reusable_holdout import ReusableHoldout, verify
from reusable_holdout.errors import InputError, LedgerError
from reusable_holdout.witness import FileWitness, Head

LABELS = np.random.default_rng(0).integers(0, 2, 2_000)
FRESH = np.random.default_rng(5).integers(0, 2, 2_000)
PLAN = {"queries": 500, "tolerance": 0.1, "estimate": 0.9}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "guard.db"


@pytest.fixture
def place(tmp_path):
    return tmp_path / "heads"


def made(path, place, **more):
    return ReusableHoldout(None, LABELS, ledger=path, witness=place, **PLAN, **more)


def test_a_process_killed_while_it_makes_a_guard_leaves_one_that_opens(path, place):
    code = f"""
import os
import numpy as np
from reusable_holdout import ReusableHoldout
from reusable_holdout.witness import FileWitness
FileWitness.advance = lambda *_, **__: os.kill(os.getpid(), 9)
labels = np.random.default_rng(0).integers(0, 2, 2_000)
ReusableHoldout(None, labels, ledger={str(path)!r}, witness={str(place)!r}, **{PLAN!r})
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    assert not place.exists()
    with made(path, place) as guard:
        assert guard.evaluate_predictions(LABELS, prior=1.0).query == 1
    assert FileWitness(place).read().query == 1


def test_a_guard_that_another_process_has_just_made_is_opened_before_its_witness_heard(
    path, place, monkeypatch
):
    advance, met = FileWitness.advance, []

    def late(self, head, *, after):
        if not met:
            met.append(None)
            with ReusableHoldout.open(path, None, LABELS) as other:
                met.append(other.evaluate_predictions(LABELS, prior=1.0))
        return advance(self, head, after=after)

    monkeypatch.setattr(FileWitness, "advance", late)
    with made(path, place) as guard:
        assert met[1].query == 1
        assert guard.queries_asked == 1


def test_an_answer_whose_epoch_ends_before_its_witness_hears_of_it_is_given(path, place, monkeypatch):
    guard = made(path, place)
    advance, races = FileWitness.advance, iter([True])

    def late(self, head, *, after):
        if next(races, False):
            with ReusableHoldout.open(path, None, LABELS) as other:
                other.rotate(None, FRESH, early=True).guard.close()
        return advance(self, head, after=after)

    monkeypatch.setattr(FileWitness, "advance", late)
    assert guard.evaluate_predictions(LABELS, prior=1.0).query == 1
    guard.close()
    assert FileWitness(place).read()[:2] == (2, 0)
    assert verify(path).sound


def test_a_ledger_that_is_rotated_while_it_is_opened_opens_or_says_so(path, place, monkeypatch):
    with made(path, place) as guard:
        read, races = FileWitness.read, iter([True])

        def late(self):
            if next(races, False):
                guard.rotate(None, FRESH, early=True).guard.close()
            return read(self)

        monkeypatch.setattr(FileWitness, "read", late)
        other = ReusableHoldout.open(path, None, LABELS)
        with pytest.raises(LedgerError, match="last epoch, 2"):
            other.evaluate_predictions(LABELS, prior=1.0)
        other.close()


def test_a_copy_does_not_go_on_with_a_witness_that_was_forged_for_it(path, place, tmp_path):
    copy, forged = tmp_path / "copy.db", tmp_path / "forged"
    with made(path, place) as guard:
        guard.evaluate_predictions(LABELS, prior=1.0)
    for suffix in ("", ".key"):
        shutil.copy(f"{path}{suffix}", f"{copy}{suffix}")
    forged.write_bytes(Head(1, 1, bytes.fromhex(verify(copy).head)).record())
    with pytest.raises(InputError, match="its own witness"):
        ReusableHoldout.open(copy, None, LABELS, witness=forged)
    with pytest.raises(InputError, match="its own witness"):
        made(path, forged)


def test_a_witness_that_was_moved_whole_goes_on_where_it_is(path, place, tmp_path):
    made(path, place).close()
    place.rename(tmp_path / "moved")
    with ReusableHoldout.open(path, None, LABELS, witness=tmp_path / "moved") as guard:
        assert guard.evaluate_predictions(LABELS, prior=1.0).query == 1
    assert FileWitness(tmp_path / "moved").read().query == 1
