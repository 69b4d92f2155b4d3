"""All calls that the box makes to a guard."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from reusable_holdout import Answer, Difference, Plan, ReusableHoldout, Rows
from reusable_holdout.errors import InputError
from reusable_holdout.metrics.containers import as_array

_CALLS: Mapping[str, tuple[tuple[int, ...], Callable[..., Any]]] = {
    "evaluate": ((1,), lambda guard, one, **stated: guard.evaluate(*one, **stated)),
    "many": ((), lambda guard, all_, **stated: guard.evaluate(all_, **stated)),
    "compare": ((2,), lambda guard, both, **stated: guard.compare(*both, **stated)),
    "gate": (
        (1, 2),
        lambda guard, given, **stated: guard.gate(Difference(*given) if given[1:] else given[0], **stated),
    ),
    "reveal": ((1,), lambda guard, one, **stated: guard.reveal(*one, **stated)),
    "choose": ((), lambda guard, all_, *, prior, **stated: guard.choose(all_, prior, **stated)),
    "final": ((), lambda guard, all_, **stated: guard.final(all_ if all_[1:] else all_[0], **stated)),
}
"""For each way to ask: how many models a question may be about (empty: any number), and the function that asks."""

WAYS = tuple(_CALLS)
"""The ways to ask; "many" is a list of evaluations in one message."""


def ask(guard: Any, way: str, predictions: Sequence[Any], **stated: Any) -> Any:
    """Ask a question to a guard in this process or in another one.

    Parameters
    ----------
    guard : ReusableHoldout or RemoteHoldout
    way : str
        One of :data:`WAYS`.
    predictions : sequence
        Predictions of each model that the question is about.
    **stated
        Further arguments of the question: `prior`, `tolerance`, `name`, and `at_least` for a gate. For "many" and
        "choose" they may be lists with an entry for each model.

    Returns
    -------
    list of Answer, or Choice

    Raises
    ------
    InputError
        If a question of this kind cannot be about this number of models; nothing was asked.
    HoldoutError, Halted
        If the guard raises it.
    """
    counts, call = _CALLS[way]
    if not predictions or (counts and len(predictions) not in counts):
        wanted = f"{' or '.join(map(str, counts))} models" if counts else "at least one model"
        raise InputError(f"{way} is a question about {wanted}; got {len(predictions)}; nothing was asked")
    given = [
        as_array(one, what="predictions") if isinstance(one, list | tuple) else one for one in predictions
    ]
    found = call(guard, given, **stated)
    return [found] if isinstance(found, Answer) else found


def made_guard(
    y: Any,
    *,
    ids: Any,
    classes: Any = None,
    prevalence: Any = None,
    gates: bool = False,
    allow: Iterable[str] = (),
    **settings: Any,
) -> ReusableHoldout:
    """Make the guard of a new box. `settings` go to the guard, or to its plan if the guard has no such argument."""
    if settings.get("board") is not None:
        raise InputError(
            f"a box cannot hold a board, because a board has many series of answers; got {settings['board']!r}; "
            "nothing was made; leave board= out"
        )
    own = {
        name: settings.pop(name)
        for name in ("metric", "ledger", "key", "seed", "witness")
        if name in settings
    }
    plan = Plan(gates=gates, **settings)
    rows = Rows(None, y, ids=ids, classes=classes, prevalence=prevalence)
    return ReusableHoldout(rows, None, plan=plan, allow=allow, **own)


def open_guard(ledger: Path, y: Any) -> ReusableHoldout:
    """Open the guard of a box from its ledger and its labels or ids."""
    return ReusableHoldout.open(ledger, None, y)
