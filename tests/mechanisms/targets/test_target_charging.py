"""Target charging: each call's law by enumerating its noise, the whole interaction's delta, and its refusals."""

import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from cases import for_each, refuses
from long_tests import MECHANISMS
from mechanisms.accounting.target_decomposition import largest_mean, largest_q, privacy_loss, stopped_delta
from scipy import special

from reusable_holdout.errors import BudgetError, InputError
from reusable_holdout.mechanisms import TargetCharging, TargetInteraction
from reusable_holdout.mechanisms.accounting import between_thresholds_q, not_prior_mean, not_prior_q
from reusable_holdout.mechanisms.samplers.grid import Grid
from reusable_holdout.mechanisms.targets import charging
from reusable_holdout.noise import DiscreteLaplace, KeyedNoise, key_from_seed

FAR = 400  # noise beyond it is counted as the tail


class Scripted(TargetCharging):
    """Target charging whose noise is listed; it notes the law that each draw should have had."""

    noise = iter(())
    law = None

    def _draw(self, law):
        self.law = law
        return next(self.noise)


@pytest.fixture
def coarse(monkeypatch):
    """Set a grid of two steps per sensitivity, so that all noise can be listed."""
    grid = Grid(step=0.5, sensitivity=2)
    monkeypatch.setattr(Grid, "of", staticmethod(lambda _: grid))
    return grid


def scripted(*noise, **wish):
    interaction = Scripted(**({"charges": 1, "epsilon": 20.0, "delta": 0.2} | wish))
    interaction.noise = iter(noise)
    return interaction


def listed(call, value, **wish):
    """Return the chance of each outcome of one call, and the targets it hits; numbers in the tail are one outcome."""
    law = defaultdict(float)
    hits = {}
    interaction = scripted(**wish)
    for noise in range(-FAR, FAR + 1):
        interaction.noise = iter([noise])
        interaction._hits = [0] * len(interaction.hits)
        interaction._stored, interaction._names = {}, set()
        outcome = call(interaction, value)
        if isinstance(outcome, float):
            outcome = min(max(outcome, -FAR / 4), FAR / 4)
        tail = interaction.law.log_tail(FAR) if abs(noise) == FAR else interaction.law.log_pmf(noise)
        law[outcome] += math.exp(tail)
        assert hits.setdefault(outcome, interaction.hits) == interaction.hits  # of the outcome alone
    assert sum(law.values()) == pytest.approx(1.0, abs=1e-12)
    return {outcome: (law[outcome], hits[outcome]) for outcome in law}


def audit(call, value, **wish):
    """Return the privacy loss, and the smallest q of any target, over all values a sensitivity away."""
    each = scripted(**wish).epsilon_each
    losses, qs = [], []
    for other in (value - 1.0, value - 0.5, value + 0.5, value + 1.0):
        first, second = listed(call, value, **wish), listed(call, other, **wish)
        assert first.keys() == second.keys()
        p, r = [first[outcome][0] for outcome in first], [second[outcome][0] for outcome in first]
        losses.append(privacy_loss(p, r))
        targets = np.array([first[outcome][1] for outcome in first]).T > 0
        qs.extend(largest_q(p, r, target, epsilon=each) for target in targets)
    return max(losses), min(qs)


CALLS = {
    "not_prior": (lambda it, value: it.not_prior(value, 3.0), {}),
    "not_prior with a tolerance": (lambda it, value: it.not_prior(value, 0.0, tolerance=5.0), {}),
    "not_prior with two priors": (
        lambda it, value: it.not_prior(value, 0.0, 4.0, tolerance=3.0),
        {"targets": 2},
    ),
    "above": (lambda it, value: it.above(value, 4.0), {}),
    "above, expected": (lambda it, value: it.above(value, 4.0, True), {}),
    "above, either expected": (lambda it, value: it.above(value, 4.25, True, False), {"targets": 2}),
    "between": (lambda it, value: it.between(value, 0.0, 2.0), {"gap": 2.0, "epsilon": 30.0}),
    "conditional_release": (lambda it, value: it.conditional_release(value, low=4.0), {}),
    "conditional_release of an interval": (
        lambda it, value: it.conditional_release(value, low=-2.0, high=2.0),
        {},
    ),
    "named conditional_release": (lambda it, value: it.conditional_release(value, low=4.0, name="a"), {}),
}


