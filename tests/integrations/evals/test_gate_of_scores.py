"""The commands gate-init and gate on files of scores: Inspect's, lm-evaluation-harness's and tables."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from reusable_holdout_evals.gate import (
    Evaluations,
    NoWorse,
    ask_gate_of_scores,
    make_gate_of_scores,
    open_gate,
    read_ids,
    what_is_possible,
)

from reusable_holdout import Plan, ReusableHoldout, verify
from reusable_holdout.cli import main
from reusable_holdout.errors import InputError
from reusable_holdout.guard import released

RECORDED = Path(__file__).parent / "readers" / "recorded"
ACCEPTED, REJECTED, HALTED, BAD_INPUT = 0, 1, 2, 3
ROWS = 400
IDS = [f"task-{k}" for k in range(ROWS)]


def scored(share, roll=0):
    """Scores of which exactly this share are 1."""
    return np.roll(np.arange(ROWS) < share * ROWS, roll).astype(float)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Write tables of scores to the working folder."""
    monkeypatch.chdir(tmp_path)

    def write(name, **columns):
        frame = pd.DataFrame({"id": IDS, **columns})
        frame.sample(frac=1, random_state=0).to_csv(name, index=False)

    write("old.csv", judge=scored(0.5), style=scored(0.9))
    write("new.csv", judge=scored(0.8), style=scored(0.9))
    write("rude.csv", judge=scored(0.8), style=scored(0.4))
    write("same.csv", judge=scored(0.5, 3), style=scored(0.9))
    pd.DataFrame({"id": IDS, "repo": [f"r{k // 2}" for k in range(ROWS)]}).to_csv("ids.csv", index=False)
    return write


@pytest.fixture
def gate(files, capsys):
    """Run a command: its status, and what it wrote."""

    def run(*arguments, command="ask"):
        try:
            status = main(["gate", command, "--ledger", "gate.db", *map(str, arguments)])
        except SystemExit as ended:
            status = ended.code
        return status, capsys.readouterr()

    return run


@pytest.fixture
def make(gate):
    def run(*arguments, queries=20):
        source = arguments or ["--ids", "ids.csv"]
        status, text = gate(
            *source, "--queries", queries, "--tolerance", 0.15, "--spread", 0.35, command="init"
        )
        assert status == 0, text.err
        return text.out

    return run


def asked(new="new.csv", *more, improvement=0.1):
    return [
        "--scores",
        new,
        "--incumbent",
        "old.csv",
        "--improvement",
        improvement,
        "--score",
        "judge",
        *more,
    ]


def history():
    return released("gate.db").history


# ---- verdicts


def test_better_scores_are_accepted_and_others_rejected(gate, make):
    make()
    assert gate(*asked("new.csv"))[0] == ACCEPTED
    assert gate(*asked("same.csv"))[0] == REJECTED
    assert gate(*asked("new.csv"))[0] == ACCEPTED  # again, free
    assert history()["charged"].tolist() == [True, False]
    assert history()["name"].tolist() == ["new.csv", "same.csv"]
    assert verify("gate.db").sound


def test_a_spent_budget_halts(gate, make, files):
    make("--ids", "ids.csv", "--charges", 1)
    assert gate(*asked("new.csv"))[0] == ACCEPTED
    files("third.csv", judge=scored(0.9))
    assert gate(*asked("third.csv"))[0] == HALTED


def test_what_another_score_loses_is_rejected_and_nobody_is_told_why(gate, make):
    make()
    guarded = ["--no-worse", "style:0.05"]
    status, text = gate(*asked("new.csv", *guarded), "--json")
    found = json.loads(text.out)
    assert (status, found["charged"]) == (ACCEPTED, True)
    style = found["no_worse"]["score[style]"]
    assert -0.5 < style["low"] < -0.05
    assert style["high"] == 1.0
    status, text = gate(*asked("rude.csv", *guarded), "--json")
    found = json.loads(text.out)
    assert (status, found["charged"], found["low"], found["high"]) == (REJECTED, False, -1.0, 1.0)
    assert found["no_worse"] == {"score[style]": {"low": -1.0, "high": 1.0}}
    assert found["queries_left"] == 16  # each metric takes one
    assert gate(*asked("rude.csv"))[0] == ACCEPTED  # without the guardrail
    assert verify("gate.db").sound
    status, text = gate(*asked("new.csv", *guarded), "--json")
    assert not json.loads(text.out)["charged"]  # replayed
    assert history()["kind"].tolist().count("view") == 1


