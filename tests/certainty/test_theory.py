"""An edition that was released never changes; what policies cost follows from it."""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace
from typing import get_args

import pytest
from cases import for_each

from reusable_holdout.certainty import (
    BY_DISTANCE,
    EDITIONS,
    LADDERS,
    THEORY,
    CellCode,
    Policy,
    edition,
    parameter_free_step,
    policy_code,
)
from reusable_holdout.errors import LedgerMismatchError

# Of all numbers of an edition, written out; whoever finds a better constant adds an edition, and a line here.
RELEASED = {
    2: "204a3fcf4f8ffefea751859cb432fbc09f7d4b10ab607cdff30909e8fc627566",
    3: "71b7d9159fa53346fc08441a79eb61106b6d80159dccd550892c6ab9fe7b995f",
}
# what an edition added, and what it is in those before; their numbers are written out without it
ADDED = {3: {"failures_reserved": False}}


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
    assert EDITIONS[max(EDITIONS)] is THEORY


def test_an_edition_is_found_by_its_number_alone():
    assert edition(2) is EDITIONS[2]
    assert edition(3) is EDITIONS[3]
    for wrong in (2.0, "2", None, 1, 4, [2]):
        with pytest.raises(LedgerMismatchError, match="names"):
            edition(wrong)


OTHER = replace(
    THEORY,
    steps_failed=0.25,
    claims=THEORY.claims._replace(stands=3.0, charge=0.5, failed=0.125, measured=(0.5, 0.25)),
    charge=CellCode(THEORY.charge.cells[:4], failed=0.125),
    by_evidence=THEORY.by_evidence._replace(charged=0.05),
)


@for_each(("places", "whole"), [(0.2, 1), (1.0, 1), (1.01, 2), (40.0, 40)])
@for_each("policy", LADDERS)
def test_the_dearest_charge_of_a_ladder_is_a_step_or_a_failure(policy, places, whole):
    found = policy_code(policy, places=places, theory=OTHER)
    assert found.charge_nats == pytest.approx(max(math.log(2 * whole / 0.75), math.log(4)), rel=1e-13)
    assert found.shares == (0.5, 0.5)
    assert policy_code(policy, places=places).charge_nats >= -math.log(0.03)


@for_each(("places", "claims"), [(3.0, 3), (40.4, 40)])
def test_the_dearest_outcome_of_a_claim_is_a_failure_after_all_others(places, claims):
    begun = (
        3.0 + 4 * 0.5 + 0.125 + 2 * (0.5 + 0.25)
    )  # it stands, four cells of a charge, a failure, measured cells
    found = policy_code("claims", places=places, theory=OTHER)
    assert found.charge_nats == pytest.approx(math.log((claims + begun) / 0.125), rel=1e-13)
    assert found.shares == (0.5, 0.5)


def test_a_gates_yes_and_a_checks_dearest_cell_are_what_they_cost():
    assert policy_code("gate", places=1.0) == (-math.log(0.5), (1.0, 1.0))
    assert policy_code("gate", places=1.0, theory=EDITIONS[2]) == (-math.log(0.97), (1.0, 1.0))
    for policy in ("thresholdout", "guess-and-check"):
        assert policy_code(policy, places=1.0) == (-math.log(0.1355), THEORY.scores)
        assert policy_code(policy, places=1.0, by_evidence=True) == (-math.log(0.1355), THEORY.by_evidence)
    cheaper = replace(THEORY, charge=CellCode(THEORY.charge.cells[2:4], failed=0.5))
    assert policy_code("thresholdout", places=1.0, theory=cheaper).charge_nats == -math.log(0.1355)
    dearer = replace(THEORY, charge=CellCode(THEORY.charge.cells, failed=0.01))
    assert policy_code("thresholdout", places=1.0, theory=dearer).charge_nats == -math.log(0.01)
    assert policy_code("thresholdout", places=1.0, by_evidence=True, theory=OTHER).shares == (0.8, 0.05)


def test_ladders_and_claims_are_decided_by_a_distance():
    assert {"ladder", "parameter-free-ladder"} == LADDERS
    assert {"ladder", "parameter-free-ladder", "claims"} == BY_DISTANCE
    assert parameter_free_step(400) == 0.05


FAILURES = {
    "thresholdout": max(THEORY.charge.failure_nats, THEORY.spans.failure_nats),
    "guess-and-check": max(THEORY.charge.failure_nats, THEORY.spans.failure_nats),
    "gate": THEORY.gate.failure_nats,
    "ladder": -math.log(THEORY.steps_failed),
    "parameter-free-ladder": -math.log(THEORY.steps_failed),
    "claims": math.log(40 / THEORY.claims.failed),  # of the 40th claim, after none that failed
}


@for_each("by_evidence", [False, True])
@for_each(("policy", "nats"), FAILURES.items())
def test_what_a_failure_costs_is_part_of_what_every_policy_reserves(policy, nats, by_evidence):
    assert set(FAILURES) == set(get_args(Policy))
    assert policy_code(policy, places=40.0, by_evidence=by_evidence).charge_nats >= nats
    if policy != "claims":  # a view of a guard's may have any policy that costs no more
        assert THEORY.gate.worst <= policy_code(policy, places=40.0).charge_nats
