"""The table of thresholds, which editions before the fourth look up, is a close lower bound on the exact ones."""

from dataclasses import replace

import numpy as np
import pytest
from cases import for_each
from long_tests import VALIDITY

from reusable_holdout import Plan
from reusable_holdout.certainty import ThresholdTable
from reusable_holdout.plan import SharedBudget

THIRD = SharedBudget(theory=3)

PLANS = {
    "worst case": {"rows": 10_000, "queries": 1_000, "tolerance": 0.05},
    "expecting": {"rows": 10_000, "queries": 1_000, "tolerance": 0.05, "estimate": 0.9},
    "small": {"rows": 300, "queries": 50, "charges": 2},
    "bounded": {"rows": 5_000, "queries": 100, "charges": 3, "family": "bounded", "bounds": (-2.0, 3.0)},
    "differences": {
        "rows": 5_000,
        "queries": 100,
        "charges": 3,
        "family": "bounded-difference",
        "variation": 4.0,
    },
}


@pytest.mark.long(*VALIDITY)
@for_each("wish", PLANS.values(), ids=PLANS.keys())
def test_it_is_never_above_the_exact_threshold_and_hardly_below(wish):
    plan = Plan(**wish, shared=THIRD)
    certificate = plan.scores
    priors = np.concatenate([np.random.default_rng(0).random(20_000), [0.0, 1.0, 0.5]])
    nodes = np.linspace(0.0, 1.0, 2_049)
    for charges in range(plan.charges):
        table = ThresholdTable(certificate, charges=charges, nats=3.0 * charges)
        exact = certificate.threshold(priors, charges=charges, nats=3.0 * charges)
        below = exact - table.at_each(priors)
        steepest = np.diff(certificate.threshold(nodes, charges=charges, nats=3.0 * charges))
        assert below.min() >= 0.0
        assert below.max() <= np.abs(steepest).max() + 2e-7


def test_one_prior_and_many_give_the_same_numbers():
    certificate = Plan(rows=10_000, queries=1_000, tolerance=0.05, shared=THIRD).scores
    table = ThresholdTable(certificate, charges=1, nats=2.0)
    priors = np.concatenate([np.linspace(0.0, 1.0, 4_097), np.nextafter(np.linspace(0.0, 1.0, 2_049), 0.0)])
    assert [table.at(prior) for prior in priors.tolist()] == table.at_each(priors).tolist()


def test_a_stated_threshold_stays_as_it_is():
    certificate = Plan(rows=10_000, queries=1_000, charges=5, threshold=0.04, shared=THIRD).scores
    table = ThresholdTable(certificate, charges=2, nats=7.0)
    assert {table.at(prior) for prior in (0.0, 0.3, 1.0)} == {0.04}


@for_each("least", [2.5e-5, 0.03])
def test_a_cell_has_the_lesser_threshold_of_its_two_ends_and_a_little_less(least):
    """Of a metric of -1 to 3: a ten-millionth of its range is taken off, and no cell goes below the least."""
    wish = {"rows": 5_000, "queries": 100, "charges": 3, "family": "bounded", "bounds": (-1.0, 3.0)}
    certificate = replace(Plan(**wish, shared=THIRD).scores, least_threshold=least)
    table = ThresholdTable(certificate, charges=1, nats=2.0)

    def exact(prior):
        return certificate.threshold(prior, charges=1, nats=2.0)

    found = []
    for cell in (0, 1, 700, 1023, 1300, 2046, 2047):
        low, high = (edge / 2048 for edge in (cell, cell + 1))
        expected = max(min(exact(low), exact(high)) - 1e-7, least)
        priors = np.array([low, (low + high) / 2.0, high - 1e-9])
        assert table.at_each(priors).tolist() == [table.at(prior) for prior in priors.tolist()]
        assert table.at_each(priors) == pytest.approx([expected] * 3, rel=1e-10)
        found.append(expected)
    assert len(set(found)) > 1
    assert (least in found) == (least > 0.02)
    ends = [0.0, 1.0]
    assert [table.at(prior) for prior in ends] == pytest.approx([found[0], found[-1]], rel=1e-10)
    assert table.at_each(np.array(ends)).tolist() == [table.at(prior) for prior in ends]


def test_what_other_tables_share_cannot_be_changed():
    certificate = Plan(rows=10_000, queries=1_000, tolerance=0.05, shared=THIRD).scores
    cells = ThresholdTable(certificate, charges=1, nats=2.0)._cells
    with pytest.raises(ValueError, match="read-only"):
        cells[0] = 1.0
    assert ThresholdTable(certificate, charges=1, nats=2.0)._cells is cells
