"""Names that others chose are printed as one plain line, whatever prints them: each trick is played everywhere."""

import json
import sqlite3
import unicodedata

import numpy as np
import pandas as pd
import pytest
from asking import made_guard
from cases import for_each
from reusable_holdout_evals import read_inspect, read_scores

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
        None, y, queries=40, charges=3, tolerance=0.25, ledger=tmp_path / "guard.db", seed=0, witness=False
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
    assert unseen(answer._repr_html_()) == []
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
        with pytest.raises(InputError) as refused:
            read(tmp_path / f"{name}.csv", **options)
        words += [str(refused.value), str(Refused(refused.value))]
    path = tmp_path / f"{name}.csv"
    pd.DataFrame({"id": ["a", "b"], name: [1, 0], "other": [0, 1]}).to_csv(path, index=False)
    with pytest.raises(InputError) as refused:
        read_scores(path)
    words.append(str(refused.value))
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
