"""A box of exact-match answers tells no gold answer: all that leaves it is searched for each of 300."""

import json
import pickle
import traceback

import numpy as np
import pandas as pd
import pytest
from box_servers import answering
from cases import refuses
from made_guards import made_guard
from reusable_holdout_box import RemoteHoldout, make_box
from reusable_holdout_box.mcp import make_server

from reusable_holdout.cli import main
from reusable_holdout.errors import HoldoutError, InputError

pytestmark = pytest.mark.filterwarnings("ignore::reusable_holdout_box.NoWallWarning")

ROWS = 300
ANSWERS = [f"Gold-{k:03d} of Ys" for k in range(ROWS)]
GUESSES = [f" gold-{k:03d}  OF ys" if k < 240 else "I do not know" for k in range(ROWS)]
WISH = {"queries": 20, "charges": 3, "estimate": 0.8, "vacuous": True, "seed": 1}


def plain(text):
    return " ".join(text.casefold().split())


def told_in(said):
    """Gold answers that something says, in whatever case."""
    folded = plain(said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said))
    return [one for one in ANSWERS if plain(one) in folded]


def labels_file(folder):
    path = folder / "labels.csv"
    pd.DataFrame({"id": [f"r{k}" for k in range(ROWS)], "answer": ANSWERS}).to_csv(path, index=False)
    return path


STRANGE = [
    *(["nearly Gold"] * (ROWS - 1), np.arange(ROWS), np.full(ROWS, 0.5), [None] * ROWS, [*GUESSES[:-1], 3]),
    *(np.zeros((ROWS, 2)), "Gold"),
]


def errors_of(remote):
    """Words of all errors that strange predictions raise."""
    found = []
    for one in STRANGE:
        for ask in (remote.evaluate, lambda them: remote.evaluate([them], prior=[0.8])):
            refused = refuses(InputError, "", ask, one)
            found += traceback.format_exception(refused)
    return found


def test_a_box_of_300_answers_tells_none_of_them(tmp_path, capsys):
    ways = ("evaluate", "compare", "final")
    make_box(tmp_path / "box", labels_file(tmp_path), id_column="id", allow=ways, **WISH)
    said = []
    with answering(tmp_path / "box") as url, RemoteHoldout(url) as remote:
        assert remote.classes is None
        assert remote.evaluate(GUESSES, prior=0.8).value == 0.8
        assert remote.evaluate(np.array(GUESSES), prior=0.8).replayed
        assert remote.compare(GUESSES, ["no"] * ROWS, prior=0.8, name="compared").value == 0.8
        said += [vars(remote), remote, remote.plan, remote.history().to_string(), pickle.dumps(remote)]
        said += errors_of(remote)
        replies = [remote._transport.ask({"ask": what}) for what in ("about", "status", "history", "ids")]
        said += [json.dumps(replies, default=str), remote.final(GUESSES)]
    private = tmp_path / "box" / "private"
    said += [file.read_bytes() for file in private.iterdir() if file.name != "labels.csv"]
    for command in ("verify", "history", "report"):
        out = ["--output", str(tmp_path / "report.html")] if command == "report" else []
        main([command, str(private / "guard.db"), *out])
    said += [(tmp_path / "report.html").read_bytes(), *capsys.readouterr()]
    assert told_in(ANSWERS[7].upper())  # the search finds what there is
    assert [told_in(one) for one in said] == [[] for _ in said]


def test_the_tools_of_an_agent_tell_no_answer(tmp_path):
    mcp, anyio = pytest.importorskip("mcp"), pytest.importorskip("anyio")
    make_box(tmp_path / "box", labels_file(tmp_path), id_column="id", **WISH)
    (tmp_path / "guesses.csv").write_text("guess\n" + "".join(f'"{one}"\n' for one in GUESSES))
    (tmp_path / "digits.csv").write_text("guess\n" + "007\n" * ROWS)
    said = []

    async def run(remote):
        async with mcp.Client(make_server(remote, tmp_path)) as client:
            said.extend((await client.list_tools()).tools)
            calls = [
                {"predictions": GUESSES, "prior": 0.8},
                {"file": "guesses.csv", "prior": 0.8},
                {"file": "digits.csv", "prior": 0.0},
                {"predictions": ["Gold"], "prior": 0.8},
                {"predictions": [1, "a"] * 150, "prior": 0.8},
            ]
            said.extend([await client.call_tool("evaluate", arguments) for arguments in calls])

    with answering(tmp_path / "box") as url, RemoteHoldout(url) as remote:
        anyio.run(run, remote)
    assert "whatever the case" in said[0].description
    first, same, digits, *refused = said[-5:]
    assert first.structured_content["value"] == 0.8
    assert same.structured_content["replayed"]  # a file of the same answers is the same question
    assert not digits.is_error  # digits are text where answers are
    assert all(one.is_error for one in refused)
    assert [told_in(one) for one in said] == [[] for _ in said]


def test_a_guard_and_what_stands_for_it_tell_no_answer(tmp_path, monkeypatch):
    monkeypatch.setenv("REUSABLE_HOLDOUT_REGISTRY", str(tmp_path / "registry"))
    ledger = tmp_path / "guard.db"
    guard = made_guard(None, np.array(ANSWERS), ledger=ledger, witness=tmp_path / "seen", **WISH)
    guard.evaluate(GUESSES, prior=0.8)
    said = [guard, guard.plan, guard.metric, guard.history().to_string(), *errors_of(guard)]
    said += [pickle.dumps(guard), guard.certificate().to_json(), guard.private_labels, guard.class_set]
    for metric in ("balanced_accuracy", "f1_macro", "recall_macro", "log_loss", "brier", "roc_auc_ovr"):
        for ask in (lambda name: made_guard(None, ANSWERS, metric=name, **WISH), guard.on):
            refused = refuses(InputError, r"declared with classes=", ask, metric)
            said += traceback.format_exception(refused)
    refused = refuses(InputError, "", made_guard, None, ANSWERS, prevalence=[1 / ROWS] * ROWS, **WISH)
    with pytest.raises(HoldoutError) as other:
        made_guard(None, ANSWERS, ledger=ledger, classes=[*ANSWERS, "another"], **WISH)
    said += [*traceback.format_exception(refused), *traceback.format_exception(other.value)]
    kept = [file for file in tmp_path.rglob("*") if file.is_file() and not file.name.endswith(".holdout")]
    said += [file.read_bytes() for file in kept]
    assert len(kept) > 3
    assert [told_in(one) for one in said] == [[] for _ in said]
