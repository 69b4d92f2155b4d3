"""What an attack talks to: anything that answers questions about predictions."""

from __future__ import annotations

from typing import Any, Protocol

__all__ = ["AnswerLike", "GuardLike"]


class AnswerLike(Protocol):
    """One answer: a value, and how far it can be trusted.

    Attributes
    ----------
    value : float
        The score that is reported.
    low, high : float or None
        Ends of the interval; None or NaN where none is given.
    charged : bool
        Whether the answer was paid for.
    """

    @property
    def value(self) -> float: ...  # noqa: D102 - the class says it
    @property
    def low(self) -> float | None: ...  # noqa: D102
    @property
    def high(self) -> float | None: ...  # noqa: D102
    @property
    def charged(self) -> bool: ...  # noqa: D102


class GuardLike(Protocol):
    """A guard, a plain holdout, or a remote one; it ends an attack by raising :class:`~reusable_holdout.errors.Halted`.

    Questions that depend on no answer are asked as a list, with a list of priors, and answered by a list.
    """

    def evaluate(self, subject: Any, *, prior: Any) -> Any:
        """Answer one question about predictions for the holdout's rows, given the analyst's own estimate."""
        ...
