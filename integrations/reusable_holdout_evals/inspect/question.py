"""The question about the scores of one scorer, asked when all samples are done."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.errors import Halted, HoldoutError, InputError
from reusable_holdout.metrics import ScoreTable
from reusable_holdout_evals.guards import Answer, ask

__all__ = ["Kept", "Question", "bare"]

_E = TypeVar("_E", bound=BaseException)
_NAMED = 3  # ids in a message
_NOTHING = "; nothing was asked and nothing was charged"


class Kept(NamedTuple):
    """The score of one sample in one epoch, which is in this process's memory and nowhere else.

    Attributes
    ----------
    id, epoch : str or int, int
    score : float or None
    failed : str
        Name of the scorer's error; empty if it did not fail.
    """

    id: str | int
    epoch: int
    score: float | None
    failed: str = ""

    def __repr__(self) -> str:
        return "<a withheld score>"


@dataclass(frozen=True, repr=False, kw_only=True)
class Question:
    """A question about one scorer.

    Attributes
    ----------
    guard : callable
        Takes the samples' ids and opens the guard.
    prior : float or None
        The developer's own estimate of the mean score or, with an incumbent, of the difference.
    name : str
        What history calls the question.
    ids : frozenset of str, or None
        Ids of all samples of the holdout, if they are known before.
    incumbent : table, or None
        The incumbent's scores.
    keep : Path, or None
        File that gets the scores, for its owner alone.
    failed : float, or None
        Score of a sample that the scorer gave none; None to ask no question then.
    """

    guard: Callable[[Sequence[str]], Any]
    prior: float | None
    name: str
    ids: frozenset[str] | None = None
    incumbent: Any = None
    keep: Path | None = None
    failed: float | None = None

    def __repr__(self) -> str:
        return f"<question {self.name!r}>"

    def check_ids(self, ids: frozenset[str]) -> None:
        """Refuse an evaluation without all samples of the holdout."""
        left_out = sorted((self.ids or ids) - ids)
        if left_out:
            raise InputError(
                f"a question needs all {len(self.ids or ()):,} samples of the holdout; this evaluation leaves out "
                f"{_some(left_out)}; run it without --limit and --sample-id{_NOTHING}"
            )

    def ask(self, kept: Sequence[Kept]) -> Answer | HoldoutError | Halted:
        """Ask about these scores.

        Returns
        -------
        Answer, HoldoutError or Halted
            An exception is returned, so that the caller can raise it: the caller's frames have no scores.
        """
        try:
            return self._answer(kept)
        except (HoldoutError, Halted) as error:
            return bare(error)
        except Exception as error:
            kind = type(error).__name__
        return InputError(
            f"the guard could not be asked: {kind}; its words are withheld, they may hold scores"
        )

    def _answer(self, kept: Sequence[Kept]) -> Answer:
        self.check_ids(frozenset(str(one.id) for one in kept))
        if self.failed is None:
            _check_all_scored(kept)
        table = _table(kept, self.name, self.failed)
        guard = self.guard(table.ids)
        fits, must = _fitting(table.scores, guard)
        if self.failed is not None:
            table = ScoreTable(table.ids, np.where(fits, table.scores, self.failed), metric=self.name)
        elif not fits.all():
            raise InputError(
                f"every score must {must}; some do not, and which would tell of the holdout; try the scorer on other "
                f"samples{_NOTHING}"
            )
        if self.keep is not None:
            _keep(table, self.keep)
        return ask(guard, table, self.incumbent, prior=self.prior, name=self.name)


def bare(error: _E) -> _E:
    """Take away an exception's frames and its context, which may hold targets and scores."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


def _check_all_scored(kept: Sequence[Kept]) -> None:
    """Refuse a scorer that fails, without the names of the samples, which would tell of them."""
    failed = sorted({one.failed for one in kept if one.failed})
    if failed:
        raise InputError(
            f"the scorer failed with {', '.join(failed)}; its words are withheld, they may quote a target, and so is "
            f"the sample; try it on other samples{_NOTHING}"
        )
    if any(one.score is None for one in kept):
        raise InputError(
            "a scorer must give every sample a number, C, I, P or N; it gave something else; name to_number=, which "
            f"makes a number of a score's value{_NOTHING}"
        )


def _table(kept: Sequence[Kept], name: str, failed: float | None) -> ScoreTable:
    """Return the scores in the order of ids, with a column for each epoch."""
    scores: dict[str, dict[int, float]] = {}
    for one in kept:
        score = failed if one.failed or one.score is None else one.score
        scores.setdefault(str(one.id), {})[one.epoch] = float(score or 0)
    epochs = sorted({one.epoch for one in kept})
    incomplete = sorted(sample for sample, found in scores.items() if len(found) < len(epochs))
    if incomplete:
        raise InputError(
            f"every sample must be scored in each of {len(epochs)} epochs; {_some(incomplete)} were not, by errors or "
            f"limits{_NOTHING}"
        )
    order = sorted(scores)
    values = np.array([[scores[sample][epoch] for epoch in epochs] for sample in order])
    return ScoreTable(order, values, metric=name)


def _fitting(scores: NDArray[np.float64], guard: Any) -> tuple[NDArray[np.bool_], str]:
    """Say which scores the metric takes, and what a score must do: the guard's own message would name rows."""
    metric = guard.metric
    if metric.name.startswith("pass"):
        return np.isin(scores, (0, 1)), "be 0 or 1"
    return (scores >= metric.lower) & (scores <= metric.upper), f"lie in [{metric.lower:g}, {metric.upper:g}]"


def _keep(table: ScoreTable, place: Path) -> None:
    """Write a table to a file that its owner alone can read."""
    place.unlink(missing_ok=True)  # an older file would keep its mode
    descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
        table.frame().to_csv(file, index=False)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(map(repr, names[:_NAMED])) + more
