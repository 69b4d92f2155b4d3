"""Synthetic data: the whole output distribution on all neighbouring data sets of a tiny domain, and its accuracy."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from cases import for_each, refuses
from hypothesis import given
from hypothesis import strategies as st
from long_tests import MECHANISMS
from mechanisms.selection.selection_laws import is_rejected

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.selection import synthetic as module
from reusable_holdout.mechanisms.selection.synthetic import synthetic_accuracy, synthetic_data, synthetic_size

THIRDS = [[1.0, 0.0, 0.0], [0.25, 0.5, 1.0], [1.0, 1.0, 0.0]]
HALVES = [[0.5, 0.0, 0.5], [0.5, 0.5, 0.25]]  # narrower queries: less sensitivity, less noise


def exponents(rows, queries, monkeypatch, **how):
    """Return the exact exponents of all candidates, in order: the output distribution is their softmax."""
    found = []

    def listen(behind, rate, count, words):
        assert count == 1
        found.extend(rate * steps for steps in behind.tolist())
        return [0]

    with monkeypatch.context() as patch:
        patch.setattr(module, "first_rings", listen)
        synthetic_data(rows, queries, **how)
    return found


def log_law(found):
    with mpmath.workdps(40):
        terms = [-mpmath.mpf(x.numerator) / x.denominator for x in found]
        total = mpmath.log(mpmath.fsum(map(mpmath.exp, terms)))
        return [term - total for term in terms]


def multisets(cells, size):
    """Return all multisets in colexicographic order: sorted by their largest cell, then the next."""
    return sorted(
        itertools.combinations_with_replacement(range(cells), size), key=lambda cells_of: cells_of[::-1]
    )


@pytest.mark.parametrize("queries", [THIRDS, HALVES])
@pytest.mark.parametrize(("epsilon", "size"), [(0.5, 2), (1.0, 3), (4.0, 1)])
def test_the_draw_loses_no_more_than_epsilon_on_all_neighbours(queries, epsilon, size, monkeypatch):
    laws = {
        rows: log_law(exponents(rows, queries, monkeypatch, epsilon=epsilon, size=size))
        for rows in itertools.combinations_with_replacement(range(3), 4)
    }
    worst = 0.0
    for rows, law in laws.items():
        for place, cell in itertools.product(range(4), range(3)):
            other = laws[tuple(sorted([*rows[:place], cell, *rows[place + 1 :]]))]
            worst = max(worst, *(abs(float(a - b)) for a, b in zip(law, other, strict=True)))
    assert 0.4 * epsilon <= worst <= epsilon + 1e-12


def test_the_law_is_the_exponential_mechanism_over_multisets(monkeypatch):
    rows, size, epsilon = [0, 0, 1, 2, 2], 2, 0.75
    queries = [[Fraction(value) for value in query] for query in THIRDS]  # multiples of 2**-20, so exact
    found = exponents(rows, THIRDS, monkeypatch, epsilon=epsilon, size=size)
    expected = [
        Fraction(epsilon) * len(rows) / 2
        * max(
            abs(sum(query[cell] for cell in rows) / len(rows) - sum(query[cell] for cell in candidate) / size)
            for query in queries
        )
        for candidate in multisets(3, size)
    ]  # fmt: skip
    assert found == [value - min(expected) for value in expected]


def test_narrow_queries_have_less_noise_and_constant_ones_a_uniform_draw(monkeypatch):
    wide = exponents([0, 1, 2], [[1.0, 0.0, 0.0]], monkeypatch, epsilon=1.0, size=1)
    narrow = exponents([0, 1, 2], [[0.75, 0.5, 0.5]], monkeypatch, epsilon=1.0, size=1)
    assert narrow == wide
    for constant in ([[0.5, 0.5]], [[0.0, 0.0], [1.0, 1.0]]):
        assert exponents([0, 1], constant, monkeypatch, epsilon=1.0, size=2) == [0, 0, 0]


@given(st.integers(1, 6), st.integers(1, 5))
def test_places_number_the_multisets_in_colexicographic_order(cells, size):
    expected = multisets(cells, size)
    assert [
        tuple(module._candidate(place, size, cells).tolist()) for place in range(len(expected))
    ] == expected
    powers = np.array([7**cell for cell in range(cells)], dtype=np.int64)
    assert module._sums(powers, size).tolist() == [sum(7**cell for cell in chosen) for chosen in expected]


@pytest.mark.long(*MECHANISMS)
def test_draws_follow_the_law_and_not_that_of_a_larger_epsilon(monkeypatch):
    rows = [0] * 6 + [2] * 2
    drawn = (synthetic_data(rows, THIRDS, epsilon=2.0, size=2, seed=seed) for seed in range(3000))
    counts = Counter(tuple(each.tolist()) for each in drawn)
    for epsilon, wrong in ((2.0, False), (3.0, True)):
        law = log_law(exponents(rows, THIRDS, monkeypatch, epsilon=epsilon, size=2))
        chances = {place: math.exp(x) for place, x in zip(multisets(3, 2), law, strict=True)}
        assert is_rejected(counts, chances) is wrong


@pytest.mark.parametrize("beta", [0.5, 0.05, 0.001])
@pytest.mark.parametrize("rows", [[0] * 40, [0] * 20 + [1] * 20, [0, 1, 2, 2] * 10])
def test_the_accuracy_theorem_holds_for_the_exact_law(rows, beta, monkeypatch):
    epsilon, size, n = 1.5, 3, len(rows)
    queries = np.array(THIRDS)
    law = np.exp(
        [float(x) for x in log_law(exponents(rows, queries, monkeypatch, epsilon=epsilon, size=size))]
    )
    truth = queries[:, rows].mean(axis=1)
    errors = [np.abs(queries[:, list(y)].mean(axis=1) - truth).max() for y in multisets(3, size)]
    alpha = synthetic_accuracy(rows=n, queries=3, cells=3, size=size, epsilon=epsilon, beta=beta)
    assert law[np.array(errors) > alpha].sum() <= beta
    assert min(errors) <= math.sqrt(math.log(6) / (2 * size))


@given(st.integers(1, 10**6), st.floats(0.01, 1.0))
def test_the_size_is_the_smallest_that_the_bound_allows(queries, accuracy):
    size = synthetic_size(queries=queries, accuracy=accuracy)
    assert math.sqrt(math.log(2 * queries) / (2 * size)) <= accuracy * (1 + 1e-12)
    assert size == 1 or math.sqrt(math.log(2 * queries) / (2 * (size - 1))) > accuracy * (1 - 1e-12)
    if queries > 2:
        assert size <= math.ceil(math.log(queries) / accuracy**2) + 1


def test_a_large_epsilon_gives_the_best_candidate():
    rows = [0] * 100 + [1] * 200 + [3] * 100
    assert synthetic_data(rows, np.eye(4), epsilon=1e6, size=4).tolist() == [0, 1, 1, 3]


def test_the_accuracy_sets_the_size_and_a_seed_repeats_the_draw():
    first, second = (
        synthetic_data([0, 1, 1], np.eye(2), epsilon=1.0, accuracy=0.4, seed=4) for _ in range(2)
    )
    assert first.tolist() == second.tolist()
    assert len(first) == synthetic_size(queries=2, accuracy=0.4) == 5
    assert first.dtype == np.int64


def test_too_many_candidates_are_named_and_refused():
    with pytest.raises(
        InputError, match=r"at most 2,000,000 .* 20 rows over 30 cells are about 2\.8e\+13; take"
    ):
        synthetic_data([0], np.eye(30), epsilon=1.0, size=20)
    with pytest.raises(InputError, match=r"about \d\.\de\+\d+; take a smaller size"):
        synthetic_data([0], np.eye(500), epsilon=1.0, accuracy=0.05)


def test_as_many_candidates_as_the_limit_are_enumerated_and_one_more_is_refused(monkeypatch):
    """Counted exactly: the log of two million candidates is more than that of the limit, by rounding."""
    assert math.lgamma(2_000_001) - math.lgamma(2_000_000) > math.log(module._MOST_CANDIDATES)
    monkeypatch.setattr(module, "_MOST_CANDIDATES", 2001)
    query = np.zeros((1, 2002))
    query[0, 1999] = 1.0
    assert synthetic_data([1999] * 9, query[:, 1:], epsilon=1e6, size=1).size == 1
    with pytest.raises(InputError, match=r"at most 2,001 .* 1 rows over 2002 cells are about 2\.0e\+3; take"):
        synthetic_data([0], query, epsilon=1.0, size=1)
    assert len(synthetic_data([0, 1, 2], np.eye(3), epsilon=1.0, size=61)) == 61  # 63 * 62 / 2 = 1953
    refuses(InputError, "62 rows over 3 cells", synthetic_data, [0], np.eye(3), epsilon=1.0, size=62)  # 2016


@for_each(
    ("rows", "queries", "cells", "size", "epsilon"),
    [(10**5, 7, 5, 12, 2.0), (10**4, 1, 9, 3, 0.5), (1, 1, 1, 1, 100.0)],
)
def test_the_accuracy_is_that_of_the_notes_and_at_most_certain(rows, queries, cells, size, epsilon):
    found = synthetic_accuracy(rows=rows, queries=queries, cells=cells, size=size, epsilon=epsilon, beta=0.01)
    lost = 2 * math.log(math.comb(cells + size - 1, size) / 0.01) / (rows * epsilon)
    assert found == pytest.approx(math.sqrt(math.log(2 * queries) / (2 * size)) + lost + 2**-20, rel=1e-12)
    assert synthetic_accuracy(rows=1, queries=9, cells=9, size=1, epsilon=0.01, beta=1e-9) == 1.0


def test_rows_times_size_is_bounded_so_that_the_sums_fit():
    def question(rows):
        return module._Question(np.array([rows, 0]), np.zeros((1, 2), dtype=np.int64))

    assert module._check_size(2**20, question(2**22 - 1)) == 2**20
    refuses(InputError, r"below 2\*\*42; got 4194304 rows", module._check_size, 2**20, question(2**22))
    assert (module._MOST_PRODUCT - 1) * module._UNIT < 2**63
