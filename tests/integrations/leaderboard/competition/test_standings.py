"""Places on a board, from intervals alone."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from reusable_holdout_leaderboard.competition.standings import places_of, rank_history_of
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


def test_a_long_rank_history_is_thinned_and_ends_with_the_last_board():
    rng = np.random.default_rng(0)
    improvements = [
        Improvement(k, k % 10, str(k % 10), float(k), v, v - 0.1, v + 0.1)
        for k, v in enumerate(np.sort(rng.random(3_001)).tolist(), start=1)
    ]
    points = rank_history_of(improvements, greater_is_better=True)
    assert len({one.submission_id for one in points}) <= 500
    last = {one.team: one for one in points}
    assert [last[str(k % 10)].place for k in range(3_001, 2_991, -1)] == list(range(1, 11))
