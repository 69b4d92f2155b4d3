"""Logs that the installed Inspect writes agree with themselves; one that was edited and not scored anew does not."""

import pytest
from cases import for_each
from reusable_holdout_evals import read_inspect

from reusable_holdout.errors import InputError

pytest.importorskip("inspect_ai")

from integrations.evals.inspect.test_guarded_task import OF_INSPECT

pytestmark = OF_INSPECT


def graded_task():
    """A task of partial credit, in two epochs."""
    from inspect_ai import Epochs, Task
    from inspect_ai.dataset import Sample
    from inspect_ai.scorer import Score, accuracy, mean, scorer
    from inspect_ai.solver import solver

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

    dataset = [Sample(id=f"s{k}", input="?", target="!") for k in range(7)]
    return Task(dataset=dataset, solver=silent(), scorer=graded(), epochs=Epochs(2), name="now")


@for_each("log_format", ["eval", "json"])
def test_a_log_is_what_its_header_says_until_a_score_is_edited(evaluate, tmp_path, log_format):
    from inspect_ai.log import edit_score, recompute_metrics, write_eval_log
    from inspect_ai.scorer import ScoreEdit

    log = evaluate(graded_task(), log_format=log_format, model="mockllm/model")
    assert read_inspect(log.location).scores.shape == (7, 2)
    edit_score(log, "s2", "graded", ScoreEdit(value="C"), recompute_metrics=False, epoch=1)
    path = tmp_path / f"edited.{log_format}"
    write_eval_log(log, str(path))
    with pytest.raises(InputError, match="that its header states"):
        read_inspect(path)
    recompute_metrics(log)
    write_eval_log(log, str(path))
    assert read_inspect(path).scores.shape == (7, 2)


def test_logs_of_two_models_are_no_repeats(evaluate):
    logs = [evaluate(graded_task(), model=f"mockllm/{name}") for name in ("one", "two")]
    with pytest.raises(InputError, match="repeats of one model; these are of mockllm/one, mockllm/two"):
        read_inspect([log.location for log in logs])
