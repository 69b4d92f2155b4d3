"""A board and its ledger know each other: of two that are not of the same moment, nothing is answered."""

import shutil

import pytest
from reusable_holdout_leaderboard import StoreError
from reusable_holdout_leaderboard.store.store import Store

from reusable_holdout import ReusableHoldout
from reusable_holdout.errors import RolledBackError


@pytest.fixture
def begun(make_competition, add_team, sheet):
    """A competition with an answer, its team, and a way to ask once more; closed."""
    competition = make_competition()
    team = add_team(competition)
    competition.submit(team, sheet(0.7), filename="x.csv", claimed=0.7)
    competition.close()
    return team


@pytest.fixture
def ledger(folder):
    return folder / "demo" / "ledger.db"


@pytest.fixture
def board(folder):
    return folder / "board.db"


def copied(path, to):
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
        (to / name).unlink(missing_ok=True)
        if (path.parent / name).exists():
            shutil.copy2(path.parent / name, to / name)


def ask(reopen, team, content):
    competition = reopen()
    competition.submit(team, content, filename="x.csv", claimed=0.7)
    competition.close()


def test_an_older_ledger_is_refused_and_says_so(begun, reopen, sheet, ledger, tmp_path):
    copied(ledger, tmp_path)
    ask(reopen, begun, sheet(0.7, 1))
    copied(tmp_path / "ledger.db", ledger.parent)
    with pytest.raises(RolledBackError, match=r"seen, 2 answers.*has 1.*nothing is answered.*never refilled"):
        reopen()


def test_a_copy_of_the_ledger_that_was_asked_something_else_is_refused(
    begun, reopen, sheet, ledger, tmp_path, key_file, labels, predictions
):
    copied(ledger, tmp_path)
    ask(reopen, begun, sheet(0.7, 1))
    copied(tmp_path / "ledger.db", ledger.parent)
    with ReusableHoldout.open(ledger, None, labels[:600], key=key_file) as guard:
        for variant in (2, 3, 4):
            guard.evaluate_predictions(predictions(0.7, variant), prior=0.7)
    with pytest.raises(RolledBackError, match="or others"):
        reopen()


def test_an_older_board_is_refused_and_says_so(begun, reopen, sheet, board, tmp_path):
    copied(board, tmp_path)
    ask(reopen, begun, sheet(0.7, 1))
    copied(tmp_path / "board.db", board.parent)
    with pytest.raises(StoreError, match=r"lacks 1 of those.*older board.*board restore"):
        reopen()


def test_both_of_one_moment_go_on(begun, reopen, sheet, board, ledger, tmp_path):
    for path in (board, ledger):
        copied(path, tmp_path)
    ask(reopen, begun, sheet(0.7, 1))
    for path in (board, ledger):
        copied(tmp_path / path.name, path.parent)
    assert reopen().status().answered == 1


def test_the_ledger_of_another_competition_is_refused(begun, make_competition, reopen, folder):
    make_competition(slug="other").close()
    copied(folder / "other" / "ledger.db", folder / "demo")
    with pytest.raises(RolledBackError):
        reopen()


def test_an_answer_that_was_not_recorded_yet_is_no_disagreement(
    make_competition, add_team, reopen, worker, sheet, database
):
    competition = make_competition(database=database)
    team = add_team(competition)
    worker(team, [sheet(0.7)], database=database, killed="after the guard").wait()
    again = reopen(database=database)
    assert again.status().answered == 1
    assert again.settle(older_seconds=-1e9) == 1
    assert [one.submissions for one in again.board()] == [1]


def test_the_board_keeps_the_head_after_each_answer_and_each_label_set(
    make_competition, add_team, sheet, next_labels_file, reopen, database
):
    competition = make_competition(database=database)
    team = add_team(competition)
    heads = [competition._store.ledger_head(1)]
    competition.submit(team, sheet(0.7), filename="x.csv", claimed=0.7)
    heads.append(competition._store.ledger_head(1))
    competition.rotate(next_labels_file, early=True)
    heads.append(competition._store.ledger_head(1))
    assert [(one.epoch, one.query) for one in heads] == [(1, 0), (1, 1), (2, 0)]
    assert reopen(database=database).status().epoch == 2


def test_a_board_that_has_seen_no_ledger_yet_learns_it_when_it_is_opened(begun, reopen, board):
    store = Store(board)
    with store.database.writing() as connection:
        connection.exec_driver_sql("UPDATE board_competitions SET ledger_head = NULL")
    reopen()
    assert store.ledger_head(1).query == 1
    store.close()
