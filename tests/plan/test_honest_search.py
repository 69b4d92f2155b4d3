"""How far an honest search gets, against two other ways to compute it: by quadrature of paths, and by closed forms."""

import itertools
import math

import numpy as np
import pytest
from cases import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from long_tests import examples
from scipy import stats

from reusable_holdout import Plan
from reusable_holdout.errors import PlanError
from reusable_holdout.plan.honest import charges_of_a_search

searches = st.fixed_dictionaries(
    {
        "thresholds": st.lists(st.floats(0.005, 0.1), min_size=1, max_size=6).map(
            lambda each: sorted(each, reverse=True)
        ),
        "prior_error": st.floats(0.002, 0.05),
        "standard_error": st.floats(0.0, 0.02),
        "noise_sd": st.floats(0.0, 0.01),
        "queries": st.integers(0, 400),
    }
)


def charged(error, threshold, *, prior_error, noise_sd):
    """Probability that a question is charged, given the holdout's own error."""
    own = math.sqrt(2.0) * math.hypot(prior_error, noise_sd)
    return 0.5 * (math.erfc((threshold + error) / own) + math.erfc((threshold - error) / own))


def law_by_paths(error, thresholds, *, queries, **deviations):
    """Of the charges given the holdout's error: every pattern of charged and agreed questions, one by one."""
    law = np.zeros(len(thresholds) + 1)
    for pattern in itertools.product((False, True), repeat=queries):
        chance, made = 1.0, 0
        for hit in pattern:
            if made == len(thresholds):  # halted: what is asked then is not decided
                chance *= 0.5
                continue
            each = charged(error, thresholds[made], **deviations)
            chance, made = chance * (each if hit else 1.0 - each), made + hit
        law[made] += chance
    return law


def chain(hits, *, queries):
    """Law of the charges when one after j charges has the probability hits[j]."""
    hits = np.array(hits)
    state = np.zeros(len(hits))
    state[0] = 1.0
    for _ in range(queries):
        moved = state * hits
        state = state - moved
        state[1:] += moved[:-1]
    return state


def averaged(law, standard_error):
    """Mean of a law over the holdout's error, by the trapezoid rule; of such smooth functions it is all but exact."""
    if standard_error == 0.0:
        return law(0.0)
    deviations = np.linspace(-8.0, 8.0, 321)
    weights = np.exp(-0.5 * deviations**2)
    laws = np.array([law(deviation * standard_error) for deviation in deviations.tolist()])
    return weights @ laws / weights.sum()


@for_each("queries", [0, 1, 2, 5])
@for_each(
    ("thresholds", "standard_error", "noise_sd", "within"),
    [
        ((0.03,), 0.0047, 0.0, 1e-6),
        ((0.03, 0.02, 0.01), 0.0047, 0.001, 1e-6),
        ((0.03, 0.01), 0.02, 0.0, 1e-4),
        ((0.02,), 0.0, 0.0, 1e-12),
    ],
)
def test_the_law_is_that_of_all_patterns_of_charges(queries, thresholds, standard_error, noise_sd, within):
    deviations = {"prior_error": 0.012, "noise_sd": noise_sd}
    found = charges_of_a_search(thresholds, standard_error=standard_error, queries=queries, **deviations)
    expected = averaged(
        lambda error: law_by_paths(error, thresholds, queries=queries, **deviations), standard_error
    )
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=within)


@for_each(
    ("prior_error", "within"), [(0.012, 1e-4), (0.0047, 2e-3), (0.0024, 1e-2), (0.001, 1e-2), (0.0002, 1e-2)]
)
def test_the_quadrature_is_as_exact_as_it_is_said_to_be(prior_error, within):
    """By a chain of single questions; the better the priors, the more hangs on the error that all share."""
    thresholds, standard_error = (0.012, 0.010, 0.008), 0.0047

    def law(error):
        hits = [charged(error, each, prior_error=prior_error, noise_sd=0.0) for each in thresholds]
        return chain([*hits, 0.0], queries=100)

    found = charges_of_a_search(
        thresholds, prior_error=prior_error, standard_error=standard_error, noise_sd=0.0, queries=100
    )
    np.testing.assert_allclose(found, averaged(law, standard_error), rtol=0.0, atol=within)


