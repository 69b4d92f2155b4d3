"""``reusable-holdout registry``: which rows have a budget, and letting them have another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reusable_holdout.cli.command import add, tell

if TYPE_CHECKING:
    import argparse

__all__ = ["add_registry"]


def add_registry(commands: Any) -> None:
    """Add ``registry list`` and ``registry forget``."""
    parser = commands.add_parser(
        "registry", help="List the budgets of your rows, or let rows have another one"
    )
    actions = parser.add_subparsers(required=True, metavar="action")
    add(
        actions,
        "list",
        _list,
        "List the ledgers that rows have a budget in. What is kept of the rows are keyed digests.",
        "registry list",
    )
    forget = add(
        actions,
        "forget",
        _forget,
        "Let the rows of a ledger have another budget. Every answer of that one will say so: what was told is not "
        "forgotten.",
        "registry forget /data/guard.db",
    )
    forget.add_argument("ledger", help="as registry list names it")


def _registry() -> Any:
    from reusable_holdout.errors import InputError
    from reusable_holdout.registry import VARIABLE, Registry

    registry = Registry.of_user()
    if registry is None:
        raise InputError(
            f"there must be a registry; {VARIABLE} turns it off; name a folder in it, or unset it"
        )
    return registry


def _list(options: argparse.Namespace) -> int:
    found = _registry().budgets()
    if options.json:
        tell([budget._asdict() for budget in found], as_json=True)
        return 0
    for budget in found:
        mark = "  (forgotten)" if budget.forgotten else ""
        print(f"{budget.made}  {budget.rows:>11,} rows  {budget.ledger}{mark}")
    if not found:
        print("no rows have a budget")
    return 0


def _forget(options: argparse.Namespace) -> int:
    from reusable_holdout.errors import InputError

    registry = _registry()
    count = registry.forget(options.ledger)
    if not count:
        known = ", ".join(sorted({budget.ledger for budget in registry.budgets()})) or "none"
        raise InputError(
            f"the ledger must be one that rows have a budget in; got {options.ledger!r}; known are {known}; nothing "
            "was forgotten"
        )
    tell(
        {"forgotten": count} if options.json else f"forgotten: {count} of {options.ledger}",
        as_json=options.json,
    )
    return 0
