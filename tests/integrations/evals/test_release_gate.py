"""The commands gate-init and gate: verdicts, statuses, what they refuse, and what they keep to themselves."""

import json
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from children import Child
from reusable_holdout_evals.gate import ask_gate, make_gate, open_gate, read_labels

from reusable_holdout import ReusableHoldout
from reusable_holdout.cli import main
from reusable_holdout.errors import LedgerMismatchError
from reusable_holdout.guard import released

ROWS = 2_000
ACCEPTED, REJECTED, HALTED, BAD_INPUT = 0, 1, 2, 3
IDS = np.array([f"r{k:04}" for k in range(ROWS)])
LABELS = np.random.default_rng(0).integers(0, 2, ROWS)


def predicted(accuracy, variant=0):
    """Predictions of exactly this accuracy: noise moves a verdict only if it is near the named improvement."""
    wrong = np.roll(np.arange(ROWS) >= round(accuracy * ROWS), variant)
    return np.where(wrong, 1 - LABELS, LABELS)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Write frames to CSV or Parquet in the working folder."""
    monkeypatch.chdir(tmp_path)

    def write(name, **columns):
        frame = pd.DataFrame(columns)
        if name.endswith(".csv"):
            frame.to_csv(name, index=False)
        else:
            frame.to_parquet(name)
        return name

    write("labels.csv", label=LABELS)
    write("labelled.csv", id=IDS, label=LABELS)
    write("old.csv", prediction=predicted(0.7))
    write("new.csv", prediction=predicted(0.8))
    write("same.csv", prediction=predicted(0.7, 5))
    return write


@pytest.fixture
def gate(files, capsys):
    """Run a command: its status, and what it wrote."""

    def run(*arguments, command="ask"):
        try:
            status = main(["gate", command, "--ledger", "guard.db", *map(str, arguments)])
        except SystemExit as ended:
            status = ended.code
        return status, capsys.readouterr()

    return run


@pytest.fixture
def make(gate):
    def run(*arguments, labels="labels.csv", queries=20):
        status, text = gate(
            "--labels", labels, "--queries", queries, "--tolerance", 0.15, *arguments, command="init"
        )
        assert status == 0, text.err
        return text.out

    return run


def asked(new="new.csv", old="old.csv", improvement=0.05):
    return ["--predictions", new, "--incumbent", old, "--improvement", improvement]


def history():
    return released("guard.db").history


# ---- making


def test_a_gate_that_says_nothing_is_refused_unless_that_is_named(gate, tmp_path):
    wide = ["--labels", "labels.csv", "--queries", 20, "--tolerance", 0.51]
    status, text = gate(*wide, command="init")
    assert (status, text.out) == (BAD_INPUT, "")
    assert "at most a quarter of the range of differences, 2, to say anything; it would be 0.51" in text.err
    assert "it needs a tolerance of 0.5" in text.err
    assert not list(tmp_path.glob("guard.db*"))
    assert gate(*wide, "--vacuous", command="init")[0] == 0
    assert gate(*asked())[0] == ACCEPTED


def test_a_gate_that_says_something_is_made_where_scores_would_be_too_wide(gate, files):
    files("few.csv", label=LABELS[:100])
    few = ["--labels", "few.csv", "--queries", 20, "--tolerance", 0.3, "--spread", 0.3]
    assert gate(*few, command="init")[0] == 0
    with open_gate("guard.db") as made:
        assert made.guard.plan.tolerance > 0.25


@pytest.mark.filterwarnings("default::reusable_holdout.errors.NoWitnessWarning")
def test_a_gate_without_a_witness_is_made_with_a_note_in_the_words_of_the_command(gate):
    stated = ["--labels", "labels.csv", "--queries", 20, "--tolerance", 0.15]
    status, text = gate(*stated, command="init")
    assert status == 0
    assert re.fullmatch(
        r"reusable-holdout: note: whoever can restore an older copy of guard.db .*--witness.*\n", text.err
    )
    assert "note" not in text.out
    status, text = gate(*stated, command="init")
    assert (status, text.err) == (0, "")


def test_a_copy_of_the_labels_that_cannot_be_read_names_the_way_without_it(make, gate):
    make()
    Path("guard.db.holdout").write_bytes(b"written by another version")
    status, text = gate(*asked())
    assert (status, text.out) == (BAD_INPUT, "")
    assert (
        "may be of another version of the library; open the guard with its data instead, a gate with --labels"
        in text.err
    )
    assert gate(*asked(), "--labels", "labels.csv")[0] == ACCEPTED


# ---- verdicts


def test_a_better_model_is_accepted_and_another_rejected(gate, make):
    make()
    assert gate(*asked("new.csv"))[0] == ACCEPTED
    assert gate(*asked("same.csv"))[0] == REJECTED
    assert history()["charged"].tolist() == [True, False]
    assert history()["name"].tolist() == ["new.csv", "same.csv"]


def test_a_verdict_is_one_word_and_of_what_is_accepted_the_certified_interval(gate, make):
    """The fault: "accepted" alone, of what may be worse by nearly the tolerance, for too little was named."""
    make()
    _, text = gate(*asked("same.csv", improvement=0.15))
    assert (text.out, text.err) == ("rejected\n", "")
    _, text = gate(*asked("new.csv"))
    (row,) = history()[history()["charged"]].to_dict("records")
    interval = re.fullmatch(r"accepted \(certified improvement: (\S+) to (\S+)\)\n", text.out)
    low, high = map(float, interval.groups())
    assert row["low"] - 1e-3 < low <= row["low"]
    assert row["high"] <= high < row["high"] + 1e-3


def test_a_named_improvement_below_the_tolerance_is_noted(gate, make):
    make()
    tolerance = json.loads(gate(*asked(), "--json")[1].out)["tolerance"]
    for named, noted in ((tolerance, False), (tolerance * 0.99, True), (-0.05, True)):
        status, text = gate(*asked(improvement=named))
        assert status in {ACCEPTED, REJECTED}
        assert ("is below the tolerance" in text.err) == noted
        if noted:
            assert f"may be worse than the incumbent by {tolerance - named:.3g}, and noise alone" in text.err
            assert f"name {tolerance:.3g} or more, as gate init shows" in text.err


def test_the_same_question_again_has_the_same_verdict_free(gate, make):
    make()
    first = json.loads(gate(*asked(), "--json")[1].out)
    status, text = gate(*asked(), "--json", "--name", "again")
    assert status == ACCEPTED
    assert json.loads(text.out) == first | {"charged": False}
    assert len(history()) == 1


def test_a_spent_budget_halts_and_what_was_asked_keeps_its_verdict(gate, make, files):
    make(queries=2)
    assert gate(*asked("new.csv"))[0] == ACCEPTED
    assert gate(*asked("same.csv"))[0] == REJECTED
    files("third.csv", prediction=predicted(0.9))
    status, text = gate(*asked("third.csv"))
    assert (status, text.out) == (HALTED, "halted\n")
    status, text = gate(*asked("third.csv"), "--json")
    assert status == HALTED
    found = json.loads(text.out)
    assert (found["verdict"], found["queries_left"], found["low"], found["high"]) == ("halted", 0, None, None)
    assert gate(*asked("new.csv"))[0] == ACCEPTED
    assert gate(*asked("same.csv"))[0] == REJECTED
    assert len(history()) == 2


def test_accepted_releases_end_with_the_charges(gate, make, files):
    make("--charges", 1)
    assert json.loads(gate(*asked(), "--json")[1].out)["charges_left"] == 0
    files("better.csv", prediction=predicted(0.9))
    assert gate(*asked("better.csv"))[0] == HALTED


def test_a_name_is_what_history_shows(gate, make):
    make()
    gate(*asked(), "--name", "commit 3f2a")
    assert history()["name"].tolist() == ["commit 3f2a"]


def test_what_is_not_much_worse_passes_a_negative_improvement(gate, make):
    make()
    assert gate(*asked("same.csv", improvement=-0.1))[0] == ACCEPTED


def test_the_improvement_of_a_loss_is_how_much_smaller_it_is(gate, make, files):
    files("targets.csv", y=np.zeros(ROWS))
    for name, error in (("old", 0.6), ("new", 0.3), ("worse", 0.8)):
        files(f"{name}.parquet", y=np.full(ROWS, error))
    make("--metric", "mae", "--bounds", 0, 1, labels="targets.csv")
    status, text = gate(*asked("new.parquet", "old.parquet", 0.1), "--json")
    found = json.loads(text.out)
    assert status == ACCEPTED
    assert -0.1 < found["low"] < 0.1
    assert found["high"] == 1.0
    status, text = gate(*asked("worse.parquet", "old.parquet", 0.1), "--json")
    found = json.loads(text.out)
    assert (status, found["low"]) == (REJECTED, -1.0)
    assert 0.1 < found["high"] < 0.3


def test_json_is_the_verdict_and_what_is_left(gate, make):
    make()
    _, text = gate(*asked(), "--json")
    found = json.loads(text.out)
    (row,) = history().to_dict("records")
    assert found == {
        "verdict": "accepted",
        "charged": True,
        "charges_left": row["charges_left"],
        "queries_left": 19,
        "low": row["low"],
        "high": 1.0,
        "improvement": 0.05,
        "tolerance": 0.15,
    }


def test_verdicts_are_certified_to_within_the_tolerance_of_what_was_named(files):
    """The tolerance is that of differences, down to the last charge."""
    with make_gate("guard.db", Path("labels.csv"), queries=20, charges=5, tolerance=0.15, seed=0) as guard:
        found = []
        for k in range(20):
            files("new.csv", prediction=predicted(0.6 if k % 3 == 2 else 0.8, k))
            found.append(ask_gate(guard, Path("new.csv"), Path("old.csv"), improvement=0.0))
    asked = [one for one in found if one.verdict != "halted"]
    assert {one.verdict for one in found} == {"accepted", "rejected", "halted"}
    assert asked[-1].charges_left == 0
    for one in asked:
        if one.verdict == "accepted":
            assert -0.15 <= one.low < 0
        else:
            assert 0 < one.high <= 0.15


def test_a_verdict_is_one_bit_of_the_labels(files):
    """Whatever the score, there are two outputs to a question, and nothing of the exact difference is in either."""
    seen = set()
    for k, accuracy in enumerate((0.0, 0.3, 0.6, 0.70, 0.8, 0.9, 0.95, 1.0)):
        files("new.csv", prediction=predicted(accuracy))
        with make_gate(f"{k}.db", Path("labels.csv"), queries=20, tolerance=0.15, seed=k) as guard:
            seen.add(ask_gate(guard, Path("new.csv"), Path("old.csv"), improvement=0.05))
    assert {one.verdict for one in seen} == {"accepted", "rejected"}
    assert len(seen) == 2


# ---- files


def test_rows_are_aligned_by_ids_whatever_their_order(gate, make, files):
    make("--id", "id", labels="labelled.csv")
    order = np.random.default_rng(1).permutation(ROWS)
    files("shuffled.csv", prediction=predicted(0.8)[order], id=IDS[order])
    files("old.parquet", id=IDS[::-1], prediction=predicted(0.7)[::-1])
    assert gate(*asked("shuffled.csv", "old.parquet"))[0] == ACCEPTED
    files("sorted.csv", id=IDS, prediction=predicted(0.8))
    found = json.loads(gate(*asked("sorted.csv", "old.parquet"), "--json")[1].out)
    assert not found["charged"]  # the same question
    files("renamed.csv", key=IDS, prediction=predicted(0.8))
    assert gate(*asked("renamed.csv", "renamed.csv", 0.01), "--id", "key")[0] == REJECTED


def test_ids_are_text(gate, make, files):
    ids = np.array([f"{k:04}" for k in range(ROWS - 1)] + ["NA"])
    files("labelled.csv", id=ids, label=LABELS)
    make("--id", "id", labels="labelled.csv")
    for name, accuracy in (("new", 0.8), ("old", 0.7)):
        files(f"{name}.csv", id=ids[::-1], prediction=predicted(accuracy)[::-1])
    assert gate(*asked())[0] == ACCEPTED


def test_labels_may_be_text_and_predictions_parquet(gate, make, files):
    words = np.array(["no", "yes"])
    files("words.csv", label=words[LABELS])
    make(labels="words.csv")
    files("new.parquet", prediction=words[predicted(0.8)])
    files("old.csv", prediction=words[predicted(0.7)])
    assert gate(*asked("new.parquet"))[0] == ACCEPTED


def test_probabilities_are_columns_named_by_the_classes(gate, make, files):
    make("--metric", "brier")
    sure, unsure = (np.where(LABELS == 1, p, 1 - p) for p in (0.9, 0.6))
    files("new.csv", **{"1": sure, "0": 1 - sure})
    files("old.csv", p=unsure)  # of the last class
    found = json.loads(gate(*asked(improvement=0.05), "--json")[1].out)
    assert (found["verdict"], found["charged"]) == ("accepted", True)
    files("new.csv", p=sure)
    assert not json.loads(gate(*asked(improvement=0.05), "--json")[1].out)["charged"]  # the same question
    files("new.csv", no=1 - sure, yes=sure)
    status, text = gate(*asked())
    assert status == BAD_INPUT
    assert "named 0, 1; it has no, yes" in text.err


def test_labels_named_again_open_the_same_gate_without_the_copy(gate, make):
    make("--id", "id", labels="labelled.csv")
    Path("guard.db.holdout").unlink()
    for name in ("new", "old"):
        pd.DataFrame({"id": IDS, "p": predicted(0.8 if name == "new" else 0.7)}).to_csv(
            f"{name}.csv", index=False
        )
    status, text = gate(*asked())
    assert status == BAD_INPUT
    assert "pass --labels" in text.err
    assert gate(*asked(), "--labels", "labelled.csv", "--id", "id")[0] == ACCEPTED


def test_what_is_private_is_the_owners_alone(make):
    make()
    for name in ("guard.db.holdout", "guard.db.key"):
        assert Path(name).stat().st_mode & 0o777 == 0o600


def test_a_gate_is_made_once(gate, make, files):
    first = make()
    gate(*asked())
    assert make() == first
    assert len(history()) == 1
    status, text = gate("--labels", "labels.csv", "--queries", 30, "--tolerance", 0.15, command="init")
    assert status == BAD_INPUT
    assert "a budget cannot be changed" in text.err
    files("others.csv", label=1 - LABELS)
    status, text = gate("--labels", "others.csv", "--queries", 20, "--tolerance", 0.15, command="init")
    assert status == BAD_INPUT
    assert "other data" in text.err


def test_a_gate_of_a_guard_made_in_python(gate, files):
    guard = ReusableHoldout(None, LABELS, policy="gate", queries=20, tolerance=0.15, ledger="guard.db")
    guard.close()
    assert gate(*asked(), "--labels", "labels.csv")[0] == ACCEPTED


def test_a_rotated_gate_is_asked_about_its_new_labels(gate, make, files):
    make()
    assert gate(*asked())[0] == ACCEPTED
    guard = open_gate("guard.db").guard
    rotated = guard.rotate(None, 1 - LABELS, early=True)
    pickle.dumps(rotated.guard)  # writes the copy
    guard.close()
    rotated.guard.close()
    assert gate(*asked())[0] == REJECTED
    assert Path("guard.db.2.holdout").exists()


def test_a_ledger_on_a_server_needs_its_key_named(files, capsys, server_url):
    key = Path("server.key")
    common = ["--ledger", server_url]
    init = ["gate", "init", *common, "--labels", "labels.csv", "--queries", "20", "--tolerance", "0.15"]
    assert main([*init, "--key", str(key)]) == 0
    question = ["gate", "ask", *common, *map(str, asked())]
    assert main([*question, "--key", str(key)]) == ACCEPTED
    assert main([*question, "--key", str(key), "--labels", "labels.csv"]) == ACCEPTED
    capsys.readouterr()
    assert main(question) == BAD_INPUT
    assert "pass --key" in capsys.readouterr().err


# ---- bad input


def text(content, name="new.csv"):
    return lambda files: Path(name).write_text(content)


def columns(name="new.csv", **values):
    return lambda files: files(name, **values)


def nothing(files):
    pass


GAPS = np.where(np.arange(ROWS) % 250 == 3, np.nan, 1.0)
BAD = {
    "a missing file": (nothing, asked("none.csv"), "there is none"),
    "an empty file": (text(""), asked(), "must be a CSV file"),
    "a header alone": (columns(p=[]), asked(), "must be rows under a header"),
    "no Parquet": (text("x", "new.parquet"), asked("new.parquet"), "Parquet or JSON"),
    "too few rows": (columns(p=predicted(0.8)[1:]), asked(), "it holds 1,999"),
    "no header": (text("\n".join(map(str, predicted(0.8)))), asked(), "it holds 1,999 under its header"),
    "a gap": (columns(p=GAPS), asked(), "it has none at rows 4, 254, 504, 754, 1004 and 3 more"),
    "a strange label": (columns(p=predicted(0.8) * 2), asked(), "new.csv: .* got 2"),
    "words": (columns(p=["yes"] * ROWS), asked(), "must be numbers"),
    "infinity": (columns("old.csv", p=[np.inf] * ROWS), asked(), "old.csv: .* must be finite"),
    "two columns": (columns(p=LABELS, q=LABELS), asked(), "one column of predictions; it has p, q"),
    "ids without ids": (nothing, [*asked(), "--id", "id"], "made with ids; this one was not"),
    "no number": (nothing, asked(improvement="nan"), r"must be a number in \[-1, 1\]"),
    "too large an improvement": (nothing, asked(improvement=1.5), r"must be a number in \[-1, 1\]"),
    "other labels": (columns("x.csv", label=1 - LABELS), [*asked(), "--labels", "x.csv"], "to other data"),
    "another key": (nothing, [*asked(), "--key", "none.key"], "none.key"),
    "a wrong command line": (
        nothing,
        asked()[2:],
        "one of the arguments --predictions --inspect --lm-eval --scores is required",
    ),
    "an unknown option": (nothing, [*asked(), "--certain"], "unrecognized arguments: --certain"),
    "a word for a number": (nothing, asked(improvement="much"), "invalid float value"),
}


def test_bad_input_ends_with_status_3_and_charges_nothing(gate, make, files):
    make()
    for case, (prepare, arguments, message) in BAD.items():
        files("new.csv", prediction=predicted(0.8))
        files("old.csv", prediction=predicted(0.7))
        prepare(files)
        status, written = gate(*arguments)
        assert (status, written.out) == (BAD_INPUT, ""), case
        assert re.search(message, " ".join(written.err.split())), case
        assert len(history()) == 0, case


BAD_IDS = {
    "missing": (IDS[4:], "4 ids are missing: r0000, r0001, r0002, r0003"),
    "unknown": (
        [*IDS, *(f"x{k}" for k in range(8))],
        "8 ids are not among the labels': x0, x1, x2, x3, x4 and 3 more",
    ),
    "twice": ([*IDS[:-2], "r0000", "r0001"], "more than once come r0000, r0001"),
    "empty": ([*IDS[:-1], ""], "it has none in rows 2000"),
}


def test_ids_that_do_not_fit_are_listed(gate, make, files):
    make("--id", "id", labels="labelled.csv")
    files("old.csv", id=IDS, prediction=predicted(0.7))
    for case, (ids, message) in BAD_IDS.items():
        files("new.csv", id=ids, prediction=np.resize(predicted(0.8), len(ids)))
        status, text = gate(*asked())
        assert status == BAD_INPUT, case
        assert message in text.err, case
    files("new.csv", prediction=predicted(0.8))
    status, text = gate(*asked())
    assert status == BAD_INPUT
    assert "must have the column of ids 'id'; it has prediction" in text.err
    assert len(history()) == 0


def test_labels_that_do_not_fit_are_not_quoted(gate, files):
    secret = ["secret-a"] * 1_000 + ["secret-b"] * 999
    tables = {
        "two.csv": "label,extra\nsecret-a,1\nsecret-b,2\n",
        "gap.csv": "label\nsecret-a\n\nsecret-b,\n",
        "bare.csv": "\n".join(["secret-a", *secret]),
        "ragged.csv": 'label\nsecret-a\n"secret-b,secret-a\nsecret-a,secret-b,3,4\n',
        "numbers.csv": "\n".join(str(label) for label in LABELS),
        "empty.csv": "",
    }
    for name, text in tables.items():
        Path(name).write_text(text)
        status, found = gate("--labels", name, "--queries", 20, "--tolerance", 0.15, command="init")
        assert status == BAD_INPUT, name
        assert name in found.err
        assert "secret" not in found.err
        assert found.out == ""
    assert not Path("guard.db").exists()


def test_a_gate_that_cannot_be_is_not_made(gate, files):
    common = ["--labels", "labels.csv", "--queries", 20, "--tolerance", 0.15]
    for arguments, message in (
        (["--metric", "f1"], "plain mean over rows; f1 is none"),
        (["--metric", "accurate"], "did you mean 'accuracy'"),
        (["--metric", "mae"], "bounds"),
        (["--bounds", 0, 1], "leave them out"),
        (["--tolerance", 0.0001], "rows"),
        (["--id", "id"], "column of ids 'id'"),
        (["--queries", "many"], "invalid int value"),
    ):
        status, text = gate(*common, *arguments, command="init")
        assert status == BAD_INPUT, arguments
        assert message in text.err, arguments
        assert not list(Path().glob("guard.db*")), arguments


def test_another_policy_is_no_gate(gate, files):
    guard = ReusableHoldout(None, LABELS, queries=20, tolerance=0.15, ledger="guard.db")
    guard.close()
    status, text = gate(*asked(), "--labels", "labels.csv")
    assert status == BAD_INPUT
    assert "'thresholdout'" in text.err
    assert len(history()) == 0


def test_a_missing_ledger_is_not_made(gate, files):
    status, text = gate(*asked())
    assert status == BAD_INPUT
    assert "no ledger" in text.err
    assert not list(Path().glob("guard.db*"))


def test_a_failure_of_any_kind_is_no_verdict(gate, make, monkeypatch):
    """Python's status for a crash is that of "rejected"."""
    make()
    for error in (ZeroDivisionError("a label"), MemoryError("a label"), SystemExit(1)):

        def fails(*_, error=error, **__):
            raise error

        monkeypatch.setattr("reusable_holdout_evals.command.ask_gate", fails)
        status, text = gate(*asked())
        assert status == BAD_INPUT
        assert "there is no verdict" in text.err
        assert "label" not in text.err


