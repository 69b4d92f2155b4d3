"""Tables of a ledger, and the SQL of the hot path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from reusable_holdout.ledger.records import Row

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["CHUNK", "METADATA", "SCHEMA", "Statements", "as_row", "plain"]

SCHEMA = 2
CHUNK = 500  # digests looked up by one statement

METADATA = sa.MetaData()
_CONFIGURATION = sa.Table(
    "configuration",
    METADATA,
    sa.Column("id", sa.Integer, sa.CheckConstraint("id = 1"), primary_key=True, autoincrement=False),
    sa.Column("schema_version", sa.Integer, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
)
_ANSWERS = sa.Table(
    "answers",
    METADATA,
    sa.Column("query", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("batch", sa.Integer, nullable=False),
    sa.Column("digest", sa.LargeBinary(32), nullable=False, unique=True),
    *(sa.Column(name, sa.Double, nullable=False) for name in ("prior", "value")),
    sa.Column("charged", sa.Integer, nullable=False),
    *(sa.Column(name, sa.Double, nullable=False) for name in ("threshold", "low", "high", "nats")),
    sa.Column("charges", sa.Integer, nullable=False),
    sa.Column("spent_nats", sa.Double, nullable=False),
    sa.Column("paired", sa.Integer, nullable=False),
    sa.Column("asked_at", sa.Double, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("seal", sa.LargeBinary(32)),
)


class Statements:
    """SQL of one dialect, compiled once: the hot path does not build statements."""

    def __init__(self, engine: sa.Engine) -> None:
        dialect = engine.dialect
        row = [_ANSWERS.c[name] for name in Row._fields]

        def compiled(statement: Any) -> str:
            return str(statement.compile(dialect=dialect))

        bind = sa.bindparam
        answers, configuration = _ANSWERS.c, _CONFIGURATION.c
        self.schema = compiled(sa.select(configuration.schema_version))
        self.configuration = compiled(sa.select(configuration.text))
        self.create = compiled(sa.insert(_CONFIGURATION))
        self.tail = compiled(
            sa.select(answers.query, answers.charges, answers.spent_nats, answers.seal, answers.value).where(
                answers.query == sa.select(sa.func.max(answers.query)).scalar_subquery()
            )
        )
        self.rows = compiled(sa.select(*row).where(answers.query > bind("after")).order_by(answers.query))
        self.digests = compiled(sa.select(answers.digest))
        self.seals = compiled(
            sa.select(answers.query, answers.seal).where(answers.seal.is_not(None)).order_by(answers.query)
        )
        self.insert = compiled(sa.insert(_ANSWERS).values({column.name: bind(column.name) for column in row}))
        self.insert_sealed = compiled(sa.insert(_ANSWERS))
        self.one = compiled(sa.select(*row).where(answers.digest == bind("digest")))
        self.chunk = compiled(
            sa.select(*row).where(answers.digest.in_([bind(f"digest{i}") for i in range(CHUNK)]))
        )
        if dialect.name == "sqlite":
            self.begin = ["BEGIN IMMEDIATE"]
        else:
            self.begin = [compiled(sa.select(configuration.id).with_for_update())]


def as_row(values: Sequence[Any]) -> Row:
    """Row of what a driver fetched."""
    row = Row._make(values)
    return row if type(row.digest) is bytes else row._replace(digest=plain(row.digest))


def plain(value: Any) -> Any:
    """Bytes of drivers that give views; anything else as it is, for `chain_problems` to report."""
    return bytes(value) if isinstance(value, memoryview) else value
