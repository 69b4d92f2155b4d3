"""One competition in several threads and processes, some of which are killed: no answer is lost or doubled."""

import signal
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa
from cases import refuses
from reusable_holdout_leaderboard import Competition, LimitError, StoreError
from reusable_holdout_leaderboard.store import lists
from reusable_holdout_leaderboard.store.database import Database
from reusable_holdout_leaderboard.store.entries import Outcome, Wish, record, release, reserve

from reusable_holdout.errors import InputError

long = pytest.mark.long("integrations/reusable_holdout_leaderboard", "reusable_holdout")


def test_two_workers_show_the_same_and_share_one_budget(make_competition, send, reopen, database):
    ours = make_competition(database=database)
    theirs = reopen(database=database)
    send(ours, "Blue", 0.7)
    assert send(theirs, "Blue", 0.7).replayed
    assert send(theirs, "Blue", 0.8).query == 2
    assert (ours.board(), ours.status()) == (theirs.board(), theirs.status())


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
        worker(team, [sheet(0.7, 10 * k + i) for i in range(4)], database=database) for k in range(count)
    ]
    assert [process.wait() for process in processes] == [0] * count
    assert len(competition.submissions()) == competition.status().queries_asked == 5
    assert competition.board()[0].submissions == 5
    assert [one.revision for one in competition.events()] == list(range(1, 8))


def test_an_answer_whose_worker_was_killed_before_recording_it_replays_free(
    make_competition, add_team, worker, sheet, database
):
    competition = make_competition(submissions_per_team=1, charges=1, database=database)
    team = add_team(competition)
    process = worker(team, [sheet(0.7)], claimed=0.0, killed="after the guard", database=database)
    assert process.wait() == -signal.SIGKILL
    assert [one.state for one in competition.submissions()] == ["pending"]
    assert competition.status().queries_asked == 1
    submission = competition.submit(team, sheet(0.7), filename="x.csv", claimed=0.0)
    assert (submission.charged, submission.query, submission.state) == (True, 1, "scored")
    assert competition.status().queries_asked == 1
    assert [(one.submissions, one.charges) for one in competition.board()] == [(1, 1)]


def test_an_answer_whose_worker_was_killed_is_found_in_the_ledger_even_if_nobody_sends_it_again(
    make_competition, add_team, worker, sheet, clock
):
    competition = make_competition()
    worker(add_team(competition), [sheet(0.7)], claimed=0.0, killed="after the guard").wait()
    clock.now = competition.submissions()[0].at.timestamp() + 599  # the worker has a clock of its own
    assert competition.settle() == 0
    clock.now += 2
    assert competition.settle() == 1
    (submission,) = competition.submissions()
    assert (submission.charged, submission.query) == (True, 1)
    assert [(one.value, one.charges) for one in competition.board()] == [(submission.value, 1)]


def test_a_place_whose_worker_was_killed_before_it_asked_is_given_back(
    make_competition, add_team, worker, sheet
):
    competition = make_competition(submissions_per_team=1)
    team = add_team(competition)
    worker(team, [sheet(0.7)], killed="before the guard").wait()
    refuses(LimitError, "", competition.submit, team, sheet(0.8), filename="x.csv", claimed=0.8)
    assert competition.settle(older_seconds=-1e9) == 1
    assert competition.submissions() == []
    assert competition.submit(team, sheet(0.8), filename="x.csv", claimed=0.8).query == 1


def test_threads_of_one_worker_share_a_competition(make_competition, send, add_team):
    competition = make_competition()
    names = ("Blue", "Red", "Green", "Grey")
    for name in names:
        add_team(competition, name)

    def run(place):
        for k in range(5):
            send(competition, names[place], 0.7, 10 * place + k, claimed=0.0 if k == 3 else 0.7)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, range(4)))
    assert [one.submissions for one in competition.board()] == [5] * 4
    charges = sum(one.charges for one in competition.board())
    assert charges == competition.history()["charged"].sum() >= 4


