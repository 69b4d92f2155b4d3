"""An edition that was released never changes; what plans reserve follows from it."""

import hashlib
import itertools
import math
from dataclasses import replace
from typing import get_args

import pytest
from cases import for_each, refuses

from reusable_holdout import Plan
from reusable_holdout.certainty import EDITIONS, THEORY, Cell, CellCode, SpanCode, edition
from reusable_holdout.certainty.outcome_code import Span
from reusable_holdout.errors import LedgerMismatchError
from reusable_holdout.plan.numbers import OWN_BUDGET
from reusable_holdout.plan.wish import Asks

# Of all numbers of an edition, written out; whoever finds a better constant adds an edition, and a line here.
RELEASED = {
    2: "204a3fcf4f8ffefea751859cb432fbc09f7d4b10ab607cdff30909e8fc627566",
    3: "71b7d9159fa53346fc08441a79eb61106b6d80159dccd550892c6ab9fe7b995f",
    4: "d47aeea294738d836b3de8c12b38a3995ee0910982af004086fdfef2131a2b0b",
    5: "698404c02585e8103f532d70ed7617a4689604258a9f00ab912ade5f69c78fcd",
}
# what an edition added, and what it is in those before; their numbers are written out without it
ADDED = {
    3: {"failures_reserved": False},
    4: {
        "first_share_of_finals": 0.5,
        "falling": False,
        "weighs_finals": False,
        "threshold_level": 0.0,
        "suited_share": 0.5,
        "exact_ratios": False,
        "others_nats": 0.0,
        "matchings": 100,
        "gates_certify": False,
        "gate_bets": (),
        "gate_bets_lose": 0.0,
        "first_share_of_gates": 0.0,
    },
    5: {"odds": ()},
}


def written(theory):
    text = repr(theory)
    for number, added in ADDED.items():
        for name, value in added.items() if theory.edition < number else ():
            assert text.count(f" {name}={value!r},") == 1
            text = text.replace(f" {name}={value!r},", "")
    return text


def test_the_numbers_of_editions_are_those_that_were_released():
    found = {
        number: hashlib.sha256(written(theory).encode()).hexdigest() for number, theory in EDITIONS.items()
    }
    assert found == RELEASED
    assert {theory.edition for theory in EDITIONS.values()} == set(EDITIONS)
    assert EDITIONS[THEORY.edition] is THEORY


def test_an_edition_is_found_by_its_number_alone():
    assert edition(2) is EDITIONS[2]
    assert edition(4) is EDITIONS[4]
    for wrong in (2.0, "2", None, 1, 6, [2]):
        refuses(LedgerMismatchError, "names", edition, wrong)


# ---- what a plan reserves for its dearest charge, by an edition

OTHER = replace(
    THEORY,
    claims=THEORY.claims._replace(stands=3.0, charge=0.5, failed=0.125, measured=(0.5, 0.25)),
    charge=CellCode(THEORY.charge.cells[:4], failed=0.125),
    by_evidence=THEORY.by_evidence._replace(charged=0.05),
)
DEARER = {
    "a cell": replace(OTHER, charge=CellCode((Cell(1, 1.0, math.inf, 0.001),), failed=0.5)),
    "a failure": replace(OTHER, charge=CellCode(THEORY.charge.cells, failed=0.001)),
    "a span": replace(OTHER, spans=SpanCode((Span(-1.0, 1.0, 0.0, 0.001),), failed=0.5)),
    "a ratio's failure": replace(OTHER, spans=SpanCode(THEORY.spans.spans, failed=0.001)),
    "a gate's yes": replace(OTHER, gate=CellCode((Cell(-1, 0.0, math.inf, 0.001),), failed=0.5)),
    "a gate's failure": replace(OTHER, gate=CellCode(THEORY.gate.cells, failed=0.001)),
}


NUMBERS = itertools.count(100)


@pytest.fixture
def certificate_by(monkeypatch):
    """Return the certificate of a plan that is certified by another edition."""

    def made(theory, **stated):
        number = next(NUMBERS)  # what a plan of an edition can keep is remembered by its number
        monkeypatch.setitem(EDITIONS, number, theory)
        shared = replace(OWN_BUDGET, theory=number)
        return Plan(100_000, queries=stated.pop("queries", 40), **stated, shared=shared).scores

    return made


def test_the_dearest_outcome_of_a_claim_is_a_failure_after_all_others(certificate_by):
    begun = (
        3.0 + 4 * 0.5 + 0.125 + 2 * (0.5 + 0.25)
    )  # it stands, four cells of a charge, a failure, measured cells
    for claims in (3, 40):
        found = certificate_by(OTHER, queries=claims, board="claims")
        assert found.charge_nats == pytest.approx(math.log((claims + begun) / 0.125), rel=1e-13)
        assert found.shares == (0.5, 0.5)


def test_a_gates_yes_and_its_failure_are_what_it_costs(certificate_by):
    for theory, nats in ((THEORY, -math.log(0.12)), (DEARER["a gate's failure"], -math.log(0.001))):
        found = certificate_by(theory, charges=3, gates=True)
        assert (found.charge_nats, found.shares) == (nats, (1.0, 1.0))
    assert certificate_by(DEARER["a cell"], charges=3, gates=True).charge_nats == -math.log(0.12)


def test_a_plan_for_everything_reserves_the_dearest_charge_of_any_way_and_metric(certificate_by):
    assert certificate_by(THEORY, charges=3).charge_nats == -math.log(0.12)
    for what, theory in DEARER.items():
        assert certificate_by(theory, charges=3).charge_nats == -math.log(0.001), what


@for_each(
    ("family", "shares"),
    [("binomial", "scores"), ("bounded", "scores"), ("mean", "by_evidence"), ("ratio", "by_evidence")],
)
def test_the_shares_of_a_check_are_those_of_what_decides_it(certificate_by, family, shares):
    spread = {"spread": 0.3} if family in ("mean", "ratio") else {}
    for theory in (THEORY, OTHER):
        found = certificate_by(theory, charges=3, family=family, **spread)
        assert found.shares == getattr(theory, shares)
    assert OTHER.by_evidence == (0.8, 0.05)


@for_each("family", ["binomial", "mean", "bounded-difference"])
def test_what_a_failure_costs_is_part_of_what_every_plan_reserves(family):
    failures = {
        "all": max(code.failure_nats for code in (THEORY.charge, THEORY.spans, THEORY.gate)),
        "gates": THEORY.gate.failure_nats,
        "claims": math.log(40 / THEORY.claims.failed),  # of the 40th claim, after none that failed
    }
    stated = {"all": {"charges": 3}, "gates": {"charges": 3, "gates": True}, "claims": {"board": "claims"}}
    assert {*stated} == {*failures} == {*get_args(Asks)}
    for asks, nats in failures.items():
        plan = Plan(100_000, queries=40, family=family, **stated[asks])
        assert plan.asks == asks
        assert plan.scores.charge_nats == plan.pairs.charge_nats >= nats
