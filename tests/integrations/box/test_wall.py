"""What a box refuses to start with, or beside: others' files, links, sockets and code; and how it is started."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from box_servers import (
    AGENT,
    BOX,
    OWNER,
    STRANGER,
    command_of,
    environment,
    interpreter,
    run_as,
    running,
    shared_folder,
    why_no_users,
)
from reusable_holdout_box import wall
from reusable_holdout_box.wall import WallError, check_code, check_place, check_private

ROWS = 400

_users = pytest.mark.skipif(bool(why_no_users()), reason=why_no_users())


def users(test):
    """It starts processes as other users, which takes long."""
    return pytest.mark.long(*BOX, "examples/box")(_users(test))


# ---- as one user


def test_a_folder_that_others_may_read_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    tmp_path.chmod(0o700)
    (tmp_path / "file").chmod(0o600)
    check_private(tmp_path)
    for path, mode in (
        (tmp_path, 0o750),
        (tmp_path, 0o701),
        (tmp_path / "file", 0o640),
        (tmp_path / "file", 0o602),
    ):
        before = path.stat().st_mode
        path.chmod(mode)
        with pytest.raises(WallError, match="and to nobody else"):
            check_private(tmp_path)
        path.chmod(before)


def test_links_and_second_names_are_refused(tmp_path):
    folder = tmp_path / "private"
    folder.mkdir(mode=0o700)
    (tmp_path / "file").write_text("x")
    (tmp_path / "file").chmod(0o600)
    (folder / "link").symlink_to(tmp_path / "file")
    with pytest.raises(WallError, match="be no link"):
        check_private(folder)
    (folder / "link").unlink()
    (folder / "link").hardlink_to(tmp_path / "file")
    with pytest.raises(WallError, match="must have one name; it has 2"):
        check_private(folder)
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(WallError, match="be no link"):
        check_private(tmp_path / "link")


def test_places_that_others_could_exchange_are_refused(tmp_path):
    inner = tmp_path / "outer" / "inner"
    inner.mkdir(parents=True, mode=0o755)
    check_place(inner, "it")
    (tmp_path / "outer").chmod(0o777)
    with pytest.raises(WallError, match="may be written to by others"):
        check_place(inner, "it")
    (tmp_path / "outer").chmod(0o1777)  # as /tmp: what is ours in it stays
    check_place(inner, "it")
    inner.chmod(0o1777)  # but the folder itself others could make it in before
    with pytest.raises(WallError, match="may be written to by others"):
        check_place(inner, "it")
    inner.chmod(0o755)
    (tmp_path / "link").symlink_to(tmp_path / "outer")
    check_place(tmp_path / "link" / "inner", "it")
    (tmp_path / "outer").chmod(0o777)
    with pytest.raises(WallError, match="may be written to by others"):
        check_place(tmp_path / "link" / "inner", "it")


def test_code_that_is_imported_later_is_looked_at(monkeypatch):
    looked = []
    monkeypatch.setattr(wall, "_weak", lambda path, **_: looked.append(path) or "")
    check_code()
    assert set(Path(wall.__file__).resolve().parents[1].rglob("*.py")) <= set(looked)


def test_code_that_others_could_change_is_refused(tmp_path):
    check_code([str(tmp_path), str(tmp_path / "none")])
    file = tmp_path / "module.py"
    file.write_text("")
    check_code([str(file)])
    file.chmod(0o666)
    with pytest.raises(WallError, match="code that the box imports must be its own or root's"):
        check_code([str(file)])
    tmp_path.chmod(0o777)
    with pytest.raises(
        WallError, match="code that the box imports must lie where no other user can exchange it"
    ):
        check_code([str(tmp_path)])


# ---- as several


@pytest.fixture
def home():
    """A folder of the box's user, with labels in it, in one that all can pass."""
    with shared_folder() as folder:
        place = folder / "home"
        place.mkdir()
        labels = np.random.default_rng(0).integers(0, 2, ROWS)
        (place / "labels.csv").write_text("y\n" + "".join(f"{one}\n" for one in labels))
        for one in (place, place / "labels.csv"):
            os.chown(one, OWNER, OWNER)
        yield place


