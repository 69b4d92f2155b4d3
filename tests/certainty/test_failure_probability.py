"""The failure probability, part by part: what the noise, the questions and the finals of a certificate spend of it."""

import itertools
import math
from itertools import pairwise

import pytest
from cases import for_each
from certainty.test_certificate import GRID, certificate

from reusable_holdout.certainty import THEORY, NoiseTails, fixed_queries_half_width
from reusable_holdout.certainty.certificate import GRID_SLACK
from reusable_holdout.noise import Calibration
from reusable_holdout.ways import tidy


def laplace_tail(reach, *, scale):
    """P(Lap(scale) > reach)."""
    return 0.5 * math.exp(-reach / scale)


def discrete_laplace_tail(reach, *, scale):
    """P(X > reach) for X on the integers with probabilities proportional to exp(-|x| / scale)."""
    return math.exp(-(math.floor(reach) + 1) / scale) / (1.0 + math.exp(-1.0 / scale))


@for_each("beta", [0.5, 0.05, 1e-4])
@for_each(("queries", "charges"), [(1, 0), (1, 1), (100, 5), (10**6, 200)])
def test_the_noise_exceeds_its_reach_with_a_twentieth_of_the_failure_probability(queries, charges, beta):
    """A value may be told at any question: a reveal has a value, and no charge. One threshold can err both ways.

    The questions are those of all views together; thresholds are each view's own, and half of their part is view 0's.
    """
    tails = [NoiseTails(queries=queries, charges=charges, beta=beta, view=view) for view in range(400)]
    parts = [0.5, *(0.5 / (view * (view + 1)) for view in range(1, 400))]
    reaches = [2.0 * math.log((charges + 1) / (0.1 * 0.05 * beta * part)) for part in parts]
    query_reaches = {round(one.comparison - reach, 6) for one, reach in zip(tails, reaches, strict=True)}
    assert len(query_reaches) == 1
    failures = (
        queries * laplace_tail(tails[0].comparison - reaches[0], scale=4.0)
        + sum(2 * (charges + 1) * laplace_tail(reach, scale=2.0) for reach in reaches)
        + 2 * queries * laplace_tail(tails[0].answer, scale=1.0)
    )
    unopened = 0.1 * 0.05 * beta * 0.5 / 400  # of the views from the 400th on
    assert failures + unopened == pytest.approx(0.05 * beta, rel=1e-9)


@for_each(("queries", "charges"), [(1, 1), (100, 5), (10**6, 200)])
def test_a_threshold_noise_that_is_held_is_paid_for_once(queries, charges):
    beta = 0.05
    tails = NoiseTails(queries=queries, charges=charges, beta=beta, mechanism="standard-svt")
    threshold, query, answer = Calibration("standard-svt", charges).scales
    threshold_reach = threshold * math.log(2 / (0.1 * 0.05 * beta))  # half is for views that may be opened
    failures = (
        queries * laplace_tail(tails.comparison - threshold_reach, scale=query)
        + 2 * 2 * laplace_tail(threshold_reach, scale=threshold)
        + 2 * queries * laplace_tail(tails.answer, scale=answer)
    )
    assert failures == pytest.approx(0.05 * beta, rel=1e-9)


@for_each(("queries", "charges"), [(1, 1), (100, 5), (10**6, 200)])
def test_noise_that_is_compared_and_released_is_paid_for_once(queries, charges):
    beta = 0.05
    tails = NoiseTails(queries=queries, charges=charges, beta=beta, mechanism="target-charging")
    assert tails.answer == tails.comparison
    failures = 2 * queries * laplace_tail(tails.comparison, scale=math.sqrt(20))
    assert failures == pytest.approx(0.05 * beta, rel=1e-9)


def test_no_noise_reaches_nowhere():
    tails = NoiseTails(queries=100, charges=5, beta=0.05, mechanism="noiseless")
    assert (tails.comparison, tails.answer) == (0.0, 0.0)


