"""Every way of the table: public weights, public prices, one answer for one question, and a ledger that verifies."""

import itertools
import math

import numpy as np
import pytest
from cases import for_each
from guard.counting import Crashing
from made_guards import made_guard
from within_reach import ALONE

from reusable_holdout import Plan, Question, ReusableHoldout, verify
from reusable_holdout.errors import InputError, ModelError
from reusable_holdout.ways import AGREED, CELL, FAILED, NO, NOT_CERTIFIED, SPAN, YES, Terms, Told, Winner
from reusable_holdout.ways.table import ON_REQUEST, WAYS, Ways

ROWS = 2_000
LABELS = np.arange(ROWS) % 2
RIGHT = np.arange(ROWS) % 10 > 0
LARGE = {"rows": 100_000, "queries": 300, "charges": 8}
PLANS = {
    "distance": Plan(**LARGE),
    "noise": Plan(**LARGE, noise=1e-3),
    "evidence": Plan(**LARGE, family="mean", spread=0.2),
    "gates": Plan(**LARGE, gates=True),
}
GUARDS = {
    "distance": ({"metric": "accuracy", "noise": 0.0}, np.where(RIGHT, LABELS, 1 - LABELS)),
    "noise": ({"metric": "accuracy", "noise": 0.002}, np.where(RIGHT, LABELS, 1 - LABELS)),
    "evidence": ({"metric": "brier", "spread": 0.2}, np.where(RIGHT, 0.1 + 0.8 * LABELS, 0.9 - 0.8 * LABELS)),
    "sets": ({"metric": "f1"}, np.where(RIGHT, LABELS, 1 - LABELS)),
}
CHARGES = {"check", "compare", "gate", "gate-compare", "guarded-gate", "guarded-compare"}


def outcomes(way, candidates):
    """All outcomes of a way that its code accepts, among many that are written alike."""
    words = [Told(word) for word in (AGREED, FAILED, YES, NO, NOT_CERTIFIED)]
    placed = itertools.product((CELL, SPAN), range(40), (None, *range(-60, 60)))
    winners = [None]
    if way.name == "choose":
        winners = [Winner(one, candidates, rank) for one, rank in itertools.product(range(3), range(1, 4))]
    rails = ((1, 0.5),) if way.name.startswith("guarded") else ()
    told = [*words, *(Told(*one) for one in placed)]
    for one, winner in itertools.product(told, winners):
        try:
            yield way.outcome(one._replace(winner=winner, rails=rails), Terms(0.6, 0.02))
        except InputError:
            continue


@for_each("name", sorted({*WAYS} - {"claim", "final"}))
@for_each("plan", PLANS)
def test_the_weights_of_all_outcomes_sum_to_at_most_one(plan, name):
    """Check and gate code where they are charged: that nothing is charged costs nothing, and has no weight here."""
    way = Ways(PLANS[plan]).named(name)
    if way is None:
        assert plan == "gates"
        assert name in {"check", "compare"}
        return
    found = list(outcomes(way, 3))
    costly = [one.nats for one in found if one.charged or name in ON_REQUEST]
    # each of three candidates can be of each rank: as many outcomes as there are orders of the priors
    orders = 3 if name == "choose" else 1
    assert 0.5 < math.fsum(math.exp(-nats) for nats in costly) / orders <= 1.0 + 1e-12
    assert all(one.charged == (name in CHARGES) for one in found if one.nats)
    if name in ON_REQUEST:
        assert min(costly) == pytest.approx(way.least_nats(3))
        assert max(costly) <= way.worst_nats(3) + 1e-12


@pytest.mark.parametrize("setting", GUARDS)
@pytest.mark.parametrize("name", ALONE)
def test_an_answer_keeps_to_its_price_is_told_once_and_verifies(name, setting, tmp_path):
    changes, predictions = GUARDS[setting]
    place, prior = tmp_path / "guard.db", 0.1 if setting == "evidence" else 0.9
    wish = {"queries": 40, "charges": 3, "estimate": prior, "vacuous": True, "unwitnessed": True, "seed": 1}
    guard = made_guard(np.zeros((ROWS, 1)), LABELS, ledger=place, reveals=4, **wish, **changes)
    price, told = guard.price(name), []
    for stated in (prior, prior - 0.02, prior + 0.08):
        (answer,) = guard.ask([Question(name, predictions, stated)])
        assert price.least - 1e-9 <= answer.nats <= price.most + 1e-9
        assert (answer.way, answer.outcome, answer.charged) == (name, WAYS[name].word, False)
        assert answer.low <= prior <= answer.high
        told.append(answer)
    (failed,) = guard.ask([Question(name, Crashing(), prior)])
    assert isinstance(failed, ModelError)
    assert (guard.queries_asked, guard.charges_left) == (4, 3)
    guard.close()
    with ReusableHoldout.open(place, np.zeros((ROWS, 1)), LABELS, seed=1) as again:
        (answer,) = again.ask([Question(name, predictions, prior)])
        assert answer == told[0]._replace(replayed=True)
        assert again.history()["outcome"].tolist() == [WAYS[name].word] * 3 + ["failed"]
    assert verify(place).sound
