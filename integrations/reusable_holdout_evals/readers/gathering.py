"""Scores as they are found in a file, one after another, until they are a table: what all readers share.

Nothing here is private: a file of scores is the analyst's own. It may still be wrong, or made by somebody else, so what
it holds is checked before it is believed, and names in messages are shortened and escaped.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Literal, NamedTuple

import numpy as np

from reusable_holdout.errors import InputError, printable
from reusable_holdout.metrics import ScoreTable
from reusable_holdout.metrics.ids import few, shown

__all__ = ["Gathering", "Missing", "Repeats", "Table", "chosen_one", "group_name", "number_of", "score_of"]

Repeats = Literal["equal", "averaged"]

_WORDS = {"c": 1.0, "p": 0.5, "i": 0.0, "n": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_NAMES_NOTHING = {"", "nan", "na", "n/a", "none", "null", "<na>"}
_LONGEST = 1_000  # characters of an id or a group


class Missing(NamedTuple):
    """Why a row has no score.

    Attributes
    ----------
    reason : str
        Such as "the sample failed".
    """

    reason: str


class Table(NamedTuple):
    """What a table is to be, as the caller of a reader says.

    Attributes
    ----------
    repeats : {"equal", "averaged"}
        Whether all rows must have equally many, or are averaged here.
    missing : float or None
        What counts where there is no score; None refuses.
    """

    repeats: Repeats
    missing: float | None

    def check(self) -> None:
        """Refuse what is neither.

        Raises
        ------
        InputError
            If repeats or missing are something else.
        """
        if self.repeats not in {"equal", "averaged"}:
            raise InputError(f'repeats must be "equal" or "averaged"; got {self.repeats!r}')
        stands = self.missing
        if stands is not None and (
            isinstance(stands, bool) or not isinstance(stands, int | float) or not np.isfinite(stands)
        ):
            raise InputError(
                f"missing must be a number that stands for a score, such as the lowest, or None; got {stands!r}"
            )


class Gathering:
    """Scores of one source, in the order they are found in.

    Parameters
    ----------
    where : str
        What is read, for messages.
    """

    def __init__(self, where: str) -> None:
        self.where = where
        self._scores: dict[str, dict[Any, float | Missing]] = {}
        self._groups: dict[str, str] = {}
        self._raw: dict[str, Any] = {}

    def add(self, row: object, repeat: Hashable, score: float | Missing, group: str | None = None) -> None:
        """Take one score.

        Parameters
        ----------
        row : str or int
            Its id.
        repeat : hashable
            What tells it from the row's others.
        score : float or Missing
        group : str, optional

        Raises
        ------
        InputError
            If the id is none, the same repeat comes twice, or the row had another group.
        """
        name = self._id(row)
        scores = self._scores.setdefault(name, {})
        if repeat in scores:
            raise InputError(
                f"{self.where} must have each id once, and of repeats each once; it has {shown([name])} twice in "
                f"repeat {shown([repeat])}; leave one out, or name the column or files that tell them apart"
            )
        scores[repeat] = score
        if group is not None and self._groups.setdefault(name, group) != group:
            raise InputError(
                f"all repeats of a row must be of one group; in {self.where} those of {shown([name])} are of "
                f"{shown([self._groups[name], group])}"
            )

    def _id(self, row: object) -> str:
        if isinstance(row, np.generic):
            row = row.item()
        if isinstance(row, bool) or not isinstance(row, str | int):
            came = "none" if row is None or row != row else type(row).__name__  # noqa: PLR0124 - NaN alone
            raise InputError(f"ids must be text or whole numbers; {self.where} has {came}; name every row so")
        name = checked_name(str(row), what="an id", where=self.where)
        if type(self._raw.setdefault(name, row)) is not type(row):
            raise InputError(
                f"ids must be distinct as text; {self.where} has {shown([name])} as a number and as text; rename one"
            )
        return name

    def table(self, wish: Table, *, name: str, metric: str, left_out: Iterable[str] = ()) -> ScoreTable:
        """Table of all that was gathered.

        Raises
        ------
        InputError
            If there is nothing, scores are missing, or rows have unequally many; the first few are named.
        """
        if not self._scores:
            raise InputError(
                f"{self.where} must hold scores; it holds none; look whether it is the right file or column"
            )
        sentences = [*left_out, *self._fill(wish.missing)]
        counts = {row: len(scores) for row, scores in self._scores.items()}
        most = max(counts.values())
        uneven = [row for row, count in counts.items() if count < most]
        if uneven and wish.repeats == "equal":
            raise InputError(
                f"all rows must have equally many repeats; in {self.where} the most are {most}, and fewer have "
                f"{shown(uneven)}; run the missing ones, or average them with repeats='averaged'"
            )
        values: list[list[Any]] = [list(scores.values()) for scores in self._scores.values()]
        if wish.repeats == "averaged" and most > 1:
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

    def _fill(self, stands: float | None) -> list[str]:
        """Put a number where there is no score, and say so."""
        lost = [
            (row, repeat, score.reason)
            for row, scores in self._scores.items()
            for repeat, score in scores.items()
            if isinstance(score, Missing)
        ]
        if not lost:
            return []
        reasons = Counter(reason for *_, reason in lost)
        why = ", ".join(f"{count:,} because {reason}" for reason, count in reasons.most_common(5))
        rows = list(dict.fromkeys(row for row, *_ in lost))
        if stands is None:
            raise InputError(
                f"every row must have a score; {self.where} has none for {shown(rows)} ({why}); score them, or name "
                "what they count with missing=, such as the lowest score"
            )
        for row, repeat, _ in lost:
            self._scores[row][repeat] = float(stands)
        return [f"{len(lost):,} without a score count as {stands:g} ({why}): {shown(rows)}"]


def _mean(scores: list[float]) -> float:
    """Mean that does not depend on the order, and of equal ones is what each of them is."""
    ordered = sorted(scores)
    return min(ordered[0] + sum(one - ordered[0] for one in ordered) / len(ordered), ordered[-1])


def score_of(value: object, *, must: Callable[[], str], advice: str) -> float | None:
    """One score as a number; None if there is none.

    Parameters
    ----------
    value : object
    must, advice : callable and str
        What must hold and what to do, for a message; the first is put together where it is needed alone.

    Raises
    ------
    InputError
        If it is something else: what must hold, what came, and what to do.
    """
    problem = ""
    try:
        return number_of(value)
    except ValueError as error:
        problem = str(error)
    raise InputError(f"{must()}; got {problem}; {advice}")


def number_of(value: object) -> float | None:
    """One score as a number; None if there is none.

    Parameters
    ----------
    value : object
        A number, a truth value, or text: a number's digits, or as evaluation tools grade, C, P, I and N (correct,
        partial, incorrect, no answer), yes and no, true and false.

    Raises
    ------
    ValueError
        If it is something else, infinity, or too large; saying what.

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
    if text.lower() in _NAMES_NOTHING:
        return None
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if not _NUMBER.fullmatch(text) or abs(float(text)) >= 1e300:
        raise ValueError(f"the text {shown([text])}")
    return float(text)


