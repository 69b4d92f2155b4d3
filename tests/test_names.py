"""Names that others chose are printed as one plain line, whatever prints them: each trick is played everywhere."""

import contextlib
import json
import sqlite3
import unicodedata

import numpy as np
import pandas as pd
import pytest
from cases import for_each, refuses
from children import Child
from made_guards import made_guard
from reusable_holdout_evals import read_inspect, read_scores
from sklearn.linear_model import LogisticRegression

from reusable_holdout import Difference, Question, verify
from reusable_holdout.cli import main
from reusable_holdout.errors import InputError, Refused, printable
from reusable_holdout.report import report_page

TRICKS = {
    "\x1b[2J\x1b[31mred\x1b[0m": "red",  # clears a terminal, and colours it
    "\x9b31mred": "red",
    "\x1b]0;title\x07name": "name",  # a terminal's title
    "\x1b]8;;http://evil\x1b\\name": "name",  # a link
    "\x1bcname": "name",
    "one\ntwo\r\nthree\u2028four": "one two  three four",
    "a\tb\x00\x08c\x7fd": "a bcd",
    "exe.\u202egnp\u202c\u2066x\u2069\u200e": "exe.gnpx",  # turns the order of letters round
    "mo\u200bd\u200ce\u200dl\u2060\ufeff": "model",  # nobody sees them
    "so\u00adft\u034f\u115f\u3164\uffa0": "soft",
    "tag\U000e0041\U000e007f\ufe00\U000e0100": "tag",
    "\ue000\ud800\uffff": "",  # no characters
}
HONEST = [
    "model v2 (best)",
    "\u00e9t\u00e9 \u6a21\u578b \u043c\u043e\u0434\u0435\u043b\u044c",
    "\u0646\u0645\u06cc\u200c\u062f\u0627\u0646\u0645",  # Persian needs its joiner
    "\U0001f469\u200d\U0001f52c \u2764\ufe0f",  # emoji of several characters
    "<b>&amp;</b>",
]


def test_tricks_are_stripped_and_honest_names_are_not():
    assert {name: printable(name) for name in TRICKS} == TRICKS
    assert [printable(name) for name in HONEST] == HONEST
    for one in map(chr, range(0x110000)):
        shown = printable(f"a{one}b")
        assert printable(shown) == shown
        assert not any(unicodedata.category(sign) in {"Cc", "Cf", "Cs", "Zl", "Zp"} for sign in shown)


WRITABLE = [name for name in TRICKS if "\ud800" not in name]


def unseen(said, *, lines=True):
    """Characters that nothing should have printed."""
    kept = "\n" if lines else ""
    return [
        one
        for one in said
        if unicodedata.category(one) in {"Cc", "Cf", "Cn", "Co", "Zl", "Zp"} and one not in kept
    ]


@pytest.fixture
def guard(tmp_path):
    y = np.arange(400) % 2
    with made_guard(
        None, y, queries=40, charges=3, tolerance=0.25, ledger=tmp_path / "guard.db", seed=0, unwitnessed=True
    ) as made:
        yield made


def test_what_a_question_is_called_is_printed_plainly(guard, tmp_path, capsys):
    for place, name in enumerate(WRITABLE):
        predictions = np.roll(np.arange(400) % 2, place % 2)
        predictions[place] = 1 - predictions[place]
        answer = guard.evaluate(predictions, prior=1.0 - place % 2, name=name)
        assert answer.name == TRICKS[name]
    answers = guard.history()["name"].tolist()
    assert answers == [TRICKS[name] for name in WRITABLE]
    guard.on("zero_one_loss", name=WRITABLE[0])
    assert guard.history()["metric"].iloc[-1] == "red"
    for command in ("history", "verify", "report"):
        assert (
            main(
                [
                    command,
                    str(tmp_path / "guard.db"),
                    *(["--out", str(tmp_path / "r.html")] * (command == "report")),
                ]
            )
            == 0
        )
    assert unseen("".join(capsys.readouterr())) == []
    assert unseen((tmp_path / "r.html").read_text()) == []


