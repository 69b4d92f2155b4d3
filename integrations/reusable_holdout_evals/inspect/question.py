"""What a guard is asked about one scorer, and what is told of its answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reusable_holdout import Answer
from reusable_holdout.errors import Halted, HoldoutError, InputError
from reusable_holdout.metrics import ScoreTable

__all__ = ["Kept", "Question", "check_judges", "numbers_of"]

_NAMED = 3  # ids in a message


class Kept(NamedTuple):
    """Score of one sample in one epoch, which is in this process's memory and nowhere else."""

    id: str | int
    epoch: int
    score: float | None
    failed: str = ""  # an error's name

    def __repr__(self) -> str:
        return "<a withheld score>"


@dataclass(frozen=True, repr=False)
class Question:
    """A question about one scorer, to be asked when all samples have its scores.

    Attributes
    ----------
    guard : callable
        Takes the samples' ids and opens the guard.
    prior : float or None
        The developer's own estimate of the mean score or, with an incumbent, of the difference.
    name : str
        What history calls the question.
    ids : frozenset of str, or None
        Of all samples of the holdout, if they are known before.
    incumbent : table, or None
        The incumbent's scores.
    keep : callable, or None
        Takes the table of scores, on the trusted side.
    failed : float, or None
        Score of a sample that the scorer gave none; None for no question then.
    """

    guard: Callable[[Sequence[str]], Any]
    prior: float | None
    name: str
    ids: frozenset[str] | None = None
    incumbent: Any = field(default=None)
    keep: Callable[[ScoreTable], None] | None = None
    failed: float | None = None

    def __repr__(self) -> str:
        return f"<question {self.name!r}>"

    def check_ids(self, ids: frozenset[str]) -> None:
        """Refuse to go on without samples of the holdout."""
        left_out = sorted((self.ids or ids) - ids)
        if left_out:
            raise InputError(
                f"a question needs all {len(self.ids or ()):,} samples of the holdout; this evaluation leaves out "
                f"{_some(left_out)}; run it without --limit and --sample-id; nothing was asked and nothing was charged"
            )

    def ask(self, kept: Sequence[Kept]) -> Answer | HoldoutError | Halted:
        """Ask about these scores.

        Returns
        -------
        Answer, HoldoutError or Halted
            What would be raised is returned: whoever raises it has no scores in his frames.
        """
        try:
            return self._answer(kept)
        except (HoldoutError, Halted) as error:
            return _bare(error)
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
        fits = _fitting(table.scores, guard)
        if self.failed is not None:
            table = ScoreTable(table.ids, np.where(fits, table.scores, self.failed), metric=self.name)
        elif not fits.all():
            raise _out_of_bounds(guard)
        if self.keep is not None:
            self.keep(table)
        if self.incumbent is None:
            answer: Answer = guard.evaluate_predictions(table, prior=self.prior, name=self.name)
        else:
            answer = guard.compare_predictions(table, self.incumbent, prior=self.prior, name=self.name)
        return answer


def check_judges(guard: Any) -> None:
    """Refuse a guard that has labels."""
    metric = getattr(guard, "metric", None)
    if getattr(metric, "response", "judged") != "judged":  # a remote one may not say
        raise InputError(
            f'the guard must have ids and metric "score"; its metric is {getattr(metric, "name", metric)!r}; nothing '
            "was asked"
        )


def numbers_of(answer: Answer) -> dict[str, float]:
    """An answer as Inspect's metrics, which are numbers."""
    if answer.kind.startswith("gate"):  # it repeats the prior, and says whether the score is as good
        told = {"accepted": float(answer.charged)}
    else:
        told = {"difference" if answer.paired else "answer": answer.value}
    return told | {
        "low": answer.low,
        "high": answer.high,
        "prior": answer.prior,
        "charged": float(answer.charged),
        "charges_left": float(answer.charges_left),
        "replayed": float(answer.replayed),
    }


def _check_all_scored(kept: Sequence[Kept]) -> None:
    """Refuse a scorer that does not score; which samples it fails on would tell of them."""
    failed = sorted({one.failed for one in kept if one.failed})
    if failed:
        raise InputError(
            f"the scorer failed with {', '.join(failed)}; its words are withheld, they may quote a target, and so is "
            "the sample; try it on other samples; nothing was asked and nothing was charged"
        )
    if any(one.score is None for one in kept):
        raise InputError(
            "a scorer must give every sample a number, C, I, P or N; it gave something else; name to_number=, which "
            "makes one of a score's value; nothing was asked and nothing was charged"
        )


def _table(kept: Sequence[Kept], name: str, failed: float | None) -> ScoreTable:
    """Scores in the order of ids, with a column for each epoch."""
    scores: dict[str, dict[int, float]] = {}
    for one in kept:
        score = failed if one.failed or one.score is None else one.score
        scores.setdefault(str(one.id), {})[one.epoch] = float(score or 0)
    epochs = sorted({one.epoch for one in kept})
    incomplete = sorted(sample for sample, found in scores.items() if len(found) < len(epochs))
    if incomplete:
        raise InputError(
            f"every sample must be scored in each of {len(epochs)} epochs; {_some(incomplete)} were not, by errors or "
            "limits; nothing was asked and nothing was charged"
        )
    order = sorted(scores)
    values = np.array([[scores[sample][epoch] for epoch in epochs] for sample in order])
    return ScoreTable(order, values, metric=name)


def _is_passed(guard: Any) -> bool:
    return str(getattr(getattr(guard, "metric", None), "name", "")).startswith("pass")


def _bounds(guard: Any) -> tuple[float, float]:
    metric = getattr(guard, "metric", None)
    return getattr(metric, "lower", -np.inf), getattr(metric, "upper", np.inf)


def _fitting(scores: NDArray[np.float64], guard: Any) -> NDArray[np.bool_]:
    """Which scores the metric takes: found here, for the guard would name rows, as its scores are the analyst's."""
    lower, upper = _bounds(guard)
    fits: NDArray[np.bool_] = (
        np.isin(scores, (0, 1)) if _is_passed(guard) else (scores >= lower) & (scores <= upper)
    )
    return fits


def _out_of_bounds(guard: Any) -> InputError:
    lower, upper = _bounds(guard)
    wanted = "be 0 or 1" if _is_passed(guard) else f"lie in [{lower:g}, {upper:g}]"
    return InputError(
        f"every score must {wanted}; some do not, and which would tell of the holdout; try the scorer on other "
        "samples; nothing was asked and nothing was charged"
    )


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(map(repr, names[:_NAMED])) + more


def _bare(error: HoldoutError | Halted) -> HoldoutError | Halted:
    """Take away the frames that it came through, and what it was raised from."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)
