"""Transfer theorems and the widths that they give: published figures, the best free numbers, limits."""

import math

import numpy as np
import pytest
from alternatives import (
    GaussianWidth,
    bassily_error,
    expected_error,
    gaussian_width,
    hoeffding_splitting_half_width,
    naive_union_half_width,
    rounded_answers_half_width,
    transfer_error,
    transfer_failure,
    transfer_slack,
)
from cases import for_each, refuses
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats
from scipy.special import expit, log_ndtr, ndtr, ndtri

from reusable_holdout.errors import InputError

MECHANISM = {"sample_error": 0.02, "sample_beta": 1e-6, "epsilon": 0.05, "delta": 1e-7}
probabilities = st.floats(1e-12, 0.5)

# The theorems.


@given(sample_beta=probabilities, delta=probabilities, beta=st.floats(1e-6, 0.9), factor=st.floats(1e-3, 1e3))
def test_no_other_slack_of_the_same_failure_probability_costs_less(sample_beta, delta, beta, factor):
    best = transfer_slack(sample_beta=sample_beta, delta=delta, beta=beta)
    assert sample_beta / best.c + delta / best.d == pytest.approx(beta)
    least = (math.sqrt(sample_beta) + math.sqrt(2.0 * delta)) ** 2 / beta
    assert best.c + 2.0 * best.d == pytest.approx(least)
    c = sample_beta / beta * (1.0 + factor)  # any c above sample_beta / beta leaves room for delta
    d = delta / (beta - sample_beta / c)
    assert c + 2.0 * d >= least * (1.0 - 1e-9)


@given(
    sample_error=st.floats(0.0, 0.3),
    sample_beta=probabilities,
    epsilon=st.floats(0.0, 1.0),
    delta=probabilities,
    beta=st.floats(1e-3, 0.9),
)
def test_the_transfer_theorem_is_the_stated_formula_and_its_inverse_returns(beta, **numbers):
    slack = transfer_slack(sample_beta=numbers["sample_beta"], delta=numbers["delta"], beta=beta)
    error = transfer_error(**numbers, beta=beta)
    stated = numbers["sample_error"] + math.expm1(numbers["epsilon"]) + slack.c + 2.0 * slack.d
    assert error == pytest.approx(stated)
    assert transfer_failure(**numbers, error=error) == pytest.approx(beta, rel=1e-3)


def test_jungs_theorem_improves_on_bassilys_at_every_usual_beta():
    for beta in (0.5, 0.1, 0.05, 0.01, 1e-4):
        mechanism = {**MECHANISM, "sample_beta": 1e-9, "delta": 1e-9}
        assert transfer_error(**mechanism, beta=beta) < bassily_error(**mechanism, beta=beta)


@for_each("beta", [0.9, 0.5, 0.3, 0.051, 0.05])
def test_the_monitors_argument_is_the_stated_formula(beta):
    copies = next(copies for copies in range(1, 99) if (copies + 1) * beta > 1.0)
    caught = 1.0 - (1.0 - beta) ** copies
    expected = (0.02 + math.exp(0.05) - 1.0 + copies * (1e-6 + 1e-7)) / caught
    assert bassily_error(**MECHANISM, beta=beta) == pytest.approx(expected, rel=1e-12)


def test_the_expected_error_is_mcsherrys_and_randomised_response_stays_below_it():
    assert expected_error(epsilon=0.0, delta=0.0) == 0.0
    assert expected_error(epsilon=0.3, delta=0.01) == math.expm1(0.3) + 0.01
    assert expected_error(epsilon=709.0, delta=0.0) == math.expm1(709.0)
    assert expected_error(epsilon=710.0, delta=0.0) == math.inf
    # one fair bit, released truthfully with odds exp(e), then asked about: "is the row's bit the released one?"
    bias = math.exp(0.3) / (1.0 + math.exp(0.3)) - 0.5
    assert 0.0 < bias <= expected_error(epsilon=0.3, delta=0.0)


def test_an_error_without_room_fails_for_certain_and_one_with_little_for_certain_too():
    exact = {"sample_error": 0.25, "sample_beta": 0.01, "epsilon": 0.0, "delta": 0.0}
    for room, failure in ((0.0, 1.0), (0.01 / 1.2, 1.0), (0.01 / 0.8, 0.8)):
        assert transfer_failure(**exact, error=0.25 + room) == pytest.approx(failure)