@pytest.mark.long(*MECHANISMS)
@pytest.mark.usefixtures("coarse")
@for_each("value", [-9.0, 0.0, 3.0, 4.0, 12.0])
@for_each("name", CALLS)
def test_each_call_keeps_the_epsilon_and_the_q_it_is_charged_for(name, value):
    call, wish = CALLS[name]
    interaction = scripted(**wish)
    loss, q = audit(call, value, **wish)
    assert loss <= interaction.epsilon_each * (1 + 1e-9)
    if value == -9.0 and "revi" not in name and "named" not in name:
        assert loss == pytest.approx(interaction.epsilon_each, rel=1e-9)
    assert q >= interaction.q * (1 - 1e-5)  # chances of 1e-11 beside sums of 1, which round by 1e-16


@pytest.mark.usefixtures("coarse")
@for_each("value", [-5.0, 0.0, 4.0, 8.0])
@for_each("ends", [(3.0, math.inf), (0.0, 5.0), (-math.inf, math.inf)])
def test_a_revision_keeps_the_epsilon_and_the_q_given_that_nothing_was_released(value, ends):
    def both(interaction, value):
        if interaction.conditional_release(value, low=4.0, high=5.0, name="a") is not None:
            return "released at once"
        return interaction.revise("a", low=ends[0], high=ends[1])

    each = scripted().epsilon_each
    first, second = listed(both, value), listed(both, value + 1.0)
    kept = [outcome for outcome in first if outcome != "released at once"]
    p, r = (np.array([law[outcome][0] for outcome in kept]) for law in (first, second))
    target = [first[outcome][1] == (1,) for outcome in kept]
    assert privacy_loss(p / p.sum(), r / r.sum()) <= each * (1 + 1e-9)
    assert largest_q(p / p.sum(), r / r.sum(), target, epsilon=each) >= not_prior_q(each) * (1 - 1e-6)


def worst_delta(interaction, *, charges, calls, epsilon):
    """Return the largest delta of threshold tests of a constant value at several distances from the threshold."""
    law, sensitivity = interaction._law, interaction._grid.sensitivity
    worst = 0.0
    for distance in np.linspace(-3, 12, 16):  # in sensitivities
        at = round(distance * sensitivity)
        near, far = (math.exp(law.log_tail(at + shift)) for shift in (0, sensitivity))
        for pair in ((near, far), (far, near)):
            worst = max(worst, stopped_delta(*pair, charges=charges, calls=calls, epsilon=epsilon))
    return worst


@for_each("charges", [1, 5, 60])
@for_each(("epsilon", "delta"), [(1.0, 1e-3), (3.0, 1e-6), (0.5, 0.05)])
def test_the_whole_interaction_keeps_its_delta(epsilon, delta, charges):
    interaction = TargetCharging(charges=charges, epsilon=epsilon, delta=delta)
    for calls in (charges, 10 * charges, 300 * charges):
        assert worst_delta(interaction, charges=charges, calls=calls, epsilon=epsilon) <= delta
    # The same audit rejects an interaction that would stop at four times the charges.
    assert worst_delta(interaction, charges=4 * charges, calls=400 * charges, epsilon=epsilon) > delta


def two_target_delta(first, second, *, charges, calls, epsilon):
    """Return delta of yes/no calls that stop when the rarer answer has come `charges` times."""
    ends = [
        (min(a, b), special.comb(a + b - 1, b), a, b)
        for a, b in ((charges, b) for b in range(charges, calls))
    ]
    total = 0.0
    for yes_is_rare in (True, False):
        for _, ways, rare, common in ends:
            yes, no = (rare, common) if yes_is_rare else (common, rare)
            if yes + no <= calls:
                p, r = (ways * x**yes * (1 - x) ** no for x in (first, second))
                total += max(0.0, p - math.exp(epsilon) * r)
    for yes in range(calls + 1):
        if min(yes, calls - yes) < charges:
            p, r = (special.comb(calls, yes) * x**yes * (1 - x) ** (calls - yes) for x in (first, second))
            total += max(0.0, p - math.exp(epsilon) * r)
    return total


@for_each("charges", [1, 4])
def test_two_targets_keep_the_delta_of_the_whole(charges):
    interaction = TargetCharging(charges=charges, epsilon=1.0, delta=0.01, targets=2)
    law, sensitivity = interaction._law, interaction._grid.sensitivity
    assert interaction.epsilon_each < TargetCharging(charges=charges, epsilon=1.0, delta=0.01).epsilon_each
    for distance in np.linspace(-10, 10, 21):
        near, far = (math.exp(law.log_tail(round((distance + shift) * sensitivity))) for shift in (0, 1))
        for calls in (2 * charges, 100):
            for pair in ((near, far), (far, near)):
                assert two_target_delta(*pair, charges=charges, calls=calls, epsilon=1.0) <= 0.01


