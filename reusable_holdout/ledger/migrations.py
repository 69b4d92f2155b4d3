"""Schemas that ledgers were written with: a ledger of any released version is brought to this one's, or refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reusable_holdout.errors import LedgerError
from reusable_holdout.ledger.schema import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["MIGRATIONS", "check_known", "migrate"]

_FIRST, _FIRST_LIBRARY = 5, "0.2.0"

MIGRATIONS: dict[int, Callable[[Any], None]] = {}
"""By the schema they begin at: each takes a cursor inside a transaction, and changes the tables to the next schema.

It changes no row and no configuration: seals are of these.
"""


def check_known(ledger: object, schema: object, library: str) -> None:
    """Refuse a schema that this version cannot read.

    Parameters
    ----------
    ledger : object
        Its repr names the ledger.
    schema : object
        As it stands there.
    library : str
        Version of the library that wrote it.

    Raises
    ------
    LedgerError
        Naming the version to install.
    """
    if isinstance(schema, int) and _FIRST <= schema <= SCHEMA:
        return
    if isinstance(schema, int) and schema > SCHEMA:
        advice = f"install reusable-holdout {library} or later, which wrote it"
    else:
        advice = (
            f"ledgers are kept for ever from reusable-holdout {_FIRST_LIBRARY} on; open this one with the version that "
            "wrote it"
        )
    raise LedgerError(
        f"{ledger!r} must have a schema from {_FIRST} to {SCHEMA}; it has {schema!r}; nothing was changed; {advice}"
    )


def migrate(cursor: Any, schema: int) -> None:
    """Bring the tables of a known schema to this version's, inside a transaction."""
    for number in range(schema, SCHEMA):
        MIGRATIONS[number](cursor)
