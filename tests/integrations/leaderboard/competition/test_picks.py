"""What teams enter for the final standings."""

import numpy as np
import pytest
from reusable_holdout_leaderboard import ClosedError

from reusable_holdout.errors import InputError


@pytest.fixture
def final_of(labels, ids, predictions):
    """Submit predictions of one accuracy on the board's rows and another on the fresh ones."""

    def submit(competition, team, public, fresh, variant=0):
        whole = np.concatenate([predictions(public, variant), labels[600:]])
        wrong = 600 + np.arange(round((1 - fresh) * 300))
        whole[wrong] = 1 - whole[wrong]
        rows = "".join(f"{one},{label}\n" for one, label in zip(ids, whole, strict=True))
        content = f"id,prediction\n{rows}".encode()
        return competition.submit(team, content, filename="x.csv", claimed=public).id

    return submit


@pytest.fixture
def held(make_competition, fresh_labels_file):
    def make(**changes):
        return make_competition(fresh=fresh_labels_file, **changes)

    return make


def rows_of(competition):
    competition.freeze()
    return [(one.team, one.value, one.public_value) for one in competition.final_standings()]


def test_a_team_that_picks_none_has_its_best_ones_in_the_final(held, add_team, final_of):
    competition = held(final_picks=2)
    team = add_team(competition)
    for public, fresh in ((0.6, 0.9), (0.9, 0.5), (0.8, 0.7)):
        final_of(competition, team, public, fresh)
    assert rows_of(competition) == [("Blue", 0.7, 0.8)]


def test_what_a_team_picked_counts_and_nothing_else(held, add_team, final_of, database):
    competition = held(database=database)
    team, other = add_team(competition), add_team(competition, "Red")
    first = final_of(competition, team, 0.6, 0.9)
    second = final_of(competition, team, 0.9, 0.5)
    final_of(competition, other, 0.7, 0.7)
    assert [one.id for one in competition.pick(team, [second])] == [second]
    assert [one.id for one in competition.pick(team, [first])] == [first]
    assert rows_of(competition) == [("Blue", 0.9, 0.6), ("Red", 0.7, 0.7)]


def test_no_picks_again_are_the_best_ones_again(held, add_team, final_of):
    competition = held()
    team = add_team(competition)
    first = final_of(competition, team, 0.6, 0.9)
    final_of(competition, team, 0.9, 0.5)
    competition.pick(team, [first])
    assert competition.pick(team, []) == []
    assert rows_of(competition) == [("Blue", 0.5, 0.9)]


def test_more_picks_are_more_questions_so_intervals_are_wider(held, add_team, final_of, folder):
    widths = []
    for slug, picks in (("one", 1), ("three", 3)):
        competition = held(slug=slug, final_picks=picks)
        team = add_team(competition)
        for variant in range(3):
            final_of(competition, team, 0.8, 0.7, variant)
        competition.freeze()
        (row,) = competition.final_standings()
        widths.append(row.high - row.low)
    assert widths[0] < widths[1]


def test_a_pick_is_refused_that_cannot_be_one(held, add_team, final_of, sheet):
    competition = held()
    team, other = add_team(competition), add_team(competition, "Red")
    own = [final_of(competition, team, 0.8, 0.7, variant) for variant in range(2)]
    theirs = final_of(competition, other, 0.8, 0.7)
    for picks in ([theirs], [999], own):
        with pytest.raises(InputError, match="nothing was changed"):
            competition.pick(team, picks)
    assert competition.picks(team) == []
    competition.pick(team, own[:1])
    competition.freeze()
    competition.pick(team, own[1:])  # until the standings are made
    competition.final_standings()
    with pytest.raises(ClosedError, match="final standings are made"):
        competition.pick(team, own[:1])


def test_without_fresh_labels_nothing_is_picked(competition, team, sheet):
    one = competition.submit(team, sheet(0.7), filename="x.csv", claimed=0.7)
    with pytest.raises(InputError, match="fresh labels"):
        competition.pick(team, [one.id])


def test_picks_of_a_blind_competition_tell_no_number(held, add_team, final_of):
    competition = held(blind=True)
    team = add_team(competition)
    one = final_of(competition, team, 0.8, 0.7)
    (picked,) = competition.pick(team, [one])
    assert (picked.picked, picked.value, picked.improved) == (True, None, None)
