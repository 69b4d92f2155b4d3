"""The redaction of a full folder of lm-evaluation-harness, where the holdout is kept, to a developer's."""

import json

import numpy as np
import pytest
from cases import refuses
from made_guards import made_guard
from reusable_holdout_evals.lm_eval import redact

from reusable_holdout.cli import main
from reusable_holdout.errors import InputError

ROWS = 60
STAMP = "2026-11-22T23-51-09.028046"
SCORES = np.random.default_rng(0).beta(6, 2, ROWS)
SETTINGS = {"queries": 2, "tolerance": 0.4, "seed": 0, "vacuous": True}


def secrets_of(row):
    return [f"target-of-{row}!", f"rationale-of-{row}!", f"hash-of-{row}!", repr(float(SCORES[row]))[:14]]


def line(row, task):
    """Return a line as the harness writes it, of a task that generates or of one with a single continuation."""
    target, rationale, hashed, _ = secrets_of(row)
    score, question = float(SCORES[row]), f"question {row}?"
    asked = {"until": ["\n"]} if task == "sums" else f" {target}"
    answered = f"generated {row}" if task == "sums" else [repr(score), "True"]
    found = {"doc_id": row, "target": target, "filter": "strict", "metrics": ["judged"], "judged": score}
    found |= {
        "doc": {"question": question, "answer": target, "rationale": rationale},
        "a_later_field": rationale,
    }
    found |= {"arguments": {"gen_args_0": {"arg_0": question, "arg_1": asked}}}
    found |= dict.fromkeys(("doc_hash", "prompt_hash", "target_hash"), hashed)
    return found | {"resps": [[answered]], "filtered_resps": [answered]}


@pytest.fixture
def full(tmp_path):
    folder = tmp_path / "full" / "model"
    folder.mkdir(parents=True)
    for task in ("sums", "last_word"):
        lines = [json.dumps(line(row, task)) for row in range(ROWS)]
        (folder / f"samples_{task}_{STAMP}.jsonl").write_text("\n".join([*lines, ""]))
    scores = {"judged,strict": float(SCORES.mean()), "judged_stderr,strict": 0.01}
    results = {
        "results": {task: {"alias": task, **scores} for task in ("sums", "last_word")},
        "configs": {"sums": {"doc_to_target": "answer", "fewshot": [secrets_of(0)[0]]}},
        "n-samples": {"sums": {"original": ROWS, "effective": ROWS}},
        "config": {"model": "hf", "model_args": "pretrained=small", "random_seed": 0},
        "date": 1.0,
        "model_name": "small",
    }
    (folder / f"results_{STAMP}.json").write_text(json.dumps(results))
    return folder


@pytest.fixture
def guard(tmp_path):
    """A guard of two questions, with a ledger."""
    ids = sorted(str(row) for row in range(ROWS))
    with made_guard(None, ids, metric="score", ledger=tmp_path / "guard.db", **SETTINGS) as guard:
        yield guard


@pytest.fixture
def asked(full, guard, tmp_path):
    """Redact the folder: the answer."""

    def redacted(out="public", **more):
        common = {"guard": guard, "task": "sums", "prior": 0.75, "filter": "strict"}
        return redact(full, tmp_path / out, **common | more)

    return redacted


def everything_in(folder):
    return "\n".join(path.read_text() for path in sorted(folder.rglob("*")) if path.is_file())


@pytest.mark.parametrize("task", ["sums", "last_word"])
def test_the_developers_folder_has_the_answer_and_nothing_else_of_the_scores(task, full, asked, tmp_path):
    secrets = [repr(float(SCORES.mean()))[:14], *(one for row in range(ROWS) for one in secrets_of(row))]
    answer = asked(task=task, show=["question"])
    assert answer.low < SCORES.mean() < answer.high
    text, before = everything_in(tmp_path / "public"), everything_in(full)
    assert [secret for secret in secrets if secret in text] == []
    assert [secret for secret in secrets if secret not in before] == []  # the search finds them there
    files = [f"results_{STAMP}.json", f"samples_{task}_{STAMP}.jsonl"]
    assert sorted(path.name for path in (tmp_path / "public").iterdir()) == files
    assert "question 7?" in text
    assert ("generated 7" in text) == (task == "sums")


def test_ids_that_are_hashes_of_withheld_texts_stay_behind(asked, tmp_path):
    hashes = [secrets_of(row)[2] for row in range(ROWS)]
    with made_guard(None, sorted(hashes), metric="score", **SETTINGS) as by_hash:
        asked(guard=by_hash, id="doc_hash")
    text = everything_in(tmp_path / "public")
    assert ('"doc_id": 7' in text, "hash" in text) == (True, False)


def test_the_results_are_the_guards(asked, guard, tmp_path):
    answer = asked()
    results = json.loads((tmp_path / "public" / f"results_{STAMP}.json").read_text())
    told = {"judged": answer.value, "judged_low": answer.low, "judged_high": answer.high, "prior": 0.75}
    told |= {"charged": 0, "charges_left": guard.charges_left, "replayed": 0}
    assert results == {
        "results": {"sums": {"alias": "sums"} | {f"{name},strict": one for name, one in told.items()}},
        "guarded": True,
        "date": 1.0,
        "model_name": "small",
        "config": {"model": "hf", "model_args": "pretrained=small"},
        "n-samples": {"sums": {"original": ROWS, "effective": ROWS}},
    }
    assert asked("again").replayed


def test_an_incumbents_folder_is_compared(asked, full, tmp_path):
    answer = asked(prior=0.0, incumbent=full)
    assert (answer.paired, answer.value) == (True, 0.0)
    assert '"judged_difference,strict": 0.0' in everything_in(tmp_path / "public")


def test_the_command_writes_the_same_until_the_budget_is_spent(full, guard, tmp_path, capsys):
    ledger = str(tmp_path / "guard.db")
    common = ["redact", "--lm-eval", str(full), "--task", "sums", "--ledger", ledger, "--show", "question"]
    for prior, out, status in (
        ("0.75", "public", 0),
        ("0.6", "second", 0),
        ("0.5", "other", 2),
        ("0.75", "third", 0),
    ):
        done = main([*common, "--json", "--prior", prior, "--out", str(tmp_path / out)])
        text = capsys.readouterr()
        assert done == status, text.err
        assert (tmp_path / out).exists() == (status == 0)
        assert ("the guard has halted" in text.err) == (status == 2)
    assert json.loads(text.out)["replayed"]
    assert "question 7?" in everything_in(tmp_path / "public")


def test_a_refusal_writes_nothing(asked, tmp_path):
    refuses(InputError, "samples of 'other'; it holds 2 files of other tasks", asked, task="other")
    for wrong in ({"guard": None}, {"ledger": tmp_path / "guard.db"}):
        refuses(InputError, "one of them; nothing was asked", asked, **wrong)
    assert not (tmp_path / "public").exists()
    asked("first")
    refuses(InputError, "must be a new one", asked, "first")