def test_several_scores_must_all_hold(gate, make, files):
    make()
    files("kind.csv", judge=scored(0.8), style=scored(0.9), stars=1 + 4 * scored(0.2))
    shutil.copy("kind.csv", "before.csv")
    files("before.csv", judge=scored(0.5), style=scored(0.9), stars=1 + 4 * scored(0.9))
    question = ["--scores", "kind.csv", "--incumbent", "before.csv", "--improvement", 0.1, "--score", "judge"]
    both = ["--no-worse", "style:0.02", "--no-worse", "stars:0.1:1:5"]
    assert gate(*question, *both)[0] == REJECTED
    assert gate(*question, *both[:2])[0] == ACCEPTED


def test_groups_are_rows_of_the_plan(gate, make):
    out = make("--ids", "ids.csv", "--groups", "repo")
    assert out.startswith(f"What {ROWS // 2} rows can show\n")
    with open_gate("gate.db") as opened:
        assert opened.guard.plan.rows == ROWS // 2
    assert gate(*asked("new.csv"))[0] == ACCEPTED


def test_repeats_of_pass_at_k(gate, files):
    repeats = {f"run_{k}": scored(0.3 + 0.1 * k) for k in range(3)}
    better = {f"run_{k}": scored(0.7 + 0.1 * k) for k in range(3)}
    files("before.csv", **repeats)
    files("after.csv", **better)
    init = [
        "--scores",
        "before.csv",
        "--metric",
        "pass@2",
        "--queries",
        5,
        "--tolerance",
        0.2,
        "--spread",
        0.4,
    ]
    assert gate(*init, command="init")[0] == 0
    question = ["--scores", "after.csv", "--incumbent", "before.csv", "--improvement", 0.2]
    assert gate(*question)[0] == ACCEPTED


# ---- what tools wrote


def test_a_gate_of_inspects_logs(gate):
    log = RECORDED / "several.eval"
    common = ["--inspect", log, "--score", "judge", "--missing", 0]
    init = [*common, "--queries", 2, "--charges", 1, "--vacuous"]
    status, text = gate(*init, command="init")
    assert status == 0
    assert "What 3 rows can show" in text.out  # judge's standard error is clustered by the samples' repo
    status, text = gate(*common, "--incumbent", log, "--improvement", 0.5)
    assert (status, text.out) == (REJECTED, "rejected\n")
    other = RECORDED / "several.json"
    status, text = gate(*common[:1], other, *common[2:], "--incumbent", log, "--improvement", 0.5, "--json")
    assert status == REJECTED
    assert json.loads(text.out)["queries_left"] == 1  # the same scores, the same question
    status, text = gate("--inspect", log, "--incumbent", log, "--improvement", 0.1)
    assert status == BAD_INPUT
    assert "has 'match', 'style', 'judge'" in text.err
    status, text = gate(
        *["--inspect", log, "--score", "style[clarity]", "--incumbent", log, "--improvement", 0.1],
        *["--missing", 0],
    )
    assert status == REJECTED


def test_a_gate_of_lm_evals_samples(gate):
    folder = RECORDED / "lm_eval"
    common = ["--lm-eval", folder, "--score", "exact_match", "--id", "doc.question"]
    init = [*common, "--filter", "strict-match", "--queries", 2, "--charges", 1, "--vacuous"]
    assert gate(*init, command="init")[0] == 0
    with open_gate("gate.db") as opened:
        assert opened.rows.size == 6
    question = [*common, "--filter", "flexible-extract", "--incumbent", folder, "--improvement", 0.9]
    assert gate(*question)[0] == REJECTED


# ---- what is possible


def test_what_is_possible_comes_before_the_plan(gate):
    few = pd.DataFrame({"id": range(200)})
    few.to_csv("few.csv", index=False)
    init = ["--ids", "few.csv", "--queries", 20, "--charges", 2, "--spread", 0.35]
    status, text = gate(*init, command="init")
    assert status == 0
    first, _, rest = text.out.partition("\n\n")
    assert rest.startswith("Plan for 200 rows")
    shown = float(re.search(r"name an improvement of ([\d.]+) or more", first)[1])
    with open_gate("gate.db") as opened:
        assert shown == pytest.approx(opened.guard.plan.comparison_tolerance, abs=5e-4)
    assert "2 releases can be accepted, of 20 that can be asked about" in first
    status, text = gate(*init, "--json", command="init")
    assert json.loads(text.out)["possible"]["shown"] == pytest.approx(shown, abs=5e-4)


def test_what_few_rows_cannot_keep_is_refused_with_what_they_can(gate):
    pd.DataFrame({"id": range(200)}).to_csv("few.csv", index=False)
    init = ["--ids", "few.csv", "--queries", 20, "--tolerance", 0.01, "--spread", 0.35]
    status, text = gate(*init, command="init")
    assert status == BAD_INPUT
    assert "rows or a tolerance of 0.0992" in text.err
    assert not Path("gate.db").exists()


