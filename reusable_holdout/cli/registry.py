"""``reusable-holdout registry``: list the rows that have a budget, and allow them another one."""

from __future__ import annotations

import argparse
from typing import Any

from reusable_holdout.cli.command import add_documented, tell
from reusable_holdout.errors import InputError, printable
from reusable_holdout.registry import VARIABLE, Registry, checked_reason, forget, forgotten_words, is_gone


def add_registry(commands: Any) -> None:
    """Add ``registry list`` and ``registry forget``."""
    parser = commands.add_parser(
        "registry", help="List the budgets of your rows, or let rows have another one"
    )
    actions = parser.add_subparsers(required=True, metavar="action")
    add_documented(actions, _list, "registry list")
    example = 'registry forget /data/guard.db --because "a rehearsal; nothing of it was used"'
    forget = add_documented(actions, _forget, example)
    forget.add_argument("ledgers", nargs="+", metavar="ledger", help="as registry list names it")
    forget.add_argument("--because", metavar="REASON", help="why, in words; needed, and kept in the registry")


def _registry() -> Any:
    registry = Registry.of_user()
    if registry is None:
        raise InputError(
            f"there must be a registry; {VARIABLE} turns it off; set it to a folder, or unset it"
        )
    return registry


def _list(options: argparse.Namespace) -> int:
    """List the ledgers that rows have a budget in. What is kept of the rows are keyed digests."""
    found = _registry().budgets()
    if options.json:
        tell([budget._asdict() for budget in found], as_json=True)
        return 0
    for budget in found:
        words = forgotten_words(budget) or ("no longer there" if is_gone(budget.ledger) else "")
        mark = f"  ({words})" if words else ""
        print(f"{budget.made}  {budget.rows:>11,} rows  {printable(budget.ledger)}{mark}")
    if not found:
        print("no rows have a budget")
    return 0


def _forget(options: argparse.Namespace) -> int:
    """Let the rows of ledgers have another budget, for a reason.

    Every answer of that one will say so, and the registry keeps when and why: what was told is not forgotten.
    """
    registry, reason = _registry(), checked_reason(options.because)
    known = {budget.ledger for budget in registry.budgets() if not budget.forgotten}
    shown = {printable(ledger): ledger for ledger in known}  # some names cannot be printed as they are
    ledgers = [ledger if ledger in known else shown.get(ledger, ledger) for ledger in options.ledgers]
    unknown = [ledger for ledger in ledgers if ledger not in known]
    if unknown:
        raise InputError(
            f"a ledger to forget must be one that rows have a budget in; got {', '.join(map(repr, unknown))}; known "
            f"are {', '.join(sorted(known)) or 'none'}; nothing was forgotten"
        )
    counts = {ledger: forget(registry, ledger, reason) for ledger in ledgers}
    words = "\n".join(f"forgotten: {count} of {printable(ledger)}" for ledger, count in counts.items())
    tell({"forgotten": sum(counts.values())} if options.json else words, as_json=options.json)
    return 0