def box(home, action, *more, uid=OWNER, **environment_):
    return run_as(
        uid, "-m", "reusable_holdout", "box", action, home / "box", *more, folder=home, **environment_
    )


def made(home, *more):
    plan = ("--queries", 50, "--charges", 5, "--vacuous", *more)
    done = box(home, "init", "--labels", home / "labels.csv", *plan)
    assert done.returncode == 0, done.stderr


def started(home, *more, uid=OWNER):
    return running(
        *(uid, "-m", "reusable_holdout", "box", "run", home / "box", *more),
        socket=home / "box" / "socket",
        log=home.parent / "log",
    )


ASK = """
import sys, numpy as np
from reusable_holdout_box import RemoteHoldout
with RemoteHoldout(sys.argv[1], patience_seconds=1.0) as guard:
    print(guard.evaluate_predictions(np.zeros(400, dtype=int), prior=0.5), guard.queries_left)
"""


def ask(home, uid=AGENT):
    return run_as(uid, "-c", ASK, f"unix://{home / 'box' / 'socket'}", folder=home.parent)


@users
def test_all_that_is_private_belongs_to_its_user_alone(home):
    made(home)
    private = home / "box" / "private"
    assert (private.stat().st_mode & 0o777, (home / "box").stat().st_mode & 0o777) == (0o700, 0o711)
    assert {one.name for one in private.iterdir()} >= {
        "labels.csv",
        "guard.db",
        "guard.db.key",
        "guard.db.heads",
    }
    assert {(one.stat().st_mode & 0o777, one.stat().st_uid) for one in private.iterdir()} == {(0o600, OWNER)}


@users
def test_who_may_ask_is_answered_and_others_are_not(home):
    made(home)
    with started(home, "--peer-uid", AGENT):
        asked = ask(home)
        assert asked.returncode == 0, asked.stderr
        assert asked.stdout.endswith(" 49\n")
        other = ask(home, STRANGER)
        assert f"user {STRANGER} may not ask this box" in other.stderr
    assert (home.parent / "log").read_text().count(f"refused user {STRANGER}") == 1
    with started(home):  # for its own group
        assert "Permission denied" in ask(home).stderr
    assert not (home / "box" / "socket").exists()


@users
def test_it_ends_when_it_is_told_to_and_begins_again_after_it_was_killed(home):
    made(home)
    with started(home, "--mode", "666") as process:
        assert ask(home).returncode == 0
        second = box(home, "run")
        assert "another one runs" in second.stderr
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert (home / "box" / "socket").is_socket()  # which it left
    with started(home, "--mode", "666"):
        assert "replayed" in ask(home).stdout
        done = box(home, "status", "--json", uid=AGENT)
        assert '"queries_left": 49' in done.stdout


@users
def test_a_box_is_not_run_by_another_user_nor_where_others_could_change_it(home):
    made(home)
    assert box(home, "run", uid=AGENT).returncode == 1
    private = home / "box" / "private"
    (private / "labels.csv").chmod(0o644)
    assert "must belong to the user that runs the box, and to nobody else" in box(home, "run").stderr
    (private / "labels.csv").chmod(0o600)
    (home / "box").chmod(0o777)
    assert "no other user can exchange it" in box(home, "run").stderr
    (home / "box").chmod(0o711)
    os.chown(private / "guard.db.key", AGENT, AGENT)
    assert f"it is of user {AGENT}" in box(home, "run").stderr


@users
def test_a_folder_of_code_that_others_could_change_is_refused(home):
    made(home)
    theirs = home.parent / "theirs"
    theirs.mkdir()
    os.chown(theirs, AGENT, AGENT)
    places = f"{environment()['PYTHONPATH']}:{theirs}"
    assert "code that the box imports must lie" in box(home, "run", PYTHONPATH=places).stderr


