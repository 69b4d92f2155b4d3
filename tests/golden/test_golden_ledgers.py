"""Ledgers that released versions wrote: each verifies as on its first day; those of 0.3 open, replay and go on, too."""

import json

import pytest
from cases import for_each
from golden.asking import as_read, goldens, history_of
from golden.make import make
from servers import new_database

from reusable_holdout import verify
from reusable_holdout.cli import main
from reusable_holdout.errors import LedgerError
from reusable_holdout.guard import released

GOLDENS = goldens()
each_golden = for_each("golden", GOLDENS, ids=[golden.name for golden in GOLDENS])


def is_as_written_down(ledger, golden):
    """Whether a ledger verifies, and says what it said when it was made."""
    expected, found = golden.expected, verify(ledger)
    assert found.problems == []
    assert (found.head, found.queries, found.charges) == (
        expected["head"],
        expected["answers"],
        expected["charges"],
    )
    assert not found.witnessed


def of_columns(history, written):
    """Of a history the columns that the version had which wrote the ledger; a later one has more."""
    return {name: history[name] for name in written}


def goes_on(ledger, golden, **key):
    """Open a ledger, ask all of it again, and go on: all as it was when it was made."""
    expected = golden.expected
    is_as_written_down(ledger, golden)
    with golden.opened(ledger, **key) as guard:
        assert guard.plan.record() == expected["plan"]
        for epoch, history in enumerate(expected["histories"], start=1):
            assert of_columns(history_of(guard.history(epoch=epoch)), history) == history
        views = golden.views(guard)
        for question in expected["questions"]:
            told = golden.ask(views, question)
            assert told.pop("replayed", True)
            assert told == question["told"]
        last = expected["histories"][-1]
        assert of_columns(history_of(guard.history()), last) == last
        for question in expected["following"]:
            told = golden.ask(views, question)
            assert not told.pop("replayed", False)
            assert told == question["told"]
    found = verify(ledger)
    assert found.problems == []
    news = sum(len(question["told"].get("answers", [1])) for question in expected["following"])
    assert found.queries == expected["answers"] + news
    assert verify(ledger, expected_head=expected["head"]).sound


def test_there_are_golden_ledgers_of_every_released_version():
    assert {golden.folder.parent.name for golden in GOLDENS} >= {"0.2.0"}


READ = [golden for golden in GOLDENS if not golden.is_asked]
ASKED = [golden for golden in GOLDENS if golden.is_asked]


@for_each("golden", READ, ids=[golden.name for golden in READ])
def test_a_ledger_of_0_2_is_read_and_no_longer_asked(golden, tmp_path):
    ledger = golden.copied(tmp_path / golden.name.replace("/", "-"))
    is_as_written_down(ledger, golden)
    for epoch, history in enumerate(golden.expected["histories"], start=1):
        found = history_of(released(ledger, epoch=epoch).history)
        assert as_read(found) == as_read(history)
    with pytest.raises(LedgerError, match=r"reusable-holdout 0\.2 wrote it, and can still ask it"):
        golden.opened(ledger)
    assert ledger.read_bytes() == (golden.folder / "guard.db").read_bytes()


@for_each("golden", ASKED, ids=[golden.name for golden in ASKED])
def test_a_golden_ledger_goes_on_as_when_it_was_made(golden, tmp_path):
    goes_on(golden.copied(tmp_path / golden.name.replace("/", "-")), golden)


@for_each("golden", ASKED, ids=[golden.name for golden in ASKED])
def test_reading_a_golden_ledger_changes_nothing_in_it(golden, tmp_path):
    ledger = golden.copied(tmp_path / golden.name.replace("/", "-"))
    verify(ledger)
    golden.opened(ledger).close()
    assert ledger.read_bytes() == (golden.folder / "guard.db").read_bytes()


@each_golden
def test_the_command_line_verifies_and_shows_a_golden_ledger(golden, tmp_path, capsys):
    ledger = golden.copied(tmp_path / golden.name.replace("/", "-"))
    assert main(["verify", str(ledger), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["head"] == golden.expected["head"]
    assert main(["history", str(ledger)]) == 0
    history = golden.expected["histories"][-1]
    assert str(history["way" if golden.is_asked else "kind"][0]) in capsys.readouterr().out
    assert main(["report", str(ledger), "--out", str(tmp_path / "report.html")]) == 0
    assert "report.html" in capsys.readouterr().out


@for_each("golden", [golden for golden in GOLDENS if (golden.folder / "postgresql.sql").exists()])
def test_a_golden_ledger_of_a_server_is_read_or_goes_on(golden, postgresql_server, tmp_path):
    import psycopg

    server_url = new_database(postgresql_server)
    key = golden.copied(tmp_path / golden.name.replace("/", "-")).with_name("guard.db.key")
    with psycopg.connect(server_url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute((golden.folder / "postgresql.sql").read_text())
    if golden.is_asked:
        goes_on(server_url, golden, key=key)
    else:
        is_as_written_down(server_url, golden)


def test_golden_ledgers_are_made_once(tmp_path):
    (tmp_path / "0.2.0").mkdir()
    with pytest.raises(FileExistsError):
        make(tmp_path / "0.2.0")
