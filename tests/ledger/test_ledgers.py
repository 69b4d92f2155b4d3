"""The contract on both backends, and what only a durable ledger can do."""

import contextlib
import gc
import sqlite3
import subprocess
import sys
import tempfile
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa
from cases import for_each
from children import Child
from contracts.ledger_contract import LedgerContract, append, make_row

from reusable_holdout.errors import LedgerError
from reusable_holdout.ledger import (
    MemoryLedger,
    Row,
    chain_problems,
)
from reusable_holdout.ledger.storage import SqlLedger


class TestMemoryLedger(LedgerContract):
    @pytest.fixture
    def ledger(self):
        return MemoryLedger()


class TestSqlLedger(LedgerContract):
    @pytest.fixture
    def ledger(self, tmp_path):
        ledger = SqlLedger(tmp_path / "guard.db")
        yield ledger
        ledger.close()

    def another(self, ledger):
        return SqlLedger(ledger.path, must_exist=True)

    def test_commits_are_synchronous(self, ledger):
        connection = ledger._connection.driver
        assert connection.execute("PRAGMA busy_timeout").fetchone() == (60_000,)
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)

    def test_another_ledger_object_sees_what_was_committed(self, ledger):
        ledger.create("{}")
        append(ledger, make_row(1))
        other = SqlLedger(ledger.url, must_exist=True)
        assert other.rows() == ledger.rows()
        assert other.tail() == ledger.tail()
        other.close()

    @pytest.mark.parametrize("failure", ["repeated", "readonly", "full", "tables"])
    def test_database_errors_quote_nothing_and_charge_nothing(self, ledger, failure):
        ledger.create("{}")
        append(ledger, make_row(1))
        secret = make_row(2)._replace(value=1 / 7, name=10_000 * chr(9786))
        connection = ledger._connection.driver
        if failure == "repeated":
            secret = secret._replace(digest=make_row(1).digest)
        elif failure == "readonly":
            connection.execute("PRAGMA query_only = 1")
        elif failure == "full":
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
            connection.execute(f"PRAGMA max_page_count = {pages}")
        else:
            connection.execute("ALTER TABLE answers RENAME TO moved")
        with pytest.raises(LedgerError, match="nothing was charged") as caught:
            append(ledger, secret)
        _assert_silent(caught.value, str(secret.value), chr(9786), repr(secret.digest))
        words = {
            "repeated": "answered once",
            "readonly": "writable",
            "full": "make room",
            "tables": "missing",
        }
        assert words[failure] in str(caught.value)
        if failure == "tables":
            with contextlib.closing(sqlite3.connect(ledger.path)) as other:
                other.execute("ALTER TABLE moved RENAME TO answers")
        append(ledger, make_row(2))  # on a new connection
        assert ledger.rows() == [make_row(1), make_row(2)]

    def test_a_database_that_rolled_back_by_itself_is_no_commit(self, ledger):
        ledger.create("{}")
        with pytest.raises(LedgerError, match="nothing was charged"), ledger.transaction() as transaction:
            transaction.append([make_row(1)])
            ledger._connection.driver.execute("ROLLBACK")
        assert ledger.rows() == []
        append(ledger, make_row(1))

    def test_a_failure_caught_inside_the_block_cannot_be_committed(self, ledger):
        ledger.create("{}")
        append(ledger, make_row(1))
        batch = [make_row(2, batch=2), make_row(3, batch=2)._replace(digest=make_row(1).digest)]
        with (
            pytest.raises(LedgerError, match="CONSTRAINT"),
            ledger.transaction() as transaction,
            contextlib.suppress(LedgerError),
        ):
            transaction.append(batch)
        assert ledger.rows() == [make_row(1)]

    def test_an_unsealed_end_is_refused(self, ledger):
        ledger.create("{}")
        append(ledger, make_row(1), make_row(2, batch=1))
        ledger._connection.driver.execute('DELETE FROM answers WHERE "query" = 2')
        with pytest.raises(LedgerError, match="must be sealed"):
            append(ledger, make_row(2))

    @pytest.mark.parametrize("column", [*Row._fields, "seal"])
    def test_a_column_changed_in_the_file_is_found(self, ledger, column):
        ledger.create("{}")
        for query in (1, 2, 3):
            append(ledger, make_row(query))
        values = {"query": 9, "digest": b"x" * 32, "seal": b"x" * 32, "name": "other", "value": "text"}
        change = f'UPDATE answers SET "{column}" = ? WHERE "query" = 2'
        ledger._connection.driver.execute(change, (values.get(column, 0.625),))
        assert chain_problems("{}", ledger.rows(), ledger.seals())

    @pytest.mark.parametrize("name", ["a b.db", "a?mode=ro.db", "a%20b.db", "a#b.db", "ü:@.db"])
    def test_a_file_of_any_name_is_found_again_by_its_url(self, tmp_path, name):
        if "?" in name and "?" in sa.URL.create("sqlite", database=name).render_as_string():  # before 2.1
            with pytest.raises(LedgerError, match="question mark"):
                SqlLedger(tmp_path / name)
            return
        ledger = SqlLedger(tmp_path / name)
        ledger.create("{}")
        again = SqlLedger(ledger.url, must_exist=True)
        assert again.path == ledger.path == tmp_path / name
        assert (tmp_path / name).exists()
        ledger.close()
        again.close()


