"""The search on a cluster runs, with one budget for its workers."""

import re

import pytest
from examples.test_examples import run

pytest.importorskip("distributed")


def test_both_workers_ask_one_guard_and_the_intervals_hold(tmp_path):
    text = run("dask_cluster.py", "--quick", folder=tmp_path)
    assert "6 of 6 intervals contain the accuracy on fresh rows" in text
    assert "2 workers asked" in text
    charged = int(re.search(r"; (\d+) questions were charged", text)[1])
    left, charges = map(int, re.search(r"(\d+) of (\d+) charges left", text).groups())
    assert "6 of 200 queries asked" in text
    assert charges - left == charged
    assert list(tmp_path.iterdir()) == []


def test_the_options_are_explained(tmp_path):
    assert "--scheduler" in run("dask_cluster.py", "--help", folder=tmp_path)
