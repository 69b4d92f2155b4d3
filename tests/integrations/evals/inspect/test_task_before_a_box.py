"""An evaluation of a guarded task whose guard is in a box: its process holds no ledger and no key."""

import numpy as np
import pytest

pytest.importorskip("inspect_ai")

import pandas as pd
from box_servers import answering
from integrations.evals.inspect.judged_tasks import IDS
from integrations.evals.inspect.test_guarded_task import MEAN, OF_INSPECT, known, metrics_of, refused, task
from reusable_holdout_box import RemoteHoldout, make_box

from reusable_holdout import verify

pytestmark = [*OF_INSPECT, pytest.mark.filterwarnings("ignore::reusable_holdout_box.NoWallWarning")]


def test_its_answer_is_the_metric_and_the_boxs_ledger_has_it(evaluate, tmp_path):
    pd.DataFrame({"id": np.random.default_rng(0).permutation(IDS)}).to_csv(tmp_path / "ids.csv", index=False)
    wish = {"metric": "score", "queries": 3, "tolerance": 0.4, "vacuous": True}
    make_box(tmp_path / "box", ids=tmp_path / "ids.csv", id_column="id", **wish)
    with answering(tmp_path / "box") as url, RemoteHoldout(url) as asked:
        found = metrics_of(evaluate(task(guard=asked)))
        assert found["low"] < MEAN < found["high"]
        row = asked.history().iloc[-1]
        assert (found["answer"], found["charges_left"]) == (row["value"], asked.charges_left)
        assert metrics_of(evaluate(task(guard=asked)))["replayed"] == 1.0
        for scale in (0.99, 0.98):
            metrics_of(evaluate(task(known(scale=scale), guard=asked)))
        refused(evaluate(task(known(scale=0.97), guard=asked)), "halted")
        assert asked.queries_asked == 3
    assert verify(next((tmp_path / "box").rglob("*.db"))).sound
