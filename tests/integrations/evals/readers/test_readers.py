"""Readers of the files that the tools themselves wrote (recorded/, by record.py), and of tables."""

import json
import os

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from cases import for_each
from integrations.evals.conftest import RECORDED
from reusable_holdout_evals import read_inspect, read_lm_eval, read_scores
from reusable_holdout_evals.guards import made_guard

IDS = tuple(f"q{k}" for k in range(6))
MATCHED = [[1, 0], [1, 1], [0, 1], [0, 0], [0, 0], [0, 0]]
REPOS = ("r0", "r0", "r1", "r1", "r2", "r2")


# ---- Inspect


@for_each("ending", ["eval", "json"])
def test_epochs_are_repeats_and_grades_are_numbers(refused, ending):
    table = read_inspect(RECORDED / f"plain.{ending}")
    assert (table.ids, table.scores.tolist()) == (IDS, MATCHED)
    assert (table.name, table.metric, table.groups, table.left_out) == ("plain", "match", None, ())
    log = RECORDED / f"several.{ending}"
    assert "has 'match', 'style', 'judge'; name it: scorer=" in refused(read_inspect, log)
    assert "'match', 'style', 'judge'; got 'judges'" in refused(read_inspect, log, scorer="judges")
    table = read_inspect(log, scorer="match", missing=0)
    assert table.scores.tolist() == MATCHED
    left_out = (
        "other scorers: style, judge",
        "1 without a score count as 0 (1 because the sample failed): q5",
    )
    assert table.left_out == left_out


@for_each("ending", ["eval", "json"])
def test_a_missing_score_is_refused_by_name_unless_a_number_stands_for_it(refused, ending):
    log = RECORDED / f"several.{ending}"
    assert "has none for q5 (1 because the sample failed)" in refused(read_inspect, log, scorer="match")
    words = refused(read_inspect, log, scorer="judge")
    assert "has none for q3, q5 (2 because it was not scored (grader_failed), 1 because the sample" in words
    table = read_inspect(log, scorer="judge", missing=0.25)
    assert table.scores.tolist() == [[1, 1], [0.5, 0.5], [0, 0], [0.25, 0.25], [1, 1], [0.5, 0.25]]


@for_each("ending", ["eval", "json"])
def test_the_scorers_cluster_is_the_groups(refused, ending):
    log = RECORDED / f"several.{ending}"
    for scorer, groups, found in (("judge", None, REPOS), ("match", None, None), ("match", "repo", REPOS)):
        assert read_inspect(log, scorer=scorer, missing=0, groups=groups).groups == found
    assert "has a NoneType for q0" in refused(read_inspect, log, scorer="match", missing=0, groups="site")


def test_of_a_dict_one_key_is_named(refused):
    log = RECORDED / "several.eval"
    words = refused(read_inspect, log, scorer="style", missing=0)
    assert "the keys clarity, brevity; name one of them with key=" in words
    table = read_inspect(log, scorer="style", key="brevity", missing=0)
    assert (table.metric, table.scores.tolist()) == ("style[brevity]", [[1, 0]] * 6)
    assert "leave key= out" in refused(read_inspect, log, scorer="match", key="brevity", missing=0)


def test_several_logs_of_one_finished_task_are_repeats(refused):
    plain = RECORDED / "plain.eval"
    table = read_inspect([plain, RECORDED / "plain.json"])
    assert table.scores.tolist() == [[*row, *row] for row in MATCHED]
    assert "must be named once" in refused(read_inspect, [plain] * 2)
    several = [plain, RECORDED / "several.eval"]
    assert "these are of plain, several" in refused(read_inspect, several, scorer="match", missing=0)
    assert "broken.eval has the status error" in refused(read_inspect, RECORDED / "broken.eval")


