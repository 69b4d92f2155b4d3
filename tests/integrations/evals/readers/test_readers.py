"""Readers on what the tools themselves wrote (recorded/, by record.py), and on tables."""

import json
import os
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from cases import for_each
from reusable_holdout_evals import read_inspect, read_lm_eval, read_scores

from reusable_holdout import ReusableHoldout
from reusable_holdout.errors import InputError

RECORDED = Path(__file__).parent / "recorded"
IDS = tuple(f"q{k}" for k in range(6))
MATCHED = [[1, 0], [1, 1], [0, 1], [0, 0], [0, 0], [0, 0]]


def refused(read, *arguments, **options):
    with pytest.raises(InputError) as caught:
        read(*arguments, **options)
    return str(caught.value)


# ---- Inspect


@for_each("ending", ["eval", "json"])
def test_epochs_are_repeats_and_grades_are_numbers(ending):
    table = read_inspect(RECORDED / f"plain.{ending}")
    assert (table.ids, table.scores.tolist()) == (IDS, MATCHED)
    assert (table.name, table.metric, table.groups, table.left_out) == ("plain", "match", None, ())


@for_each("ending", ["eval", "json"])
def test_of_several_scorers_one_is_named(ending):
    log = RECORDED / f"several.{ending}"
    assert "has 'match', 'style', 'judge'; name it: scorer=" in refused(read_inspect, log)
    assert "'match', 'style', 'judge'; got 'judges'" in refused(read_inspect, log, scorer="judges")
    table = read_inspect(log, scorer="match", missing=0)
    assert table.scores.tolist() == MATCHED
    assert table.left_out == (
        "other scorers: style, judge",
        "1 without a score count as 0 (1 because the sample failed): q5",
    )


@for_each("ending", ["eval", "json"])
def test_what_has_no_score_is_refused_by_name_unless_a_number_stands_for_it(ending):
    log = RECORDED / f"several.{ending}"
    assert "has none for q5 (1 because the sample failed)" in refused(read_inspect, log, scorer="match")
    words = refused(read_inspect, log, scorer="judge")
    assert "has none for q3, q5 (2 because it was not scored (grader_failed), 1 because the sample" in words
    table = read_inspect(log, scorer="judge", missing=0.25)
    grades = [[1, 1], [0.5, 0.5], [0, 0], [0.25, 0.25], [1, 1], [0.5, 0.25]]
    assert table.scores.tolist() == grades


@for_each("ending", ["eval", "json"])
def test_the_scorers_cluster_is_the_groups(ending):
    log = RECORDED / f"several.{ending}"
    repos = ("r0", "r0", "r1", "r1", "r2", "r2")
    assert read_inspect(log, scorer="judge", missing=0).groups == repos
    assert read_inspect(log, scorer="match", missing=0).groups is None
    assert read_inspect(log, scorer="match", missing=0, groups="repo").groups == repos
    assert "has a NoneType for q0" in refused(read_inspect, log, scorer="match", missing=0, groups="site")


def test_of_a_dict_one_key_is_named():
    log = RECORDED / "several.eval"
    words = refused(read_inspect, log, scorer="style", missing=0)
    assert "the keys clarity, brevity; name one of them with key=" in words
    table = read_inspect(log, scorer="style", key="brevity", missing=0)
    assert (table.metric, table.scores.tolist()) == ("style[brevity]", [[1, 0]] * 6)
    assert "leave it out" in refused(read_inspect, log, scorer="match", key="brevity", missing=0)


def test_a_run_that_broke_is_refused():
    assert "broken.eval has the status error" in refused(read_inspect, RECORDED / "broken.eval")


def test_several_logs_of_one_task_are_repeats():
    table = read_inspect([RECORDED / "plain.eval", RECORDED / "plain.json"])
    assert table.scores.tolist() == [[*row, *row] for row in MATCHED]
    assert "must be named once" in refused(read_inspect, [RECORDED / "plain.eval"] * 2)
    several = [RECORDED / "plain.eval", RECORDED / "several.eval"]
    assert "these are of plain, several" in refused(read_inspect, several, scorer="match", missing=0)