NOT_NEGATIVE, SHARE, PART = [-0.1, math.inf, math.nan], [-1e-9, 1.0, math.nan], [0.0, 1.0, 1.2]
RANGES = {"sample_error": NOT_NEGATIVE, "sample_beta": SHARE, "epsilon": NOT_NEGATIVE, "delta": SHARE}
WIDTH = {"rows": 100, "queries": 10, "beta": 0.05}
WIDTHS = {"rows": [0], "queries": [0], "beta": PART}


@for_each(
    ("function", "good", "bad"),
    [
        *(
            (one, MECHANISM | {"beta": 0.05}, RANGES | {"beta": PART})
            for one in (transfer_error, bassily_error)
        ),
        (transfer_failure, MECHANISM | {"error": 0.1}, RANGES | {"error": [0.0, math.inf, math.nan]}),
        (expected_error, {"epsilon": 0.1, "delta": 0.1}, {"delta": SHARE, "epsilon": NOT_NEGATIVE}),
        (
            transfer_slack,
            {"sample_beta": 0.1, "delta": 0.1, "beta": 0.5},
            {"sample_beta": SHARE, "delta": SHARE, "beta": PART},
        ),
        *((one, WIDTH, WIDTHS) for one in (hoeffding_splitting_half_width, naive_union_half_width)),
        (rounded_answers_half_width, WIDTH, WIDTHS | {"levels": [1]}),
        (gaussian_width, WIDTH, WIDTHS | {"analysis": ["guess"]}),
    ],
)
def test_numbers_out_of_range_are_refused(function, good, bad):
    function(**good)
    for name, values in bad.items():
        for value in values:
            refuses(InputError, name, function, **good | {name: value})


# Widths under Gaussian noise, against their formulas and a minimum that is found another way.


def least(error, low, high):
    """Return the smallest value of a function with one valley."""
    return float(optimize.minimize_scalar(error, bounds=(low, high), options={"xatol": 1e-9}).fun)


def delta_of(privacy, epsilon):
    other = math.exp(epsilon + log_ndtr(-privacy / 2 - epsilon / privacy))
    return ndtr(privacy / 2 - epsilon / privacy) - other


def by_privacy(theorem):
    def width(rows, queries, beta, noise):
        privacy = math.sqrt(queries) / rows / noise

        def at(log_epsilon, log_odds):
            epsilon, failure = privacy * math.exp(log_epsilon), float(expit(log_odds))
            error = noise * -ndtri(failure / 2 / queries)
            return theorem(error, failure, epsilon, delta_of(privacy, epsilon), beta)

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


def divergence(share, exponent):
    rest = math.log1p(-share) - math.log1p(-math.exp(-exponent))
    return share * (math.log(share) + exponent) + (1 - share) * rest


def information(rows, queries, beta, noise):
    told = queries / (8 * rows * noise**2)

    def at(part):
        share = beta * part
        ends = -math.log(share), (told + 1) / share
        exponent = optimize.brentq(lambda x: divergence(share, x) - told, *ends, xtol=1e-12)
        return math.sqrt(exponent / 2 / rows) - noise * ndtri((beta - share) / 2 / queries)

    return least(at, 0.01, 1.0 - 1e-9)


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
    "bassily": by_privacy(bassily), "transfer": by_privacy(transfer), "information": information,
    "conditional": conditional,
}  # fmt: skip


@pytest.mark.parametrize("analysis", FORMULAS)
@for_each(
    ("rows", "queries", "beta"),
    [(10_000, 10, 0.05), (10_000, 100, 0.3), (10**6, 1, 1e-4), (100_000, 1000, 0.9), (40, 3, 0.98)],
)
def test_a_width_is_its_formula_at_the_best_noise_and_free_numbers(analysis, rows, queries, beta):
    found = gaussian_width(rows=rows, queries=queries, beta=beta, analysis=analysis)
    assert found.analysis == analysis
    width = FORMULAS[analysis](rows, queries, beta, found.noise)
    assert found.half_width == pytest.approx(width, rel=1e-7)
    for noise in (found.noise * 0.99, found.noise * 1.01):
        assert FORMULAS[analysis](rows, queries, beta, noise) > width


