"""Calls of different epsilons and q (Remark B.6): a supermartingale, the exact delta of the whole, and limits."""

import math
from collections import defaultdict
from fractions import Fraction

import mpmath
import pytest
from cases import for_each, refuses
from hypothesis import given
from hypothesis import strategies as st
from long_tests import MECHANISMS

from reusable_holdout.errors import BudgetError, InputError
from reusable_holdout.mechanisms import MixedInteraction, accounting
from reusable_holdout.mechanisms.accounting.mixed_charging import _pace
from reusable_holdout.mechanisms.targets import mixed as module


@given(st.floats(1e-3, 3), st.floats(0.01, 1), st.floats(1e-3, 1), st.floats(0, 1), st.floats(1e-4, 20))
def test_no_call_makes_the_supermartingale_grow(largest, smallest, part, more, t):
    """exp(l e) (1 - q + q exp(-t e / q)) is at most 1 for every call that is admitted."""
    t, epsilon, q = t * smallest / largest, largest * part, smallest + (1 - smallest) * more
    with mpmath.workdps(40):
        hit = mpmath.mpf(q) * mpmath.exp(-mpmath.mpf(t) * epsilon / q)
        grown = mpmath.exp(mpmath.mpf(_pace(t, largest, smallest)) * epsilon) * (1 - mpmath.mpf(q) + hit)
        lost = 1e-6 * math.exp(t * largest / smallest - 20)  # digits, to a log of nearly 0
        assert grown <= 1 + 1e-12 + lost


def exact_delta(interaction, kinds, choose, *, calls, epsilon):
    """Return delta of an adaptive sequence of calls of two kinds: (epsilon, chance of a hit here, and there).

    A state counts the hits and the misses of the first kind, and of the second. Every transcript with the same counts
    has the same likelihood ratio, so that states suffice. Calls that the interaction would not admit are not made;
    where the chosen one is too heavy, the other is tried.
    """
    weights = [Fraction(each) / Fraction(accounting.not_prior_q(each)) for each, _, _ in kinds]
    states = {(0, 0, 0, 0): [1.0, 1.0]}
    ended = defaultdict(lambda: [0.0, 0.0])
    for _ in range(calls):
        following = defaultdict(lambda: [0.0, 0.0])
        for state, mass in states.items():
            spent = state[0] * weights[0] + state[2] * weights[1]
            wish = choose(state)
            left = Fraction(interaction.weight) - spent
            kind = next((k for k in (wish, 1 - wish) if weights[k] <= left), None)
            if kind is None:
                for side in (0, 1):
                    ended[state][side] += mass[side]
                continue
            for missed in (0, 1):
                after = list(state)
                after[2 * kind + missed] += 1
                for side in (0, 1):
                    chance = kinds[kind][1 + side]
                    following[tuple(after)][side] += mass[side] * (1 - chance if missed else chance)
        states = following
    for state, mass in states.items():
        for side in (0, 1):
            ended[state][side] += mass[side]
    assert sum(mass[0] for mass in ended.values()) == pytest.approx(1.0, abs=1e-9)
    return sum(max(0.0, mass[0] - math.exp(epsilon) * mass[1]) for mass in ended.values())


CHOICES = {
    "the heavy kind only": lambda state: 0,
    "the light kind only": lambda state: 1,
    "by turns": lambda state: sum(state) % 2,
    "light after a hit": lambda state: int(state[0] > state[2]),
    "heavy once the data look likelier": lambda state: int(3 * (state[0] + state[2]) < state[1] + state[3]),
}


@pytest.mark.long(*MECHANISMS)
@for_each(("epsilon", "delta"), [(8.0, 5e-2), (12.0, 1e-3)])
@for_each(("heavy", "light"), [(0.4, 0.1), (0.5, 0.02)])
@for_each("name", CHOICES)
def test_the_whole_keeps_its_delta_whatever_is_chosen(name, heavy, light, epsilon, delta):
    """Randomized response, whose NotPrior target has the least q, and calls that hit rarely."""
    interaction = MixedInteraction(epsilon=epsilon, delta=delta, largest_epsilon=heavy)
    worst = 0.0
    for least in (1.0, 0.2):
        pairs = []
        for each in (heavy, light):
            low = accounting.not_prior_q(each) * least
            pairs.append((each, low * math.exp(each), low))
        for flipped in (False, True):
            kinds = [(each, b, a) if flipped else (each, a, b) for each, a, b in pairs]
            worst = max(worst, exact_delta(interaction, kinds, CHOICES[name], calls=36, epsilon=epsilon))
    assert 0 <= worst <= delta


def test_the_same_audit_rejects_eight_times_the_weight():
    epsilon, delta, each = 3.0, 0.3, 0.2
    interaction = MixedInteraction(epsilon=epsilon, delta=delta, largest_epsilon=each)
    low = accounting.not_prior_q(each)
    kinds = [(each, low * math.exp(each), low)] * 2
    assert exact_delta(interaction, kinds, lambda _: 0, calls=300, epsilon=epsilon) <= delta
    interaction._weight *= 8
    assert exact_delta(interaction, kinds, lambda _: 0, calls=300, epsilon=epsilon) > delta