METHODS = {
    "not_prior": lambda it: it.not_prior(1e9, 0.0),
    "above": lambda it: it.above(1e9, 0.0),
    "between": lambda it: it.between(0.0, -1e9, 1e9),
    "conditional_release": lambda it: it.conditional_release(1e9, low=0.0),
    "revise": lambda it: it.revise("kept"),
    "twice": lambda it: it.twice(iter([1, 2]).__next__, epsilon=it.epsilon_each / 2),
    "run": lambda it: it.run(lambda: 1, hit=bool, epsilon=it.epsilon_each, q=1.0),
}


@for_each("name", METHODS)
def test_it_refuses_every_call_after_the_last_charge(name):
    interaction = TargetCharging(charges=2, epsilon=1.0, delta=1e-6, gap=1e6, seed=1)
    assert interaction.conditional_release(0.0, low=1e9, name="kept") is None
    METHODS["above"](interaction)
    assert (interaction.hits, interaction.charges_left, interaction.halted) == ((1,), 1, False)
    METHODS[name](interaction)
    assert (interaction.hits, interaction.charges_left, interaction.halted) == ((2,), 0, True)
    for again, method in METHODS.items():
        if (again, name) != ("revise", "revise"):  # there the name is gone
            refuses(BudgetError, "all 2 charges are spent", method, interaction)
    assert interaction.hits == (2,)


def test_with_two_targets_it_goes_on_until_the_rarer_is_spent():
    interaction = TargetCharging(charges=2, epsilon=1.0, delta=1e-6, targets=2, seed=1)
    for _ in range(10):
        assert interaction.above(1e9, 0.0, False, True)
    assert (interaction.hits, interaction.halted) == ((10, 0), False)
    for _ in range(2):
        assert not interaction.above(-1e9, 0.0, False, True)
    assert (interaction.hits, interaction.halted) == ((10, 2), True)


@pytest.mark.usefixtures("coarse")
def test_an_answer_is_the_first_prior_that_is_near():
    interaction = scripted(0, 1, 2, -1, 0, targets=2, charges=9)
    answers = [interaction.not_prior(10.0, 10.25, 11.5, tolerance=0.5) for _ in range(4)]
    assert answers == [10.25, 10.25, 11.5, 9.5]  # 11.0 is just near enough to 11.5
    assert interaction.hits == (2, 3)
    assert interaction.not_prior(3.0, 3.0, 3.0) == 3.0  # equal priors are one outcome
    assert interaction.hits == (2, 3)


@pytest.mark.usefixtures("coarse")
@for_each(
    ("threshold", "answers"),
    [
        (3.0, [False, True]),
        (math.nextafter(3.0, 9.0), [False, False]),
        (math.nextafter(2.5, 9.0), [False, True]),
    ],
)
def test_a_tie_with_the_threshold_is_above(threshold, answers):
    interaction = scripted(-1, 0, charges=9)
    assert [interaction.above(3.0, threshold) for _ in range(2)] == answers


@pytest.mark.usefixtures("coarse")
def test_without_a_tolerance_only_the_prior_itself_agrees():
    interaction = scripted(0, 1, charges=9)
    assert [interaction.not_prior(3.0, 3.0) for _ in range(2)] == [3.0, 3.5]
    assert interaction.hits == (1,)


@pytest.mark.usefixtures("coarse")
def test_both_thresholds_and_both_ends_are_included_and_only_the_middle_is_a_hit():
    noises = [-9, -1, 0, 1, 3, 4, 9]
    interaction = scripted(*noises, charges=9, gap=1.0, epsilon=30.0)
    sides = [interaction.between(0.0, 0.0, 1.5) for _ in noises]
    assert sides == ["below", "below", *["between"] * 3, "above", "above"]
    assert interaction.hits == (3,)
    interaction = scripted(*noises, charges=9)
    released = [interaction.conditional_release(0.0, low=0.0, high=1.5) for _ in noises]
    assert released == [None, None, 0.0, 0.5, 1.5, None, None]
    interaction = scripted(0, 1, charges=9)
    assert [interaction.conditional_release(1.0, low=1.0, high=1.0) for _ in range(2)] == [1.0, None]


