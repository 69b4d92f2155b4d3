"""Settings: kept in files that nobody else can read, and no secret on a command line."""

import pytest
from reusable_holdout_leaderboard.settings import Settings, checked_database, read_token

from reusable_holdout.errors import InputError


def test_settings_travel_through_a_file_that_nobody_else_can_read(tmp_path):
    settings = Settings(folder=tmp_path, database="postgresql://me:word@x/y", admin_digest="ab", slug="demo")
    path = tmp_path / "own" / "settings.json"
    settings.save(path)

    assert path.stat().st_mode & 0o777 == 0o600
    assert Settings.load(path) == settings
    assert "word" not in repr(settings)
    path.chmod(0o640)
    with pytest.raises(InputError, match="chmod 600"):
        Settings.load(path)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"folder": 1}', '{"folder": null, "slug": "x"}'])
def test_settings_of_something_else_are_refused(tmp_path, text):
    path = tmp_path / "settings.json"
    path.write_text(text)
    path.chmod(0o600)

    with pytest.raises(InputError, match="must hold settings"):
        Settings.load(path)


def test_a_command_line_holds_no_password():
    with_password = ("postgresql+psycopg://me:word@host/name", "postgresql://host/name?password=word")

    assert checked_database("postgresql+psycopg://me@host/name", secret=False)
    for url in with_password:
        with pytest.raises(InputError, match="no password") as refused:
            checked_database(url, secret=False)
        assert "word@" not in str(refused.value)
        assert checked_database(url, secret=True) == url
    for url in ("sqlite:///x.db", "nonsense", ""):
        with pytest.raises(InputError, match="postgresql"):
            checked_database(url, secret=True)


def test_a_token_is_read_from_a_file_that_nobody_else_can_read(tmp_path):
    path = tmp_path / "token"
    with pytest.raises(InputError, match="there is none"):
        read_token(path)
    path.write_text("rh_x\n")
    path.chmod(0o644)
    with pytest.raises(InputError, match="chmod 600"):
        read_token(path)
    path.chmod(0o600)
    assert read_token(path) == "rh_x"
    path.write_text("\n")
    with pytest.raises(InputError, match="must hold a token"):
        read_token(path)