def test_a_guard_is_made_of_a_table_and_asked_about_it():
    """Its answer is the mean of what the log holds."""
    table = read_inspect(RECORDED / "several.eval", scorer="judge", missing=0)
    plan = {"queries": 5, "charges": 1, "seed": 0, "allow": {"vacuous", "no witness"}}
    with made_guard(table.ids, metric="score", groups=table.groups, **plan) as guard:
        answer = guard.evaluate(table, prior=table.scores.mean())
        assert guard.plan.rows == 3
    assert answer.value == pytest.approx(table.scores.mean())


# ---- lm-evaluation-harness


(CHOICE,) = (RECORDED / "lm_eval").glob("samples_choice_*.jsonl")
(SUMS,) = (RECORDED / "lm_eval").glob("samples_sums_*.jsonl")


def lines(path, **wanted):
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return [line for line in found if all(line[key] == value for key, value in wanted.items())]


def test_a_metric_of_one_task(refused):
    assert "has 'acc', 'acc_norm'; name it: metric=" in refused(read_lm_eval, CHOICE)
    table = read_lm_eval(CHOICE, metric="acc", groups="doc.passage")
    assert table.scores.tolist() == [line["acc"] for line in lines(CHOICE)]
    assert set(table.scores.tolist()) == {0.0, 1.0}
    assert table.ids == ("0", "1", "2", "3", "4", "5")
    assert table.groups == ("p0", "p0", "p1", "p1", "p2", "p2")
    assert (table.name, table.left_out) == ("choice", ("other metrics: acc_norm",))


def test_of_several_filters_one_is_named(refused):
    assert "has 'strict-match', 'flexible-extract'; name it: filter=" in refused(read_lm_eval, SUMS)
    strict, flexible = (read_lm_eval(SUMS, filter=name) for name in ("strict-match", "flexible-extract"))
    assert strict.scores.tolist() == [line["exact_match"] for line in lines(SUMS, filter="strict-match")]
    assert strict.scores.sum() < flexible.scores.sum()
    assert strict.left_out == ("other filters: flexible-extract",)


def test_tasks_of_a_folder_are_joined_and_files_of_one_task_are_repeats(tmp_path, refused):
    table = read_lm_eval(RECORDED / "lm_eval", filter="none", metric="acc", groups="task")
    assert (table.ids[0], set(table.groups)) == ("choice/0", {"choice"})
    assert "holds none" in refused(read_lm_eval, tmp_path)
    again = tmp_path / "samples_choice_2026-11-23T00-00-00.000000.jsonl"
    again.write_text("".join(json.dumps(line | {"acc": 1.0}) + "\n" for line in reversed(lines(CHOICE))))
    table = read_lm_eval([CHOICE, again], metric="acc")
    assert table.scores.tolist() == [[line["acc"], 1.0] for line in lines(CHOICE)]


def test_rows_may_be_named_otherwise(refused):
    hashes = read_lm_eval(CHOICE, metric="acc", id="doc_hash").ids
    assert hashes == tuple(line["doc_hash"] for line in lines(CHOICE))
    assert read_lm_eval(CHOICE, metric="acc", id="doc.question").ids[1] == "1 plus 1?"
    assert "under doc.nothing; one has none" in refused(read_lm_eval, CHOICE, metric="acc", id="doc.nothing")
    assert "has p0 twice" in refused(read_lm_eval, CHOICE, metric="acc", id="doc.passage")


def test_files_of_older_versions_name_no_metrics(tmp_path, refused):
    found = [{key: one[key] for key in one if key not in {"metrics", "filter"}} for one in lines(CHOICE)]
    old = tmp_path / "samples_choice.jsonl"
    old.write_text("\n".join(map(json.dumps, found)))
    assert "has 'acc', 'acc_norm'" in refused(read_lm_eval, old)
    assert read_lm_eval(old, metric="acc").scores.tolist() == [line["acc"] for line in found]


# ---- tables