@for_each(("low", "high", "points"), [(0.0, 9.0, 19), (0.25, 9.25, 18), (0.0, 8.75, 18), (-9.0, 9.0, 37)])
@pytest.mark.usefixtures("coarse")
def test_the_q_of_two_thresholds_is_that_of_the_grid_points_between_them(low, high, points, monkeypatch):
    asked, interaction = [], scripted(0, gap=2.0, epsilon=30.0)
    with monkeypatch.context() as patch:
        patch.setattr(charging, "between_thresholds_q", lambda *of: asked.append(of) or 1.0)
        interaction.between(0.0, low, high)
    assert asked == [(interaction.epsilon_each, points / 2)]


@pytest.mark.usefixtures("coarse")
def test_a_kept_value_is_released_once_and_without_new_noise():
    interaction = scripted(3, charges=2)
    assert interaction.conditional_release(0.0, low=4.0, name="a") is None
    assert interaction.revise("a", low=2.0) is None
    assert interaction.revise("a", low=2.0) is None  # the same region again
    for low, high in ((3.0, math.inf), (1.0, 9.0), (math.nextafter(2.0, 9.0), math.inf)):
        refuses(InputError, "must contain the region before", interaction.revise, "a", low=low, high=high)
    assert interaction.revise("a", low=1.5) == 1.5
    assert interaction.hits == (1,)
    for act in (lambda: interaction.revise("a"), lambda: interaction.revise("b")):
        refuses(InputError, "nothing is kept", act)
    refuses(InputError, "used once", interaction.conditional_release, 0.0, name="a")
    assert interaction.hits == (1,)


def test_a_call_draws_the_noise_of_its_number_under_its_label_and_a_kept_value_twice_of_it():
    how = {"charges": 9, "epsilon": 1.0, "delta": 1e-3}
    calls, noise = TargetCharging(seed=3, **how), KeyedNoise(key_from_seed(3))
    laws = {"value": DiscreteLaplace(2**16 / Fraction(calls.epsilon_each))}
    laws["revisable"] = DiscreteLaplace(2 * laws["value"].scale)

    def noisy(label, number):
        return 10.0 + noise.draw(laws[label], label=label, question=number.to_bytes(8, "big")) * calls.step

    assert [calls.conditional_release(10.0) for _ in range(3)] == [noisy("value", n) for n in range(3)]
    assert calls.conditional_release(10.0, name="a") == noisy("revisable", 3)
    assert calls.not_prior(10.0, 1e9) == noisy("value", 4)
    assert TargetCharging(**how).conditional_release(10.0) != TargetCharging(**how).conditional_release(10.0)


def test_an_interaction_without_options_is_of_sensitivity_1_and_one_target():
    how = {"charges": 2, "epsilon": 1.0, "delta": 1e-3}
    plain = TargetCharging(**how)
    spelt = TargetCharging(sensitivity=1.0, targets=1, q=not_prior_q, mean=None, gap=None, **how)
    assert plain.hits == spelt.hits == (0,)
    assert plain._law == spelt._law != TargetCharging(sensitivity=1.5, **how)._law
    assert plain.epsilon_each == TargetInteraction(**how).epsilon_each


BAD = {
    "prior": (lambda it: it.not_prior(0.0, math.nan), "finite prior"),
    "no prior": (lambda it: it.not_prior(0.0), "prior for each"),
    "two priors": (lambda it: it.not_prior(0.0, 1.0, 2.0), "prior for each"),
    "tolerance": (lambda it: it.not_prior(0.0, 1.0, tolerance=-1.0), "tolerance"),
    "infinite tolerance": (lambda it: it.not_prior(0.0, 1.0, tolerance=math.inf), "tolerance"),
    "threshold": (lambda it: it.above(0.0, math.inf), "threshold"),
    "two answers": (lambda it: it.above(0.0, 0.0, True, False), "prior answer"),
    "order": (lambda it: it.between(0.0, 2.0, 1.0), "at most its high end"),
    "no number": (lambda it: it.between(0.0, math.nan, 1.0), "at most its high end"),
    "empty": (lambda it: it.between(0.0, 0.1 * it.step, 0.2 * it.step), "multiple of the step"),
    "too near": (lambda it: it.between(0.0, 0.0, 1.0), "a q of at least"),
    "nowhere": (lambda it: it.conditional_release(0.0, low=math.inf), "multiple of the step"),
    "nowhere else": (lambda it: it.conditional_release(0.0, high=-math.inf), "multiple of the step"),
    "unknown name": (lambda it: it.revise("other"), "nothing is kept"),
    "runs' epsilon": (lambda it: it.twice(lambda: 1 / 0, epsilon=it.epsilon_each), "a call's epsilon is"),
    "no epsilon": (lambda it: it.twice(lambda: 1 / 0, epsilon=0.0), "epsilon is finite"),
    "run's epsilon": (lambda it: it.run(lambda: 1 / 0, hit=bool, epsilon=1.0, q=1.0), "a call's epsilon is"),
    "run's NaN": (lambda it: it.run(lambda: 1 / 0, hit=bool, epsilon=math.nan, q=1.0), "a call's epsilon is"),
    "run's q": (lambda it: it.run(lambda: 1 / 0, hit=bool, epsilon=1e-3, q=0.4), "a q of at least"),
    "run's large q": (lambda it: it.run(lambda: 1 / 0, hit=bool, epsilon=1e-3, q=1.1), "q lies in"),
}


