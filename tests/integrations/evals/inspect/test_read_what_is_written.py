"""A check of the reader: logs of the installed Inspect agree with themselves, and an edited one does not."""

import pytest
from cases import for_each, refuses
from reusable_holdout_evals import read_inspect

from reusable_holdout.errors import InputError

pytest.importorskip("inspect_ai")

from inspect_ai import Epochs, Task
from inspect_ai.dataset import Sample
from inspect_ai.log import edit_score, recompute_metrics, write_eval_log
from inspect_ai.scorer import Score, ScoreEdit, accuracy, mean, scorer
from inspect_ai.solver import solver
from integrations.evals.inspect.test_guarded_task import OF_INSPECT

pytestmark = OF_INSPECT


@solver
def silent():  # a call of a model would count tokens, by a file from the network
    async def solve(state, generate):
        return state

    return solve


@scorer(metrics=[accuracy(), mean()])
def graded():
    async def score(state, target):
        return Score(value="CPI"[int(state.sample_id[1:]) % 3] if state.epoch == 1 else 0.25)

    return score


@for_each("log_format", ["eval", "json"])
def test_a_log_is_what_its_header_says_until_a_score_is_edited(evaluate, tmp_path, log_format):
    dataset = [Sample(id=f"s{k}", input="?", target="!") for k in range(7)]
    task = Task(dataset=dataset, solver=silent(), scorer=graded(), epochs=Epochs(2))
    log = evaluate(task, log_format=log_format, model="mockllm/model")
    assert read_inspect(log.location).scores.shape == (7, 2)
    edit_score(log, "s2", "graded", ScoreEdit(value="C"), recompute_metrics=False, epoch=1)
    path = tmp_path / f"edited.{log_format}"
    write_eval_log(log, str(path))
    refuses(InputError, "that its header states", read_inspect, path)
    recompute_metrics(log)
    write_eval_log(log, str(path))
    assert read_inspect(path).scores.shape == (7, 2)
