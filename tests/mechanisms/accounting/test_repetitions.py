"""The cost of the best of a random number of private runs: exact laws, formulas at sixty digits, and limits."""

import itertools
import math

import mpmath
import pytest
from cases import for_each, refuses
from hypothesis import given
from hypothesis import strategies as st
from long_tests import ACCOUNTING
from mechanisms.accounting.repeated import COMMON_LAWS, best_of, border, generating, run_probabilities

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms.accounting import Repetitions
from reusable_holdout.mechanisms.accounting.repetitions import _mean

LAWS = [*COMMON_LAWS, Repetitions(mean=6.0, shape=3.0)]
ORDERS = [10 ** (-6 + 12 * place / 480) for place in range(481)]  # less 1


@for_each("law", [*LAWS, Repetitions(mean=0.3, shape=math.inf)])
def test_the_law_has_its_mean_and_its_generating_function(law):
    runs = run_probabilities(law)
    assert float(mpmath.fsum(k * p for k, p in runs.items())) == pytest.approx(law.mean, rel=1e-9)
    for z in (0.0, 0.2, 0.9, 1.0):
        series = mpmath.fsum(p * mpmath.mpf(z) ** k for k, p in runs.items())
        assert float(series) == pytest.approx(float(generating(law, z)), abs=1e-12)


def loss(law, one, other):
    """Return the largest loss of the best run, in both directions."""
    pairs = zip(best_of(law, one), best_of(law, other), strict=True)
    return max(abs(float(mpmath.log(p / q))) for p, q in pairs)


@for_each("law", LAWS)
@for_each("epsilon", [0.05, 0.5, 2.0])
def test_an_algorithm_with_a_rare_outcome_at_its_border_loses_epsilon(law, epsilon):
    found = loss(law, *border(epsilon, rare=1e-4))
    assert 0.999 * law.epsilon(epsilon) <= found <= law.epsilon(epsilon)


@given(
    st.sampled_from(LAWS),
    st.lists(st.tuples(st.floats(0.01, 1.0), st.floats(-1.0, 1.0)), min_size=2, max_size=6),
)
def test_no_algorithm_loses_more(law, outcomes):
    one = [weight / math.fsum(w for w, _ in outcomes) for weight, _ in outcomes]
    tilted = [p * math.exp(log) for p, (_, log) in zip(one, outcomes, strict=True)]
    other = [p / math.fsum(tilted) for p in tilted]
    epsilon = max(abs(math.log(p / q)) for p, q in zip(one, other, strict=True))
    assert loss(law, one, other) <= law.epsilon(epsilon) + 1e-9


@for_each("law", LAWS)
@for_each(("epsilon", "delta"), [(0.5, 0.01), (1.0, 0.2)])
def test_runs_that_are_approximately_private_stay_within_epsilon_and_delta(law, epsilon, delta):
    """The outcomes that betray are the best, so that any run that has one is published."""
    one, other = border(epsilon, rare=1e-3)
    ours = [*((1 - delta) * p for p in one), delta, 0.0]
    theirs = [*((1 - delta) * p for p in other), 0.0, delta]
    total = law.epsilon(epsilon)
    pairs = zip(best_of(law, ours), best_of(law, theirs), strict=True)
    found = mpmath.fsum(max(mpmath.mpf(0), p - mpmath.exp(total) * q) for p, q in pairs)
    assert 0.999 * law.delta(delta) <= float(found) <= law.delta(delta) + 1e-12


def slightly_above(found, exact):
    """Return True if a number is above an exact one, by a few units in its twelfth digit at most."""
    return bool(exact * (1 + mpmath.mpf("0.5e-12")) <= found <= exact * (1 + mpmath.mpf("2e-12")))


@for_each("law", [*LAWS, Repetitions(mean=1.0 + 1e-9, shape=3.0)])
@for_each("epsilon", [1e-3, 0.5, 6.0])
def test_costs_are_the_formulas_rounded_up_and_their_inverses_use_them_up(law, epsilon):
    with mpmath.workdps(60):
        e = mpmath.mpf(epsilon)
        if law.poisson:
            exact = e + law.mean * mpmath.tanh(e / 2)
        else:
            g = mpmath.mpf(law.stop)
            exact = e + (1 + law.shape) * mpmath.log((mpmath.exp(e) + g) / (1 + g * mpmath.exp(e)))
        assert slightly_above(law.epsilon(epsilon), exact)
        for delta in (1e-12, 1e-9, 0.01, 0.4):
            if law.mean > 2:  # the other's stopping probability keeps few digits
                assert slightly_above(law.delta(delta), 1 - generating(law, 1 - mpmath.mpf(delta)))
            each = law.delta_each(delta)
            assert law.delta(each) <= delta < law.delta(math.nextafter(each, 1.0) * (1 + 1e-15))
            assert law.delta(delta) <= law.mean * delta * (1 + 1e-9)
    assert law.delta(1.0) == 1.0 or law.poisson
    assert law.delta(0.0) == law.delta_each(0.0) == law.epsilon(0.0) == 0.0
    each = law.epsilon_each(epsilon)
    assert law.epsilon(each) <= epsilon < law.epsilon(math.nextafter(each, 9.0) * (1 + 1e-15))
    assert law.epsilon_each(law.epsilon(epsilon)) >= epsilon
    assert law.delta_each(law.delta(epsilon / 9)) >= epsilon / 9


