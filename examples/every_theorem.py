"""The numbers in the theorems of the five source documents, beside the numbers that the library computes.

docs/mechanisms.md lists the documents. Where two numbers differ, the library's is exact: the best adversary in place of
Chernoff's bound, the best composition in place of the advanced one, the discrete noise itself. Two formulas are wrong
as printed, and are marked.

    python examples/every_theorem.py                       # a few seconds

Nothing is drawn. Epsilon is 1/2, beta .05, delta 1e-6 unless a row says otherwise.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from typing import NamedTuple

import pandas as pd
from alternatives import (
    bassily_error,
    expected_error,
    fixed_queries_half_width,
    naive_union_half_width,
    transfer_error,
    transfer_failure,
)

from reusable_holdout.certainty import ConfidenceBound
from reusable_holdout.mechanisms import (
    AboveThreshold,
    NumericSparse,
    Sparse,
    exponential_accuracy,
    laplace_accuracy,
    standard_svt_scales,
    synthetic_accuracy,
    synthetic_size,
)
from reusable_holdout.mechanisms.accounting import (
    advanced_composition,
    basic_composition,
    between_thresholds_q,
    boundary_epsilon,
    boundary_q,
    differing_runs_q,
    gaussian_delta,
    gaussian_deviation,
    mixed_charging_epsilon,
    not_prior_mean,
    not_prior_q,
    optimal_composition,
    optimal_epsilon_each,
    subsampled_epsilon,
    target_charging,
)
from reusable_holdout.noise import optimal_ratio

EPSILON, BETA, DELTA = 0.5, 0.05, 1e-6
CHARGES, QUERIES, ROWS = 10, 1_000, 10_000


class Row(NamedTuple):
    """A statement, the value of its formula, and the value of the library."""

    document: str
    statement: str
    formula: float
    here: float


def lectures() -> Iterator[Row]:
    """Yield the rows of Ziani and of Gaboardi's slides."""
    name = "Ziani"
    log = math.log(QUERIES)
    first = AboveThreshold(0.0, epsilon=EPSILON).accuracy(queries=QUERIES, beta=BETA)
    yield Row(name, "Theorem 4: alpha of AboveThreshold", 8 * (log + math.log(2 / BETA)) / EPSILON, first)
    yield Row(
        name,
        "Theorem 8: error of 10 numbers",
        math.log(10 / BETA) / EPSILON,
        laplace_accuracy(answers=10, epsilon=EPSILON, beta=BETA),
    )
    length, root = log + math.log(4 * CHARGES / BETA), math.sqrt(8 * CHARGES * math.log(2 / DELTA))
    for delta, factor in ((0.0, CHARGES), (DELTA, root)):
        stream = NumericSparse(0.0, charges=CHARGES, epsilon=EPSILON, delta=delta)
        yield Row(
            name,
            f"Theorem 10: alpha of SparseVector, delta = {delta:g}",
            9 * factor * length / EPSILON,
            stream.accuracy(queries=QUERIES, beta=BETA),
        )
    each = EPSILON / math.sqrt(8 * CHARGES * math.log(1 / DELTA))
    yield Row(
        name,
        "Corollary 6: epsilon of 10 rounds",
        EPSILON,
        optimal_composition(epsilon=each, count=CHARGES, delta=DELTA),
    )
    each = 50 / math.sqrt(80 * math.log(2))
    yield Row(
        name,
        "Corollary 6 at epsilon 50, delta 1/2: WRONG",
        50.0,
        optimal_composition(epsilon=each, count=10, delta=0.5),
    )
    right = 9 * CHARGES * math.log(2 * CHARGES / BETA)
    yield Row(
        name,
        "proof of Theorem 10, alpha_2: WRONG by epsilon",
        right,
        laplace_accuracy(epsilon=EPSILON / (9 * CHARGES), beta=BETA / (2 * CHARGES)),
    )
    name = "Gaboardi"
    yield Row(name, "composition of 10", 10 * EPSILON, basic_composition([EPSILON] * 10))
    noise = [laplace_accuracy(epsilon=EPSILON / n, beta=BETA) for n in (1_000, 4_000)]
    yield Row(name, "noise of 4 times as many queries", 4.0, noise[1] / noise[0])
    noise = [
        laplace_accuracy(epsilon=optimal_epsilon_each(epsilon=EPSILON, count=n, delta=DELTA), beta=BETA)
        for n in (1_000, 4_000)
    ]
    yield Row(name, "the same, given a delta", 2.0, noise[1] / noise[0])
    stream = Sparse(0.0, charges=CHARGES, epsilon=EPSILON)
    yield Row(
        name,
        "Definition 3.9: alpha of Sparse",
        8 * CHARGES * (log + math.log(2 * CHARGES / BETA)) / EPSILON,
        stream.accuracy(queries=QUERIES, beta=BETA),
    )


