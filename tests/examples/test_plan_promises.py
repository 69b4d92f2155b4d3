"""What plans promise: the widths keep their goals, and honest searches are asked of the guards that were planned."""

import pandas as pd
import pytest
from examples.scripts import run

pytestmark = pytest.mark.long(
    "examples/plan_promises.py", "examples/how_long_it_lasts.py", "reusable_holdout"
)


def test_widths_and_prices_keep_their_goals_and_searches_go_on(tmp_path):
    text = run("plan_promises.py", "--quick", "--jobs", "1", "--output", "here", folder=tmp_path)
    widths = pd.read_csv(tmp_path / "here" / "widths.csv", index_col=0)
    assert len(widths) == 7
    assert (widths["met"] == "yes").all()
    searches = pd.read_csv(tmp_path / "here" / "searches.csv")
    assert len(searches) == 4
    assert (searches["plan says"] >= 0.95).all()
    assert (searches["all held"] == 1.0).all()
    assert (searches["to the end"] >= 0.7).all()  # seven of ten; 0.95 is meant
    assert "after 100 agreed checks" in text
