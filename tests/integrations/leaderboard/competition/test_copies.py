"""Copies of a board: backups, restored files, and witnesses that notice an older copy."""

import contextlib
import shutil
import threading

import httpx
import pytest
from board_servers import PATIENCE_SECONDS, served
from cases import refuses
from reusable_holdout_leaderboard import Competition, StoreError
from reusable_holdout_leaderboard.competition.backup import back_up, restore
from reusable_holdout_leaderboard.settings import Settings

from reusable_holdout import ReusableHoldout, verify
from reusable_holdout.errors import InputError, RolledBackError

# ---- board and ledger of different moments


@pytest.fixture
def places(folder):
    """Files of board and ledger."""
    return {"board": folder / "board.db", "ledger": folder / "demo" / "ledger.db"}


@pytest.fixture
def begun(make_competition, send):
    """A competition with one answer; closed."""
    competition = make_competition()
    send(competition, "Blue", 0.7)
    competition.close()


def copy(path, to):
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
        (to / name).unlink(missing_ok=True)
        if (path.parent / name).exists():
            shutil.copy2(path.parent / name, to / name)


@pytest.fixture
def put_back(begun, places, reopen, send, tmp_path):
    """Copy some files, answer one more submission, and put the copies back."""

    def act(*names):
        for name in names:
            copy(places[name], tmp_path)
        competition = reopen()
        send(competition, "Blue", 0.7, 1)
        competition.close()
        for name in names:
            copy(tmp_path / places[name].name, places[name].parent)

    return act


def test_a_copy_of_the_ledger_with_other_answers_is_refused(
    put_back, places, reopen, key_file, labels, predictions
):
    put_back("ledger")
    with ReusableHoldout.open(places["ledger"], None, labels[:600], key=key_file) as guard:
        for variant in (2, 3, 4):
            guard.evaluate(predictions(0.7, variant), prior=0.7)
    refuses(RolledBackError, "or has other answers", reopen)


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("ledger", RolledBackError, r"number 2 of.*number 1 of.*nothing is answered.*never refilled"),
        ("board", StoreError, r"ledger is at number 2.*older board.*board restore"),
    ],
)
def test_an_older_copy_is_refused(put_back, reopen, name, error, words):
    put_back(name)
    refuses(error, words, reopen)


def test_both_of_one_moment_go_on(put_back, reopen):
    put_back("board", "ledger")
    assert reopen().status().answered == 1


def test_the_ledger_of_another_competition_is_refused(begun, make_competition, reopen, folder):
    make_competition(slug="other").close()
    copy(folder / "other" / "ledger.db", folder / "demo")
    refuses(RolledBackError, "", reopen)


def test_an_answer_that_is_not_recorded_yet_is_no_disagreement(
    make_competition, add_team, reopen, worker, sheet, database
):
    team = add_team(make_competition(database=database))
    worker(team, [sheet(0.7)], database=database, killed="after the guard").wait()
    again = reopen(database=database)
    assert again.status().answered == 1
    assert again.settle(older_seconds=-1e9) == 1
    assert [one.submissions for one in again.board()] == [1]


# ---- backups


@pytest.fixture
def open_at(key_file, clock, closed_at_the_end):
    """Open a competition in another folder."""

    def at(place, slug="demo"):
        return closed_at_the_end(Competition.open(place, slug, key_file=key_file, clock=clock))

    return at


def test_a_restored_backup_is_the_same_competition(
    make_competition, send_whole, fresh_labels_file, folder, tmp_path, open_at, key_file, clock
):
    competition = make_competition(fresh=fresh_labels_file)
    make_competition(slug="other")
    token = competition.add_team("Blue")
    first = send_whole(competition, "Blue", 0.7)
    manifest = back_up(folder, tmp_path / "backup", clock=clock)
    send_whole(competition, "Blue", 0.7, variant=1)
    restore(tmp_path / "backup", tmp_path / "restored", key_file=key_file, clock=clock)
    assert manifest["competitions"] == {"demo": {"answers": 1}, "other": {"answers": 0}}
    again = open_at(tmp_path / "restored")
    assert again.authenticate(token).name == "Blue"
    assert (again.submissions(), again.status().answered) == ([first], 1)
    assert send_whole(again, "Blue", 0.7).replayed
    assert send_whole(again, "Blue", 0.7, variant=2).query == 2
    assert verify(tmp_path / "restored" / "demo" / "ledger.db").sound
    (event,) = [one for one in again.events() if one.kind == "restore"]
    assert event.detail == {"backup": "2026-03-01T12:00:00+00:00", "answers": 1}
    assert open_at(tmp_path / "restored", "other").slug == "other"
    for path in (tmp_path / "restored").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_backups_of_a_board_in_use_are_consistent(
    make_competition, send, add_team, folder, tmp_path, open_at, key_file
):
    competition = make_competition(queries=200, submissions_per_team=200)
    add_team(competition)
    ended = threading.Event()

    def run():
        for variant in range(150):  # ends before all questions are asked
            if ended.is_set():
                break
            send(competition, "Blue", 0.7, variant)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        for number in range(5):
            back_up(folder, tmp_path / f"backup-{number}")
    finally:
        ended.set()
        thread.join()
    for number in range(5):
        restore(tmp_path / f"backup-{number}", tmp_path / f"restored-{number}", key_file=key_file)
        again = open_at(tmp_path / f"restored-{number}")
        again.settle(older_seconds=-1e9)
        scored = [one.query for one in again.submissions(limit=1000)]
        assert scored == list(range(1, again.status().answered + 1))