def mixed(**wish):
    return MixedInteraction(**({"epsilon": 12.0, "delta": 1e-2, "largest_epsilon": 0.4} | wish))


def call(interaction, epsilon, *, hit=True, q=None, delta=0.0):
    q = accounting.not_prior_q(epsilon) if q is None else q
    return interaction.run(lambda: "outcome", hit=lambda _: hit, epsilon=epsilon, q=q, delta=delta)


def test_hits_are_charged_by_their_weight_and_a_lighter_call_goes_on():
    interaction, spent = mixed(), Fraction(0)
    heavy, light = (Fraction(each) / Fraction(accounting.not_prior_q(each)) for each in (0.4, 0.01))
    assert call(interaction, 0.4, hit=False) == "outcome"
    assert interaction.weight_left == interaction.weight
    while spent + heavy <= Fraction(interaction.weight):
        call(interaction, 0.4)
        spent += heavy
    refuses(BudgetError, "nothing was run", call, interaction, 0.4)
    assert Fraction(interaction.weight) - spent == pytest.approx(interaction.weight_left)
    if spent + light <= Fraction(interaction.weight):
        assert call(interaction, 0.01) == "outcome"


def test_an_error_is_a_hit_and_calls_are_not_nested():
    interaction = mixed()

    def inner():
        call(interaction, 0.1)

    with pytest.raises(BudgetError, match="one call at a time"):
        interaction.run(inner, hit=lambda _: False, epsilon=0.1, q=accounting.not_prior_q(0.1))
    assert interaction.weight - interaction.weight_left == pytest.approx(0.1 / accounting.not_prior_q(0.1))


@for_each("calls_delta", [0.0, 2.0**-12])
@for_each("smallest_q", [None, 0.25])
def test_the_weight_is_that_of_the_delta_that_calls_leave(calls_delta, smallest_q, monkeypatch):
    asked = []
    monkeypatch.setattr(module, "mixed_charging_weight", lambda **how: asked.append(how) or 5.0)
    calls = MixedInteraction(
        epsilon=2.0, delta=2.0**-8, largest_epsilon=0.5, smallest_q=smallest_q, calls_delta=calls_delta
    )
    left = math.nextafter(2.0**-8 - calls_delta, 0.0) if calls_delta else 2.0**-8
    q = accounting.not_prior_q(0.5) if smallest_q is None else smallest_q
    assert asked == [{"epsilon": 2.0, "delta": left, "largest_epsilon": 0.5, "smallest_q": q}]
    assert (calls.weight, calls.weight_left) == (5.0, 5.0)


def test_the_last_hit_that_can_be_paid_is_run(monkeypatch):
    wish = {"epsilon": 2.0, "delta": 0.5, "largest_epsilon": 0.5, "smallest_q": 0.25}
    monkeypatch.setattr(module, "mixed_charging_weight", lambda **_: 2.0)
    calls = MixedInteraction(**wish)
    for each in (0.5, 0.25):
        assert call(calls, each, q=each) == "outcome"
    assert calls.weight_left == 0.0
    refuses(BudgetError, r"costs 0.5; 0 of 2 is left; nothing was run", call, calls, 0.5, q=1.0)
    monkeypatch.setattr(module, "mixed_charging_weight", lambda **_: math.nextafter(2.0, 0.0))
    refuses(InputError, "cannot pay for one hit of weight 2;", MixedInteraction, **wish)


@for_each(
    ("how", "refused"),
    [
        ({"epsilon": 0.5, "q": 0.25}, None),
        ({"epsilon": 1e-9, "q": 1.0, "delta": 0.125}, None),
        ({"epsilon": math.nextafter(0.5, 1.0), "q": 0.25}, InputError),
        ({"epsilon": 0.0, "q": 0.25}, InputError),
        ({"epsilon": 0.5, "q": math.nextafter(0.25, 0.0)}, InputError),
        ({"epsilon": 0.5, "q": math.nextafter(1.0, 2.0)}, InputError),
        ({"epsilon": 0.5, "q": 1.0, "delta": -0.125}, InputError),
        ({"epsilon": 0.5, "q": 1.0, "delta": 1.0}, InputError),
        ({"epsilon": 0.5, "q": 1.0, "delta": math.nextafter(0.125, 1.0)}, BudgetError),
    ],
)
def test_a_call_on_a_limit_is_run_and_beyond_it_refused(how, refused, monkeypatch):
    monkeypatch.setattr(module, "mixed_charging_weight", lambda **_: 2.0)
    calls = MixedInteraction(epsilon=2.0, delta=0.5, largest_epsilon=0.5, smallest_q=0.25, calls_delta=0.125)
    if refused is None:
        call(calls, **how)
        assert calls.weight_left == 2.0 - how["epsilon"] / how["q"]
    else:
        refuses(refused, "nothing was run", calls.run, lambda: 1 / 0, hit=lambda _: True, **how)
        assert calls.weight_left == 2.0
