"""Selections at the ends of their parameters' ranges, and with their parameters left at their defaults."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from cases import for_each

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms import (
    compare_selections,
    exponential_accuracy,
    exponential_mechanism,
    exponential_top,
    joint_exponential_top,
    noisy_max_accuracy,
    noisy_top_k_gaps,
    one_shot_top_k,
    permute_and_flip,
    permute_and_flip_top,
    report_noisy_max,
    report_noisy_max_gap,
    select_then_measure,
    select_top,
    synthetic_accuracy,
    synthetic_size,
    unknown_domain_margin,
    unknown_domain_top,
)
from reusable_holdout.mechanisms.selection.comparison import tightest_selection

if TYPE_CHECKING:
    from collections.abc import Callable

SCORES = np.random.default_rng(1).uniform(0, 300, 200).tolist()  # close enough for the noise to order them
WORDS = {str(place): score for place, score in enumerate(SCORES)}
TABLE: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-3, "count": 3, "candidates": 9}
RANGE: dict[str, Any] = {"candidates": 9, "epsilon": 1.0, "beta": 0.05}
WORDS_WISH: dict[str, Any] = {"epsilon": 10.0, "delta": 1e-3, "known": 30}
PLAIN = {"sensitivity": 1.0, "monotonic": False}

DEFAULTS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "exponential": (lambda **o: exponential_mechanism(SCORES, epsilon=1.0, seed=9, **o), PLAIN),
    "rounds": (lambda **o: exponential_top(SCORES, 20, epsilon=3.0, seed=1, **o), PLAIN | {"delta": 0.0}),
    "joint": (lambda **o: joint_exponential_top(SCORES, 100, epsilon=1.0, seed=1, **o), PLAIN),
    "noisy max": (lambda **o: report_noisy_max_gap(SCORES, epsilon=1.0, seed=1, **o).gap, PLAIN),
    "flip": (lambda **o: permute_and_flip(SCORES, epsilon=1.0, seed=1, **o), PLAIN),
    "rounds of flip": (
        lambda **o: permute_and_flip_top(SCORES, 20, epsilon=3.0, seed=1, **o),
        PLAIN | {"delta": 0.0},
    ),
    "tightest": (
        lambda **o: select_top(SCORES, 10, epsilon=3.0, seed=1, **o),
        PLAIN | {"delta": 0.0, "mechanism": "tightest"},
    ),
    "measured": (
        lambda **o: select_then_measure(SCORES, 5, epsilon=9.0, seed=1, **o).scores,
        PLAIN | {"delta": 0.0, "mechanism": "tightest"},
    ),
    "one shot": (
        lambda **o: one_shot_top_k(SCORES, 50, epsilon=9.0, seed=1, **o).scores,
        {"sensitivity": 1.0, "delta": 0.0, "stop_gap": None, "stop": None, "algorithm": None},
    ),
    "gaps": (lambda **o: noisy_top_k_gaps(SCORES, 50, epsilon=9.0, seed=1, **o).gaps, PLAIN),
    "unknown domain": (
        lambda **o: unknown_domain_top(WORDS, 9, seed=1, **WORDS_WISH, **o).items,
        PLAIN | {"items_per_row": None},
    ),
    "margin": (
        lambda **o: unknown_domain_margin(count=9, **WORDS_WISH, **o),
        {"items_per_row": None, "monotonic": False},
    ),
    "accuracy": (lambda **o: exponential_accuracy(**RANGE, **o), PLAIN | {"count": 1, "delta": 0.0}),
    "noisy accuracy": (lambda **o: noisy_max_accuracy(**RANGE, **o), PLAIN | {"k": 1, "noise": "laplace"}),
    "table": (
        lambda **o: [row.lead + row.scale + row.answer for row in compare_selections(**TABLE, **o)],
        PLAIN | {"beta": 0.05, "answers": False},
    ),
    "first of the table": (
        lambda **o: [tightest_selection(**TABLE | {"count": count} | o) for count in (3, 9)],
        {"monotonic": False, "answers": False},
    ),
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_what_is_left_out_is_what_the_docstring_says(name: str) -> None:
    call, defaults = DEFAULTS[name]
    assert np.array_equal(call(), call(**defaults))
    for option, other in {"sensitivity": 3.0, "monotonic": True, "delta": 1e-2, "beta": 0.5}.items():
        if option in defaults and name not in ("exponential", "flip"):
            assert not np.array_equal(call(), call(**{option: other})), f"{option} counts for nothing"


CHOICES: dict[str, Callable[..., Any]] = {
    "exponential": lambda **o: exponential_mechanism([77.125, 1.0], **o),
    "rounds": lambda **o: exponential_top([77.125, 1.0], 1, **o),
    "joint": lambda **o: joint_exponential_top([77.125, 1.0], 1, **o),
    "noisy max": lambda **o: report_noisy_max([77.125, 1.0], **o),
    "flip": lambda **o: permute_and_flip([77.125, 1.0], **o),
    "table": lambda **o: compare_selections(**TABLE | {"answers": True} | o),
    "first of the table": lambda **o: tightest_selection(**TABLE | {"answers": True} | o),
    "accuracy": lambda **o: exponential_accuracy(**RANGE | o),
    "noisy accuracy": lambda **o: noisy_max_accuracy(**RANGE | o),
    "synthetic": lambda **o: synthetic_accuracy(
        rows=10**6, queries=3, cells=2, size=9, epsilon=o["epsilon"], beta=0.1
    ),
}


@for_each("name", CHOICES)
@for_each("epsilon", [0.0, -2.0, math.inf, math.nan])
def test_an_epsilon_is_told_as_it_was_given(name: str, epsilon: float) -> None:
    """Not as the half, or the share, that a part of the budget is."""
    with pytest.raises(InputError, match=f"^epsilon is finite and above 0; got {epsilon}$"):
        CHOICES[name](epsilon=epsilon)


@for_each("name", ["table", "first of the table"])
@for_each(
    ("wish", "words"),
    [
        ({"delta": 1.0}, r"^delta lies in \[0, 1\); got 1.0$"),
        ({"delta": 1.5}, r"^delta lies in \[0, 1\); got 1.5$"),
        ({"delta": -0.25}, r"^delta lies in \[0, 1\); got -0.25$"),
        ({"delta": math.nan}, r"^delta lies in \[0, 1\); got nan$"),
        ({"count": 0}, "^count lies between 1 and the number of candidates, 9; got 0$"),
        ({"count": 10}, "^count lies between 1 and the number of candidates, 9; got 10$"),
    ],
)
def test_the_comparison_tells_what_was_given(name: str, wish: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        CHOICES[name](**wish)


@for_each("wish", [{"sensitivity": 0.0}, {"sensitivity": -1.0}, {"sensitivity": math.inf}])
def test_the_comparison_refuses_a_sensitivity_that_is_none(wish: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"positive finite number; got {wish['sensitivity']}$"):
        compare_selections(**TABLE | wish)


def test_next_to_a_limit_it_is_accepted() -> None:
    """The counterparts of what is refused: the smallest and the largest that are allowed."""
    assert len(compare_selections(**TABLE | {"count": 9})) == 4
    assert len(compare_selections(**TABLE | {"count": 1, "delta": 0.0})) == 5
    assert tightest_selection(**TABLE | {"delta": 0.0}) == "permute_and_flip_top"
    assert exponential_top([1e9, 2e9], 2, epsilon=1.0).tolist() == [1, 0]
    assert exponential_top([1.0], 1, epsilon=1.0).tolist() == [0]
    assert permute_and_flip_top([1e9, 2e9], 2, epsilon=1.0).tolist() == [1, 0]
    assert joint_exponential_top([1e9, 2e9], 2, epsilon=1.0).tolist() == [1, 0]
    assert one_shot_top_k([1e9, 2e9], 2, epsilon=1.0).indices.tolist() == [1, 0]
    assert one_shot_top_k([1e9, 2e9], 1, epsilon=1.0, stop_gap=math.ulp(0.0)).indices.tolist() == [1]
    assert noisy_top_k_gaps([1e9, 2e9], 1, epsilon=1.0).indices.tolist() == [1]
    assert report_noisy_max_gap([1e9, 2e9], epsilon=1.0).index == 1
    assert synthetic_size(queries=1, accuracy=1.0) == 1
    assert unknown_domain_top({"a": 1e9}, 1, epsilon=1.0, delta=0.5, known=1).items == ("a",)
    assert unknown_domain_top({"a": 1e9}, 1, epsilon=1.0, delta=0.5, known=1, items_per_row=1).complete


@for_each("stop_gap", [math.inf, -1.0, 0.0, math.nan])
def test_a_gap_at_which_to_stop_is_finite_and_above_0(stop_gap: float) -> None:
    with pytest.raises(InputError, match=r"^stop_gap is finite and above 0, or None; got"):
        one_shot_top_k([1.0, 2.0], 1, epsilon=1.0, stop_gap=stop_gap)
