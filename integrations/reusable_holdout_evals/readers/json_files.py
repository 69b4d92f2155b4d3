"""JSON that others wrote, read with bounds: how much there may be, how deep it is nested, and one piece at a time.

What is parsed is let go as soon as what is needed of it was taken, so a file of many samples needs the memory of its
text and of one sample.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reusable_holdout.errors import InputError

__all__ = ["JSON_ENDINGS", "MOST_BYTES", "Pieces", "file_text", "json_lines", "json_table", "text_of"]

MOST_BYTES = 1 << 30
"""Of one file, or one member of an archive, unpacked."""

JSON_ENDINGS = {".json", ".jsonl", ".ndjson"}

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


def file_text(path: Path, *, what: str) -> str:
    """Text of a file.

    Raises
    ------
    InputError
        If there is none, it is too large, or no UTF-8.
    """
    problem = ""
    try:
        if not path.is_file():
            problem = "there is no such file"
        elif path.stat().st_size > MOST_BYTES:
            problem = f"it has more than {MOST_BYTES >> 30} GiB"
        else:
            return text_of(path.read_bytes(), where=str(path))
    except OSError as error:
        problem = f"it cannot be read ({type(error).__name__})"
    raise InputError(f"{what} must be a file that can be read; {path}: {problem}")


def json_lines(text: str, where: str) -> Iterator[dict[str, Any]]:
    """Objects of a text that has one in each line.

    Raises
    ------
    InputError
        While they are read: if a line is something else.
    """
    for number, line in enumerate(text.split("\n"), 1):  # splitlines() ends lines inside of JSON's texts, too
        if line.strip():
            pieces = Pieces(line, f"line {number:,} of {where}")
            found = pieces.value()
            pieces.end()
            if not isinstance(found, dict):
                raise InputError(f"line {number:,} of {where} must be a JSON object; it is none")
            yield found


def json_table(path: Path, *, what: str) -> list[dict[str, Any]]:
    """Rows of a JSON file, a list of objects or of plain values, or of a file with an object in each line.

    Plain values are the rows of one column, "prediction".

    Raises
    ------
    InputError
        If it is something else; nothing in it is quoted.
    """
    text = file_text(path, what=what)
    if path.suffix.lower() != ".json":
        return list(json_lines(text, str(path)))
    pieces = Pieces(text, str(path))
    rows = list(pieces.elements())
    pieces.end()
    kinds = {isinstance(one, dict) for one in rows}
    if kinds == {False} and not any(isinstance(one, list) for one in rows):
        return [{"prediction": one} for one in rows]
    if kinds != {True}:
        raise InputError(
            f"{what} as JSON must be a list of objects, one for each row, or of plain values; {path} is something else"
        )
    return rows


def text_of(content: bytes, *, where: str) -> str:
    """UTF-8 as text.

    Raises
    ------
    InputError
        If it is none.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        pass
    raise InputError(f"{where} must be text in UTF-8; it is not; was it written by something else?")


class Pieces:
    """A JSON text, read one element or member at a time.

    Parameters
    ----------
    text : str
    where : str
        For messages.

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
        """Elements of the array that comes next."""
        self._expect("[")
        if self._skips("]"):
            return
        while True:
            yield self.value()
            if self._skips("]"):
                return
            self._expect(",")

    def members(self) -> Iterator[str]:
        """Keys of the object that comes next; whoever takes one reads its :meth:`value` or :meth:`elements`."""
        self._expect("{")
        if self._skips("}"):
            return
        while True:
            key = self.value()
            self._expect(":")
            yield str(key)
            if self._skips("}"):
                return
            self._expect(",")

    def value(self) -> Any:
        """Whatever comes next."""
        problem = ""
        start = self._next()
        try:
            found, self._place = _DECODER.raw_decode(self._text, start)
        except RecursionError:
            problem = "it is nested too deeply"
        except ValueError:  # no JSON, or a number of thousands of digits
            problem = f"it is broken at character {start:,}"
        else:
            return found
        raise self._broken(problem)

    def end(self) -> None:
        """Refuse whatever else comes: a second list, as of files put together, would be lost without a word."""
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
        return InputError(f"{self._where} must be JSON; {problem}; was it written to its end?")
