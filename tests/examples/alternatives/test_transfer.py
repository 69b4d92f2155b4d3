"""Transfer theorems and the widths they give: published figures, the optimisation, limits, refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from alternatives.gaussian_width import _exponent, gaussian_delta, gaussian_width
from alternatives.hoeffding_widths import (
    hoeffding_splitting_half_width,
    naive_union_half_width,
    rounded_answers_half_width,
)
from alternatives.transfer import (
    bassily_error,
    expected_error,
    transfer_error,
    transfer_failure,
    transfer_slack,
)
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from reusable_holdout.errors import InputError

MECHANISM = {"sample_error": 0.02, "sample_beta": 1e-6, "epsilon": 0.05, "delta": 1e-7}
ANALYSES = [
    "bassily",
    "transfer",
    "transfer-published",
    "information",
    "information-published",
    "conditional",
]

probabilities = st.floats(1e-12, 0.5)


# ---- the theorems


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
def test_error_and_failure_probability_are_inverse_to_each_other(
    sample_error, sample_beta, epsilon, delta, beta
):
    given_numbers = {
        "sample_error": sample_error,
        "sample_beta": sample_beta,
        "epsilon": epsilon,
        "delta": delta,
    }
    error = transfer_error(**given_numbers, beta=beta)
    assert transfer_failure(**given_numbers, error=error) == pytest.approx(beta, rel=1e-3)


def test_the_transfer_theorem_is_the_stated_formula_at_its_slack():
    slack = transfer_slack(sample_beta=1e-6, delta=1e-7, beta=0.05)
    expected = 0.02 + math.expm1(0.05) + slack.c + 2.0 * slack.d
    assert transfer_error(**MECHANISM, beta=0.05) == pytest.approx(expected)


@for_each("theorem", [transfer_error, bassily_error])
@for_each("name", MECHANISM)
def test_worse_mechanisms_have_larger_errors(theorem, name):
    numbers = [MECHANISM[name] * factor for factor in (0.5, 1.0, 2.0, 10.0)]
    errors = [theorem(**{**MECHANISM, name: number}, beta=0.05) for number in numbers]
    assert errors == sorted(errors)
    assert errors[0] < errors[-1]


def test_a_perfectly_private_and_accurate_mechanism_has_its_sample_error_on_the_population():
    perfect = {"sample_error": 0.01, "sample_beta": 0.0, "epsilon": 0.0, "delta": 0.0}
    assert transfer_error(**perfect, beta=1e-9) == 0.01
    assert transfer_failure(**perfect, error=0.011) == 0.0
    assert bassily_error(**perfect, beta=0.05) > 0.01  # the monitor argument loses a factor


def test_the_theorem_says_nothing_below_the_sample_error_and_at_enormous_epsilon():
    assert transfer_failure(**MECHANISM, error=0.02) == 1.0
    assert transfer_error(**{**MECHANISM, "epsilon": 1e4}, beta=0.05) == math.inf


def test_jungs_theorem_improves_on_bassilys_at_every_usual_beta():
    for beta in (0.5, 0.1, 0.05, 0.01, 1e-4):
        mechanism = {**MECHANISM, "sample_beta": 1e-9, "delta": 1e-9}
        assert transfer_error(**mechanism, beta=beta) < bassily_error(**mechanism, beta=beta)


def test_the_expected_error_is_mcsherrys_and_randomised_response_stays_below_it():
    assert expected_error(epsilon=0.0, delta=0.0) == 0.0
    assert expected_error(epsilon=0.3, delta=0.01) == math.expm1(0.3) + 0.01
    # one fair bit, released truthfully with odds exp(e), then asked about: "is the row's bit the released one?"
    epsilon = 0.3
    bias = math.exp(epsilon) / (1.0 + math.exp(epsilon)) - 0.5
    assert 0.0 < bias <= expected_error(epsilon=epsilon, delta=0.0)


@for_each(
    "wrong",
    [
        {"sample_error": -0.1},
        {"sample_error": math.nan},
        {"sample_beta": 1.0},
        {"sample_beta": -1e-9},
        {"epsilon": -0.1},
        {"epsilon": math.inf},
        {"delta": 1.0},
        {"delta": math.nan},
        {"beta": 0.0},
        {"beta": 1.0},
    ],
)
@for_each("theorem", [transfer_error, bassily_error])
def test_numbers_out_of_range_are_refused(theorem, wrong):
    with pytest.raises(InputError, match=f"{next(iter(wrong))} "):
        theorem(**{**MECHANISM, "beta": 0.05, **wrong})


@for_each(
    "wrong",
    [
        {"sample_error": math.inf},
        {"sample_error": -1e-9},
        {"sample_beta": 1.0},
        {"sample_beta": -1e-9},
        {"delta": 1.0},
        {"delta": -1e-9},
        {"epsilon": math.inf},
        {"error": 0.0},
        {"error": math.inf},
        {"error": math.nan},
    ],
)
def test_a_failure_probability_of_wrong_numbers_is_refused(wrong):
    with pytest.raises(InputError, match=f"{next(iter(wrong))} "):
        transfer_failure(**{**MECHANISM, "error": 0.1, **wrong})


@for_each(
    "wrong", [{"delta": 1.0}, {"delta": 1.5}, {"delta": -1e-9}, {"epsilon": -1e-9}, {"epsilon": math.nan}]
)
def test_a_bias_of_wrong_numbers_is_refused(wrong):
    with pytest.raises(InputError, match=f"{next(iter(wrong))} "):
        expected_error(**{"epsilon": 0.1, "delta": 0.1, **wrong})


@for_each("wrong", [{"sample_beta": 1.0}, {"delta": 1.0}, {"beta": 1.0}, {"beta": 0.0}, {"beta": 1.2}])
def test_a_slack_of_wrong_numbers_is_refused(wrong):
    with pytest.raises(InputError, match=f"{next(iter(wrong))} "):
        transfer_slack(**{"sample_beta": 0.1, "delta": 0.1, "beta": 0.5, **wrong})


def test_an_error_without_room_fails_for_certain_and_one_with_little_for_certain_too():
    exact = {"sample_error": 0.25, "sample_beta": 0.01, "epsilon": 0.0, "delta": 0.0}
    assert transfer_failure(**exact, error=0.25) == 1.0
    assert transfer_failure(**exact, error=0.25 + 0.01 / 1.2) == 1.0
    assert transfer_failure(**exact, error=0.25 + 0.01 / 0.8) == pytest.approx(0.8)


@for_each("beta", [0.9, 0.5, 0.3, 0.051, 0.05])
def test_the_monitors_argument_is_the_stated_formula(beta):
    copies = next(copies for copies in range(1, 99) if (copies + 1) * beta > 1.0)
    caught = 1.0 - (1.0 - beta) ** copies
    expected = (0.02 + math.exp(0.05) - 1.0 + copies * (1e-6 + 1e-7)) / caught
    assert bassily_error(**MECHANISM, beta=beta) == pytest.approx(expected, rel=1e-12)


def test_as_large_an_epsilon_as_has_a_float_has_an_error():
    assert expected_error(epsilon=709.0, delta=0.0) == math.expm1(709.0)
    assert expected_error(epsilon=710.0, delta=0.0) == math.inf


# ---- Gaussian noise


@pytest.mark.parametrize(
    ("analysis", "published"),
    [("information-published", [0.108, 0.182, 0.322]), ("transfer-published", [0.150, 0.281, 0.529])],
)
def test_published_widths_at_ten_thousand_rows(analysis, published):
    widths = [
        gaussian_width(rows=10_000, queries=k, beta=0.05, analysis=analysis).half_width
        for k in (10, 100, 1000)
    ]
    assert widths == pytest.approx(published, abs=5e-4)


@for_each("rows", [1000, 10_000, 10**6])
@for_each("beta", [0.05, 1e-4])
def test_the_best_analysis_is_the_narrowest_and_tightened_forms_are_narrower_than_published(rows, beta):
    for queries in (1, 30, 1000):
        at = {"rows": rows, "queries": queries, "beta": beta}
        widths = {way: gaussian_width(**at, analysis=way).half_width for way in ANALYSES}
        assert gaussian_width(**at).half_width == min(widths.values())
        assert widths["information"] <= widths["information-published"]
        assert widths["transfer"] <= widths["transfer-published"]
        assert widths["transfer"] <= widths["bassily"]
        assert widths["conditional"] <= widths["transfer"]  # the same argument with nothing given away


@for_each("analysis", ANALYSES)
def test_widths_grow_with_queries_and_shrink_with_rows_and_beta(analysis):
    def width(rows=10_000, queries=100, beta=0.05):
        return gaussian_width(rows=rows, queries=queries, beta=beta, analysis=analysis).half_width

    by_queries = [width(queries=k) for k in (1, 10, 100, 1000, 10**6)]
    by_rows = [width(rows=n) for n in (10, 1000, 10**4, 10**6)]
    by_beta = [width(beta=b) for b in (1e-8, 1e-4, 0.05, 0.3)]
    assert by_queries == sorted(by_queries)
    assert by_rows == sorted(by_rows, reverse=True)
    assert by_beta == sorted(by_beta, reverse=True)
    assert by_queries[-1] <= 1.0


def test_the_information_width_is_minimal_over_noise_and_share_on_a_grid():
    rows, queries, beta = 10_000, 100, 0.05
    best = gaussian_width(rows=rows, queries=queries, beta=beta, analysis="information").half_width
    for noise in np.geomspace(1e-3, 0.1, 60):
        information = queries / (8.0 * rows * noise**2)
        for share in np.linspace(0.2, 0.999, 60) * beta:
            exponents = np.linspace(-math.log(share), (information + 1.0) / share + 10.0, 4000)[1:]
            rest = math.log1p(-share) - np.log1p(-np.exp(-exponents))
            divergence = share * (math.log(share) + exponents) + (1.0 - share) * rest
            exponent = exponents[np.searchsorted(divergence, information)]  # from above
            reach = stats.norm.isf((beta - share) / (2.0 * queries))
            assert math.sqrt(exponent / (2.0 * rows)) + noise * reach >= best - 1e-9


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


def test_the_gaussian_delta_agrees_with_numerical_integration():
    x = np.linspace(-12.0, 14.0, 400_001)
    for privacy, epsilon in ((0.3, 0.2), (1.0, 1.0), (2.0, 0.0)):
        excess = stats.norm.pdf(x, privacy) - math.exp(epsilon) * stats.norm.pdf(x)
        expected = float(np.sum(np.maximum(excess, 0.0)) * (x[1] - x[0]))
        assert gaussian_delta(privacy=privacy, epsilon=epsilon) == pytest.approx(expected, rel=1e-6)
    assert gaussian_delta(privacy=0.01, epsilon=5.0) == 0.0


def test_gaussian_widths_refuse_wrong_input():
    good = {"rows": 100, "queries": 10, "beta": 0.05}
    for wrong in ({"rows": 0}, {"queries": 0}, {"beta": 0.0}, {"beta": 1.0}, {"analysis": "guess"}):
        with pytest.raises(InputError):
            gaussian_width(**{**good, **wrong})
    for privacy, epsilon in ((0.0, 1.0), (1.0, -1.0), (math.inf, 1.0)):
        with pytest.raises(InputError):
            gaussian_delta(privacy=privacy, epsilon=epsilon)


# ---- without noise


def test_splitting_and_rounding_have_the_widths_of_the_design():
    splitting = [
        hoeffding_splitting_half_width(rows=10_000, queries=k, beta=0.05) for k in (10, 100, 1000, 10**5)
    ]
    assert splitting == pytest.approx([0.055, 0.204, 0.728, math.inf], abs=5e-4)
    for rows, queries in ((1000, 100), (10_000, 1000), (100_000, 10_000)):
        width = rounded_answers_half_width(rows=rows, queries=queries, beta=0.05, levels=101)
        assert width - 0.5 / 101 == pytest.approx(0.48, abs=5e-3)


def test_the_best_number_of_levels_is_the_best_and_one_query_is_a_plain_interval():
    best = rounded_answers_half_width(rows=1000, queries=50, beta=0.05)
    tried = [rounded_answers_half_width(rows=1000, queries=50, beta=0.05, levels=m) for m in range(2, 200)]
    assert best == min(tried)
    plain = naive_union_half_width(rows=1000, queries=1, beta=0.05)
    assert plain == math.sqrt(math.log(40.0) / 2000.0)
    assert hoeffding_splitting_half_width(rows=1000, queries=1, beta=0.05) == plain
    assert rounded_answers_half_width(rows=1000, queries=1, beta=0.05) == pytest.approx(plain + 0.5e-4)


@for_each("width", [hoeffding_splitting_half_width, naive_union_half_width, rounded_answers_half_width])
def test_widths_without_noise_are_monotone_and_refuse_wrong_input(width):
    by_queries = [width(rows=1000, queries=k, beta=0.05) for k in (1, 5, 50, 500)]
    by_rows = [width(rows=n, queries=10, beta=0.05) for n in (10, 100, 1000)]
    assert by_queries == sorted(by_queries)
    assert by_rows == sorted(by_rows, reverse=True)
    for wrong in ({"rows": 0}, {"queries": 0}, {"beta": 0.0}, {"beta": 1.0}, {"beta": 1.2}):
        with pytest.raises(InputError):
            width(**{"rows": 100, "queries": 10, "beta": 0.05, **wrong})


def test_a_single_level_is_refused():
    with pytest.raises(InputError, match="levels"):
        rounded_answers_half_width(rows=100, queries=10, beta=0.05, levels=1)


def test_levels_are_tried_from_two_to_ten_thousand():
    most = rounded_answers_half_width(rows=10, queries=1, beta=0.05, levels=10_000)
    assert rounded_answers_half_width(rows=10, queries=1, beta=0.05) == most
    fewest = rounded_answers_half_width(rows=10, queries=1000, beta=0.05, levels=2)
    assert rounded_answers_half_width(rows=10, queries=1000, beta=0.05) == fewest


@for_each("width", [hoeffding_splitting_half_width, naive_union_half_width, rounded_answers_half_width])
def test_one_query_on_one_row_is_the_least_that_is_answered(width):
    assert width(rows=1, queries=1, beta=0.05) >= math.sqrt(math.log(40.0) / 2.0)
    assert gaussian_width(rows=1, queries=1, beta=0.05).half_width == 1.0


def test_two_levels_are_the_fewest():
    two = rounded_answers_half_width(rows=1000, queries=1, beta=0.05, levels=2)
    assert two == pytest.approx(math.sqrt(math.log(40.0) / 2000.0) + 0.25)


@for_each(("information", "share"), [(0.1, 0.04), (0.5, 0.01), (20.0, 0.3)])
def test_an_exponent_has_exactly_the_information_as_its_divergence(information, share):
    exponent = _exponent(information, share)
    rare = math.exp(-exponent)
    divergence = share * (math.log(share) + exponent) + (1 - share) * (math.log1p(-share) - math.log1p(-rare))
    assert divergence == pytest.approx(information, rel=1e-9)
    assert _exponent(information, 0.0) == math.inf
