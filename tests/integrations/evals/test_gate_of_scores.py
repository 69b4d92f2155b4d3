"""The commands gate init and gate ask on files of scores: Inspect's, lm-evaluation-harness's and tables."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cases import refuses
from integrations.evals.conftest import ACCEPTED, BAD_INPUT, HALTED, RECORDED, REJECTED, history
from reusable_holdout_evals import read_scores
from reusable_holdout_evals.gate import NoWorse, ask_gate, make_gate, open_gate, what_is_possible
from reusable_holdout_evals.gate.tables import read_ids

from reusable_holdout import Plan, verify
from reusable_holdout.errors import InputError

ROWS = 400
IDS = [f"task-{k}" for k in range(ROWS)]
PLAN = ["--queries", 20, "--tolerance", 0.15, "--spread", 0.35]
OF_IDS = ["--ids", "ids.csv", *PLAN]
DOCS = Path(__file__).parents[3] / "docs"


def scored(share, roll=0):
    """Scores of which exactly this share are 1."""
    return np.roll(np.arange(ROWS) < share * ROWS, roll).astype(float)


@pytest.fixture
def scores(write):
    """Write a table of scores in a random order."""
    order = np.random.default_rng(0).permutation(ROWS)

    def to(name, **columns):
        return write(
            name, id=np.array(IDS)[order], **{key: np.asarray(one)[order] for key, one in columns.items()}
        )

    return to


@pytest.fixture(autouse=True)
def files(write, scores):
    scores("old.csv", judge=scored(0.5), style=scored(0.9))
    scores("new.csv", judge=scored(0.8), style=scored(0.9))
    scores("rude.csv", judge=scored(0.8), style=scored(0.4))
    scores("same.csv", judge=scored(0.5, 3), style=scored(0.9))
    write("ids.csv", id=IDS, repo=[f"r{k // 2}" for k in range(ROWS)])


def of(new, old="old.csv", improvement=0.1, score="judge", tool="scores"):
    question = [f"--{tool}", new, "--incumbent", old, "--improvement", improvement]
    return question if score is None else [*question, "--score", score]


@pytest.fixture
def ask(gate):
    """Ask about scores: status, outputs, and the record for programs."""

    def run(new="new.csv", *more, **about):
        done = gate("ask", *of(new, **about), *more, "--json")
        done.record = json.loads(done.out) if done.out else None
        return done

    return run


# ---- verdicts


def test_better_scores_are_accepted_and_others_rejected_until_the_charges_are_spent(make, ask, scores):
    make(*OF_IDS, "--charges", 1)
    assert (ask("same.csv").status, ask("new.csv").status) == (REJECTED, ACCEPTED)
    assert ask("new.csv").status == ACCEPTED  # again, free
    scores("third.csv", judge=scored(0.9))
    assert ask("third.csv").status == HALTED
    assert history()[["name", "charged"]].to_dict("list") == {
        "name": ["same.csv", "new.csv"],
        "charged": [False, True],
    }
    assert verify("gate.db").sound


def test_a_loss_of_another_score_is_rejected_and_the_reason_is_not_told(make, ask):
    make(*OF_IDS)
    accepted, rejected = (ask(name, "--no-worse", "style:0.05") for name in ("new.csv", "rude.csv"))
    assert (accepted.status, accepted.record["charged"]) == (ACCEPTED, True)
    style = accepted.record["no_worse"]["score[style]"]
    assert style["low"] == pytest.approx(-0.05)
    assert style["high"] == 1.0
    found = rejected.record
    assert (rejected.status, found["charged"], found["low"], found["high"]) == (REJECTED, False, -1.0, 1.0)
    assert found["no_worse"] == {"score[style]": {"low": -1.0, "high": 1.0}}
    assert found["queries_left"] == 16  # each metric takes one
    assert ask("rude.csv").status == ACCEPTED  # without the guardrail
    assert verify("gate.db").sound
    assert not ask("new.csv", "--no-worse", "style:0.05").record["charged"]  # replayed
    assert history()["way"].tolist().count("view") == 1


def test_several_scores_must_all_hold(make, ask, scores):
    make(*OF_IDS)
    scores("kind.csv", judge=scored(0.8), style=scored(0.9), stars=1 + 4 * scored(0.2))
    scores("before.csv", judge=scored(0.5), style=scored(0.9), stars=1 + 4 * scored(0.9))
    both = ["--no-worse", "style:0.1", "--no-worse", "stars:0.1:1:5"]
    assert ask("kind.csv", *both, old="before.csv").status == REJECTED
    assert ask("kind.csv", *both[:2], old="before.csv").status == ACCEPTED


def test_wide_tables_keep_their_repeats_at_the_gate(make, ask, scores):
    """The fault: beside a column of groups the gate asked for one column of scores, and so dropped the repeats."""
    groups = [f"r{k // 2}" for k in range(ROWS)]
    for name, share in (("before.csv", 0.3), ("after.csv", 0.7)):
        repeats = {f"score_{k}": scored(share + 0.1 * k, 7 * k) for k in range(3)}
        scores(name, repo=groups, **repeats)
        assert read_scores(name).scores.shape == (ROWS, 3)
    source = ["--scores", "before.csv", "--groups", "repo", "--metric", "pass@2"]
    make(*source, "--queries", 20, "--tolerance", 0.25, "--spread", 0.35)
    assert ask("after.csv", old="before.csv", improvement=0.2, score=None).status == ACCEPTED
    with open_gate("gate.db") as opened:
        assert opened.guard.plan.rows == ROWS // 2  # groups


# ---- files of tools


def test_a_gate_of_inspects_logs(make, ask):
    log = RECORDED / "several.eval"
    common = ["--missing", 0]
    out = make("--inspect", log, "--score", "judge", *common, "--queries", 2, "--charges", 1, "--vacuous")
    assert "What 3 rows can show" in out  # judge's standard error is clustered by the samples' repo
    about = {"tool": "inspect", "old": log, "improvement": 0.5}
    for other in (log, RECORDED / "several.json"):
        done = ask(other, *common, **about)
        assert done.status == REJECTED
        assert done.record["queries_left"] == 1  # the same scores, the same question
    assert "has 'match', 'style', 'judge'" in ask(log, **about, score=None).err
    assert ask(log, *common, **about, score="style[clarity]").status == REJECTED


def test_a_gate_of_lm_evals_samples(make, ask):
    folder, common = RECORDED / "lm_eval", ["--id", "doc.question", "--filter"]
    source = ["--lm-eval", folder, "--score", "exact_match", *common, "strict-match"]
    make(*source, "--queries", 2, "--charges", 1, "--vacuous")
    with open_gate("gate.db") as opened:
        assert opened.guard.rows == 6
    about = {"tool": "lm-eval", "old": folder, "improvement": 0.9, "score": "exact_match"}
    assert ask(folder, *common, "flexible-extract", **about).status == REJECTED


# ---- possible differences


def test_the_possible_differences_come_before_the_plan(gate, write):
    write("few.csv", id=range(200))
    init = ["--ids", "few.csv", "--queries", 20, "--charges", 2, "--spread", 0.35]
    narrowest = Plan(200, family="mean", bounds=(-1, 1), gates=True, queries=20, charges=2, spread=0.35)
    assert f"rows or a tolerance of {narrowest.tolerance:g}" in gate("init", *init, "--tolerance", 0.01).err
    assert not Path("gate.db").exists()
    first, _, rest = gate("init", *init).out.partition("\n\n")
    assert "2 releases can be accepted, of 20 that can be asked about" in first
    assert rest.startswith("Plan for 200 rows")
    shown = float(re.search(r"truly better than that by ([\d.]+) is accepted nine", first)[1])
    told = json.loads(gate("init", *init, "--json").out)["possible"]["needed"]
    with open_gate("gate.db") as opened:
        assert told == opened.guard.plan.shown_difference(pairs=True) == pytest.approx(shown, abs=5e-4)


def planned(rows, charges):
    return Plan(rows, gates=True, queries=20, charges=charges, pair_spread=0.35)


def test_the_pages_table_is_what_is_possible():
    line = r"^\| ([\d,]+) \| (\d) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$"
    rows = re.findall(line, (DOCS / "evaluations.md").read_text(), flags=re.MULTILINE)
    assert len(rows) == 4
    for number, charges, *told in rows:
        found = what_is_possible(planned(int(number.replace(",", "")), int(charges)))
        assert [f"{one:.3f}" for one in (found.needed, found.last, found.fixed)] == told


@pytest.mark.long("reusable_holdout")
def test_a_release_that_is_better_by_the_needed_amount_passes_nine_times_in_ten(tmp_path):
    """And one that is as good as the old one seldom; simulated, 100 releases each."""
    rng, rows, passed = np.random.default_rng(0), 200, {}
    needed = what_is_possible(planned(rows, 2)).needed
    ids = [str(k) for k in range(rows)]
    for better in (0.0, needed):
        passed[better] = 0
        for seed in range(100):
            chance = rng.random(rows)
            up, down = chance < (0.35**2 + better) / 2, chance > 1.0 - (0.35**2 - better) / 2
            old = np.where(up, 0.0, np.where(down, 1.0, 0.5))
            new, old = (
                read_scores(pd.DataFrame({"id": ids, "score": one})) for one in (old + up - down, old)
            )
            plan = {"queries": 20, "charges": 2, "spread": 0.35, "seed": seed, "witness": False}
            with make_gate(tmp_path / f"{better}-{seed}.db", ids=ids, **plan) as made:
                passed[better] += ask_gate(made, new, old, improvement=0.0).verdict == "accepted"
    assert passed[0.0] <= 5  # one question of twenty: far fewer than 5 in 100 loops
    assert passed[needed] >= 85


# ---- bad input


BAD_QUESTIONS = [
    (of("other.csv"), "1 ids are missing: task-7; 1 ids are not among the guard's: task-seven"),
    (of("high.csv"), r"must lie in \[0, 1\]"),
    (of("gap.csv"), "has none for task-3"),
    (of("none.csv"), "there is none"),
    (of("new.csv", score=None), "besides the ids, .* has judge, style"),
    (of("new.csv", improvement=2), r"must be a number in \[-1, 1\]"),
    ([*of("new.csv"), "--no-worse", "style"], "as in style:0.02"),
    ([*of("new.csv"), "--no-worse", "style:-1"], "as in style:0.02"),
    ([*of("new.csv"), "--no-worse", "style:7"], r"must be a number in \[0, 1\]"),
    ([*of("new.csv"), "--no-worse", "nothing:0.1"], "score must name columns"),
    ([*of("new.csv"), "--no-worse", "style:0", "--no-worse", "style:0.1"], "must be named once"),
    ([*of("new.csv"), "--filter", "none"], "--filter is only for files of lm-eval"),
    (of("new.csv", tool="predictions", score=None), "takes scores: name their files with --inspect"),
    ([*of("new.csv"), "--predictions", "new.csv"], "not allowed with argument"),
    (of(RECORDED / "broken.eval", tool="inspect"), "has the status error"),
    (of("new.csv", tool="inspect"), "no zip archive"),
    ([*of("new.csv", tool="inspect"), "--id", "id"], "have ids of their own; leave --id out"),
    ([*of("new.csv"), "--incumbent", "old.csv", "old.csv"], "--scores must name one file"),
]


def test_bad_input_ends_with_status_3_and_asks_nothing(gate, make, scores, write):
    make(*OF_IDS)
    scores("other.csv", judge=scored(0.8))
    Path("other.csv").write_text(Path("other.csv").read_text().replace("task-7,", "task-seven,"))
    scores("high.csv", judge=5 * scored(0.8))
    scores("gap.csv", judge=np.where(np.arange(ROWS) == 3, np.nan, 1.0))
    for arguments, words in BAD_QUESTIONS:
        done = gate("ask", *arguments)
        assert (done.status, done.out) == (BAD_INPUT, ""), arguments
        assert re.search(words, done.err), (arguments, done.err)
    assert len(history()) == 0
    labels = Path(write("labels.csv", label=np.arange(ROWS) % 2))
    make_gate("labels.db", labels, queries=20, tolerance=0.25).guard.close()
    assert "this gate has labels, for accuracy" in gate("ask", "--ledger", "labels.db", *of("new.csv")).err


def test_a_gate_of_scores_that_cannot_be_is_not_made(gate):
    for arguments, words in (
        (["--ids", "ids.csv", "--metric", "accuracy"], "must be score, pass@3 or pass^3; got 'accuracy'"),
        (["--ids", "ids.csv", "--score", "judge"], "--score must come with files of scores"),
        (["--ids", "ids.csv", "--id", "name"], "must have a column 'name'"),
        (["--ids", "none.csv"], "there is none"),
        (["--ids", "ids.csv", "--labels", "ids.csv"], "not allowed with argument"),
        (["--inspect", RECORDED / "plain.eval"], "no plan keeps 6 rows"),
        ([], "one of the arguments --labels --ids --inspect --lm-eval --scores is required"),
    ):
        done = gate("init", *arguments, *PLAN[:4])
        assert done.status == BAD_INPUT, arguments
        assert words in done.err, (arguments, done.err)
        assert not Path("gate.db").exists(), arguments


# ---- in Python


def test_tables_of_scores_serve_python_too(folder):
    ids, groups = read_ids(Path("ids.csv"), groups="repo")
    assert (ids, groups[:3]) == (IDS, ["r0", "r0", "r1"])
    (folder / "only.csv").write_text("task\n007\nNA\n")
    assert read_ids(folder / "only.csv") == (["007", "NA"], None)
    (new, old), styles = (
        [read_scores(f"{one}.csv", score=score) for one in ("new", "old")] for score in ("judge", "style")
    )
    with make_gate("gate.db", ids=ids, queries=20, tolerance=0.15, spread=0.35, seed=0) as made:
        found = ask_gate(made, new, old, improvement=0.1, no_worse={NoWorse("style", 0.1): tuple(styles)})
    assert (found.verdict, found.no_worse[0][0]) == ("accepted", "score[style]")
    for wrong in ({}, {"labels": Path("ids.csv"), "ids": ids}):
        refuses(InputError, "got both or neither; nothing", make_gate, "other.db", **wrong, queries=20)
