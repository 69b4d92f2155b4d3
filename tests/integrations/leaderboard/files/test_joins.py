"""Where rows are in a file: whatever the ids, what a table of texts would say."""

import numpy as np
import pyarrow as pa
import pytest
from cases import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from reusable_holdout_leaderboard.files import joins
from reusable_holdout_leaderboard.files.joins import order_of

ROWS = 2_000
KINDS = {
    "whole numbers": [str(n * 3) for n in range(ROWS)],
    "numbers with zeros before": [f"{n:06d}" for n in range(ROWS)],
    "names": [f"r{n}" for n in range(ROWS)],
    "of one length": [f"{n * 2_654_435_761 % 2**64:016x}" for n in range(ROWS)],
    "of many lengths": ["x" * (n % 60) + f"-{n}" for n in range(ROWS)],
    "other alphabets": [f"é{n}ß" for n in range(ROWS)],
    "with zero bytes": [f"a\x00{n}" for n in range(ROWS)],
    "long": [f"{n}" + "y" * 200 for n in range(ROWS)],
    "one is empty": ["", *(f"r{n}" for n in range(ROWS - 1))],
}


def shuffled(ids, seed=0):
    return [ids[k] for k in np.random.default_rng(seed).permutation(len(ids))]


@for_each("kind", list(KINDS))
def test_the_order_is_that_of_a_table(kind):
    expected, came = pa.array(KINDS[kind]), shuffled(KINDS[kind])
    order = order_of(pa.array(came), expected)
    assert order is not None or kind == "long"  # a table's turn
    if order is not None:
        assert [came[k] for k in order] == KINDS[kind]


@for_each("kind", ["names", "whole numbers", "of many lengths"])
def test_what_does_not_fit_is_left_to_a_table(kind):
    expected, came = pa.array(KINDS[kind]), shuffled(KINDS[kind])
    for wrong in ([*came[:-1], "unknown"], [*came[:-1], came[0]], [*came[:-1], ""], [*came[:-1], "9" * 30]):
        assert order_of(pa.array(wrong), expected) is None


def test_slices_and_pieces_are_read_as_they_are():
    ids = KINDS["names"]
    came = shuffled(ids)
    sliced = pa.array(["before", *came, "after"])[1:-1]
    assert [came[k] for k in order_of(sliced, pa.array(["x", *ids])[1:])] == ids
    assert order_of(pa.array([*came[:-1], None]), pa.array(ids)) is None


def test_ids_whose_digests_agree_are_left_to_a_table_or_told_apart(monkeypatch):
    monkeypatch.setattr(joins, "_SPREAD", np.uint64(0))  # all digests agree
    ids = KINDS["names"]
    assert order_of(pa.array(shuffled(ids)), pa.array(ids)) is None


@pytest.mark.parametrize("few", [0, 10_000])
def test_few_rows_say_the_same(few, monkeypatch):
    monkeypatch.setattr(joins, "_FEW", max(few, 1))
    order = order_of(pa.array(["b", "a", "c"]), pa.array(["a", "b", "c"]))
    assert order is None if few else order.tolist() == [1, 0, 2]


@settings(max_examples=60, deadline=None)
@given(st.sets(st.text(max_size=20), min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_any_texts_in_any_order(texts, random):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joins, "_FEW", 1)
        ids = sorted(texts)
        came = list(ids)
        random.shuffle(came)
        order = order_of(pa.array(came), pa.array(ids))
        assert order is None or [came[k] for k in order] == ids
