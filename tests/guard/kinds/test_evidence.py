"""Checks and gates that the rows' evidence decides, as rules."""

from types import SimpleNamespace

import numpy as np
import pytest
from cases import for_each
from within_reach import GRID, answered, certificate_of, noisy

from reusable_holdout import Plan
from reusable_holdout.certainty import THEORY
from reusable_holdout.noise import KeyedNoise
from reusable_holdout.rules.evidence import ByEvidence
from reusable_holdout.ways import AGREED, CELL, State, Told
from reusable_holdout.ways.check import Check
from reusable_holdout.ways.table import Ways

ALIKE = SimpleNamespace(relative_weights=None)  # rows whose weights are
CELLS = THEORY.charge.cells


def weighed_rows(way, terms, prior, tolerance=None):
    """What is decided on, of rows in [0, 1]."""
    grid = np.round(np.asarray(terms) * GRID).astype(np.int64)
    measured = np.concatenate([[round(float(grid.mean()))], grid])
    stated = None if tolerance is None else np.array([tolerance])
    return way.rule.weighed(ALIKE, measured[None], np.array([prior]), stated)[0]


@pytest.mark.parametrize(("rows", "charged"), [(10_000, False), (10**10, True)])
def test_rows_of_which_each_counts_for_less_than_the_grid_can_tell_certify_nothing(rows, charged):
    """Never the other way round: what cannot be weighed is no certainty."""
    plan = Plan(rows=rows, queries=10, charges=2, family="mean", noise=0.0, tolerance=0.1)
    way = Ways(plan, KeyedNoise(bytes(32))).check
    terms, outcome = answered(way, weighed_rows(way, np.full(2_000, 0.5), 0.5), 0.5)
    assert terms.unit == 0.05
    assert outcome.charged == charged


def by_evidence(noise, **changes):
    """Check whose noise is this share of its reach."""
    settled = {"rows": 400, "family": "bounded", "decides": "evidence", "spread": 0.5}
    plan = certificate_of("all", **settled | {"noise_scale": 5e-5, "shares": THEORY.by_evidence} | changes)
    return noisy(Check, plan, noise, noise, ByEvidence)


@for_each("prior", [0.1, 0.5, 0.8])
@for_each("state", [State(), State(query=9, asked=9, charges=2, nats=4.0)])
def test_a_tolerance_that_can_be_kept_is_agreed_with_rows_that_are_all_as_stated_whatever_the_noise(
    prior, state
):
    way = by_evidence(1.0)
    kept, refused = 1.0, 0.0
    while kept - refused > 1e-6:  # the smallest one
        middle = (kept + refused) / 2.0
        fits = way.keeps(prior, middle, way.length(state))
        kept, refused = (middle, refused) if fits else (kept, middle)
    assert 0.01 < kept < 0.2

    def told(tolerance, share=1.0):
        noised = by_evidence(share)
        weighed = weighed_rows(noised, np.full(400, prior), prior, tolerance)
        return answered(noised, weighed, prior, tolerance=tolerance, state=state)[1].told

    assert told(kept) == told(kept, -1.0) == Told(AGREED)
    assert told(0.99 * kept).word == CELL  # with the noise at the end of its reach
    assert told(0.99 * kept, -1.0) == Told(AGREED)


@for_each("noise", [-1.0, 0.0, 1.0])
@for_each("prior", [0.25, 0.55])
def test_what_is_agreed_is_certain_and_what_is_charged_holds_the_rows_own_bound(noise, prior):
    """All means of rows of 0 and 1, at every share of a tolerance from the prior."""
    way, seen = by_evidence(noise, tolerance=0.2), set()
    certificate, length = way.certificate, way.length(State())
    agreed, charged = (certificate.needed(length, share) for share in certificate.shares)
    for ones in range(401):
        rows = np.repeat([1.0, 0.0], [ones, 400 - ones])
        terms, outcome = answered(way, weighed_rows(way, rows, prior), prior)
        interval = way.interval(outcome.told, terms, length)
        assert interval.low <= outcome.value <= interval.high
        seen.add(outcome.told)
        if outcome.told == Told(AGREED):
            assert interval == pytest.approx((prior - 0.2, prior + 0.2), abs=1e-12)
            assert certificate.evidence(prior, 0.2).of_rows(rows) >= agreed
        else:
            assert interval.low <= certificate.bound.lower(ones / 400, log_level=-charged) + 1e-9
            assert interval.high >= certificate.bound.upper(ones / 400, log_level=-charged) - 1e-9
    near = {Told(CELL, place) for place, cell in enumerate(CELLS) if cell.near < prior / 0.1 or cell.side < 0}
    assert seen == {Told(AGREED)} | near