@pytest.mark.long(*ACCOUNTING)
@for_each("law", LAWS)
@for_each("order", [1.5, 3.0, 20.0])
def test_the_renyi_cost_is_above_the_exact_divergence(law, order):
    def divergence(one, other, a):
        ways = (zip(one, other, strict=True), zip(other, one, strict=True))
        totals = (mpmath.fsum(mpmath.mpf(p) ** a * mpmath.mpf(q) ** (1 - a) for p, q in way) for way in ways)
        return float(max(mpmath.log(total) for total in totals) / (a - 1))

    for epsilon, rare in itertools.product((0.1, 1.0), (1e-3, 0.2)):
        pair = border(epsilon, rare=rare)
        exact = divergence(*(best_of(law, run) for run in pair), order)
        assert exact <= law.renyi(order, lambda a, pair=pair: divergence(*pair, a))


@for_each("law", [*LAWS, Repetitions(mean=1.0, shape=math.inf), Repetitions(mean=30.0, shape=2.0)])
@for_each("rho", [1e-7, 0.01, 3.0])
@for_each("order", [1.01, 8.0, 400.0])
def test_the_renyi_cost_is_the_published_formula_at_the_best_order(law, rho, order):
    first = order * rho + math.log(law.mean) / (order - 1)
    if law.poisson:
        at = math.log1p(1 / (order - 1))
        logs = [b * ((1 + b) * rho - at) + b * math.log(b) - (1 + b) * math.log1p(b) for b in ORDERS]
        exact = first + law.mean * math.exp(min(0.0, *logs))
    else:
        rest = -math.log(law.stop)
        second = min(rest, *((b * (1 + b) * rho + rest) / (1 + b) for b in ORDERS))
        exact = first + (1 + law.shape) * second
    found = law.renyi(order, lambda a: a * rho)
    assert exact * (1 + 0.8e-12) < found < exact * (1 + 1.2e-12)


def test_an_order_may_be_infinitely_bad_and_pure_runs_cost_a_multiple_at_large_orders():
    """If no order bounds a run, the second term is the cost of the number of runs."""
    law = Repetitions(mean=4.0, shape=1.0)
    for one, tells in ((law, 2 * math.log(4)), (Repetitions(mean=4.0, shape=math.inf), 4)):
        found = one.renyi(3.0, lambda order: 0.5 if order == 3.0 else math.inf)
        assert found == pytest.approx(0.5 + tells + math.log(4) / 2, rel=1e-11)
    assert law.epsilon(0.3) <= law.renyi(1e6, lambda order: 0.3) == pytest.approx(3 * 0.3, rel=1e-3)
    # Delta of (epsilon, 0)-private runs is 0 where epsilon is below ln(1 + 1/(order - 1)).
    found = Repetitions(mean=30.0, shape=math.inf).renyi(1.5, lambda order: min(0.02, 0.0002 * order))
    assert found == pytest.approx(0.0003 + math.log(30) / 0.5, rel=1e-6)


@for_each("shape", [0.0, 0.5, 2.0, -0.5])
@for_each("mean", [1 + 1e-9, 1.5, 40.0, 1e7])
def test_a_law_stops_where_it_has_its_mean_and_a_single_run_costs_itself(shape, mean):
    with mpmath.workdps(60):
        g, eta = mpmath.mpf(Repetitions(mean=mean, shape=shape).stop), mpmath.mpf(shape)
        exact = (1 - g) / (-mpmath.log(g) * g) if shape == 0 else eta * (1 - g) / (g * (1 - g**eta))
        assert float(exact) == pytest.approx(mean, rel=1e-11)
    assert Repetitions(mean=1 + 1e-13, shape=shape).stop == math.exp(-1e-12)
    assert Repetitions(mean=7.0, shape=1.0).stop == 1 / 7
    once = Repetitions(mean=1.0, shape=shape)
    assert (once.stop, once.epsilon(0.3), once.delta(0.2)) == (1.0, 0.3, 0.2)
    assert (once.epsilon_each(0.3), once.delta_each(0.2)) == (0.3, 0.2)


SHAPE, MEAN, POISSONS = "shape is 0, or above -1", "the mean number of runs", "the mean of a Poisson law"


@for_each(
    ("taken", "refused", "words"),
    [
        ([(3.0, 1e-12), (3.0, -1e-12), (3.0, 0.0)], [(3.0, 0.9e-12), (3.0, -0.9e-12), (3.0, 1e-300)], SHAPE),
        ([(1.0, -0.999), (1.0, 9.0)], [(1.0, -1.0), (1.0, -1.5), (1.0, math.nan)], SHAPE),
        (
            [(1.0, 0.0), (1e9, 0.0)],
            [(math.nextafter(1.0, 0), 0.0), (0.0, 1.0), (math.inf, 0.0), (math.nan, 0.0)],
            MEAN,
        ),
        ([(1e-9, math.inf), (1e9, math.inf)], [(x, math.inf) for x in (0.0, -1.0, math.inf)], POISSONS),
        ([(_mean(1e-280, -0.9) * (1 - 1e-9), -0.9)], [(_mean(1e-280, -0.9), -0.9), (1e300, -0.9)], MEAN),
    ],
)
def test_a_law_is_taken_up_to_its_limits(taken, refused, words):
    for mean, shape in taken:
        Repetitions(mean=mean, shape=shape)
    for mean, shape in refused:
        refuses(InputError, words, Repetitions, mean=mean, shape=shape)


def test_a_poisson_law_of_small_mean_has_no_renyi_cost_and_no_stopping_probability():
    law = Repetitions(mean=math.nextafter(1.0, 0), shape=math.inf)
    refuses(InputError, "a mean of at least 1", law.renyi, 2.0, lambda order: order)
    with pytest.raises(InputError, match="stopping"):
        law.stop  # noqa: B018 - a property that raises
