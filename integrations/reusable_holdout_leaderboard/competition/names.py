"""Names that people give: to teams, and to submissions."""

from __future__ import annotations

import re
import unicodedata

from reusable_holdout.errors import InputError

__all__ = ["checked_team", "checked_title", "key_of"]

_MOST_TEAM, _MOST_TITLE, _MOST_KEY = 64, 200, 256
_ALPHABETS = {"CYRILLIC", "GREEK", "LATIN"}
# Letters that look like Latin ones, most of them as Unicode's list of confusables has them (UTS 39); capitals first,
# for some look like another letter than their small form does.
_CAPITALS = str.maketrans("АВЕЅІЈКМНОРСТУХҺԚԜΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "ABESIJKMHOPCTYXHQWABEZHIKMNOPTYX")
_SMALL = str.maketrans("авеѕіјкмһорстухԁԛԝαβοντρκιχυγ", "abesijkmhopctyxdqwabovtpkixuy")
_STROKES = str.maketrans("il1|0’ʼ`‐‑‒–—", "llllo" + 3 * "'" + 5 * "-")  # noqa: RUF001
_UNSHOWN = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"}  # controls, invisible marks, unassigned


def checked_team(name: object) -> str:
    """Team's name in Unicode's composed form, without space around it.

    Raises
    ------
    InputError
        If it is not 1 to 64 printable characters.
    """
    given = unicodedata.normalize("NFC", name).strip() if isinstance(name, str) else ""
    if not 0 < len(given) <= _MOST_TEAM or any(unicodedata.category(one) in _UNSHOWN for one in given):
        raise InputError(f"a team's name must be 1 to {_MOST_TEAM} printable characters; name another")
    if any(len(_alphabets(word)) > 1 for word in re.findall(r"\w+", given)):
        raise InputError("a word of a team's name must have letters of one alphabet; name another")
    if len(key_of(given)) > _MOST_KEY:
        raise InputError("a team's name must be short also when its ligatures are written out; name another")
    return given


def key_of(team: str) -> str:
    """What names that look alike have in common.

    Case, width and space do not count, nor whether a letter is Latin or one of another alphabet that looks the same,
    nor which stroke one is: i, l, 1 and | are alike, and so are o and 0.

    Examples
    --------
    >>> key_of("Bill 0") == key_of("BI1l O")
    True
    """
    wide = unicodedata.normalize("NFKC", team).translate(_CAPITALS)
    small = unicodedata.normalize("NFKC", wide.casefold()).translate(_SMALL)
    return " ".join(small.translate(_STROKES).split())


def _alphabets(word: str) -> set[str]:
    names = (unicodedata.name(one, "").partition(" ")[0] for one in unicodedata.normalize("NFKC", word))
    return _ALPHABETS.intersection(names)


def checked_title(name: object) -> str:
    """Submission's name: printable, cut to 200 characters; a file's name is not worth an error."""
    given = unicodedata.normalize("NFC", name) if isinstance(name, str) else ""
    shown = "".join(one for one in given if unicodedata.category(one) not in _UNSHOWN)
    return shown.strip()[:_MOST_TITLE]
