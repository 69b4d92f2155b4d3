"""The privacy loss of every sparse vector mechanism, computed exactly and compared with the epsilon it promises."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from cases import for_each
from long_tests import MECHANISMS
from mechanisms.scripted_noise import ScriptedNoise
from mechanisms.sparse_vector import audit

from reusable_holdout import mechanisms
from reusable_holdout.noise import DiscreteLaplace, NoiseScales, SparseVector


@dataclass(frozen=True)
class Case:
    """One mechanism at one budget."""

    scales: NoiseScales
    charges: int
    epsilon: float
    sensitivity: int
    held: bool = False
    comparison: str = "laplace"
    gap: bool = False
    monotonic: bool = False

    @property
    def law(self):
        far = math.ceil(6 * self.scales.query)
        queries = audit.Queries((-far, 0, far), self.sensitivity)
        return audit.sparse_vector_law(self.scales, queries, comparison=self.comparison, gap=self.gap)

    @property
    def patterns(self):
        return [audit.PATTERNS[name] for name in (audit.MONOTONIC if self.monotonic else audit.PATTERNS)]

    def worst(self, length):
        search = audit.worst_held_loss if self.held else audit.worst_loss
        law = self.law
        return max(
            search(law, length=length, charges=self.charges, pattern=pattern) for pattern in self.patterns
        )

    def worst_long(self):
        law = self.law
        return max(
            audit.long_loss(law, charges=charges, pattern=pattern, renewed=not self.held)
            for charges in range(self.charges + 1)
            for pattern in self.patterns
        )


def renewed(maker, charges, epsilon, sensitivity, *, comparison="laplace", **how):
    """Return a case whose threshold noise is renewed after each charge."""
    scales = maker(charges=charges, epsilon=epsilon, sensitivity=sensitivity, **how)
    monotonic = how.get("monotonic", False)
    return Case(scales, charges, epsilon, sensitivity, comparison=comparison, monotonic=monotonic)


def held(charges, epsilon, sensitivity, *, comparison="laplace", gap=False, **how):
    """Return a case of StandardSVT, whose threshold noise is held."""
    scales = mechanisms.standard_svt_scales(charges=charges, epsilon=epsilon, sensitivity=sensitivity, **how)
    monotonic = how.get("monotonic", False)
    return Case(scales, charges, epsilon, sensitivity, True, comparison, gap, monotonic)


CASES = {
    "AboveThreshold": renewed(mechanisms.sparse_scales, 1, 0.5, 1),
    "AboveThreshold, D=4": renewed(mechanisms.sparse_scales, 1, 1.0, 4),
    "AboveThreshold, e=2, D=3": renewed(mechanisms.sparse_scales, 1, 2.0, 3),
    "Sparse, c=2": renewed(mechanisms.sparse_scales, 2, 1.0, 1),
    "Sparse, c=3, D=4": renewed(mechanisms.sparse_scales, 3, 3.0, 4),
    "Sparse, best ratio": renewed(mechanisms.sparse_scales, 2, 1.0, 2, ratio=None),
    "Sparse, 1:3, exponential": renewed(
        mechanisms.sparse_scales, 2, 2.0, 1, ratio=3.0, comparison="exponential"
    ),
    "Sparse, best ratio, monotonic": renewed(mechanisms.sparse_scales, 2, 1.0, 1, ratio=None, monotonic=True),
    "NumericSparse, c=1": renewed(mechanisms.numeric_sparse_scales, 1, 1.0, 2),
    "NumericSparse, c=2": renewed(mechanisms.numeric_sparse_scales, 2, 1.0, 1),
    "NumericSparse, c=3, D=4": renewed(mechanisms.numeric_sparse_scales, 3, 3.0, 4),
    "StandardSVT, c=1": held(1, 1.0, 1),
    "StandardSVT, c=2, e=0.5": held(2, 0.5, 1),
    "StandardSVT, c=3, D=4": held(3, 2.0, 4),
    "StandardSVT, 1:1": held(2, 1.0, 2, ratio=1.0),
    "StandardSVT, 1:c": held(3, 1.0, 1, ratio=3.0),
    "StandardSVT, monotonic": held(3, 1.0, 2, monotonic=True),
    "StandardSVT, values": held(2, 1.0, 1, answers=0.25),
    "StandardSVT, gap": held(2, 1.0, 2, gap=True),
    "StandardSVT, gap, monotonic": held(2, 1.0, 1, gap=True, monotonic=True),
    "StandardSVT, exponential": held(2, 1.0, 2, comparison="exponential"),
    "StandardSVT, exponential, monotonic": held(3, 1.0, 2, comparison="exponential", monotonic=True),
    "StandardSVT, exponential, gap": held(2, 1.0, 1, comparison="exponential", gap=True),
    "StandardSVT, exponential, values": held(2, 1.5, 1, comparison="exponential", answers=0.5),
}


@pytest.mark.long(*MECHANISMS)
@for_each("name", CASES)
def test_no_short_transcript_loses_more_than_epsilon(name):
    case = CASES[name]
    outputs = len(case.law.above)
    assert case.worst(length=4 if outputs == 1 or not case.held else 3) <= case.epsilon + 1e-9


@pytest.mark.long(*MECHANISMS)
@for_each("name", CASES)
def test_the_worst_long_transcript_loses_all_of_epsilon_and_no_more(name):
    case = CASES[name]
    assert 0.99 * case.epsilon <= case.worst_long() <= case.epsilon + 1e-9


@for_each(("maker", "share"), [(mechanisms.sparse_scales, 2), (mechanisms.numeric_sparse_scales, 9 / 4)])
def test_a_round_under_optimal_composition_loses_its_share(maker, share):
    scales = maker(charges=10, epsilon=8.0, delta=1e-6, composition="optimal", sensitivity=2)
    each = share * 2 / float(scales.threshold)
    assert 0.99 * each <= Case(scales, 1, each, 2).worst_long() <= each + 1e-9


@pytest.mark.long(*MECHANISMS)
def test_numeric_sparse_spends_on_the_number_what_the_comparison_leaves():
    case = CASES["NumericSparse, c=1"]
    silent = Case(NoiseScales(case.scales.threshold, case.scales.query, Fraction(0)), 1, 1.0, 2)
    with_number, without = (
        audit.segment_losses(each.law, 4, audit.PATTERNS["mixed"], charged=True).max()
        for each in (case, silent)
    )
    assert without <= 8 / 9 + 1e-9
    assert with_number == pytest.approx(without + 1 / 9, abs=1e-9)


@for_each("thresholds", [(0, 0), (40, -7)])
@for_each("comparison", ["laplace", "exponential"])
def test_the_audited_law_is_the_law_of_the_code(comparison, thresholds):
    """All noises within 12 are run through SparseVector; the rest weighs less than exp(-12).

    The audit knows queries by their distance from a threshold, and so does the code: each may have its own.
    """
    scales = NoiseScales(Fraction(1), Fraction(1), Fraction(0))
    noise_type = DiscreteLaplace if comparison == "laplace" else mechanisms.DiscreteExponential
    threshold_law, query_law = noise_type(scales.threshold), noise_type(scales.query)
    reach, questions, limits = 12, [b"0", b"1"], np.array(thresholds)
    observed = dict.fromkeys((0, 1, None), 0.0)
    for rho, nu0, nu1 in itertools.product(range(-reach, reach + 1), repeat=3):
        noise = ScriptedNoise({("threshold", bytes(8)): rho, ("query", b"0"): nu0, ("query", b"1"): nu1})
        core = SparseVector(scales=scales, noise=noise, charges=1, law=noise_type)
        first = core.first_above(limits + np.array([1, -1]), limits, questions)
        logs = threshold_law.log_pmf(rho), query_law.log_pmf(nu0), query_law.log_pmf(nu1)
        observed[first] += math.exp(sum(logs))
    law = audit.sparse_vector_law(scales, audit.Queries((0,), 1), comparison=comparison)  # values -1, 0, 1
    weights, below, above = np.exp(law.weights), np.exp(law.below), np.exp(law.above[0])
    low, high = 0, 2
    expected = {
        0: weights @ above[high],
        1: weights @ (below[high] * above[low]),
        None: weights @ (below[high] * below[low]),
    }
    assert sum(expected.values()) == pytest.approx(1, abs=1e-12)
    for outcome, probability in expected.items():
        assert observed[outcome] == pytest.approx(float(probability), abs=3 * math.exp(-12))