def _assert_silent(error, *secrets):
    """No text of an error, nor of what is chained to it, holds what must not be seen."""
    assert error.__cause__ is None
    assert error.__context__ is None
    text = f"{error!r} {error.args} {''.join(traceback.format_exception(error))}"
    assert [secret for secret in secrets if secret in text] == []


_APPEND_MANY = """
import sys
from contracts.ledger_contract import make_row
from reusable_holdout.ledger.storage import SqlLedger
ledger = SqlLedger(sys.argv[1])
ledger.create("{}")
for _ in range(int(sys.argv[2])):
    with ledger.transaction() as transaction:
        query = transaction.tail.query + 1
        transaction.append([make_row(query)])
    print(query, flush=True)
"""


def _appending(path, count):
    return Child(_APPEND_MANY, path, count)


def test_processes_neither_skip_nor_double_a_number(tmp_path):
    children = [_appending(tmp_path / "guard.db", 200) for _ in range(3)]
    printed = [int(line) for child in children for line in child.communicate().split()]
    assert [child.returncode for child in children] == [0, 0, 0]
    assert sorted(printed) == list(range(1, 601))
    ledger = SqlLedger(tmp_path / "guard.db")
    assert ledger.tail().query == 600
    ledger.close()


def test_processes_that_make_the_same_ledger_at_once_all_succeed(tmp_path):
    script = (
        "import sys; from reusable_holdout.ledger.storage import SqlLedger\n"
        "print('ready', flush=True); sys.stdin.read()  # until all are\n"
        "ledger = SqlLedger(sys.argv[1]); print(ledger.create(sys.argv[2]), ledger.tail().query)"
    )
    for turn in range(3):
        children = [Child(script, tmp_path / f"{turn}.db", number) for number in range(4)]
        assert [child.stdout.readline() for child in children] == ["ready\n"] * 4
        for child in children:
            child.stdin.close()
        printed = {child.communicate() for child in children}
        assert [child.returncode for child in children] == [0] * 4
        assert len(printed) == 1  # one configuration won, and all have it


def test_what_a_killed_process_saw_committed_is_committed(tmp_path):
    child = _appending(tmp_path / "guard.db", 100_000)
    printed = [int(child.stdout.readline()) for _ in range(50)]
    child.kill()
    printed += [int(line) for line in child.communicate().split()]
    ledger = SqlLedger(tmp_path / "guard.db")
    assert ledger.tail().query in (len(printed), len(printed) + 1)  # it may have died before it could say so
    append(ledger, make_row(ledger.tail().query + 1))
    ledger.close()


