"""The endurance example: the guard is asked for long, its intervals hold, and its simulation is exact."""

import numpy as np
import pandas as pd
import pytest
from examples.scripts import run
from scipy import stats

long = pytest.mark.long("examples/how_long_it_lasts.py", "reusable_holdout")


@pytest.fixture
def example(imported):
    return imported("how_long_it_lasts")


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quick")
    text = run("how_long_it_lasts.py", "--quick", "--jobs", "1", "--output", "here", folder=folder)
    return text, folder / "here"


@long
def test_hundreds_of_questions_are_answered_on_an_honest_search(quick):
    _, folder = quick
    choices = pd.read_csv(folder / "choices.csv", index_col="choice")
    plain, noiseless = choices.loc["as in the table"], choices.loc["no noise"]
    # 14 charges, two of them chance's: a twelfth in-sample prior comes at question 600
    assert plain["answered"] >= 500
    assert plain["10%"] >= 460  # the fewest of eight runs
    assert noiseless["affords"] > plain["affords"]
    assert noiseless["answered"] >= 550  # a charge more, at question 650
    assert choices.loc["as in the table", "rule"] <= 4  # 42.25 / ln(20,000) = 4.3
    assert choices.loc["as in the table", "proven"] == 0


@long
def test_more_tolerance_lasts_longer_and_all_intervals_hold(quick):
    text, folder = quick
    table = pd.read_csv(folder / "rows_and_tolerances.csv")
    for _, line in table.groupby("rows"):
        assert line["answered"].is_monotonic_increasing
    assert (table["runs all held"] == 1.0).all()
    assert (table["charges"] <= table["affords"]).all()
    assert "at least 500" in text
    assert (folder / "how_long_it_lasts.png").stat().st_size > 10_000


@pytest.mark.parametrize("shared", [0.0, 0.8])
def test_mistakes_are_binomial_over_samples(example, shared):
    rng = np.random.default_rng(0)
    counts = np.array([example.Mistakes(rng, rows=20, shared=shared).count(0.9) for _ in range(20_000)])
    law = stats.binom(20, 0.1)
    for most in range(6):
        seen = int((counts <= most).sum())
        assert stats.binomtest(seen, len(counts), law.cdf(most)).pvalue > 1e-10


def test_published_rules_follow_from_their_formulas(example):
    asked = {"rows": 10_000, "queries": 1_000, "tolerance": 0.06}
    assert example.published_rule(**asked) == 3  # 36 / ln(20,000) = 3.6
    assert example.proven_rule(**asked) == 0
    assert example.proven_rule(**asked | {"rows": 11_000_000}) == 1  # 3,072 ln(80,000) / 0.06^2 = 9.6 million
