"""What organisers do: another label set, final standings, teams, several competitions."""

import numpy as np
import pytest
from reusable_holdout_leaderboard import ClosedError, Competition, SubmissionError

from reusable_holdout.errors import InputError, LedgerKeyError

# ---- the next label set


def next_sheet(seed):
    rng = np.random.default_rng(seed)
    rows = "".join(f"n{row},{label}\n" for row, label in enumerate(rng.integers(0, 2, 700)))
    return f"id,prediction\n{rows}".encode()


def test_after_a_rotation_standings_begin_anew_and_the_old_ones_stay_readable(
    make_competition, add_team, sheet, exhaust, next_labels_file
):
    competition = make_competition(charges=2)
    team = add_team(competition)
    answered = exhaust(competition, team)
    old = competition.board()
    competition.rotate(next_labels_file)
    status = competition.status()
    assert (status.epoch, status.rows, status.halted, status.queries_asked) == (2, 700, False, 0)
    assert competition.board() == []
    assert competition.board(epoch=1) == old
    assert len(competition.history(epoch=1)) == len(answered)
    with pytest.raises(SubmissionError, match="unknown"):
        competition.submit(team, sheet(0.7), filename="old.csv", claimed=0.7)
    assert competition.submit(team, next_sheet(9), filename="new.csv", claimed=1.0).epoch == 2
    assert competition.board()[0].value == 1.0


def test_other_workers_follow_a_rotation(
    make_competition, add_team, reopen, sheet, next_labels_file, database
):
    ours = make_competition(database=database)
    team = add_team(ours)
    theirs = reopen(database=database)
    ours.submit(team, sheet(0.7), filename="x.csv", claimed=0.7)
    ours.rotate(next_labels_file, early=True)
    assert theirs.status() == ours.status()
    assert theirs.submit(team, next_sheet(9), filename="x.csv", claimed=1.0).epoch == 2


def test_a_worker_that_rotated_and_died_before_it_noted_so_is_followed(
    make_competition, add_team, reopen, sheet, next_labels_file, monkeypatch
):
    ours = make_competition()
    team = add_team(ours)
    theirs = reopen()
    with monkeypatch.context() as patch:
        patch.setattr(ours._store, "go_on_to", lambda *_, **__: None)
        ours.rotate(next_labels_file, early=True)
    with pytest.raises(ClosedError, match="another label set"):
        theirs.submit(team, sheet(0.7), filename="x.csv", claimed=0.7)
    assert theirs.submit(team, next_sheet(9), filename="x.csv", claimed=1.0).epoch == 2
    assert reopen().status().epoch == 2


def test_a_guard_that_still_answers_is_not_rotated_by_mistake(competition, next_labels_file, folder):
    with pytest.raises(InputError, match="early=True"):
        competition.rotate(next_labels_file)
    assert competition.status().epoch == 1
    assert not (folder / "demo" / "labels-2.parquet").exists()


# ---- final standings


def test_final_standings_are_scores_on_the_fresh_labels_of_the_teams_best(
    make_competition, add_team, fresh_labels_file, labels, ids, predictions
):
    competition = make_competition(fresh=fresh_labels_file)
    assert competition.status().rows == 900
    assert competition.expected.ids == tuple(sorted(ids))
    for name, public, fresh in (("Lucky", 0.9, 0.5), ("Honest", 0.8, 0.8)):
        team = add_team(competition, name)
        for claimed in (0.3, public):
            whole = np.concatenate([predictions(claimed), labels[600:]])
            wrong = 600 + np.arange(round((1 - fresh) * 300))
            whole[wrong] = 1 - whole[wrong]
            rows = "".join(f"{one},{label}\n" for one, label in zip(ids, whole, strict=True))
            competition.submit(team, f"id,prediction\n{rows}".encode(), filename="x.csv", claimed=claimed)
    with pytest.raises(ClosedError, match="freeze it first"):
        competition.final_standings()
    competition.freeze()
    final = competition.final_standings()
    assert [(one.team, one.value, one.public_value) for one in final] == [
        ("Honest", 0.8, 0.8),
        ("Lucky", 0.5, 0.9),
    ]
    assert [(one.rank, one.rank_last) for one in final] == [(1, 1), (2, 2)]
    assert all(one.low < one.value < one.high for one in final)
    assert competition.final_standings() == final
    with pytest.raises(ClosedError, match="stays frozen"):
        competition.freeze(False)


