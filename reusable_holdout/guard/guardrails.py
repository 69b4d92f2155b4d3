"""Guardrails of a gate: other metrics of the same rows, and what each must reach."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from reusable_holdout.errors import InputError
from reusable_holdout.guard.answer import Guardrail
from reusable_holdout.guard.asking import Asking

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reusable_holdout.guard.answer import Answer
    from reusable_holdout.guard.kinds import GuardedGate, Rail
    from reusable_holdout.guard.transcript import Transcript

__all__ = ["Stated", "stated_rails"]


class Stated(NamedTuple):
    """One guardrail as it was stated.

    Attributes
    ----------
    guard : Asking
        Of its metric.
    rail : Rail
    prior : float
        What it must reach.
    predictions : list
        Of its own, if there were any.
    """

    guard: Asking
    rail: Rail
    prior: float
    predictions: list[Any]

    @property
    def unit(self) -> bytes:
        """Part of the question's name that it is."""
        return b"%d %d" % (self.guard.view, self.rail.grid_unit(self.prior))


def stated_rails(guard: Asking, guardrails: Any, *, paired: bool, predictions: int = 0) -> list[Stated]:
    """Check the guardrails of a gate.

    Parameters
    ----------
    guard : Asking
        The gate.
    guardrails : mapping of guard to float, or to a tuple of predictions and a float
    paired : bool
        Whether differences are named.
    predictions : int
        How many predictions a tuple must hold before the number; none may come with models.

    Raises
    ------
    InputError
        If the guard is no gate, or a guardrail none of the same rows.
    """
    if guard.policy != "gate":
        raise InputError(
            f"guardrails belong to a gate, which says whether all of them hold; this guard's policy is {guard.policy!r}; "
            'nothing was asked; ask guard.on(policy="gate")'
        )
    if not isinstance(guardrails, Mapping) or not guardrails:
        raise InputError(
            "guardrails must be a dict from guards that on() gave to what each must reach; got "
            f"{type(guardrails).__name__}; nothing was asked"
        )
    return list(_stated(guard, guardrails, paired=paired, predictions=predictions))


def _stated(
    guard: Asking, guardrails: Mapping[Any, Any], *, paired: bool, predictions: int
) -> Iterator[Stated]:
    for other, named in guardrails.items():
        if not isinstance(other, Asking) or other._transcript is not guard._transcript or other is guard:
            raise InputError(
                "a guardrail must be another metric of the same rows, from on() of the same guard; got "
                f"{other!r}; nothing was asked"
            )
        given = list(named) if isinstance(named, tuple) else [named]
        if len(given) not in {1, 1 + predictions}:
            raise InputError(
                f"a guardrail is a number, or its own predictions ({predictions} here) and a number; got a tuple of "
                f"{len(given)}; nothing was asked"
            )
        rail = other._rail(paired=paired)
        prior = rail.asked(given[-1], None, other.metric.name).prior
        yield Stated(other, rail, prior, given[:-1])


def with_guardrails(answer: Answer, kind: GuardedGate, rails: list[Stated], transcript: Transcript) -> Answer:
    """Answer of a gate with what it tells of its guardrails; the same when it is replayed."""
    length = transcript.length_of(kind, answer.query)
    bounds = kind.bounds(answer.told, [one.rail for one in rails], length)
    return answer._replace(
        guardrails=tuple(
            Guardrail(one.guard.metric.name, one.prior, float(low), float(high))
            for one, (low, high) in zip(rails, bounds, strict=True)
        )
    )
