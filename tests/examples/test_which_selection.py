"""The tables of selections in docs/mechanisms.md are what the script prints, and the benchmark beside OpenDP runs."""

import importlib.util
import json

import pytest
from examples.scripts import EXAMPLES, run

pytestmark = pytest.mark.long(
    "examples/which_selection.py",
    "examples/frequent_items",
    "examples/benchmarks/selection_peers.py",
    "reusable_holdout/mechanisms",
    "reusable_holdout/mechanisms/accounting",
)

PAGE = (EXAMPLES.parent / "docs" / "mechanisms.md").read_text()


def test_every_exact_figure_of_the_page_is_printed_by_the_script(tmp_path):
    rows = [line for line in run("which_selection.py", folder=tmp_path).splitlines() if line.startswith("| ")]
    assert len(rows) == 20
    names = ("expon", "noisy_", "one_shot", "permute", "private_selection,")
    told = [line for line in PAGE.splitlines() if line.startswith(tuple(f"| {name}" for name in names))]
    assert len(told) == 10
    assert set(told) <= set(rows)


def peers(folder, *arguments):
    text = run(
        "benchmarks/selection_peers.py",
        *("--data", "zipf", "--sizes", "10", "20", "--runs", "8", "--json", *arguments),
        folder=folder,
    )
    return {(rate["c"], rate["way"]): rate for rate in json.loads(text)}


def test_the_benchmark_measures_every_way_without_peers(tmp_path):
    rates = peers(tmp_path, "--without-peers")
    assert {c for c, _ in rates} == {10, 20}
    assert len(rates) == 10
    assert all(0 <= rate["mean"] <= 1 for rate in rates.values())
    assert rates[20, "tightest"]["mean"] <= rates[20, "one_shot_top_k"]["mean"]


@pytest.mark.skipif(importlib.util.find_spec("opendp") is None, reason="OpenDP is not installed")
def test_the_noise_is_not_larger_than_opendps(tmp_path):
    rates = peers(tmp_path, "--ways")
    for c in (10, 20):
        assert rates[c, "tightest"]["sd"] < rates[c, "OpenDP make_noisy_top_k"]["sd"]


@pytest.mark.skipif(importlib.util.find_spec("opendp") is not None, reason="OpenDP is installed")
def test_who_lacks_opendp_is_told_what_to_install(tmp_path):
    with pytest.raises(AssertionError, match="pip install opendp, or add --without-peers"):
        run("benchmarks/selection_peers.py", "--data", "zipf", folder=tmp_path)