def test_a_guard_is_made_and_asked_with_what_was_read():
    """Tables go straight into a guard; and what it is told is the mean of what the log holds."""
    table = read_inspect(RECORDED / "several.eval", scorer="judge", missing=0)
    with ReusableHoldout(
        None,
        table.ids,
        metric="score",
        groups=table.groups,
        queries=5,
        charges=1,
        seed=0,
        witness=False,
        vacuous=True,
    ) as guard:
        answer = guard.evaluate_predictions(table, prior=table.scores.mean())
        assert guard.plan.rows == 3
    assert answer.value == pytest.approx(table.scores.mean())


# ---- lm-evaluation-harness


(CHOICE,) = (RECORDED / "lm_eval").glob("samples_choice_*.jsonl")
(SUMS,) = (RECORDED / "lm_eval").glob("samples_sums_*.jsonl")


def columns(path, **wanted):
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [line for line in lines if all(line[key] == value for key, value in wanted.items())]


def test_a_metric_of_one_task():
    assert "has 'acc', 'acc_norm'; name it: metric=" in refused(read_lm_eval, CHOICE)
    table = read_lm_eval(CHOICE, metric="acc", groups="doc.passage")
    assert table.scores.tolist() == [line["acc"] for line in columns(CHOICE)]
    assert set(table.scores.tolist()) == {0.0, 1.0}
    assert table.ids == ("0", "1", "2", "3", "4", "5")
    assert table.groups == ("p0", "p0", "p1", "p1", "p2", "p2")
    assert (table.name, table.left_out) == ("choice", ("other metrics: acc_norm",))


def test_of_several_filters_one_is_named():
    assert "has 'strict-match', 'flexible-extract'; name it: filter=" in refused(read_lm_eval, SUMS)
    strict, flexible = (read_lm_eval(SUMS, filter=name) for name in ("strict-match", "flexible-extract"))
    assert strict.scores.tolist() == [line["exact_match"] for line in columns(SUMS, filter="strict-match")]
    assert strict.scores.sum() < flexible.scores.sum()
    assert strict.left_out == ("other filters: flexible-extract",)


def test_tasks_of_a_folder_are_joined():
    table = read_lm_eval(RECORDED / "lm_eval", filter="none", metric="acc", groups="task")
    assert table.ids[0] == "choice/0"
    assert set(table.groups) == {"choice"}
    assert "holds none" in refused(read_lm_eval, RECORDED / ".." / "recorded" / "..")


def test_files_of_one_task_are_repeats(tmp_path):
    lines = columns(CHOICE)
    for line in lines:
        line["acc"] = 1.0
    again = tmp_path / "samples_choice_2026-11-23T00-00-00.000000.jsonl"
    again.write_text("".join(json.dumps(line) + "\n" for line in reversed(lines)))
    table = read_lm_eval([CHOICE, again], metric="acc")
    assert table.scores.tolist() == [[line["acc"], 1.0] for line in columns(CHOICE)]


def test_rows_may_be_named_otherwise():
    hashed = read_lm_eval(CHOICE, metric="acc", id="doc_hash").ids
    assert hashed == tuple(line["doc_hash"] for line in columns(CHOICE))
    assert read_lm_eval(CHOICE, metric="acc", id="doc.question").ids[1] == "1 plus 1?"
    assert "under doc.nothing; one has none" in refused(read_lm_eval, CHOICE, metric="acc", id="doc.nothing")
    assert "has p0 twice" in refused(read_lm_eval, CHOICE, metric="acc", id="doc.passage")


