"""Selection from a domain that is not known: exact delta where the items looked at change between neighbours."""

from __future__ import annotations

import functools
import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from cases import for_each
from long_tests import MECHANISMS
from mechanisms.selection.selection_laws import delta_at, item_moves, unknown_domain_law
from scipy import stats

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms import UnknownDomainTop, unknown_domain_margin, unknown_domain_top
from reusable_holdout.mechanisms.accounting import bounded_range_epsilon_each
from reusable_holdout.mechanisms.selection import unknown_domain

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

ITEMS = "abcd"


def neighbours(
    tops: tuple[int, ...], *, items_per_row: int, monotonic: bool
) -> Iterator[tuple[dict[str, int], dict[str, int]]]:
    """Data sets whose largest scores lie about each of the tops, and all of their neighbours."""
    for top in tops:
        for scores in itertools.product((0, top - 1, top, top + 1), repeat=len(ITEMS)):
            if min(scores) < 0 or list(scores) != sorted(scores):
                continue
            one = dict(zip(ITEMS, scores, strict=True))
            for move in item_moves(ITEMS, items_per_row=items_per_row, monotonic=monotonic):
                other = {item: one[item] + move[item] for item in ITEMS}
                if min(other.values()) >= 0:
                    yield one, other


def worst_delta(
    epsilon: float,
    *,
    rate: float,
    count: int,
    known: int,
    margin: int | None,
    items_per_row: int,
    monotonic: bool,
    tops: tuple[int, ...],
) -> float:
    @functools.cache
    def law(scores: tuple[int, ...]) -> dict[tuple[str, ...], float]:
        named = dict(zip(ITEMS, scores, strict=True))
        return unknown_domain_law(named, rate, count, known=known, margin=margin)

    return max(
        delta_at(epsilon, law(tuple(one.values())), law(tuple(other.values())))
        for one, other in neighbours(tops, items_per_row=items_per_row, monotonic=monotonic)
    )


def as_promised(epsilon: float, delta: float, **how: Any) -> tuple[float, int]:
    """Rate of a step and margin in steps, where a row changes a score by one step."""
    count, monotonic = how["count"], how["monotonic"]
    monotonic = monotonic or how["items_per_row"] == 1
    rate = bounded_range_epsilon_each(epsilon=epsilon, count=count, delta=delta / 2)
    return rate / (1 if monotonic else 2), math.ceil(
        unknown_domain_margin(epsilon=epsilon, delta=delta, **how)
    )


@pytest.mark.long(*MECHANISMS)
@for_each("monotonic", [True, False])
@for_each(("count", "known", "items_per_row"), [(1, 1, 1), (1, 2, 2), (2, 2, 1), (2, 3, 4)])
@for_each(("epsilon", "delta"), [(2.0, 0.02)])
def test_delta_holds_where_the_domain_changes_between_neighbours(
    epsilon: float, delta: float, count: int, known: int, items_per_row: int, monotonic: bool
) -> None:
    how = {"count": count, "known": known, "items_per_row": items_per_row, "monotonic": monotonic}
    rate, margin = as_promised(epsilon, delta, **how)
    worst = worst_delta(epsilon, rate=rate, margin=margin, tops=(1, margin, margin + 3), **how)  # type: ignore[arg-type]
    assert 0.35 * delta <= worst <= delta  # half of delta is for composition, which one round does not need


@for_each("monotonic", [True, False])
def test_without_the_bottom_or_with_one_that_is_too_low_it_does_not(monotonic: bool) -> None:
    epsilon, delta = 1.0, 1e-3
    how: dict[str, Any] = {
        "count": 1,
        "known": 1,
        "items_per_row": 1 + (not monotonic),
        "monotonic": monotonic,
    }
    rate, margin = as_promised(epsilon, delta, **how)
    assert worst_delta(epsilon, rate=rate, margin=None, tops=(1, 5), **how) == pytest.approx(1.0)
    # Half of delta is for composition, which one round does not need, and a bottom lies on whole steps.
    low = margin - math.ceil(math.log(20) / rate)
    assert worst_delta(epsilon, rate=rate, margin=low, tops=(1, 5), **how) > delta
    assert worst_delta(epsilon, rate=rate, margin=margin, tops=(1, 5), **how) <= delta


