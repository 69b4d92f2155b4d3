"""A competition from the first submission to the final standings."""

import pytest
from reusable_holdout_leaderboard import ClosedError, LimitError, SubmissionError

from reusable_holdout.errors import Halted, InputError

# ---- answers


def test_a_submission_that_agrees_with_its_claim_is_on_the_board_with_its_interval(competition, team, sheet):
    submission = competition.submit(team, sheet(0.7), filename="first.csv", claimed=0.7)
    assert (submission.value, submission.charged, submission.query) == (0.7, False, 1)
    (standing,) = competition.board()
    assert (standing.rank, standing.rank_last, standing.team, standing.value) == (1, 1, "Blue", 0.7)
    assert standing.low < 0.7 < standing.high


def test_without_a_claim_thresholdout_compares_with_the_middle_and_then_with_the_teams_best(
    competition, team, sheet
):
    first = competition.submit(team, sheet(0.95), filename="1.csv")
    second = competition.submit(team, sheet(0.95, 7), filename="2.csv")
    assert first.prior == 0.5
    assert second.prior == first.value != 0.5


def test_an_identical_file_is_answered_free_whatever_it_claims(make_competition, add_team, sheet):
    competition = make_competition(submissions_per_team=1)
    team = add_team(competition)
    first = competition.submit(team, sheet(0.7), filename="first.csv", claimed=0.7)
    again = competition.submit(team, sheet(0.7), filename="again.csv", claimed=0.2)
    assert again == first._replace(replayed=True)
    assert competition.status().queries_asked == 1


def test_the_same_predictions_by_file_and_by_array_are_one_submission(competition, team, sheet, predictions):
    competition.submit(team, sheet(0.7), filename="first.csv", claimed=0.7)
    assert competition.submit_predictions(team, predictions(0.7)).replayed
    assert competition.submit_predictions(team, predictions(0.7).tolist()).replayed


def test_a_second_team_with_the_same_question_gets_its_answer_and_pays_nothing(
    competition, add_team, team, spend
):
    (paid,) = spend(competition, team, 1)
    other = add_team(competition, "Red")
    (copied,) = spend(competition, other, 1)
    assert (copied.value, copied.replayed) == (paid.value, True)
    assert {one.team: one.charges for one in competition.board()} == {"Blue": 1, "Red": 0}
    status = competition.status()
    assert status.charges - status.charges_left >= 1
    assert status.queries_asked == 1


