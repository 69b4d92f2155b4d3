"""Forgers' tools: change a ledger behind everyone's back, make all that follows fit, and seal it again."""

import sqlite3

from reusable_holdout.guard.configuration import Configuration
from reusable_holdout.ledger import Row
from reusable_holdout.ledger.records import genesis, seal
from reusable_holdout.ways import State, Terms, Told
from reusable_holdout.ways.table import WAYS, Ways

__all__ = ["all_rows", "every_way", "fitting", "recompute", "rewrite", "seal_again", "sql", "state_after"]


def every_way(guard):
    """Ways to ask that a guard has."""
    ways = guard._view.ways
    return [way for name in sorted(WAYS) if (way := ways.named(name))]


def sql(ledger, *statements):
    """Change a ledger by statements, each with its values."""
    connection = sqlite3.connect(ledger, isolation_level=None)
    connection.execute("PRAGMA ignore_check_constraints = ON")
    for statement, *values in statements:
        connection.execute(statement, values)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def all_rows(ledger):
    """Configuration, rows, and the numbers of the rows that bear seals."""
    connection = sqlite3.connect(ledger)
    rows = [Row(*values) for values in connection.execute(f"SELECT {', '.join(Row._fields)} FROM answers")]
    text = connection.execute("SELECT text FROM configuration").fetchone()[0]
    sealed = {row[0] for row in connection.execute("SELECT query FROM answers WHERE seal IS NOT NULL")}
    connection.close()
    return text, sorted(rows), sealed


def seal_again(ledger):
    """What a forger who has read the source does: seals need no key."""
    text, rows, sealed = all_rows(ledger)
    previous, commit, changes = genesis(text), [], []
    for row in rows:
        commit.append(row)
        if row.query in sealed:
            previous = seal(previous, commit)
            commit = []
            changes.append(("UPDATE answers SET seal = ? WHERE query = ?", previous, row.query))
    sql(ledger, *changes)


def rewrite(ledger, change):
    """Put other rows in the place of all, whatever does not follow, and seal them."""
    names = ", ".join(f"{name} = ?" for name in Row._fields)
    for row in change(all_rows(ledger)[1]):
        sql(ledger, (f"UPDATE answers SET {names} WHERE query = ?", *row, row.query))
    seal_again(ledger)


def recompute(ledger, query, **changes):
    """What a forger does who runs our own source on the row: everything that follows from it is made to fit."""
    text, rows, _ = all_rows(ledger)
    ways, states = Ways(Configuration.parse(text).view.kept), [State(last_charge=0)]
    finals = sum(row.kind == "final" for row in rows)
    for row in rows:
        if row.query == query:
            row = row._replace(**changes)  # noqa: PLW2901 - the forged one
        fitted = fitting(ways.named(row.kind), row, states[-1], states[row.batch - 1], finals)
        names = ", ".join(f"{name} = ?" for name in Row._fields)
        sql(ledger, (f"UPDATE answers SET {names} WHERE query = ?", *fitted, row.query))
        states.append(state_after(fitted, states[-1]))
    seal_again(ledger)


def state_after(row, before):
    """State after a row, from the one before it."""
    return State.after(row, row.asked if row.charged else before.last_charge)


def fitting(way, row, state, began, finals):
    """The row that a guard would have written which told this."""
    terms, told = Terms(row.prior, way.unit(row.prior, state, None)), Told.parse(row.told)
    outcome = way.outcome(told, terms)
    if way.ends:
        terms = Terms(outcome.value, 0.0)
    low, high = way.interval(told, terms, way.length(began, finals if way.ends else 1))
    charged = int(outcome.charged)
    return row._replace(
        prior=terms.prior,
        threshold=terms.unit,
        value=outcome.value,
        low=float(low),
        high=float(high),
        charged=charged,
        charges=state.charges + charged,
        nats=outcome.nats,
        spent_nats=state.nats + outcome.nats,
        asked=state.asked + way.takes(told),
    )