def test_answers_stay_on_the_board_when_another_process_leaves(
    make_competition, add_team, worker, reopen, sheet, folder
):
    """To open and close the file beside a connection drops its locks; then the next to leave would delete its log."""
    competition = make_competition()
    team = add_team(competition)
    for variant in (0, 1):
        competition.submit(team, sheet(0.7, variant), filename="a.csv", claimed=0.7)
        assert Competition.slugs(folder) == ["demo"]
        assert worker(team, [sheet(0.72, variant)]).wait() == 0
    other = reopen()
    assert other.board()[0].submissions == other.status().queries_asked == 4


# ---- places in the database


@pytest.fixture
def places(make_competition, add_team, database):
    """Make a competition; return functions that reserve a place and do something in a transaction."""

    def make(**rules):
        competition = make_competition(database=database, **rules)
        team = add_team(competition)

        def act(call, *args, **kwargs):
            with competition._changing() as (connection, state):
                return call(connection, state, *args, **kwargs)

        def give_back(number):
            return act(lambda connection, _: release(connection, number))

        def keep(number, value, query=1, wish=None):
            answer = Outcome(0.5, value, value - 0.1, value + 0.1, 0.05, False, query, "agreed", False)
            head = competition._epoch.guard.head()
            return act(record, number, answer, better=1, at=1.0, head=head, wish=wish)

        def wish(variant, fresh=None):
            return Wish(1, team, variant.to_bytes(32), "x.csv", 0.5, 1000.0, fresh)

        return competition, lambda *given: act(reserve, wish(*given)), give_back, keep, wish

    return make


def test_of_two_workers_that_record_the_same_submission_the_first_answer_stays(places):
    competition, take, _, keep, _ = places()
    first = keep(take(0).id, 0.7)
    assert keep(first.id, 0.9, 5) == first
    assert [(one.submissions, one.charges, one.value) for one in competition.board()] == [(1, 0, 0.7)]


def test_an_answer_to_a_submission_that_was_released_meanwhile_is_recorded(places):
    competition, take, give_back, keep, wish = places()
    submission = take(0, b"fresh")
    give_back(submission.id)
    assert competition._read(lists.contents, [submission.id]) == {}
    recorded = keep(submission.id, 0.7, wish=wish(0, b"fresh"))
    assert (recorded.id, recorded.value, recorded.prior) == (submission.id, 0.7, 0.5)
    assert competition._read(lists.contents, [submission.id]) == {submission.id: b"fresh"}


# ---- databases that cannot be used


def test_a_file_that_is_no_board_is_refused_without_its_content(tmp_path):
    path = tmp_path / "board.db"
    path.write_bytes(b"something else, quite long" * 100)
    refused = refuses(StoreError, "SQLITE_NOTADB", Database, path)
    assert "something" not in str(refused)
    assert refused.__cause__ is None


@pytest.mark.parametrize("database", ["sqlite:///x.db", "not a URL: swordfish", "mysql://a:swordfish@b/c"])
def test_another_database_is_refused_without_its_password(make_competition, database):
    refused = refuses(InputError, "PostgreSQL", make_competition, database=database)
    assert "swordfish" not in str(refused)


def test_an_unreachable_server_is_named_without_its_password(server_url):
    with pytest.raises(StoreError) as refused:
        Database(str(sa.make_url(server_url).set(port=1).render_as_string(hide_password=False)))
    assert "swordfish" not in str(refused.value)


@pytest.mark.parametrize(
    ("statements", "words"),
    [
        (["UPDATE board_schema SET version = 5"], "format 5, of version 0.1 or 0.2.*install 0.2.1"),
        (["DROP TABLE board_schema"], "format 1, of version 0.1 or 0.2.*fresh labels"),
        (["UPDATE board_schema SET version = 7"], "format 7, of a later version.*install that version"),
    ],
)
def test_a_board_of_another_format_is_refused_and_not_changed(competition, folder, reopen, statements, words):
    competition.close()
    database = Database(folder / "board.db")
    with database.writing() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    database.close()
    before = (folder / "board.db").read_bytes()
    refuses(StoreError, f"must have format 6.*{words}", reopen)
    assert (folder / "board.db").read_bytes() == before
