"""The tables: a ledger holds them for ever, so another shape needs another schema number."""

import sqlite3
from contextlib import closing

import pytest
from golden.asking import FOLDER, goldens

from reusable_holdout.ledger import SqlLedger, postgresql
from reusable_holdout.ledger.schema import SCHEMA

GOLDENS = {golden.name: golden for golden in goldens() if golden.folder.name == "accuracy"}


def shape(path):
    with closing(sqlite3.connect(path)) as connection:
        return set(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall())


@pytest.mark.parametrize("name", GOLDENS)
def test_a_new_file_has_to_the_byte_the_tables_that_released_versions_made(tmp_path, name):
    SqlLedger(tmp_path / "guard.db").close()
    assert shape(tmp_path / "guard.db") == shape(GOLDENS[name].copied(tmp_path / "golden"))
    assert SCHEMA == 5


@pytest.mark.parametrize("dump", sorted(FOLDER.glob("*/accuracy/postgresql.sql")), ids=str)
def test_a_servers_tables_are_those_that_released_versions_made(dump):
    made = {" ".join(text.split()) for text in dump.read_text().split(";\n") if text.startswith("CREATE")}
    ours = {" ".join(text.replace('"', "").split()) for text in postgresql.STATEMENTS.tables}
    assert ours == made
    assert len(ours) == 4
