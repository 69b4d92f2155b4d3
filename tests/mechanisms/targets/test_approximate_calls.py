"""Algorithm 6: calls that are approximately private only, the exact delta of the whole, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from cases import for_each
from scipy import special

from reusable_holdout.errors import BudgetError, InputError
from reusable_holdout.mechanisms import TargetInteraction
from reusable_holdout.mechanisms.accounting.target_charging import not_prior_q


def approximate_calls(interaction: TargetInteraction, delta: float) -> int:
    """How many calls of a delta the interaction admits, none of which hits."""
    each = interaction.epsilon_each
    for count in range(10_000):
        try:
            interaction.run(lambda: 0, hit=lambda _: False, epsilon=each, q=not_prior_q(each), delta=delta)
        except BudgetError:
            return count
    raise AssertionError("no end")


def whole_delta(
    first: float, second: float, *, reveals: float, charges: int, calls: int, epsilon: float
) -> float:
    """Delta, at an epsilon, of calls that betray the data set with a chance `reveals` and else hit with one of these.

    To betray is an outcome of its own, of which the other data set is incapable. The calls stop at the last charge.
    """
    t = np.arange(charges, calls + 1)
    ways = special.gammaln(t) - special.gammaln(charges) - special.gammaln(t - charges + 1)
    j = np.arange(min(charges, calls + 1))
    left = special.gammaln(calls + 1) - special.gammaln(j + 1) - special.gammaln(calls - j + 1)
    kept = math.log1p(-reveals)

    def probabilities(p: float) -> Any:
        stopped = ways + charges * math.log(p) + (t - charges) * math.log1p(-p) + t * kept
        ended = left + j * math.log(p) + (calls - j) * math.log1p(-p) + calls * kept
        return np.exp(np.concatenate([stopped, ended]))

    here, there = probabilities(first), probabilities(second)
    return float(1 - here.sum() + np.maximum(0.0, here - math.exp(epsilon) * there).sum())


@for_each("charges", [1, 4, 20])
@for_each(("epsilon", "delta"), [(1.0, 1e-2), (3.0, 1e-3)])
@for_each("share", [0.2, 0.9])
def test_the_whole_interaction_keeps_its_delta_with_the_deltas_of_its_calls(
    charges: int, epsilon: float, delta: float, share: float
) -> None:
    wish: dict[str, Any] = {"charges": charges, "epsilon": epsilon, "delta": delta}
    each = TargetInteraction(**wish, calls_delta=share * delta).epsilon_each
    for count in (1, 50, 400):
        reveals = share * delta / count
        calls = approximate_calls(TargetInteraction(**wish, calls_delta=share * delta), reveals)
        assert calls in (count, count - 1)  # rounding may cost one
        worst = 0.0
        for q in (
            not_prior_q(each),
            0.1,
            1e-9,
        ):  # randomized response has the least; rarer hits are possible too
            for pair in ((q * math.exp(each), q), (q, q * math.exp(each))):
                if max(pair) < 1:
                    worst = max(
                        worst,
                        whole_delta(*pair, reveals=reveals, charges=charges, calls=calls, epsilon=epsilon),
                    )
        assert worst <= delta
        if share == 0.9 and count > 1:  # the calls' part is used up, and twice as many calls are too many
            assert worst >= 0.9 * share * delta
            rare = whole_delta(
                1e-9 * math.exp(each),
                1e-9,
                reveals=reveals,
                charges=charges,
                calls=2 * calls,
                epsilon=epsilon,
            )
            assert rare > delta


def test_what_is_set_aside_makes_the_calls_noisier() -> None:
    plain = TargetInteraction(charges=5, epsilon=1.0, delta=1e-5)
    aside = TargetInteraction(charges=5, epsilon=1.0, delta=1e-5, calls_delta=5e-6)
    half = TargetInteraction(charges=5, epsilon=1.0, delta=math.nextafter(5e-6, 0))
    assert half.epsilon_each == aside.epsilon_each < plain.epsilon_each
    two = TargetInteraction(charges=5, epsilon=1.0, delta=1e-5, targets=2, calls_delta=2.5e-6)
    assert (
        two.epsilon_each
        == TargetInteraction(charges=5, epsilon=1.0, delta=math.nextafter(5e-6, 0), targets=2).epsilon_each
    )


def test_deltas_add_up_exactly_and_a_call_too_many_is_not_run() -> None:
    interaction = TargetInteraction(charges=1, epsilon=1.0, delta=0.75, calls_delta=0.5)
    each, ran = interaction.epsilon_each, []

    def call(delta: float) -> None:
        interaction.run(
            lambda: ran.append(delta), hit=lambda _: False, epsilon=each, q=not_prior_q(each), delta=delta
        )

    call(0.25)
    call(0.0)
    with pytest.raises(BudgetError, match=r"0\.25 is left"):
        call(math.nextafter(0.25, 1))
    assert interaction.delta_left == 0.25
    call(0.25)
    assert (interaction.delta_left, ran) == (0.0, [0.25, 0.0, 0.25])
    assert not interaction.halted
    call(0.0)  # purely private calls go on


def test_an_error_spends_the_calls_delta_too() -> None:
    interaction = TargetInteraction(charges=2, epsilon=1.0, delta=0.75, calls_delta=0.5)

    def fails() -> int:
        raise ValueError("no outcome")

    each = interaction.epsilon_each
    with pytest.raises(ValueError, match="no outcome"):
        interaction.run(fails, hit=lambda _: False, epsilon=each, q=not_prior_q(each), delta=0.5)
    assert (interaction.delta_left, interaction.charges_left) == (0.0, 1)


@pytest.mark.parametrize("delta", [-1e-9, 1.0, math.nan])
def test_a_calls_delta_out_of_range_is_refused(delta: float) -> None:
    interaction = TargetInteraction(charges=1, epsilon=1.0, delta=0.5, calls_delta=0.1)
    each = interaction.epsilon_each
    with pytest.raises(InputError):
        interaction.run(lambda: 0, hit=lambda _: False, epsilon=each, q=not_prior_q(each), delta=delta)
    assert interaction.delta_left == 0.1


@for_each(
    ("wrong", "words"),
    [
        ({"epsilon": 0.0}, "-private; got 0.0; nothing was run"),
        ({"epsilon": -0.1}, "-private; got -0.1; nothing was run"),
        ({"epsilon": 1.0}, "-private; got 1.0; nothing was run"),
        ({"epsilon": math.nan}, "-private; got nan; nothing was run"),
        ({"q": 0.0}, "q lies in"),
        ({"q": 1.5}, "q lies in"),
    ],
)
def test_a_call_out_of_range_is_not_made(wrong: dict[str, float], words: str) -> None:
    interaction = TargetInteraction(charges=1, epsilon=1.0, delta=0.5)
    calls: list[int] = []
    given = {"epsilon": interaction.epsilon_each, "q": 0.4} | wrong
    with pytest.raises(InputError, match=words):
        interaction.run(lambda: calls.append(1), hit=lambda _: True, **given)
    assert (calls, interaction.charges_left) == ([], 1)


@pytest.mark.parametrize(
    ("calls_delta", "targets"), [(0.5, 1), (-0.1, 1), (0.25, 2), (math.nan, 1), (1.0, 1)]
)
def test_what_is_set_aside_is_less_than_delta(calls_delta: float, targets: int) -> None:
    with pytest.raises(InputError, match="calls_delta"):
        TargetInteraction(charges=1, epsilon=1.0, delta=0.5, targets=targets, calls_delta=calls_delta)


def test_without_calls_delta_a_call_with_one_is_refused() -> None:
    interaction = TargetInteraction(charges=1, epsilon=1.0, delta=0.5)
    each = interaction.epsilon_each
    with pytest.raises(BudgetError, match="nothing was run"):
        interaction.run(lambda: 0, hit=lambda _: False, epsilon=each, q=not_prior_q(each), delta=1e-9)
