"""Teams that are renamed, merged and disqualified: what they were answered stays."""

import pytest
from reusable_holdout_leaderboard import ClosedError, LimitError

from reusable_holdout import verify
from reusable_holdout.errors import InputError


@pytest.fixture
def pair(make_competition, add_team):
    """A competition with two teams, and how they submit."""

    def make(**changes):
        competition = make_competition(**changes)
        return competition, add_team(competition, "Blue"), add_team(competition, "Red")

    return make


def names(competition):
    return [one.team for one in competition.board()]


def send(competition, team, content, claimed):
    return competition.submit(team, content, filename="x.csv", claimed=claimed)


# ---- renamed


@pytest.mark.parametrize("policy", ["thresholdout", "ladder"])
def test_a_renamed_team_goes_on_from_its_best(pair, sheet, policy):
    thresholds = {} if policy == "thresholdout" else {"threshold": 0.02, "tolerance": None, "charges": 20}
    competition, blue, _ = pair(policy=policy, **thresholds)
    claims = (0.9, 0.9) if policy == "thresholdout" else (None, None)
    best = send(competition, blue, sheet(0.9), claims[0])
    competition.rename_team(blue, "Azure")
    worse = send(competition, blue, sheet(0.7), claims[1])
    assert [(one.team, one.submission_id) for one in competition.board()] == [("Azure", best.id)]
    assert worse.improved is False
    assert [one.team for one in competition.submissions()] == ["Azure", "Azure"]
    assert list(competition.history()["name"]) == ["Blue #1", "Blue #2"]
    assert competition.changes()[0].detail == {"from": "Blue", "to": "Azure"}


def test_a_name_that_a_renamed_team_had_is_another_teams_and_not_its_place_in_the_ledger(
    pair, add_team, sheet
):
    competition, blue, _ = pair(policy="ladder", threshold=0.02, tolerance=None, charges=20)
    send(competition, blue, sheet(0.9), None)
    competition.rename_team(blue, "Azure")
    other = add_team(competition, "Blue")
    first = send(competition, other, sheet(0.7), None)
    assert (first.improved, first.series) == (True, f"Blue ({other})")
    for name in ("azure", " RED"):
        with pytest.raises(InputError, match="looks the same"):
            competition.rename_team(other, name)


# ---- disqualified


def test_a_disqualified_team_is_on_no_board_and_its_answers_stay_in_the_ledger(pair, sheet, folder):
    competition, blue, red = pair()
    send(competition, blue, sheet(0.9), 0.5)
    send(competition, red, sheet(0.7, 1), 0.7)
    before = competition.history()
    competition.disqualify(blue)
    competition.disqualify(blue)
    assert names(competition) == ["Red"]
    assert {one.team for one in competition.rank_history()} == {"Red"}
    with pytest.raises(ClosedError, match="disqualified; nothing was asked"):
        send(competition, blue, sheet(0.8), 0.8)
    assert send(competition, blue, sheet(0.9), 0.5).replayed  # what it was answered, it may look up
    assert competition.history().equals(before)
    assert verify(folder / "demo" / "ledger.db").sound
    assert [one.kind for one in competition.changes()] == ["disqualify"]
    competition.disqualify(blue, False)
    assert names(competition) == ["Blue", "Red"]


def test_a_disqualified_team_is_not_in_the_final(pair, sheet, fresh_labels_file):
    competition, blue, red = pair(fresh=fresh_labels_file)
    for team, variant in ((blue, 0), (red, 1)):
        send(competition, team, sheet(0.8, variant, rows=900), 0.8)
    competition.disqualify(blue)
    competition.freeze()
    assert [one.team for one in competition.final_standings()] == ["Red"]
    for change in (lambda: competition.disqualify(red), lambda: competition.merge_teams(blue, red)):
        with pytest.raises(ClosedError, match="teams stay as they are"):
            change()


# ---- merged


