"""All errors that this library raises.

::

    HoldoutError(Exception)
    ├── PlanError                  a wish no plan can meet; names the nearest one that can be met
    ├── InputError(ValueError)     predictions, priors or data that do not fit the question
    │   ├── OverlapError           rows of a holdout are among training rows, or were released before
    │   └── MissingExtraError      an ImportError, too: a library that an extra installs is missing
    ├── ModelError                 the analyst's model or metric failed on the holdout, or was trained on rows of it
    ├── BudgetError                more was asked than is left; nothing was charged
    ├── HandleError(PicklingError) this guard cannot leave its process
    └── LedgerError                the ledger cannot be used
        ├── LedgerKeyError         the noise key is missing, readable by others, or wrong
        ├── LedgerMismatchError    the ledger belongs to another holdout or configuration
        ├── SecondBudgetError      these rows have a budget in another ledger
        ├── RolledBackError        the ledger does not continue what its witness saw: an older copy, or another
        ├── RotatedError           the ledger has gone on to another holdout
        └── TamperedLedgerError    a row was changed, removed or added
    Halted(BaseException)          the budget is spent
    Refused(BaseException)         one of the errors above, raised in another library's loop; `error` holds it

``Halted`` stands outside ``Exception`` on purpose, next to ``KeyboardInterrupt``: search loops are full of ``except
Exception: continue`` and scikit-learn's ``error_score`` turns every ``Exception`` into a NaN. A halt must be
impossible to miss. ``Refused`` stands there for the same reason.

Messages say what must hold, what came, and what to do. No message carries anything that depends on the holdout's
values, and no error charges anything.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from reusable_holdout.deferred import pandas as pd
from reusable_holdout.names import stripped

__all__ = [
    "BudgetError",
    "Halted",
    "HandleError",
    "HoldoutError",
    "InputError",
    "LedgerError",
    "LedgerKeyError",
    "LedgerMismatchError",
    "MissingExtraError",
    "ModelError",
    "NoWitnessWarning",
    "OverlapError",
    "PlanError",
    "Refused",
    "RolledBackError",
    "RotatedError",
    "SecondBudgetError",
    "SecondBudgetWarning",
    "TamperedLedgerError",
    "of_extra",
    "printable",
]


class HoldoutError(Exception):
    """The root of this library's errors; quoted names are printed without control and invisible characters."""

    def __str__(self) -> str:
        return printable(super().__str__())


class PlanError(HoldoutError):
    """No plan meets the wish.

    Attributes
    ----------
    nearest : Mapping[str, float]
        For each quantity that alone could be changed, the nearest value that makes the wish possible.
    """

    def __init__(self, message: str, nearest: Mapping[str, float] | None = None) -> None:
        super().__init__(message)
        self.nearest = dict(nearest or {})


class InputError(HoldoutError, ValueError):
    """The input does not fit the question; nothing was asked and nothing was charged."""


class OverlapError(InputError):
    """Rows of a new holdout are among training rows, or in a holdout that was released; nothing was made.

    Only the owner sees this error, and she holds both tables.

    Attributes
    ----------
    rows : int
        Number of these rows.
    explained : int
        Largest number that chance explains.
    """

    def __init__(self, message: str, rows: int = 0, explained: int = 0) -> None:
        super().__init__(message)
        self.rows, self.explained = rows, explained


class MissingExtraError(InputError, ImportError):
    """A library that an extra brings cannot be imported; nothing was asked and nothing was charged.

    Attributes
    ----------
    what : str
        The feature that needs the library.
    library : str
    extra : str
        Name of the extra.
    """

    def __init__(self, what: str, library: str, extra: str) -> None:
        super().__init__(
            f'{what} needs {library}, which cannot be imported; run pip install "reusable-holdout[{extra}]"'
        )
        self.what, self.library, self.extra = what, library, extra

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.what, self.library, self.extra)


class ModelError(HoldoutError):
    """The analyst's model or metric raised on the holdout, or was trained on rows of it; no details are given.

    Attributes
    ----------
    answers : list
        The answers of several questions that were asked together, in their order; None for a failed one.
    """

    def __init__(self, message: str, answers: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.answers = list(answers)


class BudgetError(HoldoutError):
    """More was asked than is left; nothing was answered and nothing was charged."""


class HandleError(HoldoutError, pickle.PicklingError):
    """The guard cannot be pickled, because a copy would carry its own budget or the holdout itself."""


class LedgerError(HoldoutError):
    """The ledger cannot be read or written; nothing was answered and nothing was charged."""


class LedgerKeyError(LedgerError):
    """The noise key is missing, readable by others, or not the one this ledger was made with."""


class LedgerMismatchError(LedgerError):
    """The ledger belongs to another holdout or another configuration."""


class NoWitnessWarning(UserWarning):
    """A ledger on disk has no witness: an older copy of it could be restored, and its budget spent again."""


class SecondBudgetWarning(UserWarning):
    """These rows had a budget that was forgotten; its released answers still count."""


class SecondBudgetError(LedgerError):
    """These rows have a budget in another ledger; nothing was made."""


class RolledBackError(LedgerError):
    """The ledger does not go on from what its witness has seen: an older copy was restored; nothing was answered."""


class RotatedError(LedgerError):
    """The ledger has gone on to another holdout; this one answers nothing new."""


class TamperedLedgerError(LedgerError):
    """A row of the ledger was changed, removed or added after it was sealed.

    Attributes
    ----------
    problems : list of str
        One sentence for each thing found.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = list(problems)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problems,)


class Halted(BaseException):
    """The guard has halted: no further information about this holdout will leave it, ever.

    Attributes
    ----------
    reason : {"charges", "queries", "final"}
        The budget that ran out, charges or declared queries; or "final" if a final was given.
    answers : list
        Answers of the interrupted batch that were released before the halt, in order; None for a failed one.
    """

    def __init__(
        self,
        message: str,
        *,
        reason: str,
        history: pd.DataFrame | Callable[[], pd.DataFrame],
        answers: Sequence[Any] = (),
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self._history = history
        self.answers = list(answers)

    @property
    def history(self) -> pd.DataFrame:
        """Everything that was released before the halt, in order; the ledger is read when this is first used."""
        if callable(self._history):
            self._history = self._history()
        return self._history

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild_halted, (self.args[0], self.reason, self.history, self.answers)


class Refused(BaseException):
    """A guard's refusal inside a loop that would swallow an ordinary error.

    Attributes
    ----------
    error : HoldoutError
        The error that says what was refused, and why; nothing was charged.
    """

    def __init__(self, error: HoldoutError) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.error = error

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.error,)


@contextmanager
def of_extra(extra: str, what: str) -> Iterator[None]:
    """Turn an ImportError in the block into a MissingExtraError that names the extra; `what` begins its message.

    >>> with of_extra("plot", "a picture"):
    ...     import no_such_library
    Traceback (most recent call last):
    ...
    reusable_holdout.errors.MissingExtraError: a picture needs no_such_library, which cannot be imported; run pip
    install "reusable-holdout[plot]"
    """
    try:
        yield
    except ImportError as error:
        library = (error.name or extra).partition(".")[0]
        missing = MissingExtraError(what, library, extra)
    else:
        return
    raise missing from None


def _rebuild_halted(message: str, reason: str, history: pd.DataFrame, answers: list[Any]) -> Halted:
    return Halted(message, reason=reason, history=history, answers=answers)


def printable(text: str) -> str:
    """Return a name that others chose as one plain line, without terminal sequences and invisible characters."""
    return text if text.isascii() and text.isprintable() else stripped(text)
