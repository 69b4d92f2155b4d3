"""Widths under Gaussian noise, against their formulas in plain words and a minimum that is found another way."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from alternatives import GaussianWidth, gaussian_delta, gaussian_width
from alternatives.gaussian_width import _exponent, _gain
from cases import for_each
from scipy import optimize
from scipy.special import expit, log_ndtr, ndtr, ndtri

from reusable_holdout.errors import InputError

ANALYSES = [
    "bassily",
    "transfer",
    "transfer-published",
    "information",
    "information-published",
    "conditional",
]


def least(error, low, high):
    """Smallest value of a function with one valley, or of two: one number is found for each of the other."""
    return float(optimize.minimize_scalar(error, bounds=(low, high), options={"xatol": 1e-9}).fun)


def delta_of(privacy, epsilon):
    return ndtr(privacy / 2 - epsilon / privacy) - math.exp(
        epsilon + log_ndtr(-privacy / 2 - epsilon / privacy)
    )


def by_privacy(theorem):
    def width(rows, queries, beta, noise):
        privacy = math.sqrt(queries) / rows / noise

        def at(log_epsilon, log_odds):
            epsilon, failure = privacy * math.exp(log_epsilon), float(expit(log_odds))
            return theorem(
                noise * -ndtri(failure / 2 / queries), failure, epsilon, delta_of(privacy, epsilon), beta
            )

        def of_odds(log_odds):
            return least(lambda log_epsilon: at(log_epsilon, log_odds), -40.0, 3.0)

        return least(of_odds, -40.0, 6.0)

    return width


def transfer(error, failure, epsilon, delta, beta):
    return error + math.exp(epsilon) - 1 + (math.sqrt(failure) + math.sqrt(2 * delta)) ** 2 / beta


def bassily(error, failure, epsilon, delta, beta):
    copies = int(1 / beta)
    caught = 1 - (1 - beta) ** copies
    return (error + math.exp(epsilon) - 1 + copies * (failure + delta)) / caught


def transfer_published(rows, queries, beta, noise):
    rho = queries / (2 * rows**2 * noise**2)

    def at(log_delta):
        delta = math.exp(log_delta)
        epsilon = rho + 2 * math.sqrt(rho * math.log(math.sqrt(math.pi * rho) / delta))
        return noise * -ndtri(delta / 2 / queries) + math.exp(epsilon) - 1 + 6 * delta / beta

    return least(at, -30.0, math.log(math.pi * rho) / 2 - 1e-3)


def divergence(share, exponent):
    return share * (math.log(share) + exponent) + (1 - share) * (
        math.log1p(-share) - math.log1p(-math.exp(-exponent))
    )


def information(rows, queries, beta, noise):
    told = queries / (8 * rows * noise**2)

    def at(part):
        share = beta * part
        exponent = optimize.brentq(
            lambda exponent: divergence(share, exponent) - told,
            -math.log(share),
            (told + 1) / share,
            xtol=1e-12,
        )
        return math.sqrt(exponent / 2 / rows) - noise * ndtri((beta - share) / 2 / queries)

    return least(at, 0.01, 1.0 - 1e-9)


def information_published(rows, queries, beta, noise):
    told, half = queries / (8 * rows * noise**2), beta / 2

    def at(part):
        return math.sqrt((2 * told - math.log(1 - part)) / (4 * rows * part * half))

    return least(at, 1e-4, 1.0 - 1e-9) + noise * math.sqrt(2 * math.log(2 * queries / (beta - half)))


def conditional(rows, queries, beta, noise):
    privacy = math.sqrt(queries) / rows / noise

    def at(part):
        side = beta * part / 2
        failure = beta - 2 * side
        levels = [level for level in (side, float(ndtr(-privacy / 2))) if level <= side]
        gain = max(float(ndtr(ndtri(level) + privacy)) - level for level in levels)
        z = -ndtri(failure / 2 / queries)
        return gain / side + 2 * queries * noise * math.exp(-z * z / 2) / math.sqrt(2 * math.pi) / failure

    return least(at, 1e-3, 1.0 - 1e-6)


FORMULAS = {
    "bassily": by_privacy(bassily),
    "transfer": by_privacy(transfer),
    "transfer-published": transfer_published,
    "information": information,
    "information-published": information_published,
    "conditional": conditional,
}


@pytest.mark.parametrize("analysis", ANALYSES)
@for_each(
    ("rows", "queries", "beta"),
    [(10_000, 10, 0.05), (10_000, 100, 0.3), (10**6, 1, 1e-4), (100_000, 1000, 0.9), (40, 3, 0.98)],
)
def test_a_width_is_its_formula_at_the_best_noise_and_free_numbers(analysis, rows, queries, beta):
    found = gaussian_width(rows=rows, queries=queries, beta=beta, analysis=analysis)
    formula = FORMULAS[analysis]
    assert found.analysis == analysis
    width = formula(rows, queries, beta, found.noise)
    if analysis == "transfer-published" and rows == 40:
        assert found.half_width == 1.0
        return
    assert found.half_width == pytest.approx(width, rel=1e-7)
    for noise in (found.noise * 0.99, found.noise * 1.01):
        assert formula(rows, queries, beta, noise) > width


@for_each("analysis", ANALYSES)
@for_each(("rows", "queries", "beta"), [(1, 1, 0.5), (1, 30, 0.5), (1, 10**9, 1e-12), (30, 10**9, 0.999)])
def test_a_width_that_says_nothing_is_one_without_a_warning(analysis, rows, queries, beta):
    assert gaussian_width(rows=rows, queries=queries, beta=beta, analysis=analysis).half_width == 1.0


def test_the_best_is_the_narrowest_of_four_and_the_default():
    for rows, queries, beta in ((10_000, 1000, 0.05), (10**6, 10, 1e-4), (400, 2, 0.3)):
        at = {"rows": rows, "queries": queries, "beta": beta}
        every = [gaussian_width(**at, analysis=way) for way in ANALYSES]
        assert gaussian_width(**at) == gaussian_width(**at, analysis="best") == min(every)
        assert isinstance(gaussian_width(**at), GaussianWidth)


@for_each(("privacy", "epsilon"), [(1e-3, 0.0), (0.3, 0.2), (1.0, 1.0), (2.0, 0.0), (0.5, 4.0), (9.0, 60.0)])
def test_the_gaussian_delta_agrees_with_fifty_digits(privacy, epsilon):
    with mp.workdps(50):
        m, e = mp.mpf(privacy), mp.mpf(epsilon)
        exact = mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m)
        assert gaussian_delta(privacy=privacy, epsilon=epsilon) == pytest.approx(float(exact), rel=1e-11)


def test_a_delta_that_rounding_would_carry_below_zero_is_zero():
    for privacy, epsilon in ((9.388809398100538e-15, 1.566637418841417e-13), (1e-13, 3e-12), (0.01, 5.0)):
        assert 0.0 <= gaussian_delta(privacy=privacy, epsilon=epsilon) <= privacy
    assert gaussian_delta(privacy=9.388809398100538e-15, epsilon=1.566637418841417e-13) == 0.0


@for_each(
    "wrong", [{"rows": 0}, {"queries": 0}, {"beta": 0.0}, {"beta": 1.0}, {"beta": 1.2}, {"analysis": "x"}]
)
def test_a_width_of_wrong_numbers_is_refused(wrong):
    with pytest.raises(InputError):
        gaussian_width(**{"rows": 100, "queries": 10, "beta": 0.05, **wrong})


@for_each(
    ("privacy", "epsilon"),
    [
        (0.0, 1.0),
        (-1.0, 1.0),
        (math.inf, 1.0),
        (math.nan, 1.0),
        (1.0, -1e-9),
        (1.0, math.inf),
        (1.0, math.nan),
    ],
)
def test_a_delta_of_wrong_numbers_is_refused(privacy, epsilon):
    with pytest.raises(InputError, match="privacy is above 0 and epsilon at least 0"):
        gaussian_delta(privacy=privacy, epsilon=epsilon)


@for_each("privacy", [0.01, 0.7, 3.0])
@for_each("level", [1e-9, 0.01, 0.3, 0.49, 0.8])
def test_a_gain_is_the_most_at_any_level_up_to_this_one(privacy, level):
    levels = np.append(np.geomspace(1e-12, level, 20_001), level)
    gains = ndtr(ndtri(levels) + privacy) - levels
    assert _gain(privacy, level) == pytest.approx(gains.max(), rel=1e-6)


@for_each(("information", "share"), [(0.05, 0.2), (0.1, 0.04), (0.5, 0.01), (20.0, 0.3), (1e-3, 0.2)])
def test_an_exponent_has_the_information_as_its_divergence_or_is_larger(information, share):
    found = divergence(share, _exponent(information, share))
    assert found >= information * (1 - 1e-12)
    if information > 1e-2:
        assert found == pytest.approx(information, rel=1e-3)
    assert _exponent(information, 0.0) == math.inf
