"""Backups of boards in use, and what becomes of them."""

import threading

import pytest
from reusable_holdout_leaderboard import Competition
from reusable_holdout_leaderboard.competition.backup import back_up, restore

from reusable_holdout import verify
from reusable_holdout.errors import InputError


@pytest.fixture
def held(folder, key_file, clock, closed_at_the_end):
    """A competition that a backup was restored to."""

    def at(place, slug="demo"):
        return closed_at_the_end(Competition.open(place, slug, key_file=key_file, clock=clock))

    return at


def test_a_backup_that_is_restored_is_the_same_competition(
    make_competition, add_team, sheet, fresh_labels_file, folder, tmp_path, held, key_file, clock
):
    competition = make_competition(fresh=fresh_labels_file)
    token = competition.add_team("Blue")
    team = competition.authenticate(token).id
    first = competition.submit(team, sheet(0.7, rows=900), filename="x.csv", claimed=0.7)
    manifest = back_up(folder, tmp_path / "backup", clock=clock)
    competition.submit(team, sheet(0.7, 1, rows=900), filename="y.csv", claimed=0.7)

    restore(tmp_path / "backup", tmp_path / "restored", key_file=key_file, clock=clock)

    assert manifest["competitions"] == {"demo": {"answers": 1}}
    again = held(tmp_path / "restored")
    assert again.authenticate(token).name == "Blue"
    assert again.submissions() == [first]
    assert again.status().answered == 1
    assert again.submit(team, sheet(0.7, rows=900), filename="x.csv").replayed
    assert again.submit(team, sheet(0.7, 2, rows=900), filename="z.csv", claimed=0.7).query == 2
    assert verify(tmp_path / "restored" / "demo" / "ledger.db").sound
    (event,) = [one for one in again.events() if one.kind == "restore"]
    assert event.detail == {"backup": "2026-03-01T12:00:00+00:00", "answers": 1}
    for path in (tmp_path / "restored").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_a_backup_of_a_board_in_use_holds_together(
    make_competition, add_team, sheet, folder, tmp_path, held, key_file
):
    competition = make_competition(queries=200)
    team = add_team(competition)
    ended = threading.Event()

    def send():
        for variant in range(150):  # before the questions are all asked, however long the backups take
            if ended.is_set():
                break
            competition.submit(team, sheet(0.7, variant), filename="x.csv", claimed=0.7)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        for number in range(5):
            back_up(folder, tmp_path / f"backup-{number}")
    finally:
        ended.set()
        thread.join()
    for number in range(5):
        restore(tmp_path / f"backup-{number}", tmp_path / f"restored-{number}", key_file=key_file)
        again = held(tmp_path / f"restored-{number}")
        again.settle(older_seconds=-1e9)
        scored = [one.query for one in again.submissions(limit=1000)]
        assert scored == list(range(1, again.status().answered + 1))


def test_all_competitions_of_a_folder_are_in_its_backup(make_competition, folder, tmp_path, held, key_file):
    make_competition()
    make_competition(slug="other")
    back_up(folder, tmp_path / "backup")
    restore(tmp_path / "backup", tmp_path / "restored", key_file=key_file)
    assert Competition.slugs(tmp_path / "restored") == ["demo", "other"]
    assert held(tmp_path / "restored", "other").slug == "other"


def test_a_backup_that_was_changed_or_is_incomplete_is_not_restored(competition, folder, tmp_path):
    backup = tmp_path / "backup"
    back_up(folder, backup)
    labels = backup / "demo" / "labels-1.parquet"
    content = labels.read_bytes()
    for change in (
        lambda: labels.write_bytes(content + b"x"),
        labels.unlink,
        (backup / "backup.json").unlink,
    ):
        change()
        with pytest.raises(InputError, match="a backup must"):
            restore(backup, tmp_path / "restored")
        assert not (tmp_path / "restored").exists()


def test_a_manifest_that_names_files_elsewhere_is_not_followed(competition, folder, tmp_path):
    backup = tmp_path / "backup"
    back_up(folder, backup)
    manifest = backup / "backup.json"
    manifest.write_text(manifest.read_text().replace('"board.db"', '"../competitions/board.db"'))
    with pytest.raises(InputError, match="missing or another"):
        restore(backup, tmp_path / "restored")


def test_nothing_is_overwritten(competition, folder, tmp_path):
    back_up(folder, tmp_path / "backup")
    with pytest.raises(InputError, match="already"):
        back_up(folder, tmp_path / "backup")
    with pytest.raises(InputError, match="may be newer"):
        restore(tmp_path / "backup", folder)
    with pytest.raises(InputError, match="there is none"):
        back_up(tmp_path / "nothing", tmp_path / "backup-2")
    assert sorted(one.name for one in tmp_path.iterdir() if "backup" in one.name) == ["backup"]
