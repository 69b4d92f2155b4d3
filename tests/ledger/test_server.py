"""The contract on a real PostgreSQL; skipped where the server or its driver is not installed."""

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from contracts.ledger_contract import LedgerContract, append, make_row

from reusable_holdout.errors import LedgerError
from reusable_holdout.ledger import SqlLedger

pytest.importorskip("psycopg")
_INITDB = shutil.which("initdb") or next(map(str, Path("/usr/lib/postgresql").glob("*/bin/initdb")), None)
if _INITDB is None:
    pytest.skip("PostgreSQL is not installed", allow_module_level=True)


@pytest.fixture(scope="module")
def server():
    """URL of a server that has no data yet; it refuses to run as root, so root runs it as somebody else."""
    owner = {"user": "postgres", "group": "postgres"} if os.getuid() == 0 else {}
    with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
        if owner:
            entry = pwd.getpwnam("postgres")
            os.chown(folder, entry.pw_uid, entry.pw_gid)
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
        free.close()
        data, quiet = f"{folder}/data", {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run([_INITDB, "-D", data, "-A", "trust", "-U", "test", "-N"], check=True, **quiet, **owner)
        binary = str(Path(_INITDB).resolve().with_name("postgres"))
        command = [binary, "-D", data, "-p", port, "-k", folder, "-h", "127.0.0.1"]
        process = subprocess.Popen(command, **quiet, **owner)
        try:
            _wait(int(port))
            yield f"postgresql+psycopg://test:password@127.0.0.1:{port}/postgres"
        finally:
            process.terminate()
            process.wait(30)


def _wait(port):
    import psycopg

    for _ in range(300):
        with contextlib.suppress(psycopg.OperationalError):
            psycopg.connect(host="127.0.0.1", port=port, user="test", dbname="postgres").close()
            return
        time.sleep(0.1)
    pytest.fail("the server did not start")


@pytest.fixture
def url(server):
    import psycopg

    with psycopg.connect(server.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS answers, configuration")
    return server


class TestServerLedger(LedgerContract):
    @pytest.fixture
    def ledger(self, url):
        ledger = SqlLedger(url)
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
        assert "password" not in str(caught.value)
        assert "password" not in repr(ledger)

    def test_a_lost_connection_is_an_error_once(self, ledger):
        import psycopg

        ledger.create("{}")
        append(ledger, make_row(1))
        with psycopg.connect(ledger.url.replace("+psycopg", ""), autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = 'postgres' AND pid <> pg_backend_pid()"
            )
        with pytest.raises(LedgerError, match="nothing was charged"):
            append(ledger, make_row(2))
        append(ledger, make_row(2))
        assert ledger.rows() == [make_row(1), make_row(2)]

    def test_a_commit_whose_answer_was_lost_is_said_to_be_unknown(self, ledger):
        ledger.create("{}")
        with pytest.raises(LedgerError, match="unknown"), ledger.transaction() as transaction:
            transaction.append([make_row(1)])
            ledger._connection.driver_connection.close()


_APPEND_MANY = """
import sys
sys.path.insert(0, sys.argv[2])
from contracts.ledger_contract import make_row
from reusable_holdout.ledger import SqlLedger
ledger = SqlLedger(sys.argv[1])
assert ledger.create("{}") == "{}"
for _ in range(50):
    with ledger.transaction() as transaction:
        transaction.append([make_row(transaction.tail.query + 1)])
"""


def test_processes_that_make_a_ledger_at_once_share_it(url):
    tests = str(Path(__file__).parent.parent)
    command = [sys.executable, "-c", _APPEND_MANY, url, tests]
    children = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    errors = [child.communicate()[1] for child in children]
    assert [child.returncode for child in children] == [0] * 4, errors
    ledger = SqlLedger(url)
    assert [row.query for row in ledger.rows()] == list(range(1, 201))
    ledger.close()
