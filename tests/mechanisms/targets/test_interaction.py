"""Interactions of private algorithms: the exact delta of the whole, conditional release, and their limits."""

import contextlib
import itertools
import math
from fractions import Fraction

import pytest
from cases import for_each, refuses
from long_tests import MECHANISMS
from mechanisms.accounting.charging_adversary import calls_with_q, found_delta, not_prior_calls
from mechanisms.accounting.target_decomposition import largest_q, neighbours, privacy_loss, stopped_delta

from reusable_holdout.errors import BudgetError, InputError
from reusable_holdout.mechanisms import TargetCharging, TargetInteraction, one_shot_top_k
from reusable_holdout.mechanisms.accounting import differing_runs_q, not_prior_mean, not_prior_q
from reusable_holdout.mechanisms.targets import interaction as module

RATIOS = [Fraction(11, 10), Fraction(2), Fraction(4)]  # exp(e)
BUDGETS = [(1.0, 1e-2, 1), (1.0, 1e-2, 10), (5.0, 1e-2, 3), (1.0, 1e-4, 3)]


def interaction(charges=2, **more):
    return TargetInteraction(**({"charges": charges, "epsilon": 1.0, "delta": 1e-2} | more))


def call(calls, outcome=0, *, hit=False, **how):
    """Run a call that gives an outcome, or raises it; `how` overrides the largest epsilon and the least q."""
    each = calls.epsilon_each

    def algorithm():
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    how = {"epsilon": each, "q": not_prior_q(each)} | how
    return calls.run(algorithm, hit=lambda _: hit, **how)


# Calls that are approximately private (Algorithm 6).


def admitted(calls, delta):
    """Count the calls of a delta, none of which hits, that the interaction admits."""
    count = 0
    with contextlib.suppress(BudgetError):
        while True:
            call(calls, delta=delta)
            count += 1
    return count


@for_each("charges", [1, 4, 20])
@for_each(("epsilon", "delta"), [(1.0, 1e-2), (3.0, 1e-3)])
@for_each("share", [0.2, 0.9])
def test_the_whole_interaction_keeps_its_delta_with_the_deltas_of_its_calls(charges, epsilon, delta, share):
    wish = {"charges": charges, "epsilon": epsilon, "delta": delta, "calls_delta": share * delta}
    grown = math.exp(interaction(**wish).epsilon_each)
    for count in (1, 50, 400):
        reveals = share * delta / count
        calls = admitted(interaction(**wish), reveals)
        assert calls in (count, count - 1)  # rounding may cost one
        how = {"reveals": reveals, "charges": charges, "epsilon": epsilon}
        # Randomized response has the least q; rarer hits are possible too.
        pairs = [(q * grown, q) for q in (1 / (1 + grown), 0.1, 1e-9) if q * grown < 1]
        worst = max(stopped_delta(*way, calls=calls, **how) for pair in pairs for way in (pair, pair[::-1]))
        assert worst <= delta
        if share == 0.9 and count > 1:  # the calls' part is used up, and twice as many calls are too many
            assert worst >= 0.9 * share * delta
            assert stopped_delta(1e-9 * grown, 1e-9, calls=2 * calls, **how) > delta


@for_each(("calls_delta", "targets"), [(0.0, 1), (0.0, 3), (2.0**-12, 1), (2.0**-12, 3), (1e-4, 2)])
def test_the_charging_of_targets_has_the_delta_that_calls_leave_rounded_down(
    calls_delta, targets, monkeypatch
):
    asked = []
    monkeypatch.setattr(
        module, "target_charging_epsilon_each", lambda **how: asked.append(how["delta"]) or 0.1
    )
    interaction(delta=2.0**-8, targets=targets, calls_delta=calls_delta)
    exact = Fraction(2.0**-8) - targets * Fraction(calls_delta)
    assert asked == [math.nextafter(float(exact), 0.0) if calls_delta else 2.0**-8]
    assert Fraction(asked[0]) <= exact


