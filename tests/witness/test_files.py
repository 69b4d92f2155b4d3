"""Files that a witness may meet, and what dying processes and full disks leave of them."""

import fcntl
import os

import pytest

from reusable_holdout.errors import LedgerError
from reusable_holdout.witness import FileWitness, Head

FIRST, SECOND, THIRD = (Head(1, query, bytes([query]) * 32) for query in (1, 2, 3))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "heads"


def test_a_pipe_or_a_folder_is_refused_and_waits_for_nobody(path, tmp_path):
    os.mkfifo(path)
    (tmp_path / "folder").mkdir()
    for place in (path, tmp_path / "folder"):
        with pytest.raises(LedgerError, match="witness must be a file"):
            FileWitness(place).read()
        with pytest.raises(LedgerError, match="witness must be a file"):
            FileWitness(place).advance(FIRST, after=None)


def test_a_disk_that_takes_half_a_line_is_said(path, monkeypatch):
    witness = FileWitness(path)
    write = os.write
    with monkeypatch.context() as full:
        full.setattr(os, "write", lambda file, line: write(file, line[:50]))
        with pytest.raises(LedgerError, match="No space left"):
            witness.advance(FIRST, after=None)
    assert witness.read() is None
    assert witness.advance(FIRST, after=None) == FIRST
    assert witness.read() == FIRST


@pytest.mark.parametrize("lengths", [(50,), (50, 47), (50, 77), (50, 77, 90), (97, 20), (50, 77, 77, 77)])
def test_however_many_processes_die_in_a_line_the_one_before_stands(path, monkeypatch, lengths):
    """Each writes so many bytes of what it would: also the blanks alone that fill up the line before."""
    witness, write = FileWitness(path), os.write
    assert witness.advance(FIRST, after=None) == FIRST
    for head, length in zip((SECOND, THIRD, THIRD, THIRD), lengths, strict=False):
        with monkeypatch.context() as dying:
            dying.setattr(os, "write", lambda file, line, length=length: write(file, line[:length]) * 0)
            with pytest.raises(LedgerError):
                witness.advance(head, after=witness.read())
    seen = witness.read()
    assert seen == (SECOND if lengths[0] == 97 else FIRST)
    assert witness.advance(THIRD, after=seen) == THIRD
    assert witness.read() == THIRD


def test_a_small_file_of_something_else_is_left_as_it_is(path):
    path.write_bytes(b"a key of 32 bytes, or some words")
    for use in (FileWitness(path).read, lambda: FileWitness(path).advance(FIRST, after=None)):
        with pytest.raises(LedgerError, match="something else"):
            use()
    assert path.read_bytes() == b"a key of 32 bytes, or some words"


def test_a_witness_takes_no_head_that_is_not_later_also_from_who_has_seen_the_last(path):
    witness = FileWitness(path)
    witness.advance(SECOND, after=None)
    assert witness.advance(FIRST, after=SECOND) == SECOND
    assert witness.advance(SECOND._replace(seal=b"x" * 32), after=SECOND) == SECOND
    assert witness.read() == SECOND


@pytest.mark.parametrize(("epoch", "query"), [(1, 10**19), (1 << 31, 1), (-1, 1)])
def test_a_head_that_no_ledger_can_have_is_none(epoch, query):
    assert Head.parse(Head(epoch, query, b"a" * 32).record()) is None


def test_a_child_that_was_forked_while_a_head_was_written_keeps_nobody_waiting(path, monkeypatch):
    write, children = os.write, []
    ends = os.pipe()

    def fork_and_write(file, line):
        child = os.fork()
        if not child:
            os.read(ends[0], 1)  # it lives until the test ends
            os._exit(0)
        children.append(child)
        return write(file, line)

    with monkeypatch.context() as forking:
        forking.setattr(os, "write", fork_and_write)
        FileWitness(path).advance(FIRST, after=None)
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    write(ends[1], b"x")
    os.waitpid(children[0], 0)