@for_each("analysis", FORMULAS)
@for_each(("rows", "queries", "beta"), [(1, 1, 0.5), (1, 30, 0.5), (1, 10**9, 1e-12), (30, 10**9, 0.999)])
def test_a_width_that_says_nothing_is_one_without_a_warning(analysis, rows, queries, beta):
    assert gaussian_width(rows=rows, queries=queries, beta=beta, analysis=analysis).half_width == 1.0


@for_each("rows", [1000, 10_000, 10**6])
@for_each("beta", [0.05, 1e-4])
def test_the_best_analysis_is_the_narrowest_and_narrower_than_published(rows, beta):
    for queries in (1, 30, 1000):
        at = {"rows": rows, "queries": queries, "beta": beta}
        found = {way: gaussian_width(**at, analysis=way) for way in FORMULAS}
        assert gaussian_width(**at) == gaussian_width(**at, analysis="best") == min(found.values())
        assert isinstance(gaussian_width(**at), GaussianWidth)
        widths = {way: width.half_width for way, width in found.items()}
        assert widths["conditional"] <= widths["transfer"] <= widths["bassily"]
        published = {(10_000, 1000, 0.05): (0.322, 0.529)}.get((rows, queries, beta), (1.0, 1.0))
        assert widths["information"] <= published[0]
        assert widths["transfer"] <= published[1]


def test_an_analyst_who_overfits_stays_within_the_information_and_conditional_widths():
    # asks for every bit column, keeps those above one half, and asks for their majority
    rng = np.random.default_rng(5)
    rows, columns, runs, beta = 400, 60, 200, 0.05
    for analysis in ("information", "conditional"):
        width, noise, _ = gaussian_width(rows=rows, queries=columns + 1, beta=beta, analysis=analysis)
        missed = 0
        for _ in range(runs):
            bits = rng.random((rows, columns)) < 0.5
            answers = bits.mean(axis=0) + noise * rng.standard_normal(columns)
            votes = np.where(answers > 0.5, bits, ~bits).sum(axis=1)
            final = float((votes > columns / 2).mean() + 0.5 * (votes == columns / 2).mean())
            last = final + noise * rng.standard_normal()
            missed += max(abs(answers - 0.5).max(), abs(last - 0.5)) > width
        assert missed <= stats.binom.isf(1e-9, runs, beta)


# Widths without noise.


def test_splitting_and_rounding_have_their_published_widths():
    at = {"rows": 10_000, "beta": 0.05}
    splitting = [hoeffding_splitting_half_width(queries=k, **at) for k in (10, 100, 1000, 10**5)]
    assert splitting == pytest.approx([0.055, 0.204, 0.728, math.inf], abs=5e-4)
    for rows, queries in ((1000, 100), (10_000, 1000), (100_000, 10_000)):
        width = rounded_answers_half_width(rows=rows, queries=queries, beta=0.05, levels=101)
        assert width - 0.5 / 101 == pytest.approx(0.48, abs=5e-3)


def test_the_best_number_of_levels_is_the_best_and_one_query_is_a_plain_interval():
    one = {"rows": 1000, "queries": 1, "beta": 0.05}
    plain = naive_union_half_width(**one)
    assert plain == hoeffding_splitting_half_width(**one) == math.sqrt(math.log(40.0) / 2000.0)
    assert rounded_answers_half_width(**one) == pytest.approx(plain + 0.5e-4)  # ten thousand levels
    for queries, best in ((50, None), (1000, 2)):
        at = {"rows": 1000 if best is None else 10, "queries": queries, "beta": 0.05}
        tried = {levels: rounded_answers_half_width(**at, levels=levels) for levels in range(2, 200)}
        assert rounded_answers_half_width(**at) == min(tried.values())
        assert best in (None, min(tried, key=tried.__getitem__))


@for_each("width", [hoeffding_splitting_half_width, naive_union_half_width, rounded_answers_half_width])
def test_widths_grow_with_queries_and_fall_with_rows(width):
    by_queries = [width(rows=1000, queries=k, beta=0.05) for k in (1, 5, 50, 500)]
    by_rows = [width(rows=n, queries=10, beta=0.05) for n in (10, 100, 1000)]
    assert (by_queries, by_rows) == (sorted(by_queries), sorted(by_rows, reverse=True))
    assert width(rows=1, queries=1, beta=0.05) >= math.sqrt(math.log(40.0) / 2.0)