@contextlib.contextmanager
def squatted(path, how):
    """Something of the agent's where a socket is to be."""
    door = socket.socket(socket.AF_UNIX)
    if how == "a socket":
        door.bind(str(path))
        door.listen()
    elif how == "a link":
        path.symlink_to("/etc/passwd")
    elif how == "a link to nothing":
        path.symlink_to(path.parent / "none")
    elif how == "a file":
        path.write_text("x")
    else:
        path.mkdir()
    os.chown(path, AGENT, AGENT, follow_symlinks=False)
    with door:
        yield


@users
@pytest.mark.parametrize("how", ["a socket", "a link", "a link to nothing", "a file", "a folder"])
def test_a_place_that_was_taken_is_refused(home, how):
    made(home)
    place = home / "box" / "socket"
    with squatted(place, how):
        refused = box(home, "run")
    assert "must be free" in refused.stderr
    assert place.lstat().st_uid == AGENT  # nothing of another user is removed


@users
def test_a_socket_in_a_folder_of_everybody_is_refused(home):
    made(home)
    open_to_all = home.parent / "all"
    open_to_all.mkdir()
    for mode in (0o777, 0o1777):
        open_to_all.chmod(mode)
        assert (
            "a socket must lie where no other user can"
            in box(home, "run", "--socket", open_to_all / "s").stderr
        )
    open_to_all.chmod(0o755)
    os.chown(open_to_all, AGENT, AGENT)
    assert (
        "a socket must lie where no other user can" in box(home, "run", "--socket", open_to_all / "s").stderr
    )


@users
def test_the_plain_start_that_is_shown_works(home):
    shown = Path(__file__).parent.parent.parent / "examples" / "box" / "start.sh"
    settings = {
        "BOX": str(home / "box"),
        "BOX_UID": str(OWNER),
        "AGENT_UID": str(AGENT),
        "LABELS": str(home / "labels.csv"),
        "PYTHON": str(interpreter()),
        "PLAN": "--queries 50 --charges 5 --vacuous",
    }
    with subprocess.Popen(
        ["sh", shown], env=environment(**settings), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        deadline = time.monotonic() + 60
        while (
            not (home / "box" / "socket").exists() and process.poll() is None and time.monotonic() < deadline
        ):
            time.sleep(0.05)
        try:
            asked = ask(home)
            assert asked.returncode == 0, asked.stderr
        finally:
            process.terminate()
    assert (home / "box" / "private").stat().st_uid == OWNER


KEEP_ASKING = """
import json, sys, numpy as np
from reusable_holdout_box import RemoteHoldout
rng = np.random.default_rng(int(sys.argv[2]))
with RemoteHoldout(sys.argv[1], patience_seconds=30.0) as guard:
    for _ in range(40):
        seed = int(rng.integers(2**32))
        guess = np.random.default_rng(seed).integers(0, 2, 400)
        answer = guard.evaluate_predictions(guess, prior=0.5)
        print(json.dumps([seed, answer.query, answer.value, answer.charged]), flush=True)
"""


@users
def test_a_box_that_is_killed_in_mid_answer_loses_and_doubles_nothing(home):
    made(home, "--queries", 500)
    url, first = f"unix://{home / 'box' / 'socket'}", []
    with subprocess.Popen(
        command_of(AGENT, "-c", KEEP_ASKING, url, 1),
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
        cwd="/",
    ) as asking:
        for _ in range(3):
            with started(home, "--mode", "666") as process:
                first += [asking.stdout.readline() for _ in range(7)]  # so it is asking now
                process.send_signal(signal.SIGKILL)
                process.wait()
        with started(home, "--mode", "666"):
            first += asking.communicate()[0].splitlines()
            told = run_as(AGENT, "-c", KEEP_ASKING, url, 1, folder=home.parent)
            status = box(home, "status", "--json", uid=AGENT)
    again = [json.loads(line) for line in told.stdout.splitlines()]
    assert again == [json.loads(line) for line in first]
    assert [query for _, query, _, _ in again] == list(
        range(1, 41)
    )  # each question once, in the order it was asked
    assert json.loads(status.stdout)["answered"] == 40
