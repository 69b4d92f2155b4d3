"""Selection from an unknown domain: exact delta where the items looked at change between neighbours."""

import functools
import itertools
import math
from collections import Counter

import numpy as np
import pytest
from cases import for_each
from long_tests import MECHANISMS
from mechanisms.selection.selection_laws import delta_at, is_rejected, item_moves, unknown_domain_law

from reusable_holdout.mechanisms import UnknownDomainTop, unknown_domain_margin, unknown_domain_top
from reusable_holdout.mechanisms.accounting import bounded_range_epsilon_each
from reusable_holdout.mechanisms.selection import unknown_domain

ITEMS = "abcd"


def neighbours(tops, *, items_per_row, monotonic):
    """Give data sets whose largest scores lie about each of the tops, and all of their neighbours."""
    for top in tops:
        for scores in itertools.product((0, top - 1, top, top + 1), repeat=len(ITEMS)):
            if min(scores) < 0 or list(scores) != sorted(scores):
                continue
            one = dict(zip(ITEMS, scores, strict=True))
            for move in item_moves(ITEMS, items_per_row=items_per_row, monotonic=monotonic):
                other = {item: one[item] + move[item] for item in ITEMS}
                if min(other.values()) >= 0:
                    yield one, other


def worst_delta(epsilon, *, rate, count, known, margin, items_per_row, monotonic, tops):
    @functools.cache
    def law(scores):
        named = dict(zip(ITEMS, scores, strict=True))
        return unknown_domain_law(named, rate, count, known=known, margin=margin)

    return max(
        delta_at(epsilon, law(tuple(one.values())), law(tuple(other.values())))
        for one, other in neighbours(tops, items_per_row=items_per_row, monotonic=monotonic)
    )


def as_promised(epsilon, delta, **how):
    """Return the rate of a step and the margin in steps, where a row changes a score by one step."""
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
    epsilon, delta, count, known, items_per_row, monotonic
):
    how = {"count": count, "known": known, "items_per_row": items_per_row, "monotonic": monotonic}
    rate, margin = as_promised(epsilon, delta, **how)
    worst = worst_delta(epsilon, rate=rate, margin=margin, tops=(1, margin, margin + 3), **how)
    assert 0.35 * delta <= worst <= delta  # half of delta is for composition, which one round does not need


@for_each("monotonic", [True, False])
def test_without_the_bottom_or_with_one_that_is_too_low_it_does_not(monotonic):
    epsilon, delta = 1.0, 1e-3
    how = {"count": 1, "known": 1, "items_per_row": 1 + (not monotonic), "monotonic": monotonic}
    rate, margin = as_promised(epsilon, delta, **how)
    assert worst_delta(epsilon, rate=rate, margin=None, tops=(1, 5), **how) == pytest.approx(1.0)
    # Half of delta is for composition, which one round does not need, and a bottom lies on whole steps.
    low = margin - math.ceil(math.log(20) / rate)
    assert worst_delta(epsilon, rate=rate, margin=low, tops=(1, 5), **how) > delta
    assert worst_delta(epsilon, rate=rate, margin=margin, tops=(1, 5), **how) <= delta


def raced(monkeypatch, scores, **how):
    """Return the leads that are raced, in sensitivities ahead of the last, the rate and the number of rounds."""
    heard = []

    def listen(behind, rate, count, words):
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
def test_the_best_are_raced_against_a_bottom_above_the_next(known, floor, ranked, monotonic, monkeypatch):
    scores = {"x": 4.0, "none": 0.0, "y": 9.0, "z": 7.0}
    how = {"epsilon": 1.0, "delta": 1e-4, "known": known, "items_per_row": 2, "monotonic": monotonic}
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
def test_every_step_of_the_grid_counts(scores, known, floor, monkeypatch):
    """There are 2**16 steps in a sensitivity: a score of one step is above 0, and the bottom is rounded up."""
    how = {"epsilon": 1.0, "delta": 1e-4, "known": known, "items_per_row": 2}
    ahead, _, rounds = raced(monkeypatch, {item: n / 2**16 for item, n in scores.items()}, count=1, **how)
    bottom = floor + math.ceil(unknown_domain_margin(count=1, **how) * 2**16)
    best = sorted(scores.values(), reverse=True)[:known]
    assert [round(x * 2**16) for x in np.diff(ahead)] == np.diff([*best, bottom]).tolist()
    assert rounds == 1


@for_each(("items_per_row", "share"), [(1, 1), (2, 2), (None, 2)])
def test_one_item_for_each_row_is_monotonic_without_a_promise(items_per_row, share, monkeypatch):
    how = {"epsilon": 1.0, "delta": 1e-4, "known": 3, "items_per_row": items_per_row}
    _, rate, _ = raced(monkeypatch, {"a": 1.0}, count=1, **how)
    each = bounded_range_epsilon_each(epsilon=1.0, count=1, delta=0.5e-4)
    assert rate == pytest.approx(each / share, rel=1e-12)


@pytest.mark.long(*MECHANISMS)
def test_a_sample_has_the_law_and_not_that_of_a_lower_bottom():
    scores = {"a": 12.0, "b": 11.0, "c": 11.0, "d": 3.0}
    how = {"count": 2, "known": 2, "items_per_row": 1, "monotonic": True, "epsilon": 3.0, "delta": 0.2}
    rate = bounded_range_epsilon_each(epsilon=3.0, count=2, delta=0.1) / 2**16
    steps = {item: round(score * 2**16) for item, score in scores.items()}
    counts = Counter(unknown_domain_top(scores, seed=seed, **how).items for seed in range(3000))
    for lower, wrong in ((1.0, False), (0.7, True)):
        margin = math.ceil(lower * unknown_domain_margin(**how) * 2**16)
        assert is_rejected(counts, unknown_domain_law(steps, rate, 2, known=2, margin=margin)) is wrong


def test_the_order_of_the_mapping_and_items_without_a_score_do_not_matter():
    how = {"epsilon": 1.0, "delta": 1e-6, "known": 3, "items_per_row": 1}
    scores = {"the": 4000.0, "of": 2500.0, "holdout": 900.0}
    wanted = UnknownDomainTop(("the", "of"), complete=True)
    for seed in range(20):
        assert unknown_domain_top(scores, 2, seed=seed, **how) == wanted
        backwards = dict(reversed([*scores.items(), ("zero", 0.0)]))
        assert unknown_domain_top(backwards, 2, seed=seed, **how) == wanted


def test_no_data_is_the_bottom():
    how = {"epsilon": 1.0, "delta": 1e-6, "known": 3}
    nothing = UnknownDomainTop((), complete=False)
    assert unknown_domain_top({}, 2, **how) == nothing
    assert unknown_domain_top({"a": 0.0}, 2, **how) == nothing
    assert unknown_domain_top({"rare": 1.0}, 2, seed=3, **how) == nothing


@for_each("monotonic", [False, True])
@for_each(
    ("items_per_row", "strangers", "one"), [(None, 10, False), (1, 1, True), (4, 4, False), (30, 10, False)]
)
def test_the_margin_is_that_of_the_notes(monotonic, items_per_row, strangers, one):
    budget = {"count": 2, "epsilon": 1.5, "delta": 1e-6}
    each = bounded_range_epsilon_each(epsilon=1.5, count=2, delta=5e-7)
    moved = 1 if monotonic or one else 2
    margin = moved + moved * math.log(2 * strangers * (1 + math.exp(1.5)) / 1e-6) / each
    found = unknown_domain_margin(known=10, items_per_row=items_per_row, monotonic=monotonic, **budget)
    assert found == pytest.approx(margin, rel=1e-8)
    assert found >= margin