def test_files_of_older_versions_name_no_metrics(tmp_path):
    lines = [
        {key: value for key, value in line.items() if key not in {"metrics", "filter"}}
        for line in columns(CHOICE)
    ]
    old = tmp_path / "samples_choice.jsonl"
    old.write_text("\n".join(map(json.dumps, lines)))
    assert "has 'acc', 'acc_norm'" in refused(read_lm_eval, old)
    assert read_lm_eval(old, metric="acc").scores.tolist() == [line["acc"] for line in lines]


# ---- tables


LONG = pd.DataFrame({"id": ["007", "007", "NA", "NA"], "repeat": [1, 2, 2, 1], "score": [1.0, 0.0, 0.5, 1.0]})
WIDE = pd.DataFrame({"id": ["007", "NA"], "score_1": [1.0, 0.5], "score_2": [0.0, 1.0]})


@for_each("ending", ["csv", "parquet"])
@for_each("frame", [LONG, WIDE], ids=["long", "wide"])
def test_files_hold_a_row_for_each_score_or_a_column_for_each_repeat(tmp_path, ending, frame):
    path = tmp_path / f"scores.{ending}"
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    table = read_scores(path)
    assert table.ids == ("007", "NA")
    assert table.scores.tolist() == [[1, 0], [0.5, 1]]
    assert table.metric == "score"


@for_each("form", [lambda frame: frame, lambda frame: frame.set_index("id"), pl.DataFrame, pa.table])
def test_tables_are_read_as_files_are(form):
    table = read_scores(form(WIDE) if form is not pa.table else pa.Table.from_pandas(WIDE))
    assert (table.ids, table.scores.tolist()) == (("007", "NA"), [[1, 0], [0.5, 1]])


def test_columns_that_might_be_no_scores_are_named_by_the_caller():
    frame = WIDE.assign(tokens=0.5)
    assert "has score_1, score_2, tokens beside the ids" in refused(read_scores, frame)
    table = read_scores(frame, score=["score_1", "score_2"], groups="tokens" if False else None)
    assert (table.repeats, table.left_out) == (2, ("other columns: tokens",))
    assert read_scores(frame, score="tokens").metric == "tokens"
    assert "score must name columns" in refused(read_scores, frame, score=["score_1", "score_1"])
    assert "must have a column 'key'" in refused(read_scores, frame, id="key")
    long = LONG.assign(other=1.0)
    assert "name one of them with score=" in refused(read_scores, long, score=["score", "other"])


def test_groups_of_a_table_are_text():
    table = read_scores(LONG.assign(user=[1, 1, 2, 2]), score="score", groups="user")
    assert table.groups == ("1", "2")
    words = refused(read_scores, LONG.assign(user=[1, 2, 2, 2]), score="score", groups="user")
    assert "those of 007 are of 1, 2" in words
    assert "a NoneType for 007" in refused(
        read_scores, LONG.assign(user=[None, "a", "b", "b"]), score="score", groups="user"
    )


def test_unequal_repeats_are_refused_or_averaged():
    frame = LONG.iloc[:3]
    words = refused(read_scores, frame)
    assert "the most are 2, and fewer have NA; run the missing ones, or average them" in words
    table = read_scores(frame, repeats="averaged")
    assert table.scores.tolist() == [0.5, 0.5]
    assert table.left_out == ("repeats are averaged, from 1 to 2 of a row",)
    assert "'equal' or" in refused(read_scores, frame, repeats="some").replace('"', "'")


def test_readers_take_what_the_file_system_gives(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    WIDE.to_csv("scores.csv", index=False)
    assert read_scores("scores.csv").rows == 2
    os.mkfifo("pipe")
    assert "there must be a file with scores at pipe" in refused(read_scores, "pipe")
    assert "no such file" in refused(read_lm_eval, "none.jsonl")
    assert "no such file" in refused(read_inspect, "none.eval")
    assert "no such file" in refused(read_inspect, "pipe")
    assert "no such file" in refused(read_lm_eval, "pipe")
    assert "a path, or a list of paths; got NoneType" in refused(read_inspect, None)
