"""Teams: tokens, sign-up, sessions; renamed and disqualified teams keep their answers and charges."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa
from cases import refuses
from reusable_holdout_leaderboard import ClosedError, InvitationError, LimitError
from reusable_holdout_leaderboard.competition.base import digest_of, new_token
from reusable_holdout_leaderboard.store.tables import SESSIONS

from reusable_holdout import verify
from reusable_holdout.errors import InputError


def names(competition):
    return [one.name for one in competition.teams()]


@pytest.fixture
def pair(make_competition, add_team):
    """Make a competition with the teams Blue and Red; return it and their numbers."""

    def make(**changes):
        competition = make_competition(**changes)
        return competition, add_team(competition, "Blue"), add_team(competition, "Red")

    return make


# ---- tokens and names


def test_a_token_belongs_to_its_team_until_it_is_renewed(competition, make_competition):
    token = competition.add_team("Blue")
    team = competition.authenticate(token)
    assert team.name == "Blue"
    assert make_competition(slug="other").authenticate(token) is None
    renewed = competition.renew_token(team.id)
    assert [competition.authenticate(one) for one in (token, renewed, "")] == [None, team, None]


@pytest.mark.parametrize("name", ["", "   ", "x" * 65, "a\nb", "a\u202eb", None])
def test_a_teams_name_is_short_and_printable(competition, name):
    refuses(InputError, "1 to 64 printable", competition.add_team, name)


@pytest.mark.parametrize("name", ["blue", " BLUE ", "\uff22lue"])
def test_names_that_look_the_same_are_the_same(competition, team, add_team, name):
    red = add_team(competition, "Red")
    refuses(InputError, "looks the same", competition.add_team, name)
    refuses(InputError, "looks the same", competition.rename_team, red, name)


# ---- sign-up


def test_only_the_newest_code_lets_a_team_sign_up(make_competition, reopen, database):
    ours = make_competition(database=database)
    theirs = reopen(database=database)
    old = ours.invite()
    refuses(ClosedError, "no team was made", ours.sign_up, "Blue", old)
    ours.change_rules({"sign_up": "code"})
    for code in ("", "x", "\ud800"):
        refuses(InvitationError, "no team was made", theirs.sign_up, "Blue", code)
    assert theirs.authenticate(theirs.sign_up("Blue", f" {old}\n")).name == "Blue"
    new = theirs.invite()
    refuses(InvitationError, "", ours.sign_up, "Red", old)
    ours.sign_up("Red", new)
    assert names(ours) == ["Blue", "Red"]


def test_of_many_that_sign_up_at_once_none_is_too_many(make_competition, database):
    competition = make_competition(sign_up="open", most_teams=3, database=database)

    def join(number):
        try:
            return competition.sign_up(f"Team {number}")
        except LimitError:
            return None

    with ThreadPoolExecutor(8) as pool:
        tokens = list(pool.map(join, range(8)))
    assert (len(competition.teams()), tokens.count(None)) == (3, 5)
    competition.add_team("Of the organiser")
    for name in ("TEAM 0", "a\nb"):
        refuses((InputError, LimitError), "", competition.sign_up, name)
    assert len(competition.teams()) == 4


def test_teams_may_sign_up_before_the_opening_and_not_after_the_end(make_competition, clock):
    now = datetime.fromtimestamp(clock(), UTC)
    dates = {"opens_at": now + timedelta(hours=1), "closes_at": now + timedelta(hours=2)}
    competition = make_competition(sign_up="open", most_teams=9, **dates)
    competition.sign_up("Early")
    clock.now += 7200
    refuses(ClosedError, "over", competition.sign_up, "Late")
    competition.change_rules({"closes_at": None})
    competition.freeze()
    refuses(ClosedError, "over", competition.sign_up, "Late")


# ---- renamed


def test_a_renamed_team_goes_on_from_its_best(pair, send):
    competition, blue, _ = pair()
    best = send(competition, "Blue", 0.9)
    competition.rename_team(blue, "Azure")
    assert send(competition, "Azure", 0.7).improved is False
    assert [(one.team, one.submission_id) for one in competition.board()] == [("Azure", best.id)]
    assert [one.team for one in competition.submissions()] == ["Azure", "Azure"]
    assert list(competition.history()["name"]) == ["Blue #1", "Blue #2"]
    assert competition.changes()[0].detail == {"from": "Blue", "to": "Azure"}
    other = send(
        competition, "Blue", 0.6
    )  # another team of the earlier name has a place of its own in the ledger
    assert (other.improved, other.series) == (True, f"Blue ({other.team_id})")
    refuses(InputError, "looks the same", competition.rename_team, other.team_id, "azure")


# ---- disqualified


def test_a_disqualified_team_is_on_no_board_and_its_answers_stay_in_the_ledger(pair, send, folder):
    competition, blue, _ = pair()
    send(competition, "Blue", 0.9, claimed=0.5)
    send(competition, "Red", 0.7, 1)
    order = [one.team for one in competition.board()]
    before = competition.history()
    competition.disqualify(blue)
    competition.disqualify(blue)
    assert [one.team for one in competition.board()] == ["Red"]
    assert {one.team for one in competition.rank_history()} == {"Red"}
    refuses(ClosedError, "disqualified; nothing was asked", send, competition, "Blue", 0.8)
    assert send(competition, "Blue", 0.9, claimed=0.5).replayed
    assert competition.history().equals(before)
    assert verify(folder / "demo" / "ledger.db").sound
    assert [one.kind for one in competition.changes()] == ["disqualify"]
    competition.disqualify(blue, False)
    assert [one.team for one in competition.board()] == order


def test_a_disqualified_team_is_not_in_the_final(pair, send_whole, fresh_labels_file):
    competition, blue, red = pair(fresh=fresh_labels_file)
    for team, variant in (("Blue", 0), ("Red", 1)):
        send_whole(competition, team, 0.8, variant=variant)
    competition.disqualify(blue)
    competition.freeze()
    assert [one.team for one in competition.final_standings()] == ["Red"]
    refuses(ClosedError, "teams cannot change", competition.disqualify, red)


# ---- sessions


@pytest.fixture
def signed_in(make_competition, database):
    """A competition, a team's token, and a session of one minute."""
    competition = make_competition(database=database)
    token = competition.add_team("Blue")
    return competition, token, competition.begin_session(token, seconds=60.0)


