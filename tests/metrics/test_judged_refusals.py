"""Scores that do not fit their rows are refused in words that name the rows, and quote no score."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from cases import for_each, refuses
from metrics.test_judged_scores import FRAME, IDS, REPEATED, SCORES, bound

from reusable_holdout.errors import InputError
from reusable_holdout.metrics import ScoreTable

REFUSED = {
    "too few rows": (SCORES[:4], r"must have shape \(5,\) or \(5, repeats\); got \(4,\); score every row"),
    "repeats first": (np.ones((2, 5)), r"got \(2, 5\); score every .*; rows come first, repeats second"),
    "a batch": (np.ones((2, 5, 3)), r"got \(2, 5, 3\); .* as a list to evaluate"),
    "no repeats": (np.ones((5, 0)), r"got \(5, 0\)"),
    "a number": (0.5, r"got \(\)"),
    "nothing": (None, "got None"),
    "text": (["good"] * 5, "must be real numbers; got text"),
    "complex numbers": (SCORES * 1j, "complex"),
    "None among them": ([None, *SCORES[1:]], "must not be missing"),
    "NaN": (np.where(SCORES == 1, np.nan, SCORES), "got NaN or infinity for q3; score every row"),
    "a null of polars": (pl.Series([0.5, None, 1, 0, 0]), "got NaN or infinity for q2;"),
    "a long double": (np.array(["1e4000"] * 5, "g"), "got NaN or infinity for q1, q2, q3, q4, q5;"),
    "too large": (SCORES * 2, r"must lie in \[0, 1\]; got scores outside for q3, q5; .* make the guard with score\("),
    "too small": (SCORES - 0.05, "got scores outside for q4;"),
    "a missing id": (FRAME[:4], "got column 'id' in which 1 ids are missing: q2; nothing was asked"),
    "a table of scores with one": (ScoreTable(IDS[1:], SCORES[1:]), "in which 1 ids are missing: q1; nothing"),
    "an unknown id": (FRAME.replace({"id": {"q2": "x"}}), "missing: q2; 1 ids are not among the guard's: x;"),
    "an id twice": (pd.concat([FRAME, FRAME[:2]]), "2 ids come more than once: q4, q1;"),
    "an id in place of another": (FRAME.replace({"id": {"q2": "q3"}}), "missing: q2; 1 ids come more than once: q3;"),
    "an id that is none": (FRAME.replace({"id": {"q2": None}}), "1 ids are missing: q2; 1 ids are not"),
    "an index with a missing id": (FRAME[:4].set_index("id"), "got its index in which 1 ids are missing: q2;"),
    "a series with unknown ids": (pd.Series(SCORES, list("abcde")), "such as 'q1', .* none of them in its index;"),
    "no ids beside columns": (REPEATED.drop(columns="id"), "none of them in column 'score', column 'again'"),
    "two columns of ids": (FRAME.assign(name=FRAME["id"]), "in column 'id', column 'name'; leave all but one"),
    "two levels": (FRAME.set_index(["id", "score"], drop=False)["score"], "none of them in its index"),
    "lists for names": (pd.DataFrame({"id": [[1]] * 5, "s": SCORES}), "none of them in column 'id', column 's'"),
    "a column of text": (FRAME.assign(model="m"), "column 'model' of scores must be real numbers; got text"),
    "a frame of nothing": (FRAME.set_index("id")[[]], "must have a column in addition to the ids"),
    "a polars frame without ids": (pl.DataFrame({"a": SCORES, "b": SCORES}), "none of them"),
    "a dictionary": (dict(zip(IDS, SCORES, strict=True)), "got dict"),
}  # fmt: skip


@for_each("name", REFUSED)
def test_scores_that_do_not_fit_are_refused_and_the_rows_named(name):
    given, words = REFUSED[name]
    refuses(InputError, words, bound().prepare, given)
    refuses(InputError, rf"predictions\[1\]: .*{words}", bound().prepare_many, [SCORES, given])


def test_scores_that_are_computed_later_are_refused():
    dask = pytest.importorskip("dask.array")
    with pytest.raises(InputError, match=r"must be in memory; got Array; pass what its compute\(\) gives"):
        bound().prepare(dask.from_array(SCORES))
    refuses(InputError, "must be in memory", bound().prepare_many, dask.from_array(SCORES[None]))


def test_repeats_in_a_list_of_rows_are_taken_for_models_and_refused_with_what_to_pass():
    for given in (np.ones((5, 2)).tolist(), list(np.ones((5, 2))), np.ones((5, 1)).tolist()):
        with pytest.raises(
            InputError, match="one entry for each model: transpose it, or pass an array if all"
        ):
            bound().prepare_many(given)


def test_an_empty_batch_is_refused():
    for given in ([], np.ones((0, 5))):
        refuses(InputError, "at least one query", bound().prepare_many, given)


def test_fewer_repeats_than_k_are_refused():
    for metric in ("pass@3", "pass^3"):
        for given in (np.ones((5, 2)), np.ones(5), FRAME.assign(score=1)):
            with pytest.raises(
                InputError, match=r"at least 3 repeats of every row; got [12]; pass scores of shape"
            ):
                bound(metric).prepare(given)
        assert bound(metric).prepare(np.ones((5, 3))).tolist() == [1] * 5


def test_repeats_that_neither_pass_nor_fail_are_refused():
    for metric in ("pass@2", "pass^2"):
        with pytest.raises(InputError, match="each repeat must score 0 or 1; got other numbers for q2, q5;"):
            bound(metric).prepare(np.stack([SCORES, SCORES], axis=1)[[3, 1, 2, 3, 4]])


def test_no_message_quotes_a_score():
    secret = 0.2718281828
    for given in ([secret, 2, 0, 0, 0], [secret, np.nan, 0, 0, 0], pd.Series([secret] * 5, list("abcde"))):
        for metric in ("score", "pass@1"):
            caught = refuses(InputError, "", bound(metric).prepare, given)
            assert "2718" not in str(caught)


def test_no_model_predicts_what_a_judge_gives():
    with pytest.raises(InputError, match="metric 'score' takes judged scores, not a model's predictions"):
        _ = bound().form
