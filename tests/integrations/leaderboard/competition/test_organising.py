"""Organisers: another round, changed rules, final standings, several competitions, private files."""

import numpy as np
import pytest
from cases import refuses
from reusable_holdout_leaderboard import ClosedError, Competition, LimitError, Rules, SubmissionError
from reusable_holdout_leaderboard.competition import base
from reusable_holdout_leaderboard.rules import CHANGEABLE
from reusable_holdout_leaderboard.store import lists

from reusable_holdout.errors import InputError, LedgerKeyError

# ---- the next round


NEXT = np.random.default_rng(9).integers(0, 2, 700)  # the labels of the next file


def test_after_a_rotation_standings_begin_anew_and_the_old_ones_stay_readable(
    make_competition, send, exhaust, sheet, next_labels_file
):
    competition = make_competition(queries=3)
    answered = exhaust(competition)
    old, (team,) = competition.board(), competition.teams()
    competition.rotate(next_labels_file, queries=9)
    status = competition.status()
    assert (status.epoch, status.rows, status.halted, status.queries_asked) == (2, 700, False, 0)
    assert (competition.board(), competition.board(epoch=1), status.queries_left) == ([], old, 9)
    assert len(competition.history(epoch=1)) == len(answered)
    with pytest.raises(SubmissionError, match="unknown"):
        competition.submit(team.id, sheet(0.7), filename="old.csv", claimed=0.7)
    assert competition.submit_predictions(team.id, NEXT, claimed=1.0).epoch == 2
    assert competition.board()[0].team == "Blue"


def test_other_workers_follow_a_rotation(make_competition, send, reopen, next_labels_file, database):
    ours = make_competition(database=database)
    theirs = reopen(database=database)
    team = send(ours, "Blue", 0.7).team_id
    ours.rotate(next_labels_file, early=True)
    assert theirs.status() == ours.status()
    assert theirs.submit_predictions(team, NEXT, claimed=1.0).epoch == 2


def test_a_worker_that_died_before_it_noted_its_rotation_is_followed(
    make_competition, add_team, reopen, sheet, next_labels_file, monkeypatch
):
    ours = make_competition()
    team, theirs = add_team(ours), reopen()
    with monkeypatch.context() as patch:
        patch.setattr(base, "update", lambda *_, **__: None)
        patch.setattr(base, "keep_head", lambda *_: None)
        patch.setattr(ours, "_tell", lambda *_, **__: None)
        ours.rotate(next_labels_file, early=True)
    refuses(
        ClosedError,
        "a new round with other rows",
        theirs.submit,
        team,
        sheet(0.7),
        filename="x.csv",
        claimed=0.7,
    )
    assert theirs.submit_predictions(team, NEXT, claimed=1.0).epoch == 2
    assert reopen().status().epoch == 2


def test_a_guard_that_still_answers_is_not_rotated_by_mistake(competition, next_labels_file, folder):
    refuses(InputError, "early=True", competition.rotate, next_labels_file)
    assert competition.status().epoch == 1
    assert not (folder / "demo" / "labels-2.parquet").exists()


# ---- changed rules


def test_a_changed_limit_holds_for_every_worker_from_the_next_submission_on(
    make_competition, send, reopen, database
):
    ours = make_competition(submissions_per_team=1, database=database)
    theirs = reopen(database=database)
    send(theirs, "Blue", 0.7)
    refuses(LimitError, "", send, theirs, "Blue", 0.7, 1)
    (event,) = ours.change_rules({"submissions_per_team": 2})
    assert event.detail == {"rule": "submissions_per_team", "from": 1, "to": 2}
    assert theirs.rules.submissions_per_team == 2
    assert send(theirs, "Blue", 0.7, 1).state == "scored"
    assert theirs.changes() == [event]
    assert ours.change_rules({"submissions_per_team": 2}) == []
    assert theirs.revision == event.revision + 1


@pytest.mark.parametrize("name", sorted(set(Rules.__dataclass_fields__) - CHANGEABLE))
def test_rules_that_the_guard_depends_on_cannot_be_changed(competition, name):
    before = competition.rules
    with pytest.raises(InputError, match=rf"^{name} cannot be changed.*nothing was changed.*another slug"):
        competition.change_rules({"title": "Another", name: None})
    assert competition.rules == before
    assert competition.changes() == []
    fixed = {"metric", "metric_parameters", "queries", "charges", "prior_error", "blind", "confidence"}
    assert not fixed & CHANGEABLE


# ---- final standings


@pytest.fixture
def held(make_competition, fresh_labels_file):
    """Make a competition with fresh labels."""

    def make(**changes):
        return make_competition(fresh=fresh_labels_file, **changes)

    return make


@pytest.fixture
def final():
    """Freeze a competition; return teams, fresh scores and scores on the board."""

    def of(competition):
        competition.freeze()
        return [
            (one.team, one.value, pytest.approx(one.public_value, abs=0.02))
            for one in competition.final_standings()
        ]

    return of


