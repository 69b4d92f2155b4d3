"""The search on a cluster runs, with one budget for its workers."""

import re

import pytest
from examples.scripts import run

pytest.importorskip("distributed")

pytestmark = pytest.mark.long("examples/dask_cluster.py", "reusable_holdout")


def test_both_workers_ask_one_guard_and_the_intervals_hold(tmp_path):
    text = run("dask_cluster.py", "--quick", folder=tmp_path)
    assert "6 of 6 intervals contain the accuracy on fresh rows" in text
    assert "2 workers asked" in text
    charged = int(re.search(r"; (\d+) questions were charged", text)[1])
    left, charges = map(int, re.search(r"(\d+) of (\d+) charges left", text).groups())
    assert "6 of 200 queries asked" in text
    assert charges - left == charged
    assert list(tmp_path.iterdir()) == []
