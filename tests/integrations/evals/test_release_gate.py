"""The commands gate init and gate ask on labels: verdicts, statuses, refusals, and secrets."""

import functools
import json
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from cases import refuses
from integrations.evals.conftest import ACCEPTED, BAD_INPUT, HALTED, REJECTED, history
from made_guards import made_guard, right_in
from reusable_holdout_evals.gate import ask_gate, make_gate, open_gate

from reusable_holdout.errors import InputError, LedgerKeyError, LedgerMismatchError

ROWS = 2_000
IDS = np.array([f"r{k:04}" for k in range(ROWS)])
LABELS = np.random.default_rng(0).integers(0, 2, ROWS)
PLAN = ["--queries", 20, "--tolerance", 0.15]
predicted = functools.partial(
    right_in, LABELS
)  # noise moves a verdict only if it is near the named improvement
OF_LABELS = ["--labels", "labels.csv", *PLAN]
OF_IDS = ["--labels", "labelled.csv", "--id", "id", *PLAN]


@pytest.fixture(autouse=True)
def files(write):
    write("labels.csv", label=LABELS)
    write("labelled.csv", id=IDS, label=LABELS)
    for name, *of in (("old", 0.7), ("new", 0.8), ("same", 0.7, 5)):
        write(f"{name}.csv", prediction=predicted(*of))


@pytest.fixture
def ask(gate):
    """Ask about two files: status and outputs, and the record for programs."""

    def run(new="new.csv", old="old.csv", improvement=0.05, *more):
        question = ["--predictions", new, "--incumbent", old, "--improvement", improvement, *more]
        done = gate("ask", *question)
        if done.status != BAD_INPUT and "--json" not in more:
            done.record = json.loads(gate("ask", *question, "--json").out)
        return done

    return run


# ---- making


def test_a_gate_that_says_nothing_is_refused_unless_that_is_named(gate, make, ask, write):
    wide = ["--labels", "labels.csv", "--queries", 20, "--tolerance", 0.51]
    done = gate("init", *wide)
    assert (done.status, done.out) == (BAD_INPUT, "")
    assert "at most a quarter of the range of differences, 2, to say anything; it would be 0.51" in done.err
    assert not list(Path().glob("gate.db*"))
    make(*wide, "--vacuous")
    assert ask().status == ACCEPTED
    write("few.csv", label=LABELS[:100])  # whose scores alone would say nothing
    with make_gate("few.db", Path("few.csv"), queries=20, tolerance=0.3, spread=0.3) as made:
        assert made.guard.plan.tolerance > 0.25


@pytest.mark.filterwarnings("default::reusable_holdout.errors.NoWitnessWarning")
def test_a_gate_without_a_witness_is_made_with_a_note_in_the_words_of_the_command(gate):
    done = gate("init", *OF_LABELS)
    words = r"reusable-holdout: note: whoever can restore an older copy of gate.db .*--witness.*\n"
    assert re.fullmatch(words, done.raw)
    assert (done.status, "note" in done.out) == (0, False)
    assert gate("init", *OF_LABELS).raw == ""  # only once


def test_a_gate_is_made_once_and_its_secrets_are_the_owners_alone(gate, make, ask, write):
    first = make(*OF_LABELS)
    ask()
    assert make(*OF_LABELS) == first
    assert len(history()) == 1
    assert "a budget cannot be changed" in gate("init", *OF_LABELS[:2], "--queries", 30, *PLAN[2:]).err
    write("others.csv", label=1 - LABELS)
    assert "other data" in gate("init", "--labels", "others.csv", *PLAN).err
    assert [Path(f"gate.db.{one}").stat().st_mode & 0o777 for one in ("holdout", "key")] == [0o600] * 2


# ---- verdicts


def test_a_better_model_is_accepted_and_another_rejected(make, ask):
    make(*OF_LABELS)
    assert (ask("new.csv").status, ask("same.csv").status) == (ACCEPTED, REJECTED)
    assert ask("same.csv", "old.csv", -0.1).status == ACCEPTED  # it is no worse by more
    assert history()["charged"].tolist() == [True, False, True]
    assert history()["name"].tolist() == ["new.csv", "same.csv", "same.csv"]


def test_a_verdict_is_one_word_and_of_what_is_accepted_the_certified_interval(make, ask):
    make(*OF_LABELS)
    done = ask("same.csv", "old.csv", 0.15)
    assert (done.out, done.err) == ("rejected\n", "")
    done = ask("new.csv", "old.csv", 0.05, "--name", "commit 3f2a")
    (row,) = history()[history()["charged"]].to_dict("records")
    interval = re.fullmatch(r"accepted \(certified improvement: (\S+) to (\S+)\)\n", done.out)
    low, high = map(float, interval.groups())
    assert row["low"] - 1e-3 < low <= row["low"]
    assert row["high"] <= high < row["high"] + 1e-3
    assert row["name"] == "commit 3f2a"
    told = {"verdict": "accepted", "charged": False, "charges_left": row["charges_left"], "queries_left": 18}
    assert done.record == told | {"low": row["low"], "high": 1.0, "improvement": 0.05, "tolerance": 0.0}


