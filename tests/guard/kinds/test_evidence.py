"""Checks that the rows' evidence decides, as rules."""

from types import SimpleNamespace

import numpy as np
import pytest
from reusable_holdout.guard.kinds.evidence import EvidenceCheck

from reusable_holdout import Plan
from reusable_holdout.metrics import GRID
from reusable_holdout.noise import KeyedNoise
from reusable_holdout.ways import State, Terms


@pytest.mark.parametrize(("rows", "charged"), [(10_000, False), (10**10, True)])
def test_rows_of_which_each_counts_for_less_than_the_grid_can_tell_certify_nothing(rows, charged):
    """Never the other way round: what cannot be weighed is no certainty."""
    plan = Plan(rows=rows, queries=10, charges=2, family="mean", noise=0.0, tolerance=0.1)
    kind = EvidenceCheck(plan.certificate(), KeyedNoise(bytes(32)))
    measured = np.full((1, 1 + 2_000), GRID // 2)
    bound = SimpleNamespace(relative_weights=None)
    (weighed,) = kind.weighed(bound, measured, np.array([0.5]), None)
    outcome = kind.decide(weighed, Terms(0.5, 0.05), b"question", State())
    assert outcome.charged == charged
