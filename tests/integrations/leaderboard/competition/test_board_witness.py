"""A board with a witness: an older copy of its whole folder is refused, when it is opened and when it is asked."""

import contextlib
import shutil

import httpx
import pytest
from board_servers import PATIENCE_SECONDS, served
from reusable_holdout_leaderboard import Competition, Rules
from reusable_holdout_leaderboard.competition.backup import back_up, restore
from reusable_holdout_leaderboard.settings import Settings

from reusable_holdout.errors import InputError, RolledBackError

RULES = {"slug": "demo", "title": "Demo", "policy": "thresholdout", "queries": 50, "tolerance": 0.3}


@pytest.fixture
def witnessed(folder, labels_file, key_file, tmp_path):
    """A competition that a file outside its folder remembers."""
    place = tmp_path / "elsewhere" / "board.heads"
    place.parent.mkdir()
    rules = Rules(**RULES, vacuous=True)
    with Competition.create(folder, rules, labels_file, key_file=key_file, witness=str(place)) as made:
        yield made


def ask(competition, sheet, variant):
    """One more answer, to a team that is made if it is not there."""
    team = next(iter(competition.teams()), None) or competition.authenticate(competition.add_team("Blue"))
    return competition.submit(team.id, sheet(0.9, variant), filename="x.csv", claimed=0.9)


def test_an_older_copy_of_the_whole_folder_is_refused_when_it_is_opened(
    witnessed, folder, reopen, sheet, tmp_path
):
    ask(witnessed, sheet, 1)
    witnessed.close()
    shutil.copytree(folder, tmp_path / "kept")
    with contextlib.closing(reopen()) as again:
        ask(again, sheet, 2)
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "kept", folder)
    with pytest.raises(RolledBackError, match="put the newest copy back"):
        reopen()


def test_without_a_witness_the_same_copy_goes_unnoticed(make_competition, folder, reopen, sheet, tmp_path):
    first = make_competition()
    ask(first, sheet, 1)
    first.close()
    shutil.copytree(folder, tmp_path / "kept")
    with contextlib.closing(reopen()) as again:
        ask(again, sheet, 2)
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "kept", folder)
    assert reopen().status().answered == 1
    assert reopen().witness == ""


def test_a_running_server_answers_nothing_once_its_witness_knows_of_more(
    witnessed, folder, key_file, sheet, tmp_path
):
    token = witnessed.add_team("Blue")
    ask(witnessed, sheet, 1)
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
        assert submit(older, 1).status_code == 201  # which opens it; nothing new was asked
        assert submit(newer, 2).status_code == 201
        refused = submit(older, 3)
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "rolled_back")
    assert "put the newest copy back" in refused.json()["error"]["message"]
    assert str(tmp_path) not in refused.text


def test_an_older_backup_of_a_witnessed_board_is_not_restored(witnessed, folder, key_file, sheet, tmp_path):
    ask(witnessed, sheet, 1)
    back_up(folder, tmp_path / "backup")
    ask(witnessed, sheet, 2)
    with pytest.raises(RolledBackError, match="a budget is never refilled"):
        restore(tmp_path / "backup", tmp_path / "again", key_file=key_file)
    assert not (tmp_path / "again").exists()
    back_up(folder, tmp_path / "newest")
    restore(tmp_path / "newest", tmp_path / "again", key_file=key_file)


def test_a_board_that_had_no_witness_can_be_given_one_and_every_worker_and_label_set_keeps_it(
    make_competition, folder, key_file, sheet, tmp_path, next_labels_file
):
    first, place = make_competition(), str(tmp_path / "late.heads")
    ask(first, sheet, 1)
    first.close()
    with Competition.open(folder, key_file=key_file, witness=place) as watched:
        assert watched.witness == place
        ask(watched, sheet, 2)
        shutil.copytree(folder, tmp_path / "kept")
        watched.rotate(next_labels_file, early=True)
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "kept", folder)
    with pytest.raises(RolledBackError):
        Competition.open(folder, key_file=key_file, witness=place)


@pytest.mark.parametrize("place", ["heads", "demo/heads", "git:.", "git:./demo#board"])
def test_a_witness_in_the_folder_itself_is_refused(folder, labels_file, key_file, place, monkeypatch):
    folder.mkdir()
    monkeypatch.chdir(folder)
    with pytest.raises(InputError, match="must lie outside its folder"):
        Competition.create(
            folder, Rules(**RULES, vacuous=True), labels_file, key_file=key_file, witness=place
        )
    assert not (folder / "board.db").exists()
