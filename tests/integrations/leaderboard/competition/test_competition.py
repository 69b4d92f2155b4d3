"""Submissions to a competition: answers, limits, halts, blind and closed competitions."""

from datetime import UTC, datetime

import pytest
from cases import refuses
from reusable_holdout_leaderboard import ClosedError, LimitError, Rules, SubmissionError
from reusable_holdout_leaderboard.competition.guarding import honest_error

from reusable_holdout import verify
from reusable_holdout.errors import Halted, InputError

MANY = {"queries": 200, "submissions_per_team": 200, "prior_error": 0.01, "charges": 2}


@pytest.fixture
def claims(make_competition):
    return make_competition(**MANY)


# ---- claims


def test_claims_that_stand_are_free_and_only_the_lead_is_measured(claims, send):
    first, second = send(claims, "Red", 0.7), send(claims, "Blue", 0.72, 3)
    assert (first.told, first.charged, first.improved) == ("measured 0", False, True)
    assert (second.told, second.value, second.charged, second.query) == ("agreed", 0.72, False, 2)
    assert [(one.team, one.leads, one.certified, one.rank, one.rank_last) for one in claims.board()] == [
        ("Red", True, True, 1, 2),
        ("Blue", False, True, 1, 2),
    ]
    assert all(one.low < one.value < one.high for one in claims.board())


def test_a_claim_that_is_too_high_never_stands_above_the_measured_lead_it_is_tied_with(claims, send):
    send(claims, "Lead", 0.65)
    send(claims, "Honest", 0.64, 1)
    assert send(claims, "Liar", 0.64, 2, claimed=0.66).told == "agreed"
    assert [(one.team, one.value, one.rank, one.leads) for one in claims.board()] == [
        ("Lead", pytest.approx(0.65, abs=0.01), 1, True),
        ("Liar", 0.66, 1, False),
        ("Honest", 0.64, 1, False),
    ]


def test_a_team_of_wrong_claims_is_not_certified_and_halts_nobody(claims, send, folder):
    send(claims, "Lead", 0.8)
    assert all(send(claims, "Liar", 0.5, variant, claimed=0.75).charged for variant in range(2))
    lost = send(claims, "Liar", 0.5, 5, claimed=0.75)
    assert (lost.told, lost.charged) == ("not certified", False)
    assert [claims.charges_left_of(team.id) for team in claims.teams()] == [2, 0]
    assert all(send(claims, f"Team {k}", 0.6, 10 + k).told == "agreed" for k in range(30))
    assert next(one for one in claims.board() if one.team == "Liar").certified  # by its earlier answers
    assert send(claims, "Late", 0.55, 70, claimed=0.85).charged
    assert not claims.status().halted
    assert sum(one.charges for one in claims.board()) == claims.history()["charged"].sum() == 3
    assert verify(folder / "demo" / "ledger.db").sound


def test_a_team_without_any_certified_answer_is_last_without_a_rank(
    make_competition, send, add_team, predictions
):
    competition = make_competition(charges=1)
    send(competition, "Honest", 0.7)
    add_team(competition, "Other")
    guard = competition._epoch.guard
    guard.ask(predictions(0.5, 7), claimed=0.9, series="Other", name="", anew=False)  # not by the board
    assert send(competition, "Other", 0.9, 3).told == "not certified"
    last = competition.board()[-1]
    assert (last.team, last.rank, last.certified, last.low, last.high) == ("Other", None, False, 0.0, 1.0)


def test_the_same_predictions_are_one_question_and_may_be_asked_anew(claims, send, predictions):
    send(claims, "Lead", 0.8)
    low = send(claims, "Low", 0.6, 1, claimed=0.4)
    assert low.charged
    shown = send(claims, "Other", 0.6, 1, claimed=0.6)
    assert (shown.query, shown.value, shown.told, shown.replayed) == (low.query, low.value, low.told, True)
    assert [one.charges for one in claims.board() if one.team == "Other"] == [0]
    anew = send(claims, "Other", 0.6, 1, claimed=0.6, anew=True)
    assert (anew.told, anew.value) == ("agreed", 0.6)
    assert send(claims, "Other", 0.6, 1, claimed=0.6, anew=True).replayed


