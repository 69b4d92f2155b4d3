"""Places on a board: from intervals, from compared neighbours, and over time."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reusable_holdout_leaderboard import Rules
from reusable_holdout_leaderboard.competition import standings
from reusable_holdout_leaderboard.competition.guarding import compares
from reusable_holdout_leaderboard.competition.rank_history import RankHistory
from reusable_holdout_leaderboard.competition.ties import places_of, ties_of
from reusable_holdout_leaderboard.files.forms import differing_rows, packed_codes
from reusable_holdout_leaderboard.store import lists
from reusable_holdout_leaderboard.store.lists import Improvement

INTERVALS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 6)), min_size=1, max_size=7)


def facts_of(data, spans, *, with_pairs=True):
    """Return intervals, true scores in them, and pairs that these allow."""
    intervals = [(low, low + width) for low, width in spans]
    truths = [data.draw(st.integers(low * 10, high * 10)) / 10 for low, high in intervals]
    allowed = [(a, b) for a, b in itertools.permutations(range(len(truths)), 2) if truths[a] > truths[b]]
    pairs = data.draw(st.lists(st.sampled_from(allowed), unique=True)) if allowed and with_pairs else []
    return intervals, truths, pairs


def closure(intervals, pairs):
    """Return all pairs that follow from intervals and pairs by any chain."""
    numbers = range(len(intervals))
    better = set(pairs) | {
        (a, b) for a, b in itertools.permutations(numbers, 2) if intervals[a][0] > intervals[b][1]
    }
    for middle, a, b in itertools.product(numbers, repeat=3):
        if (a, middle) in better and (middle, b) in better:
            better.add((a, b))
    return better


@given(st.data(), INTERVALS, st.booleans(), st.booleans())
def test_places_follow_from_all_chains_of_intervals_and_pairs(data, spans, greater, with_pairs):
    intervals, truths, pairs = facts_of(data, spans, with_pairs=with_pairs)
    better, teams = closure(intervals, pairs), len(intervals)
    ends = intervals if greater else [(-high, -low) for low, high in intervals]
    places = places_of(ends, greater_is_better=greater, pairs=pairs)
    for number, place in enumerate(places):
        above = sum((other, number) in better for other in range(teams))
        below = sum((number, other) in better for other in range(teams))
        assert place == (1 + above, teams - below)
        assert place.rank <= 1 + sum(one > truths[number] for one in truths) <= place.rank_last


def by_rank(number, place):
    return (place.rank, number)


@given(st.data(), INTERVALS)
def test_only_certified_neighbours_change_places(data, spans):
    intervals, _, pairs = facts_of(data, spans)
    looked_at = set()

    def better(one, other):
        looked_at.add(frozenset((one, other)))
        return (one, other) in pairs

    ties = ties_of(intervals, greater_is_better=True, key=by_rank, better=better)
    plain = ties_of(intervals, greater_is_better=True, key=by_rank)
    assert sorted(ties.order) == list(range(len(intervals)))
    for first, second in itertools.pairwise(ties.order):
        overlap = intervals[first][0] <= intervals[second][1] and intervals[second][0] <= intervals[first][1]
        assert (second, first) not in pairs or not overlap
        assert (first in ties.better_than_next) == (not overlap or (first, second) in pairs)
        assert not overlap or frozenset((first, second)) in looked_at
    if not any((second, first) in pairs for first, second in itertools.combinations(plain.order, 2)):
        assert ties.order == plain.order


def test_a_team_known_to_be_a_little_worse_than_the_first_is_above_teams_of_which_nothing_is_known():
    intervals = [(0.76, 0.84), (0.75, 0.83), (0.70, 0.78)]
    ties = ties_of(intervals, greater_is_better=True, key=by_rank, better=lambda *pair: pair == (0, 1))
    assert (ties.order, ties.better_than_next) == ([0, 1, 2], {0})
    assert ties.places == [(1, 2), (2, 3), (1, 3)]


# ---- over time


def new_bests(count, teams, seed=0):
    values = np.sort(np.random.default_rng(seed).random(count)).tolist()
    return [
        (2 * k, Improvement(k, k % teams, str(k % teams), float(k), v, v - 0.1, v + 0.1, "agreed", False))
        for k, v in enumerate(values, start=1)
    ]


def test_a_long_rank_history_is_thinned_and_ends_with_the_last_board():
    history = RankHistory(greater_is_better=True)
    history.take(new_bests(3_001, 10))
    points = history.points()
    assert len({one.submission_id for one in points}) <= 33
    last = {one.team: one for one in points}
    assert [last[str(k % 10)].place for k in range(3_001, 2_991, -1)] == list(range(1, 11))


@given(st.lists(st.integers(0, 200), max_size=6), st.integers(1, 20))
def test_a_rank_history_does_not_depend_on_the_parts_that_it_was_taken_in(ends, teams):
    bests = new_bests(200, teams)
    whole, parts = (RankHistory(greater_is_better=True) for _ in range(2))
    whole.take(bests)
    for end in [*sorted(ends), 200]:
        parts.take(bests[:end])
    assert parts.points() == whole.points()


def test_a_rank_history_shows_the_teams_that_are_first_now_and_one_more():
    history = RankHistory(greater_is_better=True)
    history.take(new_bests(1_000, 100))
    assert {one.team_id for one in history.points()} == {k % 100 for k in range(1_000, 988, -1)}
    assert 1 in {one.team_id for one in history.points(also=1)}
    assert len(history.points(also=1)) <= 13 * 33


# ---- neighbours that are compared


@pytest.mark.parametrize("classes", [2, 3, 256, 257, 70_000])
def test_packed_files_differ_in_the_right_number_of_rows(classes):
    rng = np.random.default_rng(classes)
    one, other = rng.integers(0, classes, (2, 1_003))
    packed = [packed_codes(codes, classes) for codes in (one, other)]
    assert differing_rows(*packed) == np.count_nonzero(one != other)
    assert differing_rows(packed[0], packed[0]) == 0
    assert differing_rows(packed[0], packed_codes(other[:-1], classes)) is None
    assert len(packed[0]) <= 8 + 1_003 * (1 / 8 if classes == 2 else 1 if classes <= 256 else 4) + 1


def test_neighbours_are_compared_only_for_plain_means_and_pay_for_it(make_competition):
    made = {name: make_competition(slug=name[:3], metric=name) for name in ("accuracy", "f1", "brier")}
    assert [compares(one.rules) for one in made.values()] == [True, False, False]
    assert [one.compares_neighbours for one in made.values()] == [True, False, False]
    assert [one.plan.confidence for one in made.values()] == [pytest.approx(0.9525), 0.95, 0.95]
    assert [one.status().confidence for one in made.values()] == [0.95] * 3
    assert not compares(Rules(slug="a", title="A", metric="roc_auc"))


ROWS = 6_000


@pytest.fixture
def made_of_many(make_competition, add_team, tmp_path):
    """Make a board of many labels, and a function that sends predictions whose first rows are wrong."""
    labels = np.random.default_rng(3).integers(0, 2, ROWS)
    table = tmp_path / "many.csv"
    table.write_text("label\n" + "".join(f"{label}\n" for label in labels))
    rules = {"prior_error": 0.004, "queries": 300, "submissions_per_team": 100, "vacuous": False}

    def make(**changes):
        competition = make_competition(labels=table, id_column=None, classes=(0, 1), **rules | changes)
        teams = {}

        def send(team, wrong):
            if team not in teams:
                teams[team] = add_team(competition, team)
            predicted = np.where(np.arange(ROWS) < round(wrong * ROWS), 1 - labels, labels)
            claimed = 1.0 - wrong if competition.metric.greater_is_better else wrong
            return competition.submit_predictions(teams[team], predicted, claimed=claimed)

        return competition, send

    return make


@pytest.fixture
def refined(made_of_many):
    return made_of_many()


def test_a_refinement_is_certified_although_the_intervals_overlap(refined, monkeypatch):
    competition, send = refined
    send("Old", 0.30)
    send("New", 0.25)
    first, second = competition.board()
    assert (first.team, second.team) == ("New", "Old")
    assert first.low < second.high
    assert (first.better_than_next, second.better_than_next) == (True, False)
    assert [(one.rank, one.rank_last) for one in (first, second)] == [(1, 1), (2, 2)]
    monkeypatch.setattr(standings, "differing_rows", lambda *_: ROWS)  # the same scores of other predictions
    competition._neighbours.clear()
    first, second = competition.board()
    assert (first.better_than_next, first.rank_last, second.rank) == (False, 2, 1)


def test_neighbours_by_a_loss_are_those_by_its_gain(made_of_many):
    boards = []
    for metric in ("accuracy", "zero_one_loss"):
        competition, send = made_of_many(slug=metric.replace("_", "-"), metric=metric)
        for team, wrong in (("Old", 0.30), ("New", 0.25), ("Bad", 0.45)):
            send(team, wrong)
        boards.append(competition.board())
        competition.close()
    gained, lost = ([(one.team, one.rank, one.rank_last, one.better_than_next) for one in b] for b in boards)
    assert lost == gained == [("New", 1, 1, True), ("Old", 2, 2, True), ("Bad", 3, 3, False)]
    for gain, loss in zip(*boards, strict=True):
        assert loss.low <= loss.value <= loss.high
        assert (loss.low, loss.high) == pytest.approx((1.0 - gain.high, 1.0 - gain.low))


def test_comparing_asks_nothing_and_every_worker_finds_the_same(refined, reopen, monkeypatch):
    competition, send = refined
    for number in range(5):
        send(f"T{number}", 0.45 - 0.045 * number)
    answered, nats = competition.status().answered, competition.history()["nats"].sum()
    board = competition.board()
    assert sum(one.better_than_next for one in board) >= 2
    again = reopen()
    assert again.board() == board
    assert (again.status().answered, again.history()["nats"].sum()) == (answered, nats)
    competition._neighbours.clear()
    monkeypatch.setattr(standings, "_MOST_COUNTED", 1)  # a look counts so many pairs, and the next continues
    marks = [sum(one.better_than_next for one in competition.board()) for _ in range(6)]
    assert marks == sorted(marks)
    assert marks[0] < marks[-1] == sum(one.better_than_next for one in board)


def test_only_the_predictions_of_a_teams_best_are_stored(refined):
    competition, send = refined
    for wrong in (0.4, 0.35, 0.2):
        send("Team", wrong)
    worse = send("Team", 0.5)
    best = competition.board()[0].submission_id
    assert best != worse.id
    assert list(competition._read(lists.compared_with, range(1, 10))) == [best]


def test_neighbours_follow_a_disqualification(refined):
    competition, send = refined
    teams = {team: send(team, wrong).team_id for team, wrong in (("A", 0.4), ("B", 0.34), ("C", 0.28))}
    competition.disqualify(teams["B"])
    assert [(one.team, one.better_than_next) for one in competition.board()] == [("C", True), ("A", False)]
    competition.disqualify(teams["C"])
    assert [(one.team, one.better_than_next) for one in competition.board()] == [("A", False)]
