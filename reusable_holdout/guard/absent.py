"""What stands in the place of a guard where its ledger is not: loading never fails, and whoever asks is told why."""

from __future__ import annotations

import functools
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.answer import Answer
from reusable_holdout.errors import HoldoutError, InputError, LedgerError
from reusable_holdout.guard.configuration import metric_of
from reusable_holdout.guard.frozen import FrozenCertificate
from reusable_holdout.metrics import Metric

_T = TypeVar("_T")

__all__ = ["AbsentGuard", "ElsewhereError", "FrozenGuard", "check_is_guard", "guard_class", "the_guard"]

_GUARD: list[Any] = []


def the_guard(cls: type[_T]) -> type[_T]:
    """Name the class that handles open, and that an absent guard stands for; a decorator of that class."""
    _GUARD.append(cls)
    return cls


def guard_class() -> Any:
    """Return the class of guards."""
    return _GUARD[-1]


class ElsewhereError(LedgerError, AttributeError):
    """The guard is not here; to code that looks for an attribute it is missing."""


class AbsentGuard:
    """A guard that is not here.

    Its methods are there, for a pickle of one must be loaded before a worker can say what is wrong; called, they raise.
    """

    def why(self) -> HoldoutError:
        """Say where the guard is, or why it cannot be opened."""
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if callable(getattr(guard_class(), name, None)):
            return functools.partial(AbsentGuard._refuse, self)
        raise ElsewhereError(str(self.why()))

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise self.why()

    def __copy__(self) -> AbsentGuard:
        return self

    def __deepcopy__(self, _: object) -> AbsentGuard:
        return self


class FrozenGuard(AbsentGuard):
    """A guard that was deployed: what it had answered, as a frozen certificate's JSON, and its name where it lives."""

    def __init__(self, name: str, certificate: str) -> None:
        self.name = name
        self._text = certificate

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenGuard, (self.name, self._text)

    def __guard_name__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<FrozenGuard: {self.certificate()}>"

    def why(self) -> LedgerError:
        """Say where the guard lives."""
        frozen = self.certificate()
        return LedgerError(
            f"a guard must be asked where it lives, on {frozen.machine!r} beside its ledger (holdout "
            f"{frozen.holdout[:12]}, head {frozen.head[:12]} when it was frozen); here is its frozen certificate; "
            "nothing was asked; open it there with ReusableHoldout.open(ledger, X, y), and put it in this one's place: "
            "search.set_params(guard=guard), or scoring=guarded_scorer(guard)"
        )

    def certificate(self, *answers: Answer) -> FrozenCertificate:
        """What was frozen, as :meth:`ReusableHoldout.certificate` gives it; an InputError if an answer was not."""
        frozen = FrozenCertificate.from_json(self._text)
        return frozen.of([answer.query for answer in answers]) if answers else frozen

    @property
    def metric(self) -> Metric:
        """Metric, if it is one of the catalogue; if it is the owner's own, its code stays where the guard lives."""
        try:
            return metric_of(self.certificate().metric)
        except InputError:
            raise ElsewhereError(str(self.why())) from None

    @property
    def classes(self) -> NDArray[Any] | None:
        """Sorted classes, if the set of them is public; None if it is private, and for metrics of real values."""
        known = self.class_set
        return None if isinstance(known, str) else known

    @property
    def class_set(self) -> NDArray[Any] | str | None:
        """Value of ``classes=`` with which :meth:`Metric.measure` measures other rows as the guard does its own."""
        classes = self.certificate().classes
        return np.array(classes) if isinstance(classes, tuple) else classes


def check_is_guard(guard: object) -> None:
    """Refuse what is no guard, before anything is fitted.

    Raises
    ------
    InputError
        Saying what came.
    LedgerError
        If it is what stands for a guard that is not here; says where it is.
    """
    if isinstance(guard, guard_class()):
        return
    if isinstance(guard, AbsentGuard):
        raise guard.why()
    if hasattr(type(guard), "evaluate"):  # not of a class, which is none yet
        raise InputError(
            f"models are asked about where the holdout's rows are; got {type(guard).__name__}, a guard elsewhere, that "
            "takes predictions; nothing was fitted and nothing was asked; predict, and ask about the predictions"
        )
    came = f"the class {guard.__name__}" if isinstance(guard, type) else type(guard).__name__
    raise InputError(
        f"guard must be a ReusableHoldout; got {came}; nothing was fitted and nothing was asked; make one with "
        "ReusableHoldout(X, y, ...)"
    )