def checked_name(name: str, *, what: str, where: str) -> str:
    """Name of a row or group.

    Raises
    ------
    InputError
        If it is empty, very long, or no text that could be written to a file.
    """
    if not name.strip() or len(name) > _LONGEST:
        raise InputError(
            f"{what} must have 1 to {_LONGEST:,} characters, not spaces alone; {where} has one of {len(name):,}; name "
            "the rows otherwise"
        )
    if not name.isascii() and any("\ud800" <= one <= "\udfff" for one in name):
        raise InputError(f"{what} must be text; {where} has one with half of a character: {shown([name])}")
    return name


def group_name(value: object, *, where: str, row: object) -> str:
    """Name of the group that a row is of.

    Raises
    ------
    InputError
        If there is none, or it is a list or the like.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, str | int | bool) or value == "":
        raise InputError(
            f"groups must be named by text or whole numbers; {where} has a {type(value).__name__} for {shown([row])}; "
            "name the group of every row"
        )
    return checked_name(str(value), what="a group", where=where)


def chosen_one(wanted: str | None, found: Iterable[str], *, what: str, option: str, where: str) -> str:
    """One of several names: the wanted one, or the only one.

    Raises
    ------
    InputError
        If it is not there, or none was named and there are several; they are listed.
    """
    names = list(dict.fromkeys(found))
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted in names:
        return str(wanted)
    if not names:
        raise InputError(
            f"{where} must hold scores; it holds none; look whether it is the right file or column"
        )
    listed = few(ascii(name)[:60] for name in names)
    if wanted is None:
        raise InputError(
            f"one {what} must be named where there are several; {where} has {listed}; name it: {option}="
        )
    raise InputError(f"the {what} must be one that {where} has: {listed}; got {wanted!r}")
