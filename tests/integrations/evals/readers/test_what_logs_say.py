"""Logs that contradict themselves, logs of two models, wide tables beside groups, and JSON: each fault is played."""

import json
import zipfile
from pathlib import Path

import pandas as pd
import pytest
from cases import for_each
from reusable_holdout_evals import read_inspect, read_lm_eval, read_scores
from reusable_holdout_evals.readers.archives import Archive

from reusable_holdout.errors import InputError

RECORDED = Path(__file__).parent / "recorded"


def changed(source, target, change, samples=None):
    """Log of Inspect's with a changed header, and changed samples."""
    if source.suffix == ".json":
        log = json.loads(source.read_text())
        change(log)
        (samples or (lambda them: None))(log["samples"])
        target.write_text(json.dumps(log))
        return target
    with Archive(source) as archive, zipfile.ZipFile(target, "w") as made:
        header, summaries = (json.loads(archive.read(name)) for name in ("header.json", "summaries.json"))
        change(header)
        (samples or (lambda them: None))(summaries)
        made.writestr("header.json", json.dumps(header))
        made.writestr("summaries.json", json.dumps(summaries))
    return target


def as_it_is(_):
    """Leave it."""


def refused(read, *arguments, **options):
    with pytest.raises(InputError) as caught:
        read(*arguments, **options)
    return str(caught.value)


# ---- samples and header


def right(samples):
    for sample in samples:
        sample["scores"]["match"]["value"] = "C"


def one_right(samples):
    samples[-1]["scores"]["match"]["value"] = "C"


@for_each("ending", ["eval", "json"])
@for_each(("samples", "mean"), [(right, "1"), (one_right, "0.416667")])
def test_scores_that_are_not_what_the_header_averaged_are_refused(tmp_path, ending, samples, mean):
    """The attack: summaries rewritten, the samples and the header left as they were."""
    log = changed(RECORDED / f"plain.{ending}", tmp_path / f"forged.{ending}", as_it_is, samples)
    words = refused(read_inspect, log)
    assert "the accuracy that its header states" in words
    assert f"the header says 0.333333 of match, and the samples' scores have {mean}" in words


@for_each("ending", ["eval", "json"])
def test_samples_that_the_header_does_not_count_are_refused(tmp_path, ending):
    """The attack: the rows that were wrong are left out, and the mean is of the others."""

    def mend(header):
        header["results"]["scores"][0]["metrics"]["accuracy"]["value"] = 0.75

    def drop(samples):
        samples[:] = [one for one in samples if one["id"] in {"q0", "q1"}]

    log = changed(RECORDED / f"plain.{ending}", tmp_path / f"cut.{ending}", mend, drop)
    assert "says 12 and holds 4" in refused(read_inspect, log)


@for_each("key", ["clarity", "brevity"])
def test_the_mean_of_each_key_is_compared(tmp_path, key):
    def raise_all(samples):
        for sample in samples:
            if "style" in sample["scores"]:
                sample["scores"]["style"]["value"][key] = 1

    log = changed(RECORDED / "several.eval", tmp_path / "forged.eval", as_it_is, raise_all)
    assert "the mean that its header states" in refused(read_inspect, log, scorer="style", key=key, missing=0)
    other = {"clarity": "brevity", "brevity": "clarity"}[key]
    assert read_inspect(log, scorer="style", key=other, missing=0).ids


def test_what_cannot_be_compared_is_read(tmp_path):
    """Reducers other than the mean, a user's own metric of that name, and logs that state nothing."""

    def reduced(header):
        header["eval"]["config"]["epochs_reducer"] = ["max"]
        header["results"]["scores"][0]["metrics"]["accuracy"]["value"] = 0.5

    def of_ones_own(header):
        header["eval"]["scorers"][0]["metrics"][0]["name"] = "mine/accuracy"
        header["results"]["scores"][0]["metrics"]["accuracy"]["value"] = 0.9

    def bare(header):
        del header["results"]

    def drained(header):
        header["results"] |= {"total_samples": 20, "logged_samples": 12}

    def stopped(header):
        header["results"] |= {"total_samples": 20, "early_stopping": {"manager": "one"}}

    for number, change in enumerate((as_it_is, reduced, of_ones_own, bare, drained, stopped)):
        log = changed(RECORDED / "plain.eval", tmp_path / f"{number}.eval", change)
        assert read_inspect(log).scores.shape == (6, 2)