def test_final_standings_are_scores_of_the_best_submissions_on_the_fresh_labels(held, send_whole, final, ids):
    competition = held()
    assert competition.status().rows == 900
    assert competition.expected.ids == tuple(sorted(ids))
    for name, public, fresh in (("Lucky", 0.9, 0.5), ("Honest", 0.8, 0.8)):
        for accuracy in (0.3, public):
            send_whole(competition, name, accuracy, fresh)
    refuses(ClosedError, "freeze it first", competition.final_standings)
    assert final(competition) == [("Honest", 0.8, 0.8), ("Lucky", 0.5, 0.9)]
    made = competition.final_standings()
    assert [(one.rank, one.rank_last) for one in made] == [(1, 1), (2, 2)]
    assert all(one.low < one.value < one.high for one in made)
    refuses(ClosedError, "stays frozen", competition.freeze, False)
    refuses(ClosedError, "only description and title", competition.change_rules, {"submissions_per_day": 3})
    competition.change_rules({"title": "Over"})
    assert (competition.rules.title, competition.final_standings()) == ("Over", made)


def test_without_fresh_labels_there_are_no_final_standings_and_no_picks(competition, send):
    one = send(competition, "Blue", 0.7)
    competition.freeze()
    for act in (competition.final_standings, lambda: competition.pick(one.team_id, [one.id])):
        refuses(InputError, "fresh labels", act)


def test_a_team_that_picks_none_has_its_best_submissions_in_the_final(held, send_whole, final):
    competition = held(final_picks=2)
    for public, fresh in ((0.6, 0.9), (0.9, 0.5), (0.8, 0.7)):
        number = send_whole(competition, "Blue", public, fresh).id
    stored = competition._read(lists.contents, range(1, number + 1))
    assert set(stored) == {1, 2, 3}  # also of those that are not the best: they may be picked
    assert final(competition) == [("Blue", 0.7, 0.8)]


def test_only_the_picks_of_a_team_count(held, send_whole, final, database):
    competition = held(database=database)
    first, second = (send_whole(competition, "Blue", *pair) for pair in ((0.6, 0.9), (0.9, 0.5)))
    send_whole(competition, "Red", 0.7, 0.7)
    for picks in ([second.id], [], [first.id]):
        assert [one.id for one in competition.pick(first.team_id, picks)] == picks
    assert final(competition) == [("Blue", 0.9, 0.6), ("Red", 0.7, 0.7)]


def test_more_picks_make_wider_intervals(held, send_whole):
    widths = []
    for slug, picks in (("one", 1), ("three", 3)):
        competition = held(slug=slug, final_picks=picks)
        for variant in range(3):
            send_whole(competition, "Blue", 0.8, 0.7, variant)
        competition.freeze()
        (row,) = competition.final_standings()
        widths.append(row.high - row.low)
    assert widths[0] < widths[1]


def test_an_impossible_pick_is_refused(held, send_whole):
    competition = held()
    own = [send_whole(competition, "Blue", 0.8, 0.7, variant) for variant in range(2)]
    team, numbers = own[0].team_id, [one.id for one in own]
    theirs = send_whole(competition, "Red", 0.8, 0.7)
    for picks in ([theirs.id], [999], numbers):
        refuses(InputError, "nothing was changed", competition.pick, team, picks)
    assert competition.picks(team) == []
    competition.pick(team, numbers[:1])
    competition.freeze()
    competition.pick(team, numbers[1:])  # until the standings are made
    competition.final_standings()
    refuses(ClosedError, "final standings are made", competition.pick, team, numbers[:1])


def test_picks_of_a_blind_competition_show_no_number(held, send_whole):
    competition = held(blind=True)
    one = send_whole(competition, "Blue", 0.8, 0.7)
    (picked,) = competition.pick(one.team_id, [one.id])
    assert (picked.picked, picked.value, picked.improved) == (True, None, None)


# ---- private files


def test_only_their_owner_can_read_labels_key_and_board(competition, folder, reopen):
    assert (folder / "demo").stat().st_mode & 0o077 == 0
    for path in (folder / "board.db", folder / "demo" / "labels-1.parquet"):
        assert path.stat().st_mode & 0o077 == 0
    (folder / "demo" / "labels-1.parquet").chmod(0o640)
    refuses(LedgerKeyError, "chmod 600", reopen)


def test_no_repr_shows_a_password(make_competition, server_url):
    competition = make_competition(database=server_url)
    shown = [repr(one) for one in (competition, competition._database, competition._place)]
    assert "swordfish" not in " ".join(shown)


# ---- several competitions


def test_competitions_in_one_database_have_separate_budgets_and_boards(
    make_competition, send, folder, database
):
    one = make_competition(database=database)
    other = make_competition(database=database, slug="other-one")
    send(one, "Blue", 0.7)
    assert (other.board(), other.status().queries_asked) == ([], 0)
    assert Competition.slugs(folder, database=database) == ["demo", "other-one"]
    refuses(InputError, "demo, other-one", Competition.open, folder, database=database)
    refuses(InputError, "already", make_competition, database=database)