def slides() -> Iterator[Row]:
    """Yield the rows of "More DP techniques"."""
    name = "More DP techniques"
    book = math.sqrt(2 * math.log(1.25 / DELTA)) / EPSILON
    yield Row(name, "normal noise, the textbook's", book, gaussian_deviation(epsilon=EPSILON, delta=DELTA))
    yield Row(
        name,
        "delta of that noise, which was to be at most",
        DELTA,
        gaussian_delta(epsilon=EPSILON, deviation=book),
    )
    yield Row(
        name,
        "advanced composition of 100",
        math.sqrt(200 * math.log(1 / DELTA)) * 0.1 + 100 * 0.1 * math.expm1(0.1),
        advanced_composition(epsilon=0.1, count=100, delta=DELTA),
    )
    yield Row(
        name,
        "a secret tenth of the rows",
        math.log1p(0.1 * math.expm1(EPSILON)),
        subsampled_epsilon(EPSILON, rate=0.1),
    )
    yield Row(
        name, "BLR: rows of a small database", math.log(20) / 0.1**2, synthetic_size(queries=20, accuracy=0.1)
    )
    yield Row(
        name,
        "BLR: error at 10 of these rows, 5 cells",
        math.sqrt(math.log(20) / 10) + 2 / (EPSILON * ROWS) * math.log(5**10 / BETA),
        synthetic_accuracy(rows=ROWS, queries=20, cells=5, size=10, epsilon=EPSILON, beta=BETA),
    )
    one = math.sqrt(math.log(2 / BETA) / (2 * ROWS))
    yield Row(name, "Hoeffding: one hypothesis", one, naive_union_half_width(rows=ROWS, queries=1, beta=BETA))
    many = math.sqrt(math.log(2 * QUERIES / BETA) / (2 * ROWS))
    yield Row(
        name,
        "a family of 1,000, exact bound",
        many,
        fixed_queries_half_width(
            ConfidenceBound("binomial", rows=ROWS, sum_of_squares=1 / ROWS),
            queries=QUERIES,
            beta=BETA,
            estimate=0.5,
        ),
    )
    small = 0.05
    yield Row(
        name, "McSherry: 2 epsilon + delta", 2 * small + DELTA, expected_error(epsilon=small, delta=DELTA)
    )
    mechanism = {"sample_error": 0.0, "sample_beta": 0.0, "epsilon": small, "delta": 1e-9}
    yield Row(
        name,
        "tight theorem: chance of 4 epsilon",
        1e-9 / small,
        transfer_failure(**mechanism, error=4 * small),
    )
    yield Row(
        name,
        "Bassily's error, beside Jung's",
        bassily_error(**mechanism, beta=BETA),
        transfer_error(**mechanism, beta=BETA),
    )


def sparse_vector() -> Iterator[Row]:
    """Yield the rows of Lyu, Su and Li."""
    name = "Lyu, Su, Li"
    yield Row(name, "equation 12: ratio for 10 charges", 20 ** (2 / 3), optimal_ratio(charges=10))
    yield Row(
        name, "Theorem 4.9: for monotonic queries", 10 ** (2 / 3), optimal_ratio(charges=10, monotonic=True)
    )
    scales = standard_svt_scales(charges=10, epsilon=EPSILON, ratio=1.0, monotonic=False, sensitivity=1)
    yield Row(name, "Algorithm 1: query noise 4c/epsilon", 40 / EPSILON, float(scales.query))
    n = 1_000
    yield Row(
        name,
        "section 5: EM's distance",
        2 / EPSILON * (math.log(n - 1) + math.log((1 - BETA) / BETA)),
        exponential_accuracy(candidates=n, epsilon=EPSILON, beta=BETA),
    )


def target_charging_lemmas() -> Iterator[Row]:
    """Yield the rows of Cohen and Lyu."""
    name, e = "Cohen, Lyu", 0.05
    yield Row(name, "Lemma 2.3: q of NotPrior", 1 / (math.exp(e) + 1), not_prior_q(e))
    width = 10.0
    between = -math.expm1(-width * e) / (math.exp(e) + 1)
    yield Row(name, "Lemma G.1: q of between", between, between_thresholds_q(e, width))
    yield Row(name, "Lemma 2.8: epsilon of the wrapper", 4 / 3 * e, boundary_epsilon(e))
    t = boundary_epsilon(e)
    yield Row(name, "Lemma 2.9: q of the boundary", math.expm1(t) / (2 * math.expm1(e + t)), boundary_q(e))
    twice = (1 + math.exp(e)) / (1 + math.exp(e) + 2 * math.exp(2 * e))
    yield Row(name, "Lemma F.1: q of two runs", twice, differing_runs_q(e))
    each = 0.01
    told = {"q": not_prior_q(each), "mean": not_prior_mean(each)}
    for charges in (1, 100, 10_000):
        log = math.log(2 / DELTA) / charges
        alpha = log + math.sqrt(
            log**2 + 2 * log
        )  # Chernoff's bound on the calls and their composition share delta
        calls = math.floor((1 + alpha) * charges / not_prior_q(each))
        yield Row(
            name,
            f"Theorem B.4: epsilon of {charges:,} hits, .01 a call",
            optimal_composition(epsilon=each, count=calls, delta=DELTA / 2),
            target_charging(epsilon=each, charges=charges, delta=DELTA, **told).epsilon,
        )
    told = {"q": not_prior_q(EPSILON), "mean": not_prior_mean(EPSILON)}
    one = target_charging(epsilon=EPSILON, charges=1, delta=DELTA, **told)
    yield Row(name, "section 1: one hit, in units of epsilon", math.log(1 / DELTA), one.epsilon / EPSILON)
    yield Row(
        name,
        "Lemma B.3: all outcomes a target, 100 calls",
        optimal_composition(epsilon=each, count=100, delta=DELTA),
        target_charging(epsilon=each, charges=100, delta=DELTA, q=1.0).epsilon,
    )
    alike = target_charging(epsilon=0.01, charges=100, delta=DELTA, q=not_prior_q(0.01)).epsilon
    mixed = mixed_charging_epsilon(
        weight=100 * 0.01 / not_prior_q(0.01), delta=DELTA, largest_epsilon=0.01, smallest_q=not_prior_q(0.01)
    )
    yield Row(name, "Remark B.6: mixed calls, beside those alike", alike, mixed)


def table() -> pd.DataFrame:
    """Return the table of all rows."""
    return pd.DataFrame([*lectures(), *slides(), *sparse_vector(), *target_charging_lemmas()])


def main() -> None:
    """Print the table."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    print(table().to_string(index=False, float_format=lambda value: f"{value:.5g}"))


if __name__ == "__main__":
    main()
