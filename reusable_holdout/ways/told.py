"""The codec of outcomes: what a ledger says was told, as a record and as text."""

from __future__ import annotations

import re
from typing import NamedTuple, Self

__all__ = [
    "AGREED",
    "CELL",
    "FAILED",
    "MEASURED",
    "NO",
    "NOT_CERTIFIED",
    "SPAN",
    "VALUE",
    "YES",
    "Told",
    "Winner",
]

AGREED = "agreed"
FAILED = "failed"
YES, NO = "yes", "no"
CELL, SPAN, MEASURED, VALUE = "cell", "span", "measured", "value"
STEPS = "steps"
"""Of ladders, which earlier versions had."""
NOT_CERTIFIED = "not certified"

_PLACED, _NAMED = {CELL, SPAN, MEASURED, STEPS}, {AGREED, FAILED, YES, NO, NOT_CERTIFIED}
_WINNER = re.compile(r"candidate (\d+) of (\d+), rank (\d+), (.+)")
_WIDTH, _WITHIN, _WITH = ", width ", " within ", " with "


class Winner(NamedTuple):
    """Winner of a choice.

    Attributes
    ----------
    candidate : int
        Its place among the candidates, from 0.
    candidates : int
    rank : int
        Rank of its prior among the candidates' priors, from 1, the best; equal ones in their order.
    """

    candidate: int
    candidates: int
    rank: int

    @property
    def fits(self) -> bool:
        """True if there can be such a winner."""
        return self.candidate < self.candidates and 1 <= self.rank <= self.candidates


class Told(NamedTuple):
    """An outcome.

    Attributes
    ----------
    word : str
        One of the words above.
    place : int, optional
        Of a cell, a span or a measured claim.
    width : int, optional
        Steps of a cell's width from the guessed one.
    value : float, optional
        Of a final, in [0, 1].
    ends : tuple of float, optional
        Ends of the interval that a final told.
    winner : Winner, optional
        Of a choice.
    rails : tuple of (int, float)
        View of each guardrail, and what was named for it, in [0, 1].
    """

    word: str
    place: int | None = None
    width: int | None = None
    value: float | None = None
    ends: tuple[float, float] | None = None
    winner: Winner | None = None
    rails: tuple[tuple[int, float], ...] = ()

    @property
    def failed(self) -> bool:
        """True if the model or metric failed on the holdout: then there is no value."""
        return self.word == FAILED

    def text(self) -> str:
        """Return the outcome as a ledger writes it; :meth:`parse` reads it."""
        text = self.word
        if self.place is not None:
            text += f" {self.place}"
        if self.value is not None:
            text += f" {self.value!r}"
        if self.width is not None:
            text += f"{_WIDTH}{self.width}"
        if self.ends is not None:
            text += f"{_WITHIN}{self.ends[0]!r} {self.ends[1]!r}"
        if self.rails:
            text += _WITH + " ".join(f"{view}:{named!r}" for view, named in self.rails)
        if self.winner is not None:
            one = self.winner
            text = f"candidate {one.candidate} of {one.candidates}, rank {one.rank}, {text}"
        return text

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read an outcome; None if no outcome is written like this."""
        try:
            told = cls._parsed(text)
        except ValueError:
            return None
        return told if told.text() == text and (told.winner is None or told.winner.fits) else None

    @classmethod
    def _parsed(cls, text: str) -> Self:
        winner, found = None, _WINNER.fullmatch(text)
        if found is not None:
            *numbers, text = found.groups()
            winner = Winner(*map(int, numbers))
        text, _, rails = text.partition(_WITH)
        named = (one.split(":") for one in rails.split())
        pairs = tuple((int(view), float(number)) for view, number in named)
        text, _, within = text.partition(_WITHIN)
        ends = tuple(map(float, within.split())) or None
        text, _, width = text.partition(_WIDTH)
        steps = int(width) if width else None
        if text in _NAMED:
            return cls(text, None, steps, None, None, winner, pairs)
        word, _, number = text.partition(" ")
        place, value = (int(number), None) if word in _PLACED else (None, float(number))
        if word not in _PLACED | {VALUE} or (ends is not None and len(ends) != 2):
            raise ValueError
        return cls(word, place, steps, value, ends, winner, pairs)