@for_each(("queries", "size"), [(100, 3), (1_000, 8), (20, 30)])
@for_each("standard_error", [0.0, 0.0047])
def test_thresholds_that_stay_give_a_binomial_number_of_charges(queries, size, standard_error):
    found = charges_of_a_search(
        [0.03] * size, prior_error=0.012, standard_error=standard_error, noise_sd=0.0, queries=queries
    )

    def law(error):
        count = stats.binom(queries, charged(error, 0.03, prior_error=0.012, noise_sd=0.0))
        return np.append(count.pmf(np.arange(size)), count.sf(size - 1))

    np.testing.assert_allclose(found, averaged(law, standard_error), atol=1e-4)


@settings(max_examples=examples(200))
@given(search=searches)
def test_it_is_a_distribution_that_no_more_questions_make_better(search):
    law = charges_of_a_search(**search)
    assert law.shape == (len(search["thresholds"]) + 1,)
    assert law.min() >= 0.0
    assert law.sum() == pytest.approx(1.0, abs=1e-9)
    assert law[search["queries"] + 1 :].sum() <= 1e-12
    later = charges_of_a_search(**search | {"queries": search["queries"] + 1})
    assert (np.cumsum(later) <= np.cumsum(law) + 1e-9).all()


@settings(max_examples=examples(200))
@given(search=searches, share=st.floats(0.5, 1.0))
def test_wider_thresholds_and_better_priors_never_make_more_charges(search, share):
    law = charges_of_a_search(**search)
    narrower = [threshold * share for threshold in search["thresholds"]]
    more = charges_of_a_search(**search | {"thresholds": narrower})
    assert (np.cumsum(more) <= np.cumsum(law) + 1e-9).all()
    fewer = charges_of_a_search(**search | {"prior_error": search["prior_error"] * share})
    # beyond two deviations a wider law of errors reaches farther, on both sides
    if min(search["thresholds"]) > 4.0 * search["standard_error"]:
        assert fewer[:-1].sum() >= law[:-1].sum() - 1e-9


def test_another_charge_keeps_a_search_going():
    def complete(size):
        return charges_of_a_search(
            [0.03] * size, prior_error=0.012, standard_error=0.0047, noise_sd=0.0, queries=100
        )[:-1].sum()

    found = [complete(size) for size in range(1, 12)]
    assert found == sorted(found)
    assert found[0] < 0.5 < 0.95 < found[-1]


def test_perfect_priors_far_from_the_threshold_are_never_charged_and_hopeless_ones_always():
    honest = {"standard_error": 1e-4, "noise_sd": 0.0, "queries": 50}
    assert charges_of_a_search([0.05, 0.05], prior_error=1e-4, **honest)[0] == pytest.approx(1.0, abs=1e-12)
    assert charges_of_a_search([0.05, 0.05], prior_error=1e3, **honest)[-1] == pytest.approx(1.0, abs=1e-3)


def test_the_error_that_all_questions_share_makes_a_halt_likelier_than_independent_ones():
    """Theory: of one search .951 becomes .918."""
    thresholds = [0.0395, 0.034, 0.029, 0.024, 0.0183]
    own, shared = 0.012, math.sqrt(0.87 * 0.13 / 5_000)
    together = charges_of_a_search(
        thresholds, prior_error=own, standard_error=shared, noise_sd=0.0, queries=100
    )
    apart = charges_of_a_search(
        thresholds, prior_error=math.hypot(own, shared), standard_error=0.0, noise_sd=0.0, queries=100
    )
    assert together[:-1].sum() < apart[:-1].sum() - 0.01


# ---- what a plan makes of it


