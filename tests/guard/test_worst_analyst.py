"""The worst analyst against every holdout of a few rows misses no more often than was promised. Exact; no noise."""

import pytest
from guard.every_holdout import Game
from within_reach import ALONE

LONG = pytest.mark.long("reusable_holdout/certainty", "reusable_holdout/guard")


def worst(rows, queries, charges, beta, **changes):
    changes.setdefault("threshold", 0.15)
    return Game(rows=rows, queries=queries, charges=charges, beta=beta, **changes).worst()


@pytest.mark.parametrize(
    ("rows", "beta", "missed"),
    [(6, 0.05, 2 / 64), (6, 0.5, 14 / 64), (8, 0.5, 74 / 256), (12, 0.05, 62 / 4096)],
)
def test_one_question_and_a_final_miss_seldom_enough_and_not_never(rows, beta, missed):
    assert worst(rows, 1, 1, beta) == pytest.approx(missed)
    assert missed <= beta


@pytest.mark.parametrize("threshold", [0.1, 0.2, 0.35])
@pytest.mark.parametrize("charges", [1, 2])
@pytest.mark.parametrize(("rows", "beta"), [(6, 0.05), (6, 0.5), pytest.param(8, 0.05, marks=LONG)])
def test_no_analyst_of_two_questions_and_two_finals_misses_more_often(rows, beta, charges, threshold):
    assert worst(rows, 2, charges, beta, threshold=threshold, finals=(1, 2)) <= beta


@pytest.mark.parametrize("charges", [1, 2])
@pytest.mark.parametrize(
    ("rows", "beta"), [(6, 0.5), pytest.param(8, 0.5, marks=LONG), pytest.param(8, 0.05, marks=LONG)]
)
def test_no_analyst_of_gates_misses_more_often(rows, beta, charges):
    assert worst(rows, 2, charges, beta, gate=True, threshold=0.0) <= beta


@pytest.mark.parametrize("kind", ALONE)
def test_a_way_asked_alone_and_a_final_miss_seldom_enough_and_not_never(kind):
    kinds = frozenset({kind, "main", "final"})
    assert 0.0 < worst(6, 2, 2, 0.5, kinds=kinds, priors=1) <= 0.5


@pytest.mark.parametrize("tolerance", [None, 0.4])
@pytest.mark.parametrize("kind", ALONE)
def test_a_way_asked_alone_has_no_interval_narrower_than_its_length_allows(kind, tolerance):
    """No state is left out for its length: a way could certify by another."""
    wish = {"threshold": 0.2, "tolerance": tolerance, "twin": lambda game, way, state, length: length}
    assert worst(6, 1, 1, 0.05, kinds=frozenset({kind}), **wish) <= 0.05


@pytest.mark.parametrize("kind", ["choose", "batch"])
@pytest.mark.parametrize("rows", [6, pytest.param(8, marks=LONG)])
def test_choices_and_batches_and_a_final_miss_seldom_enough_and_not_never(kind, rows):
    found = worst(rows, 2, 2, 0.5, kinds=frozenset({kind, "main", "final"}))
    assert 0.0 < found <= 0.5


@pytest.mark.parametrize("kind", ["choose", "batch"])
def test_choices_and_batches_of_gates_miss_seldom_enough(kind):
    kinds = frozenset({kind, "main", "final"})
    assert worst(6, 2, 2, 0.5, gate=True, threshold=0.0, kinds=kinds) <= 0.5


@LONG
@pytest.mark.parametrize("kind", ["compare", "failure"])
def test_comparisons_and_failures_on_some_holdouts_buy_no_miss(kind):
    assert worst(6, 2, 1, 0.5, threshold=0.2, priors=1, kinds=frozenset({kind, "main", "final"})) <= 0.5


@pytest.mark.parametrize("charges", [1, 2])
@pytest.mark.parametrize("kind", ["main", "choose", "batch"])
@pytest.mark.parametrize(("gate", "threshold"), [(False, 0.2), (True, 0.0)])
def test_failures_at_some_scores_buy_no_miss_alone_in_batches_and_in_choices(kind, gate, threshold, charges):
    kinds = frozenset({kind, "failure", "main"})
    assert worst(4, 2, charges, 0.5, gate=gate, threshold=threshold, priors=1, beam=6, kinds=kinds) <= 0.5


@pytest.mark.parametrize("tolerance", [0.25, 0.4])
@pytest.mark.parametrize("gate", [False, True])
@pytest.mark.parametrize(
    ("rows", "charges"), [(6, 1), pytest.param(6, 2, marks=LONG), pytest.param(8, 2, marks=LONG)]
)
def test_no_analyst_misses_more_often_where_evidence_decides(gate, rows, charges, tolerance):
    found = worst(rows, 2, charges, 0.5, gate=gate, threshold=0.0, tolerance=tolerance, finals=(1, 2))
    assert found <= 0.5
    assert rows == 6 or found > 0.0


@pytest.mark.parametrize("kind", [*ALONE, *(pytest.param(kind, marks=LONG) for kind in ("batch", "compare"))])
def test_batches_comparisons_and_ways_asked_alone_where_evidence_decides_buy_no_miss(kind):
    kinds = frozenset({kind, "main", "final"})
    assert worst(6, 2, 2, 0.5, threshold=0.0, tolerance=0.4, kinds=kinds, priors=1) <= 0.5


def test_labels_that_are_no_fair_coins_buy_no_miss():
    assert worst(6, 2, 1, 0.5, heads=0.8, priors=1, kinds=frozenset({"main", "final"})) <= 0.5


@pytest.mark.parametrize(("queries", "charges"), [(3, 2), (5, 3), (7, 4)])
def test_no_greedy_analyst_of_more_questions_misses_more_often(queries, charges):
    assert worst(6, queries, charges, 0.5, threshold=0.2, beam=4, priors=1) <= 0.5


@pytest.mark.parametrize(("queries", "beam"), [(1, None), (2, None), (3, 8)])
def test_intervals_that_forget_the_history_miss_more_often_and_that_is_found(queries, beam):
    def forgetful(game, kind, state, length):
        return 0.0

    kinds = frozenset({"main", "final"})
    assert worst(6, queries, 2, 0.05, twin=forgetful, beam=beam, kinds=kinds, priors=1) > 0.05


@LONG
@pytest.mark.parametrize("rows", [10, 12])
@pytest.mark.parametrize("beta", [0.05, 0.5])
@pytest.mark.parametrize("charges", [1, 2])
def test_no_analyst_of_more_rows_misses_more_often(rows, beta, charges):
    assert worst(rows, 2, charges, beta) <= beta


@LONG
@pytest.mark.parametrize(
    ("rows", "queries", "charges", "beam"), [(6, 3, 1, None), (6, 3, 2, 20), (8, 4, 2, 3)]
)
def test_no_analyst_of_three_questions_misses_more_often(rows, queries, charges, beam):
    assert worst(rows, queries, charges, 0.5, threshold=0.2, beam=beam) <= 0.5
