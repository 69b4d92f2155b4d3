"""The tables, which a ledger keeps for ever, and the plans by which SQLite runs each statement about answers."""

import re
import sqlite3
from contextlib import closing

import pytest
from cases import for_each, refuses
from contracts.ledger_contract import append, make_row
from golden.asking import FOLDER, goldens

from reusable_holdout.ledger import SqlLedger, postgresql
from reusable_holdout.ledger import sqlite as sqlite_
from reusable_holdout.ledger.schema import CHUNK, SCHEMA

KEY, DIGEST = "PRIMARY KEY", "INDEX sqlite_autoindex_answers_2"
ONE = f"{KEY} (epoch=? AND query=?)"
PLANS = {
    "look": [
        *(f"{ONE} LEFT-JOIN", f"{KEY} (epoch=?)"),
        *(f"{ONE} LEFT-JOIN", "COVERING INDEX answers_charged (epoch=? AND charged=?)"),
        f"{DIGEST} (epoch=? AND digest=?) LEFT-JOIN",
    ],
    "charged": ["COVERING INDEX answers_charged (epoch=? AND charged=?)"],
    "rows": [f"{KEY} (epoch=? AND query>?)"],
    "digests": [f"COVERING {DIGEST} (epoch=?)"],
    "seals": [f"{KEY} (epoch=?)"],
    "seal_at": [ONE],
    **{f"found {count}": [f"{DIGEST} (epoch=? AND digest=?)"] for count in (1, 2, CHUNK)},
}
"""By statement, the index of each of its looks at the answers, and the columns it looks for."""

CHARGED = {"nothing": range(0), "twenty long ago": range(1, 21), "everything": range(1, 10**9)}


def sql(path, statement, parameters=()):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(statement, parameters).fetchall()


# ---- tables


@pytest.mark.parametrize("version", ["0.2.0", "0.2.1"])
def test_new_ledgers_have_to_the_byte_the_tables_that_released_versions_made(tmp_path, version):
    SqlLedger(tmp_path / "guard.db").close()
    (golden,) = [one for one in goldens() if one.name == f"{version}/accuracy"]
    shapes = [
        set(sql(path, "SELECT type, name, tbl_name, sql FROM sqlite_master"))
        for path in (tmp_path / "guard.db", golden.copied(tmp_path / "golden"))
    ]
    assert shapes[0] == shapes[1]
    dump = (FOLDER / version / "accuracy" / "postgresql.sql").read_text()
    made = {" ".join(text.split()) for text in dump.split(";\n") if text.startswith("CREATE")}
    ours = [" ".join(text.replace('"', "").split()) for text in postgresql.STATEMENTS.tables]
    assert (set(ours), len(ours), SCHEMA) == (made, 4, 5)


# ---- plans


def chained(count, charged=range(0), series=""):
    """Rows of a ledger in which these were charged."""
    rows, before = [], None
    for number in range(1, count + 1):
        before = make_row(number, charged=int(number in charged), before=before, batch=1, series=series)
        rows.append(before)
    return rows


def statements(database):
    """Every statement about answers that reads, by its name; with one digest and with many."""
    found = {name: text for name, text in database._asdict().items() if "FROM answers" in text}
    several = found.pop("found")
    return found | {f"found {n}": several.format(", ".join([database.digest] * n)) for n in (1, 2, CHUNK)}


def plans_of(path):
    """By statement, how this SQLite would look at the answers."""
    found = {}
    for name, text in statements(sqlite_.STATEMENTS).items():
        steps = sql(path, f"EXPLAIN QUERY PLAN {text}", [b""] * text.count("?"))
        assert not [step for *_, step in steps if "TEMP B-TREE" in step], name
        looks = [step for *_, step in steps if re.search(r" (answers|last|charge|found)\b", step)]
        found[name] = [re.sub(r"^SEARCH \w+ USING ", "", look) for look in looks]
    return found


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
        first, *others = chained(count, CHARGED[charged], series)
        for now, rows in (
            ("an empty table", [first]),
            ("one row", [row._replace(batch=2) for row in others]),
        ):
            if known == now:
                sql(path, "ANALYZE")
            append(ledger, *rows)
        if known == "its rows":
            sql(path, "ANALYZE")
    assert plans_of(path) == PLANS


def test_a_statement_that_could_not_use_its_index_fails(tmp_path):
    """It is not run another way, which would read the whole ledger."""
    SqlLedger(tmp_path / "guard.db").close()
    sql(tmp_path / "guard.db", "DROP INDEX answers_charged")
    refuses(sqlite3.OperationalError, "no such index", plans_of, tmp_path / "guard.db")


def test_the_indexes_are_named_to_sqlite_alone():
    texts = statements(postgresql.STATEMENTS)
    assert texts.keys() == PLANS.keys()
    assert not [text for text in texts.values() if "INDEXED" in text or "?" in text]