def test_a_batch_is_written_wholly_or_not_at_all(tmp_path):
    script = """
import sys
from contracts.ledger_contract import make_row
from reusable_holdout.ledger.storage import SqlLedger
ledger = SqlLedger(sys.argv[1])
ledger.create("{}")
rows = [make_row(query, batch=1) for query in range(1, 20_001)]
print("ready", flush=True)
with ledger.transaction() as transaction:
    transaction.append(rows)
    print("written, not committed", flush=True)
    sys.stdin.read()
"""
    child = Child(script, tmp_path / "guard.db")
    assert child.stdout.readline() == "ready\n"
    assert child.stdout.readline() == "written, not committed\n"
    child.kill()
    child.communicate()
    ledger = SqlLedger(tmp_path / "guard.db")
    assert ledger.rows() == []
    ledger.close()


def test_waiting_for_another_writer_does_not_fail(tmp_path):
    ledger = SqlLedger(tmp_path / "guard.db")
    ledger.create("{}")
    holder = sqlite3.connect(tmp_path / "guard.db", isolation_level=None, check_same_thread=False)
    holder.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor(1) as pool:
        appending = pool.submit(append, ledger, make_row(1))
        with pytest.raises(TimeoutError):
            appending.result(0.2)
        holder.execute("COMMIT")
        appending.result()
    ledger.close()
    holder.close()


@pytest.mark.parametrize(
    ("location", "words"),
    [
        ("missing/guard.db", "folder must exist"),
        (".", "folder"),
        ("sqlite://", "in memory"),
        ("nonsense://x/y", "another database"),
        ("postgresql+nonsense://x/y", "another database"),
        ("://", "cannot be read"),
        (3, "file or the URL"),
        ("", "file or the URL"),
    ],
)
def test_a_location_that_cannot_hold_a_ledger_is_refused(tmp_path, monkeypatch, location, words):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LedgerError, match=words):
        SqlLedger(location)


def test_a_text_file_is_no_ledger(tmp_path):
    path = tmp_path / "guard.db"
    path.write_text("not a database, " * 100)
    with pytest.raises(LedgerError, match="NOTADB"):
        SqlLedger(path)
    assert path.read_text().startswith("not a database")


def test_another_database_is_no_ledger(tmp_path):
    path = tmp_path / "guard.db"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE customers (name)")
    other.commit()
    other.close()
    with pytest.raises(LedgerError, match="another database"):
        SqlLedger(path)


def test_a_database_with_tables_of_the_same_names_is_no_ledger(tmp_path):
    path = tmp_path / "guard.db"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE configuration (key, value)")
    other.execute("CREATE TABLE answers (question, answer)")
    other.commit()
    other.close()
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="another program's"):
        SqlLedger(path)
    assert before[100:] == path.read_bytes()[100:]  # the header says WAL now; no page was changed


def test_options_in_a_url_are_refused(tmp_path):
    for url in (f"sqlite:///{tmp_path}/g.db?mode=ro&uri=true", f"sqlite+aiosqlite:///{tmp_path}/g.db"):
        with pytest.raises(LedgerError, match="a driver, a host, options"):
            SqlLedger(url)
    assert list(tmp_path.iterdir()) == []


_ON_READ_ONLY = """
import os, sys
sys.path.insert(0, sys.argv[3])
from contracts.ledger_contract import append, make_row
from reusable_holdout.errors import LedgerError
from reusable_holdout.ledger.storage import SqlLedger
SqlLedger(sys.argv[2]).close()  # imports all that is needed, which may lie in root's home
if os.getuid() == 0:  # who may write anything
    os.setgid(65534), os.setuid(65534)
try:
    ledger = SqlLedger(sys.argv[1])
    print(len(ledger.rows()), ledger.create("other"), flush=True)
    append(ledger, make_row(2))
except LedgerError as error:
    print(error, error.__context__)
"""


