"""Tables of a ledger, the schemas that ledgers were written with, and the SQL of the hot path.

A ledger of any released version is brought to this one's schema, or refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from reusable_holdout.errors import LedgerError
from reusable_holdout.ledger.records import COLUMNS, Row

__all__ = [
    "CHUNK",
    "METADATA",
    "MIGRATIONS",
    "SCHEMA",
    "Statements",
    "check_known",
    "create_tables",
    "statements",
]

SCHEMA = 5
_FIRST, _FIRST_LIBRARY = 5, "0.2.0"

MIGRATIONS: dict[int, Callable[[Any], None]] = {}
"""By the schema they begin at: each takes a cursor inside a transaction, and changes the tables to the next schema.

It changes no row and no configuration: seals are of these.
"""

CHUNK = 500  # digests looked up by one statement
_MOST_COMPILED = 64  # epochs

METADATA = sa.MetaData()
_CONFIGURATION = sa.Table(
    "configuration",
    METADATA,
    sa.Column("epoch", sa.Integer, sa.CheckConstraint("epoch >= 1"), primary_key=True, autoincrement=False),
    sa.Column("schema_version", sa.Integer, nullable=False),
    sa.Column("library", sa.Text, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("known_rows", sa.LargeBinary),
)
_SQL_TYPES = {int: sa.BigInteger, float: sa.Double, bytes: sa.LargeBinary, str: sa.Text}
_ANSWERS = sa.Table(
    "answers",
    METADATA,
    sa.Column("epoch", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("query", sa.BigInteger, primary_key=True, autoincrement=False),
    *(
        sa.Column(name, sa.Integer if name == "charged" else _SQL_TYPES[kind], nullable=False)
        for name, kind in list(COLUMNS.items())[1:]
    ),
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
_CHARGED = _ANSWERS.c.charged == sa.literal_column("1")
_BY_CHARGE = sa.Index(
    "answers_charged", _ANSWERS.c.epoch, _ANSWERS.c.charged, _ANSWERS.c.query, sqlite_where=_CHARGED
)


def create_tables(connection: sa.Connection) -> None:
    """Make the tables that are missing."""
    if connection.dialect.name == "postgresql":  # said here, for saying it imports the dialect
        _BY_SERIES.dialect_kwargs["postgresql_where"] = _IN_SERIES
        _BY_CHARGE.dialect_kwargs["postgresql_where"] = _CHARGED
    METADATA.create_all(connection)


def check_known(ledger: object, schema: object, library: str) -> None:
    """Refuse a schema that this version cannot read, naming the one to install; the ledger's repr names the ledger."""
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


def _last(answers: Any) -> Any:
    """The last of an epoch's answers.

    They are looked at from the end: PostgreSQL, which knows nothing of a new table, takes the key's order for the only
    one that needs no sorting. Asked for the row of the greatest number, it reads all rows of the epoch.
    """
    from_the_end = answers.order_by(_ANSWERS.c.query.desc())
    return from_the_end.limit(sa.literal_column("1")).offset(sa.literal_column("0"))


# SQLite guesses which index to use as if a condition left out much, so for a last charge it read a whole ledger in
# which nothing was charged. Every statement about answers therefore names its index, and fails if it cannot use that.
_BY_KEY = "NOT INDEXED"
_BY_DIGEST = "INDEXED BY sqlite_autoindex_answers_2"
_IN_SERIES_BY = f"INDEXED BY {_BY_SERIES.name}"
_CHARGED_BY = f"INDEXED BY {_BY_CHARGE.name}"


def _select(index: str, *columns: Any) -> Any:
    """Select answers in SQLite by this index. PostgreSQL takes no hints, and tests read its plans."""
    return sa.select(*columns).with_hint(_ANSWERS, index, "sqlite")


def _with_hints(dialect: sa.Dialect) -> Any:
    """Return the dialect's compiler, made to write the hints, which SQLAlchemy leaves out for SQLite."""
    hints = {"get_from_hint_text": lambda _, __, text: text}
    return (
        type("Compiler", (dialect.statement_compiler,), hints)
        if dialect.name == "sqlite"
        else dialect.statement_compiler
    )


