"""Evidence by bets, against all samples of a few rows."""

import itertools
import math

import numpy as np
import pytest

from reusable_holdout.certainty import ConfidenceBound, EvidenceSet
from reusable_holdout.certainty.evidence import MANY, Evidence, EvidenceRows, Null, rounded, worst_rows

VALUES = np.array([0.0, 0.2, 0.5, 0.9, 1.0])


def laws_of_mean(mean, rng, count):
    """Laws on the values with this mean: mixtures of pairs that straddle it."""
    pairs = [(low, high) for low in VALUES for high in VALUES if low < mean < high]
    for _ in range(count):
        law = np.zeros(len(VALUES))
        for share, place in zip(rng.dirichlet(np.ones(3)), rng.integers(len(pairs), size=3), strict=True):
            low, high = pairs[place]
            law[high == VALUES] += share * (mean - low) / (high - low)
            law[low == VALUES] += share * (high - mean) / (high - low)
        yield law


def expectation(null, laws, weights=None):
    """Of E, over all samples of independent rows, one law each."""
    total = 0.0
    for sample in itertools.product(range(len(VALUES)), repeat=len(laws)):
        chance = math.prod(law[place] for law, place in zip(laws, sample, strict=True))
        if chance:
            total += chance * math.exp(null.log_evidence(VALUES[list(sample)], weights))
    return total


@pytest.mark.parametrize("mean", [0.05, 0.3, 0.55, 0.95])
@pytest.mark.parametrize("tolerance", [0.01, 0.1, 0.4])
def test_its_expectation_is_one_where_the_mean_is_as_the_null_says(mean, tolerance):
    rng, null = np.random.default_rng(1), Null(mean, tolerance)
    for law in laws_of_mean(mean, rng, 4):
        assert expectation(null, [law] * 4) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("mean", [0.3, 0.55])
def test_its_expectation_is_at_most_one_where_rows_differ_and_have_weights(mean):
    """Means of the rows' laws differ; their weighted mean is the null's."""
    rng, weights = np.random.default_rng(2), np.array([1.0, 0.5, 0.25, 1.0])
    for _ in range(10):
        shifts = rng.uniform(-0.2, 0.2, 4)
        shifts -= (weights @ shifts) / weights.sum()
        laws = [next(laws_of_mean(mean + shift, rng, 1)) for shift in shifts]
        assert expectation(Null(mean, 0.2), laws, weights) <= 1.0 + 1e-12


def test_bets_without_their_weights_would_break_it():
    """As the theory says of class averages: one rare row with all the weight, many that count little."""
    weights, mean = np.array([1.0, 0.1, 0.1, 0.1]), 0.3
    rare, others = np.zeros(len(VALUES)), np.zeros(len(VALUES))
    rare[0] = others[-1] = 1.0  # weighted mean 0.3 / 1.3 < 0.3, plain mean 0.75
    assert expectation(Null(mean, 0.2), [rare, others, others, others], weights) <= 1.0
    assert expectation(Null(mean, 0.2), [rare, others, others, others]) > 1.5


def test_it_falls_in_the_mean_that_it_is_against():
    terms = np.random.default_rng(3).random(50)
    means = np.linspace(0.01, 0.99, 99)
    # the bets' size changes with the tolerance, not the law: compare at bets in proportion to 1/m
    logs = [Null(mean, 0.1 * mean * (1 - mean)).log_evidence(terms) for mean in means]
    assert (np.diff(logs) <= 1e-9).all()


def test_zeros_and_ones_have_the_least_of_it_among_all_rows_of_a_mean():
    for named, tolerance in [(0.5, 0.3), (0.7, 0.25), (0.3, 0.2)]:
        evidence = Evidence(named, tolerance)
        for sample in itertools.combinations_with_replacement(VALUES, 5):
            terms = np.array(sample)
            assert evidence.of_rows(terms) >= evidence.of(worst_rows(terms.mean(), 5)) - 1e-12