@for_each("noise_scale", [1e-2, 1e-4, 1e-7, 1e-9, 1e-11])
def test_one_grid_unit_per_noise_pays_for_its_being_discrete(noise_scale):
    queries, charges, beta = 1000, 10, 0.05
    scale, tails = noise_scale * GRID, NoiseTails(queries=queries, charges=charges, beta=beta)
    threshold_reach = 2.0 * math.log((charges + 1) / (0.1 * 0.05 * beta))
    failures = (
        queries * discrete_laplace_tail((tails.comparison - threshold_reach) * scale + 1, scale=4 * scale)
        + (charges + 1) * discrete_laplace_tail(threshold_reach * scale + 1, scale=2 * scale)
        + 2 * queries * discrete_laplace_tail(tails.answer * scale + 1, scale=scale)
    )
    assert failures <= 0.05 * beta
    # two noises, the statistic, the prior and the threshold, rounded to the grid: a unit each, at most
    assert GRID_SLACK * GRID >= 5


@for_each("queries", [1, 7, 40])
@for_each("noise_scale", [0.0, 1e-4])
def test_all_levels_of_one_question_at_a_time_of_finals_and_of_the_noise_sum_to_at_most_beta(
    queries, noise_scale
):
    guard = certificate(queries=queries, noise_scale=noise_scale)
    most = min(queries, guard.charges)
    # each (i, j) stands for C(i - 1, j) sets of positions
    questions = sum(
        math.comb(i - 1, j)
        * math.exp(guard.log_level(guard.code.length(query=i, charges=j), sum(guard.shares)))
        for i, j in itertools.product(range(1, queries + 1), range(most))
        if j < i
    )
    # the last question's agreement or charge is followed by a final, as is every charge of the last
    finals = math.exp(guard.log_level(guard.code.final_length(charges=0), 1.0)) + sum(
        math.comb(last - 1, j - 1)
        * math.exp(guard.log_level(guard.code.final_length(charges=j, last_charge=last), 1.0))
        for j in range(1, most + 1)
        for last in range(j, queries + 1)
    )
    mechanism = 0.05 * guard.beta if noise_scale else 0.0
    assert 0.5 * guard.beta <= questions + finals + mechanism <= guard.beta * (1 + 1e-9)
    if queries >= guard.charges:  # a last charge after the last question is what the finals leave over
        most = guard.charges
        numbers = [0.1 * (most + 1) / (most * (j + 1)) for j in range(1, most + 1)]  # of j charges, times j
        left = 0.75 * THEORY.early_share * sum(numbers) / (queries + 1) * (guard.beta - mechanism)
        assert questions + finals + mechanism == pytest.approx(guard.beta - left, rel=1e-9)


def test_without_charges_the_certificate_costs_less_than_a_bit_more_than_fixed_questions():
    """A third of a bit for charged answers' sides, less than half a one for the final; the rest are the noise's."""
    guard = certificate()
    assert math.log2(1.0 / (0.8 * 0.25)) < 2.33
    fixed = fixed_queries_half_width(guard.bound, queries=1000, beta=0.8 * 0.25 * 0.95 * 0.05, estimate=0.9)
    assert guard.half_width(charges=0, nats=0.0, estimate=0.9) == pytest.approx(fixed, rel=1e-9)


def test_half_widths_rise_with_charges_and_with_what_they_tell():
    guard = certificate()
    widths = [guard.half_width(charges=j, nats=0.0, estimate=0.8) for j in range(10)]
    assert all(a < b for a, b in pairwise(widths))
    told = [guard.half_width(charges=3, nats=nats, estimate=0.8) for nats in (0.0, 3.0, 6.0, 60.0)]
    assert all(a < b for a, b in pairwise(told))
    lengths = [guard.final_length(charges=j, nats=0.0) for j in range(11)]
    finals = [guard.final_half_width(length=length, estimate=0.8) for length in lengths]
    assert all(a < b for a, b in pairwise(finals))
    assert all(final < width for final, width in zip(finals, widths, strict=False))


def test_a_value_is_told_coarser_than_the_noise_grid_and_within_its_slack():
    """Finer, the last digits of what is told would name the grid step; coarser, an interval would not hold it."""
    scores = [0.3 + step / GRID for step in range(1000)]
    told = [tidy(score) for score in scores]
    assert len(set(told)) < 800
    assert max(abs(value - score) for value, score in zip(told, scores, strict=True)) <= GRID_SLACK
    assert (tidy(-1.0), tidy(2.0)) == (0.0, 1.0)