NAME = "\x1b[31mexe.\u202egnp\u2066\n\u200bline\x07"
STORED = "exe.gnp line"
ROWS = 4_000
LABELS = np.arange(ROWS) % 2
X = np.column_stack([np.tile([-1.0, 1.0], ROWS // 2), np.arange(ROWS) / ROWS])
MODEL = LogisticRegression().fit(X, LABELS)
_ASK_ELSEWHERE = """
import sys
import numpy as np
from reusable_holdout import ReusableHoldout
labels = np.arange(4_000) % 2
with ReusableHoldout.open(sys.argv[1], None, labels) as guard:
    guard.evaluate(np.roll(labels, 1), prior=0.5, name=sys.argv[2])
"""


def fitted(count):
    """Models that differ, each right in every row."""
    return [LogisticRegression(C=1.0 + place).fit(X, LABELS) for place in range(count)]


def wrong_in(*rows):
    """Predictions that are wrong in these rows."""
    return np.where(np.isin(np.arange(ROWS), rows), 1 - LABELS, LABELS)


def _ask_batches(guard):
    guard.evaluate([wrong_in(1), wrong_in(2)], prior=[1.0, 1.0], name=[NAME, "plain"])
    guard.evaluate([wrong_in(3, row) for row in range(4, 34)], prior=[0.5] + [1.0] * 29, name=[NAME] * 30)


def _ask_one_by_one(guard):
    guard.evaluate(MODEL, prior=1.0, name=NAME)
    guard.compare(wrong_in(1), wrong_in(2), prior=0.0, name=NAME)
    guard.on("zero_one_loss", name=NAME).evaluate(wrong_in(1), prior=0.0, name=NAME)


def _ask_measured(guard):
    one, *several = (guard.measure(model, prior=1.0) for model in fitted(4))
    guard.ask([Question("evaluate", one, 1.0, name=NAME, once=True)])
    # two agree together, and one is charged
    guard.ask([Question("evaluate", several, [1.0, 1.0, 0.5], name=[NAME] * 3)])


def _ask_about_choices(guard):
    guard.choose([wrong_in(1), wrong_in(2)], [1.0, 1.0], name=NAME)
    guard.choose(fitted(2), [1.0, 1.0], name=NAME)
    guard.reveal(wrong_in(5), prior=1.0, name=NAME)


def _ask_for_finals(guard):
    second = guard.on("zero_one_loss", name=NAME)
    guard.final(wrong_in(1), name=NAME, also=[second])


def _ask_for_finals_of_models(guard):
    guard.final(fitted(2), name=NAME)


def _ask_gates(guard):
    half = guard.on(sample_weight=np.arange(ROWS) < ROWS // 2, name=NAME)
    guard.gate(wrong_in(1), 0.9, name=NAME, guardrails={half: 0.8})
    guard.gate(Difference(wrong_in(1), wrong_in(*range(1_000))), 0.1, name=NAME)


def _ask_claims(guard):
    guard.evaluate(wrong_in(1), prior=0.9, series="one", name=NAME)
    guard.evaluate(wrong_in(2), prior=1.0, series="two", name=NAME)
    guard.evaluate([wrong_in(3)], prior=[0.5], series="two", name=[NAME])


def _ask_from_another_process(guard):
    child = Child(_ASK_ELSEWHERE, guard.ledger, NAME)
    assert child.communicate() == ""
    assert child.returncode == 0


WAYS = {
    "questions one by one": (_ask_one_by_one, {}, True),
    "batches": (_ask_batches, {}, False),
    "measured models": (_ask_measured, {}, True),
    "choices and reveals": (_ask_about_choices, {"choices": [2, 2], "reveals": 1}, True),
    "finals": (_ask_for_finals, {}, False),
    "finals of models": (_ask_for_finals_of_models, {}, True),
    "gates with guardrails": (_ask_gates, {"gates": True}, False),
    "claims": (_ask_claims, {"board": "claims", "prior_error": 0.01, "estimate": 0.9}, False),
    "another process": (_ask_from_another_process, {}, False),
}


@pytest.mark.parametrize(("ask", "settings", "models"), WAYS.values(), ids=WAYS)
def test_what_a_ledger_stores_of_a_name_is_plain(tmp_path, ask, settings, models):
    """Asked in every way: seals cover what is stored, so any reader of a ledger prints it safely."""
    ledger = tmp_path / "ledger.db"
    asked = {"queries": 60, "charges": 5, "seed": 0, "vacuous": True, "unwitnessed": True} | settings
    with made_guard(X if models else None, LABELS, ledger=ledger, **asked) as guard:
        ask(guard)
        ask(guard)  # what has a name is the same question by any name
        asked = len(guard.history())
    found = verify(ledger)
    assert found.sound, found.problems
    with contextlib.closing(sqlite3.connect(ledger)) as database:
        stored = [name for (name,) in database.execute("select name from answers").fetchall()]
    assert len(stored) == asked
    assert set(stored) - {"plain"} == {STORED}


def test_names_in_a_ledger_that_somebody_else_wrote_are_printed_plainly(guard, tmp_path, capsys):
    """As one of an older version, or one that was changed."""
    guard.evaluate(np.arange(400) % 2, prior=1.0, name="name")
    guard.close()
    with sqlite3.connect(tmp_path / "guard.db") as database:
        (table,) = (
            name
            for (name,) in database.execute("select name from sqlite_master where type = 'table'").fetchall()
            if "name" in [column[1] for column in database.execute(f"pragma table_info({name})")]
        )
        for (trigger,) in database.execute(
            "select name from sqlite_master where type = 'trigger'"
        ).fetchall():
            database.execute(f"drop trigger {trigger}")
        database.execute(f"update {table} set name = ? where name = 'name'", ("".join(WRITABLE),))
    database.close()
    assert main(["history", str(tmp_path / "guard.db")]) == 0
    main(["verify", str(tmp_path / "guard.db")])
    page, _ = report_page(tmp_path / "guard.db")
    text = "".join(capsys.readouterr())
    assert "gnpx" in text
    assert (unseen(text), unseen(page)) == ([], [])


@for_each("name", [one for one in WRITABLE if "\x00" not in one and "/" not in one])
def test_files_and_what_they_hold_are_named_plainly(tmp_path, capsys, name):
    words = []
    for read, options in ((read_scores, {}), (read_inspect, {})):
        refused = refuses(InputError, "", read, tmp_path / f"{name}.csv", **options)
        words += [str(refused), str(Refused(refused))]
    path = tmp_path / f"{name}.csv"
    pd.DataFrame({"id": ["a", "b"], name: [1, 0], "other": [0, 1]}).to_csv(path, index=False)
    refused = refuses(InputError, "", read_scores, path)
    words.append(str(refused))
    table = read_scores(path, score=name)
    words += [repr(table), table.name, table.metric, *table.left_out]
    log = tmp_path / f"{name}.json"
    sample = {"id": "a", "epoch": 1, "scores": {name: {"value": "C"}}}
    log.write_text(
        json.dumps({"status": "success", "eval": {"task": name, "model": name}, "samples": [sample]})
    )
    table = read_inspect(log)
    words += [repr(table), table.name, table.metric]
    status = main(
        [
            "gate",
            "ask",
            "--ledger",
            str(tmp_path / f"{name}.db"),
            "--scores",
            str(path),
            "--incumbent",
            str(path),
            "--improvement",
            "1",
        ]
    )
    assert status == 3
    words += capsys.readouterr()
    assert [unseen(one.removesuffix("\n"), lines=False) for one in words] == [[] for _ in words]