def test_deltas_add_up_exactly_and_a_call_too_many_is_not_run():
    calls = interaction(charges=2, delta=0.75, calls_delta=0.5)
    call(calls, delta=0.25)
    call(calls)
    refuses(BudgetError, r"0\.25 is left", call, calls, ZeroDivisionError(), delta=math.nextafter(0.25, 1))
    assert calls.delta_left == 0.25
    refuses(ValueError, "no outcome", call, calls, ValueError("no outcome"), delta=0.25)
    assert (calls.delta_left, calls.charges_left) == (0.0, 1)  # an error is a hit
    call(calls)  # purely private calls go on
    refuses(BudgetError, "nothing was run", call, calls, ZeroDivisionError(), delta=1e-9)
    calls = interaction(delta=0.5, calls_delta=0.1)
    call(calls, delta=1e-30)
    assert calls.delta_left == math.nextafter(0.1, 0.0)  # rounded down


# Limits of a call.

EACH = interaction(calls_delta=1e-3).epsilon_each


@for_each(
    ("wrong", "words"),
    [
        *(({"epsilon": bad}, f"; got {bad}; nothing was run") for bad in (0.0, -0.1, 1.0, math.nan)),
        *(({"q": bad}, "q lies in") for bad in (0.0, 1.5, math.nan)),
        ({"q": math.nextafter(not_prior_q(EACH), 0.0)}, "a q of at least"),
        ({"q": 0.4, "mean": 0.6}, "a q of at least"),
        *(({"q": 0.5, "mean": bad}, "mean between q and 1") for bad in (0.49, 1.01, math.nan)),
        *(({"delta": bad}, "a call's delta lies in") for bad in (-1e-9, 1.0, math.nan)),
    ],
)
def test_a_call_out_of_range_is_not_made(wrong, words):
    calls = interaction(calls_delta=1e-3)
    refuses(InputError, words, call, calls, ZeroDivisionError(), **wrong)
    assert (calls.hits, calls.delta_left) == ((0,), 1e-3)


def test_a_call_on_a_limit_is_run():
    calls = interaction(charges=9, calls_delta=1e-3)
    for q, mean in [(calls.q, None), (1.0, None), (calls.q, 1.0), (1.0, 1.0), (calls.q, calls.q)]:
        assert call(calls, 7, hit=True, q=q, mean=mean) == 7
    assert calls.hits == (5,)
    assert call(calls, 7, q=1.0, delta=1e-3) == 7
    each = calls.epsilon_each
    assert calls.release_if(lambda: 7, lambda _: False, epsilon=each / 2, name="a") is None
    with pytest.raises(InputError, match=r"at most .*, because a later revision costs twice epsilon"):
        calls.release_if(lambda: 1 / 0, lambda _: False, epsilon=math.nextafter(each / 2, 1.0), name="b")


