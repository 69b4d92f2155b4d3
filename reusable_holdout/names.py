"""Names that others chose, of gates, questions, files, tasks and models, made safe to print.

A name may hold an escape sequence that colours or clears a terminal, a mark that reverses the order of letters, a line
end that forges a second line, or invisible letters.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["stripped"]

_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f]).*?(?:\x07|\x1b\\|\x9c|$)|\x1b.?"
)
_SPACES = "\t\n\v\f\r\x1c\x1d\x1e\x1f\x85\u2028\u2029"
_UNSEEN = {"Cc", "Cf", "Cn", "Co", "Cs"}  # control, format, unassigned, private and surrogate code points
# ignorable by default, of other categories
_BLANK = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0"
_JOINERS = "\u200c\u200d\ufe0f"  # part of some scripts' words, and of emoji


def stripped(text: str) -> str:
    r"""Return a text without terminal sequences and unseen characters; line ends and tabs become spaces.

    Joiners stay between letters of the scripts that need them, and in emoji.

    >>> stripped("\x1b[31mred\x1b[0m \u202egnp.exe\u2069\nsecond\u200bline")
    'red gnp.exe secondline'
    """
    plain = _SEQUENCE.sub("", text)
    return "".join(_shown(plain, place) for place in range(len(plain)))


def _shown(text: str, place: int) -> str:
    one = text[place]
    if one in _SPACES:
        return " "
    if one in _JOINERS:
        before = text[place - 1] if place else ""
        return one if not before.isascii() and unicodedata.category(before)[0] in "LMS" else ""
    ignored = one in _BLANK or "\ufe00" <= one <= "\ufe0e" or "\U000e0100" <= one <= "\U000e01ef"
    return "" if ignored or unicodedata.category(one) in _UNSEEN else one
