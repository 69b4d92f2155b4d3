"""One competition in several threads and processes, some of which are killed."""

import signal
import threading

import pytest
from reusable_holdout_leaderboard import Competition, LimitError

from reusable_holdout.errors import InputError

long = pytest.mark.long("integrations/reusable_holdout_leaderboard", "reusable_holdout")


def test_two_workers_show_the_same_and_share_one_budget(make_competition, add_team, reopen, sheet, database):
    ours = make_competition(database=database)
    team = add_team(ours)
    theirs = reopen(database=database)
    ours.submit(team, sheet(0.7), filename="x.csv", claimed=0.7)
    assert theirs.submit(team, sheet(0.7), filename="x.csv").replayed
    assert theirs.submit(team, sheet(0.8), filename="y.csv", claimed=0.8).query == 2
    assert ours.board() == theirs.board()
    assert ours.status() == theirs.status()


@pytest.mark.parametrize(
    ("database", "count"),
    [("sqlite", 2), ("postgresql", 2), pytest.param("sqlite", 3, marks=long)],
    indirect=["database"],
)
def test_of_several_processes_none_passes_a_teams_last_place(
    make_competition, add_team, worker, sheet, database, count
):
    competition = make_competition(submissions_per_team=5, database=database)
    team = add_team(competition)
    processes = [
        worker(team, [sheet(0.7, 10 * k + i) for i in range(4)], claimed=0.7, database=database)
        for k in range(count)
    ]
    assert [process.wait() for process in processes] == [0] * count
    assert len(competition.submissions()) == competition.status().queries_asked == 5
    assert competition.board()[0].submissions == 5
    assert [one.revision for one in competition.events()] == list(range(1, 8))


def test_an_answer_whose_worker_was_killed_before_recording_it_replays_free(
    make_competition, add_team, worker, sheet, database
):
    competition = make_competition(submissions_per_team=1, charges_per_team=1, database=database)
    team = add_team(competition)
    process = worker(team, [sheet(0.7)], claimed=0.0, killed="after the guard", database=database)
    assert process.wait() == -signal.SIGKILL
    assert [one.state for one in competition.submissions()] == ["pending"]
    assert competition.status().queries_asked == 1
    submission = competition.submit(team, sheet(0.7), filename="x.csv", claimed=0.0)
    assert (submission.charged, submission.query, submission.state) == (True, 1, "scored")
    assert competition.status().queries_asked == 1
    assert [(one.submissions, one.charges) for one in competition.board()] == [(1, 1)]


def test_an_answer_whose_worker_was_killed_is_found_in_the_ledger_though_nobody_sends_it_again(
    make_competition, add_team, worker, sheet, clock
):
    competition = make_competition()
    team = add_team(competition)
    worker(team, [sheet(0.7)], claimed=0.0, killed="after the guard").wait()
    clock.now = competition.submissions()[0].at.timestamp() + 599  # the worker has a clock of its own
    assert competition.settle() == 0
    clock.now += 2
    assert competition.settle() == 1
    (submission,) = competition.submissions()
    assert (submission.charged, submission.query) == (True, 1)
    assert [(one.value, one.charges) for one in competition.board()] == [(submission.value, 1)]


def test_a_place_whose_worker_was_killed_before_the_guard_was_asked_is_given_back(
    make_competition, add_team, worker, sheet
):
    competition = make_competition(submissions_per_team=1)
    team = add_team(competition)
    worker(team, [sheet(0.7)], claimed=0.0, killed="before the guard").wait()
    with pytest.raises(LimitError):
        competition.submit(team, sheet(0.8), filename="x.csv", claimed=0.8)
    assert competition.settle(older_seconds=-1e9) == 1
    assert competition.submissions() == []
    assert competition.submit(team, sheet(0.8), filename="x.csv", claimed=0.8).query == 1


def test_threads_of_one_worker_share_a_competition(make_competition, add_team, sheet):
    competition = make_competition()
    teams = [add_team(competition, name) for name in ("Blue", "Red", "Green", "Grey")]
    failed = []

    def send(place):
        try:
            for k in range(5):
                sent = sheet(0.7, 10 * place + k)
                competition.submit(teams[place], sent, filename="x.csv", claimed=0.0 if k == 3 else 0.7)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=send, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert [(one.submissions, one.charges) for one in competition.board()] == [(5, 1)] * 4
    assert competition.history()["charged"].sum() == 4


@pytest.mark.parametrize("database", ["sqlite:///x.db", "not a URL: swordfish", "mysql://a:swordfish@b/c"])
def test_another_database_is_refused_without_its_password(make_competition, database):
    with pytest.raises(InputError, match="PostgreSQL") as refused:
        make_competition(database=database)
    assert "swordfish" not in str(refused.value)


def test_what_is_told_stays_on_the_board_when_another_process_leaves(
    make_competition, add_team, worker, reopen, sheet, folder
):
    """To open and close the file beside a connection drops its locks; who leaves next would delete its log."""
    competition = make_competition()
    team = add_team(competition)
    competition.submit(team, sheet(0.7), filename="a.csv", claimed=0.7)
    assert Competition.slugs(folder) == ["demo"]
    assert worker(team, [sheet(0.72)], claimed=0.7).wait() == 0
    competition.submit(team, sheet(0.71), filename="b.csv", claimed=0.7)
    assert worker(team, [sheet(0.73)], claimed=0.7).wait() == 0
    other = reopen()
    assert other.board()[0].submissions == other.status().queries_asked == 4
