"""Scores that rows were given: read from every container, brought into the ids' order, averaged exactly."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from cases import for_each, refuses
from metrics.one_row import allowed, largest_changes

from reusable_holdout.errors import InputError
from reusable_holdout.metrics import (
    GRID,
    Metric,
    ScoreTable,
    described_metric,
    pass_at,
    pass_hat,
    resolve_metric,
    score,
)
from reusable_holdout.metrics.ids import Ids
from reusable_holdout.metrics.judged import MeanOfRepeats

IDS = ["q1", "q2", "q3", "q4", "q5"]
SCORES = np.array([0.1, 0.25, 1.0, 0.0, 0.6])
SHUFFLED = [3, 0, 4, 2, 1]
NAMED = {"id": [IDS[k] for k in SHUFFLED], "score": SCORES[SHUFFLED]}
FRAME = pd.DataFrame(NAMED)
REPEATED = FRAME.assign(again=FRAME["score"] / 2)


def bound(metric="score", **settings):
    return resolve_metric(metric).bind(IDS, **settings)


def by_enumeration(row, k, every):
    """Share of all sets of k repeats that hold a pass, or that are all passes."""
    sets = list(itertools.combinations(row, k))
    return Fraction(sum(all(one) if every else any(one) for one in sets), len(sets))


# ---- what is measured


@for_each("every", [False, True])
@for_each("repeats", range(1, 8))
def test_pass_at_k_and_pass_hat_k_are_the_share_of_all_sets_of_k_repeats(repeats, every):
    rows = np.array([[place < passed for place in range(repeats)] for passed in range(repeats + 1)])
    for k in range(1, repeats + 1):
        metric = pass_hat(k) if every else pass_at(k)
        prepared = metric.bind(range(len(rows))).prepare(rows)
        assert prepared.tolist() == [float(by_enumeration(row, k, every)) for row in rows]


def test_thousands_of_repeats_neither_overflow_nor_round_before_the_end():
    rows = np.zeros((3, 3_000))
    rows[0, 0], rows[1, :2_999] = 1, 1
    assert pass_at(1_500).bind(range(3)).prepare(rows).tolist() == [0.5, 1.0, 0.0]
    assert pass_hat(1_500).bind(range(3)).prepare(rows).tolist() == [0.0, 0.5, 0.0]
    assert pass_hat(10).bind([0]).prepare(rows[1:2]).tolist() == [float(Fraction(2_990, 3_000))]


def test_pass_at_one_is_pass_hat_one_and_the_mean():
    rows = np.random.default_rng(0).integers(0, 2, (5, 7))
    means = bound().prepare(rows)
    assert means == pytest.approx(rows.mean(axis=1))
    for metric in ("pass@1", "pass^1"):
        assert bound(metric).prepare(rows) == pytest.approx(means)


def test_the_score_is_the_mean_over_rows_in_its_own_units():
    metric = score(lower=1, upper=5)
    given = np.array([[1, 5], [4, 4], [2, 3]])
    assert metric.measure(["a", "b", "c"], given) == pytest.approx(given.mean())
    units = metric.bind(["a", "b", "c"]).score(metric.bind(["a", "b", "c"]).prepare(given)[None])
    assert units[0] / GRID == pytest.approx((given.mean() - 1) / 4, abs=1 / GRID)


@for_each("metric", [score(), score(lower=-2, upper=7), pass_at(2), pass_hat(3)])
def test_a_row_moves_the_score_by_one_nth_at_most(metric):
    own = metric.bind(range(4))
    if metric.name == "score":
        choices = np.array([metric.lower, 0.3, metric.upper])
    else:
        choices = np.array([[0, 0, 0], [0, 1, 0], [1, 1, 1]])
    assert own.sensitivity == Fraction(1, 4)
    assert own.sum_of_squares == 1 / 4
    changes = largest_changes(own, choices)
    assert (changes <= allowed(own)).all()
    assert changes.min() >= GRID // 4 - 1


@for_each("row", [[0.1] * 3, [1 / 3] * 7, [0.1, 0.2, 0.3], [1e-300, 1.0], [0.7] * 10 + [0.1]])
def test_a_mean_of_repeats_depends_on_no_order_and_stays_between_them(row):
    means = {
        MeanOfRepeats(0.0, 1.0).of_repeats(np.array([order]), Ids(["q"]))[0] for order in (row, row[::-1])
    }
    assert len(means) == 1
    assert min(row) <= means.pop() <= max(row)
    assert MeanOfRepeats(0.0, 1.0).of_repeats(np.array([row]), Ids(["q"]))[0] == pytest.approx(
        math.fsum(row) / len(row)
    )


# ---- names


@for_each("name", ["pass@", "pass@0", "pass@03", "pass@k", "pass^-1", "pass@2.5", "pass@1000000", "pass^²"])
def test_a_name_without_a_number_of_repeats_is_refused(name):
    refuses(InputError, r"from 1 to 999999 must follow pass[@^]; got", resolve_metric, name)
    refuses(InputError, "must be one of the catalogue", described_metric, {"name": name, "parameters": {}})


@for_each("k", [0, -1, 1.0, True, "3", None])
def test_a_k_that_is_no_whole_number_is_refused(k):
    for metric in (pass_at, pass_hat):
        refuses(InputError, "must be a whole number from 1", metric, k)


def test_a_metric_of_ones_own_is_not_of_judged_scores():
    with pytest.raises(InputError, match="of your own must be of labels or targets"):
        Metric(name="mine", lower=0, upper=1, greater_is_better=True, response="judged", loss=np.subtract)


# ---- ids


@for_each(
    ("ids", "words"),
    [
        (["a", "b", "a", "c", "b"], "got these more than once: a, b;"),
        ([1, 2, 2.0], "got these more than once: 2.0;"),
        (list("abcdefgg") + list("abcdef"), "more than once: a, b, c, d, e and 2 more;"),
        (["a", None, "c", None], "got none at places 2, 4, counted from 1"),
        (["a", "", "c"], "got none at places 2,"),
        ([1.0, np.nan, math.inf], "got none at places 2, 3,"),
        (pd.Series(["a", pd.NA], dtype="string"), "got none at places 2,"),
        (pd.Series([1, None], dtype="Int64"), "got none at places 2,"),
        (["a", 1], "all real numbers or all text"),
        ([["a", "b"]], r"must have shape \(rows,\)"),
        ([], "must have at least 1 row"),
    ],
)
def test_ids_that_do_not_name_each_row_once_are_refused_by_name(ids, words):
    refuses(InputError, words, score().bind, ids)


KEPT_IN = (list, tuple, np.array, pd.Series, pl.Series, pa.array, pd.DataFrame)


@for_each("ids", [*(kept(IDS) for kept in KEPT_IN), range(5), np.arange(5) / 2])
def test_ids_may_be_text_or_numbers_in_any_container(ids):
    assert score().bind(ids).rows == 5


def test_classes_have_no_place_beside_ids():
    refuses(InputError, "must be ids of the rows, not classes", bound, classes=[0, 1])


# ---- containers


TABLES = [FRAME, FRAME[["score", "id"]], FRAME.set_index("id"), FRAME.set_index("id")["score"]]
TABLES += [FRAME.sample(frac=1, random_state=0), FRAME.assign(again=FRAME["score"]), pl.DataFrame(NAMED)]
TABLES += [
    pa.table(NAMED),
    pa.Table.from_pandas(FRAME.set_index("id")),
    ScoreTable(NAMED["id"], NAMED["score"]),
]
ARRAYS = [*(kept(SCORES) for kept in KEPT_IN), SCORES[:, None], pd.DataFrame({"score": SCORES})]


@for_each("given", [*TABLES, *ARRAYS, np.asfortranarray(np.stack([SCORES, SCORES], axis=1))])
def test_equal_scores_have_equal_bytes_whatever_they_come_in(given):
    own = bound()
    prepared = own.prepare(given)
    assert prepared.tobytes() == SCORES.tobytes()
    assert (prepared.shape, prepared.dtype) == ((5,), np.float64)
    assert own.prepare_many([given])[0].tobytes() == SCORES.tobytes()


def test_what_is_prepared_is_a_copy_without_negative_zeros():
    given = np.array([-0.0, 0.0, 0.5, 1.0, 1.0])
    prepared = bound().prepare(given)
    assert not np.signbit(prepared).any()
    assert not np.shares_memory(prepared, given)


def test_columns_beside_the_ids_are_repeats():
    assert bound().prepare(REPEATED) == pytest.approx(0.75 * SCORES)
    assert bound("pass^2").prepare(FRAME.assign(score=[0, 1, 1, 1, 0], again=1)).tolist() == [1, 0, 1, 0, 1]


def test_ids_that_are_numbers_align_whatever_their_type():
    own = score().bind([30, 10, 20])
    frame = pd.DataFrame({"id": [10.0, 20.0, 30.0], "score": [0.1, 0.2, 0.3]})
    assert own.prepare(frame).tolist() == [0.3, 0.1, 0.2]
    assert own.prepare(frame.set_index("id")["score"]).tolist() == [0.3, 0.1, 0.2]
    assert own.prepare(pl.from_pandas(frame)).tolist() == [0.3, 0.1, 0.2]
    assert own.prepare(frame.assign(id=["10", "20", "30"])).tolist() == [0.3, 0.1, 0.2]


def test_numbers_beyond_the_precision_of_floats_are_not_mistaken_for_one_another():
    ids = [2**60, 2**60 + 1, 2**60 + 2]
    frame = pd.DataFrame({"id": ids[::-1], "score": [0.2, 0.1, 0.0]})
    assert score().bind(ids).prepare(frame).tolist() == [0.0, 0.1, 0.2]
    with pytest.raises(InputError, match=f"1 ids are not among the guard's: {2**60 + 3}"):
        score().bind(ids).prepare(frame.assign(id=[2**60 + 3, *ids[1::-1]]))


def test_an_index_that_may_be_ids_or_an_order_is_refused():
    own = score().bind([2, 0, 1])
    for given in (pd.Series([0.1, 0.2, 0.3]), pd.DataFrame({"score": [0.1, 0.2, 0.3]})):
        refuses(InputError, "may be the guard's ids or only count the rows", own.prepare, given)
    assert own.prepare([0.1, 0.2, 0.3]).tolist() == [0.1, 0.2, 0.3]
    assert own.prepare(pd.DataFrame({"id": [0, 1, 2], "s": [0.1, 0.2, 0.3]})).tolist() == [0.3, 0.1, 0.2]
    assert score().bind([0, 1, 2]).prepare(pd.Series([0.1, 0.2, 0.3])).tolist() == [0.1, 0.2, 0.3]


def test_of_several_columns_one_must_be_the_ids_though_the_rows_are_counted():
    own = score(lower=0, upper=9).bind(range(3))
    frame = pd.DataFrame({"id": [0, 1, 3], "score": [5.0, 6.0, 7.0]})  # a wrong id is no repeat
    refuses(InputError, "got column 'id' in which 1 ids are missing: 2;", own.prepare, frame)
    assert own.prepare(frame.assign(id=[2, 1, 0])).tolist() == [7.0, 6.0, 5.0]


def test_a_batch_is_models_then_rows_then_repeats():
    given = np.random.default_rng(0).random((3, 5, 4))
    own = bound()
    many = own.prepare_many(given)
    assert many.shape == (3, 5)
    for model in range(3):
        assert many[model].tobytes() == own.prepare(given[model]).tobytes()
    assert own.prepare_many(given.tolist()).tobytes() == many.tobytes()
    assert own.prepare_many(given[:, :, 0]).tobytes() == given[:, :, 0].tobytes()
    tables = [pd.DataFrame(one, index=IDS).iloc[::-1] for one in given]
    assert own.prepare_many(tables).tobytes() == many.tobytes()


# ---- several scores of the same rows


@for_each("name", ["politeness", "style[clarity]", "caf\u00e9"])
def test_a_score_of_another_name_is_another_metric(name):
    named = score(lower=1, upper=5, of=name)
    assert named.name == f"score[{name}]"
    assert described_metric(named.describe()) == named != score(lower=1, upper=5)
    assert resolve_metric(f"score[{name}]") == score(of=name)
    assert named.measure(["q1", "q2"], [[4, 5], [3, 3]]) == 3.75


@for_each("name", ["", "two\nlines", 3, "x" * 201])
def test_a_score_is_named_by_short_printable_text(name):
    refuses(InputError, "of must name a score", score, of=name)
