"""Budgets that their owner had forgotten: the command, its reason, and what the registry keeps of it.

A budget is never removed. Its rows may have another one afterwards, and whoever makes that is told of the first.
"""

from __future__ import annotations

import datetime
import os
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from reusable_holdout.errors import InputError
from reusable_holdout.registry.store import VARIABLE, Budget, Registry

__all__ = ["checked_reason", "forget", "forgotten_words", "is_gone", "refusal", "reminder"]

_LONGEST = 500
IN_MEMORY = "memory"
"""Place of ledgers in the memory of a process."""


def is_gone(ledger: str) -> bool:
    """Return True if a ledger was a file and no file is there now; of a server or a shut folder nobody knows."""
    if not Path(ledger).is_absolute():  # a URL, or what is no file
        return False
    try:
        Path(ledger).stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        pass
    return False


def checked_reason(reason: object) -> str:
    """Return why a budget is forgotten, without spaces around it; an InputError refuses what says nothing."""
    text = reason.strip() if isinstance(reason, str) else ""
    if not any(letter.isalpha() for letter in text) or not text.isprintable() or len(text) > _LONGEST:
        got = "none" if reason is None else repr(reason)[:_LONGEST]
        raise InputError(
            f"a budget is forgotten for a reason, in words, on one line of at most {_LONGEST} characters; got {got}; "
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
        As :meth:`Registry.budgets` names it.
    because : str
        The reason, in words.

    Returns
    -------
    int
        How many budgets these were.

    Raises
    ------
    InputError
        If the reason says nothing.
    """
    reason, now = checked_reason(because), datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    with registry.connected() as connection:
        connection.execute("BEGIN IMMEDIATE")
        named = "SELECT id FROM budgets WHERE ledger = ? AND NOT forgotten"
        found = connection.execute(named, (ledger,)).fetchall()
        connection.executemany("UPDATE budgets SET forgotten = 1 WHERE id = ?", found)
        connection.executemany(
            "INSERT INTO forgotten VALUES (?, ?, ?)", [(number, now, reason) for (number,) in found]
        )
        connection.commit()
    return len(found)


def _command(ledgers: Iterable[str]) -> str:
    """Return the command line that forgets ledgers of the registry that this process uses; its reason is left open."""
    named = os.environ.get(VARIABLE, "")
    where = f"{VARIABLE}={shlex.quote(named)} " if named else ""
    return f'{where}reusable-holdout registry forget {shlex.join(ledgers)} --because "..."'


def forgotten_words(budget: Budget) -> str:
    """Return when a budget was forgotten, and why; empty if it was not."""
    if not budget.forgotten:
        return ""
    when = f" {budget.forgotten_at}" if budget.forgotten_at else ""
    return f"forgotten{when}: {budget.because or 'no reason was kept'}"


def reminder(budget: Budget) -> str:
    """Return what whoever makes a guard is told of a budget that its rows had."""
    return (
        f"these rows had a budget in {budget.ledger} (of {budget.made}), {forgotten_words(budget)}; what was told of "
        "them then is known, so every answer of this guard will say that its rows have another budget"
    )


def refusal(budgets: Sequence[Budget], here: str, *, next_epoch: bool) -> str:
    """Return in which ledger rows have a budget, and what to do with one that is there, or with those that are gone."""
    emptied = (
        [] if next_epoch or here == IN_MEMORY else [here]
    )  # the new guard's own file, whose ledger was removed
    gone = [one for one in budgets if one.ledger in emptied or is_gone(one.ledger)]
    budget = next((one for one in budgets if one not in gone), budgets[0])
    part = "" if budget.share > 0.99 else f"about {max(budget.share, 0.01):.0%} of "
    where = f"{budget.ledger} (of {budget.made})"
    again = "resume that ledger with ReusableHoldout.open"
    if budget.ledger == IN_MEMORY:
        where, again = (
            f"the memory of this process (of {budget.made})",
            "make that guard again, with its settings",
        )
    elif budget.ledger == here:
        where += ", in an epoch before" if next_epoch else ", which holds no guard any more"
    elif budget in gone:
        where += ", which is not there any more"
    resume = (
        f"{again}, ask about other metrics and slices with guard.on, guard fresh rows, or pass another_budget=True to "
        "insist: every answer will say so"
    )
    if budget in gone or "://" in budget.ledger:
        command = _command(dict.fromkeys(one.ledger for one in gone or [budget]))
        moved = "open it where it lies now, if it was moved, or guard fresh rows"
        resume = f"{moved if budget in gone else resume}; if it is gone for good, say why: {command}"
    return (
        f"rows must have one budget, for a second one voids the promises of both; {part}these rows have one in "
        f"{where}; nothing was made; {resume}"
    )