def test_a_spent_budget_halts_and_earlier_questions_keep_their_verdict(make, ask, write):
    make("--labels", "labels.csv", "--queries", 2, *PLAN[2:])
    assert (ask("new.csv").status, ask("same.csv").status) == (ACCEPTED, REJECTED)
    write("third.csv", prediction=predicted(0.9))
    halted = ask("third.csv")
    assert (halted.status, halted.out) == (HALTED, "halted\n")
    told = {"verdict": "halted", "queries_left": 0, "low": None, "high": None}
    assert halted.record.items() >= told.items()
    assert (ask("new.csv").status, ask("same.csv").status) == (ACCEPTED, REJECTED)
    assert len(history()) == 2


def test_the_improvement_of_a_loss_is_how_much_smaller_it_is(make, ask, write):
    write("targets.csv", y=np.zeros(ROWS))
    for name, error in (("old", 0.6), ("new", 0.3), ("worse", 0.8)):
        write(f"{name}.parquet", y=np.full(ROWS, error))
    make("--labels", "targets.csv", "--metric", "mae", "--bounds", 0, 1, *PLAN)
    done = ask("new.parquet", "old.parquet", 0.1)
    assert (done.status, done.record["high"]) == (ACCEPTED, 1.0)
    assert done.record["low"] == pytest.approx(0.1)
    done = ask("worse.parquet", "old.parquet", 0.1)
    assert (done.status, done.record["low"], done.record["high"]) == (REJECTED, -1.0, 1.0)


# ---- files


def test_rows_are_aligned_by_ids_whatever_their_order(make, ask, write):
    ids = np.array([f"{k:04}" for k in range(ROWS - 1)] + ["NA"])  # they are text
    write("labelled.csv", id=ids, label=LABELS)
    make(*OF_IDS)
    order = np.random.default_rng(1).permutation(ROWS)
    write("shuffled.csv", prediction=predicted(0.8)[order], id=ids[order])
    write("old.parquet", id=ids[::-1], prediction=predicted(0.7)[::-1])
    assert ask("shuffled.csv", "old.parquet").status == ACCEPTED
    write("sorted.csv", id=ids, prediction=predicted(0.8))
    assert ask("sorted.csv", "old.parquet").record["queries_left"] == 19  # the same question
    write("renamed.csv", key=ids, prediction=predicted(0.8))
    assert ask("renamed.csv", "renamed.csv", 0.01, "--id", "key").status == REJECTED


def test_labels_may_be_text_and_files_parquet_or_json(make, ask, write):
    words = np.array(["no", "yes"])
    write("words.json", label=words[LABELS])
    make("--labels", "words.json", *PLAN)
    for ending in ("csv", "parquet", "json", "jsonl"):
        write(f"new.{ending}", prediction=words[predicted(0.8)])
        write(f"old.{ending}", prediction=words[predicted(0.7)])
        assert ask(f"new.{ending}", f"old.{ending}").record["queries_left"] == 19  # each the same question


def test_probabilities_are_columns_named_by_the_classes(make, ask, write):
    make(*OF_LABELS, "--metric", "brier")
    sure, unsure = (np.where(LABELS == 1, p, 1 - p) for p in (0.9, 0.6))
    write("old.csv", p=unsure)  # of the last class
    for columns in ({"1": sure, "0": 1 - sure}, {"p": sure}):
        write("new.csv", **columns)
        assert ask().record["queries_left"] == 19  # the same question
    write("new.csv", no=1 - sure, yes=sure)
    assert "named 0, 1; it has no, yes" in ask().err


def test_labels_named_again_open_the_same_gate_without_the_copy(make, ask, write):
    make(*OF_IDS)
    for name, accuracy in (("new", 0.8), ("old", 0.7)):
        write(f"{name}.csv", id=IDS, p=predicted(accuracy))
    copy, named = Path("gate.db.holdout"), ("--labels", "labelled.csv", "--id", "id")
    copy.write_bytes(b"written by another version")
    assert "another version of the library; open the guard with its data instead, a gate with" in ask().err
    copy.unlink()
    assert "pass --labels" in ask().err
    assert ask("new.csv", "old.csv", 0.05, *named).status == ACCEPTED
    refuses(LedgerMismatchError, "", open_gate, "gate.db", labels=Path("labels.csv"))