def test_a_file_and_an_array_of_the_same_predictions_are_one_submission(
    competition, team, sheet, predictions
):
    first = competition.submit(team, sheet(0.7), filename="first.csv", claimed=0.7)
    same = first._replace(replayed=True)
    assert competition.submit(team, sheet(0.7), filename="again.csv", claimed=0.2) == same
    assert competition.submit_predictions(team, predictions(0.7).tolist(), claimed=0.7) == same
    assert competition.status().queries_asked == 1


def test_inside_a_tie_the_higher_value_is_first_and_of_equal_values_the_earlier(claims, send, clock):
    for team, accuracy, order in (
        ("Lead", 0.9, "Lead"),
        ("Early", 0.6, "Lead Early"),
        ("Late", 0.6, "Lead Early Late"),
        ("Late", 0.62, "Lead Late Early"),
        ("Latest", 0.62, "Lead Late Latest Early"),
    ):
        send(claims, team, accuracy, int(clock.now) % 97)
        assert [one.team for one in claims.board()] == order.split()
        clock.now += 60


def test_the_expected_error_of_claims_depends_on_the_number_of_rows():
    rules = Rules(slug="a", title="A")
    assert [honest_error(rules, rows) for rows in (100_000, 2_000)] == [0.005, 0.012]
    assert honest_error(Rules(slug="a", title="A", prior_error=0.02), 2_000) == 0.02


@pytest.mark.parametrize(
    ("claimed", "words"),
    [
        (None, "score that its team claims.*nothing was asked"),
        *((one, "from 0 to 1") for one in (-0.1, 1.1, float("nan"), True, "0.5")),
    ],
)
def test_a_claim_that_is_none_costs_nothing(competition, team, sheet, claimed, words):
    refuses(SubmissionError, words, competition.submit, team, sheet(0.7), filename="x.csv", claimed=claimed)
    assert competition.submissions() == []


def test_a_file_that_does_not_fit_and_an_unknown_team_cost_nothing(competition, team, sheet):
    before = competition.status()
    with pytest.raises(SubmissionError, match="missing"):
        competition.submit(team, b"id,prediction\nr0,1\n", filename="short.csv", claimed=0.7)
    refuses(InputError, "there is none", competition.submit, 99, sheet(0.7), filename="x.csv", claimed=0.7)
    assert (competition.status(), competition.submissions()) == (before, [])


# ---- the board over time


def test_rank_history_has_a_point_for_each_change_of_place_or_value(competition, send):
    for team, accuracy in (("Blue", 0.6), ("Red", 0.7), ("Blue", 0.5), ("Blue", 0.8)):
        send(competition, team, accuracy)  # 0.5 is no new best, so nothing moves
    moves = [(one.submission_id, one.team, one.place) for one in competition.rank_history()]
    assert {one[0] for one in moves} <= {1, 2, 4}
    assert moves[0] == (1, "Blue", 1)
    last = {team: place for _, team, place in moves}
    assert sorted(last, key=last.__getitem__) == [one.team for one in competition.board()]


def test_events_have_revisions_without_gaps(competition, team, send):
    send(competition, "Blue", 0.7)
    competition.freeze()
    competition.freeze()
    events = competition.events()
    kinds = ["created", "team", "submission", "freeze"]
    assert [(one.revision, one.kind) for one in events] == list(enumerate(kinds, start=1))
    assert competition.events(after=3) == events[3:]
    assert competition.revision == 4


def test_a_board_is_read_without_its_submissions(competition, send):
    send(competition, "Blue", 0.7)
    before = competition.board()
    competition._neighbours.clear()
    with competition._database.writing() as connection:
        connection.exec_driver_sql("DROP TABLE board_submissions")
    assert competition.board() == before


@pytest.mark.parametrize(("metric", "best"), [("accuracy", 0.9), ("zero_one_loss", 0.2)])
def test_only_a_better_value_is_a_new_best_and_of_equal_values_the_first(
    make_competition, send, metric, best
):
    competition = make_competition(metric=metric)
    right = (lambda value: value) if metric == "accuracy" else (lambda value: 1 - value)
    values = [0.5, 0.9, 0.2, 0.9, 0.2]
    for variant, value in enumerate(values):
        send(competition, "Blue", right(value), 17 * variant, claimed=value)
    (standing,) = competition.board()
    assert standing.value == pytest.approx(best, abs=0.1)
    assert (standing.submission_id, standing.submissions) == (1 + values.index(best), 5)