@pytest.mark.parametrize("writable", ["folder", "nothing"])
def test_a_file_that_cannot_be_written_is_refused_in_words(writable):
    """In a folder that anybody can reach: a test's own is private."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "guard.db"
        ledger = SqlLedger(path)
        ledger.create("{}")
        append(ledger, make_row(1))
        ledger.close()
        path.chmod(0o444)
        Path(folder).chmod(0o777 if writable == "folder" else 0o555)
        tests = str(Path(__file__).parent.parent)
        command = [sys.executable, "-c", _ON_READ_ONLY, str(path), f"{folder}/other.db", tests]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        Path(folder).chmod(0o700)
    assert ran.returncode == 0, ran.stderr
    assert ("1 {}" in ran.stdout) == (writable == "folder")  # SQLite needs files beside it even to read
    assert "writable" in ran.stdout
    assert ran.stdout.rstrip().endswith("None")
    assert "must be a ledger that can be" in ran.stdout


def written_with(path, number, library="9.1.0"):
    ledger = SqlLedger(path)
    ledger.create("{}")
    append(ledger, make_row(1))
    ledger.close()
    change = sqlite3.connect(path)
    change.execute("UPDATE configuration SET schema_version = ?, library = ?", (number, library))
    change.commit()
    change.close()


def test_a_newer_schema_is_refused_with_the_version_to_install(tmp_path):
    written_with(tmp_path / "guard.db", 99)
    with pytest.raises(LedgerError, match=r"it has 99; nothing was changed; open it with version 9\.1\.0"):
        SqlLedger(tmp_path / "guard.db")


@for_each("number", [4, 0, -1, "text"])
def test_a_schema_from_before_the_first_that_is_kept_is_refused(tmp_path_factory, number):
    path = tmp_path_factory.mktemp("old") / "guard.db"
    written_with(path, number)
    with pytest.raises(LedgerError, match=r"kept for ever from version 0\.2\.0 on"):
        SqlLedger(path)


def test_a_ledger_whose_file_is_gone_has_no_last_epoch_and_is_not_made_anew(tmp_path):
    """An empty one in its place would have the whole budget again."""
    ledger = SqlLedger(tmp_path / "guard.db")
    ledger.create("{}")
    ledger.close()
    (tmp_path / "guard.db").unlink()
    with pytest.raises(LedgerError, match="there is no ledger"):
        ledger.latest()
    assert not (tmp_path / "guard.db").exists()


def test_a_ledger_that_must_exist_is_not_made(tmp_path):
    with pytest.raises(LedgerError, match="there is no ledger"):
        SqlLedger(tmp_path / "guard.db", must_exist=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("replaced", [False, True])
def test_nothing_is_written_to_a_file_that_was_deleted_or_replaced_under_an_open_ledger(tmp_path, replaced):
    """On Linux an open file lives on when its name is gone: what is written to it is seen by nobody, and lost."""
    path, kept = tmp_path / "guard.db", tmp_path / "kept.db"
    ledger = SqlLedger(path)
    ledger.create("{}")
    path.rename(kept)
    if replaced:
        SqlLedger(path).close()
    for use in (lambda: append(ledger, make_row(1)), ledger.tail, ledger.rows):
        with pytest.raises(LedgerError, match="must stay the file that was opened"):
            use()
    if not replaced:
        kept.rename(path)
        append(ledger, make_row(1))
        assert len(ledger.rows()) == 1
    ledger.close()


def test_a_ledger_that_nobody_closed_closes_its_connection(tmp_path):
    """Collected in a cycle, SQLite's connection would stay open, and Python 3.13 warns of it."""
    ledger = SqlLedger(tmp_path / "guard.db")
    ledger.create("{}")
    driver, ledger.itself = ledger._connection.driver, ledger
    del ledger
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        driver.execute("SELECT 1")