def test_the_pages_table_is_what_is_possible():
    text = (Path(__file__).parent.parent / "docs" / "language-models.md").read_text()
    rows = re.findall(
        r"^\| ([\d,]+) \| (\d) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", text, flags=re.MULTILINE
    )
    assert len(rows) == 9
    for number, charges, *told in rows:
        plan = Plan(
            rows=int(number.replace(",", "")),
            family="paired",
            bounds=(-1, 1),
            policy="gate",
            queries=20,
            charges=int(charges),
            spread=0.35,
        )
        found = what_is_possible(plan)
        assert [f"{one:.3f}" for one in (found.shown, found.needed, found.fixed)] == told


@pytest.mark.long("reusable_holdout")
def test_a_release_that_is_better_by_what_is_needed_passes_nine_times_in_ten():
    """And one that is better by what can be shown passes about every second time; simulated, 100 releases each."""
    rng = np.random.default_rng(0)
    plan = Plan(rows=200, family="paired", bounds=(-1, 1), policy="gate", spread=0.35, queries=20, charges=2)
    possible = what_is_possible(plan)
    passed = {}
    for better in (possible.shown, possible.needed):
        passed[better] = 0
        for seed in range(100):
            moment = 0.35**2 + better**2
            chance = rng.random(200)
            up, down = chance < (moment + better) / 2, (chance >= (moment + better) / 2) & (chance < moment)
            old = np.where(up, 0.0, np.where(down, 1.0, 0.5))
            with ReusableHoldout(
                None,
                np.arange(200),
                metric="score",
                policy="gate",
                queries=20,
                charges=2,
                noise_scale=plan.noise_scale / 2,
                comparison_tolerance=plan.tolerance,
                seed=seed,
                witness=False,
                vacuous=True,
            ) as guard:
                passed[better] += guard.compare_predictions(
                    old + up - down, old, prior=possible.shown
                ).charged
    assert 25 <= passed[possible.shown] <= 75
    assert passed[possible.needed] >= 85


# ---- bad input


def test_bad_input_ends_with_status_3_and_asks_nothing(gate, make, files):
    make()
    files("other.csv", judge=scored(0.8), style=scored(0.9))
    text = Path("other.csv").read_text()
    Path("other.csv").write_text(text.replace("task-7,", "task-seven,"))
    files("high.csv", judge=5 * scored(0.8))
    files("gap.csv", judge=np.where(np.arange(ROWS) == 3, np.nan, 1.0))
    cases = [
        (asked("other.csv"), "1 ids are missing: task-7; 1 ids are not among the guard's: task-seven"),
        (asked("high.csv"), r"must lie in \[0, 1\]"),
        (asked("gap.csv"), "has none for task-3"),
        (asked("none.csv"), "there is none"),
        (["--scores", "new.csv", "--incumbent", "old.csv", "--improvement", 0.1], "has judge, style beside"),
        (asked("new.csv", improvement=2), r"must be a number in \[-1, 1\]"),
        (asked("new.csv", "--no-worse", "style"), "as in style:0.02"),
        (asked("new.csv", "--no-worse", "style:-1"), "as in style:0.02"),
        (asked("new.csv", "--no-worse", "style:7"), r"must be a number in \[0, 1\]"),
        (asked("new.csv", "--no-worse", "nothing:0.1"), "score must name columns"),
        (asked("new.csv", "--no-worse", "style:0", "--no-worse", "style:0.1"), "must be named once"),
        (asked("new.csv", "--filter", "none"), "leave --filter out"),
        (["--predictions", "new.csv", "--incumbent", "old.csv", "--improvement", 0.1], "name the files with"),
        (["--predictions", "new.csv", *asked("new.csv")], "not allowed with argument"),
        (
            [*asked("new.csv")[2:], "--predictions", "new.csv"],
            "--score must come with files of scores; got --predictions",
        ),
        (["--inspect", RECORDED / "broken.eval", *asked("new.csv")[2:]], "has the status error"),
        (["--inspect", "new.csv", *asked("new.csv")[2:]], "no zip archive"),
    ]
    for arguments, words in cases:
        status, text = gate(*arguments)
        assert (status, text.out) == (BAD_INPUT, ""), arguments
        assert re.search(words, " ".join(text.err.split())), (arguments, text.err)
    assert len(history()) == 0


