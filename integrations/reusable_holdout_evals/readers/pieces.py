"""JSON that others wrote, read one piece at a time.

A reader keeps only what it needs of a piece. So a file of many samples needs the memory of its text and of one sample.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from reusable_holdout.errors import InputError

__all__ = ["Pieces", "dicts_in", "inside"]

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


class Pieces:
    """A JSON text, read one element or member at a time.

    Parameters
    ----------
    text : str
    where : str
        Name of the text, for messages.

    Raises
    ------
    InputError
        While it is read: if it is no JSON, or nested too deeply.

    Examples
    --------
    >>> list(Pieces('[{"id": 1}, 2]', "a log").elements())
    [{'id': 1}, 2]
    """

    def __init__(self, text: str, where: str) -> None:
        self._text, self._place, self._where = text, 0, where

    def elements(self) -> Iterator[Any]:
        """Yield the elements of the array that comes next."""
        for _ in self._items("[]"):
            yield self.value()

    def members(self) -> Iterator[str]:
        """Yield the keys of the object that comes next; the caller reads :meth:`value` or :meth:`elements` of each."""
        for _ in self._items("{}"):
            key = self.value()
            self._expect(":")
            yield str(key)

    def _items(self, brackets: str) -> Iterator[None]:
        self._expect(brackets[0])
        if self._skips(brackets[1]):
            return
        while True:
            yield
            if self._skips(brackets[1]):
                return
            self._expect(",")

    def value(self) -> Any:
        """Return the value that comes next."""
        start = self._next()
        try:
            found, self._place = _DECODER.raw_decode(self._text, start)
        except RecursionError:
            problem = "it is nested too deeply"
        except ValueError:  # also of a number of thousands of digits
            problem = f"it is broken at character {start:,}"
        else:
            return found
        raise self._broken(problem)

    def only(self) -> Any:
        """Return the one value of the text."""
        found = self.value()
        self.end()
        return found

    def end(self) -> None:
        """Refuse text that goes on: of two lists in one file, the second would be lost without a word."""
        place = self._next()
        if place < len(self._text):
            raise self._broken(f"at character {place:,} it must end")

    def _next(self) -> int:
        if self._text[self._place : self._place + 1] > " ":  # most pieces follow one another at once
            return self._place
        return _SPACE.match(self._text, self._place).end()  # type: ignore[union-attr]

    def _skips(self, sign: str) -> bool:
        place = self._next()
        if not self._text.startswith(sign, place):
            return False
        self._place = place + 1
        return True

    def _expect(self, sign: str) -> None:
        if not self._skips(sign):
            raise self._broken(f"at character {self._next():,} there must be {sign}")

    def _broken(self, problem: str) -> InputError:
        return InputError(f"{self._where} must be JSON; {problem}; look whether it was written to its end")


def inside(found: Any, *keys: str) -> Any:
    """Return the value under nested keys; None if one of them is not there.

    >>> inside({"eval": {"config": {"epochs": 2}}}, "eval", "config", "epochs"), inside([], "eval")
    (2, None)
    """
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def dicts_in(found: Any) -> list[dict[str, Any]]:
    """Return the objects in a list, or among the values of an object; nothing of anything else."""
    listed = found.values() if isinstance(found, dict) else found if isinstance(found, list) else ()
    return [one for one in listed if isinstance(one, dict)]
