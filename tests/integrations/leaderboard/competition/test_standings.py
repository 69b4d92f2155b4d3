"""Places on a board, from intervals alone."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from reusable_holdout_leaderboard.competition.rank_history import RankHistory
from reusable_holdout_leaderboard.competition.ties import places_of
from reusable_holdout_leaderboard.store.rows import Improvement


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4)), max_size=8), st.booleans())
def test_places_are_counted_from_intervals_that_lie_wholly_above_and_below(pairs, greater):
    intervals = [(low, low + width) for low, width in pairs]
    for (low, high), place in zip(intervals, places_of(intervals, greater_is_better=greater), strict=True):
        above = sum(one[0] > high for one in intervals)
        below = sum(one[1] < low for one in intervals)
        if not greater:
            above, below = below, above
        assert place == (1 + above, len(intervals) - below)


@given(st.permutations(range(6)), st.lists(st.integers(0, 3), min_size=6, max_size=6))
def test_if_the_intervals_hold_every_true_place_is_among_those_shown(truth, errors):
    intervals = [(score - error, score + error) for score, error in zip(truth, errors, strict=True)]
    for score, place in zip(truth, places_of(intervals, greater_is_better=True), strict=True):
        assert place.rank <= 1 + sum(other > score for other in truth) <= place.rank_last


def new_bests(count, teams, seed=0):
    rng = np.random.default_rng(seed)
    return [
        (2 * k, Improvement(k, k % teams, str(k % teams), float(k), v, v - 0.1, v + 0.1))
        for k, v in enumerate(np.sort(rng.random(count)).tolist(), start=1)
    ]


def test_a_long_rank_history_is_thinned_and_ends_with_the_last_board():
    history = RankHistory(greater_is_better=True)
    history.take(new_bests(3_001, 10))
    points = history.points()
    assert len({one.submission_id for one in points}) <= 33
    last = {one.team: one for one in points}
    assert [last[str(k % 10)].place for k in range(3_001, 2_991, -1)] == list(range(1, 11))


@given(st.lists(st.integers(0, 200), max_size=6), st.integers(1, 20))
def test_a_rank_history_is_the_same_however_it_was_taken(ends, teams):
    bests = new_bests(200, teams)
    whole, parts = (RankHistory(greater_is_better=True) for _ in range(2))
    whole.take(bests)
    for end in [*sorted(ends), 200]:
        parts.take(bests[:end])
    assert parts.points() == whole.points()


def test_a_rank_history_shows_who_is_first_now_and_one_more():
    history = RankHistory(greater_is_better=True)
    history.take(new_bests(1_000, 100))
    assert {one.team_id for one in history.points()} == {k % 100 for k in range(1_000, 988, -1)}
    assert 1 in {one.team_id for one in history.points(also=1)}
    assert len(history.points(also=1)) <= 13 * 33
