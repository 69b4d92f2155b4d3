"""inspect eval of a guarded task whose guard is in a box: the evaluation's process holds no ledger and no key."""

import numpy as np
import pytest

pytest.importorskip("inspect_ai")

import pandas as pd
from box_servers import answering
from inspect_ai import Task
from inspect_ai.scorer import Score, mean, scorer
from inspect_ai.solver import generate
from integrations.evals.inspect.judged_tasks import IDS, ROWS, samples
from integrations.evals.inspect.test_guarded_task import MEAN, OF_INSPECT, TRUTH, metrics_of
from reusable_holdout_box import RemoteHoldout, make_box
from reusable_holdout_evals.inspect import guarded_task

from reusable_holdout import verify

pytestmark = [*OF_INSPECT, pytest.mark.filterwarnings("ignore::reusable_holdout_box.NoWallWarning")]


@scorer(metrics=[mean()])
def known(shift=0.0):
    async def score(state, target):
        return Score(value=TRUTH[state.sample_id] - shift)

    return score


@pytest.fixture
def asked(tmp_path):
    """A box of the task's samples, seen from outside."""
    pd.DataFrame({"id": np.random.default_rng(0).permutation(IDS)}).to_csv(tmp_path / "ids.csv", index=False)
    place = tmp_path / "box"
    make_box(
        place,
        None,
        ids=tmp_path / "ids.csv",
        id_column="id",
        metric="score",
        queries=3,
        tolerance=0.4,
        vacuous=True,
    )
    with answering(place) as url, RemoteHoldout(url) as guard:
        yield guard


def test_its_answer_is_the_metric_and_the_same_again_is_free(evaluate, asked):
    assert len(IDS) == ROWS

    def run(shift=0.0):
        plain = Task(samples(), solver=generate(), scorer=known(shift))
        return evaluate(guarded_task(plain, guard=asked, prior=0.75))

    found = metrics_of(run())
    assert found["low"] < MEAN < found["high"]
    assert found["charges_left"] == asked.charges_left
    assert asked.queries_asked == 1
    assert metrics_of(run())["replayed"] == 1.0
    for shift in (0.01, 0.02):
        run(shift)
    halted = run(0.03)
    assert halted.status == "error"
    assert "halted" in halted.error.message
    assert asked.queries_asked == 3


def test_the_boxs_ledger_has_what_the_log_tells(evaluate, asked, tmp_path):
    log = evaluate(guarded_task(Task(samples(), solver=generate(), scorer=known()), guard=asked, prior=0.75))
    row = asked.history().iloc[-1]
    assert metrics_of(log)["answer"] == row["value"]
    assert verify(next((tmp_path / "box").rglob("*.db"))).sound
