"""Names of teams: those that look alike are the same, and none can be seen in part alone."""

import pytest
from cases import refuses
from reusable_holdout_leaderboard.store.names import checked_team, key_of

from reusable_holdout.errors import InputError

ZWNJ, ZWJ, VS16 = "\u200c", "\u200d", "\ufe0f"


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
        ("SOLO", "S\u0555L\u0555"),  # with an Armenian letter
        ("DATA", "\u13a0\u13aa\u13a2\u13aa".replace("\u13a0", "D").replace("\u13a2", "T")),  # Cherokee
        ("Corn", "Com"),
        ("Vasco", "\u2164asco"),  # a Roman numeral
        ("Dash", "D\u0251sh"),  # a phonetic letter
        ("\u0645\u0644\u06cc", "\u0645\u0644\u0649"),  # Farsi yeh and alef maksura
        ("B\u00e4r", "Ba\u0308r"),
    ],
)
def test_names_that_look_alike_are_the_same(one, other):
    assert key_of(one) == key_of(other)


def test_other_names_are_others():
    names = ["Blue", "Red", "Team 1", "Team 2", "Team 10", *"\u03c0P\u0416nm\u6771\u4eac"]
    assert len(set(map(key_of, names))) == len(names)


# spaces, joiners, fillers, selectors, tags and overrides that show nothing
INVISIBLE = (
    *"\u200b\u00ad\u034f\u115f\u3164\uffa0\u17b4\u180e\u2060\u2064\u2800\ufe0f\U000e0101\U000e0061\u202e",
    *(ZWNJ, ZWJ),
)


@pytest.mark.parametrize("mark", INVISIBLE, ids=lambda mark: f"U+{ord(mark):04X}")
def test_a_name_with_an_invisible_character_is_refused_and_would_be_that_of_the_name_without(mark):
    for name in (f"Bl{mark}ue", f"{mark}Blue", f"Blue{mark}", mark, mark * 3):
        refuses(InputError, "none of them invisible", checked_team, name)
    assert key_of(f"Bl{mark}ue") in {key_of("Blue"), key_of("Bl ue")}


@pytest.mark.parametrize(
    "name",
    [
        f"\u0645\u06cc{ZWNJ}\u062e\u0648\u0627\u0647\u0645",  # Persian "I want", whose two parts do not join
        f"\u062f\u0627\u062f\u0647{ZWNJ}\u0647\u0627",  # "data"
        f"\u0915\u094d{ZWJ}\u0937",  # Devanagari: a half form
        f"\u0915\u094d{ZWNJ}\u0937",
        f"\U0001f468{ZWJ}\U0001f4bb Coders",
        f"\U0001f469\U0001f3fd{ZWJ}\U0001f52c",
        f"\U0001f3f3{VS16}{ZWJ}\U0001f308",
        f"\u2764{VS16} data",
        f"#{VS16}\u20e3 one",
        "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",  # the flag of Scotland
        "\u1112\u1161\u11ab",  # Hangul letters that are put together
    ],
)
def test_joiners_that_decide_what_is_seen_are_taken(name):
    assert checked_team(name) == checked_team(checked_team(name))
    without = name.replace(ZWJ, "").replace(ZWNJ, "")
    assert key_of(name) == key_of(without)  # nobody can be told from it by joiners alone


@pytest.mark.parametrize("name", ["p\u0430ypal", "\u03bfrange"])
def test_a_word_of_two_alphabets_is_refused(name):
    refuses(InputError, "letters of one alphabet", checked_team, name)


@pytest.mark.parametrize("name", ["\u03b1-team", "\u041a\u043e\u0442 A", "\u6771\u4eac AI", "x\u00b2"])
def test_words_of_different_alphabets_may_stand_side_by_side(name):
    assert checked_team(name) == name


def test_a_name_that_is_long_when_written_out_is_refused():
    refuses(InputError, "joined letters", checked_team, "\ufdfa" * 64)


def test_the_invisible_characters_are_unicodes_default_ignorable_ones():
    regex = pytest.importorskip("regex")
    ignorable = regex.compile(r"\p{Default_Ignorable_Code_Point}")
    found = [chr(code) for code in range(0x110000) if ignorable.match(chr(code))]
    assert len(found) > 4_000
    assert {key_of(f"Bl{mark}ue") for mark in found} == {key_of("Blue")}