# ---- leaks


def test_nothing_but_the_verdict_depends_on_the_labels(gate, files):
    """Two holdouts that the same two models score differently, with the same verdict: the same output."""
    outputs = []
    for folder, wrong in (("a", 0.8), ("b", 0.87)):
        labels = np.where(np.arange(ROWS) < wrong * ROWS, 1, 0)
        Path(folder).mkdir()
        os.chdir(folder)
        files("labels.csv", label=labels)
        files("new.csv", p=np.ones(ROWS, dtype=int))
        files("old.csv", p=np.zeros(ROWS, dtype=int))
        gate("--labels", "labels.csv", "--queries", 20, "--tolerance", 0.15, command="init")
        outputs.append([gate(*asked(), *more) for more in ((), ("--json",))])
        rows = history().drop(columns="asked_at")
        outputs[-1].append(rows.to_dict("records"))
        os.chdir("..")
    assert outputs[0] == outputs[1]


# ---- as a program


def run(*arguments, stdout):
    done = subprocess.run(
        [sys.executable, "-m", "reusable_holdout", "gate", "ask", "--ledger", "guard.db", *map(str, arguments)],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    sys.stderr.write(done.stderr)  # shown if the status is another
    return done.returncode


def test_the_status_is_the_verdict_even_if_nobody_reads_it(make):
    make()
    with Path("/dev/full").open("w") as full:
        assert run(*asked("same.csv"), stdout=full) == REJECTED
    reading, writing = os.pipe()
    os.close(reading)
    assert run(*asked("same.csv"), stdout=writing) == REJECTED
    os.close(writing)


def test_runs_at_the_same_moment_share_one_budget(make, files):
    make(queries=3)
    for k in range(4):
        files(f"new{k}.csv", prediction=predicted(0.9, k))
    code = "import sys; from reusable_holdout.cli import main; sys.exit(main(sys.argv[1:]))"
    command = ["gate", "ask", "--ledger", "guard.db"]
    started = [Child(code, *command, *map(str, asked(f"new{k}.csv")), folder=Path.cwd()) for k in range(4)]
    assert sorted(one.wait() for one in started) == [ACCEPTED] * 3 + [HALTED]


def test_help_names_the_statuses(gate):
    status, text = gate("--help")
    assert status == 0
    words = " ".join(text.out.split())
    assert "0 accepted, 1 rejected, 2 halted" in words
    assert "3 bad input" in words


# ---- in Python


def test_the_parts_serve_python_too(files):
    table = read_labels(Path("labelled.csv"), id_column="id")
    assert table.ids.tolist() == IDS.tolist()
    with make_gate("guard.db", Path("labels.csv"), queries=20, tolerance=0.15) as guard:
        found = ask_gate(guard, Path("new.csv"), Path("old.csv"), improvement=0.05)
        assert (found.verdict, found.charged) == ("accepted", True)
    with open_gate("guard.db") as guard:
        assert not ask_gate(guard, Path("new.csv"), Path("old.csv"), improvement=0.05).charged
    with pytest.raises(LedgerMismatchError):
        open_gate("guard.db", labels=Path("labelled.csv"), id_column="id")


def test_labels_and_predictions_may_be_json(gate, make, files):
    for name in ("labels", "new", "old"):
        frame = pd.read_csv(f"{name}.csv")
        frame.to_json(f"{name}.json", orient="records")
        frame.to_json(f"{name}.jsonl", orient="records", lines=True)
    make(labels="labels.json")
    assert gate(*asked("new.json", "old.jsonl"))[0] == ACCEPTED
    first = json.loads(gate(*asked("new.csv", "old.csv"), "--json")[1].out)
    assert first["charged"] is False  # the same question
    Path("labels.json").write_text('[{"label": "secret"}, ["secret"]]')
    status, text = gate("--labels", "labels.json", "--queries", 20, "--tolerance", 0.15, command="init")
    assert status == BAD_INPUT
    assert "secret" not in text.err


def test_a_gate_of_private_answers_tells_none_of_them(gate, files):
    answers = [f"Gold {k}" for k in range(len(LABELS))]
    guesses = [f"gold  {k}" if k % 5 else "42" for k in range(len(LABELS))]
    files("answers.csv", label=answers)
    files("good.csv", prediction=guesses)
    files("digits.csv", prediction=["007"] * len(LABELS))  # text, where answers are
    init = ["--labels", "answers.csv", "--queries", 20, "--tolerance", 0.15]
    status, made = gate(*init, command="init")
    assert status == 0
    status, text = gate(*asked("good.csv", "digits.csv", 0.5))
    assert status == ACCEPTED
    status, wrong = gate(*init, "--metric", "brier", command="init")
    assert (status, "--classes" in wrong.err or "classes=" in wrong.err) == (BAD_INPUT, True)
    said = "".join([made.out, made.err, text.out, text.err, wrong.err]) + str(history())
    said += Path("guard.db").read_bytes().decode("latin-1")
    assert not [one for one in answers if one.casefold() in said.casefold()]
