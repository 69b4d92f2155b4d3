"""Sessions: numbers that stand for a token while both are good, and are kept as digests alone."""

import pytest
import sqlalchemy as sa
from reusable_holdout_leaderboard.competition.teams import digest_of, new_token
from reusable_holdout_leaderboard.store.tables import SESSIONS


@pytest.fixture
def signed_in(make_competition, database):
    """A competition, a team's token and a session of it for a minute."""
    competition = make_competition(database=database)
    token = competition.add_team("Blue")
    return competition, token, competition.begin_session(token, seconds=60.0)


def test_a_session_is_its_teams_until_it_is_over(signed_in, clock):
    competition, _, session = signed_in
    assert competition.team_of_session(session).name == "Blue"
    clock.now += 59
    assert competition.team_of_session(session).name == "Blue"
    clock.now += 1
    assert competition.team_of_session(session) is None


def test_a_session_that_was_ended_is_nobodys_and_the_others_go_on(signed_in):
    competition, token, session = signed_in
    other = competition.begin_session(token, seconds=60.0)
    competition.end_session(session)
    competition.end_session("never begun")
    assert competition.team_of_session(session) is None
    assert competition.team_of_session(other).name == "Blue"


def test_a_new_token_ends_all_sessions(signed_in):
    competition, token, session = signed_in
    other = competition.begin_session(token, seconds=60.0)
    renewed = competition.renew_token(competition.authenticate(token).id)
    assert competition.team_of_session(session) is None
    assert competition.team_of_session(other) is None
    again = competition.begin_session(renewed, seconds=60.0)
    assert competition.team_of_session(again).name == "Blue"


def test_a_merged_teams_sessions_are_over(signed_in):
    competition, token, session = signed_in
    red = competition.authenticate(competition.add_team("Red")).id
    competition.merge_teams(red, competition.authenticate(token).id)
    assert competition.team_of_session(session) is None


def test_a_session_is_worth_no_token_and_is_kept_as_a_digest(signed_in, database):
    competition, token, session = signed_in
    assert competition.authenticate(session) is None
    assert competition.team_of_session(token) is None
    with competition._store.database.reading() as connection:
        (row,) = connection.execute(sa.select(SESSIONS)).all()
    assert bytes(row.digest) == digest_of(session)
    assert bytes(row.token_digest) == digest_of(token)


def test_a_session_of_one_competition_is_none_of_another(signed_in, make_competition, database):
    session = signed_in[2]
    other = make_competition(database=database, slug="other")
    other.add_team("Blue")
    assert other.team_of_session(session) is None


def test_an_organisers_session_is_of_the_token_that_it_began_with(signed_in, clock):
    competition, _, session = signed_in
    admin = new_token()
    organiser = competition.begin_session(admin, seconds=60.0)
    digest = digest_of(admin)
    assert competition.is_session_of(organiser, digest)
    assert not competition.is_session_of(organiser, digest_of(new_token()))
    assert not competition.is_session_of(session, digest)
    assert not competition.is_session_of("never begun", digest)
    assert competition.team_of_session(organiser) is None
    clock.now += 60
    assert not competition.is_session_of(organiser, digest)


def test_the_oldest_of_many_sessions_ends_and_those_that_are_over_are_forgotten(signed_in, clock):
    competition, token, session = signed_in
    later = []
    for _ in range(20):
        clock.now += 1
        later.append(competition.begin_session(token, seconds=60.0))
    assert competition.team_of_session(session) is None
    assert all(competition.team_of_session(one) is not None for one in later)
    clock.now += 100
    newest = competition.begin_session(token, seconds=60.0)
    with competition._store.database.reading() as connection:
        kept = list(connection.scalars(sa.select(SESSIONS.c.digest)))
    assert [bytes(one) for one in kept] == [digest_of(newest)]
