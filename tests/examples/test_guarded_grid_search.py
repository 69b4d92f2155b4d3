"""The example of a grid search: what the plain winner loses, and that the guard's intervals hold."""

import json

import pandas as pd
import pytest
from examples.scripts import run

pytestmark = pytest.mark.long(
    "examples/guarded_grid_search.py",
    "examples/benchmarks/search_overhead.py",
    "integrations/reusable_holdout_sklearn",
    "reusable_holdout",
)


def test_the_guards_intervals_hold_and_the_choices_are_told(tmp_path):
    text = run("guarded_grid_search.py", "--quick", "--output", "here", folder=tmp_path)
    table = pd.read_csv(tmp_path / "here" / "guarded_grid_search.csv")
    guarded = table[table["choice"] == "guarded"]
    assert len(guarded) == 2
    assert guarded["fresh"].between(guarded["low"], guarded["high"]).all()
    assert (guarded["all held"] == 1.0).all()
    assert (guarded["answered"] >= 1).all()
    plain = table[table["choice"] == "plain"]
    assert (plain["loses"] > plain["luck"]).all()  # the winner loses more than the average candidate
    assert "2 of 2 splits" in text
    assert (tmp_path / "here" / "guarded_grid_search.png").stat().st_size > 10_000


def test_the_overhead_of_a_search_is_measured(tmp_path):
    report = json.loads(run("benchmarks/search_overhead.py", "--quick", "--json", folder=tmp_path))
    compared = ["guarded search", "search with guarded scorer", "guarded study"]
    assert report["ratios"].keys() >= set(compared)
    assert all(report["seconds"][name] > 0 for name in ["search", "study", *compared])
    assert list(tmp_path.iterdir()) == []
