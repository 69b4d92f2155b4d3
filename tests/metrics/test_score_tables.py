"""A table of scores by id: its meaning for a guard, and what a guard refuses."""

import numpy as np
import pytest
from cases import for_each, refuses
from made_guards import made_guard

from reusable_holdout import ScoreTable
from reusable_holdout.errors import InputError

ROWS = 400
IDS = [f"q{k}" for k in range(ROWS)]
PASSES = np.random.default_rng(0).random((2, ROWS, 3)) < np.array([0.5, 0.8])[:, None, None]
ORDER = np.random.default_rng(1).permutation(ROWS)
PLAN = {"metric": "score", "queries": 20, "tolerance": 0.2, "seed": 0, "witness": False, "vacuous": True}


def shuffled(scores, ids=IDS):
    return ScoreTable([str(ids[k]) for k in ORDER], scores[ORDER])


@pytest.fixture
def guard():
    with made_guard(None, IDS, **PLAN) as made:
        yield made


def test_a_table_is_the_same_question_as_an_array_in_the_guards_order(guard):
    first = guard.evaluate(PASSES[0], prior=0.5)
    assert guard.evaluate(shuffled(PASSES[0]), prior=0.5) == first._replace(replayed=True)
    with made_guard(None, np.arange(ROWS), **PLAN) as numbered:  # whole numbers are meant by their digits
        numbered.evaluate(PASSES[0], prior=0.5)
        assert numbered.evaluate(shuffled(PASSES[0], range(ROWS)), prior=0.5).replayed


def test_tables_are_compared_and_batched(guard):
    new, old = shuffled(PASSES[1]), ScoreTable(IDS, PASSES[0])
    answer = guard.compare(new, old, prior=0.3)
    assert answer.low < PASSES[1].mean() - PASSES[0].mean() < answer.high
    assert [one.charged for one in guard.evaluate([new, old], prior=[0.8, 0.5])] == [False, False]
    assert guard.compare(PASSES[1], PASSES[0], prior=0.3).replayed
    with pytest.raises(InputError, match=r"a prior must be a number in .*; got \[0\.5\]; nothing was asked"):
        guard.evaluate(old, prior=[0.5])


@for_each(
    ("ids", "words"),
    [
        ([*IDS[:-1], "other"], "1 ids are missing: q399; 1 ids are not among the guard's: other"),
        (IDS[:-1], "1 ids are missing: q399"),
        ([*IDS, "more"], "1 ids are not among the guard's: more"),
        ([*IDS[:-1], "Q399 "], "1 of them differ only in case, spaces or the way a letter is encoded"),
        ([*IDS[:-1], "\uff51399"], r"'\uff51399'; 1 of them differ"),
        ([*IDS[:-1], "q399\n::error::"], r"'q399\n::error::'"),
        ([*IDS[:-1], "x" * 500], "x" * 57 + "..."),
    ],
)
def test_ids_that_do_not_fit_are_named(guard, ids, words):
    caught = refuses(InputError, "", guard.evaluate, ScoreTable(ids, np.ones(len(ids))), prior=0.5)
    assert words in str(caught)
    assert "\n" not in str(caught)
    assert guard.queries_asked == 0


@for_each(
    ("parts", "words"),
    [
        ({"ids": ["a", "a"], "scores": [0, 1]}, "each row once; got these more than once: a"),
        ({"ids": ["a", ""], "scores": [0, 1]}, "got none at places 2"),
        ({"ids": ["a", 1], "scores": [0, 1]}, "all text"),
        ({"ids": ["a", "b"], "scores": [0, 1, 1]}, "for 2 ids; got (3,)"),
        ({"ids": [], "scores": []}, "at least 1 row"),
        ({"ids": ["a"], "scores": [[[1]]]}, "got (1, 1, 1)"),
        ({"ids": ["a", "b"], "scores": [0, np.nan]}, "scores must be finite"),
        ({"ids": ["a", "b"], "scores": [0, 1], "groups": ["g"]}, "groups must name 2 rows; got 1"),
    ],
    ids=str,
)
def test_a_table_that_is_none_is_refused(parts, words):
    caught = refuses(InputError, "", ScoreTable, **parts)
    assert words in str(caught)


def test_a_table_has_a_frame_and_does_not_change_afterwards():
    values = np.array([[1.0, 0.0], [0.0, 0.0]])
    table = ScoreTable(["a", "b"], values, groups=["g", "h"])
    values[:] = 1
    columns = {"id": ["a", "b"], "score_1": [1, 0], "score_2": [0, 0], "group": ["g", "h"]}
    assert table.frame().to_dict("list") == columns
    assert (table.rows, table.repeats) == (2, 2)
    with pytest.raises(ValueError, match="read-only"):
        table.scores[0] = 1
