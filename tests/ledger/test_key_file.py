"""The noise key's file."""

import os
import stat

import pytest
from children import Child

from reusable_holdout.errors import LedgerError, LedgerKeyError
from reusable_holdout.ledger import create_key_file, key_commitment, read_key_file


def test_a_key_is_private_and_comes_back(tmp_path):
    path = tmp_path / "guard.db.key"
    key = create_key_file(path)
    assert len(key) == 32
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_key_file(path) == key
    assert [file.name for file in tmp_path.iterdir()] == ["guard.db.key"]


def test_a_key_and_its_name_are_on_the_disk_before_anything_is_asked(tmp_path, monkeypatch):
    """Power that fails just then would else leave answers whose noise nobody can draw again."""
    path, synced = tmp_path / "guard.db.key", []

    def sync(descriptor):
        found = os.fstat(descriptor)
        synced.append("folder" if stat.S_ISDIR(found.st_mode) else found.st_size)
        assert path.exists() == (synced[-1] == "folder")

    monkeypatch.setattr(os, "fsync", sync)
    create_key_file(path)
    assert synced == [2 * 32 + 1, "folder"]


def test_a_key_in_use_is_never_replaced(tmp_path):
    path = tmp_path / "guard.db.key"
    key = create_key_file(path)
    assert create_key_file(path) == key
    assert create_key_file(path, key=b"x" * 32) == key


def test_processes_that_race_get_one_key(tmp_path):
    script = (
        "import sys; from pathlib import Path; from reusable_holdout.ledger import create_key_file\n"
        "print('ready', flush=True); sys.stdin.read()  # until all are\n"
        "print(create_key_file(Path(sys.argv[1])).hex())"
    )
    children = [Child(script, tmp_path / "guard.db.key") for _ in range(4)]
    assert [child.stdout.readline() for child in children] == ["ready\n"] * 4
    for child in children:
        child.stdin.close()
    keys = {child.communicate() for child in children}
    assert [child.returncode for child in children] == [0] * 4
    assert keys == {f"{read_key_file(tmp_path / 'guard.db.key').hex()}\n"}


def test_a_missing_key_says_that_the_ledger_cannot_go_on(tmp_path):
    with pytest.raises(LedgerKeyError, match="cannot go on"):
        read_key_file(tmp_path / "guard.db.key")


def test_a_key_that_others_can_read_is_refused(tmp_path):
    path = tmp_path / "guard.db.key"
    create_key_file(path)
    path.chmod(0o644)
    with pytest.raises(LedgerKeyError, match="mode is 644"):
        read_key_file(path)


@pytest.mark.parametrize("content", [b"", b"short", b"zz" * 32, b"ab" * 31, b"\xff\xfe", b"ab" * 33])
def test_what_is_no_key_is_refused(tmp_path, content):
    path = tmp_path / "guard.db.key"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(LedgerKeyError, match="must hold one key"):
        read_key_file(path)


def test_a_folder_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(LedgerError, match="writable"):
        create_key_file(tmp_path / "missing" / "guard.db.key")


def test_a_commitment_tells_keys_apart_and_shows_neither():
    one, other = key_commitment(b"a" * 32), key_commitment(b"b" * 32)
    assert one != other
    assert (b"a" * 32).hex() not in one


def test_a_key_of_the_wrong_length_is_not_written(tmp_path):
    with pytest.raises(LedgerKeyError, match="32 bytes; got 5"):
        create_key_file(tmp_path / "guard.db.key", key=b"short")
    assert list(tmp_path.iterdir()) == []


def test_a_commitment_is_that_of_earlier_ledgers():
    """A ledger holds it for ever: another formula would lock its owner out."""
    assert key_commitment(b"k" * 32) == "9f86111b53afa08cbf64cfcd2554a22fa22adb91c98d0c27f4e6331b2abe2314"


def test_a_refused_key_is_not_quoted(tmp_path):
    path = tmp_path / "guard.db.key"
    key = create_key_file(path)
    path.write_text(key.hex()[:-1])
    with pytest.raises(LedgerKeyError) as caught:
        read_key_file(path)
    assert key.hex()[:8] not in str(caught.value)
    assert caught.value.__context__ is None
