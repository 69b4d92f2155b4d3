"""Names of teams: those that look alike are the same."""

import pytest
from reusable_holdout_leaderboard.competition.teams import checked_team, key_of

from reusable_holdout.errors import InputError


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Blue", "BLUE"),
        ("Blue", " b\uff4cue "),
        ("coca", "\u0441\u043e\u0441\u0430"),  # Cyrillic
        ("MHT", "\u041c\u041d\u0422"),  # Cyrillic capitals
        ("NOTE", "\u039d\u039f\u03a4\u0395"),  # Greek capitals
        ("Bill", "BiII"),
        ("Team 10", "Team lO"),
        ("A-B", "A\u2013B"),
        ("it's", "it\u2019s"),
    ],
)
def test_names_that_look_alike_are_the_same(one, other):
    assert key_of(one) == key_of(other)


def test_other_names_are_others():
    names = ["Blue", "Red", "Team 1", "Team 2", "Team 10", "\u03c0", "P", "\u041f", "n", "m"]
    assert len(set(map(key_of, names))) == len(names)


@pytest.mark.parametrize("name", ["p\u0430ypal", "\u03bfrange"])
def test_a_word_of_two_alphabets_is_refused(name):
    with pytest.raises(InputError, match="letters of one alphabet"):
        checked_team(name)


@pytest.mark.parametrize("name", ["\u03b1-team", "\u041a\u043e\u0442 A", "\u6771\u4eac AI", "x\u00b2"])
def test_words_of_different_alphabets_may_stand_side_by_side(name):
    assert checked_team(name) == name


def test_a_name_that_is_long_when_written_out_is_refused():
    with pytest.raises(InputError, match="ligatures"):
        checked_team("\ufdfa" * 64)
