"""The contract on a real PostgreSQL; skipped where the server or its driver is not installed."""

import contextlib
from concurrent.futures import ThreadPoolExecutor

import pytest
from cases import refuses
from children import Child
from contracts.ledger_contract import FIRST, LedgerContract, append, make_row
from ledger.test_schema import CHARGED, chained, statements
from servers import PASSWORD

from reusable_holdout.errors import LedgerError
from reusable_holdout.ledger import SqlLedger
from reusable_holdout.ledger.schema import CHUNK


@pytest.fixture
def other(server_url):
    """Another program's connection."""
    import psycopg

    with psycopg.connect(server_url.replace("+psycopg", ""), autocommit=True) as connection:
        yield connection


@pytest.fixture
def ledger(server_url):
    with contextlib.closing(SqlLedger(server_url)) as ledger:
        yield ledger


class TestServerLedger(LedgerContract):
    @pytest.fixture
    def ledger(self, ledger):
        return ledger

    def another(self, ledger):
        return SqlLedger(ledger.url)

    def test_errors_quote_neither_rows_nor_the_password(self, configured):
        """This server's own words hold the whole failing row."""
        append(configured, FIRST)
        with pytest.raises(LedgerError, match="UniqueViolation") as caught:
            append(configured, make_row(2)._replace(digest=FIRST.digest, value=1 / 7))
        assert caught.value.__cause__ is caught.value.__context__ is None
        assert str(1 / 7) not in str(caught.value)
        assert PASSWORD not in f"{caught.value} {configured!r}"

    def test_a_lost_connection_is_an_error_once(self, configured, other):
        append(configured, FIRST)
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        refuses(LedgerError, "nothing was charged", append, configured, make_row(2))
        append(configured, make_row(2))
        assert configured.rows() == [FIRST, make_row(2)]

    def test_a_commit_whose_answer_was_lost_is_said_to_be_unknown(self, configured):
        with pytest.raises(LedgerError, match="unknown"), configured.transaction() as transaction:
            transaction.append([FIRST])
            configured._connection.driver.close()

    def test_a_writer_of_version_0_2_is_waited_for(self, configured, other):
        """It locks the row of its epoch, and no more."""
        with ThreadPoolExecutor(1) as pool:
            other.execute("BEGIN")
            other.execute("SELECT epoch FROM configuration WHERE epoch = 1 FOR UPDATE")
            appending = pool.submit(append, configured, FIRST)
            refuses(TimeoutError, "", appending.result, 0.3)
            other.execute("COMMIT")
            appending.result()

    @pytest.mark.parametrize("known", ["nothing", "few rows", "all rows"])
    @pytest.mark.parametrize("charged", ["nothing", "twenty long ago"])
    def test_no_statement_reads_rows_that_it_does_not_give(self, configured, other, charged, known):
        """The server knows nothing of a new table, and must not take it for a small one."""
        rows = [row._replace(view=1) for row in chained(2_000, CHARGED[charged])]
        append(configured, *rows[:30])
        if known == "few rows":
            other.execute("ANALYZE")
        append(configured, *(row._replace(batch=31) for row in rows[30:]))
        if known == "all rows":
            other.execute("ANALYZE")
        digest = rows[7].digest
        asked = {
            "look": (1, [1, 1, 1, digest]),
            "charged": (21, [1, 21]),
            "rows": (10, [1, 1_990, None]),
            "seal_at": (1, [1, 30]),
            "found 1": (1, [digest, 1]),
            f"found {CHUNK}": (CHUNK, [digest, *([b"no digest"] * (CHUNK - 1)), 1]),
        }
        texts = statements(configured._sql)
        for name, (most, parameters) in asked.items():
            assert rows_read(other, texts[name], parameters) <= most, name
        other.execute(
            "SET plan_cache_mode = force_generic_plan"
        )  # as a statement gets that was executed often
        look = texts["look"].replace("%s", "${}").format(1, 2, 3, 4)
        other.execute(f"PREPARE looks (int, int, int, bytea) AS {look}")
        assert rows_read(other, f"EXECUTE looks (1, 1, 1, '\\x{digest.hex()}')") <= 1

    def test_reading_leaves_no_transaction_open(self, configured):
        append(configured, FIRST)
        assert configured.tail().query == 1
        assert configured._connection.driver.info.transaction_status.name == "IDLE"


def rows_read(connection, statement, parameters=None):
    """Most rows that a step of a plan read: those that it gave and those that it left out."""

    def read(node):
        yield node["Actual Loops"] * (node["Actual Rows"] + node.get("Rows Removed by Filter", 0))
        for below in node.get("Plans", []):
            yield from read(below)

    ((plan,),) = connection.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", parameters).fetchall()
    return max(read(plan[0]["Plan"]))


_APPEND_MANY = """
import sys
from contracts.ledger_contract import append, make_row
from reusable_holdout.ledger import SqlLedger
ledger = SqlLedger(sys.argv[1])
assert ledger.create("{}") == "{}"
for _ in range(50):
    with ledger.transaction() as transaction:
        transaction.append([make_row(transaction.tail.query + 1)])
"""


def test_processes_that_make_a_ledger_at_once_share_it(server_url):
    children = [Child(_APPEND_MANY, server_url) for _ in range(4)]
    assert [child.communicate() for child in children] == [""] * 4
    assert [child.returncode for child in children] == [0] * 4
    with contextlib.closing(SqlLedger(server_url)) as ledger:
        assert [row.query for row in ledger.rows()] == list(range(1, 201))


def test_no_password_of_a_url_is_shown(server_url):
    for url in (f"{server_url}?password=secret", server_url.replace("@", "secret@")):
        with contextlib.suppress(LedgerError), contextlib.closing(SqlLedger(url)) as ledger:
            assert "secret" not in f"{ledger!r} {ledger.place}"
        for wrong in (url.replace("127.0.0.1", "127.0.0.2"), url.replace("@", "/@")):
            caught = refuses(LedgerError, "", SqlLedger, wrong)
            assert "secret" not in str(caught)


def test_a_session_is_durable_and_patient_whatever_the_databases_defaults_are(server_url, other):
    name = server_url.rsplit("/", 1)[1]
    other.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    other.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = serializable")
    expected = {
        "synchronous_commit": "on",
        "transaction_isolation": "read committed",
        "lock_timeout": "1min",
        "idle_in_transaction_session_timeout": "1min",
    }
    with contextlib.closing(SqlLedger(server_url)) as ledger:
        ledger.create("{}")
        with ledger.transaction():
            show = ledger._connection.driver.execute
            assert {name: show(f"SHOW {name}").fetchone()[0] for name in expected} == expected
