"""A table of scores by id: what a guard takes it for, and what it refuses."""

import numpy as np
import pytest
from cases import for_each

from reusable_holdout import ReusableHoldout, ScoreTable
from reusable_holdout.errors import InputError

ROWS = 400
IDS = [f"q{k}" for k in range(ROWS)]
PASSES = np.random.default_rng(0).random((2, ROWS, 3)) < np.array([0.5, 0.8])[:, None, None]
ORDER = np.random.default_rng(1).permutation(ROWS)


def shuffled(scores):
    return ScoreTable([IDS[k] for k in ORDER], scores[ORDER])


@pytest.fixture
def guard():
    with ReusableHoldout(
        None, IDS, metric="score", queries=20, tolerance=0.2, seed=0, witness=False, vacuous=True
    ) as made:
        yield made


def test_a_table_is_the_same_question_as_an_array_in_the_guards_order(guard):
    first = guard.evaluate_predictions(PASSES[0], prior=0.5)
    assert guard.evaluate_predictions(shuffled(PASSES[0]), prior=0.5).replayed
    assert not first.replayed


def test_tables_are_compared_batched_and_chosen_from(guard):
    new, old = shuffled(PASSES[1]), ScoreTable(IDS, PASSES[0])
    answer = guard.compare_predictions(new, old, prior=0.3)
    assert answer.low < PASSES[1].mean() - PASSES[0].mean() < answer.high
    both = guard.evaluate_many([new, old], [0.8, 0.5])
    assert [one.charged for one in both] == [False, False]
    assert guard.compare_predictions(PASSES[1], PASSES[0], prior=0.3).replayed


def test_whole_numbers_are_meant_by_their_digits():
    with ReusableHoldout(
        None, np.arange(ROWS), metric="score", queries=5, charges=1, seed=0, witness=False, vacuous=True
    ) as guard:
        first = guard.evaluate_predictions(PASSES[0], prior=0.5)
        told = guard.evaluate_predictions(ScoreTable([str(k) for k in ORDER], PASSES[0][ORDER]), prior=0.5)
    assert told.replayed
    assert told.value == first.value


@for_each(
    ("ids", "words"),
    [
        ([*IDS[:-1], "other"], "1 ids are missing: q399; 1 ids are not among the guard's: other"),
        (IDS[:-1], "1 ids are missing: q399"),
        ([*IDS, "more"], "1 ids are not among the guard's: more"),
        ([*IDS[:-1], "Q399 "], "1 of them differ in case, spaces or ways to write a letter alone"),
        ([*IDS[:-1], "\uff51399"], r"'\uff51399'; 1 of them differ"),
        ([*IDS[:-1], "q399\n::error::"], r"'q399\n::error::'"),
        ([*IDS[:-1], "x" * 500], "x" * 57 + "..."),
    ],
)
def test_ids_that_do_not_fit_are_named(ids, words):
    with ReusableHoldout(
        None, IDS, metric="score", queries=5, charges=1, seed=0, witness=False, vacuous=True
    ) as guard:
        with pytest.raises(InputError) as caught:
            guard.evaluate_predictions(ScoreTable(ids, np.ones(len(ids))), prior=0.5)
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)
        assert guard.queries_asked == 0


@for_each(
    ("parts", "words"),
    [
        ({"ids": ["a", "a"], "scores": [0, 1]}, "each once; got others or doubles: a"),
        ({"ids": ["a", ""], "scores": [0, 1]}, "must be text"),
        ({"ids": ["a", 1], "scores": [0, 1]}, "must be text"),
        ({"ids": ["a", "b"], "scores": [0, 1, 1]}, "for 2 ids; got (3,)"),
        ({"ids": [], "scores": []}, "got (0,)"),
        ({"ids": ["a"], "scores": [[[1]]]}, "got (1, 1, 1)"),
        ({"ids": ["a", "b"], "scores": [0, np.nan]}, "scores must be finite"),
        ({"ids": ["a", "b"], "scores": [0, 1], "groups": ["g"]}, "groups must name 2 rows; got 1"),
    ],
    ids=str,
)
def test_a_table_that_is_none_is_refused(parts, words):
    with pytest.raises(InputError) as caught:
        ScoreTable(**parts)
    assert words in str(caught.value)


def test_a_table_does_not_change_afterwards():
    values = np.zeros(2)
    table = ScoreTable(["a", "b"], values)
    values[:] = 1
    assert table.scores.tolist() == [0, 0]
    with pytest.raises(ValueError, match="read-only"):
        table.scores[0] = 1


def test_scores_out_of_the_guards_range_are_refused_with_their_rows(guard):
    with pytest.raises(InputError, match=r"must lie in \[0, 1\]; got others for q7"):
        guard.evaluate_predictions(ScoreTable(IDS, np.where(np.arange(ROWS) == 7, 5.0, 0.5)), prior=0.5)


def test_a_frame_has_a_column_for_each_repeat_and_the_groups():
    table = ScoreTable(["a", "b"], [[1, 0], [0, 0]], groups=["g", "h"])
    assert table.frame().to_dict("list") == {
        "id": ["a", "b"],
        "score_1": [1, 0],
        "score_2": [0, 0],
        "group": ["g", "h"],
    }
    assert (table.rows, table.repeats) == (2, 2)


def test_several_models_are_a_list_of_tables(guard):
    with pytest.raises(InputError, match="got a table; pass a list of one table for each model"):
        guard.evaluate_many(ScoreTable(IDS, PASSES[0]), [0.5])