LONG = pd.DataFrame({"id": ["007", "007", "NA", "NA"], "repeat": [1, 2, 2, 1], "score": [1.0, 0.0, 0.5, 1.0]})
WIDE = pd.DataFrame({"id": ["007", "NA"], "score_1": [1.0, 0.5], "score_2": [0.0, 1.0]})
WRITERS = {
    "csv": lambda frame, path: frame.to_csv(path, index=False),
    "parquet": lambda frame, path: frame.to_parquet(path),
    "json": lambda frame, path: frame.to_json(path, orient="records"),
    "JSON": lambda frame, path: frame.to_json(path, orient="records"),
    "jsonl": lambda frame, path: frame.to_json(path, orient="records", lines=True),
    "ndjson": lambda frame, path: frame.to_json(path, orient="records", lines=True),
}


@for_each("ending", WRITERS)
@for_each("frame", [LONG, WIDE], ids=["long", "wide"])
def test_files_hold_a_row_for_each_score_or_a_column_for_each_repeat(tmp_path, ending, frame):
    WRITERS[ending](frame.assign(notes=None), tmp_path / f"scores.{ending}")
    table = read_scores(tmp_path / f"scores.{ending}", score="score")
    assert (table.ids, table.scores.tolist(), table.metric) == (("007", "NA"), [[1, 0], [0.5, 1]], "score")
    assert table.left_out == ("other columns: notes",)


@for_each(
    "form", [lambda frame: frame, lambda frame: frame.set_index("id"), pl.DataFrame, pa.Table.from_pandas]
)
def test_tables_are_read_as_files_are(form):
    table = read_scores(form(WIDE))
    assert (table.ids, table.scores.tolist()) == (("007", "NA"), [[1, 0], [0.5, 1]])


def test_columns_that_are_not_called_score_are_named_by_the_caller(refused):
    table = read_scores(WIDE.assign(tokens=0.5))
    assert (table.repeats, table.left_out) == (2, ("other columns: tokens",))
    other = WIDE.rename(columns=lambda name: name.replace("score", "grade"))
    assert read_scores(other).repeats == 2
    frame = other.assign(tokens=0.5)
    assert "has grade_1, grade_2, tokens" in refused(read_scores, frame)
    assert (
        read_scores(frame, score="grade").repeats
        == read_scores(frame, score=["grade_1", "grade_2"]).repeats
        == 2
    )
    assert read_scores(frame, score="tokens").metric == "tokens"
    assert "score must name columns" in refused(read_scores, frame, score=["grade_1", "grade_1"])
    assert "must have a column 'key'" in refused(read_scores, frame, id="key")
    long = LONG.assign(other=1.0)
    assert "name one of them with score=" in refused(read_scores, long, score=["score", "other"])


def test_groups_of_a_table_are_text(refused):
    assert read_scores(LONG.assign(user=[1, 1, 2, 2]), groups="user").groups == ("1", "2")
    for users, words in (
        ([1, 2, 2, 2], "repeats of 007 are in the groups 1, 2"),
        ([None, "a", "b", "b"], "a NoneType for 007"),
    ):
        assert words in refused(read_scores, LONG.assign(user=users), groups="user")


def test_unequal_repeats_are_refused_or_averaged(refused):
    frame = LONG.iloc[:3]
    words = refused(read_scores, frame)
    assert "some have 2; these have fewer: NA; run the missing repeats, or average" in words
    table = read_scores(frame, repeats="averaged")
    assert (table.scores.tolist(), table.left_out) == (
        [0.5, 0.5],
        ("repeats are averaged, from 1 to 2 of a row",),
    )
    assert '"equal" or' in refused(read_scores, frame, repeats="some")


def test_only_files_are_read(tmp_path, monkeypatch, refused):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")  # it would never end
    assert "there must be a file with scores at pipe" in refused(read_scores, "pipe")
    for read in (read_inspect, read_lm_eval):
        for path in ("none.jsonl", "none.eval", "pipe"):
            assert "no such file" in refused(read, path)
        assert "a path, or a list of paths; got NoneType" in refused(read, None)
