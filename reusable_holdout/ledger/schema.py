"""Tables of a ledger, and the SQL of the hot path."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from reusable_holdout.ledger.records import Row

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["CHUNK", "METADATA", "SCHEMA", "Statements", "as_row", "create_tables", "plain", "statements"]

SCHEMA = 4
CHUNK = 500  # digests looked up by one statement

METADATA = sa.MetaData()
_CONFIGURATION = sa.Table(
    "configuration",
    METADATA,
    sa.Column("epoch", sa.Integer, sa.CheckConstraint("epoch >= 1"), primary_key=True, autoincrement=False),
    sa.Column("schema_version", sa.Integer, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
)
_ANSWERS = sa.Table(
    "answers",
    METADATA,
    sa.Column("epoch", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("query", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("batch", sa.BigInteger, nullable=False),
    sa.Column("digest", sa.LargeBinary, nullable=False),
    *(sa.Column(name, sa.Double, nullable=False) for name in ("prior", "value")),
    sa.Column("charged", sa.Integer, nullable=False),
    *(sa.Column(name, sa.Double, nullable=False) for name in ("threshold", "low", "high", "nats")),
    sa.Column("charges", sa.BigInteger, nullable=False),
    sa.Column("spent_nats", sa.Double, nullable=False),
    sa.Column("asked", sa.BigInteger, nullable=False),
    sa.Column("asked_at", sa.Double, nullable=False),
    sa.Column("view", sa.BigInteger, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("told", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("series", sa.Text, nullable=False),
    sa.Column("seal", sa.LargeBinary),
    sa.UniqueConstraint("epoch", "digest"),
    sqlite_with_rowid=False,  # rows lie in the order of their key, and need no second index
)

_IN_SERIES = _ANSWERS.c.series != sa.literal_column("''")
_BY_SERIES = sa.Index(
    "answers_in_series",
    _ANSWERS.c.epoch,
    _ANSWERS.c.series,
    _ANSWERS.c.query,
    sqlite_where=_IN_SERIES,
)


def create_tables(connection: sa.Connection) -> None:
    """Make the tables that are missing."""
    if connection.dialect.name == "postgresql":  # said here, for saying it imports the dialect
        _BY_SERIES.dialect_kwargs["postgresql_where"] = _IN_SERIES
    METADATA.create_all(connection)


class Statements:
    """SQL of one dialect for one epoch, compiled once: the hot path does not build statements.

    Parameters
    ----------
    dialect : sqlalchemy.Dialect
    epoch : int
        From 1.
    """

    def __init__(self, dialect: sa.Dialect, epoch: int) -> None:
        row = [_ANSWERS.c[name] for name in Row._fields]
        number: sa.ColumnElement[int] = sa.literal_column(str(int(epoch)))

        def compiled(statement: Any) -> str:
            return str(statement.compile(dialect=dialect))

        bind = sa.bindparam
        answers, configuration = _ANSWERS.c, _CONFIGURATION.c
        here = answers.epoch == number
        latest = sa.select(sa.func.max(configuration.epoch)).scalar_subquery()
        last = sa.select(sa.func.max(answers.query)).where(here).scalar_subquery()
        self.epoch = epoch
        self.schema = compiled(sa.select(configuration.schema_version))
        self.configuration = compiled(sa.select(configuration.text).where(configuration.epoch == number))
        self.configurations = compiled(sa.select(configuration.text).order_by(configuration.epoch))
        self.create = compiled(sa.insert(_CONFIGURATION))
        self.tail = compiled(
            sa.select(
                answers.query,
                answers.charges,
                answers.spent_nats,
                answers.asked,
                answers.kind,
                answers.seal,
                latest,
            ).where(here, answers.query == last)
        )
        self.latest = compiled(sa.select(sa.func.max(configuration.epoch)))
        self.rows = compiled(
            sa.select(*row).where(here, answers.query > bind("after")).order_by(answers.query)
        )

        def last_of(*series: Any) -> str:
            """Value of the last row of one kind and view; rows are looked at from the end."""
            mine = sa.select(answers.value).where(
                here, *series, answers.kind == bind("kind"), answers.view == bind("view")
            )
            last: Any = mine.order_by(answers.query.desc())
            return compiled(last.limit(sa.literal_column("1")).offset(sa.literal_column("0")))

        self.last_value = last_of(~_IN_SERIES)
        self.last_in_series = last_of(_IN_SERIES, answers.series == bind("series"))
        self.digests = compiled(sa.select(answers.digest).where(here))
        self.seals = compiled(
            sa.select(answers.query, answers.seal)
            .where(here, answers.seal.is_not(None))
            .order_by(answers.query)
        )
        values: dict[str, Any] = {"epoch": number} | {column.name: bind(column.name) for column in row}
        self.insert = compiled(sa.insert(_ANSWERS).values(values).inline())
        self.insert_sealed = compiled(sa.insert(_ANSWERS).values(values | {"seal": bind("seal")}).inline())
        self.one = compiled(sa.select(*row).where(here, answers.digest == bind("digest")))
        self.chunk = compiled(
            sa.select(*row).where(here, answers.digest.in_([bind(f"digest{i}") for i in range(CHUNK)]))
        )
        if dialect.name == "sqlite":
            self.begin = ["BEGIN IMMEDIATE"]
        else:
            locked = sa.select(configuration.epoch).where(configuration.epoch == number).with_for_update()
            self.begin = [compiled(locked)]


@dataclass(frozen=True)
class _Dialect:
    """A dialect, equal to every other of its database and driver."""

    database: str
    driver: str
    itself: sa.Dialect = field(compare=False)


def statements(engine: sa.Engine, epoch: int) -> Statements:
    """SQL of one epoch, compiled by the first ledger of a process that needs it: to open another takes less time."""
    dialect = engine.dialect
    return _statements(_Dialect(dialect.name, dialect.driver, dialect), epoch)


@lru_cache(maxsize=64)
def _statements(dialect: _Dialect, epoch: int) -> Statements:
    return Statements(dialect.itself, epoch)


def as_row(values: Sequence[Any]) -> Row:
    """Row of what a driver fetched."""
    row = Row._make(values)
    return row if type(row.digest) is bytes else row._replace(digest=plain(row.digest))


def plain(value: Any) -> Any:
    """Bytes of drivers that give views; anything else as it is, for `chain_problems` to report."""
    return bytes(value) if isinstance(value, memoryview) else value