def raced(
    monkeypatch: pytest.MonkeyPatch, scores: dict[str, float], **how: Any
) -> tuple[list[float], float, int]:
    """What is raced, in units of the sensitivity ahead of the last, the rate and the number of rounds."""
    heard: list[tuple[list[float], float, int]] = []

    def listen(behind: npt.NDArray[np.int64], rate: Any, count: int, words: Any) -> npt.NDArray[np.int64]:
        assert behind.min() == 0  # as the race wants it
        heard.append((((behind.max() - behind) / 2**16).tolist(), float(rate) * 2**16, count))
        return np.arange(count)

    with monkeypatch.context() as patch:
        patch.setattr(unknown_domain, "first_rings", listen)
        unknown_domain_top(scores, **how)
    return heard[0]


@for_each("monotonic", [True, False])
@for_each(
    ("known", "floor", "ranked"), [(2, 4.0, [9.0, 7.0]), (3, 0.0, [9.0, 7.0, 4.0]), (9, 0.0, [9.0, 7.0, 4.0])]
)
def test_the_best_are_raced_against_a_bottom_above_the_next(
    known: int, floor: float, ranked: list[float], monotonic: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = {"x": 4.0, "none": 0.0, "y": 9.0, "z": 7.0}
    how: dict[str, Any] = {
        "epsilon": 1.0,
        "delta": 1e-4,
        "known": known,
        "items_per_row": 2,
        "monotonic": monotonic,
    }
    ahead, rate, rounds = raced(monkeypatch, scores, count=2, seed=1, **how)
    bottom = floor + unknown_domain_margin(count=2, **how)
    assert np.diff([*ranked, bottom]).tolist() == pytest.approx(np.diff(ahead).tolist(), abs=1e-4)
    each = bounded_range_epsilon_each(epsilon=1.0, count=2, delta=0.5e-4)
    assert rate == pytest.approx(each / (1 if monotonic else 2))
    assert rounds == 2


@for_each(
    ("scores", "known", "floor"),
    [({"a": 1, "b": 3}, 2, 0), ({"a": 1, "b": 3}, 1, 1), ({"a": 2, "b": 0, "c": 5, "d": 4}, 2, 2)],
)
def test_every_step_of_the_grid_counts(
    scores: dict[str, int], known: int, floor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 2**16 to the sensitivity: a score of one step is above 0, and the bottom is rounded up to a step."""
    how: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-4, "known": known, "items_per_row": 2}
    ahead, _, rounds = raced(monkeypatch, {item: n / 2**16 for item, n in scores.items()}, count=1, **how)
    bottom = floor + math.ceil(unknown_domain_margin(count=1, **how) * 2**16)
    best = sorted(scores.values(), reverse=True)[:known]
    assert [round(x * 2**16) for x in np.diff(ahead)] == np.diff([*best, bottom]).tolist()
    assert rounds == 1


@for_each(("items_per_row", "share"), [(1, 1), (2, 2), (None, 2)])
def test_one_item_for_each_row_is_monotonic_without_a_promise(
    items_per_row: int | None, share: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    how: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-4, "known": 3, "items_per_row": items_per_row}
    _, rate, _ = raced(monkeypatch, {"a": 1.0}, count=1, **how)
    each = bounded_range_epsilon_each(epsilon=1.0, count=1, delta=0.5e-4)
    assert rate == pytest.approx(each / share, rel=1e-12)


@for_each("monotonic", [True, False])
def test_the_margin_makes_strangers_half_of_delta(monotonic: bool) -> None:
    epsilon, delta, count = 1.0, 1e-5, 3
    each = bounded_range_epsilon_each(epsilon=epsilon, count=count, delta=delta / 2) / (1 if monotonic else 2)
    for known, items_per_row, strangers in [(5, None, 5), (5, 9, 5), (5, 2, 2)]:
        margin = unknown_domain_margin(
            count=count,
            epsilon=epsilon,
            delta=delta,
            known=known,
            items_per_row=items_per_row,
            monotonic=monotonic,
        )
        above = math.exp(-each * (margin - (1 if monotonic else 2)))
        assert strangers * above * (1 + math.exp(epsilon)) == pytest.approx(delta / 2)


@pytest.mark.long(*MECHANISMS)
def test_a_sample_has_the_law_and_not_that_of_a_lower_bottom() -> None:
    samples, scores = 3000, {"a": 12.0, "b": 11.0, "c": 11.0, "d": 3.0}
    how: dict[str, Any] = {"count": 2, "known": 2, "items_per_row": 1, "monotonic": True}
    epsilon, delta = 3.0, 0.2
    margin = unknown_domain_margin(epsilon=epsilon, delta=delta, **how)
    rate = bounded_range_epsilon_each(epsilon=epsilon, count=2, delta=delta / 2) / 2**16
    laws = [
        unknown_domain_law(
            {item: round(score * 2**16) for item, score in scores.items()},
            rate,
            2,
            known=2,
            margin=math.ceil(off * margin * 2**16),
        )
        for off in (1.0, 0.7)
    ]
    counts = dict.fromkeys(laws[0], 0)
    for seed in range(samples):
        counts[unknown_domain_top(scores, epsilon=epsilon, delta=delta, seed=seed, **how).items] += 1
    limit = stats.chi2.isf(1e-9, df=len(counts) - 1)
    right, wrong = (
        sum((counts[o] - samples * p) ** 2 / (samples * p) for o, p in law.items()) for law in laws
    )
    assert right <= limit < wrong


def test_the_order_of_the_mapping_and_items_without_a_score_do_not_matter() -> None:
    how: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "known": 3, "items_per_row": 1}
    scores = {"the": 4000.0, "of": 2500.0, "holdout": 900.0}
    wanted = UnknownDomainTop(("the", "of"), complete=True)
    for seed in range(20):
        assert unknown_domain_top(scores, 2, seed=seed, **how) == wanted
        backwards = dict(reversed([*scores.items(), ("zero", 0.0)]))
        assert unknown_domain_top(backwards, 2, seed=seed, **how) == wanted


def test_no_data_is_the_bottom() -> None:
    how: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "known": 3}
    nothing = UnknownDomainTop((), complete=False)
    assert unknown_domain_top({}, 2, **how) == nothing
    assert unknown_domain_top({"a": 0.0}, 2, **how) == nothing
    assert unknown_domain_top({"rare": 1.0}, 2, seed=3, **how) == nothing


@for_each(
    "bad",
    [
        {"scores": {"secret": -77.125}},
        {"scores": {"secret": math.nan}},
        {"scores": {"secret": 2.0**45}},
        {"count": 0},
        {"count": 6},
        {"items_per_row": 0},
        {"items_per_row": -1},
        {"delta": 0.0},
        {"delta": 1.0},
        {"epsilon": 0.0},
        {"sensitivity": 0.0},
    ],
)
def test_what_is_out_of_range_is_refused_without_telling_of_the_data(bad: dict[str, Any]) -> None:
    good = {"scores": {"secret": 77.125}, "count": 2, "epsilon": 1.0, "delta": 1e-6, "known": 5}
    with pytest.raises(InputError) as refused:
        unknown_domain_top(**(good | bad))
    assert "secret" not in str(refused.value)
    assert "77" not in str(refused.value)


@for_each("monotonic", [False, True])
@for_each(
    ("items_per_row", "strangers", "one"), [(None, 10, False), (1, 1, True), (4, 4, False), (30, 10, False)]
)
def test_the_margin_is_that_of_the_notes(
    monotonic: bool, items_per_row: int | None, strangers: int, one: bool
) -> None:
    budget = {"count": 2, "epsilon": 1.5, "delta": 1e-6}
    each = bounded_range_epsilon_each(epsilon=1.5, count=2, delta=5e-7)
    moved = 1 if monotonic or one else 2
    margin = moved + moved * math.log(2 * strangers * (1 + math.exp(1.5)) / 1e-6) / each
    found = unknown_domain_margin(known=10, items_per_row=items_per_row, monotonic=monotonic, **budget)
    assert found == pytest.approx(margin, rel=1e-8)
    assert found >= margin