@pytest.mark.parametrize("better", ["Blue", "Red"])
def test_merged_teams_have_one_standing_in_which_all_adds_up(pair, sheet, better, database, folder):
    competition, blue, red = pair(database=database)
    for team, name in ((blue, "Blue"), (red, "Red")):
        accuracy = 0.9 if name == better else 0.7
        send(competition, team, sheet(accuracy), 0.0)
        send(competition, team, sheet(accuracy, 1), accuracy)
    before = {one.team: one for one in competition.board()}
    competition.merge_teams(blue, red)
    (row,) = competition.board()
    assert (row.team, row.submissions) == ("Blue", 4)
    assert row.charges == sum(one.charges for one in before.values()) == 2
    assert (row.value, row.submission_id) == (before[better].value, before[better].submission_id)
    assert [one.name for one in competition.teams()] == ["Blue"]
    assert len(competition.submissions(blue)) == 4
    assert {one.series for one in competition.submissions(blue)} == {"Blue", "Red"}
    assert competition.rank_history()[-1].value == before[better].value
    assert send(competition, blue, sheet(0.7 if better == "Blue" else 0.9), 0.0).replayed


def test_the_limits_of_a_merged_team_count_what_both_have_used(pair, sheet):
    competition, blue, red = pair(submissions_per_team=3)
    send(competition, blue, sheet(0.7), 0.7)
    send(competition, red, sheet(0.7, 1), 0.7)
    competition.merge_teams(blue, red)
    send(competition, blue, sheet(0.7, 2), 0.7)
    with pytest.raises(LimitError):
        send(competition, blue, sheet(0.7, 3), 0.7)


def test_the_other_teams_token_is_void_and_its_name_stays_its_own(make_competition):
    competition = make_competition()
    tokens = {name: competition.add_team(name) for name in ("Blue", "Red")}
    blue, red = (competition.authenticate(tokens[name]).id for name in ("Blue", "Red"))
    competition.merge_teams(blue, red)
    assert competition.authenticate(tokens["Red"]) is None
    assert competition.authenticate(tokens["Blue"]).id == blue
    with pytest.raises(InputError, match="looks the same"):
        competition.add_team("Red")
    for one, other in ((blue, blue), (blue, red), (red, blue), (blue, 99)):
        with pytest.raises(InputError):
            competition.merge_teams(one, other)


def test_of_merged_teams_either_ones_submission_may_be_picked(pair, sheet, fresh_labels_file):
    competition, blue, red = pair(fresh=fresh_labels_file)
    send(competition, blue, sheet(0.9, rows=900), 0.9)
    theirs = send(competition, red, sheet(0.7, rows=900), 0.7)
    competition.merge_teams(blue, red)
    assert [one.id for one in competition.pick(blue, [theirs.id])] == [theirs.id]
    competition.freeze()
    assert [(one.team, one.submission_id) for one in competition.final_standings()] == [("Blue", theirs.id)]


def test_merged_teams_climb_from_the_better_best(pair, sheet):
    competition, blue, red = pair(policy="ladder", threshold=0.02, tolerance=None, charges=20)
    send(competition, blue, sheet(0.6), None)
    best = send(competition, red, sheet(0.9), None)
    competition.merge_teams(blue, red)
    again = send(competition, blue, sheet(0.8), None)
    assert (again.improved, again.charged, again.series) == (False, False, "Red")
    assert [one.submission_id for one in competition.board()] == [best.id]


def test_teams_that_merge_twice_are_one(pair, add_team, sheet):
    competition, blue, red = pair()
    green = add_team(competition, "Green")
    for variant, team in enumerate((blue, red, green)):
        send(competition, team, sheet(0.7, variant), 0.7)
    competition.merge_teams(red, green)
    competition.merge_teams(blue, red)
    (row,) = competition.board()
    assert (row.team, row.submissions) == ("Blue", 3)
    assert len(competition.submissions(blue)) == 3
