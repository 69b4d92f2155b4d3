"""The ends of a set: E itself, term by term, is enough at each and too little one step beyond."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from cases import for_each
from scipy import optimize

from reusable_holdout.certainty import THEORY, EvidenceSet
from reusable_holdout.certainty.evidence import MANY, EvidenceRows, likely_rows, mixed, rounded
from reusable_holdout.certainty.theory import BetSizes

RNG = np.random.default_rng(12)
STEPS = 2**26


@for_each(("nats", "rows"), [(8.0, 500), (2.0, 10**6), (900.0, 3)])
def test_bets_are_spaced_by_the_edition_with_one_that_suits_the_guess(nats, rows):
    found, (ratio, smallest, largest) = EvidenceSet(nats, rows, 0.3, 0.2), THEORY.set_bets
    bets, stakes = found._stakes(0.3)
    spaced, least = bets[:-1], min(smallest * math.sqrt(2 * nats / rows), largest)
    assert (spaced[0], spaced[-1]) == (pytest.approx(least), pytest.approx(largest))
    count = 1 + math.ceil(math.log(largest / least) / math.log(ratio))
    assert spaced == pytest.approx(least * (largest / least) ** (np.arange(count) / max(count - 1, 1)))
    assert np.exp(stakes).tolist() == pytest.approx([0.2 / count] * count + [0.8])
    assert bets[-1] == found._suited(0.3)


def test_half_and_half_of_rows_are_guessed_unless_it_is_said():
    assert EvidenceSet(8.0, 50) == EvidenceSet(8.0, 50, 0.5, 0.5, THEORY)


@for_each(
    ("nats", "rows", "mean", "spread"),
    [
        (8.0, 500, 0.3, 0.2),
        (8.0, 500, 0.3, 0.02),
        (20.0, 10_000, 0.9, 0.3),
        (3.0, 40, 0.2, 0.4),
        (12.0, 900, 0.5, 0.5),
    ],
)
def test_the_suited_bet_wins_most_against_the_mean_that_it_just_excludes(nats, rows, mean, spread):
    likely = likely_rows(mean, spread, rows)

    def best(excluded):
        def lost(bet):
            return -float(np.log1p(bet / excluded * (likely.values - excluded)) @ likely.counts)

        found = optimize.minimize_scalar(lost, bounds=(1e-9, 0.95), options={"xatol": 1e-12})
        return (0.95, -lost(0.95)) if lost(0.95) <= found.fun else (float(found.x), -float(found.fun))

    excluded = optimize.brentq(
        lambda m: best(m)[1] - nats + math.log(0.8), 1e-6, mean * (1 - 1e-9), xtol=1e-13
    )
    assert EvidenceSet(nats, rows, mean, spread)._suited(mean) == pytest.approx(best(excluded)[0], rel=1e-4)


def test_rows_without_spread_are_best_bet_on_with_the_largest():
    assert EvidenceSet(8.0, 500, 0.3, 0.0)._suited(0.3) == 0.95


def log_e(found, value, guess, terms, weights=None):
    bets, stakes = found._stakes(guess)
    weights = np.ones(len(terms)) if weights is None else weights
    logs = [
        stake + math.fsum(np.log1p(bet / value * weights * (terms - value)))
        for bet, stake in zip(bets, stakes, strict=True)
    ]
    return max(logs) + math.log(sum(math.exp(log - max(logs)) for log in logs))


@for_each("weighted", [False, True])
@for_each(("nats", "guess"), [(4.0, 0.3), (1.5, 0.7)])
def test_an_end_is_the_last_step_with_enough_evidence(weighted, nats, guess):
    terms, weights = RNG.beta(2, 3, 80), RNG.random(80) if weighted else None
    found = EvidenceSet(nats, 80, guess, 0.2)
    low, high = found.of_rows(terms, weights)
    mean = float(np.average(terms, weights=weights))
    for end, values, own, at in ((low, terms, mean, guess), (1 - high, 1 - terms, 1 - mean, 1 - guess)):
        step = own / STEPS
        assert end / step == pytest.approx(round(end / step), abs=1e-4)
        assert 0.0 < end < own
        assert log_e(found, end, at, values, weights) >= nats > log_e(found, end + step, at, values, weights)
    rows = EvidenceRows(terms, np.ones(80), weights)
    assert found.of(rows) == pytest.approx((low, high), abs=1e-7)
    other = EvidenceRows(terms / 2, np.ones(80), weights)
    assert found.of(rows, other) == (found.of(rows)[0], found.of(other)[1])


def test_rows_at_zero_leave_zero_as_the_lower_end():
    assert EvidenceSet(5.0, 9).of_rows(np.zeros(9))[0] == 0.0
    assert EvidenceSet(5.0, 9).of(EvidenceRows(np.zeros(1), np.array([9.0])))[0] == 0.0
    assert EvidenceSet(5.0, 9).of_rows(np.ones(9))[1] == 1.0


def test_rows_are_rounded_from_a_quarter_of_a_million_on():
    terms, few = RNG.random(MANY), replace(THEORY, set_halvings=8, set_bets=BetSizes(9.0, 0.1, 0.95))
    found = EvidenceSet(6.0, MANY, 0.5, 0.3, few)
    assert found.of_rows(terms) == found.of(*rounded(terms))
    assert found.of_rows(terms[1:]) != found.of(*rounded(terms[1:]))
    assert found.of_rows(terms, np.ones(MANY)) != found.of_rows(terms)


def test_evidence_of_another_form_excludes_up_to_the_lowest():
    """Of 60 rows that gain half of what they may, whatever is excluded: E falls in it as the value rises."""
    found = EvidenceSet(4.0, 60, 0.4, 0.2)

    def won(value, bets):
        return 60 * np.log1p(bets * (0.5 - value) / max(value, 1 - value))

    def log_sum(value):
        bets, stakes = found._stakes(0.4)
        return math.log(np.exp(won(value, bets) + stakes).sum())

    lowest = found.lowest(0.4, won)
    assert log_sum(lowest) >= 4.0 > log_sum(lowest + 1 / STEPS)
    assert 0.1 < lowest < 0.5
    assert found.excludes(lowest, 0.4, won)
    assert not found.excludes(lowest + 1 / STEPS, 0.4, won)
    assert (lowest * STEPS).is_integer()


def test_as_much_evidence_as_is_needed_is_enough():
    found = EvidenceSet(4.0, 60, 0.4, 0.2)
    stakes = found._stakes(0.4)[1]

    def nats(gained):
        logs = gained + stakes
        return mixed(logs) + math.log(len(logs))

    gained = 4.0 - nats(0.0)
    gained = next(each for k in range(-40, 40) if nats(each := gained + k * 2.0**-52) == 4.0)
    less = gained - 1e-12

    def won(value, bets):
        return np.full(len(bets), gained)

    assert found.excludes(0.3, 0.4, won)
    assert not found.excludes(0.3, 0.4, lambda value, bets: np.full(len(bets), less))
    assert found.lowest(0.4, won) == 1.0 - 1 / STEPS


@for_each("mean", [5e-324, 1e-310, 1e-300])
def test_the_least_mean_can_be_guessed(mean: float) -> None:
    low, high = EvidenceSet(5.0, 2000, mean, 0.5).of_rows(np.linspace(0.0, 1.0, 2000))
    assert 0.4 < low < 0.5 < high < 0.6


def test_the_suited_bet_is_sought_below_what_it_just_excludes():
    """Where the first bet wins exactly what is needed, the next one is sought above it; else below."""
    likely, twice = likely_rows(0.3, 0.2, 500.0), replace(THEORY, set_halvings=2)

    def bet(middle):
        up, down = likely.values - middle
        return min(0.95, (0.3 - middle) / (-up * down) * middle) if down < 0.0 else 0.95

    won = float(np.log1p(bet(0.15) / 0.15 * (likely.values - 0.15)) @ likely.counts)
    nats = won + math.log(0.8)
    nats = next(each for k in range(-9, 9) if (each := nats + k * math.ulp(nats)) - math.log(0.8) == won)
    for needed, middle in ((nats, 0.225), (nats * (1 + 1e-12), 0.075)):
        found = EvidenceSet(needed, 500, 0.3, 0.2, twice)._suited(0.3)
        assert found == pytest.approx(bet(middle), rel=1e-12)
