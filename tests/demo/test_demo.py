"""The main job, at its real size, on real data."""

import contextlib
import io
import json
import re
from dataclasses import asdict
from pathlib import Path

import pandas as pd
import pytest

from reusable_holdout import verify
from reusable_holdout.cli import main
from reusable_holdout.demo import DemoResult, run_demo
from reusable_holdout.demo.datasets import load_adult
from reusable_holdout.demo.search import Step
from reusable_holdout.errors import InputError
from reusable_holdout.guard import released

long = pytest.mark.long("reusable_holdout", "README.md")


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """What the command finds, and where it puts its files."""
    folder, printed = tmp_path_factory.mktemp("demo"), io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert main(["demo", "--out", str(folder), "--json"]) == 0
    found = json.loads(printed.getvalue())
    steps = {name: Step(**found[name]) for name in ("plain", "guarded", "final")}
    return DemoResult(**found | steps), folder


@long
def test_the_search_overfits_a_plain_holdout_and_not_the_guarded_one(result):
    found, _ = result
    assert found.plain.reported - found.plain.fresh > 0.025
    assert found.guarded.low <= found.guarded.fresh <= found.guarded.high
    assert abs(found.guarded.reported - found.guarded.fresh) < 0.025
    assert 1 <= found.charges <= found.budget


@long
def test_every_interval_of_the_demo_is_no_wider_than_the_tolerance_allows(result):
    _, folder = result
    history = released(folder / "guard.db").history
    assert ((history["high"] - history["low"]) <= 2 * 0.051).all()


@long
def test_the_ledger_is_sound_and_the_picture_is_there(result):
    found, folder = result
    assert found.ledger_sound
    assert verify(folder / "guard.db").queries == found.asked + 1  # the final takes no declared query
    assert (folder / "demo.png").read_bytes().startswith(b"\x89PNG")


@long
def test_the_table_says_what_was_found(result):
    found, _ = result
    text = str(found)
    for step in (found.plain, found.guarded):
        assert f"{step.reported:.4f}" in text
        assert f"{step.fresh:.4f}" in text
    json.dumps(asdict(found))


def test_a_folder_that_cannot_be_used_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="write to"):
        run_demo(folder=tmp_path / "file")


@long
def test_its_interval_holds_for_another_seed(tmp_path):
    found = run_demo(folder=tmp_path, seed=3)
    assert found.guarded.low <= found.guarded.fresh <= found.guarded.high


@long
def test_it_prints_what_the_readme_shows(result):
    text = (Path(__file__).parents[2] / "README.md").read_text()
    blocks = re.findall(r"```text\n(.*?)```", text, flags=re.DOTALL)
    shown = next(block for block in blocks if "plain holdout" in block).splitlines()
    printed = str(result[0]).splitlines()
    assert all(line in printed for line in shown if line)


def test_the_data_are_what_their_readme_says():
    X, y = load_adult()
    assert X.shape == (32_537, 14)  # 32,561 rows less 24 exact duplicates
    assert not pd.concat([X, y], axis=1).duplicated().any()
    assert not X.isna().any().any()
    assert round(float(y.mean()), 3) == 0.241