def test_charges_of_teams_add_up_to_those_of_the_guard(competition, add_team, sheet):
    teams = [add_team(competition, name) for name in ("Blue", "Red", "Green")]
    for k in range(9):
        competition.submit(teams[k % 3], sheet(0.7, k), filename="x.csv", claimed=[0.0, 0.7, 0.7][k // 3])
    assert sum(one.charges for one in competition.board()) == competition.history()["charged"].sum() == 3


def test_a_file_that_does_not_fit_costs_nothing(competition, team):
    before = competition.status()
    with pytest.raises(SubmissionError, match="missing"):
        competition.submit(team, b"id,prediction\nr0,1\n", filename="short.csv", claimed=0.7)
    assert competition.status() == before
    assert competition.submissions() == []


@pytest.mark.parametrize("claimed", [-0.1, 1.1, float("nan"), True, "0.5"])
def test_a_claim_outside_the_metrics_range_costs_nothing(competition, team, sheet, claimed):
    with pytest.raises(SubmissionError, match="from 0 to 1"):
        competition.submit(team, sheet(0.7), filename="x.csv", claimed=claimed)
    assert competition.submissions() == []


def test_a_number_that_is_no_team_is_refused(competition, sheet):
    with pytest.raises(InputError, match="there is none"):
        competition.submit(99, sheet(0.7), filename="x.csv", claimed=0.7)
    assert competition.submissions() == []


# ---- the ladder


@pytest.fixture
def ladder(make_competition, add_team):
    competition = make_competition(policy="ladder", estimate=0.7)
    return competition, add_team(competition, "Blue"), add_team(competition, "Red")


def test_a_ladder_compares_each_team_with_its_own_best(ladder, sheet):
    competition, blue, red = ladder
    first = competition.submit(blue, sheet(0.95), filename="1.csv")
    weaker = competition.submit(blue, sheet(0.6), filename="2.csv")
    other = competition.submit(red, sheet(0.6, 5), filename="3.csv")
    assert (first.prior, weaker.prior, other.prior) == (0.0, first.value, 0.0)
    assert (first.charged, weaker.charged, other.charged) == (True, False, True)
    assert weaker.value == first.value
    assert [(one.team, one.value) for one in competition.board()] == [
        ("Blue", first.value),
        ("Red", other.value),
    ]


def test_a_ladder_does_not_give_one_teams_best_to_another_that_sends_the_same_file(ladder, sheet):
    competition, blue, red = ladder
    competition.submit(blue, sheet(0.95), filename="1.csv")
    assert competition.submit(blue, sheet(0.6), filename="2.csv").value > 0.8
    assert competition.submit(red, sheet(0.6), filename="3.csv").value < 0.8


# ---- the board


def test_teams_whose_intervals_overlap_are_tied(competition, add_team, sheet):
    for name, accuracy in (("Low", 0.1), ("Good", 0.9), ("Alike", 0.85)):
        competition.submit(add_team(competition, name), sheet(accuracy), filename="x.csv", claimed=accuracy)
    assert [(one.team, one.rank, one.rank_last) for one in competition.board()] == [
        ("Good", 1, 2),
        ("Alike", 1, 2),
        ("Low", 3, 3),
    ]


def test_rank_history_has_a_point_wherever_a_place_or_value_changed(competition, add_team, sheet):
    blue, red = add_team(competition, "Blue"), add_team(competition, "Red")
    competition.submit(blue, sheet(0.6), filename="x.csv", claimed=0.6)
    competition.submit(red, sheet(0.7), filename="x.csv", claimed=0.7)
    competition.submit(blue, sheet(0.5), filename="x.csv", claimed=0.5)  # no new best: nothing moves
    competition.submit(blue, sheet(0.8), filename="x.csv", claimed=0.8)
    assert [(one.submission_id, one.team, one.place) for one in competition.rank_history()] == [
        (1, "Blue", 1),
        (2, "Red", 1),
        (2, "Blue", 2),
        (4, "Blue", 1),
        (4, "Red", 2),
    ]


def test_events_have_revisions_without_gaps(competition, team, sheet):
    competition.submit(team, sheet(0.7), filename="x.csv", claimed=0.7)
    competition.freeze()
    competition.freeze()
    events = competition.events()
    assert [(one.revision, one.kind) for one in events] == [
        (1, "created"),
        (2, "team"),
        (3, "submission"),
        (4, "freeze"),
    ]
    assert competition.events(after=3) == events[3:]
    assert competition.revision == 4


# ---- limits


def test_a_team_cannot_send_more_than_its_submissions(make_competition, add_team, sheet):
    competition = make_competition(submissions_per_team=2)
    blue, red = add_team(competition, "Blue"), add_team(competition, "Red")
    for k in range(2):
        competition.submit(blue, sheet(0.7, k), filename="x.csv", claimed=0.7)
    with pytest.raises(LimitError, match="2 submissions; all are used; nothing was asked"):
        competition.submit(blue, sheet(0.7, 2), filename="x.csv", claimed=0.7)
    assert competition.submit(red, sheet(0.7, 2), filename="x.csv", claimed=0.7).value == 0.7


def test_a_day_ends_at_midnight_utc(make_competition, add_team, sheet, clock):
    competition = make_competition(submissions_per_day=1)
    team = add_team(competition)
    competition.submit(team, sheet(0.7, 0), filename="x.csv", claimed=0.7)
    clock.now += 12 * 3600 - 1
    with pytest.raises(LimitError, match="the next day begins at 2026-03-02 00:00 UTC"):
        competition.submit(team, sheet(0.7, 1), filename="x.csv", claimed=0.7)
    clock.now += 1
    assert competition.submit(team, sheet(0.7, 1), filename="x.csv", claimed=0.7).query == 2


def test_a_team_that_has_spent_its_charges_learns_nothing_new(make_competition, add_team, sheet, spend):
    competition = make_competition(charges_per_team=2)
    blue, red = add_team(competition, "Blue"), add_team(competition, "Red")
    first, _ = spend(competition, blue, 2)
    with pytest.raises(LimitError, match="2 charges; all are spent"):
        competition.submit(blue, sheet(0.9), filename="x.csv", claimed=0.9)
    assert competition.submit(blue, sheet(0.7), filename="x.csv") == first._replace(replayed=True)
    assert competition.submit(red, sheet(0.9), filename="x.csv", claimed=0.9).value == 0.9


# ---- halts


def test_after_a_halt_the_board_stays_and_old_files_are_answered(make_competition, add_team, sheet, exhaust):
    competition = make_competition(charges=2)
    team = add_team(competition)
    first, *rest = exhaust(competition, team)
    board = competition.board()
    with pytest.raises(Halted):
        competition.submit(team, sheet(0.9), filename="new.csv", claimed=0.9)
    status = competition.status()
    assert (status.halted, status.halt_reason, status.open) == (True, "charges", False)
    assert competition.board() == board
    assert competition.submit(team, sheet(0.7), filename="old.csv") == first._replace(replayed=True)
    assert len(competition.submissions()) == 1 + len(rest) == status.queries_asked
    assert {one.state for one in competition.submissions()} == {"scored"}


# ---- blind


def test_blind_everything_is_scored_and_no_number_is_shown(make_competition, add_team, sheet, spend):
    competition = make_competition(blind=True)
    team = add_team(competition)
    (submission,) = spend(competition, team, 1)
    assert submission.state == "received"
    hidden = ("value", "low", "high", "charged", "threshold", "prior", "query", "improved")
    assert {getattr(submission, name) for name in hidden} == {None}
    (standing,) = competition.board()
    assert (standing.team, standing.submissions) == ("Blue", 1)
    assert {standing.value, standing.low, standing.rank, standing.charges, standing.query} == {None}
    assert competition.status().charges_left is None
    assert competition.rank_history() == []
    assert competition.history().empty
    assert competition.submissions() == [submission]
    (known,) = competition.board(reveal=True)
    assert known.value is not None
    competition.unblind()
    assert competition.board() == [known]
    assert competition.submissions()[0].value == known.value
    assert competition.status().queries_asked == 1


def test_blind_a_halt_does_not_say_which_submissions_were_charged(make_competition, add_team, sheet, exhaust):
    competition = make_competition(blind=True, charges=2)
    team = add_team(competition)
    exhaust(competition, team)
    with pytest.raises(Halted) as halt:
        competition.submit(team, sheet(0.9), filename="new.csv", claimed=0.9)
    assert halt.value.history.empty
    assert "on quer" not in str(halt.value)


# ---- closed


def test_a_frozen_competition_takes_nothing_new_until_it_is_thawed(competition, team, sheet):
    first = competition.submit(team, sheet(0.7), filename="x.csv", claimed=0.7)
    competition.freeze()
    with pytest.raises(ClosedError, match="frozen; nothing was asked and nothing was charged"):
        competition.submit(team, sheet(0.7, 1), filename="x.csv", claimed=0.7)
    assert competition.submit(team, sheet(0.7), filename="x.csv") == first._replace(replayed=True)
    competition.freeze(False)
    assert competition.submit(team, sheet(0.7, 1), filename="x.csv", claimed=0.7).query == 2


def test_nothing_is_taken_before_it_opens_and_after_it_closes(make_competition, add_team, sheet, clock):
    from datetime import UTC, datetime

    competition = make_competition(
        opens_at=datetime(2026, 3, 1, 13, tzinfo=UTC), closes_at=datetime(2026, 3, 1, 14, tzinfo=UTC)
    )
    team = add_team(competition)
    for hours, words in ((0, "opens at 2026-03-01 13:00 UTC"), (2, "closed at 2026-03-01 14:00 UTC")):
        clock.now += hours * 3600
        with pytest.raises(ClosedError, match=words):
            competition.submit(team, sheet(0.7), filename="x.csv", claimed=0.7)
        assert words in competition.status().closed_reason
    clock.now -= 3600
    assert competition.submit(team, sheet(0.7), filename="x.csv", claimed=0.7).value == 0.7
