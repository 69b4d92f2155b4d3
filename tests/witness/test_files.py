"""Files that a witness may meet, and what dying processes and full disks leave of them."""

import fcntl
import os

import pytest
from cases import for_each, refuses

from reusable_holdout.errors import LedgerError
from reusable_holdout.witness import FileWitness, Head

FIRST, SECOND, THIRD = (Head(1, query, bytes([query]) * 32) for query in (1, 2, 3))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "heads"


@pytest.fixture
def witness(path):
    return FileWitness(path)


def test_a_file_of_something_else_is_refused_left_as_it_is_and_not_waited_for(path, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    path.write_bytes(b"a key of 32 bytes, or some words")
    (tmp_path / "large").write_text("something else\n" * 20)
    for name, words in {
        **dict.fromkeys(("pipe", "folder"), "witness must be a file"),
        **dict.fromkeys((path.name, "large"), "something else"),
    }.items():
        witness = FileWitness(tmp_path / name)
        for use in (witness.read, lambda witness=witness: witness.advance(FIRST, after=None)):
            refuses(LedgerError, words, use)
    assert path.read_bytes() == b"a key of 32 bytes, or some words"


def test_a_disk_that_takes_half_a_line_is_said(witness, monkeypatch):
    write = os.write
    with monkeypatch.context() as full:
        full.setattr(os, "write", lambda file, line: write(file, line[:50]))
        refuses(LedgerError, "No space left", witness.advance, FIRST, after=None)
    assert witness.read() is None
    assert witness.advance(FIRST, after=None) == witness.read() == FIRST


@for_each("lengths", [(50,), (50, 47), (50, 77), (50, 77, 90), (97, 20), (50, 77, 77, 77)])
def test_however_many_processes_die_in_a_line_the_one_before_stands(tmp_path_factory, lengths):
    """Each writes so many bytes of what it would: also the blanks alone that fill up the line before."""
    witness, write = FileWitness(tmp_path_factory.mktemp("dying") / "heads"), os.write
    assert witness.advance(FIRST, after=None) == FIRST
    for head, length in zip((SECOND, THIRD, THIRD, THIRD), lengths, strict=False):
        with pytest.MonkeyPatch.context() as dying:
            dying.setattr(os, "write", lambda file, line, length=length: write(file, line[:length]) * 0)
            refuses(LedgerError, "", witness.advance, head, after=witness.read())
    seen = witness.read()
    assert seen == (SECOND if lengths[0] == 97 else FIRST)
    assert witness.advance(THIRD, after=seen) == witness.read() == THIRD


def test_a_witness_takes_a_later_head_alone_from_a_ledger_that_has_seen_the_last(witness):
    assert witness.advance(SECOND, after=None) == SECOND
    for head, after in (
        (FIRST, SECOND),
        (SECOND._replace(seal=b"x" * 32), SECOND),
        (THIRD, FIRST),
        (THIRD, None),
    ):
        assert witness.advance(head, after=after) == SECOND
    assert witness.read() == SECOND


@for_each(("epoch", "query"), [(1, 10**19), (1 << 31, 1), (-1, 1)])
def test_a_head_that_no_ledger_can_have_is_none(epoch, query):
    assert Head.parse(Head(epoch, query, b"a" * 32).record()) is None


def test_a_child_that_was_forked_while_a_head_was_written_keeps_nobody_waiting(path, witness, monkeypatch):
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
        witness.advance(FIRST, after=None)
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    write(ends[1], b"x")
    os.waitpid(children[0], 0)