@pytest.mark.parametrize("sides", ["both", "low", "high"])
@pytest.mark.parametrize(("named", "tolerance"), [(0.5, 0.1), (0.05, 0.1), (0.9, 0.02), (0.97, 0.2)])
def test_one_row_changes_it_by_no_more_than_its_sensitivity(sides, named, tolerance):
    rng, evidence, most = np.random.default_rng(4), Evidence(named, tolerance, sides), 0.0
    for _ in range(40):
        terms = rng.choice(VALUES, size=rng.integers(1, 30), p=rng.dirichlet(np.ones(len(VALUES))))
        before = evidence.of_rows(terms)
        for value in (0.0, 1.0):
            changed = terms.copy()
            changed[0] = value
            if math.isfinite(before):
                most = max(most, abs(evidence.of_rows(changed) - before))
    assert most <= evidence.sensitivity * (1 + 1e-12)


def test_a_side_beyond_the_bounds_needs_no_evidence():
    assert Evidence(0.05, 0.1, "low").of_rows(np.ones(3)) == math.inf
    assert Evidence(0.95, 0.1, "high").of_rows(np.ones(3)) == math.inf
    assert Evidence(0.5, 0.6).of_rows(np.zeros(3)) == math.inf
    assert Null(1.2, 0.1).log_evidence(np.ones(9)) == 0.0


@pytest.mark.parametrize("rows", [4, 9])
@pytest.mark.parametrize("level", [0.02, 0.1, 0.3])
def test_no_law_makes_agreed_and_charged_intervals_miss_more_than_their_level(rows, level):
    """Agreed with 0.8 of the level on each side, told as a cell with 0.1; exact, over all samples of three values."""
    values = np.array([0.0, 0.5, 1.0])
    bound = ConfidenceBound("bounded", rows=rows, sum_of_squares=1 / rows)
    samples = [(k, j) for k in range(rows + 1) for j in range(rows + 1 - k)]  # how many are one half, and one
    counts = np.array([(rows - k - j, k, j) for k, j in samples])
    means = counts @ values / rows
    ways = np.array([math.factorial(rows) / math.prod(map(math.factorial, each)) for each in counts.tolist()])
    low, high = (
        np.array([end(mean, log_level=math.log(0.1 * level)) for mean in means.tolist()])
        for end in (bound.lower, bound.upper)
    )
    worst = 0.0
    for named, tolerance in itertools.product([0.3, 0.5, 0.8], [0.1, 0.2, 0.35]):
        evidence = Evidence(named, tolerance)
        agreed = np.array([evidence.of(EvidenceRows(values, each.astype(float))) for each in counts])
        agreed = agreed >= -math.log(0.8 * level)
        for p0, p1 in itertools.product(np.linspace(0, 1, 21), repeat=2):
            if p0 + p1 > 1.0:
                continue
            law = np.array([p0, 1.0 - p0 - p1, p1]).clip(0.0)
            truth = float(law @ values)
            chances = ways * np.prod(law**counts, axis=1)
            missed = np.where(agreed, abs(truth - named) > tolerance + 1e-12, (truth < low) | (truth > high))
            worst = max(worst, float(chances[missed].sum()))
    assert worst <= level


def test_very_many_rows_are_rounded_towards_less_evidence_and_little_less():
    terms = np.random.default_rng(6).beta(2, 3, MANY)
    mean = float(terms.mean())
    for evidence in (Evidence(mean, 0.004), Evidence(mean, 0.004, "low"), Evidence(mean, 0.004, "high")):
        exact = min(evidence.of_rows(terms, np.ones(MANY)), math.inf)  # weights keep rows as they are
        assert 0.99 * exact <= evidence.of_rows(terms) <= exact
    down, up = rounded(terms)
    assert down.counts.sum() == up.counts.sum() == MANY
    assert terms.mean() - 2**-16 <= down.mean <= terms.mean() <= up.mean <= terms.mean() + 2**-16
    ends = [EvidenceSet(8.0, MANY, 0.4, 0.2).of_rows(terms, weights) for weights in (None, np.ones(MANY))]
    assert ends[0] == pytest.approx(ends[1], abs=2**-15)
    assert ends[0][0] <= ends[1][0] < mean < ends[1][1] <= ends[0][1]
