"""Kraft sums by exact dynamic programming, checked against every strategy of small games; nothing is sampled."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from reusable_holdout.errors import InputError
from reusable_holdout.validity import FAILURE_NATS, PLANNED_NATS_PER_CHARGE, TranscriptCode, ValueCode

# A weight of one node, without the values' part: of question `query` of K, asked in a batch that starts after `before`
# questions, `charges` of at most `most` of which were charged.


def number_of_charges(charges, most):
    return Fraction(1, 2 * (most - 1)) if charges else Fraction(1, 2)


WEIGHTS = {
    "the code": lambda queries, query, before, charges, most: (
        number_of_charges(charges, most) / math.comb(queries, charges + 1)
    ),
    "index and positions": lambda queries, query, before, charges, most: (
        number_of_charges(charges, most) / (queries * math.comb(query - 1, charges))
    ),
    "the batch's start": lambda queries, query, before, charges, most: (
        number_of_charges(charges, most) / (queries * math.comb(before, charges))
    ),
}
declared_or_not = st.one_of(st.none(), st.integers(1, 10**6))


def worst_kraft_sum(queries, weight, *, most, batches=None, values=Fraction(1)):
    """Largest sum of weights any strategy reaches; `batches` limits the sizes, `values` is all values' mass.

    A charged value multiplies what follows by its own weight, so the best continuation is the same after every value
    and every set of positions: the game's state is (questions asked, charges), and the recursion is exact. A guard
    that has made `most` charges has halted, in the middle of a batch too.
    """

    @cache
    def worst(before, charges):
        if charges >= most:
            return Fraction(0)
        sizes = range(1, queries - before + 1) if batches is None else batches(before)
        return max((after(before, charges, size) for size in sizes), default=Fraction(0))

    def after(before, charges, size):
        asked = sum(
            weight(queries, query, before, charges, most) for query in range(before + 1, before + size + 1)
        )
        return asked + sum(
            math.comb(size, hits) * values**hits * worst(before + size, charges + hits)
            for hits in range(min(size, most - charges - 1) + 1)
        )

    return worst(0, 0)


def kraft_sums_of_all_strategies(code, value_weight):
    """Kraft sum of every deterministic strategy, history by history, from the public lengths alone."""

    def sums(before, charges, nats):
        if before == code.queries or charges >= code.charges:
            return [0.0]
        found = []
        for size in range(1, code.queries - before + 1):
            lengths = code.lengths(first=before + 1, count=size, charges=charges, nats=nats)
            # outcomes of the batch: each question agreed or charged; the sub-strategy may differ after each
            continuations = [
                sums(before + size, charges + sum(hits), nats - sum(hits) * math.log(value_weight))
                for hits in itertools.product((0, 1), repeat=size)
            ]
            asked = float(np.exp(-lengths).sum())
            found += [asked + sum(chosen) for chosen in itertools.product(*continuations)]
        return found

    return sums(0, 0, 0.0)


@for_each("most", [2, 3, 5, 25])
@for_each("queries", [1, 2, 3, 5, 9, 16, 25])
def test_no_strategy_overfills_the_kraft_sum_even_when_answers_choose_the_batches(queries, most):
    total = worst_kraft_sum(queries, WEIGHTS["the code"], most=most)
    assert total <= 1
    assert total >= Fraction(1, 2)  # the first batch alone weighs a half


@for_each(("queries", "most"), [(4, 3), (12, 5), (20, 8)])
def test_one_question_at_a_time_fills_the_kraft_sum(queries, most):
    """Every set of at most `most` questions, the last asked and the others charged, is a history: nothing is wasted."""
    single = worst_kraft_sum(
        queries, WEIGHTS["the code"], most=most, batches=lambda before: [1] if before < queries else []
    )
    assert single == 1


def test_the_last_question_costs_less_than_by_index_and_positions():
    for charges in range(10):
        ours, apart = (
            WEIGHTS[name](1000, 1000, None, charges, 10) for name in ("the code", "index and positions")
        )
        assert ours / apart == Fraction(charges + 1)


def test_counting_positions_before_the_batch_overfills_the_kraft_sum_once_answers_choose_the_batches():
    weight = WEIGHTS["the batch's start"]
    assert worst_kraft_sum(12, weight, most=4) > 1
    # and it is this freedom that does it: every schedule of sizes fixed in advance stays within 1
    for cuts in itertools.product((False, True), repeat=7):
        starts = [0, *(i + 1 for i, cut in enumerate(cuts) if cut), 8]
        sizes = {start: [end - start] for start, end in itertools.pairwise(starts)}
        fixed = worst_kraft_sum(8, weight, most=4, batches=lambda before, sizes=sizes: sizes.get(before, []))
        assert fixed <= 1


@for_each("queries", [2, 3, 4, 5])
@for_each("most", [2, 3, 9])
@for_each("value_weight", [0.9999, 0.3])
def test_the_dynamic_programme_finds_the_worst_of_all_enumerated_strategies(queries, most, value_weight):
    sums = kraft_sums_of_all_strategies(TranscriptCode(queries=queries, charges=most), value_weight)
    if most > queries:
        assert len(sums) == {2: 2, 3: 6, 4: 54, 5: 4470}[queries]
    worst = worst_kraft_sum(queries, WEIGHTS["the code"], most=most, values=Fraction(value_weight))
    assert max(sums) == pytest.approx(float(worst), rel=1e-12)
    assert max(sums) <= 1.0


def test_a_length_is_minus_the_log_of_the_weight_the_kraft_sums_are_about():
    for queries, most, nats in ((7, 4, 0.0), (40, 40, 2.5)):
        code = TranscriptCode(queries=queries, charges=most)
        for query in range(1, queries + 1):
            for charges in range(min(query, most)):
                weight = WEIGHTS["the code"](queries, query, None, charges, most)
                length = code.length(query=query, charges=charges, nats=nats)
                assert length == pytest.approx(nats - math.log(weight), abs=1e-11)


def test_undeclared_questions_weigh_one_together():
    code = TranscriptCode()
    weights = sum(math.exp(-code.length(query=i, charges=0)) for i in range(1, 2001))
    assert weights == pytest.approx(0.5 * (1 - 1 / 2001), rel=1e-12)  # 1 / (i (i + 1)) telescopes
    for i in (1, 5, 40):  # all histories of the i-th question, but the one in which i charges were before it
        together = sum(math.comb(i - 1, j) * math.exp(-code.length(query=i, charges=j)) for j in range(i))
        assert together == pytest.approx((1 - 2.0**-i) / (i * (i + 1)), rel=1e-9)


@given(queries=declared_or_not, data=st.data())
def test_lengths_of_a_batch_are_the_lengths_of_its_questions(queries, data):
    code = TranscriptCode(queries=queries)
    first = data.draw(st.integers(1, queries or 5000))
    count = data.draw(st.integers(1, min(20, (queries or 10**6) - first + 1)))
    charges = data.draw(st.integers(0, first - 1))
    together = code.lengths(first=first, count=count, charges=charges, nats=1.25)
    alone = [code.length(query=first + i, charges=charges, nats=1.25) for i in range(count)]
    assert together.shape == (count,)
    np.testing.assert_allclose(together, alone, rtol=1e-12, atol=1e-8 if first > 1000 else 1e-11)


@given(queries=declared_or_not, data=st.data())
def test_a_later_question_and_more_nats_cost_more(queries, data):
    code = TranscriptCode(queries=queries)
    query = data.draw(st.integers(1, (queries or 10**6) - 1)) if queries != 1 else 1
    charges = data.draw(st.integers(0, query - 1))
    here = code.length(query=query, charges=charges)
    assert code.length(query=query, charges=charges, nats=0.5) == pytest.approx(here + 0.5)
    if queries is None or query < queries:
        assert code.length(query=query + 1, charges=charges) >= here - 1e-7


@for_each(("query", "charges"), [(0, 0), (-3, 0), (1, 1), (5, 5), (5, -1)])
def test_a_question_that_cannot_have_had_so_many_charges_is_refused(query, charges):
    with pytest.raises(InputError, match=r"charges in \[0, query\)"):
        TranscriptCode(queries=10).length(query=query, charges=charges)


def test_other_impossible_codes_are_refused():
    with pytest.raises(InputError, match="at most the declared 10, got 11"):
        TranscriptCode(queries=10).length(query=11, charges=0)
    with pytest.raises(InputError, match="at most the declared 10, got 12"):
        TranscriptCode(queries=10).lengths(first=8, count=5, charges=0)
    with pytest.raises(InputError, match=r"charges in \[0, query\)"):
        TranscriptCode(queries=10).lengths(first=3, count=5, charges=4)
    with pytest.raises(InputError, match="queries must be at least 1 or None, got 0"):
        TranscriptCode(queries=0)
    with pytest.raises(InputError, match="charges must be at least 1 or None, got 0"):
        TranscriptCode(queries=5, charges=0)


value_codes = st.builds(
    ValueCode, threshold=st.floats(1e-6, 10.0), overfitting=st.sampled_from((0.0, 0.2, 0.8, 1.0))
)
thresholds_off = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=30, unique=True)


@given(code=value_codes, cuts=thresholds_off)
def test_the_weights_of_all_cells_of_any_grid_and_of_a_failure_sum_to_one(code, cuts):
    edges = [-math.inf, *sorted(cut * code.threshold for cut in cuts), math.inf]
    weights = []
    for low, high in itertools.pairwise(edges):
        if code.overfitting in {0.2, 0.8} and high - low > 1e-6 * code.threshold:
            weights.append(math.exp(-code.nats(low, high)))
            assert 0.0 < weights[-1] < 1.0
        elif low < code.threshold and high > -code.threshold and high - low > 1e-6 * code.threshold:
            weights.append(math.exp(-code.nats(low, high)))
    total = math.fsum(weights) + math.exp(-FAILURE_NATS)
    assert total <= 1.0 + 1e-9
    if code.overfitting in {0.2, 0.8}:
        assert total >= 1.0 - 1e-4  # cells too narrow to have a weight are left out


@given(code=value_codes, low=st.floats(-1e3, 1e3), width=st.floats(0.01, 10.0))
def test_the_sides_are_mirrored_by_exchanging_their_shares(code, low, width):
    other = ValueCode(code.threshold, overfitting=1.0 - code.overfitting)
    low, high = low * code.threshold, (low + width) * code.threshold
    if 0.0 < code.overfitting < 1.0:
        assert code.nats(low, high) == pytest.approx(other.nats(-high, -low), rel=1e-12)
    if low >= 0.0 and code.overfitting == 0.8:
        assert code.nats(low, high) <= code.nats(-high, -low)


@given(threshold=st.floats(1e-6, 10.0), low=st.floats(-30.0, 30.0), width=st.floats(0.01, 3.0))
def test_a_cell_costs_what_the_distribution_of_the_docstring_gives_it(threshold, low, width):
    def exceeded(deviation):
        return 0.9 * 2.0 ** (1.0 - max(deviation, 1.0)) + 0.1 / max(deviation, 1.0)

    def below(deviation):
        """Distribution function, in thresholds, failures left out."""
        inner = 0.04 * (min(max(deviation, -1.0), 1.0) + 1.0) / 2.0
        return inner + 0.93 * (0.2 * exceeded(-deviation) + 0.8 * (1.0 - exceeded(deviation)))

    nats = ValueCode(threshold).nats(low * threshold, (low + width) * threshold)
    assert math.exp(-nats) == pytest.approx(below(low + width) - below(low), rel=1e-6)


@given(low=st.floats(1.0, 1e6), factor=st.floats(1e-3, 1e3))
def test_costs_depend_on_deviations_in_thresholds_alone(low, factor):
    one, other = ValueCode(1.0), ValueCode(factor)
    assert one.nats(low, low + 1.0) == pytest.approx(other.nats(low * factor, (low + 1.0) * factor), rel=1e-6)


def test_a_finer_grid_costs_the_logarithm_of_its_fineness():
    code = ValueCode(threshold=0.05)
    for deviation in (0.06, 0.1, 0.25):
        coarse = code.nats(deviation - 0.005, deviation + 0.005)
        fine = code.nats(deviation - 0.00005, deviation + 0.00005)
        assert fine - coarse == pytest.approx(math.log(100), abs=0.02)


def test_typical_values_cost_what_the_docstring_says():
    code = ValueCode(threshold=1.0)
    without_heavy_tail = -math.log(0.93 * 0.8 * (2.0**-38.5 - 2.0**-39.5))
    assert [round(code.nats(d, d + 1.0), 1) for d in (1.0, 2.0, 3.0, 39.5)] == [1.0, 1.7, 2.4, 10.0]
    assert [round(code.nats(-d - 1.0, -d), 1) for d in (1.0, 2.0, 3.0)] == [2.4, 3.1, 3.8]
    assert without_heavy_tail == pytest.approx(27.7, abs=0.1)


def test_the_planned_nats_pay_for_the_nearest_values_of_a_derived_grid_and_not_for_the_next():
    code, step = ValueCode(threshold=1.0), 4.0 / 3.0
    nearest = 0.8 * code.nats(1.0, 1.0 + step) + 0.2 * code.nats(-1.0 - step, -1.0)
    assert nearest <= PLANNED_NATS_PER_CHARGE < code.nats(1.0 + step, 1.0 + 2.0 * step)