def complete_by_hand(plan, common):
    """Probability that all questions are answered, from the plan's thresholds; a share of the error is common."""
    thresholds = [plan.threshold_at(charges=charges) for charges in range(plan.charges)]
    error, certificate = math.sqrt(plan.estimate * (1.0 - plan.estimate) / plan.rows), plan.scores

    def law(shared):
        apart = math.hypot(plan.prior_error, math.sqrt(1.0 - common) * error)
        deviations = {"prior_error": apart, "noise_sd": certificate.comparison_sd}
        hits = [charged(shared, threshold, **deviations) for threshold in thresholds]
        return chain([*hits, 0.0], queries=plan.queries - 1)

    return float(averaged(law, math.sqrt(common) * error)[:-1].sum())


@for_each(
    "wish",
    [
        {"rows": 5_000, "queries": 100, "charges": 4, "prior_error": 0.012, "estimate": 0.87},
        {"rows": 10_000, "queries": 200, "tolerance": 0.05, "estimate": 0.9},
        {"rows": 2_000, "queries": 60, "charges": 2, "tolerance": 0.09},
    ],
)
def test_a_plans_probability_is_that_of_its_own_thresholds(wish):
    plan = Plan(**wish)
    by_hand = [complete_by_hand(plan, common) for common in (1.0, 0.5)]
    assert plan.honest_search == pytest.approx(min(by_hand), abs=2e-4)
    assert plan.honest_charges()[:-1].sum() == plan.honest_search


def test_agreed_answers_are_as_narrow_as_the_theory_has_them():
    """After 0, 1 and 2 charges; an honest search of a hundred is answered to its end."""
    plan = Plan(rows=5_000, queries=100, charges=3, estimate=0.85, noise=0.0)
    widths = [plan.agreed_half_width(charges=charges) for charges in range(3)]
    assert widths == pytest.approx([0.0446, 0.0515, 0.0561], rel=0.01)
    assert len({plan.threshold_at(charges=charges) for charges in range(3)}) == 1
    assert plan.honest_search >= 0.995
    # a smaller tolerance leaves smaller thresholds, and fewer searches get to their end
    narrower = Plan(rows=5_000, queries=100, charges=3, estimate=0.85, noise=0.0, tolerance=0.05)
    assert narrower.threshold < plan.threshold
    assert narrower.honest_search < plan.honest_search


def test_charges_are_derived_for_a_search_that_is_answered_to_the_end_if_there_are_such():
    wish = {"rows": 10_000, "queries": 1_000, "tolerance": 0.06, "estimate": 0.9}
    plan = Plan(**wish)
    assert plan.charges >= 8
    assert plan.honest_search >= 0.95
    reachable = Plan(rows=5_000, queries=100, charges=4, estimate=0.87, prior_error=0.012)
    derived = Plan(
        rows=5_000, queries=100, tolerance=reachable.tolerance, estimate=0.87, prior_error=0.012, choices=[]
    )
    assert derived.charges >= reachable.charges
    assert derived.honest_search >= 0.95


def test_where_no_charges_serve_those_that_come_nearest_are_taken_and_the_plan_says_so():
    wish = {"rows": 2_000, "queries": 100, "tolerance": 0.07, "estimate": 0.87, "prior_error": 0.02}
    plan = Plan(**wish)
    assert plan.honest_search < 0.95
    for charges in range(1, plan.charges + 5):
        try:
            other = Plan(**wish, charges=charges, reveals=plan.reveals, choices=plan.choices)
        except PlanError:
            continue
        assert other.honest_search <= plan.honest_search + 1e-12
    text = " ".join(str(plan).split())
    assert "is answered to the last query with probability" in text
    assert "only, to half of them with" in text


def test_charges_after_fewer_questions_are_fewer():
    plan = Plan(rows=5_000, queries=100, charges=4, estimate=0.87, prior_error=0.012)
    half, whole = plan.honest_charges(queries=50), plan.honest_charges(queries=100)
    assert half.shape == whole.shape == (5,)
    assert (np.cumsum(half) >= np.cumsum(whole) - 1e-9).all()
    assert plan.honest_charges(queries=100)[:-1].sum() <= plan.honest_search
