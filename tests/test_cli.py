"""The command line, run as users run it."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
from cases import for_each, refuses
from golden.asking import goldens
from guard.forging import sql
from made_guards import made_guard

from reusable_holdout import Plan
from reusable_holdout.cli import main


@pytest.fixture
def ledger(tmp_path):
    labels = np.random.default_rng(0).integers(0, 2, 4_000)
    guard = made_guard(None, labels, tolerance=0.1, queries=3, ledger=tmp_path / "guard.db", seed=0)
    guard.evaluate(labels, prior=1.0, name="oracle")
    guard.evaluate(1 - labels, prior=0.4)
    guard.close()
    return tmp_path / "guard.db"


def run(capsys, *arguments):
    status = main([str(argument) for argument in arguments])
    return status, capsys.readouterr()


def test_a_plan_is_printed_as_a_table_and_as_json(capsys):
    status, text = run(capsys, "plan", "--rows", 10_000, "--queries", 1_000, "--tolerance", 0.05)
    assert status == 0
    assert "1 charge, whatever" in text.out
    status, text = run(capsys, "plan", "--rows", 10_000, "--queries", 1_000, "--tolerance", 0.05, "--json")
    found = json.loads(text.out)
    assert (found["charges"], found["choices"], found["delta"]) == (1, [], 1e-8)


def test_the_inverse_question_works(capsys):
    _, text = run(capsys, "plan", "--queries", 1_000, "--charges", 10, "--tolerance", 0.05, "--json")
    assert json.loads(text.out)["rows"] > 10_000


def test_better_priors_keep_a_search_going_with_a_smaller_tolerance(capsys):
    found = []
    for error in (0.006, 0.012):
        stated = (
            "--rows",
            5_000,
            "--queries",
            100,
            "--charges",
            3,
            "--estimate",
            0.87,
            "--prior-error",
            error,
        )
        _, text = run(capsys, "plan", *stated, "--json")
        found.append(json.loads(text.out))
    assert [plan["prior_error"] for plan in found] == [0.006, 0.012]
    assert found[0]["tolerance"] < found[1]["tolerance"]


def test_reveals_and_choices_are_set_aside(capsys):
    stated = ("plan", "--rows", 10_000, "--queries", 1_000, "--tolerance", 0.05, "--estimate", 0.9)
    for reserved in ({}, {"reveals": 2}, {"choices": [100, 20]}, {"reveals": 2, "choices": [100, 20]}):
        named = [part for name, value in reserved.items() for part in (f"--{name}", *np.ravel(value))]
        _, text = run(capsys, *stated, *named, "--json")
        plan = Plan(rows=10_000, queries=1_000, tolerance=0.05, estimate=0.9, **reserved)
        found = json.loads(text.out)
        assert {name: found[name] for name in plan.record()} == plan.record() | {"threshold": plan.threshold}


def test_an_impossible_plan_ends_with_status_1_and_says_what_would_do(capsys):
    status, text = run(capsys, "plan", "--rows", 1_000, "--queries", 1_000, "--tolerance", 0.05)
    assert status == 1
    assert "3,519 rows or a tolerance of 0.0935" in text.err
    assert text.out == ""


_REST = ["nats", "asked", "charges_left", "asked_at", "measured"]


def test_history_shows_what_was_released(capsys, ledger):
    status, text = run(capsys, "history", ledger)
    assert status == 0
    first, second, last = text.out.splitlines()
    assert first.split() == [
        *[
            "query",
            "metric",
            "name",
            "prior",
            "value",
            "low",
            "high",
            "threshold",
            "outcome",
            "charged",
            "way",
            "told",
        ],
        *_REST,
    ]
    assert "oracle" in second
    assert re.search(r" \d{4}-\d\d-\d\d \d\d:\d\d:\d\d +0.0929$", last)
    status, text = run(capsys, "history", ledger, "--json")
    records = json.loads(text.out)
    assert [record["query"] for record in records] == [1, 2]
    assert [record["charged"] for record in records] == [False, True]


def test_a_report_is_named_as_its_ledger(capsys, ledger, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    search = ledger.rename(tmp_path / "search.db")
    for place, name in [(search, "search"), (f"sqlite:///{search}", "guard")]:
        assert run(capsys, "report", place) == (0, (f"wrote {name}.html\n", ""))
        assert (tmp_path / f"{name}.html").exists()
    for option in ("--out", "--output"):
        assert run(capsys, "report", search, option, "mine.html")[1].out == "wrote mine.html\n"


def test_a_report_never_takes_the_ledgers_place(capsys, ledger, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    oddly_named = tmp_path / "search.html"
    oddly_named.write_bytes(ledger.read_bytes())
    for options in ([], ["--out", oddly_named]):
        status, text = run(capsys, "report", oddly_named, *options)
        assert status == 1
        assert "is the ledger; name another file" in text.err
    assert oddly_named.read_bytes() == ledger.read_bytes()


def test_a_report_that_cannot_be_written_is_an_error(capsys, ledger, tmp_path):
    status, text = run(capsys, "report", ledger, "--out", tmp_path / "missing" / "guard.html")
    assert status == 1
    assert "writable" in text.err


def test_verify_passes_a_sound_ledger_and_fails_a_changed_one(capsys, ledger):
    status, text = run(capsys, "verify", ledger, "--json")
    assert status == 0
    found = json.loads(text.out)
    assert found["sound"]
    assert run(capsys, "verify", ledger, "--expected-head", found["head"])[0] == 0
    assert run(capsys, "verify", ledger, "--expected-head", "00")[0] == 1
    sql(ledger, ("UPDATE answers SET value = 0.99 WHERE query = 1",))
    status, text = run(capsys, "verify", ledger)
    assert status == 1
    assert "row 1" in text.out


def test_a_missing_ledger_is_an_error_and_is_not_made(capsys, tmp_path):
    for command in ("history", "report", "verify"):
        status, text = run(capsys, command, tmp_path / "guard.db")
        assert status == 1, command
        assert "no ledger" in text.err, command
        assert list(tmp_path.iterdir()) == [], command


def test_help_has_an_example(capsys):
    for command in ("demo", "plan", "history", "report", "verify"):
        ended = refuses(SystemExit, "", main, [command, "--help"])
        assert ended.code == 0, command
        assert f"Example: reusable-holdout {command}" in " ".join(capsys.readouterr().out.split())


def test_a_wrong_command_line_ends_with_status_2(capsys):
    for arguments in ([], ["nonsense"], ["plan", "--rows", "many"]):
        ended = refuses(SystemExit, "", main, arguments)
        assert ended.code == 2
    capsys.readouterr()


def test_the_program_is_installed():
    done = subprocess.run(
        [sys.executable, "-m", "reusable_holdout", "--help"], capture_output=True, text=True, check=True
    )
    assert "demo" in done.stdout


EARLIER = [golden for golden in goldens() if not golden.is_asked]


@for_each("golden", EARLIER, ids=[golden.name for golden in EARLIER])
def test_a_ledger_of_an_earlier_version_is_verified_shown_and_reported(golden, tmp_path, capsys):
    ledger = golden.copied(tmp_path / golden.name.replace("/", "-"))
    assert run(capsys, "verify", ledger)[0] == 0
    for epoch, history in enumerate(golden.expected["histories"], start=1):
        status, text = run(capsys, "history", ledger, "--epoch", epoch, "--json")
        assert status == 0
        found = json.loads(text.out)
        for now, then in {
            "way": "kind",
            "value": "value",
            "low": "low",
            "high": "high",
            "told": "told",
        }.items():
            numbers = [one if isinstance(one, str | None) else pytest.approx(one) for one in history[then]]
            assert [row[now] for row in found] == numbers, now
        status, text = run(capsys, "history", ledger, "--epoch", epoch)
        assert status == 0
        assert len(text.out.splitlines()) > len(found)
    out = tmp_path / f"{golden.name.replace('/', '-')}.html"
    assert run(capsys, "report", ledger, "--out", out) == (0, (f"wrote {out}\n", ""))
    assert f"{len(history['kind']):,} answers in the order they were released" in out.read_text()
    assert ledger.read_bytes() == (golden.folder / "guard.db").read_bytes()
