"""What a question can cost, said before it is asked, by hand; and that the guard keeps to it."""

import math

import pytest
from cases import for_each, refuses

from reusable_holdout.certainty import ConfidenceBound
from reusable_holdout.errors import InputError

ROWS, QUERIES, CHARGES = 2_000, 40, 3
BOUND = ConfidenceBound("binomial", rows=ROWS, sum_of_squares=1 / ROWS)
DEAREST = {"charge": -math.log(0.12), "reveal": -math.log(0.025)}
PLENTY = {"reveals": 4, "choices": [3, 3]}


def final_width(*, charges=0, last=0, nats=0.0, estimate=0.7):
    """Half-width of a final: places and number of the charges, what was told, three quarters of the level."""
    share = 0.1 * (CHARGES + 1) / (CHARGES * charges * (charges + 1)) if charges else 0.9
    places = 0.9 / math.comb(QUERIES, charges) + 0.1 / ((last + 1) * math.comb(last, charges))
    length = -math.log(places * share * 0.75) + nats
    level = math.log(0.05 / 2) - length
    return (BOUND.upper(estimate, log_level=level) - BOUND.lower(estimate, log_level=level)) / 2


def choice_nats(rank, candidates):
    return -math.log(0.5 / (rank * (rank + 1)) + 0.5 / candidates)


PRICES = {  # least, most, and the charges and nats after the dearest
    "evaluate": ({"way": "evaluate"}, 0.0, DEAREST["charge"], 1, DEAREST["charge"]),
    "reveal": ({"way": "reveal", "prior": 0.7}, -math.log(0.28), DEAREST["reveal"], 0, DEAREST["reveal"]),
    "choose": (
        {"way": "choose", "candidates": 3},
        choice_nats(1, 3) - math.log(0.28),
        choice_nats(3, 3) + DEAREST["reveal"],
        0,
        choice_nats(3, 3) + DEAREST["reveal"],
    ),
    "final": ({"way": "final"}, 0.0, 0.0, 0, 0.0),
}


@pytest.mark.parametrize("name", PRICES)
def test_a_price_is_the_least_the_most_and_what_a_final_certifies_after_the_dearest(make_guard, name):
    asked, least, most, charges, nats = PRICES[name]
    price = make_guard(**PLENTY).price(**asked)
    assert (price.least, price.most) == (pytest.approx(least), pytest.approx(most))
    assert price.final_width == pytest.approx(final_width(charges=charges, last=charges, nats=nats), rel=1e-9)
    assert price.allowed is True


def test_the_final_width_follows_what_was_told(make_guard, scoring):
    guard = make_guard(**PLENTY)
    assert guard.final_width == pytest.approx(final_width())
    guard.evaluate(scoring(0.7), prior=0.7)
    assert guard.final_width == pytest.approx(final_width())  # agreement costs nothing
    nats = guard.reveal(scoring(0.7), prior=0.68).nats
    assert guard.final_width == pytest.approx(final_width(nats=nats))
    nats += guard.evaluate(scoring(0.7), prior=0.85).nats
    expected = final_width(charges=1, last=3, nats=nats)
    assert guard.final_width == pytest.approx(expected)
    for k in range(10):
        guard.evaluate(scoring(0.7, k + 1), prior=0.7)
    assert guard.final_width == pytest.approx(
        expected
    )  # what agrees after the last charge costs nothing either
    assert expected < final_width(charges=1, last=13, nats=nats)
    answer = guard.final(scoring(0.7))
    assert (answer.high - answer.low) / 2 == pytest.approx(expected, abs=2 / ROWS)


def test_a_price_does_not_depend_on_the_holdout(make_guard, labels):
    for asked, *_ in PRICES.values():
        prices = {make_guard(y=y, **PLENTY).price(**asked) for y in (labels, 1 - labels)}
        assert len(prices) == 1


@for_each("name", ["reveal", "choose"])
def test_what_is_not_allowed_is_refused_and_what_is_allowed_is_answered(make_guard, scoring, name):
    """Asked in turn, each in its dearest way, until no more is allowed."""
    guard, told = make_guard(queries=100, **PLENTY), 0
    asks = {
        "reveal": lambda k: guard.reveal(scoring(0.02, k), prior=0.99),
        "choose": lambda k: guard.choose([scoring(0.01, k), scoring(0.02, k)], [0.99, 0.98]).answer,
    }
    while (price := guard.price(name, candidates=2)).allowed:
        answer = asks[name](told)
        assert price.least <= answer.nats == pytest.approx(price.most)
        assert guard.final_width == pytest.approx(price.final_width)
        told += 1
    assert told >= 4
    refuses(InputError, "nothing was told", asks[name], told)
    assert guard.price("evaluate").allowed
    assert guard.price("final").allowed


def test_after_a_halt_only_the_final_is_allowed_and_after_it_nothing(make_guard, spend, scoring):
    guard = make_guard(**PLENTY)
    spend(guard)
    assert [guard.price(kind).allowed for kind in PRICES] == [False, False, False, True]
    guard.final(scoring(0.7))
    assert [guard.price(kind).allowed for kind in PRICES] == [False] * 4


def test_a_choice_among_more_than_are_left_is_not_allowed(make_guard, scoring):
    guard = make_guard(queries=4, choices=[4, 4])
    assert guard.price("choose", candidates=4).allowed
    guard.evaluate(scoring(0.7), prior=0.7)
    assert guard.price("choose", candidates=3).allowed
    assert not guard.price("choose", candidates=4).allowed


@for_each("way", ["evaluate", "gate"])
def test_a_charge_costs_at_most_its_price(make_guard, scoring, way):
    guard = make_guard(charges=8)
    most = guard.price(way).most
    for score in (0.12, 0.35, 0.99):
        ask = guard.gate if way == "gate" else lambda one, prior: guard.evaluate(one, prior=prior)
        answer = ask(scoring(score), 0.1)
        assert answer.nats <= most + 1e-9


@for_each(
    ("asked", "words"),
    [
        ({"way": "look"}, "way is"),
        ({"way": None}, "way is"),
        ({"way": "reveal", "prior": 1.5}, "prior"),
        ({"way": "reveal", "prior": "0.7"}, "prior"),
        ({"way": "choose", "candidates": 0}, "candidates"),
        ({"way": "choose", "candidates": 2.5}, "candidates"),
        ({"way": "choose", "candidates": None}, "candidates"),
    ],
)
def test_bad_input_is_refused(make_guard, asked, words):
    refuses(InputError, words, make_guard(**PLENTY).price, **asked)
