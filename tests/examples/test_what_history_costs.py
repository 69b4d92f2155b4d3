"""What a history costs: the printed tables say what the theory's page says of them."""

from functools import partial

import numpy as np
import pytest
from examples.scripts import run

from reusable_holdout.certainty import TranscriptCode


@pytest.fixture
def example(imported):
    return imported("what_history_costs")


def test_no_code_is_much_narrower_than_ours_and_none_is_wider_than_it_must_be(example, monkeypatch):
    """Without what finals have: a share is not the price of a history."""
    monkeypatch.setattr(example, "TranscriptCode", partial(TranscriptCode, final_share=0.0))
    for charges, slack in ((0, 1.08), (5, 1.06), (20, 1.02)):
        for nats in (example.WHICH_WAY, example.CELLS):
            least = example.any_rule(charges, nats)
            assert least < example.ours(charges, nats) < slack * least


def test_no_attack_reaches_what_our_intervals_allow(example):
    rng = np.random.default_rng(5)
    ways = (example.vote, example.flips, example.blocks)
    reached = [example.reached(attack(5, 200, rng)) for attack in ways]
    assert sorted(reached) == reached
    assert reached[-1] < 0.9 * example.any_rule(5, example.WHICH_WAY)


def test_other_codes_gain_where_charges_came_early_and_nowhere_else(example):
    for charges in (5, 20):
        widths = example.lengths(charges)
        spread = widths.loc[["evenly, the last question", "in the second half"]]
        assert (spread.ge(spread["even"], axis=0)).all(axis=None)
        early = widths.loc["in the first tenth"]
        assert early["even + last"] < 0.96 * early["even"] < early["even + surprise"]
        assert widths.loc["at once", "even + last"] < 0.71 * widths.loc["at once", "even"]


@pytest.mark.long("examples/what_history_costs.py", "reusable_holdout/certainty", "reusable_holdout/plan")
def test_the_tables_are_printed(tmp_path):
    printed = run("what_history_costs.py", "--quick", folder=tmp_path)
    assert "ours / any rule" in printed
    assert printed.count("the first tenth too hopeful") == 3