def test_a_gate_of_scores_that_cannot_be_is_not_made(gate, files):
    plan = ["--queries", 20, "--tolerance", 0.15]
    for arguments, words in (
        (["--ids", "ids.csv", "--metric", "accuracy"], "must be score, pass@3 or pass^3; got 'accuracy'"),
        (["--ids", "ids.csv", "--score", "judge"], "--score must come with files of scores"),
        (["--ids", "ids.csv", "--id", "name"], "must have a column 'name'"),
        (["--ids", "none.csv"], "there is none"),
        (["--ids", "ids.csv", "--labels", "ids.csv"], "not allowed with argument"),
        (["--inspect", RECORDED / "plain.eval"], "no plan keeps 6 rows"),
        ([], "one of the arguments --labels --ids --inspect --lm-eval --scores is required"),
    ):
        status, text = gate(*arguments, *plan, command="init")
        assert status == BAD_INPUT, arguments
        assert words in " ".join(text.err.split()), (arguments, text.err)
        assert not Path("gate.db").exists(), arguments


def test_a_gate_of_labels_takes_no_scores(gate, files):
    pd.DataFrame({"label": np.arange(ROWS) % 2}).to_csv("labels.csv", index=False)
    init = ["--labels", "labels.csv", "--queries", 20, "--tolerance", 0.25]
    assert gate(*init, command="init")[0] == 0
    status, text = gate(*asked("new.csv"))
    assert status == BAD_INPUT
    assert "this gate has labels, for accuracy" in text.err


def test_ids_named_again_open_the_same_gate_without_the_copy(gate, make):
    pd.DataFrame({"id": IDS}).to_csv("ids.csv", index=False)
    make()
    Path("gate.db.holdout").unlink()
    status, text = gate(*asked("new.csv"))
    assert status == BAD_INPUT
    assert "pass --labels, with the file of labels or ids" in text.err
    assert gate(*asked("new.csv"), "--labels", "ids.csv")[0] == ACCEPTED


# ---- in Python


def test_the_parts_serve_python_too(files):
    ids, groups = read_ids(Path("ids.csv"), groups="repo")
    assert (ids, groups[:3]) == (IDS, ["r0", "r0", "r1"])
    read = Evaluations("scores", score="judge").table
    with make_gate_of_scores(
        "gate.db", ids, queries=20, tolerance=0.15, spread=0.35, seed=0, witness=False
    ) as gate:
        found = ask_gate_of_scores(
            gate,
            lambda new, score: read([Path("new.csv" if new else "old.csv")], score),
            improvement=0.1,
            no_worse=[NoWorse("style", 0.1)],
        )
    assert (found.verdict, found.no_worse[0][0]) == ("accepted", "score[style]")
    with pytest.raises(InputError, match="--scores must name one file"):
        read([Path("new.csv"), Path("old.csv")])


def test_the_only_column_names_the_rows_as_text(tmp_path):
    (tmp_path / "ids.csv").write_text("task\n007\nNA\n")
    assert read_ids(tmp_path / "ids.csv") == (["007", "NA"], None)


def test_a_wide_table_with_groups_keeps_its_repeats_at_the_gate(gate, files):
    """The fault: beside a column of groups the gate asked for one column of scores, and so dropped the repeats."""
    groups = [f"r{k // 2}" for k in range(ROWS)]
    for name, share in (("wide-old.csv", 0.5), ("wide-new.csv", 0.8)):
        files(name, repo=groups, score_1=scored(share), score_2=scored(share, 7))
    init = [
        "--scores",
        "wide-old.csv",
        "--groups",
        "repo",
        "--queries",
        20,
        "--tolerance",
        0.2,
        "--spread",
        0.4,
    ]
    assert gate(*init, command="init")[0] == 0
    status, text = gate("--scores", "wide-new.csv", "--incumbent", "wide-old.csv", "--improvement", 0.2)
    assert status == ACCEPTED, text.err
    evaluations = Evaluations(tool="scores")
    assert evaluations.table([Path("wide-new.csv")]).scores.shape == (ROWS, 2)


def test_scores_and_ids_may_be_json(gate, make, files):
    for name in ("old", "new"):
        frame = pd.read_csv(f"{name}.csv")
        frame.to_json(f"{name}.json", orient="records")
        frame.to_json(f"{name}.jsonl", orient="records", lines=True)
    init = ["--ids", "old.jsonl", "--queries", 20, "--tolerance", 0.2, "--spread", 0.4]
    status, text = gate(*init, command="init")
    assert status == 0, text.err
    for ending in ("json", "jsonl"):
        question = ["--scores", f"new.{ending}", "--incumbent", f"old.{ending}", "--score", "judge"]
        status, text = gate(*question, "--improvement", 0.2, "--json")
        assert status == ACCEPTED, text.err
    assert json.loads(text.out)["charged"] is False  # the same question