def test_a_guard_made_in_python_is_asked_if_it_is_a_gate(ask, write):
    named = ("new.csv", "old.csv", 0.05, "--labels", "labels.csv")
    assert "no ledger" in ask(*named).err
    assert not Path("gate.db").exists()
    made_guard(None, LABELS, gates=True, queries=20, tolerance=0.15, ledger="gate.db").close()
    assert ask(*named).status == ACCEPTED
    write("others.csv", label=1 - LABELS)
    made_guard(None, 1 - LABELS, queries=20, tolerance=0.15, ledger="other.db").close()
    with pytest.raises(InputError, match="must be for gates; it is for other questions"):
        open_gate("other.db", labels=Path("others.csv"))


def test_a_rotated_gate_is_asked_about_its_new_labels(make, ask):
    make(*OF_LABELS)
    assert ask().status == ACCEPTED
    with open_gate("gate.db") as opened:
        rotated = opened.guard.rotate(None, 1 - LABELS, early=True)
        pickle.dumps(rotated.guard)  # it writes the copy
        rotated.guard.close()
    assert ask().status == REJECTED
    assert Path("gate.db.2.holdout").exists()


def test_a_ledger_on_a_server_needs_its_key_named(server_url):
    key, files = Path("server.key"), (Path("new.csv"), Path("old.csv"))
    make_gate(server_url, Path("labels.csv"), key=key, queries=20, tolerance=0.15).guard.close()
    for labels in (None, Path("labels.csv")):
        with open_gate(server_url, key=key, labels=labels) as opened:
            assert ask_gate(opened, *files, improvement=0.05).verdict == "accepted"
    refuses(LedgerKeyError, "pass --key", open_gate, server_url)


# ---- bad input


GAPS = np.where(np.arange(ROWS) % 250 == 3, np.nan, 1.0)
BAD_COLUMNS = {
    "must be rows under a header": {"p": []},
    "it holds 1,999": {"p": predicted(0.8)[1:]},
    "it has none at rows 4, 254, 504, 754, 1004 and 3 more": {"p": GAPS},
    r"new.csv: .* got 2": {"p": predicted(0.8) * 2},
    "must be numbers": {"p": ["yes"] * ROWS},
    "must be finite": {"p": [np.inf] * ROWS},
    "one column of predictions; it has p, q": {"p": LABELS, "q": LABELS},
}
BAD_QUESTIONS = [
    (("none.csv",), "there is none"),
    (("empty.csv",), "must be a CSV file"),
    (("text.parquet",), "Parquet or JSON"),
    (("bare.csv",), "it holds 1,999 under its header"),
    (("new.csv", "old.csv", 0.05, "--id", "id"), "made with ids; this one was not"),
    (("new.csv", "old.csv", "nan"), r"must be a number in \[-1, 1\]"),
    (("new.csv", "old.csv", 1.5), r"must be a number in \[-1, 1\]"),
    (("new.csv", "old.csv", "much"), "invalid float value"),
    (("new.csv", "old.csv", 0.05, "--labels", "x.csv"), "to other data"),
    (("new.csv", "old.csv", 0.05, "--key", "none.key"), "none.key"),
    (("new.csv", "old.csv", 0.05, "--certain"), "unrecognized arguments: --certain"),
    (("new.csv", "old.csv", 0.05, "--score", "x"), "--score must come with files of scores"),
    (("new.csv", "old.csv", 0.05, "--incumbent", "a", "b"), "must name one file of predictions; got 2"),
]
BAD_IDS = {
    "4 ids are missing: r0000, r0001, r0002, r0003": IDS[4:],
    "8 ids are not among the labels': x0, x1, x2, x3, x4 and 3 more": [*IDS, *(f"x{k}" for k in range(8))],
    "come more than once: r0000, r0001": [*IDS[:-2], "r0000", "r0001"],
    "it has none in rows 2000": [*IDS[:-1], ""],
}


def test_bad_input_ends_with_status_3_and_charges_nothing(gate, make, ask, write):
    make(*OF_LABELS)
    Path("empty.csv").touch()
    Path("text.parquet").write_text("x")
    Path("bare.csv").write_text("\n".join(map(str, predicted(0.8))))
    write("x.csv", label=1 - LABELS)
    found = [(ask(*question), words) for question, words in BAD_QUESTIONS]
    for words, columns in BAD_COLUMNS.items():
        write("new.csv", **columns)
        found.append((ask(), words))
    found += [(gate("ask", "--incumbent", "old.csv"), "are required"), (gate("tell"), "invalid choice")]
    for done, words in found:
        assert (done.status, done.out) == (BAD_INPUT, ""), words
        assert re.search(words, done.err), (words, done.err)
    assert len(history()) == 0


def test_ids_that_do_not_fit_are_listed(make, ask, write):
    make(*OF_IDS)
    write("old.csv", id=IDS, prediction=predicted(0.7))
    for message, ids in BAD_IDS.items():
        write("new.csv", id=ids, prediction=np.resize(predicted(0.8), len(ids)))
        assert message in ask().err
    write("new.csv", prediction=predicted(0.8))
    assert "must have the column of ids 'id'; it has prediction" in ask().err
    assert len(history()) == 0


