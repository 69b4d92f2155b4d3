"""Statements of the source documents that no other test checks, those that are wrong in print among them.

docs/mechanisms.md lists the documents and the places where the other statements are checked.
"""

import math

import numpy as np
import pytest
from alternatives import expected_error, naive_union_half_width, transfer_failure
from cases import for_each
from scipy import stats

from reusable_holdout import mechanisms
from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting import optimal_composition, optimal_epsilon_each

# Sparse vector lectures.


@for_each(
    ("epsilon", "count", "delta"), [(0.1, 1, 1e-9), (0.9, 10, 1e-3), (0.9, 1000, 1e-9), (50.0, 10, 0.5)]
)
def test_the_corollary_of_advanced_composition_holds_below_1_and_is_refused_where_it_fails(
    epsilon, count, delta
):
    """Corollary 6 has no condition in print; Dwork and Roth (2014), Corollary 3.21, ask for an epsilon below 1."""
    each = epsilon / math.sqrt(8 * count * math.log(1 / delta))
    assert (optimal_composition(epsilon=each, count=count, delta=delta) <= epsilon) is (epsilon < 1)
    if epsilon > 1:
        with pytest.raises(InputError, match="advanced composition"):
            mechanisms.sparse_scales(charges=count, epsilon=epsilon, delta=delta, sensitivity=1)


def test_sparse_answers_exponentially_many_queries_where_numbers_are_answered_as_a_square():
    """Section 1: k ~ exp(epsilon alpha) in place of k ~ epsilon^2 alpha^2, alpha being the accuracy."""
    epsilon, beta, delta = 0.5, 0.05, 1e-6
    stream = mechanisms.AboveThreshold(0.0, epsilon=epsilon)

    def of_numbers(queries):
        each = optimal_epsilon_each(epsilon=epsilon, count=queries, delta=delta)
        return mechanisms.laplace_accuracy(epsilon=each, beta=beta / queries)

    few, many, most = (stream.accuracy(queries=10**power, beta=beta) for power in (2, 4, 6))
    assert many - few == pytest.approx(most - many, rel=1e-3)
    assert many - few == pytest.approx(8 * math.log(100) / epsilon, rel=1e-3)
    assert of_numbers(10_000) / of_numbers(100) == pytest.approx(10, rel=0.7)
    assert of_numbers(10_000) > 3 * many


def test_the_books_second_epsilon_needs_the_factor_epsilon_that_the_slides_leave_out():
    """Algorithm 3, delta above 0: ``epsilon_2 = 2 / (sqrt(512) + 1)`` in print spends epsilon only if that is 1."""
    root = math.sqrt(512)
    for epsilon in (0.1, 1.0, 2.0):
        first, printed = root / (root + 1) * epsilon, 2 / (root + 1)
        spent = first + printed / 2
        assert (spent == pytest.approx(epsilon)) == (epsilon == 1.0)
        assert first + printed * epsilon / 2 == pytest.approx(epsilon)
    scales = mechanisms.numeric_sparse_scales(charges=3, epsilon=0.1, delta=1e-6, sensitivity=1, split="book")
    noise = math.sqrt(32 * 3 * math.log(2 / 1e-6)) / (2 / (root + 1) * 0.1)
    assert float(scales.answer) == pytest.approx(noise, rel=1e-9)


# Composition of many counting queries.


# Generalization.


@for_each("hypotheses", [1, 20, 10**6])
@for_each("alpha", [0.1, 0.03])
def test_rows_enough_for_a_family_by_hoeffdings_bound(hypotheses, alpha):
    """``n = ln(2 |H| / beta) / (2 alpha^2)``, and each exact binomial chance is within its share of beta."""
    beta = 0.05
    rows = math.ceil(math.log(2 * hypotheses / beta) / (2 * alpha**2))
    assert naive_union_half_width(rows=rows, queries=hypotheses, beta=beta) <= alpha
    assert naive_union_half_width(rows=rows - 1, queries=hypotheses, beta=beta) > alpha
    for mean in (0.5, 0.2):
        off = stats.binom.cdf(math.floor(rows * (mean - alpha)), rows, mean)
        off += stats.binom.sf(math.ceil(rows * (mean + alpha)) - 1, rows, mean)
        assert off <= beta / hypotheses


def test_the_expected_error_is_within_two_epsilon_and_delta_as_far_as_the_slides_step_goes():
    """``exp(e) <= 1 + 2e`` for e < 1."""
    for epsilon in (1e-3, 0.5, 1.0):
        assert expected_error(epsilon=epsilon, delta=1e-3) <= 2 * epsilon + 1e-3
    assert expected_error(epsilon=1.3, delta=0.0) > 2 * 1.3


@for_each("epsilon", [0.05, 0.2, 1.0])
def test_an_expected_error_of_epsilon_and_delta_as_the_slides_state_it_is_true(epsilon):
    """The laws of (row of S, h) and (fresh row, h) are (e, d)-indistinguishable; no event of such laws differs by more.

    Over all pairs of laws of an event: p <= exp(e) q + d and 1 - q <= exp(e) (1 - p) + d.
    """
    delta, growth = 1e-3, math.exp(epsilon)
    q = np.linspace(0, 1, 100_001)
    p = np.minimum.reduce([growth * q + delta, 1 - (1 - q - delta) / growth, np.ones_like(q)])
    assert (p - q).max() <= epsilon + delta
    assert (p - q).max() == pytest.approx(math.tanh(epsilon / 2) + 2 * delta / (1 + growth), abs=1e-4)


@for_each("epsilon", [0.1, 0.01])
@for_each("delta", [1e-4, 1e-9])
def test_an_error_beyond_a_few_epsilon_has_a_probability_of_the_order_of_delta_over_epsilon(epsilon, delta):
    """The form of the tight theorem, with constants: a mechanism whose answers are the sample's own means."""
    failure = transfer_failure(
        sample_error=0.0, sample_beta=0.0, epsilon=epsilon, delta=delta, error=4 * epsilon
    )
    assert failure <= 2 * delta / epsilon


# Uses of target charging.


def test_answers_that_repeat_the_last_one_are_free():
    """Pay only for change: a count over a stream of updates, the last answer as the prior."""
    counts = np.repeat([5_000.0, 20_000.0, 8_000.0], 200)
    stream = mechanisms.TargetCharging(charges=4, epsilon=1.0, delta=1e-6, seed=2)
    last, answers = 0.0, []
    for count in counts:
        last = stream.not_prior(float(count), last, tolerance=1_000.0)
        answers.append(last)
    assert np.abs(np.array(answers) - counts).max() <= 2_000
    assert len(set(answers)) == 3
    assert stream.charges_left == 1  # 600 answers, 3 of them paid for
