"""Every statement about answers uses its index, however many rows there are and whatever the database knows of them."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

import pytest
from cases import for_each
from contracts.ledger_contract import append, make_row

from reusable_holdout.ledger import SqlLedger, postgresql, sqlite
from reusable_holdout.ledger.schema import CHUNK

_KEY, _DIGEST = "PRIMARY KEY", "INDEX sqlite_autoindex_answers_2"
PLANS = {
    "look": [
        f"{_KEY} (epoch=? AND query=?) LEFT-JOIN",
        f"{_KEY} (epoch=?)",
        f"{_KEY} (epoch=? AND query=?) LEFT-JOIN",
        "COVERING INDEX answers_charged (epoch=? AND charged=?)",
        f"{_DIGEST} (epoch=? AND digest=?) LEFT-JOIN",
    ],
    "charged": ["COVERING INDEX answers_charged (epoch=? AND charged=?)"],
    "rows": [f"{_KEY} (epoch=? AND query>?)"],
    "digests": [f"COVERING {_DIGEST} (epoch=?)"],
    "seals": [f"{_KEY} (epoch=?)"],
    "seal_at": [f"{_KEY} (epoch=? AND query=?)"],
    **{f"found {count}": [f"{_DIGEST} (epoch=? AND digest=?)"] for count in (1, 2, CHUNK)},
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


def statements(sql):
    """Every statement about answers that reads, by its name; with one digest and with many."""
    found = {name: text for name, text in sql._asdict().items() if "FROM answers" in text}
    several = found.pop("found")
    return found | {
        f"found {count}": several.format(", ".join([sql.digest] * count)) for count in (1, 2, CHUNK)
    }


def plans_of(path):
    """By statement, how this SQLite would look at the answers."""
    found = {}
    with closing(sqlite3.connect(path)) as connection:
        for name, text in statements(sqlite.STATEMENTS).items():
            steps = connection.execute(f"EXPLAIN QUERY PLAN {text}", [b""] * text.count("?")).fetchall()
            assert not [step for *_, step in steps if "TEMP B-TREE" in step], name
            looks = [step for *_, step in steps if re.search(r" (answers|last|charge|found)\b", step)]
            found[name] = [re.sub(r"^SEARCH \w+ USING ", "", look) for look in looks]
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
    texts = statements(postgresql.STATEMENTS)
    assert texts.keys() == PLANS.keys()
    assert not [text for text in texts.values() if "INDEXED" in text or "?" in text]