def test_a_session_belongs_to_its_team_until_it_is_over(signed_in, make_competition, clock):
    competition, token, session = signed_in
    assert make_competition(slug="other").team_of_session(session) is None
    assert competition.authenticate(session) is competition.team_of_session(token) is None
    clock.now += 59
    assert competition.team_of_session(session).name == "Blue"
    clock.now += 1
    assert competition.team_of_session(session) is None


def test_a_session_ends_by_itself_and_a_new_token_ends_all(signed_in):
    competition, token, session = signed_in
    other = competition.begin_session(token, seconds=60.0)
    competition.end_session(session)
    competition.end_session("never begun")
    assert competition.team_of_session(session) is None
    assert competition.team_of_session(other).name == "Blue"
    renewed = competition.renew_token(competition.authenticate(token).id)
    assert competition.team_of_session(other) is None
    assert competition.team_of_session(competition.begin_session(renewed, seconds=60.0)).name == "Blue"


def test_an_organisers_session_belongs_to_its_token(signed_in, clock):
    competition, _, session = signed_in
    admin = new_token()
    organiser, digest = competition.begin_session(admin, seconds=60.0), digest_of(admin)
    assert competition.is_session_of(organiser, digest)
    for one, of in ((organiser, digest_of(new_token())), (session, digest), ("never begun", digest)):
        assert not competition.is_session_of(one, of)
    assert competition.team_of_session(organiser) is None
    clock.now += 60
    assert not competition.is_session_of(organiser, digest)


def test_old_sessions_are_forgotten_and_all_are_stored_as_digests(signed_in, clock):
    competition, token, session = signed_in
    later = []
    for _ in range(20):
        clock.now += 1
        later.append(competition.begin_session(token, seconds=60.0))
    assert competition.team_of_session(session) is None
    assert all(competition.team_of_session(one) is not None for one in later)
    clock.now += 100
    newest = competition.begin_session(token, seconds=60.0)
    with competition._database.reading() as connection:
        (row,) = connection.execute(sa.select(SESSIONS)).all()
    assert (bytes(row.digest), bytes(row.token_digest)) == (digest_of(newest), digest_of(token))
