"""Databases of earlier versions go on; those of later ones are refused."""

from pathlib import Path

import pytest
import sqlalchemy as sa
from reusable_holdout_leaderboard import Rules, StoreError
from reusable_holdout_leaderboard.store.names import key_of
from reusable_holdout_leaderboard.store.store import Store
from reusable_holdout_leaderboard.store.tables import METADATA, SCHEMA

from reusable_holdout.errors import InputError

DIGEST = b"\x07" * 32
FIRST = {
    "board_competitions": {
        "id": 1,
        "schema_version": 1,
        "slug": "demo",
        "rules": Rules(slug="demo", title="Demo").to_json(),
        "created_at": 1.0,
        "epoch": 1,
        "frozen": False,
        "blind": False,
        "revision": 3,
        "final": None,
    },
    "board_teams": {
        "id": 1,
        "competition_id": 1,
        "name": "Blue",
        "name_key": "blue",
        "token_digest": DIGEST,
        "created_at": 2.0,
    },
    "board_submissions": {
        "id": 1,
        "competition_id": 1,
        "epoch": 1,
        "team_id": 1,
        "digest": DIGEST,
        "name": "x.csv",
        "claimed": None,
        "prior": 0.5,
        "asked_at": 3.0,
        "tried_at": 3.0,
        "value": 0.75,
        "low": 0.625,
        "high": 0.875,
        "threshold": 0.05,
        "charged": True,
        "paid": True,
        "query": 1,
        "improved": True,
    },
    "board_standings": {
        "competition_id": 1,
        "epoch": 1,
        "team_id": 1,
        "submission_id": 1,
        "value": 0.75,
        "low": 0.625,
        "high": 0.875,
        "best_at": 3.0,
        "query": 1,
        "submissions": 1,
        "charges": 1,
    },
    "board_events": {
        "competition_id": 1,
        "revision": 1,
        "at": 1.0,
        "kind": "created",
        "team_id": None,
        "submission_id": None,
    },
}


def earlier(schema, location, rows):
    """A database as an earlier version left it."""
    engine = sa.create_engine(location if "://" in str(location) else f"sqlite:///{location}")
    statements = (Path(__file__).parent / f"schema-{schema}" / f"{engine.dialect.name}.sql").read_text()
    with engine.begin() as connection:
        for statement in statements.split(";\n")[:-1]:
            connection.exec_driver_sql(statement)
        for name, values in rows.items():
            names = ", ".join(values)
            connection.execute(
                sa.text(f"INSERT INTO {name} ({names}) VALUES (:{', :'.join(values)})"), values
            )
    engine.dispose()
    return location


@pytest.fixture
def first(tmp_path, database):
    """A database as version 0.1 left it, with a submission that was answered."""
    return earlier(1, tmp_path / "board.db" if database is None else database, FIRST)


@pytest.fixture
def second(tmp_path, database):
    """The same of the second schema, which had no sessions."""
    rows = {name: dict(values) for name, values in FIRST.items()}
    del rows["board_competitions"]["schema_version"]
    for name in ("board_teams", "board_submissions"):
        rows[name]["series"] = "Blue"
    return earlier(2, tmp_path / "board.db" if database is None else database, rows)


def columns_of(engine):
    inspector = sa.inspect(engine)
    return {
        name: {one["name"]: (str(one["type"]), one["nullable"]) for one in inspector.get_columns(name)}
        for name in inspector.get_table_names()
        if name in METADATA.tables
    }


def test_a_board_of_the_first_schema_goes_on_with_all_it_had(first):
    store = Store(first)
    row = store.competition("demo")
    assert (row.id, row.revision, row.rules.title) == (1, 3, "Demo")
    (best,) = store.standings(1, 1)
    assert (best.team, best.value, best.charges) == ("Blue", 0.75, 1)
    (submission,) = store.submissions(1)
    assert (submission.name, submission.value, submission.improved) == ("x.csv", 0.75, True)
    assert store.team_with(1, DIGEST)[0].name == "Blue"
    assert store.events(1)[0].detail is None
    store.change_rules(1, {"title": "Another"}, at=5.0)
    store.close()
    again = Store(first)
    assert again.competition("demo").rules.title == "Another"
    again.close()


def test_a_board_of_the_second_schema_goes_on_and_takes_sessions(second):
    store = Store(second)
    assert [one.name for one in store.teams(1)] == ["Blue"]
    assert [one.value for one in store.submissions(1)] == [0.75]
    store.begin_session(b"\x01" * 32, DIGEST, at=5.0, ends_at=6.0)
    assert store.team_of_session(1, b"\x01" * 32, at=5.5).name == "Blue"
    store.close()


def test_a_board_of_the_fourth_schema_keys_its_names_anew_and_of_two_alike_the_older_has_the_key(
    tmp_path, database
):
    rows = {name: dict(values) for name, values in FIRST.items()}
    del rows["board_competitions"]["schema_version"]
    for name in ("board_teams", "board_submissions"):
        rows[name]["series"] = "Blue"
    rows["board_teams"] |= {"name": "m", "name_key": "m"}
    location = earlier(4, tmp_path / "board.db" if database is None else database, rows)
    engine = sa.create_engine(f"sqlite:///{location}" if database is None else database)
    with engine.begin() as connection:
        younger = {"id": 2, "name": "rn", "name_key": "rn", "token_digest": b"\x08" * 32, "series": "rn"}
        connection.execute(sa.insert(METADATA.tables["board_teams"]).values(rows["board_teams"] | younger))
    store = Store(location)
    assert [one.name for one in store.teams(1)] == ["m", "rn"]
    with pytest.raises(InputError, match="looks the same"):
        store.add_team(1, "M", key_of("M"), b"\x09" * 32, at=5.0)
    assert len(store.form_secret()) == 32
    store.rename(1, 2, "other", key_of("other"), at=6.0)
    store.close()
    engine.dispose()


@pytest.mark.parametrize("schema", range(1, SCHEMA))
def test_a_migrated_board_has_the_columns_of_a_new_one(schema, tmp_path, database):
    location = earlier(schema, tmp_path / "board.db" if database is None else database, {})
    migrated = Store(location)
    migrated.close()
    engine = sa.create_engine(f"sqlite:///{location}" if database is None else database)
    found = columns_of(engine)
    with engine.begin() as connection:
        METADATA.drop_all(connection)
    fresh = Store(location)
    fresh.close()
    assert found == columns_of(engine)
    assert set(found) == set(METADATA.tables)
    engine.dispose()


def test_a_board_of_a_later_schema_is_refused_and_left_as_it_is(tmp_path, database):
    location = tmp_path / "board.db" if database is None else database
    store = Store(location)
    with store.database.writing() as connection:
        connection.exec_driver_sql("UPDATE board_schema SET version = 99")
    store.close()
    with pytest.raises(StoreError, match=f"from 1 to {SCHEMA}; it has 99.*nothing was changed"):
        Store(location)
    with store.database.reading() as connection:
        assert connection.exec_driver_sql("SELECT version FROM board_schema").scalar_one() == 99
    store.close()
