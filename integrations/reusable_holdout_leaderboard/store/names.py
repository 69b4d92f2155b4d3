"""Checks of teams' names, and a key that is equal for names that look alike.

Two tables of Unicode are used. The table of confusables (UTS 39) lists characters that look alike. The property
Default_Ignorable_Code_Point marks characters that are invisible.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache

import regex  # type: ignore[import-untyped]  # the standard library has no Unicode properties

from reusable_holdout.errors import InputError

__all__ = ["checked_team", "key_of"]

_MOST_TEAM, _MOST_KEY = 64, 256
_ALPHABETS = {"CYRILLIC", "GREEK", "LATIN"}
_UNSHOWN = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"}  # categories of characters that show nothing
_STROKES = str.maketrans("i‐‑‒–—", "l-----")  # noqa: RUF001 - the table lists dashes of other lengths
_INVISIBLE = regex.compile(
    r"[\p{Default_Ignorable_Code_Point}\u2800]"  # Braille's blank shows nothing either
)
# Invisible characters are allowed where they change the shape of letters, or join several emoji into one.
_HONEST = regex.compile(
    r"(?<=[\p{Joining_Type=D}\p{Joining_Type=L}\p{Joining_Type=R}]\p{Mn}*)\u200c(?=[\p{Joining_Type=D}\p{Joining_Type=R}])"
    r"|(?<=\p{Canonical_Combining_Class=Virama})[\u200c\u200d](?=\p{L})"
    r"|\U0001f3f4[\U000e0030-\U000e007a]{4,6}\U000e007f"
    r"|[0-9#*]\ufe0f\u20e3"
    r"|\p{Extended_Pictographic}[\ufe0f\p{Emoji_Modifier}]?"
    r"(?:\u200d\p{Extended_Pictographic}[\ufe0f\p{Emoji_Modifier}]?)*"
)


def checked_team(name: object) -> str:
    """Check a team's name, and return it in Unicode's composed form (NFC), without space around it.

    Raises
    ------
    InputError
        If the name does not have 1 to 64 printable and visible characters, or mixes alphabets in one word.
    """
    given = unicodedata.normalize("NFC", name).strip() if isinstance(name, str) else ""
    if not 0 < len(given) <= _MOST_TEAM or not _shows_all(given):
        raise InputError(
            f"a team's name must be 1 to {_MOST_TEAM} printable characters, none of them invisible; nothing was "
            "changed; choose another"
        )
    if any(len(_alphabets(word)) > 1 for word in re.findall(r"\w+", given)):
        raise InputError(
            "each word of a team's name must have letters of one alphabet; nothing was changed; choose another"
        )
    if len(key_of(given)) > _MOST_KEY:
        raise InputError(
            "a team's name must be short, also with joined letters written singly; nothing was changed; choose another"
        )
    return given


def key_of(team: str) -> str:
    """Return a key that is equal for names that look alike.

    The key does not depend on case, width, additional space and invisible characters. The characters i, l, 1 and | look
    alike, and so do o and 0. For other characters Unicode's table decides; in it, rn looks like m.

    Examples
    --------
    >>> key_of("Bill 0") == key_of("BI1l O")
    True
    """
    key, before = team, ""
    while key != before:  # usually two rounds: some letters look like others only as capitals or only small
        before = key
        wide = _INVISIBLE.sub("", unicodedata.normalize("NFKC", key))
        alike = unicodedata.normalize("NFD", wide).translate(_prototypes())
        small = unicodedata.normalize("NFD", alike.casefold()).translate(_prototypes())
        key = " ".join(small.casefold().translate(_STROKES).split())
    return key


def _shows_all(given: str) -> bool:
    """Return True if all characters of a name are visible. Invisible ones are allowed in some letters and emoji."""
    left = _HONEST.sub("", given)
    if _INVISIBLE.search(left) or any(unicodedata.category(one) in _UNSHOWN for one in left):
        return False
    return bool(key_of(given))


def _alphabets(word: str) -> set[str]:
    names = (unicodedata.name(one, "").partition(" ")[0] for one in unicodedata.normalize("NFKC", word))
    return _ALPHABETS.intersection(names)


# ---- Unicode's tables


@lru_cache(maxsize=1)
def _prototypes() -> Mapping[int, str]:
    """Return a table that maps each character to one representative of the texts that look like it.

    The library lists the texts that look like a character. If a text of several characters, such as rn, is among them,
    it is the representative. Otherwise it is the text that the most others look like.
    """
    # the import reads a large table, so it is done only when the table is needed
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
    """Return a text of the library's table without the invisible marks around letters of right-to-left scripts."""
    return text.strip("\u200e")
