"""The lead at which all of the best are found: closed forms, integrals by series, and the search for it."""

from __future__ import annotations

import math

import mpmath
import pytest
from cases import for_each

from reusable_holdout.mechanisms.selection import lead as module
from reusable_holdout.mechanisms.selection.lead import needed_lead

BETAS = [0.9, 0.3, 1e-3]


@for_each(("count", "candidates"), [(1, 2), (1, 9), (3, 40), (29, 30)])
@for_each("beta", BETAS)
def test_the_lead_of_gumbel_noise_solves_the_product_of_rounds(
    count: int, candidates: int, beta: float
) -> None:
    lead = needed_lead("gumbel", count=count, candidates=candidates, beta=beta)
    behind = (candidates - count) * math.exp(-lead)
    found = math.prod(left / (left + behind) for left in range(1, count + 1))
    if lead < 1e-12:  # there it is found often enough without any lead
        assert found >= 1 - beta
    else:
        assert 1 - found == pytest.approx(beta, rel=1e-10)


@for_each(("count", "candidates"), [(1, 2), (1, 9), (3, 40), (29, 30)])
@for_each("beta", [0.3, 1e-3])
def test_the_lead_of_the_joint_choice_is_its_odds(count: int, candidates: int, beta: float) -> None:
    lead = needed_lead("joint", count=count, candidates=candidates, beta=beta)
    others = math.comb(candidates, count) - 1
    assert lead == pytest.approx(max(0.0, math.log(others * (1 - beta) / beta)), rel=1e-12)


@for_each(("count", "candidates"), [(1, 2), (1, 4), (2, 5), (3, 9)])
@for_each("lead", [0.0, 0.7, 5.0])
def test_the_chance_of_exponential_noise_is_its_series(count: int, candidates: int, lead: float) -> None:
    """Round by round: the chance that the largest of i exceeds all others is a sum over subsets of these."""
    others = candidates - count
    with mpmath.workdps(30):
        chance = mpmath.mpf(1)
        for left in range(1, count + 1):
            chance *= mpmath.fsum(
                (-1) ** j * mpmath.binomial(others, j) * mpmath.exp(-lead * j)
                * left * mpmath.beta(left, j + 1)
                for j in range(others + 1)
            )  # fmt: skip
    assert module._exponential(lead, count, others) == pytest.approx(float(chance), rel=1e-6)


@for_each(("count", "others"), [(1, 1), (1, 3), (2, 3), (4, 5)])
@for_each("lead", [0.0, 0.7, 5.0])
def test_the_chance_of_laplace_noise_is_its_integral(count: int, others: int, lead: float) -> None:
    with mpmath.workdps(20):

        def below(x: mpmath.mpf) -> mpmath.mpf:
            return 1 - mpmath.exp(-x) / 2 if x > 0 else mpmath.exp(x) / 2

        chance = mpmath.quad(
            lambda x: count * below(-x) ** (count - 1) * mpmath.exp(-abs(x)) / 2 * below(x + lead) ** others,
            sorted({-60, -20, -lead, -5, 0, 5, 20, 60}),
        )
    assert module._laplace(lead, count, others) == pytest.approx(float(chance), rel=1e-4, abs=1e-5)


@for_each("noise", ["gumbel", "exponential", "laplace", "joint"])
def test_where_errors_are_allowed_as_often_as_they_come_no_lead_is_needed(noise: str) -> None:
    assert needed_lead(noise, count=1, candidates=2, beta=0.9) == pytest.approx(0.0, abs=1e-12)
    assert needed_lead(noise, count=2, candidates=2, beta=1e-9) == 0.0


@for_each("wanted", [1.5, 1.0, 0.25, 96.0, 3.0])
def test_the_search_ends_on_the_number_at_which_there_is_enough(wanted: float) -> None:
    """Numbers on which it looks: each is enough itself."""
    assert module._smallest(lambda lead: lead, wanted) == wanted


@for_each("wanted", [math.pi, 0.01, 12345.678])
def test_the_search_is_as_fine_as_floating_point_numbers(wanted: float) -> None:
    assert module._smallest(lambda lead: lead, wanted) == pytest.approx(wanted, rel=1e-12)
