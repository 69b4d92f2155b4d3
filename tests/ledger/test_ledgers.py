"""The contract in memory and in a file, and what a file adds to it."""

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
from cases import for_each, refuses
from children import Child
from contracts.ledger_contract import FIRST, LedgerContract, append, make_row

from reusable_holdout.errors import LedgerError
from reusable_holdout.ledger import MemoryLedger, SqlLedger


def sql(path, *statements):
    """Run statements as another program would."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(*([statement] if isinstance(statement, str) else statement))
        connection.commit()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "guard.db"


@pytest.fixture
def ledger(path):
    with contextlib.closing(SqlLedger(path)) as ledger:
        yield ledger


@pytest.fixture
def answered(ledger):
    ledger.create("{}")
    append(ledger, FIRST)
    return ledger


class TestMemoryLedger(LedgerContract):
    @pytest.fixture
    def ledger(self):
        return MemoryLedger()


class TestSqlLedger(LedgerContract):
    @pytest.fixture
    def ledger(self, ledger):
        return ledger

    def another(self, ledger):
        return SqlLedger(ledger.url, must_exist=True)


def test_commits_are_synchronous(ledger):
    found = [
        ledger._connection.driver.execute(f"PRAGMA {one}").fetchone()[0]
        for one in ("busy_timeout", "synchronous", "journal_mode")
    ]
    assert found == [60_000, 2, "wal"]  # 2 is FULL


def is_silent(error, *secrets):
    """No text of an error, nor of an error that is chained to it, holds what must not be seen."""
    assert error.__cause__ is None
    assert error.__context__ is None
    text = f"{error!r} {error.args} {''.join(traceback.format_exception(error))}"
    assert [secret for secret in secrets if secret in text] == []


@pytest.mark.parametrize(
    ("breaking", "words", "mending"),
    [
        ("SELECT 1", "answered once", None),
        ("PRAGMA query_only = 1", "writable", None),
        ("PRAGMA max_page_count = 1", "make room", None),
        ("ALTER TABLE answers RENAME TO moved", "missing", "ALTER TABLE moved RENAME TO answers"),
    ],
)
def test_database_errors_quote_nothing_and_charge_nothing(answered, breaking, words, mending):
    secret = make_row(2)._replace(value=1 / 7, name=10_000 * chr(9786))
    if words == "answered once":
        secret = secret._replace(digest=FIRST.digest)
    answered._connection.driver.execute(breaking)
    caught = refuses(LedgerError, f"nothing was charged.*{words}", append, answered, secret)
    is_silent(caught, str(secret.value), chr(9786), repr(secret.digest))
    if mending:
        sql(answered.path, mending)
    append(answered, make_row(2))  # on a new connection
    assert answered.rows() == [FIRST, make_row(2)]


def test_a_database_that_rolled_back_by_itself_is_no_commit(answered):
    with pytest.raises(LedgerError, match="nothing was charged"), answered.transaction() as transaction:
        transaction.append([make_row(2)])
        answered._connection.driver.execute("ROLLBACK")
    assert answered.rows() == [FIRST]
    append(answered, make_row(2))


def test_a_ledger_that_another_program_changed_is_not_written(answered):
    append(answered, make_row(2, batch=2), make_row(3, batch=2))
    sql(answered.path, 'DELETE FROM answers WHERE "query" = 3')
    refuses(LedgerError, "must be sealed", append, answered, make_row(3))
    sql(answered.path, 'DELETE FROM answers WHERE "query" = 2', "DELETE FROM configuration")
    for write in (lambda: answered.create("{}"), lambda: append(answered, make_row(2))):
        refuses(LedgerError, r"must (have the|be given a) configuration", write)


@for_each("name", ["a b.db", "a?mode=ro.db", "a%20b.db", "a#b.db", "ü:@.db", "%3F.db"])
def test_a_file_of_any_name_is_found_again_by_its_url(tmp_path, name):
    with contextlib.closing(SqlLedger(tmp_path / name)) as ledger:
        ledger.create("{}")
        with contextlib.closing(SqlLedger(ledger.url, must_exist=True)) as again:
            assert again.path == ledger.path == tmp_path / name
            assert again.configuration() == "{}"
    assert (tmp_path / name).exists()


# ---- other processes

_APPEND_MANY = """
import sys
from contracts.ledger_contract import make_row
from reusable_holdout.ledger import SqlLedger
ledger = SqlLedger(sys.argv[1])
ledger.create("{}")
for _ in range(int(sys.argv[2])):
    with ledger.transaction() as transaction:
        query = transaction.tail.query + 1
        transaction.append([make_row(query)])
    print(query, flush=True)
