"""Logs that contradict themselves, and logs of two systems: each attack and each fault is played."""

import json
import zipfile

import pytest
from cases import for_each
from integrations.evals.conftest import RECORDED
from reusable_holdout_evals import read_inspect, read_lm_eval
from reusable_holdout_evals.readers.archives import Archive


@pytest.fixture
def changed(tmp_path):
    """Write a recorded log of Inspect's with a changed header, and changed samples."""

    def write(source, header=lambda _: None, samples=lambda _: None):
        target = tmp_path / f"changed-{source}"
        if target.suffix == ".json":
            log = json.loads((RECORDED / source).read_text())
            header(log)
            samples(log["samples"])
            target.write_text(json.dumps(log))
            return target
        with Archive(RECORDED / source) as archive, zipfile.ZipFile(target, "w") as made:
            for name, change in (("header.json", header), ("summaries.json", samples)):
                content = json.loads(archive.read(name))
                change(content)
                made.writestr(name, json.dumps(content))
        return target

    return write


def right(samples, scorer="match"):
    for sample in samples:
        sample["scores"][scorer]["value"] = "C"


@for_each("ending", ["eval", "json"])
@for_each(("samples", "mean"), [(right, "1"), (lambda samples: right(samples[-1:]), "0.416667")])
def test_scores_that_are_not_those_that_the_header_averaged_are_refused(
    changed, refused, ending, samples, mean
):
    """The attack: summaries rewritten, the samples and the header left as they were."""
    words = refused(read_inspect, changed(f"plain.{ending}", samples=samples))
    assert "the accuracy that its header states" in words
    assert f"the header states 0.333333 for match, but the samples give {mean}" in words


@for_each("ending", ["eval", "json"])
def test_samples_that_the_header_does_not_count_are_refused(changed, refused, ending):
    """The attack: the rows that were wrong are left out, and the mean is of the others."""

    def mend(header):
        header["results"]["scores"][0]["metrics"]["accuracy"]["value"] = 0.75

    def drop(samples):
        samples[:] = [one for one in samples if one["id"] in {"q0", "q1"}]

    assert "states 12 and holds 4" in refused(read_inspect, changed(f"plain.{ending}", mend, drop))


@for_each(("key", "other"), [("clarity", "brevity"), ("brevity", "clarity")])
def test_the_mean_of_each_key_is_compared(changed, refused, key, other):
    def raise_all(samples):
        for sample in samples:
            if "style" in sample["scores"]:
                sample["scores"]["style"]["value"][key] = 1

    log = changed("several.eval", samples=raise_all)
    assert "the mean that its header states" in refused(read_inspect, log, scorer="style", key=key, missing=0)
    assert read_inspect(log, scorer="style", key=other, missing=0).ids


def with_accuracy(value, change):
    def changed(header):
        change(header["eval"])
        header["results"]["scores"][0]["metrics"]["accuracy"]["value"] = value

    return changed


@for_each(
    "change",
    [
        lambda header: None,
        with_accuracy(0.5, lambda spec: spec["config"].update(epochs_reducer=["max"])),
        with_accuracy(0.9, lambda spec: spec["scorers"][0]["metrics"][0].update(name="mine/accuracy")),
        lambda header: header.pop("results"),
        lambda header: header["results"].update(total_samples=20, logged_samples=12),
        lambda header: header["results"].update(total_samples=20, early_stopping={"manager": "one"}),
    ],
)
def test_results_that_cannot_be_compared_are_passed_over(changed, change):
    """Reducers other than the mean, a user's own metric of that name, and logs that state nothing."""
    assert read_inspect(changed("plain.eval", change)).scores.shape == (6, 2)


@for_each("what", ["model", "solver", "task"])
def test_logs_of_two_systems_are_no_repeats(changed, refused, what):
    log = changed("plain.eval", lambda header: header["eval"].update({what: "another/one"}))
    words = refused(read_inspect, [RECORDED / "plain.eval", log])
    assert f"repeats of one {what}" in words
    assert "another/one" in words


def test_samples_of_two_models_are_no_repeats(tmp_path, refused):
    (choice,) = (RECORDED / "lm_eval").glob("samples_choice_*.jsonl")
    for model in ("one", "two"):
        folder = tmp_path / "out" / f"org__{model}"
        folder.mkdir(parents=True)
        (folder / choice.name).write_bytes(choice.read_bytes())
        results = folder / choice.name.replace("samples_choice", "results").replace(".jsonl", ".json")
        results.write_text(json.dumps({"results": {}, "model_name": f"org/{model}"}))
    files = sorted((tmp_path / "out").rglob("samples_*.jsonl"))
    assert "repeats of one model; these are of org/one, org/two" in refused(read_lm_eval, files, metric="acc")
    assert "holds the files of org__one, org__two" in refused(read_lm_eval, tmp_path / "out", metric="acc")
    assert read_lm_eval(tmp_path / "out" / "org__one", metric="acc").scores.shape == (6,)
