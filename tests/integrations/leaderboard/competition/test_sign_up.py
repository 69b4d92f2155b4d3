"""Teams that sign up by themselves: with a code, or openly up to a limit."""

import threading
from datetime import UTC, datetime, timedelta

import pytest
from reusable_holdout_leaderboard import ClosedError, InvitationError, LimitError

from reusable_holdout.errors import InputError


def names(competition):
    return [one.name for one in competition.teams()]


def test_a_competition_is_closed_to_sign_up_unless_its_organiser_says_otherwise(competition):
    code = competition.invite()
    with pytest.raises(ClosedError, match="no team was made"):
        competition.sign_up("Blue", code)
    assert competition.teams() == []
    competition.change_rules({"sign_up": "code"})
    assert competition.authenticate(competition.sign_up("Blue", code)).name == "Blue"


def test_only_the_newest_code_lets_in_on_every_worker(make_competition, reopen, database):
    ours = make_competition(sign_up="code", database=database)
    theirs = reopen(database=database)
    for code in ("", "x", "\ud800"):
        with pytest.raises(InvitationError, match="no team was made"):
            theirs.sign_up("Blue", code)
    old = ours.invite()
    theirs.sign_up("Blue", f" {old}\n")
    new = theirs.invite()
    with pytest.raises(InvitationError):
        ours.sign_up("Red", old)
    ours.sign_up("Red", new)
    assert names(ours) == ["Blue", "Red"]


def test_an_open_sign_up_needs_a_limit(competition):
    with pytest.raises(InputError, match="needs most_teams"):
        competition.change_rules({"sign_up": "open"})
    competition.change_rules({"sign_up": "open", "most_teams": 1})
    competition.sign_up("Blue")
    with pytest.raises(LimitError, match="1 teams at most"):
        competition.sign_up("Red")
    competition.add_team("Red")  # the organiser's own
    assert names(competition) == ["Blue", "Red"]


def test_of_many_that_sign_up_at_once_none_is_too_many(make_competition, database):
    competition = make_competition(sign_up="open", most_teams=3, database=database)
    refused = []

    def join(name):
        try:
            competition.sign_up(name)
        except LimitError:
            refused.append(name)

    threads = [threading.Thread(target=join, args=(f"Team {k}",)) for k in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert (len(competition.teams()), len(refused)) == (3, 5)


def test_a_name_that_is_taken_or_unprintable_is_refused_as_the_organisers_are(make_competition):
    competition = make_competition(sign_up="open", most_teams=9)
    competition.sign_up("Blue")
    for name in ("BLUE", "a\nb"):
        with pytest.raises(InputError):
            competition.sign_up(name)
    assert names(competition) == ["Blue"]


def test_who_comes_before_the_opening_may_sign_up_and_who_comes_after_the_end_may_not(
    make_competition, clock
):
    now = datetime.fromtimestamp(clock(), UTC)
    competition = make_competition(
        sign_up="open",
        most_teams=9,
        opens_at=now + timedelta(hours=1),
        closes_at=now + timedelta(hours=2),
    )
    competition.sign_up("Early")
    clock.now += 7200
    with pytest.raises(ClosedError, match="over"):
        competition.sign_up("Late")
    competition.change_rules({"closes_at": None})
    competition.freeze()
    with pytest.raises(ClosedError, match="over"):
        competition.sign_up("Late")