"""
_MAKE = """
import sys
from reusable_holdout.ledger import SqlLedger
print('ready', flush=True); sys.stdin.read()  # until all are
ledger = SqlLedger(sys.argv[1]); print(ledger.create(sys.argv[2]), ledger.tail().query)
"""
_BATCH = """
import sys
from contracts.ledger_contract import make_row
from reusable_holdout.ledger import SqlLedger
ledger = SqlLedger(sys.argv[1])
ledger.create("{}")
with ledger.transaction() as transaction:
    transaction.append([make_row(query, batch=1) for query in range(1, 20_001)])
    print("written, not committed", flush=True)
    sys.stdin.read()
"""


def test_processes_that_make_the_same_ledger_at_once_all_have_the_configuration_that_won(tmp_path):
    for turn in range(3):
        children = [Child(_MAKE, tmp_path / f"{turn}.db", number) for number in range(4)]
        assert [child.stdout.readline() for child in children] == ["ready\n"] * 4
        for child in children:
            child.stdin.close()
        printed = {child.communicate() for child in children}
        assert [child.returncode for child in children] == [0] * 4
        assert len(printed) == 1


def test_what_a_killed_process_saw_committed_is_committed(path):
    child = Child(_APPEND_MANY, path, 100_000)
    printed = [int(child.stdout.readline()) for _ in range(50)]
    child.kill()
    printed += [int(line) for line in child.communicate().split()]
    with contextlib.closing(SqlLedger(path)) as ledger:
        tail = ledger.tail().query
        assert tail in (len(printed), len(printed) + 1)  # it may have died before it could say so
        append(ledger, make_row(tail + 1))


def test_a_batch_is_written_wholly_or_not_at_all(path):
    child = Child(_BATCH, path)
    assert child.stdout.readline() == "written, not committed\n"
    child.kill()
    child.communicate()
    with contextlib.closing(SqlLedger(path)) as ledger:
        assert ledger.rows() == []


def test_waiting_for_another_writer_does_not_fail(answered):
    with (
        contextlib.closing(sqlite3.connect(answered.path, isolation_level=None)) as holder,
        ThreadPoolExecutor(1) as pool,
    ):
        holder.execute("BEGIN IMMEDIATE")
        appending = pool.submit(append, answered, make_row(2))
        refuses(TimeoutError, "", appending.result, 0.2)
        holder.execute("COMMIT")
        appending.result()


# ---- places

_TABLES = ["CREATE TABLE configuration (key, value)", "CREATE TABLE answers (question, answer)"]


@for_each(
    ("location", "words"),
    [
        ("missing/guard.db", "folder must exist"),
        (".", "folder"),
        ("n" * 300, "File name too long"),
        ("null\0.db", "a file or the URL of a server"),
        ("sqlite://", "ledger=None"),
        ("sqlite:///:memory:", "a file or the URL"),
        ("sqlite:///{0}/g.db?mode=ro&uri=true", "options"),
        ("sqlite+aiosqlite:///{0}/g.db", "a driver"),
        ("sqlite://host/g.db", "a host"),
        ("nonsense://x/y", "another database"),
        ("postgresql+nonsense://x/y", "another database"),
        ("postgresql://user:pass/word@host/y", "special characters of a password"),
        ("://", "cannot be read"),
        (3, "file or the URL"),
        ("", "file or the URL"),
    ],
)
def test_a_location_that_cannot_hold_a_ledger_is_refused(tmp_path, monkeypatch, location, words):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LedgerError, match=words) as caught:
        SqlLedger(location.format(tmp_path) if isinstance(location, str) else location)
    assert "pass" not in str(caught.value).replace("password", "")
    assert list(tmp_path.iterdir()) == []


@for_each(
    ("tables", "words"),
    [(["CREATE TABLE customers (name)"], "another database"), (_TABLES, "another program's")],
)
def test_another_database_is_no_ledger_and_is_left_as_it_is(tmp_path_factory, tables, words):
    path = tmp_path_factory.mktemp("other") / "guard.db"
    sql(path, *tables)
    before = path.read_bytes()
    refuses(LedgerError, words, SqlLedger, path)
    assert before[100:] == path.read_bytes()[100:]  # the header says WAL now; no page was changed


def test_a_text_file_is_no_ledger(path):
    path.write_text("not a database, " * 100)
    refuses(LedgerError, "NOTADB", SqlLedger, path)
    assert path.read_text().startswith("not a database")


_ON_READ_ONLY = """
import os, sys
sys.path.insert(0, sys.argv[3])
from contracts.ledger_contract import append, make_row
from reusable_holdout.errors import LedgerError
from reusable_holdout.ledger import SqlLedger
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
        with contextlib.closing(SqlLedger(path)) as ledger:
            ledger.create("{}")
            append(ledger, make_row(1))
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


