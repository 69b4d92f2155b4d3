"""The comparison of bounds runs, and says what it found rather than what it hoped."""

import math

import pandas as pd
import pytest
from examples.scripts import run
from long_tests import PLAN

long = pytest.mark.long("examples/which_bound.py", "reusable_holdout")


@pytest.fixture
def example(imported):
    return imported("which_bound")


@pytest.mark.long(*PLAN, "examples/which_bound.py")
def test_ours_is_below_three_times_hoeffdings_oracle_from_a_thousand_to_a_hundred_thousand_queries(example):
    many = [queries for queries in example.QUERIES if queries >= 1_000]
    table = example.cells(example.ROWS, many, [10])
    assert len(table) == len(example.ROWS) * len(many) * len(example.ESTIMATES) == 32
    for _, cell in table.iterrows():
        hoeffding = math.sqrt(math.log(2.0 * cell["queries"] / 0.05) / (2.0 * cell["rows"]))
        if cell["queries"] < 1_000_000:  # at a million edition 4, whose charges cost 2.12 nats, misses it
            assert cell["ours"] < 3.0 * hoeffding
        # the exact oracle is narrower, and there the goal is missed
        assert cell["fixed queries"] <= hoeffding
        assert cell["ours"] <= 3.3 * cell["fixed queries"]


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quick")
    text = run("which_bound.py", "--quick", "--output", "here", folder=folder)
    return text, folder / "here"


@long
def test_the_quick_table_is_written_and_ours_is_the_narrowest(quick):
    text, folder = quick
    table = pd.read_csv(folder / "which_bound.csv")
    assert (folder / "which_bound.png").stat().st_size > 10_000
    rivals = table[["splitting", "splitting (Hoeffding)", "Gaussian", "Jung", "Bassily", "rounding"]].min(
        axis=1
    )
    many = table["queries"] > 30
    assert (table["ours"] < rivals)[many].all()
    assert "narrower in every cell with more than 30 queries: yes" in text
    assert table.loc[table["charges"] == 10, "ratio to fixed"].max() <= 3.4
    assert "(within 3.4)" in text
    assert (
        table.loc[(table["charges"] == 10) & (table["queries"] >= 1_000), "ratio to Hoeffding's"].max() < 3.0
    )
    assert "(within 3.0)" in text


@long
def test_widths_of_the_table_are_ordered_as_they_must_be(quick):
    table = pd.read_csv(quick[1] / "which_bound.csv")
    # both ends of an agreed answer follow from its prior, so each may spend 0.57 of what an oracle's two ends share
    assert (table["fixed queries"] <= 1.02 * table["ours"]).all()
    assert (table["fixed queries"] < table["ours"])[table["charges"] > 0].all()
    assert (table["ours"] < table["promise"]).all()
    assert (table["splitting"] <= table["splitting (Hoeffding)"]).all()
    assert (table["Gaussian"] <= table["Jung"]).all()
    assert (table["Jung"] <= table["Bassily"]).all()
    by_charges = table.pivot_table(
        index=["estimate", "rows", "queries"], columns="charges", values="ours"
    ).dropna()
    assert (by_charges[0] < by_charges[10]).all()
