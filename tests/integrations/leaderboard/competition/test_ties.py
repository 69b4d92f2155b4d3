"""Neighbours that are compared: what is certified of them, what follows, and where they stand."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reusable_holdout_leaderboard import Rules
from reusable_holdout_leaderboard.competition import neighbours
from reusable_holdout_leaderboard.competition.neighbours import (
    differing,
    guard_confidence,
    packed_codes,
    pairs_beta,
)
from reusable_holdout_leaderboard.competition.ties import places_of, ties_of

from reusable_holdout import ReusableHoldout
from reusable_holdout.errors import InputError

INTERVALS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 6)), min_size=1, max_size=7)


def facts_of(data, spans):
    """Intervals, and pairs that some order of true scores in them allows."""
    intervals = [(low, low + width) for low, width in spans]
    truths = [data.draw(st.integers(low * 10, high * 10)) / 10 for low, high in intervals]
    allowed = [(a, b) for a, b in itertools.permutations(range(len(truths)), 2) if truths[a] > truths[b]]
    pairs = data.draw(st.lists(st.sampled_from(allowed), unique=True)) if allowed else []
    return intervals, truths, pairs


def closure(intervals, pairs):
    """Who is better than whom by any chain."""
    numbers = range(len(intervals))
    better = set(pairs) | {
        (a, b) for a, b in itertools.permutations(numbers, 2) if intervals[a][0] > intervals[b][1]
    }
    for middle, a, b in itertools.product(numbers, repeat=3):
        if (a, middle) in better and (middle, b) in better:
            better.add((a, b))
    return better


@given(st.data(), INTERVALS, st.booleans())
def test_places_are_those_that_all_chains_of_intervals_and_pairs_leave(data, spans, greater):
    intervals, truths, pairs = facts_of(data, spans)
    better, teams = closure(intervals, pairs), len(intervals)
    ends = intervals if greater else [(-high, -low) for low, high in intervals]
    places = places_of(ends, greater_is_better=greater, pairs=pairs)
    for number, place in enumerate(places):
        above = sum((other, number) in better for other in range(teams))
        below = sum((number, other) in better for other in range(teams))
        assert place == (1 + above, teams - below)
        assert place.rank <= 1 + sum(one > truths[number] for one in truths) <= place.rank_last


@given(st.data(), INTERVALS)
def test_neighbours_change_places_for_what_is_certified_and_nobody_else(data, spans):
    intervals, _, pairs = facts_of(data, spans)
    looked_at = set()

    def better(one, other):
        looked_at.add(frozenset((one, other)))
        return (one, other) in pairs

    ties = ties_of(
        intervals, greater_is_better=True, key=lambda number, place: (place.rank, number), better=better
    )
    plain = ties_of(intervals, greater_is_better=True, key=lambda number, place: (place.rank, number))
    assert sorted(ties.order) == list(range(len(intervals)))
    for first, second in itertools.pairwise(ties.order):
        overlap = intervals[first][0] <= intervals[second][1] and intervals[second][0] <= intervals[first][1]
        assert (second, first) not in pairs or not overlap
        assert (first in ties.better_than_next) == (not overlap or (first, second) in pairs)
        assert not overlap or frozenset((first, second)) in looked_at
    if not any((second, first) in pairs for first, second in itertools.combinations(plain.order, 2)):
        assert ties.order == plain.order


def test_who_is_known_to_be_a_little_worse_than_the_first_stands_above_those_of_whom_nothing_is_known():
    intervals = [(0.76, 0.84), (0.75, 0.83), (0.70, 0.78)]
    ties = ties_of(
        intervals,
        greater_is_better=True,
        key=lambda number, place: (place.rank, number),
        better=lambda one, other: (one, other) == (0, 1),
    )
    assert ties.order == [0, 1, 2]
    assert ties.places == [(1, 2), (2, 3), (1, 3)]
    assert ties.better_than_next == {0}


@pytest.mark.parametrize("classes", [2, 3, 256, 257, 70_000])
def test_files_differ_in_as_many_rows_as_they_do(classes):
    rng = np.random.default_rng(classes)
    one, other = rng.integers(0, classes, (2, 1_003))
    packed = [packed_codes(codes, classes) for codes in (one, other)]
    assert differing(*packed) == np.count_nonzero(one != other)
    assert differing(packed[0], packed[0]) == 0
    assert differing(packed[0], packed_codes(other[:-1], classes)) is None
    assert len(packed[0]) <= 8 + 1_003 * (1 / 8 if classes == 2 else 1 if classes <= 256 else 4) + 1


def test_pairs_have_their_share_of_the_boards_failure_probability_where_they_are_compared():
    board = Rules(slug="a", title="A")
    assert guard_confidence(board) == pytest.approx(0.9525)
    assert pairs_beta(board, guard_confidence(board)) == pytest.approx(0.0025)
    assert pairs_beta(board, 0.95) == 0.0  # a board of an earlier version, whose intervals have all of it
    for other in ({"policy": "ladder"}, {"metric": "roc_auc"}, {"metric": "f1"}, {"metric": "brier"}):
        rules = Rules(slug="a", title="A", **other)
        assert guard_confidence(rules) == 0.95
        assert pairs_beta(rules, 0.9525) == 0.0


def test_pairs_are_for_claims_about_plain_means():
    labels = np.random.default_rng(0).integers(0, 2, 500)
    settings = {"queries": 20, "vacuous": True}
    with pytest.raises(InputError, match="thresholdout of accuracy"):
        ReusableHoldout(None, labels, tolerance=0.3, **settings).pairs(0.01)
    claims = settings | {"policy": "claims", "prior_error": 0.02}
    with pytest.raises(InputError, match="claims of f1"):
        ReusableHoldout(None, labels, metric="f1", **claims).pairs(0.01)
    with pytest.raises(InputError, match="probability above 0"):
        ReusableHoldout(None, labels, **claims).pairs(0.0)


# ---- a board


ROWS = 6_000
BOARD = {
    "policy": "claims",
    "tolerance": None,
    "prior_error": 0.004,
    "queries": 300,
    "submissions_per_team": 100,
}


@pytest.fixture
def refined(make_competition, add_team, tmp_path):
    """A board of many labels, and what a team sends: predictions whose first rows are wrong."""
    labels = np.random.default_rng(3).integers(0, 2, ROWS)
    table = tmp_path / "many.csv"
    table.write_text("label\n" + "".join(f"{label}\n" for label in labels))
    competition = make_competition(labels=table, id_column=None, classes=(0, 1), **BOARD)
    teams = {}

    def send(team, wrong, claimed=None):
        teams.setdefault(team, add_team(competition, team) if team not in teams else teams[team])
        predicted = np.where(np.arange(ROWS) < round(wrong * ROWS), 1 - labels, labels)
        stated = 1.0 - wrong if claimed is None else claimed
        return competition.submit_predictions(teams[team], predicted, claimed=stated)

    return competition, send


def test_a_refinement_is_certified_though_the_intervals_overlap(refined):
    competition, send = refined
    send("Old", 0.30)
    send("New", 0.25)
    first, second = competition.board()
    assert (first.team, second.team) == ("New", "Old")
    assert first.low < second.high
    assert (first.better_than_next, second.better_than_next) == (True, False)
    assert [(one.rank, one.rank_last) for one in (first, second)] == [(1, 1), (2, 2)]


def test_other_predictions_of_the_same_scores_are_tied(refined, add_team, monkeypatch):
    competition, send = refined
    send("Old", 0.30)
    send("New", 0.25)
    monkeypatch.setattr(neighbours, "differing", lambda *_: ROWS)
    competition._neighbours.clear()
    first, second = competition.board()
    assert not first.better_than_next
    assert (first.rank_last, second.rank) == (2, 1)


def test_nothing_is_asked_for_it_and_every_worker_says_the_same(refined, reopen):
    competition, send = refined
    for team, wrong in (("A", 0.4), ("B", 0.32), ("C", 0.26), ("D", 0.2)):
        send(team, wrong)
    answered, nats = competition.status().answered, competition._epoch.guard.history()["nats"].sum()
    board = competition.board()
    assert sum(one.better_than_next for one in board) >= 2
    again = reopen()
    assert again.board() == board
    assert (again.status().answered, again._epoch.guard.history()["nats"].sum()) == (answered, nats)


def test_what_is_kept_of_a_team_is_its_best_alone(refined):
    competition, send = refined
    for wrong in (0.4, 0.35, 0.2):
        send("Team", wrong)
    worse = send("Team", 0.5)
    best = competition.board()[0].submission_id
    assert best != worse.id
    assert list(competition._store.compared(range(1, 10))) == [best]


def test_a_look_counts_so_many_pairs_and_the_next_the_rest(refined, monkeypatch):
    competition, send = refined
    for number in range(5):
        send(f"T{number}", 0.45 - 0.045 * number)
    whole = competition.board()
    competition._neighbours.clear()
    monkeypatch.setattr(neighbours, "_MOST_COUNTED", 1)
    marks = [sum(one.better_than_next for one in competition.board()) for _ in range(6)]
    assert marks == sorted(marks)
    assert marks[0] < marks[-1] == sum(one.better_than_next for one in whole)


def test_a_merger_and_a_disqualification_are_followed(refined):
    competition, send = refined
    for team, wrong in (("A", 0.4), ("B", 0.34), ("C", 0.28)):
        send(team, wrong)
    teams = {team.name: team.id for team in competition.teams()}
    competition.merge_teams(teams["C"], teams["B"])
    assert [one.team for one in competition.board()] == ["C", "A"]
    assert competition.board()[0].better_than_next
    competition.disqualify(teams["C"])
    assert [(one.team, one.better_than_next) for one in competition.board()] == [("A", False)]