# ---- limits


def test_a_team_has_a_limited_number_of_submissions_of_its_own(make_competition, send):
    competition = make_competition(queries=300, submissions_per_team=None)
    for variant in range(3):
        send(competition, "Greedy", 0.7, variant)
    with pytest.raises(LimitError, match="each team has 3 submissions; all are used; nothing was asked"):
        send(competition, "Greedy", 0.7, 9)
    assert send(competition, "Other", 0.7, 9).told == "agreed"


def test_a_day_ends_at_midnight_utc(make_competition, send, clock):
    competition = make_competition(submissions_per_day=1)
    send(competition, "Blue", 0.7, 0)
    clock.now += 12 * 3600 - 1
    refuses(LimitError, "the next day begins at 2026-03-02 00:00 UTC", send, competition, "Blue", 0.7, 1)
    clock.now += 1
    assert send(competition, "Blue", 0.7, 1).query == 2


def test_after_a_halt_the_board_stays_and_old_files_are_answered(make_competition, send, exhaust):
    competition = make_competition(queries=4)
    first, *rest = exhaust(competition)
    board = competition.board()
    refuses(Halted, "", send, competition, "Blue", 0.9)
    status = competition.status()
    assert (status.halted, status.halt_reason, status.open) == (True, "queries", False)
    assert competition.board() == board
    assert send(competition, "Blue", 0.7, 0) == first._replace(replayed=True)
    assert len(competition.submissions()) == 1 + len(rest) == status.queries_asked == 4
    assert {one.state for one in competition.submissions()} == {"scored"}


# ---- blind


def test_a_blind_competition_scores_everything_and_shows_no_number(make_competition, send):
    competition = make_competition(blind=True)
    submission = send(competition, "Blue", 0.7, claimed=0.0)
    assert submission.state == "received"
    hidden = ("value", "low", "high", "charged", "threshold", "prior", "query", "told", "improved")
    assert {getattr(submission, name) for name in hidden} == {None}
    (standing,) = competition.board()
    assert (standing.team, standing.submissions) == ("Blue", 1)
    assert {standing.value, standing.low, standing.rank, standing.charges, standing.query} == {None}
    assert competition.charges_left_of(submission.team_id) is None
    assert competition.rank_history() == []
    assert competition.history().empty
    assert competition.submissions() == [submission]
    (known,) = competition.board(reveal=True)
    assert known.value is not None
    competition.unblind()
    assert competition.board() == [known]
    assert competition.submissions()[0].value == known.value
    assert (competition.status().queries_asked, competition.charges_left_of(submission.team_id)) == (1, 2)


def test_the_halt_of_a_blind_competition_does_not_tell_which_submissions_were_charged(
    make_competition, send, exhaust
):
    competition = make_competition(blind=True, queries=3)
    exhaust(competition)
    halt = refuses(Halted, "", send, competition, "Blue", 0.9)
    assert halt.history.empty
    assert "on quer" not in str(halt)


# ---- closed


def test_a_frozen_competition_takes_nothing_new_until_it_is_unfrozen(competition, send):
    first = send(competition, "Blue", 0.7)
    competition.freeze()
    with pytest.raises(ClosedError, match="frozen; nothing was asked and nothing was charged"):
        send(competition, "Blue", 0.7, 1)
    assert send(competition, "Blue", 0.7) == first._replace(replayed=True)
    competition.freeze(False)
    assert send(competition, "Blue", 0.7, 1).query == 2


def test_nothing_is_taken_before_it_opens_and_after_it_closes(make_competition, send, clock):
    opens, closes = (datetime(2026, 3, 1, hour, tzinfo=UTC) for hour in (13, 14))
    competition = make_competition(opens_at=opens, closes_at=closes)
    for hours, words in ((0, "opens at 2026-03-01 13:00 UTC"), (2, "closed at 2026-03-01 14:00 UTC")):
        clock.now += hours * 3600
        refuses(ClosedError, words, send, competition, "Blue", 0.7)
        assert words in competition.status().closed_reason
    clock.now -= 3600
    assert send(competition, "Blue", 0.7).query == 1
