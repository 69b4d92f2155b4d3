"""The facts that a search can know before a model is fitted: possible replays, and the room for a choice.

A halted guard still returns past answers. A fitted model is needed to know whether a question is a replay. But if no
past question had the same prior, it cannot be a replay, and this is known before the fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reusable_holdout.answer import Finals
from reusable_holdout.errors import InputError
from reusable_holdout.guard.boundary import sealed
from reusable_holdout.guard.subjects import checked_priors
from reusable_holdout.guard.view import GuardedView
from reusable_holdout.guard.views import VIEW
from reusable_holdout.plan import whole
from reusable_holdout.ways import FAILED, Told, Way


@sealed
def could_replay(guard: Any, priors: Sequence[float]) -> int:
    """Return how many of the first priors, without a gap, belong to earlier questions: these could be replays."""
    view: GuardedView = guard._view
    units = _units(view, view.ways.main, priors)
    told = [row for row in view.ledger.rows() if row.view == view.number and row.kind != VIEW]
    known = {view.ways.main.grid(row.prior) for row in told if np.isfinite(row.prior)}
    return next((place for place, unit in enumerate(units) if unit not in known), len(units))


@sealed
def could_have_chosen(guard: Any, priors: Sequence[float] | None) -> bool:
    """Return True if a choice with these priors could be a replay; without priors, if any choice was made."""
    view: GuardedView = guard._view
    way = view.ways.choose
    made = [row for row in view.ledger.rows(kind=way.name) if row.view == view.number]
    if priors is None:
        return len(made) > 0
    units = _units(view, way, priors)
    told = [(way.grid(row.prior), (Told.parse(row.told) or Told(FAILED)).winner) for row in made]
    return any(one and one.candidates == len(units) and units[one.candidate] == prior for prior, one in told)


@sealed
def check_choice(guard: Any, candidates: int, priors: Sequence[float] | None = None) -> None:
    """Refuse a choice, unless it could be a replay, that would be refused once its models were fitted.

    Parameters
    ----------
    guard : ReusableHoldout
    candidates : int
    priors : sequence of float, optional
        Priors of the candidates, once they are known. Until then a halted guard is not refused.

    Raises
    ------
    Halted
        If the guard has halted.
    BudgetError
        If there are more candidates than queries left.
    InputError
        If its dearest outcome would break a promise of the guard's plan, or a prior does not fit the metric.
    """
    view: GuardedView = guard._view
    count, way, transcript = whole("candidates", candidates), view.ways.choose, view.transcript
    if priors is not None:
        checked_priors(list(priors), count, view.unit, view.metric.name, several=True)
    state = transcript.state
    halted = view.ways.main.halt_reason(state) is not None
    if could_have_chosen(guard, priors) or (priors is None and halted):
        return
    if halted:
        raise guard.halt()
    transcript.check_room(count, state)
    way.check_affordable(way.worst_nats(count), state, f"a choice among {count} candidates")


@sealed
def check_final(guard: Any, candidates: int, priors: Sequence[float] | None = None) -> None:
    """Refuse a final, unless it could be a replay, that would be refused once its models were fitted.

    Parameters
    ----------
    guard : ReusableHoldout
    candidates : int
        Models of the final, as far as they are known; 1 if their number is not.
    priors : sequence of float, optional
        Priors of the models, once they are known.

    Raises
    ------
    Halted
        If another final was given.
    InputError
        If the plan keeps no share for a final, or a prior does not fit the metric.
    """
    view: GuardedView = guard._view
    way = view.way_of("final", paired=False, guarded=False)
    units = None if priors is None else set(_units(view, way, priors))
    if way.halt_reason(view.transcript.state) is None:
        return
    told = [row for row in view.ledger.rows(kind=way.name) if row.view == view.number]
    known = len(told) > 0 and (candidates == 1 or len(told) <= candidates)
    if not known or (units is not None and units != {way.grid(row.prior) for row in told}):
        raise guard.halt()


def _units(view: GuardedView, way: Way, priors: Sequence[float]) -> list[int]:
    if not isinstance(priors, Sequence | np.ndarray) or isinstance(priors, str):
        raise InputError(f"priors must be a list of numbers; got {type(priors).__name__}; nothing was asked")
    stated = checked_priors(list(priors), len(priors), view.unit, view.metric.name, several=True)
    return [way.grid(prior) for prior in stated.tolist()]


def end_with(guard: Any, models: Sequence[Any], priors: Sequence[float], names: Sequence[str]) -> Finals:
    """Ask for one final of several models; refuse to repeat an earlier final with only some of its models."""
    finals: Finals = guard.final(list(models), list(priors), name=list(names))
    told = guard.history()
    given = int(((told["view"] == guard.view) & (told["way"] == "final")).sum())
    if given > len(finals):
        raise InputError(
            f"the final was of {given} models; got {len(finals)} of them; nothing was asked; pass all, because the "
            "best of some may not be the best of all"
        )
    return finals
