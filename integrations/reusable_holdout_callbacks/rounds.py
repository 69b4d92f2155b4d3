"""The base class of both callbacks: it decides after which rounds to ask the guard, and what to do on a halt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, get_args

from numpy.typing import ArrayLike

from reusable_holdout import Answer, ReusableHoldout
from reusable_holdout.errors import Halted, InputError
from reusable_holdout.slips import checked_call, warn
from reusable_holdout_callbacks.guard_calls import ask_about, check_guard
from reusable_holdout_callbacks.scores import Library, Score, prior_of

__all__ = ["OnHalt", "RoundAnswer", "Rounds"]

OnHalt = Literal["raise", "stop"]


class RoundAnswer(NamedTuple):
    """The guard's answer about one round.

    Attributes
    ----------
    round : int
        Number of the round, counted from 1.
    answer : Answer
        The guard's answer about the booster after this round.
    """

    round: int
    answer: Answer


class Rounds:
    """Callback that asks a guard about a booster after some rounds of its training.

    Parameters
    ----------
    guard : ReusableHoldout
        A guard that was made with features; its plan must not be for gates alone.
    prior : str, callable or None
        Name of a validation score, or a function that computes the prior from the scores that the library logs. By
        default it is the score that measures the guard's metric.
    every : int
        Number of rounds from one query to the next.
    classes : array-like, optional
        The classes that the booster's labels 0, 1, ... stand for; by default the guard's classes.
    on_halt : {"raise", "stop"}
        "raise" ends the training with the exception Halted, "stop" ends it with a warning.

    Attributes
    ----------
    answers : list of RoundAnswer
        The answers about the last training.

    Raises
    ------
    InputError
        If guard and training do not fit. It is usually raised at the first round; nothing was asked.
    Halted
        If a budget has run out. The answers so far are in this object's `answers`, and in the exception's `answers` and
        `history`.

    Warns
    -----
    RuntimeWarning
        If the training was stopped by a halt.
    """

    library: ClassVar[Library]

    @checked_call
    def __init__(
        self,
        guard: ReusableHoldout,
        *,
        prior: str | Callable[[Any], float] | None = None,
        every: int = 1,
        classes: ArrayLike | None = None,
        on_halt: OnHalt = "raise",
    ) -> None:
        super().__init__()  # the library's callback class needs this
        check_guard(guard)
        if isinstance(every, bool) or not isinstance(every, int) or every < 1:
            raise InputError(
                f"every must be a whole number of rounds, 1 or more; got {every!r}; nothing was made"
            )
        if on_halt not in get_args(OnHalt):
            raise InputError(f'on_halt must be "raise" or "stop"; got {on_halt!r}; nothing was made')
        if prior is not None and not isinstance(prior, str) and not callable(prior):
            raise InputError(
                "prior must be the name of a validation score or a function of what the library logs; got "
                f"{type(prior).__name__}; nothing was made"
            )
        self.guard, self.prior, self.every, self.on_halt = guard, prior, every, on_halt
        self.classes = classes
        self._begin()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.guard!r}>"

    def _begin(self, before: int = 0) -> None:
        """Forget the last training; `before` is the number of rounds that the booster was trained for already."""
        self.answers: list[RoundAnswer] = []
        self._asked_at, self._stopped = before, False

    def _is_due(self, number: int, *, last: bool = False) -> bool:
        """Return True if a round is to be asked about: each multiple of `every`, and the last round.

        If the library skips a multiple of `every`, the next round is asked about.
        """
        if self._stopped or number <= self._asked_at:
            return False
        return last or number // self.every > self._asked_at // self.every

    def _prior_of(self, logged: Any, scores: Sequence[Score]) -> float:
        """Compute the prior of one round: call the user's function with what the library logged, or choose a score."""
        if callable(self.prior):
            return float(self.prior(logged))
        return prior_of(scores, self.guard.metric, self.prior, self.library)

    def _ask(self, number: int, model: Any, prior: float) -> bool:
        """Ask about the model of a round.

        Returns
        -------
        bool
            True if the training is to stop.

        Raises
        ------
        Halted
            If a budget has run out, the question is new, and `on_halt` is "raise". It holds the answers so far.
        HoldoutError
            If the guard raises it.
        """
        self._asked_at = number
        try:
            answer = ask_about(self.guard, model, prior, f"round {number}")
        except Halted as halted:
            halted.answers = [one.answer for one in self.answers]
            if self.on_halt == "raise":
                raise
            self._stopped = True
            warn(f"the training was stopped after round {number}: {halted}", RuntimeWarning)
            return True
        self.answers.append(RoundAnswer(number, answer))
        return False
