"""Rotation: the next holdout in the same ledger."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from reusable_holdout.errors import InputError
from reusable_holdout.guard.configuration import Configuration

if TYPE_CHECKING:
    from reusable_holdout.guard.guard import ReusableHoldout
    from reusable_holdout.ledger import Ledger

__all__ = ["Rotation", "begin_epoch", "check_may_rotate", "past_epochs"]

_GuardT = TypeVar("_GuardT")


class Rotation(NamedTuple, Generic[_GuardT]):
    """What a rotation gives: the guard of the new holdout, and the old holdout, which protects nothing any more.

    Attributes
    ----------
    guard : ReusableHoldout
        Of the new holdout.
    X, y : array-like
        The old holdout, free to be trained on.
    """

    guard: _GuardT
    X: Any
    y: Any


def check_may_rotate(guard: ReusableHoldout, *, early: bool) -> None:
    """Refuse to release a holdout that still answers.

    Raises
    ------
    InputError
        If the guard has not halted.
    """
    if not early and not guard.halted:
        raise InputError(
            f"a guard is rotated when it has halted; this one has {guard.charges_left} charges and "
            f"{guard.plan.queries - guard.queries_asked:,} queries left; nothing was released; pass early=True to give "
            "them up"
        )


def past_epochs(ledger: Ledger) -> list[Configuration]:
    """Configurations of the epochs before the one a ledger stands at."""
    if ledger.epoch == 1:
        return []
    return [Configuration.parse(text) for text in ledger.configurations()[: ledger.epoch - 1]]


def begin_epoch(ledger: Ledger, configuration: Configuration) -> None:
    """End the epoch a ledger stands at, and begin the next, all or nothing.

    Raises
    ------
    InputError
        If its holdout is that of an epoch before.
    RotatedError
        If the epoch has ended already.
    """
    for number, text in enumerate(ledger.configurations(), start=1):
        if Configuration.parse(text).holdout == configuration.holdout:
            raise InputError(
                f"a new holdout must be rows that were not used before; these are the rows of epoch {number}; nothing "
                "was released; pass fresh rows"
            )
    with ledger.transaction() as transaction:
        follows = replace(configuration, epoch=ledger.epoch + 1, previous=transaction.tail.seal.hex())
        transaction.rotate(follows.text())
