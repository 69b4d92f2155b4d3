"""One choice among models that were fitted for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reusable_holdout.guard.boundary import sealed
from reusable_holdout.guard.kinds import Winner, unpacked
from reusable_holdout_sklearn.asking import halt, scores_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from reusable_holdout import ReusableHoldout
    from reusable_holdout.guard import Choice
    from reusable_holdout_sklearn.asking import Question

__all__ = ["check_choice", "choose", "could_have_chosen"]


@sealed
def check_choice(guard: ReusableHoldout, candidates: int, priors: Sequence[float] | None = None) -> None:
    """Refuse a choice that would be refused, before a model is fitted for it.

    One that could be a replay is not: whether it is one is known when its models are fitted.

    Parameters
    ----------
    guard : ReusableHoldout
    candidates : int
    priors : sequence of float, optional
        Of the candidates, once they are known. Until then a halted guard is not refused.

    Raises
    ------
    Halted
        If the guard has halted.
    BudgetError
        If there are more candidates than queries left.
    InputError
        If its dearest outcome would break a promise of the guard's plan.
    """
    if could_have_chosen(guard, priors) or (priors is None and guard.halted):
        return
    if guard.halted:
        raise halt(guard)
    state, what = guard._state(), f"a choice among {candidates} candidates"
    guard._transcript.check_room(candidates, state)
    guard._ways.choose.check_affordable(guard._ways.choose.worst_nats(candidates), state, what)


def could_have_chosen(guard: ReusableHoldout, priors: Sequence[float] | None) -> bool:
    """Whether a choice was made whose winner had the prior of one of these, in its place; or any, of none."""
    history, kind = guard.history(), guard._ways.choose
    made = history[(history["kind"] == kind.name) & (history["view"] == guard.view)]
    if priors is None:
        return len(made) > 0
    units = kind.grid_units(np.asarray(priors, dtype=np.float64)).tolist()
    for told, unit in zip(made["told"], kind.grid_units(made["prior"].to_numpy(np.float64)), strict=True):
        winner = Winner.parse(told)
        if winner is not None and winner.candidates == len(units) and units[winner.candidate] == unit:
            return True
    return False


@sealed
def choose(
    guard: ReusableHoldout, questions: Sequence[Question], priors: Sequence[float], name: str, X_train: Any
) -> Choice:
    """Ask which of several models that were fitted on these rows is best, in one question.

    Raises
    ------
    InputError
        If a model does not fit the holdout, a prior the metric, or the dearest outcome the plan; nothing was told.
    BudgetError, Halted, ModelError
        As for :meth:`ReusableHoldout.choose`.
    """
    stated = guard._stated_priors(np.array(priors, dtype=np.float64), len(questions))
    units = guard._ways.choose.grid_units(stated).tolist()
    digests = [
        guard._content.model_question(one.content, unit, b"choose")
        for one, unit in zip(questions, units, strict=True)
    ]
    concealed = [b""] * len(questions)
    if guard._transcript.needs_rows(guard._ways.choose, guard._content.several(b"choose", digests)):
        concealed = scores_of(guard, questions, "choose", X_train)
    bound, by_sample = guard._holdout.bound, guard._ways.choose.by_sample
    packed = [guard._content.reveal(one) if one else None for one in concealed]
    measured = [None if one is None else unpacked(bound, one) if by_sample else int(one[0]) for one in packed]
    return guard._chosen(measured, stated, digests, name)