def test_labels_that_do_not_fit_are_not_quoted(gate):
    tables = {
        "two.csv": "label,extra\nsecret-a,1\nsecret-b,2\n",
        "gap.csv": "label\nsecret-a\n\nsecret-b,\n",
        "bare.csv": "\n".join(["secret-a", *["secret-a"] * 1_000, *["secret-b"] * 999]),
        "ragged.csv": 'label\nsecret-a\n"secret-b,secret-a\nsecret-a,secret-b,3,4\n',
        "numbers.csv": "\n".join(str(label) for label in LABELS),
        "empty.csv": "",
        "broken.json": '[{"label": "secret"}, ["secret"]]',
    }
    for name, text in tables.items():
        Path(name).write_text(text)
        done = gate("init", "--labels", name, *PLAN)
        assert (done.status, done.out) == (BAD_INPUT, ""), name
        assert name in done.err
        assert "secret" not in done.err
    assert not Path("gate.db").exists()


def test_a_gate_that_cannot_be_is_not_made(gate):
    for arguments, message in (
        (["--metric", "f1"], "plain mean over rows; f1 is not"),
        (["--metric", "accurate"], "did you mean 'accuracy'"),
        (["--metric", "mae"], "bounds"),
        (["--bounds", 0, 1], "leave them out"),
        (["--tolerance", 0.0001], "rows"),
        (["--id", "id"], "column of ids 'id'"),
        (["--queries", "many"], "invalid int value"),
    ):
        done = gate("init", *OF_LABELS, *arguments)
        assert done.status == BAD_INPUT, arguments
        assert message in done.err, arguments
        assert not list(Path().glob("gate.db*")), arguments


# ---- statuses and secrets


def test_a_failure_of_any_kind_is_no_verdict(make, ask, monkeypatch):
    """Python's status for a crash is that of "rejected"."""
    make(*OF_LABELS)
    for error in (ZeroDivisionError("a label"), MemoryError("a label"), SystemExit(1)):
        monkeypatch.setattr("reusable_holdout_evals.command.ask_gate", Mock(side_effect=error))
        done = ask()
        assert (done.status, "label" in done.err) == (BAD_INPUT, False)
        assert "there is no verdict" in done.err


def test_nothing_but_the_verdict_depends_on_the_labels(gate, make, ask, write, monkeypatch):
    """Holdouts that the same two models score differently, with the same verdict: the same output."""
    outputs = []
    for folder, right in (("a", 0.8), ("b", 0.87), ("c", 0.95)):
        Path(folder).mkdir()
        monkeypatch.chdir(folder)
        write("labels.csv", label=np.where(np.arange(ROWS) < right * ROWS, 1, 0))
        for name, predictions in (("new", [1] * ROWS), ("old", [0] * ROWS)):
            write(f"{name}.csv", p=predictions)
        outputs.append([make(*OF_LABELS), vars(ask()), history().drop(columns="asked_at").to_csv()])
        monkeypatch.chdir("..")
    assert outputs[0] == outputs[1] == outputs[2]


def test_a_gate_of_private_answers_tells_none_of_them(gate, ask, write):
    answers = [f"Gold {k}" for k in range(ROWS)]
    write("answers.csv", label=answers)
    write("good.csv", prediction=[f"gold  {k}" if k % 5 else "42" for k in range(ROWS)])
    write("digits.csv", prediction=["007"] * ROWS)  # text, where answers are
    init = ["init", "--labels", "answers.csv", *PLAN]
    said = [gate(*init), ask("good.csv", "digits.csv", 0.5), gate(*init, "--metric", "brier")]
    assert [one.status for one in said] == [0, ACCEPTED, BAD_INPUT]
    assert "classes=" in said[-1].err
    ledger = Path("gate.db").read_bytes().decode("latin-1")
    text = f"{[vars(one) for one in said]}{history()}{ledger}".casefold()
    assert not [one for one in answers if one.casefold() in text]


def test_the_status_is_the_verdict_even_if_nobody_reads_it(gate, make):
    make(*OF_LABELS)
    assert "0 accepted, 1 rejected, 2 halted" in " ".join(gate("ask", "--help").out.split())
    reading, writing = os.pipe()
    os.close(reading)
    for stream in (os.open("/dev/full", os.O_WRONLY), writing):
        program = [sys.executable, "-m", "reusable_holdout", "gate", "ask", "--predictions", "same.csv"]
        program += ["--ledger", "gate.db", "--incumbent", "old.csv", "--improvement", "0.05"]
        assert subprocess.run(program, stdout=stream, check=False).returncode == REJECTED
        os.close(stream)