class Statements:
    """SQL of one dialect for one epoch, compiled once: the hot path does not build statements."""

    def __init__(self, dialect: sa.Dialect, epoch: int) -> None:
        self.epoch = epoch
        # whether a server's connection begins no transaction for what only reads, which takes two more round trips;
        # other drivers may not end a transaction that a statement has begun: theirs begin one for all
        self.reads_alone = dialect.driver == "psycopg"
        self._dialect, self._compiler = dialect, _with_hints(dialect)
        number: sa.ColumnElement[int] = sa.literal_column(str(int(epoch)))
        self._add_configurations(number)
        self._add_reads(number)
        self._add_lookups(number)
        self._add_writes(number)

    def _compiled(self, statement: Any) -> str:
        return str(self._compiler(self._dialect, statement))

    def _add_configurations(self, number: sa.ColumnElement[int]) -> None:
        compiled, configuration = self._compiled, _CONFIGURATION.c
        here = configuration.epoch == number
        self.schema = compiled(sa.select(configuration.schema_version))
        self.library = compiled(sa.select(sa.func.max(configuration.library)))
        upgrade: dict[str, Any] = {"schema_version": sa.bindparam("schema")}
        self.upgraded = compiled(sa.update(_CONFIGURATION).values(upgrade))
        self.configuration = compiled(sa.select(configuration.text).where(here))
        self.configurations = compiled(sa.select(configuration.text).order_by(configuration.epoch))
        self.latest = compiled(sa.select(sa.func.max(configuration.epoch)))
        self.known_rows = compiled(sa.select(configuration.known_rows).where(here))
        self.create = compiled(sa.insert(_CONFIGURATION))
        self.begin = ["BEGIN IMMEDIATE"]
        if self._dialect.name != "sqlite":
            begin = ["BEGIN"] * self.reads_alone
            self.begin = [*begin, compiled(sa.select(configuration.epoch).where(here).with_for_update())]

    def _add_reads(self, number: sa.ColumnElement[int]) -> None:
        compiled, bind, answers = self._compiled, sa.bindparam, _ANSWERS.c
        here, row = answers.epoch == number, [answers[name] for name in Row._fields]
        latest = sa.select(sa.func.max(_CONFIGURATION.c.epoch)).scalar_subquery()
        tail = [answers[name] for name in ("query", "charges", "spent_nats", "asked", "kind", "seal")]
        last = _last(_select(_BY_KEY, *tail).where(here)).subquery("last")
        charge = _last(_select(_CHARGED_BY, answers.digest, answers.asked).where(here, _CHARGED)).subquery(
            "charge"
        )
        self.tail = compiled(
            sa.select(*last.c, *charge.c, latest).select_from(last.outerjoin(charge, sa.true()))
        )
        charged = _select(_CHARGED_BY, answers.query).where(here, _CHARGED).order_by(answers.query)
        self.charged = compiled(charged.limit(bind("most")).offset(sa.literal_column("0")))
        after = _select(_BY_KEY, *row).where(here, answers.query > bind("after"))
        self.rows = compiled(after.order_by(answers.query))
        of_kind = _select(_BY_KEY, *row).where(here, answers.kind == bind("kind"))
        self.rows_of_kind = compiled(of_kind.order_by(answers.query))
        way = (answers.kind == bind("kind"), answers.view == bind("view"))
        newer = _select(_BY_KEY, answers.value).where(here, answers.query > bind("after"), ~_IN_SERIES, *way)
        self.last_value = compiled(_last(newer))
        of_series = _select(_IN_SERIES_BY, answers.value).where(
            here, _IN_SERIES, answers.series == bind("series"), *way
        )
        self.last_in_series = compiled(_last(of_series))

    def _add_lookups(self, number: sa.ColumnElement[int]) -> None:
        compiled, bind, answers = self._compiled, sa.bindparam, _ANSWERS.c
        here, row = answers.epoch == number, [answers[name] for name in Row._fields]
        self.digests = compiled(_select(_BY_DIGEST, answers.digest).where(here))
        sealed = _select(_BY_KEY, answers.query, answers.seal).where(here, answers.seal.is_not(None))
        self.seals = compiled(sealed.order_by(answers.query))
        self.seal_at = compiled(_select(_BY_KEY, answers.seal).where(here, answers.query == bind("query")))
        self.one = compiled(_select(_BY_DIGEST, *row).where(here, answers.digest == bind("digest")))
        chunk: list[Any] = [bind(f"digest{place}") for place in range(CHUNK)]
        if self._dialect.name == "postgresql":  # for a list it may take the key, and read the whole epoch
            asked = sa.values(sa.column("digest", sa.LargeBinary), name="asked")
            asked = asked.data([(sa.cast(one, sa.LargeBinary),) for one in chunk])
            found = sa.select(*row).where(here, answers.digest == asked.c.digest)
            each = found.limit(sa.literal_column("1")).lateral("found")
            self.chunk = compiled(sa.select(*each.c).select_from(asked.join(each, sa.true())))
        else:
            self.chunk = compiled(_select(_BY_DIGEST, *row).where(here, answers.digest.in_(chunk)))

    def _add_writes(self, number: sa.ColumnElement[int]) -> None:
        bind = sa.bindparam
        values: dict[str, Any] = {"epoch": number} | {name: bind(name) for name in Row._fields}
        insert = sa.insert(_ANSWERS)
        self.insert = self._compiled(insert.values(values).inline())
        self.insert_sealed = self._compiled(insert.values(values | {"seal": bind("seal")}).inline())


_COMPILED: dict[tuple[str, str, int], Statements] = {}


def statements(engine: sa.Engine, epoch: int) -> Statements:
    """SQL of one epoch, compiled by the first ledger of a process that needs it: to open another takes less time."""
    dialect = engine.dialect
    place = (dialect.name, dialect.driver, epoch)
    found = _COMPILED.get(place)
    if found is None:
        if len(_COMPILED) >= _MOST_COMPILED:
            _COMPILED.clear()
        found = _COMPILED[place] = Statements(dialect, epoch)
    return found
