"""A demonstration is not among the user's budgets."""

import pytest
from reusable_holdout_leaderboard.command.serving import make_example

from reusable_holdout.demo import run_demo
from reusable_holdout.registry import VARIABLE


@pytest.fixture(autouse=True)
def registry(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "registry"))
    return tmp_path / "registry"


@pytest.mark.long("reusable_holdout")
def test_the_demo_can_be_run_again_and_leaves_no_trace(tmp_path, registry):
    for place in ("one", "two"):
        (tmp_path / place).mkdir()
        run_demo(folder=tmp_path / place, seed=1, progress=False)
    assert not registry.exists()


def test_the_example_of_a_board_leaves_none(tmp_path, registry):
    for place in ("one", "two"):
        make_example(tmp_path / place)
    assert not registry.exists()