def test_calls_are_charged_for_their_hits_and_their_errors_and_are_not_nested():
    calls = interaction(charges=9, targets=2)
    for hit, hits in ((False, (0, 0)), ([False, True], (0, 1)), (True, (1, 2))):
        assert call(calls, "a", hit=hit) == "a"
        assert calls.hits == hits
    refuses(ZeroDivisionError, "", call, calls, ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        calls.run(lambda: 1, hit=lambda _: 1 / 0, epsilon=calls.epsilon_each, q=1.0)
    refuses(InputError, "each of 2 targets", call, calls, hit=[False])
    assert calls.hits == (4, 5)
    with pytest.raises(BudgetError, match="one call at a time"):
        calls.run(lambda: call(calls), hit=bool, epsilon=calls.epsilon_each, q=1.0)
    assert calls.hits == (5, 6)
    assert call(calls, "a") == "a"


def test_two_runs_are_charged_when_they_differ():
    calls = interaction(charges=9)
    epsilon = calls.epsilon_each / 2
    assert differing_runs_q(epsilon) >= calls.q
    assert calls.twice(iter("xxxy").__next__, epsilon=epsilon) == ("x", "x")
    assert calls.hits == (0,)
    assert calls.twice(iter("xy").__next__, epsilon=epsilon) == ("x", "y")
    assert calls.hits == (1,)


# Interactions that know the mean chance of a hit.


def attained(each, epsilon, charges, calls):
    reach = max(90, math.ceil(8 / each))
    return found_delta(each=each, epsilon=epsilon, charges=charges, calls=calls, reach=reach)


@pytest.mark.long(*MECHANISMS)
@for_each(("epsilon", "delta", "charges"), BUDGETS)
def test_the_best_adversary_attains_the_delta_of_an_interaction_that_knows_the_mean(epsilon, delta, charges):
    wish = {"epsilon": epsilon, "delta": delta, "charges": charges}
    exact, by_q = (TargetInteraction(**wish, mean=mean).epsilon_each for mean in (not_prior_mean, None))
    assert exact > by_q
    assert 0.9999 * delta < attained(exact, epsilon, charges, not_prior_calls(exact)) <= delta
    assert attained(by_q, epsilon, charges, not_prior_calls(by_q)) < 0.91 * delta
    assert TargetCharging(**wish, mean=not_prior_mean).epsilon_each == pytest.approx(exact, rel=1e-9)


@for_each(("epsilon", "delta", "charges"), BUDGETS[1:3])
def test_calls_with_a_known_q_alone_would_exceed_that_delta_and_are_refused(epsilon, delta, charges):
    calls = interaction(epsilon=epsilon, delta=delta, charges=charges, mean=not_prior_mean)
    each, least = calls.epsilon_each, not_prior_mean(calls.epsilon_each)
    assert attained(each, epsilon, charges, calls_with_q(each, not_prior_q(each))) > delta
    for how in ({}, {"mean": math.nextafter(least, 0.0)}):
        refuses(InputError, r"a mean of at least 0\.5 here", call, calls, ZeroDivisionError(), **how)
    refuses(InputError, r"a mean of at least 0\.5 here", calls.twice, lambda: 1 / 0, epsilon=each / 2)
    assert calls.charges_left == charges
    assert call(calls, 7, hit=True, mean=least) == 7
    assert calls.charges_left == charges - 1


@for_each("kind", [TargetInteraction, TargetCharging])
def test_releases_and_their_revisions_have_the_mean(kind):
    calls = kind(charges=2, epsilon=1.0, delta=1e-2, mean=not_prior_mean)
    each = calls.epsilon_each
    assert calls.release_if(lambda: 0.4, lambda value: value > 0.9, epsilon=each / 2, name="kept") is None
    assert calls.revise_release("kept", lambda value: value > 0.3) == 0.4
    assert calls.release_if(lambda: 7, lambda _: True, epsilon=each) == 7
    assert calls.halted


# Conditional release (Algorithm 2).


def indistinguishable(ratio):
    """Give pairs of laws on four outcomes within a factor of `ratio`: all but one outcome at an extreme."""
    for weights in ((1, 1, 1, 1), (1, 2, 5, 9), (60, 1, 1, 1)):
        law = [Fraction(w, sum(weights)) for w in weights]
        yield from ((law, other) for other in neighbours(law, ratio))


def masked(law, told):
    """Return the chances of the outcomes in `told` and, last, of "not released"."""
    return [*(float(law[place]) for place in sorted(told)), float(1 - sum(law[place] for place in told))]


def given_not(law, told):
    """Return a law given that the outcome is not in `told`."""
    rest = 1 - sum(law[place] for place in told)
    return [Fraction(0) if place in told else p / rest for place, p in enumerate(law)]


@for_each("ratio", RATIOS)
def test_a_release_keeps_epsilon_and_a_revision_twice_it_with_the_q_of_not_prior(ratio):
    """Lemmas D.1, 2.4, D.2 and 2.5: any target, and given that nothing was released any extension."""
    epsilon, worst = math.log(ratio), 0.0
    for law, other in indistinguishable(ratio):
        for size in (1, 2, 3):
            for told in itertools.combinations(range(4), size):
                p, q = masked(law, set(told)), masked(other, set(told))
                assert privacy_loss(p, q) <= epsilon + 1e-12
                least = largest_q(p, q, [True] * size + [False], epsilon=epsilon)
                assert least >= not_prior_q(epsilon) * (1 - 1e-9)
        for first, more in itertools.permutations(range(4), 2):
            p, q = (masked(given_not(found, {first}), {more}) for found in (law, other))
            worst = max(worst, privacy_loss(p, q))
            least = largest_q(p, q, [True, False], epsilon=2 * epsilon)
            assert least >= not_prior_q(2 * epsilon) * (1 - 1e-9)
    assert epsilon < worst <= 2 * epsilon + 1e-12


def test_an_outcome_is_released_once_when_a_wider_condition_holds():
    calls, runs = interaction(), []
    each = calls.epsilon_each / 2
    algorithm = lambda: runs.append(1) or 0.6  # noqa: E731 - it notes that it ran
    assert calls.release_if(algorithm, lambda value: value > 0.9, epsilon=each, name="model") is None
    assert calls.revise_release("model", lambda value: value > 0.8) is None
    assert calls.charges_left == 2
    assert calls.revise_release("model", lambda value: value > 0.5) == 0.6
    assert (calls.charges_left, len(runs)) == (1, 1)  # the outcome is the one that was drawn at first
    refuses(InputError, "has been released", calls.revise_release, "model", lambda value: True)
    with pytest.raises(InputError, match="used once"):
        calls.release_if(algorithm, lambda value: False, epsilon=each, name="model")
    assert (calls.charges_left, len(runs)) == (1, 1)


def test_a_released_or_unnamed_outcome_is_not_kept_and_a_release_hits_every_target():
    calls = interaction(charges=3, targets=2)
    each = calls.epsilon_each / 2
    assert calls.release_if(lambda: 3, lambda value: True, epsilon=each, name="a") == 3
    assert calls.release_if(lambda: 3, lambda value: False, epsilon=2 * each) is None
    assert calls.hits == (1, 1)
    assert calls.release_if(lambda: None, lambda value: True, epsilon=each) is None
    assert calls.hits == (2, 2)  # an outcome that is None is charged when it is released
    refuses(InputError, "nothing is kept", calls.revise_release, "a", lambda value: True)


def test_a_delta_is_spent_when_the_algorithm_runs_and_not_again():
    calls = interaction(calls_delta=1e-3)
    each = calls.epsilon_each / 2
    calls.release_if(lambda: 1, lambda value: False, epsilon=each, delta=1e-3, name="a")
    assert calls.delta_left == 0
    assert calls.revise_release("a", lambda value: True) == 1
    with pytest.raises(BudgetError, match="calls_delta"):
        calls.release_if(lambda: 1, lambda value: True, epsilon=each, delta=1e-9)


def test_a_condition_that_fails_is_a_hit_and_the_outcome_is_not_kept():
    calls = interaction(charges=3)
    each = calls.epsilon_each / 2
    refuses(ZeroDivisionError, "", calls.release_if, lambda: 1, lambda value: 1 / 0, epsilon=each, name="a")
    calls.release_if(lambda: 1, lambda value: False, epsilon=each, name="b")
    refuses(ZeroDivisionError, "", calls.revise_release, "b", lambda value: 1 / 0)
    assert calls.charges_left == 1
    for name in "ab":
        refuses(InputError, "nothing is kept", calls.revise_release, name, lambda value: True)


def test_after_the_last_charge_nothing_is_released_and_kept_outcomes_stay():
    calls = interaction(charges=1)
    each = calls.epsilon_each / 2
    calls.release_if(lambda: 1, lambda value: False, epsilon=each, name="a")
    calls.release_if(lambda: 1, lambda value: True, epsilon=each)
    for _ in range(2):
        refuses(BudgetError, "charges are spent", calls.revise_release, "a", lambda value: True)


def sweep(scores, k, highest):
    """Run Algorithm 9 in its top-k form: a threshold falls until k outcomes are released; return them and the cost."""
    calls, found = interaction(charges=k), []
    for threshold, place in itertools.product(range(highest, -1, -1), range(len(scores))):
        if calls.halted:
            break
        at_least = lambda value, least=threshold: value[0] >= least  # noqa: E731 - one condition for both
        if threshold == highest:
            algorithm = lambda place=place: (scores[place], place)  # noqa: E731
            told = calls.release_if(algorithm, at_least, epsilon=calls.epsilon_each / 2, name=str(place))
        else:
            told = None if place in found else calls.revise_release(str(place), at_least)
        found += [] if told is None else [told[1]]
    return found, k - calls.charges_left


@for_each("k", [1, 2, 3])
def test_a_sweep_of_revisions_selects_what_one_shot_selection_does(k):
    """Lemma 2.6: the same candidates, best first, and as many hits as there are of them."""
    for scores in itertools.permutations([0, 2, 3, 5]):
        how = {"algorithm": lambda score, _: (score, float(score)), "epsilon": 1.0, "delta": 1e-2}
        best = one_shot_top_k(list(scores), k, seed=1, **how)
        assert sweep(list(scores), k, highest=5) == (best.indices.tolist(), k)