def test_predictions_for_the_fresh_rows_are_kept_of_all_that_may_be_picked(
    make_competition, add_team, fresh_labels_file, labels, ids, predictions
):
    competition = make_competition(fresh=fresh_labels_file)
    team = add_team(competition)
    order = np.argsort(ids)
    for accuracy in (0.5, 0.7, 0.6):
        whole = np.concatenate([predictions(accuracy), labels[600:]])[order]
        competition.submit_predictions(team, whole, claimed=accuracy)
    assert set(competition._store.contents([1, 2, 3])) == {1, 2, 3}


def test_without_fresh_labels_there_are_no_final_standings(competition):
    competition.freeze()
    with pytest.raises(InputError, match="fresh labels"):
        competition.final_standings()


# ---- what is private


def test_labels_key_and_board_are_readable_by_their_owner_alone(competition, folder):
    assert (folder / "demo").stat().st_mode & 0o077 == 0
    for path in (folder / "board.db", folder / "demo" / "labels-1.parquet"):
        assert path.stat().st_mode & 0o077 == 0


def test_labels_that_others_can_read_are_refused(competition, folder, reopen):
    (folder / "demo" / "labels-1.parquet").chmod(0o640)
    with pytest.raises(LedgerKeyError, match="chmod 600"):
        reopen()


def test_a_password_is_in_no_repr(make_competition, server_url):
    competition = make_competition(database=server_url)
    shown = [repr(one) for one in (competition, competition._store, competition._place)]
    assert "swordfish" not in " ".join(shown)


# ---- several competitions


def test_competitions_in_one_database_have_budgets_and_boards_of_their_own(
    make_competition, add_team, folder, sheet, database
):
    one = make_competition(database=database)
    other = make_competition(database=database, slug="other-one")
    one.submit(add_team(one), sheet(0.7), filename="x.csv", claimed=0.7)
    assert other.board() == []
    assert other.status().queries_asked == 0
    assert Competition.slugs(folder, database=database) == ["demo", "other-one"]
    with pytest.raises(InputError, match="demo, other-one"):
        Competition.open(folder, database=database)


def test_a_second_competition_of_the_same_slug_is_refused(competition, make_competition):
    with pytest.raises(InputError, match="already"):
        make_competition()


# ---- teams


def test_a_token_is_its_teams_until_it_is_renewed(competition):
    token = competition.add_team("Blue")
    team = competition.authenticate(token)
    assert team.name == "Blue"
    renewed = competition.renew_token(team.id)
    assert competition.authenticate(token) is None
    assert competition.authenticate(renewed) == team
    assert competition.authenticate("") is None


def test_a_token_of_one_competition_is_nobodys_in_another(make_competition):
    one, other = make_competition(), make_competition(slug="other")
    assert other.authenticate(one.add_team("Blue")) is None


@pytest.mark.parametrize("name", ["", "   ", "x" * 65, "a\nb", "a\u202eb", None])
def test_a_teams_name_is_short_and_printable(competition, name):
    with pytest.raises(InputError, match="1 to 64 printable"):
        competition.add_team(name)


@pytest.mark.parametrize("name", ["blue", " BLUE ", "Ｂlue"])  # noqa: RUF001 - the last is another B
def test_names_that_look_the_same_are_the_same(competition, team, name):
    with pytest.raises(InputError, match="looks the same"):
        competition.add_team(name)
