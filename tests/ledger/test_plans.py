"""Every statement about answers uses its index, however many rows there are and whatever the database knows of them."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

import pytest
import sqlalchemy as sa
from cases import for_each
from contracts.ledger_contract import append, make_row

from reusable_holdout.ledger.schema import Statements, statements
from reusable_holdout.ledger.storage import SqlLedger

_KEY, _DIGEST = "PRIMARY KEY", "INDEX sqlite_autoindex_answers_2"
PLANS = {
    "tail": [f"{_KEY} (epoch=?)", "INDEX answers_charged (epoch=? AND charged=?)"],
    "charged": ["COVERING INDEX answers_charged (epoch=? AND charged=?)"],
    "rows": [f"{_KEY} (epoch=? AND query>?)"],
    "rows_of_kind": [f"{_KEY} (epoch=?)"],
    "last_value": [f"{_KEY} (epoch=? AND query>?)"],
    "last_in_series": ["INDEX answers_in_series (epoch=? AND series=?)"],
    "digests": [f"COVERING {_DIGEST} (epoch=?)"],
    "seals": [f"{_KEY} (epoch=?)"],
    "seal_at": [f"{_KEY} (epoch=? AND query=?)"],
    "one": [f"{_DIGEST} (epoch=? AND digest=?)"],
    "chunk": [f"{_DIGEST} (epoch=? AND digest=?)"],
}
"""By statement, the index of each of its looks at the answers, and what it looks for in it."""

CHARGED = {"nothing": range(0), "twenty long ago": range(1, 21), "everything": range(1, 10**9)}


def chained(count, charged=range(0), series=""):
    """Rows of a ledger in which these were charged."""
    rows, before = [], None
    for number in range(1, count + 1):
        before = make_row(number, charged=int(number in charged), before=before, batch=1, series=series)
        rows.append(before)
    return rows


def plans_of(path, epoch=1):
    """By statement, how this SQLite would look at the answers."""
    sql, found = statements(sa.create_engine("sqlite://"), epoch), {}
    with closing(sqlite3.connect(path)) as connection:
        for name, text in vars(sql).items():
            if isinstance(text, str) and "FROM answers" in text:
                steps = connection.execute(f"EXPLAIN QUERY PLAN {text}", [b""] * text.count("?")).fetchall()
                assert not [step for *_, step in steps if "TEMP B-TREE" in step], name
                looks = [step for *_, step in steps if " answers" in step]
                found[name] = [re.sub(r"^SEARCH (TABLE )?answers USING ", "", look) for look in looks]
    return found


def analyzed(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ANALYZE")


@for_each("series", ["", "Blue"])
@for_each("charged", list(CHARGED))
@for_each("count", [1, 40, 3_000])
@for_each("known", ["nothing", "its rows", "an empty table", "one row"])
def test_sqlite_looks_at_answers_by_the_index_of_each_statement(
    tmp_path_factory, count, charged, series, known
):
    """Also when statistics are of a time when there were fewer rows, and make every index look the same."""
    path = tmp_path_factory.mktemp("ledger") / "guard.db"
    with closing(SqlLedger(path)) as ledger:
        ledger.create("{}")
        rows = chained(count, CHARGED[charged], series)
        if known == "an empty table":
            analyzed(path)
        append(ledger, rows[0])
        if known == "one row":
            analyzed(path)
        if rows[1:]:
            append(ledger, *(row._replace(batch=2) for row in rows[1:]))
        if known == "its rows":
            analyzed(path)
    assert plans_of(path) == PLANS


def test_a_statement_that_could_not_use_its_index_fails(tmp_path):
    """It is not run another way, which would read the whole ledger."""
    SqlLedger(tmp_path / "guard.db").close()
    with closing(sqlite3.connect(tmp_path / "guard.db")) as connection:
        connection.execute("DROP INDEX answers_charged")
    with pytest.raises(sqlite3.OperationalError, match="no such index"):
        plans_of(tmp_path / "guard.db")


def test_the_indexes_are_named_to_sqlite_alone():
    from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

    texts = [text for text in vars(Statements(PGDialect_psycopg(), 1)).values() if isinstance(text, str)]
    assert len([text for text in texts if "FROM answers" in text]) == len(PLANS)
    assert not [text for text in texts if "INDEXED" in text]


# ---- a last value, which no index finds


def values(ledger, *places):
    """Last values by kind and view, and how many steps the database took for them."""
    taken = []
    with ledger.transaction() as transaction:
        ledger._connection.driver_connection.set_progress_handler(lambda: taken.append(1), 1)
        found = [transaction.last_value(kind, view, "") for kind, view in places]
        ledger._connection.driver_connection.set_progress_handler(None, 0)
    return found, len(taken)


def test_a_last_value_is_looked_for_once_among_the_same_rows(tmp_path):
    with closing(SqlLedger(tmp_path / "guard.db")) as ledger:
        ledger.create("{}")
        append(ledger, *(row._replace(kind="step" if row.query == 7 else "check") for row in chained(2_000)))
        places = [("step", 0), ("step", 3), ("view", 0)]
        found, first = values(ledger, *places)
        again, later = values(ledger, *places)
        assert found == again == [0.9, None, None]
        assert first > 50 * later
        for query in (2_001, 2_002):
            append(ledger, make_row(query, kind="step", view=3)._replace(value=query / 4_000))
        found, third = values(ledger, *places)
        assert found == [0.9, 0.5005, None]
        assert third < 2 * later


def test_a_last_value_that_was_found_is_forgotten_with_the_rows_it_was_in(tmp_path):
    """A ledger that another copy was written over, page by page, goes on from what is there now."""
    with closing(SqlLedger(tmp_path / "guard.db")) as ledger:
        ledger.create("{}")
        append(ledger, make_row(1, kind="step"))
        assert values(ledger, ("step", 0))[0] == [0.9]
        with closing(sqlite3.connect(tmp_path / "guard.db")) as other:
            other.execute("DELETE FROM answers")
            other.commit()
        append(ledger, make_row(1))
        append(ledger, make_row(2))
        assert values(ledger, ("step", 0))[0] == [None]