# ---- one system


@for_each("what", ["model", "solver", "task"])
def test_logs_of_two_systems_are_no_repeats(tmp_path, what):
    def other(header):
        header["eval"][what] = "another/one"

    log = changed(RECORDED / "plain.eval", tmp_path / "other.eval", other)
    words = refused(read_inspect, [RECORDED / "plain.eval", log])
    assert f"repeats of one {what}" in words
    assert "another/one" in words
    if what == "model":
        assert "mockllm/model" in words


def test_samples_of_two_models_are_no_repeats(tmp_path):
    (choice,) = (RECORDED / "lm_eval").glob("samples_choice_*.jsonl")
    time = "2026-11-22T23-51-09.028046"
    for model in ("one", "two"):
        folder = tmp_path / "out" / f"org__{model}"
        folder.mkdir(parents=True)
        (folder / choice.name).write_bytes(choice.read_bytes())
        (folder / f"results_{time}.json").write_text(
            json.dumps({"results": {}, "model_name": f"org/{model}"})
        )
    files = sorted((tmp_path / "out").rglob("samples_*.jsonl"))
    words = refused(read_lm_eval, files, metric="acc")
    assert "repeats of one model; these are of org/one, org/two" in words
    words = refused(read_lm_eval, tmp_path / "out", metric="acc")
    assert "holds those of org__one, org__two" in words
    assert read_lm_eval(tmp_path / "out" / "org__one", metric="acc").scores.shape == (6,)


# ---- wide tables


def wide(folder, **more):
    path = folder / "wide.csv"
    frame = {
        "id": ["a", "b", "c"],
        "repo": ["x", "x", "y"],
        "score_1": [1, 0, 1],
        "score_2": [0, 0, 1],
        **more,
    }
    pd.DataFrame(frame).to_csv(path, index=False)
    return path


def test_a_wide_table_with_groups_keeps_its_repeats(tmp_path):
    both = [[1, 0], [0, 0], [1, 1]]
    path = wide(tmp_path)
    assert read_scores(path, groups="repo").scores.tolist() == both
    table = read_scores(path)  # as the command gate reads it, which needs no groups
    assert (table.scores.tolist(), table.left_out) == (both, ("other columns: repo",))
    assert read_scores(path, score="score").scores.tolist() == both
    assert read_scores(path, score="score_2").scores.tolist() == [0, 0, 1]
    numbered = wide(tmp_path, repo=[1, 1, 2])  # numbers could be scores: which are is said
    assert "must be named with score=" in refused(read_scores, numbered)
    assert read_scores(numbered, score="score").scores.tolist() == both


# ---- JSON

ROWS = [
    {"id": "007", "repo": "x", "score_1": 1, "score_2": 0.5, "notes": {"deep": [1]}},
    {"id": "7", "repo": "y", "score_1": 0, "score_2": None, "notes": None},
]


@for_each("ending", [".json", ".jsonl", ".ndjson", ".JSON"])
def test_json_is_read_as_json(tmp_path, ending):
    path = tmp_path / f"scores{ending}"
    lines = "\n".join(map(json.dumps, ROWS)) + "\n\n"
    path.write_text(json.dumps(ROWS) if "l" not in ending.lower()[5:] and "nd" not in ending else lines)
    table = read_scores(path, groups="repo", missing=0, score=["score_1", "score_2"])
    assert (table.ids, table.scores.tolist(), table.groups) == (("007", "7"), [[1, 0.5], [0, 0]], ("x", "y"))


@for_each(
    ("name", "text", "words"),
    [
        ("a.json", '{"id": ["a"]}', "there must be ["),
        ("a.json", '[{"id": "a"}, 3]', "a list of objects, one for each row, or of plain values"),
        ("a.json", "[[1, 2]]", "a list of objects"),
        ("a.json", "[]", "must be"),
        ("a.json", '[{"id": "a", "score": 1}', "was it written to its end?"),
        ("a.jsonl", '{"id": "a"}\n[1]', "line 2 of"),
        ("a.jsonl", '{"id": "a"}\n{"id"', "line 2 of"),
        ("a.jsonl", "id,score\na,1\n", "line 1 of"),
    ],
)
def test_other_json_is_refused(tmp_path, name, text, words):
    path = tmp_path / name
    path.write_text(text)
    assert words in refused(read_scores, path)
