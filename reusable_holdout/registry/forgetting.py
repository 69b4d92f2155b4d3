"""Budgets that their owner has marked as forgotten: the reason, and the messages about them.

A budget is never removed. After forgetting, its rows may have another budget, and the person who makes it is told of
the first.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from reusable_holdout.errors import InputError
from reusable_holdout.registry.store import VARIABLE, Budget, Registry, now

_LONGEST = 500
_IN_MEMORY = "memory"  # place of ledgers in the memory of a process


def is_gone(ledger: str) -> bool:
    """Return True if a ledger was a file and no file is there now; False for a server, or if it cannot be looked up."""
    try:
        return Path(ledger).is_absolute() and not Path(ledger).exists()
    except OSError:
        return False


def checked_reason(reason: object) -> str:
    """Return why a budget is forgotten, without spaces around it; an InputError refuses an empty one."""
    text = reason.strip() if isinstance(reason, str) else ""
    if not any(letter.isalpha() for letter in text) or not text.isprintable() or len(text) > _LONGEST:
        got = "none" if reason is None else repr(reason)[:_LONGEST]
        raise InputError(
            f"forgetting a budget needs a reason in words, on one line of at most {_LONGEST} characters; got {got}; "
            'nothing was forgotten; add one, such as --because "a rehearsal; nothing of it was used"'
        )
    return text


def forget(registry: Registry, ledger: str, because: str) -> int:
    """Let the rows of a ledger have another budget, whose answers will say so.

    Nothing is removed: the registry keeps that these rows had a budget, when it was forgotten, and why.

    Parameters
    ----------
    registry : Registry
    ledger : str
        Ledger, as :meth:`Registry.budgets` names it.
    because : str
        The reason, in words.

    Returns
    -------
    int
        Number of budgets that were forgotten.

    Raises
    ------
    InputError
        If the reason says nothing.
    """
    reason = checked_reason(because)
    with registry.connected() as connection:
        named = "SELECT id, ?, ? FROM budgets WHERE ledger = ? AND NOT forgotten"
        found = connection.execute(f"INSERT INTO forgotten {named}", (now(), reason, ledger))
        connection.execute("UPDATE budgets SET forgotten = 1 WHERE ledger = ?", (ledger,))
    return found.rowcount


def forgotten_words(budget: Budget) -> str:
    """Return when a budget was forgotten, and why; empty if it was not."""
    if not budget.forgotten:
        return ""
    when = f" {budget.forgotten_at}" if budget.forgotten_at else ""
    return f"forgotten{when}: {budget.because or 'no reason was kept'}"


def reminder(budget: Budget) -> str:
    """Return the warning for a new guard of rows that had a budget."""
    return (
        f"these rows had a budget in {budget.ledger} (of {budget.made}), {forgotten_words(budget)}; the answers "
        "given then are still known, so every answer of this guard will say that its rows have another budget"
    )


def refusal(budgets: Sequence[Budget], here: str, *, next_epoch: bool) -> str:
    """Return the message that names the ledger with the rows' budget, and the next steps if it is there or gone."""
    # if the registry names the file in which a new guard is made, the earlier ledger there is lost
    lost = not next_epoch and here != _IN_MEMORY
    gone = [one for one in budgets if (lost and one.ledger == here) or is_gone(one.ledger)]
    budget = next((one for one in budgets if one not in gone), budgets[0])
    part = "" if budget.share > 0.99 else f"about {max(budget.share, 0.01):.0%} of "
    where = f"{budget.ledger} (of {budget.made})"
    todo = (
        "resume that ledger with ReusableHoldout.open, ask about other metrics and slices with guard.on, guard fresh "
        "rows, or pass allow={'second budget'} to insist: every answer will say so"
    )
    if budget.ledger == _IN_MEMORY:
        where = f"the memory of this process (of {budget.made})"
        todo = todo.replace(
            "resume that ledger with ReusableHoldout.open", "make that guard again, with its settings"
        )
    elif budget.ledger == here:
        where += ", in an earlier epoch" if next_epoch else ", which holds no guard any more"
    elif budget in gone:
        where += ", which is not there any more"
    if budget in gone:
        todo = "if it was moved, open it in its new place; else guard fresh rows"
    if budget in gone or "://" in budget.ledger:
        todo += f"; if it is gone for good, state the reason: {_command([one.ledger for one in gone or [budget]])}"
    return (
        f"rows must have one budget, because a second one voids the promises of both; {part}these rows have one "
        f"in {where}; nothing was made; {todo}"
    )


def _command(ledgers: Sequence[str]) -> str:
    """Return the command that forgets ledgers of the registry that this process uses; its reason is left open."""
    named = os.environ.get(VARIABLE, "")
    where = f"{VARIABLE}={shlex.quote(named)} " if named else ""
    return f'{where}reusable-holdout registry forget {shlex.join(dict.fromkeys(ledgers))} --because "..."'
