"""The store by itself: limits, and what of it is atomic."""

import threading

import pytest
import sqlalchemy as sa
from reusable_holdout_leaderboard import LimitError, Rules, StoreError
from reusable_holdout_leaderboard.store.rows import Outcome, Wish
from reusable_holdout_leaderboard.store.store import Store

from reusable_holdout.errors import InputError


@pytest.fixture
def store(tmp_path, database):
    store = Store(tmp_path / "board.db" if database is None else database)
    yield store
    store.close()


@pytest.fixture
def small(tmp_path):
    store = Store(tmp_path / "small.db")
    yield store
    store.close()


def begun(store, **rules):
    """Numbers of a new competition and a team in it."""
    number = store.create_competition(
        Rules(**{"slug": "demo", "title": "Demo", "policy": "ladder", **rules}), at=0.0
    )
    return number, store.add_team(number, "Blue", "blue", b"\x00" * 32, at=0.0).id


def wish(team, variant=0, *, content=None, at=1000.0):
    return Wish(
        epoch=1,
        team_id=team,
        digest=variant.to_bytes(32),
        name=f"{variant}.csv",
        claimed=None,
        prior=None,
        otherwise=0.5,
        at=at,
        content=content,
    )


def outcome(value, *, query=1, paid=False):
    return Outcome(0.5, value, value - 0.1, value + 0.1, 0.05, paid, paid, query, "agreed")


def scored(store, number, team, variant, value, *, better=1, **changes):
    reserved = store.reserve(number, wish(team, variant, **changes))
    return store.record(
        number, reserved.submission.id, outcome(value, query=variant + 1), better=better, at=1.0
    )


def test_a_pending_submission_takes_a_place_until_it_is_released(store):
    number, team = begun(store, submissions_per_team=1)
    first = store.reserve(number, wish(team, 0)).submission
    with pytest.raises(LimitError):
        store.reserve(number, wish(team, 1))
    store.release(number, first.id)
    assert store.reserve(number, wish(team, 1)).submission.state == "pending"


def test_a_released_number_does_not_come_again(store):
    number, team = begun(store)
    first = store.reserve(number, wish(team, 0)).submission
    store.release(number, first.id)
    assert store.reserve(number, wish(team, 1)).submission.id > first.id


def test_a_scored_submission_cannot_be_released(store):
    number, team = begun(store)
    submission = scored(store, number, team, 0, 0.7)
    store.release(number, submission.id)
    assert store.submissions(number) == [submission]


def test_the_prior_stays_what_it_was_at_first_though_the_best_has_changed(store):
    number, team = begun(store)
    first = store.reserve(number, wish(team, 0)).submission
    scored(store, number, team, 1, 0.7)
    again = store.reserve(number, wish(team, 0))
    assert (again.known, again.submission.prior) == (True, first.prior)
    assert store.reserve(number, wish(team, 2)).submission.prior == 0.7


def test_of_two_that_record_the_same_submission_the_first_ones_stays(store):
    number, team = begun(store)
    submission = scored(store, number, team, 0, 0.7)
    again = store.record(number, submission.id, outcome(0.9, query=5, paid=True), better=1, at=2.0)
    assert again == submission
    assert [(one.submissions, one.charges, one.value) for one in store.standings(number, 1)] == [(1, 0, 0.7)]


def test_an_answer_to_a_submission_that_was_released_meanwhile_is_kept(store):
    number, team = begun(store)
    asked = wish(team, 0, content=b"fresh")
    submission = store.reserve(number, asked).submission
    store.release(number, submission.id)
    assert store.contents([submission.id]) == {}
    recorded = store.record(number, submission.id, outcome(0.7), better=1, at=1.0, wish=asked)
    assert (recorded.id, recorded.value, recorded.prior) == (submission.id, 0.7, 0.5)
    assert store.contents([submission.id]) == {submission.id: b"fresh"}


@pytest.mark.parametrize(("better", "best"), [(1, 0.9), (-1, 0.2)])
def test_only_a_better_value_is_a_new_best_and_of_equal_ones_the_first(store, better, best):
    number, team = begun(store)
    values = [0.5, 0.9, 0.2, 0.9, 0.2]
    for variant, value in enumerate(values):
        scored(store, number, team, variant, value, better=better)
    (standing,) = store.standings(number, 1)
    assert (standing.value, standing.submission_id) == (best, 1 + values.index(best))
    assert standing.submissions == 5


def test_a_submission_being_scored_may_take_the_last_charge_so_no_other_is_let_in(store):
    number, team = begun(store, charges_per_team=2)
    first = store.reserve(number, wish(team, 0)).submission
    store.reserve(number, wish(team, 1))
    with pytest.raises(LimitError, match="being scored"):
        store.reserve(number, wish(team, 2))
    store.record(number, first.id, outcome(0.7), better=1, at=1.0)
    assert store.reserve(number, wish(team, 2)).submission.state == "pending"


def test_of_many_threads_none_passes_the_last_place(store):
    number, team = begun(store, submissions_per_team=7)
    passed, refused = [], []

    def send(start):
        for variant in range(start, start + 5):
            try:
                passed.append(store.reserve(number, wish(team, variant)).submission.id)
            except LimitError:
                refused.append(variant)

    threads = [threading.Thread(target=send, args=(5 * k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(set(passed)), len(refused)) == (7, 23)


def test_pages_of_submissions_go_on_where_the_last_ended(small):
    number, team = begun(small)
    for variant in range(5):
        scored(small, number, team, variant, 0.5)
    first = small.submissions(number, limit=3)
    assert [one.id for one in first] == [1, 2, 3]
    assert [one.id for one in small.submissions(number, after=3)] == [4, 5]
    assert [one.id for one in small.submissions(number, limit=2, newest_first=True)] == [5, 4]
    assert small.submissions(number, team_id=team + 1) == []


def test_a_board_does_not_look_at_submissions(small):
    number, team = begun(small)
    scored(small, number, team, 0, 0.7)
    before = small.standings(number, 1)
    with small.database.writing() as connection:
        connection.exec_driver_sql("DROP TABLE board_submissions")
    assert small.standings(number, 1) == before


def test_a_block_that_raises_leaves_nothing(store):
    number, _ = begun(store)
    with pytest.raises(InputError, match="already"):
        store.add_team(number, "Blue", "blue", b"\x01" * 32, at=0.0)
    assert len(store.teams(number)) == 1
    assert [one.kind for one in store.events(number)] == ["created", "team"]


def test_a_database_that_fails_says_so_without_its_words(tmp_path):
    path = tmp_path / "board.db"
    path.write_bytes(b"something else, quite long" * 100)
    with pytest.raises(StoreError, match="SQLITE_NOTADB") as refused:
        Store(path)
    assert "something" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_a_server_that_cannot_be_reached_is_named_without_its_password(server_url):
    with pytest.raises(StoreError) as refused:
        Store(str(sa.make_url(server_url).set(port=1).render_as_string(hide_password=False)))
    assert "swordfish" not in str(refused.value)
