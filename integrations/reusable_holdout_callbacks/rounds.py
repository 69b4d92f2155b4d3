"""What the callbacks of all libraries have in common: when they ask, how, and what a halt does."""

from __future__ import annotations

import warnings
from typing import Any, Literal, NamedTuple, get_args

from reusable_holdout import ReusableHoldout
from reusable_holdout.errors import Halted, InputError
from reusable_holdout.guard import Answer, check_is_guard

__all__ = ["OnHalt", "RoundAnswer", "Rounds"]

OnHalt = Literal["raise", "stop"]


class RoundAnswer(NamedTuple):
    """What the guard said of one round.

    Attributes
    ----------
    round : int
        Counted from 1.
    answer : Answer
    """

    round: int
    answer: Answer


class Rounds:
    """Asks a guard about the model of a training, as it is after some of its rounds.

    Parameters
    ----------
    guard : ReusableHoldout
        With features; no gate.
    prior : str, callable or None
        Where the validation score is found.
    every : int
        Rounds from one query to the next.
    on_halt : {"raise", "stop"}
        Whether a halt is raised out of the training, or stops it.

    Attributes
    ----------
    answers : list of RoundAnswer
        Of the last training.

    Raises
    ------
    InputError
        If guard and training do not fit, as a rule at the first round; nothing was asked.
    Halted
        If a budget has run out; `answers` and `history` have what was answered.

    Warns
    -----
    RuntimeWarning
        If the training was stopped by a halt.
    """

    def __init__(self, guard: ReusableHoldout, *, prior: Any, every: int, on_halt: OnHalt) -> None:
        super().__init__()  # what the library's own class needs
        _check_guard(guard)
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
        if prior is not None and not guard.takes_priors:
            raise InputError(
                "a ladder has its own prior, its best score so far; leave prior out; nothing was made"
            )
        self.guard, self.prior, self.every, self.on_halt = guard, prior, every, on_halt
        self._begin()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.guard!r}>"

    def _begin(self, before: int = 0) -> None:
        """Begin a training, after as many rounds as were trained before."""
        self.answers: list[RoundAnswer] = []
        self._asked_at, self._stopped = before, False

    def _is_due(self, number: int, *, last: bool = False) -> bool:
        """Whether to ask after a round: every so many, or the next one there is, and the last."""
        if self._stopped or number <= self._asked_at:
            return False
        return last or number // self.every > self._asked_at // self.every

    def _ask(self, number: int, model: Any, prior: float | None) -> bool:
        """Ask about the model of a round.

        Returns
        -------
        bool
            Whether the training is to stop.

        Raises
        ------
        Halted
            If a budget has run out, the question is new, and a halt is to be raised; with the answers so far.
        HoldoutError
            As from the guard.
        """
        self._asked_at = number
        try:
            answer = self.guard.evaluate(model, prior=prior, name=f"round {number}")
        except Halted as halted:
            halted.answers = [one.answer for one in self.answers]
            if self.on_halt == "raise":
                raise
            self._stopped = True
            warnings.warn(
                f"the training was stopped after round {number}: {halted}", RuntimeWarning, stacklevel=3
            )
            return True
        self.answers.append(RoundAnswer(number, answer))
        return False


def _check_guard(guard: ReusableHoldout) -> None:
    check_is_guard(guard)
    if not guard.has_features:
        raise InputError(
            "a training's models are asked about with the holdout's features; this guard holds labels only; nothing "
            "was made; make it with ReusableHoldout(X, y, ...)"
        )
    if guard.policy == "gate":
        raise InputError(
            "a gate says yes or no to one named score, and does not tell how good a round is; nothing was made; train "
            "first, then ask guard.compare(model, incumbent, prior=...)"
        )
