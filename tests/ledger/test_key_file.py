"""The noise key's file."""

import os
import stat

import pytest
from cases import for_each, refuses
from children import Child

from reusable_holdout.errors import LedgerError, LedgerKeyError
from reusable_holdout.ledger import create_key_file, key_commitment, read_key_file


@pytest.fixture
def path(tmp_path):
    return tmp_path / "guard.db.key"


def test_a_key_is_private_comes_back_and_is_never_replaced(path):
    key = create_key_file(path)
    assert len(key) == 32
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_key_file(path) == create_key_file(path) == create_key_file(path, key=b"x" * 32) == key
    assert [file.name for file in path.parent.iterdir()] == ["guard.db.key"]


def test_a_key_and_its_name_are_on_the_disk_before_anything_is_asked(path, monkeypatch):
    """Power that fails just then would else leave answers whose noise nobody can draw again."""
    synced = []

    def sync(descriptor):
        found = os.fstat(descriptor)
        synced.append("folder" if stat.S_ISDIR(found.st_mode) else found.st_size)
        assert path.exists() == (synced[-1] == "folder")

    monkeypatch.setattr(os, "fsync", sync)
    create_key_file(path)
    assert synced == [2 * 32 + 1, "folder"]


def test_processes_that_race_get_one_key(path):
    script = (
        "import sys; from pathlib import Path; from reusable_holdout.ledger import create_key_file\n"
        "print('ready', flush=True); sys.stdin.read()  # until all are\n"
        "print(create_key_file(Path(sys.argv[1])).hex())"
    )
    children = [Child(script, path) for _ in range(4)]
    assert [child.stdout.readline() for child in children] == ["ready\n"] * 4
    for child in children:
        child.stdin.close()
    assert {child.communicate() for child in children} == {f"{read_key_file(path).hex()}\n"}
    assert [child.returncode for child in children] == [0] * 4


KEY = b"ab" * 32


@for_each(
    ("content", "mode", "words"),
    [
        (None, 0, "cannot go on"),
        (KEY, 0o644, "mode is 644"),
        *(
            (wrong, 0o600, "must hold one key")
            for wrong in (b"", b"short", b"zz" * 32, b"\xff\xfe", KEY[:-1], KEY * 2)
        ),
    ],
)
def test_a_file_that_is_no_private_key_is_refused_and_not_quoted(tmp_path_factory, content, mode, words):
    path = tmp_path_factory.mktemp("key") / "guard.db.key"
    if content is not None:
        path.write_bytes(content)
        path.chmod(mode)
    caught = refuses(LedgerKeyError, words, read_key_file, path)
    assert "abab" not in str(caught)
    assert content is None or caught.__context__ is None


def test_a_key_that_cannot_be_written_leaves_nothing(path):
    refuses(LedgerKeyError, "32 bytes; got 5", create_key_file, path, key=b"short")
    refuses(LedgerError, "writable", create_key_file, path.parent / "missing" / "guard.db.key")
    assert list(path.parent.iterdir()) == []


def test_a_commitment_tells_keys_apart_and_is_that_of_earlier_ledgers():
    """A ledger holds it for ever: another formula would lock its owner out."""
    assert key_commitment(b"k" * 32) == "9f86111b53afa08cbf64cfcd2554a22fa22adb91c98d0c27f4e6331b2abe2314"
    assert key_commitment(b"a" * 32) not in {key_commitment(b"b" * 32), (b"a" * 32).hex()}