@for_each("name", BAD)
def test_a_bad_argument_is_refused_before_anything_is_drawn(name):
    call, message = BAD[name]
    interaction = Scripted(charges=2, epsilon=1.0, delta=1e-6)  # a draw or a run would raise another error
    refuses(InputError, message, call, interaction)
    assert interaction.hits == (0,)


@for_each("value", [math.nan, math.inf, -math.inf, "secret", None, 10**400])
@for_each("name", ["not_prior", "above", "between", "conditional_release"])
def test_a_value_that_is_no_finite_number_is_refused_without_telling_it(name, value):
    interaction = Scripted(charges=2, epsilon=1.0, delta=1e-6, gap=1e3)
    arguments = {"not_prior": (0.0,), "above": (0.0,), "between": (0.0, 1e3)}
    caught = refuses(InputError, "", getattr(interaction, name), value, *arguments.get(name, ()))
    words = "a query's value is a finite number; nothing was answered and nothing was charged"
    assert str(caught) == words
    assert caught.__cause__ is None
    with pytest.raises(InputError, match=r"at most 17592186044416 from 0, which is 2\*\*60 grid steps"):
        getattr(interaction, name)(2.0**45, *arguments.get(name, ()))
    assert interaction.hits == (0,)


@pytest.mark.long(*MECHANISMS)
@for_each("sensitivity", [1.0, 1 / 3000, 0.7, 123.4])
@for_each("low", [0.0, 0.1, -7.3])
def test_thresholds_that_are_the_promised_gap_apart_are_accepted(sensitivity, low):
    gap = 3 * sensitivity
    interaction = TargetCharging(charges=9, epsilon=1.0, delta=1e-6, sensitivity=sensitivity, gap=gap)
    side = interaction.between(0.0, low * sensitivity, low * sensitivity + gap)
    assert side in ("below", "between", "above")
    refuses(InputError, "a q of at least", interaction.between, 0.0, 0.0, 0.99 * gap)
    assert interaction.q == pytest.approx(between_thresholds_q(interaction.epsilon_each, 3.0), rel=1e-4)


def test_noisy_answers_have_the_mean_of_not_prior_and_those_between_thresholds_do_not():
    calls = TargetCharging(charges=1, epsilon=1.0, delta=1e-2, mean=not_prior_mean, gap=100.0, seed=1)
    calls.not_prior(0.0, 0.0, tolerance=1e6)
    calls.above(0.0, 1e6)
    calls.conditional_release(0.0, low=1e6, name="kept")
    calls.revise("kept", low=1e5)
    refuses(InputError, "a mean of at least", calls.between, 0.0, 0.0, 1000.0)
    assert calls.hits == (0,)


@for_each("value", [-9, -1, 0, 3, 12])
@for_each("epsilon", [0.05, 0.5, 2.0])
def test_a_noisy_number_in_a_region_has_the_mean_whatever_the_region(value, epsilon):
    """Discrete Laplace noise on numbers that are one step apart; each target is "not in the region"."""
    at = np.arange(-4000, 4001)
    first, second = (np.exp(-epsilon * np.abs(at - moved)) for moved in (value, value + 1))
    for low, high in ((-math.inf, 0), (0, 0), (-2, 5), (4, math.inf)):
        free = (at >= low) & (at <= high)
        p, r = (np.append(law[~free], law[free].sum()) / law.sum() for law in (first, second))
        target = np.arange(len(p)) < len(p) - 1
        assert largest_mean(p, r, target, epsilon=epsilon) >= not_prior_mean(epsilon) * (1 - 1e-6)
