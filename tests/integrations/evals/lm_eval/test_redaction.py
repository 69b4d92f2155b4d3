"""A full folder of lm-evaluation-harness, on the trusted side, becomes a developer's."""

import json

import numpy as np
import pytest
from reusable_holdout_evals.lm_eval import redact

from reusable_holdout import ReusableHoldout
from reusable_holdout.cli import main
from reusable_holdout.errors import Halted, InputError

ROWS = 60
STAMP = "2026-11-22T23-51-09.028046"
SCORES = np.random.default_rng(0).beta(6, 2, ROWS)
SETTINGS = {"queries": 5, "tolerance": 0.4, "seed": 0, "vacuous": True}


def secrets_of(row):
    return [f"target-of-{row}!", f"rationale-of-{row}!", f"hash-of-{row}!", repr(float(SCORES[row]))[:14]]


def line(row, task):
    """A line as the harness writes it, of a task that generates or of one with a single continuation."""
    target, rationale, hashed, _ = secrets_of(row)
    asked = {"until": ["\n"]} if task == "sums" else f" {target}"
    answered = f"generated {row}" if task == "sums" else [repr(float(SCORES[row])), "True"]
    return {
        "doc_id": row,
        "doc": {"question": f"question {row}?", "answer": target, "rationale": rationale},
        "target": target,
        "arguments": {"gen_args_0": {"arg_0": f"question {row}?", "arg_1": asked}},
        "resps": [[answered]],
        "filtered_resps": [answered],
        "filter": "strict",
        "metrics": ["judged"],
        "doc_hash": hashed,
        "prompt_hash": hashed,
        "target_hash": hashed,
        "judged": float(SCORES[row]),
        "a_later_field": rationale,
    }


@pytest.fixture
def full(tmp_path):
    folder = tmp_path / "full" / "model"
    folder.mkdir(parents=True)
    for task in ("sums", "last_word"):
        lines = [json.dumps(line(row, task)) for row in range(ROWS)]
        (folder / f"samples_{task}_{STAMP}.jsonl").write_text("\n".join([*lines, ""]))
    mean = float(SCORES.mean())
    results = {
        "results": {
            task: {"alias": task, "judged,strict": mean, "judged_stderr,strict": 0.01}
            for task in ("sums", "last_word")
        },
        "configs": {"sums": {"doc_to_target": "answer", "fewshot": [secrets_of(0)[0]]}},
        "n-samples": {"sums": {"original": ROWS, "effective": ROWS}},
        "config": {"model": "hf", "model_args": "pretrained=small", "random_seed": 0},
        "date": 1.0,
        "model_name": "small",
    }
    (folder / f"results_{STAMP}.json").write_text(json.dumps(results))
    return folder


@pytest.fixture
def guard():
    with ReusableHoldout(None, [str(row) for row in range(ROWS)], metric="score", **SETTINGS) as guard:
        yield guard


def everything_in(folder):
    return "\n".join(path.read_text() for path in sorted(folder.rglob("*")) if path.is_file())


@pytest.mark.parametrize("task", ["sums", "last_word"])
def test_the_developers_folder_has_the_answer_and_nothing_else_of_the_scores(task, full, guard, tmp_path):
    secrets = [secret for row in range(ROWS) for secret in secrets_of(row)] + [
        repr(float(SCORES.mean()))[:14]
    ]
    answer = redact(
        full.parent,
        tmp_path / "public",
        guard=guard,
        task=task,
        prior=0.75,
        filter="strict",
        show=["question"],
    )
    assert answer.low < SCORES.mean() < answer.high
    text = everything_in(tmp_path / "public")
    assert [secret for secret in secrets if secret in text] == []
    assert [
        secret for secret in secrets if secret not in everything_in(full)
    ] == []  # the search finds them there
    assert sorted(path.name for path in (tmp_path / "public").iterdir()) == [
        f"results_{STAMP}.json",
        f"samples_{task}_{STAMP}.jsonl",
    ]
    assert "question 7?" in text
    assert ("generated 7" in text) == (task == "sums")


def test_ids_that_are_hashes_of_what_is_withheld_stay_behind(full, tmp_path):
    hashes = [secrets_of(row)[2] for row in range(ROWS)]
    with ReusableHoldout(None, sorted(hashes), metric="score", **SETTINGS) as by_hash:
        redact(
            full, tmp_path / "public", guard=by_hash, task="sums", prior=0.75, filter="strict", id="doc_hash"
        )
    text = everything_in(tmp_path / "public")
    assert '"doc_id": 7' in text
    assert "hash" not in text


def test_the_results_are_the_guards(full, guard, tmp_path):
    answer = redact(full, tmp_path / "public", guard=guard, task="sums", prior=0.75, filter="strict")
    results = json.loads((tmp_path / "public" / f"results_{STAMP}.json").read_text())
    assert results["results"] == {
        "sums": {
            "alias": "sums",
            "judged,strict": answer.value,
            "judged_low,strict": answer.low,
            "judged_high,strict": answer.high,
            "prior,strict": 0.75,
            "charged,strict": False,
            "charges_left,strict": guard.charges_left,
            "replayed,strict": False,
        }
    }
    assert results["model_name"] == "small"
    assert results["config"] == {"model": "hf", "model_args": "pretrained=small"}
    assert results["n-samples"] == {"sums": {"original": ROWS, "effective": ROWS}}
    assert "configs" not in results
    again = redact(full, tmp_path / "again", guard=guard, task="sums", prior=0.75, filter="strict")
    assert again.replayed


def test_an_incumbents_folder_is_compared(full, guard, tmp_path):
    answer = redact(full, tmp_path / "public", guard=guard, task="sums", prior=0.0, incumbent=full)
    assert (answer.paired, answer.value) == (True, 0.0)
    assert '"judged_difference,none": 0.0' in everything_in(tmp_path / "public")


def test_the_command_writes_the_same(full, tmp_path, capsys):
    ids = sorted(str(row) for row in range(ROWS))
    with ReusableHoldout(
        None, ids, metric="score", ledger=tmp_path / "guard.db", **SETTINGS | {"queries": 1}
    ):
        pass
    asked = ["redact", "--lm-eval", str(full), "--task", "sums", "--ledger", str(tmp_path / "guard.db")]
    assert main([*asked, "--prior", "0.75", "--show", "question", "--out", str(tmp_path / "public")]) == 0
    assert capsys.readouterr().out.startswith("0.7500 in [")
    assert "question 7?" in everything_in(tmp_path / "public")
    assert main([*asked, "--prior", "0.5", "--out", str(tmp_path / "other")]) == 2
    assert "the guard has halted" in capsys.readouterr().err
    assert main([*asked, "--prior", "0.75", "--json", "--out", str(tmp_path / "third")]) == 0
    assert json.loads(capsys.readouterr().out)["replayed"]
    assert not (tmp_path / "other").exists()


def test_what_is_refused_writes_nothing(full, tmp_path):
    with pytest.raises(InputError, match="samples of 'other'; it holds 2 files of others"):
        redact(full, tmp_path / "public", guard=None, task="other")
    with ReusableHoldout(
        None, [str(row) for row in range(ROWS)], metric="score", **SETTINGS | {"queries": 1}
    ) as guard:
        redact(full, tmp_path / "first", guard=guard, task="sums", prior=0.75)
        with pytest.raises(Halted):
            redact(full, tmp_path / "public", guard=guard, task="sums", prior=0.5)
        assert not (tmp_path / "public").exists()
        with pytest.raises(InputError, match="must be a new one"):
            redact(full, tmp_path / "first", guard=guard, task="sums", prior=0.75)
