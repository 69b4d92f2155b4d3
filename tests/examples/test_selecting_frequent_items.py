"""The experiments of Lyu, Su and Li (2017): error rates by hand, the passes' law, the paper's order at c = 100."""

import numpy as np
import pandas as pd
import pytest
from examples.scripts import run
from scipy import stats

long = pytest.mark.long("examples/selecting_frequent_items.py", "examples/frequent_items", "reusable_holdout")


@pytest.fixture
def frequent_items(imported):
    """Import a module of the example."""
    return lambda name: imported(f"frequent_items.{name}")


def test_error_rates_by_hand(frequent_items):
    rates = frequent_items("error_rates")
    top, chosen = np.array([10.0, 8.0, 6.0]), np.array([10.0, 6.0, 2.0])
    assert rates.score_error_rate(chosen, top) == pytest.approx(1 - 6 / 8)
    assert rates.false_negative_rate(chosen, top) == pytest.approx(1 / 3)
    assert rates.missed_score(chosen, top) == pytest.approx(1 - 18 / 24)
    assert rates.score_error_rate(top, top) == rates.false_negative_rate(top, top) == 0
    nothing = np.zeros(0)
    assert rates.score_error_rate(nothing, top) == rates.false_negative_rate(nothing, top) == 1


def test_zipf_is_the_papers_definition(frequent_items):
    counts = frequent_items("item_counts").zipf().counts
    assert len(counts) == 10_000
    assert counts.sum() == pytest.approx(1_000_000, rel=1e-2)
    np.testing.assert_allclose(counts[:100] * np.arange(1, 101), counts[0], rtol=1e-3)


@long
def test_the_law_of_retraversal_is_that_of_its_passes(frequent_items):
    """Which of six items is selected second, 3,000 seeds each; chi-square of two samples, false alarm 1e-9."""
    methods = frequent_items("methods")
    scores, seen = np.array([60.0, 10.0, 40.0, 0.0, 50.0, 20.0]), []
    for select in (methods.every_pass, methods.race):
        first = [select(scores, 45.0, 2, seed, raised_by=1.0)[1] for seed in range(3_000)]
        seen.append(np.bincount(first, minlength=6))
    assert stats.chi2_contingency(np.array(seen)).pvalue > 1e-9


@long
def test_the_papers_order_at_c_100_on_zipf(tmp_path):
    text = run("selecting_frequent_items.py", "--quick", "--runs", "8", "--output", "found", folder=tmp_path)
    assert (tmp_path / "found" / "zipf.png").exists()
    assert "SVT-DPBook worst" in text
    table = pd.read_csv(tmp_path / "found" / "rates.csv").query("c == 100").set_index("method")["fnr_mean"]
    interactive = [name for name in table.index if name.startswith("SVT-S")]
    assert table["SVT-DPBook"] > table[interactive].max()
    assert table["EM"] < table[interactive].min() - 0.15
    assert table["EM"] < table["SVT-ReTr-1D"] < table[interactive].min()
    assert table["EM, delta 1e-6"] < 0.2 < table["EM"] - 0.4  # .16 and .74
