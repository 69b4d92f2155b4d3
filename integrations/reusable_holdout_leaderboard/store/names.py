"""Names that people give to teams, and the key that names which look alike have in common.

Unicode's tables decide: its confusables (UTS 39) say which characters look alike, its default-ignorable code points
which ones are invisible.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from reusable_holdout.errors import InputError, of_extra

__all__ = ["checked_team", "key_of"]

_MOST_TEAM, _MOST_KEY = 64, 256
_ALPHABETS = {"CYRILLIC", "GREEK", "LATIN"}
_UNSHOWN = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"}  # controls, invisible marks, unassigned
_STROKES = str.maketrans("i‐‑‒–—", "l-----")  # noqa: RUF001 - the table has dashes of other lengths for others
_INVISIBLE = (
    r"[\p{Default_Ignorable_Code_Point}\u2800]"  # Braille's blank is a character that shows nothing, too
)
# Where an invisible character is honest: letters whose shape it decides, and emoji that it makes one of several.
_HONEST = (
    r"(?<=[\p{Joining_Type=D}\p{Joining_Type=L}\p{Joining_Type=R}]\p{Mn}*)\u200c(?=[\p{Joining_Type=D}\p{Joining_Type=R}])"
    r"|(?<=\p{Canonical_Combining_Class=Virama})[\u200c\u200d](?=\p{L})"
    r"|\U0001f3f4[\U000e0030-\U000e007a]{4,6}\U000e007f"
    r"|[0-9#*]\ufe0f\u20e3"
    r"|\p{Extended_Pictographic}[\ufe0f\p{Emoji_Modifier}]?"
    r"(?:\u200d\p{Extended_Pictographic}[\ufe0f\p{Emoji_Modifier}]?)*"
)


def checked_team(name: object) -> str:
    """Return a team's name in Unicode's composed form, without space around it.

    Raises
    ------
    InputError
        If it is not 1 to 64 printable characters, all of them visible.
    """
    given = unicodedata.normalize("NFC", name).strip() if isinstance(name, str) else ""
    if not 0 < len(given) <= _MOST_TEAM or not _shows_all(given):
        raise InputError(
            f"a team's name must be 1 to {_MOST_TEAM} printable characters, none of them invisible; name another"
        )
    if any(len(_alphabets(word)) > 1 for word in re.findall(r"\w+", given)):
        raise InputError("a word of a team's name must have letters of one alphabet; name another")
    if len(key_of(given)) > _MOST_KEY:
        raise InputError("a team's name must be short also when its ligatures are written out; name another")
    return given


def key_of(team: str) -> str:
    """Return what names that look alike have in common.

    Case, width, space and invisible characters do not count, nor does a stroke: i, l, 1 and | are alike, as are o and
    0. Otherwise Unicode's table says which characters look alike, so rn is alike m.

    Examples
    --------
    >>> key_of("Bill 0") == key_of("BI1l O")
    True
    """
    key, before = team, ""
    while key != before:  # twice, as a rule: some letters look like another in one case alone
        before = key
        wide = _invisible().sub("", unicodedata.normalize("NFKC", key))
        alike = unicodedata.normalize("NFD", wide).translate(_prototypes())
        small = unicodedata.normalize("NFD", alike.casefold()).translate(_prototypes())
        key = " ".join(small.casefold().translate(_STROKES).split())
    return key


def _shows_all(given: str) -> bool:
    """Return True if nothing in a name is invisible but joiners and marks that decide what is seen."""
    left = _honest().sub("", given)
    if _invisible().search(left) or any(unicodedata.category(one) in _UNSHOWN for one in left):
        return False
    return bool(key_of(given))


def _alphabets(word: str) -> set[str]:
    names = (unicodedata.name(one, "").partition(" ")[0] for one in unicodedata.normalize("NFKC", word))
    return _ALPHABETS.intersection(names)


# ---- Unicode's tables


@lru_cache(maxsize=1)
def _invisible() -> Any:
    return _pattern(_INVISIBLE)


@lru_cache(maxsize=1)
def _honest() -> Any:
    return _pattern(_HONEST)


def _pattern(text: str) -> Any:
    with of_extra("leaderboard", "a leaderboard"):
        import regex  # type: ignore[import-untyped]  # noqa: PLC0415 - the standard library knows no properties

    return regex.compile(text)


@lru_cache(maxsize=1)
def _prototypes() -> Mapping[int, str]:
    """Return the one text that each of the characters that look alike stands for.

    The library lists for each text those that it is alike. One text of several characters, such as rn, can only be
    what the others stand for; else it is the one that most others are alike.
    """
    with of_extra("leaderboard", "a leaderboard"):
        from confusable_homoglyphs.confusables import confusables_data  # type: ignore[import-untyped]  # noqa: PLC0415

    alike = {_plain(text): [_plain(one["c"]) for one in ones] for text, ones in confusables_data.items()}
    found: dict[int, str] = {}
    for text, ones in alike.items():
        if len(text) == 1 and len(ones) == 1:
            (other,) = ones
            if len(other) > 1 or (len(alike.get(other, ())), other) > (1, text):
                found[ord(text)] = other
    return found


def _plain(text: str) -> str:
    """Return a text of the library's table without the marks that it has around letters written from right to left."""
    return text.strip("\u200e")
