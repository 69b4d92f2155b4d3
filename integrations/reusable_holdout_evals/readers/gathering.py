"""The part that all readers share: it collects scores one after another, checks them, and makes a table of them.

A file of scores belongs to the analyst, so nothing here is private. But the file may be wrong, or made by somebody
else. So everything in it is checked, and names in messages are shortened and escaped.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any, Literal, NamedTuple

import numpy as np

from reusable_holdout.errors import InputError, printable
from reusable_holdout.metrics import ScoreTable
from reusable_holdout.metrics.ids import few, shown

__all__ = ["Gathering", "Repeats", "chosen_one", "group_name", "number_of"]

Repeats = Literal["equal", "averaged"]

_WORDS = {"c": 1.0, "p": 0.5, "i": 0.0, "n": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_NOTHING = {"", "nan", "na", "n/a", "none", "null", "<na>"}
_LONGEST = 1_000  # greatest length of an id or a group's name


class _Missing(NamedTuple):
    """A stand-in for a missing score, with the reason, such as "the sample failed"."""

    reason: str


class Gathering:
    """A collector of the scores of one source, in the order in which they are found.

    Parameters
    ----------
    where : str
        Name of the source, for messages.
    repeats : {"equal", "averaged"}
        "averaged" gives each row the mean over its repeats. "equal" refuses rows with different numbers of repeats.
    missing : float or None
        Score of a row that has none; None to refuse a source with such rows.
    advice : str
        The end of the message about a score that is no number: what the user can do.

    Raises
    ------
    InputError
        If `repeats` or `missing` has another value.
    """

    def __init__(self, where: str, repeats: Repeats, missing: float | None, *, advice: str) -> None:
        if repeats not in {"equal", "averaged"}:
            raise InputError(f'repeats must be "equal" or "averaged"; got {repeats!r}')
        is_number = isinstance(missing, int | float) and not isinstance(missing, bool)
        if missing is not None and not (is_number and np.isfinite(missing)):
            raise InputError(
                f"missing must be a number that stands for a score, such as the lowest, or None; got {missing!r}"
            )
        self.where = where
        self._averaged, self._missing, self._advice = repeats == "averaged", missing, advice
        self._scores: dict[str, dict[Any, float | _Missing]] = {}
        self._groups: dict[str, str] = {}
        self._raw: dict[str, Any] = {}

    def add(
        self,
        row: object,
        repeat: Hashable,
        value: object,
        *,
        group: str | None = None,
        nothing: str = "it has no value",
    ) -> float | None:
        """Add one score, and return it as a number; return None if there is no score.

        Parameters
        ----------
        row : str or int
            Id of the row.
        repeat : hashable
            Name of the repeat; each repeat of a row has its own.
        value : object
            The score in a form that :func:`number_of` takes.
        group : str, optional
            Name of the row's group.
        nothing : str
            The reason to report if there is no score.

        Raises
        ------
        InputError
            If the id is not valid, the value is no score, the same repeat comes twice, or the row had another group.
        """
        name = self._id(row)
        scores = self._scores.setdefault(name, {})
        if repeat in scores:
            raise InputError(
                f"{self.where} must have each id at most once in each repeat; it has {shown([name])} twice in repeat "
                f"{shown([repeat])}; leave one out, or name the column or files that distinguish the repeats"
            )
        if group is not None and self._groups.setdefault(name, group) != group:
            raise InputError(
                f"all repeats of a row must be in one group; in {self.where} the repeats of {shown([name])} are in the "
                f"groups {shown([self._groups[name], group])}"
            )
        try:
            score = number_of(value)
        except ValueError as error:
            problem = str(error)
        else:
            scores[repeat] = _Missing(nothing) if score is None else score
            return score
        raise InputError(
            f"scores must be numbers, or C, P, I, N, yes or no; in {self.where}, for {shown([name])}, got {problem}; "
            f"{self._advice}"
        )

    def _id(self, row: object) -> str:
        if isinstance(row, np.generic):
            row = row.item()
        if isinstance(row, bool) or not isinstance(row, str | int):
            came = "none" if row is None or row != row else type(row).__name__  # noqa: PLR0124 - NaN alone
            raise InputError(f"ids must be text or whole numbers; {self.where} has {came}; name every row")
        name = _checked_name(str(row), what="an id", where=self.where)
        if type(self._raw.setdefault(name, row)) is not type(row):
            raise InputError(
                f"ids must be distinct as text; {self.where} has {shown([name])} as a number and as text; rename one"
            )
        return name

    def table(self, *, name: str, metric: str, left_out: Iterable[str] = ()) -> ScoreTable:
        """Return the table of all scores that were added.

        Raises
        ------
        InputError
            If there is no score at all, scores are missing, or rows have different numbers of repeats; the first few
            rows are named.
        """
        if not self._scores:
            raise _holds_none(self.where)
        sentences = [*left_out, *self._fill()]
        counts = {row: len(scores) for row, scores in self._scores.items()}
        most = max(counts.values())
        uneven = [row for row, count in counts.items() if count < most]
        if uneven and not self._averaged:
            raise InputError(
                f"all rows must have the same number of repeats; in {self.where} some have {most}; these have fewer: "
                f"{shown(uneven)}; run the missing repeats, or average the repeats with repeats='averaged'"
            )
        values: list[list[Any]] = [list(scores.values()) for scores in self._scores.values()]
        if self._averaged and most > 1:
            sentences.append(f"repeats are averaged, from {min(counts.values())} to {most} of a row")
            values = [[_mean(row)] for row in values]
        array = np.array(values, dtype=np.float64)
        return ScoreTable(
            ids=list(self._scores),
            scores=array[:, 0] if array.shape[1] == 1 else array,
            groups=[self._groups[row] for row in self._scores] if self._groups else None,
            name=printable(name),
            metric=printable(metric),
            left_out=tuple(sentences),
        )

    def _fill(self) -> list[str]:
        """Put the number `missing` in place of scores that are missing, and return a sentence about it."""
        lost = [
            (row, repeat, score.reason)
            for row, scores in self._scores.items()
            for repeat, score in scores.items()
            if isinstance(score, _Missing)
        ]
        if not lost:
            return []
        reasons = Counter(reason for *_, reason in lost)
        why = ", ".join(f"{count:,} because {reason}" for reason, count in reasons.most_common(5))
        rows = shown(dict.fromkeys(row for row, *_ in lost))
        if self._missing is None:
            raise InputError(
                f"every row must have a score; {self.where} has none for {rows} ({why}); score them, or name the "
                "number that counts for them with missing=, such as the lowest score"
            )
        for row, repeat, _ in lost:
            self._scores[row][repeat] = float(self._missing)
        return [f"{len(lost):,} without a score count as {self._missing:g} ({why}): {rows}"]


def _mean(scores: list[float]) -> float:
    """Return the mean of scores; it does not depend on their order, and equal scores give exactly their value."""
    ordered = sorted(scores)
    return min(ordered[0] + sum(one - ordered[0] for one in ordered) / len(ordered), ordered[-1])


def number_of(value: object) -> float | None:
    """Return one score as a number; return None for an empty value, such as NaN or the text "n/a".

    Parameters
    ----------
    value : object
        A number, a truth value, or text. The text may be a number or a grade of an evaluation tool: C, P, I and N
        (correct, partial, incorrect, no answer), yes and no, true and false.

    Raises
    ------
    ValueError
        If the value is something else, infinite, or too large. The message describes the value.

    Examples
    --------
    >>> number_of("C"), number_of(" 0.25"), number_of(True), number_of(float("nan"))
    (1.0, 0.25, 1.0, None)
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None:
        return None
    if isinstance(value, str):
        return _number_in(value.strip())
    if not isinstance(value, bool | int | float):
        raise ValueError(f"a {type(value).__name__}")
    if value != value:  # noqa: PLR0124 - NaN is no score
        return None
    if not abs(value) < 1e300:
        raise ValueError("infinity, or a number too large")
    return float(value)