@for_each("schema", [99, 4, 0, -1, "text"])
def test_another_schema_is_refused_with_the_version_to_open_it_with(tmp_path_factory, schema):
    path = tmp_path_factory.mktemp("old") / "guard.db"
    with contextlib.closing(SqlLedger(path)) as ledger:
        ledger.create("{}")
        append(ledger, FIRST)
    sql(path, ("UPDATE configuration SET schema_version = ?, library = '9.1.0'", (schema,)))
    words = rf"it has {schema!r}; nothing was changed; open it with version 9\.1\.0.*only ledgers of 0\.2\.0"
    refuses(LedgerError, words, SqlLedger, path)


def test_a_ledger_that_must_exist_is_not_made_anew(ledger):
    """An empty one in its place would have the whole budget again."""
    ledger.close()
    for file in ledger.path.parent.iterdir():
        file.unlink()
    for use in (lambda: SqlLedger(ledger.path, must_exist=True), SqlLedger(ledger.path).latest):
        for file in ledger.path.parent.iterdir():
            file.unlink()
        refuses(LedgerError, "there is no ledger", use)
        assert list(ledger.path.parent.iterdir()) == []


@pytest.mark.parametrize("replaced", [False, True])
def test_nothing_is_written_to_a_file_that_was_deleted_or_replaced_under_an_open_ledger(answered, replaced):
    """On Linux an open file lives on when its name is gone: nobody would see what is written to it."""
    path = answered.path
    kept = path.rename(path.with_name("kept.db"))
    if replaced:
        SqlLedger(path).close()
    for use in (lambda: append(answered, make_row(2)), answered.tail, answered.rows):
        refuses(LedgerError, "must stay the file that was opened", use)
    if not replaced:
        kept.rename(path)
        append(answered, make_row(2))
        assert len(answered.rows()) == 2


def test_a_ledger_that_nobody_closed_closes_its_connection(path):
    """Collected in a cycle, SQLite's connection would stay open, and Python 3.13 warns of it."""
    ledger = SqlLedger(path)
    driver, ledger.itself = ledger._connection.driver, ledger
    del ledger
    gc.collect()
    refuses(sqlite3.ProgrammingError, "closed", driver.execute, "SELECT 1")
