"""The table of thresholds is a lower bound on the exact ones, and a close one."""

import numpy as np
import pytest
from cases import for_each
from long_tests import VALIDITY

from reusable_holdout import Plan
from reusable_holdout.validity import ThresholdTable

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
    plan = Plan(**wish)
    certificate = plan.certificate()
    rng = np.random.default_rng(0)
    priors = certificate.lower + certificate.span * np.concatenate([rng.random(20_000), [0.0, 1.0, 0.5]])
    for charges in range(plan.charges):
        table = ThresholdTable(certificate, charges=charges, nats=3.0 * charges)
        exact = certificate.threshold(priors, charges=charges, nats=3.0 * charges)
        below = exact - table.at_each(priors)
        steepest = np.diff(
            certificate.threshold(
                np.linspace(certificate.lower, certificate.upper, 2_049), charges=charges, nats=3.0 * charges
            )
        )
        assert below.min() >= 0.0
        assert below.max() <= np.abs(steepest).max() + 2e-7 * certificate.span


def test_one_prior_and_many_give_the_same_numbers():
    certificate = Plan(rows=10_000, queries=1_000, tolerance=0.05).certificate()
    table = ThresholdTable(certificate, charges=1, nats=2.0)
    priors = np.concatenate([np.linspace(0.0, 1.0, 4_097), np.nextafter(np.linspace(0.0, 1.0, 2_049), 0.0)])
    assert [table.at(prior) for prior in priors.tolist()] == table.at_each(priors).tolist()


def test_a_stated_threshold_stays_as_it_is():
    certificate = Plan(rows=10_000, queries=1_000, charges=5, threshold=0.04).certificate()
    table = ThresholdTable(certificate, charges=2, nats=7.0)
    assert {table.at(prior) for prior in (0.0, 0.3, 1.0)} == {0.04}