def _number_in(text: str) -> float | None:
    word = text.lower()
    if word in _NOTHING:
        return None
    if word in _WORDS:
        return _WORDS[word]
    if not _NUMBER.fullmatch(text) or abs(float(text)) >= 1e300:
        raise ValueError(f"the text {shown([text])}")
    return float(text)


def _checked_name(name: str, *, what: str, where: str) -> str:
    """Return an id or a group's name; refuse it if it is empty, very long, or cannot be written to a file as text."""
    if not name.strip() or len(name) > _LONGEST:
        raise InputError(
            f"{what} must have 1 to {_LONGEST:,} characters, and not only spaces; {where} has one of {len(name):,} "
            "characters; choose other names"
        )
    if not name.isascii() and any("\ud800" <= one <= "\udfff" for one in name):
        raise InputError(f"{what} must be text; {where} has one with a broken character: {shown([name])}")
    return name


def group_name(value: object, *, where: str, row: object) -> str:
    """Return the name of a row's group; raise InputError if it is empty, or neither text nor a whole number."""
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, str | int | bool) or value == "":
        raise InputError(
            f"groups must be named by text or whole numbers; {where} has a {type(value).__name__} for {shown([row])}; "
            "name the group of every row"
        )
    return _checked_name(str(value), what="a group", where=where)


def chosen_one(wanted: str | None, found: Iterable[str], *, what: str, where: str) -> str:
    """Return the wanted name if the source has it; if no name is wanted, return the only name there is.

    Parameters
    ----------
    wanted : str or None
        The name that the user has given.
    found : iterable of str
        The names in the source; a name may come several times.
    what : str
        Kind of the thing that is named, such as "scorer". It is also the name of the reader's argument.
    where : str
        Name of the source, for messages.

    Raises
    ------
    InputError
        If the wanted name is not there, or none was named and there are several; they are listed.
    """
    names = list(dict.fromkeys(found))
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted in names:
        return str(wanted)
    if not names:
        raise _holds_none(where)
    listed = few(ascii(name)[:60] for name in names)
    if wanted is None:
        raise InputError(
            f"one {what} must be named if there are several; {where} has {listed}; name it: {what}="
        )
    raise InputError(f"the {what} must be one that {where} has: {listed}; got {wanted!r}")


def _holds_none(where: str) -> InputError:
    return InputError(f"{where} must hold scores; it holds none; check that it is the right file or column")
