"""The contract on a real PostgreSQL; skipped where the server or its driver is not installed."""

import contextlib

import pytest
from children import Child
from contracts.ledger_contract import LedgerContract, append, make_row
from ledger.test_plans import CHARGED, chained, statements
from servers import PASSWORD

from reusable_holdout.errors import LedgerError
from reusable_holdout.ledger import SqlLedger
from reusable_holdout.ledger.schema import CHUNK


class TestServerLedger(LedgerContract):
    @pytest.fixture
    def ledger(self, server_url):
        ledger = SqlLedger(server_url)
        yield ledger
        ledger.close()

    def another(self, ledger):
        return SqlLedger(ledger.url)

    def test_errors_quote_neither_rows_nor_the_password(self, ledger):
        """This server's own words hold the whole failing row."""
        ledger.create("{}")
        append(ledger, make_row(1))
        with pytest.raises(LedgerError, match="UniqueViolation") as caught:
            append(ledger, make_row(2)._replace(digest=make_row(1).digest, value=1 / 7))
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
        assert str(1 / 7) not in str(caught.value)
        assert PASSWORD not in str(caught.value)
        assert PASSWORD not in repr(ledger)

    def test_a_lost_connection_is_an_error_once(self, ledger):
        import psycopg

        ledger.create("{}")
        append(ledger, make_row(1))
        with psycopg.connect(ledger.url.replace("+psycopg", ""), autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        with pytest.raises(LedgerError, match="nothing was charged"):
            append(ledger, make_row(2))
        append(ledger, make_row(2))
        assert ledger.rows() == [make_row(1), make_row(2)]

    def test_a_commit_whose_answer_was_lost_is_said_to_be_unknown(self, ledger):
        ledger.create("{}")
        with pytest.raises(LedgerError, match="unknown"), ledger.transaction() as transaction:
            transaction.append([make_row(1)])
            ledger._connection.driver.close()

    @pytest.mark.parametrize("known", ["nothing", "few rows", "all rows"])
    @pytest.mark.parametrize("charged", ["nothing", "twenty long ago"])
    def test_no_statement_reads_rows_that_it_does_not_give(self, ledger, charged, known):
        """The server knows nothing of a new table, and must not take it for a small one."""
        import psycopg

        ledger.create("{}")
        rows = [row._replace(view=1) for row in chained(2_000, CHARGED[charged])]
        own = ledger._connection.cursor()
        with psycopg.connect(ledger.url.replace("+psycopg", ""), autocommit=True) as other:
            append(ledger, *rows[:30])
            if known == "few rows":
                other.execute("ANALYZE")
            append(ledger, *(row._replace(batch=31) for row in rows[30:]))
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
        texts = statements(ledger._sql)
        for name, (most, parameters) in asked.items():
            own.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {texts[name]}", parameters)
            ((plan,),) = own.fetchall()
            assert max(_rows_read(plan[0]["Plan"])) <= most, (name, plan)
        own.execute("SET plan_cache_mode = force_generic_plan")  # as one that was executed often may get
        own.execute(
            f"PREPARE looks (int, int, int, bytea) AS {texts['look'].replace('%s', '${}').format(1, 2, 3, 4)}"
        )
        own.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE looks (1, 1, 1, '\\x{digest.hex()}')")
        ((plan,),) = own.fetchall()
        assert max(_rows_read(plan[0]["Plan"])) <= 1, plan

    def test_reading_leaves_no_transaction_open(self, ledger):
        ledger.create("{}")
        append(ledger, make_row(1))
        assert ledger.tail().query == 1
        assert ledger._connection.driver.info.transaction_status.name == "IDLE"


def _rows_read(node):
    """Rows that each step of a plan read: those that it gave and those that it left out."""
    yield node["Actual Loops"] * (node["Actual Rows"] + node.get("Rows Removed by Filter", 0))
    for below in node.get("Plans", []):
        yield from _rows_read(below)


_APPEND_MANY = """
import sys
from contracts.ledger_contract import make_row
from reusable_holdout.ledger.storage import SqlLedger
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
    ledger = SqlLedger(server_url)
    assert [row.query for row in ledger.rows()] == list(range(1, 201))
    ledger.close()


def test_no_password_of_a_url_is_shown(server_url):
    for url in (f"{server_url}?password=secret", server_url.replace("@", "secret@")):
        with contextlib.suppress(LedgerError):
            ledger = SqlLedger(url)
            assert "secret" not in repr(ledger)
            ledger.close()
        with pytest.raises(LedgerError) as caught:
            SqlLedger(url.replace("127.0.0.1", "127.0.0.2"))
        assert "secret" not in str(caught.value)


def test_a_session_is_durable_and_patient_whatever_the_databases_defaults_are(server_url):
    import psycopg

    name = server_url.rsplit("/", 1)[1]
    with psycopg.connect(server_url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
        connection.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = serializable")
    ledger = SqlLedger(server_url)
    ledger.create("{}")
    expected = {
        "synchronous_commit": "on",
        "transaction_isolation": "read committed",
        "lock_timeout": "1min",
        "idle_in_transaction_session_timeout": "1min",
    }
    with ledger.transaction() as transaction:
        found = {name: transaction._cursor.execute(f"SHOW {name}").fetchone()[0] for name in expected}
    assert found == expected
    ledger.close()