def test_a_changed_or_incomplete_backup_is_not_restored(competition, folder, tmp_path):
    backup = tmp_path / "backup"
    back_up(folder, backup)
    labels, manifest = backup / "demo" / "labels-1.parquet", backup / "backup.json"
    content, text = labels.read_bytes(), manifest.read_text()
    for change, words in (
        (lambda: labels.write_bytes(content + b"x"), "must be unchanged"),
        (labels.unlink, "must be unchanged"),
        (lambda: manifest.write_text(text.replace('"board.db"', '"../competitions/board.db"')), "unchanged"),
        (lambda: manifest.write_text(text.replace('"schema": 6', '"schema": 5')), "must have format 6"),
        (manifest.unlink, "must have a readable backup.json"),
    ):
        change()
        with pytest.raises(InputError, match=f"a backup {'' if 'must' in words else 'must be '}{words}"):
            restore(backup, tmp_path / "restored")
        assert not (tmp_path / "restored").exists()


def test_a_backup_overwrites_nothing(competition, folder, tmp_path):
    back_up(folder, tmp_path / "backup")
    refuses(InputError, "already", back_up, folder, tmp_path / "backup")
    refuses(InputError, "may be newer", restore, tmp_path / "backup", folder)
    refuses(InputError, "there is none", back_up, tmp_path / "nothing", tmp_path / "backup-2")
    assert sorted(one.name for one in tmp_path.iterdir() if "backup" in one.name) == ["backup"]


# ---- witnesses


@pytest.fixture
def witnessed(make_competition, tmp_path):
    """A competition with a witness: a file outside its folder."""
    place = tmp_path / "elsewhere" / "board.heads"
    place.parent.mkdir()
    return make_competition(witness=str(place))


@pytest.mark.parametrize("watched", [True, False])
def test_an_older_copy_of_the_whole_folder_is_noticed_only_by_a_witness(
    watched, request, make_competition, folder, reopen, send, tmp_path
):
    first = request.getfixturevalue("witnessed") if watched else make_competition()
    send(first, "Blue", 0.9)
    first.close()
    shutil.copytree(folder, tmp_path / "kept")
    with contextlib.closing(reopen()) as again:
        send(again, "Blue", 0.9, 2)
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "kept", folder)
    if watched:
        refuses(RolledBackError, "put the newest copy back", reopen)
    else:
        assert (reopen().status().answered, reopen().witness) == (1, "")


def test_a_running_server_answers_nothing_once_its_witness_knows_of_more(
    witnessed, folder, key_file, sheet, send, tmp_path
):
    token = witnessed.add_team("Blue")
    send(witnessed, "Blue", 0.9, 1)
    witnessed.close()
    shutil.copytree(folder, tmp_path / "kept")

    def submit(server, variant):
        return httpx.post(
            f"{server.url}/api/v1/submissions",
            files={"file": ("x.csv", sheet(0.9, variant))},
            data={"claimed": "0.9"},
            headers={"Authorization": f"Bearer {token}"},
            timeout=PATIENCE_SECONDS,
        )

    settings = {"key_file": key_file, "answer_seconds": 0.0}
    with (
        served(Settings(folder=tmp_path / "kept", **settings)) as older,
        served(Settings(folder=folder, **settings)) as newer,
    ):
        assert submit(older, 1).status_code == 201  # opens it; nothing new was asked
        assert submit(newer, 2).status_code == 201
        refused = submit(older, 3)
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "rolled_back")
    assert "put the newest copy back" in refused.json()["error"]["message"]
    assert str(tmp_path) not in refused.text


def test_an_older_backup_of_a_witnessed_board_is_not_restored(witnessed, folder, key_file, send, tmp_path):
    send(witnessed, "Blue", 0.9, 1)
    back_up(folder, tmp_path / "backup")
    send(witnessed, "Blue", 0.9, 2)
    with pytest.raises(RolledBackError, match="a budget is never refilled"):
        restore(tmp_path / "backup", tmp_path / "again", key_file=key_file)
    assert not (tmp_path / "again").exists()
    back_up(folder, tmp_path / "newest")
    restore(tmp_path / "newest", tmp_path / "again", key_file=key_file)


def test_a_board_can_be_given_a_witness_later_and_every_label_set_keeps_it(
    make_competition, folder, key_file, send, tmp_path, next_labels_file
):
    first, place = make_competition(), str(tmp_path / "late.heads")
    send(first, "Blue", 0.9, 1)
    first.close()
    with Competition.open(folder, key_file=key_file, witness=place) as watched:
        assert watched.witness == place
        send(watched, "Blue", 0.9, 2)
        shutil.copytree(folder, tmp_path / "kept")
        watched.rotate(next_labels_file, early=True)
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "kept", folder)
    refuses(RolledBackError, "", Competition.open, folder, key_file=key_file, witness=place)


@pytest.mark.parametrize("place", ["heads", "demo/heads", "git:.", "git:./demo#board"])
def test_a_witness_in_the_folder_itself_is_refused(folder, make_competition, place, monkeypatch):
    folder.mkdir()
    monkeypatch.chdir(folder)
    refuses(InputError, "must be outside its folder", make_competition, witness=place)
    assert not (folder / "board.db").exists()
