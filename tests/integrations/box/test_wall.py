"""The refusals of a box that starts beside others' files, links, sockets or code; and its start and end."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import box_servers
import numpy as np
import pytest
from box_servers import AGENT, OWNER, STRANGER, command_of, environment, run_as, running
from cases import refuses
from reusable_holdout_box import wall
from reusable_holdout_box.wall import WallError, check_code, check_place, check_private

ROWS = 400

_users = pytest.mark.skipif(bool(box_servers.why_no_users()), reason=box_servers.why_no_users())


def users(test):
    """Mark a test that starts processes as other users, which takes long."""
    return pytest.mark.long(*box_servers.BOX, "examples/box")(_users(test))


# ---- as one user


def test_a_folder_that_others_may_read_is_refused(tmp_path):
    file = tmp_path / "file"
    file.write_text("x")
    tmp_path.chmod(0o700)
    file.chmod(0o600)
    check_private(tmp_path)
    for path, mode in ((tmp_path, 0o750), (tmp_path, 0o701), (file, 0o640), (file, 0o602)):
        before = path.stat().st_mode
        path.chmod(mode)
        refuses(WallError, "and to nobody else", check_private, tmp_path)
        path.chmod(before)


def test_links_and_second_names_are_refused(tmp_path):
    folder, file = tmp_path / "private", tmp_path / "file"
    folder.mkdir(mode=0o700)
    file.write_text("x")
    file.chmod(0o600)
    (folder / "link").symlink_to(file)
    refuses(WallError, "be no link", check_private, folder)
    (folder / "link").unlink()
    (folder / "link").hardlink_to(file)
    refuses(WallError, "must have one hard link; it has 2", check_private, folder)
    (tmp_path / "link").symlink_to(folder)
    refuses(WallError, "be no link", check_private, tmp_path / "link")


def test_places_that_others_could_exchange_are_refused(tmp_path):
    outer, inner = tmp_path / "outer", tmp_path / "outer" / "inner"
    inner.mkdir(parents=True, mode=0o755)
    (tmp_path / "link").symlink_to(outer)
    # modes of both folders, and whether the inner one is safe: a sticky folder above keeps what is ours in it, as /tmp
    # does; but in a sticky folder itself another user could have made the place before
    for above, mode, is_safe in (
        (0o755, 0o755, True),
        (0o777, 0o755, False),
        (0o1777, 0o755, True),
        (0o755, 0o1777, False),
    ):
        outer.chmod(above)
        inner.chmod(mode)
        for place in (inner, tmp_path / "link" / "inner"):
            with (
                contextlib.nullcontext()
                if is_safe
                else pytest.raises(WallError, match="may be written to by others")
            ):
                check_place(place, "it")


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
    refuses(WallError, "only the box's user and root may change its code", check_code, [str(file)])
    tmp_path.chmod(0o777)
    refuses(WallError, "code that the box imports must lie where no other user", check_code, [str(tmp_path)])


# ---- as several


@pytest.fixture
def home():
    """A folder of the box's user with labels in it, in a folder that all users can pass."""
    with box_servers.shared_folder() as folder:
        place = folder / "home"
        place.mkdir()
        labels = np.random.default_rng(0).integers(0, 2, ROWS)
        (place / "labels.csv").write_text("y\n" + "".join(f"{one}\n" for one in labels))
        for one in (place, place / "labels.csv"):
            os.chown(one, OWNER, OWNER)
        yield place


def box(home, action, *more, uid=OWNER, **environment_):
    command = ("-m", "reusable_holdout", "box", action, home / "box", *more)
    return run_as(uid, *command, folder=home, **environment_)


@pytest.fixture
def private(home):
    """The private folder of a box that was made."""
    plan = ("--queries", 500, "--charges", 5, "--vacuous")
    done = box(home, "init", "--labels", home / "labels.csv", *plan)
    assert done.returncode == 0, done.stderr
    return home / "box" / "private"


def started(home, *more):
    command = ("-m", "reusable_holdout", "box", "serve", home / "box", *more)
    return running(OWNER, *command, socket=home / "box" / "socket", log=home.parent / "log")


ASK = """
import json, sys, numpy as np
from reusable_holdout_box import RemoteHoldout
rng = np.random.default_rng(1)
with RemoteHoldout(sys.argv[1], patience_seconds=float(sys.argv[3])) as guard:
    for _ in range(int(sys.argv[2])):
        answer = guard.evaluate(rng.integers(0, 2, 400), prior=0.5)
        print(json.dumps([answer.query, answer.value, answer.charged, answer.replayed, guard.answered]), flush=True)
"""


def asking(home, questions=1, patience=1.0):
    return ("-c", ASK, f"unix://{home / 'box' / 'socket'}", questions, patience)


def ask(home, uid=AGENT, **more):
    return run_as(uid, *asking(home, **more), folder=home.parent)


@users
def test_private_files_are_the_owners_alone_and_only_users_who_may_ask_are_answered(home, private):
    assert (private.stat().st_mode & 0o777, private.parent.stat().st_mode & 0o777) == (0o700, 0o711)
    files = list(private.iterdir())
    assert {one.name for one in files} >= {"labels.csv", "guard.db", "guard.db.key", "guard.db.heads"}
    assert {(one.stat().st_mode & 0o777, one.stat().st_uid) for one in files} == {(0o600, OWNER)}
    with started(home, "--peer-uid", AGENT):
        asked = ask(home)
        assert (asked.returncode, asked.stdout[:2]) == (0, "[1"), asked.stderr
        assert f"user {STRANGER} may not ask this box" in ask(home, STRANGER).stderr
    assert (home.parent / "log").read_text().count(f"refused user {STRANGER}") == 1
    with started(home):  # for its own group
        assert "Permission denied" in ask(home).stderr
    assert not (home / "box" / "socket").exists()


@users
def test_a_box_is_not_run_twice_nor_by_another_user_nor_where_others_could_change_it(home, private):
    assert box(home, "serve", uid=AGENT).returncode == 1
    with started(home):
        assert "only one process may run a box" in box(home, "serve").stderr
    (private / "labels.csv").chmod(0o644)
    assert "must belong to the user that runs the box, and to nobody else" in box(home, "serve").stderr
    (private / "labels.csv").chmod(0o600)
    (home / "box").chmod(0o777)
    assert "no other user can replace it" in box(home, "serve").stderr
    (home / "box").chmod(0o711)
    os.chown(private / "guard.db.key", AGENT, AGENT)
    assert f"its user is {AGENT}" in box(home, "serve").stderr


@users
def test_a_folder_of_code_that_others_could_change_is_refused(home, private):
    theirs = home.parent / "theirs"
    theirs.mkdir()
    os.chown(theirs, AGENT, AGENT)
    places = f"{environment()['PYTHONPATH']}:{theirs}"
    assert "code that the box imports must lie" in box(home, "serve", PYTHONPATH=places).stderr


@contextlib.contextmanager
def squatted(path, how):
    """Put something of the agent's where a socket is to be."""
    with socket.socket(socket.AF_UNIX) as door:
        if how == "a socket":
            door.bind(str(path))
            door.listen()
        elif how == "a folder":
            path.mkdir()
        elif how == "a file":
            path.write_text("x")
        else:
            path.symlink_to("/etc/passwd" if how == "a link" else path.parent / "none")
        os.chown(path, AGENT, AGENT, follow_symlinks=False)
        yield
        path.rmdir() if how == "a folder" else path.unlink()


@users
def test_a_place_that_was_taken_is_refused(home, private):
    place = home / "box" / "socket"
    for how in ("a socket", "a link", "a link to nothing", "a file", "a folder"):
        with squatted(place, how):
            assert "must be free" in box(home, "serve").stderr, how
            assert place.lstat().st_uid == AGENT, how  # nothing of another user is removed


@users
def test_a_socket_in_a_folder_of_everybody_is_refused(home, private):
    place = home.parent / "all"
    place.mkdir()
    for mode, owner in ((0o777, 0), (0o1777, 0), (0o755, AGENT)):
        place.chmod(mode)
        os.chown(place, owner, owner)
        refused = box(home, "serve", "--socket", place / "s").stderr
        assert "a socket must lie where no other user can" in refused, oct(mode)


@users
def test_the_plain_start_that_is_shown_works(home):
    shown = Path(__file__).parents[3] / "examples" / "box" / "start.sh"
    settings = {"BOX": home / "box", "BOX_UID": OWNER, "AGENT_UID": AGENT, "LABELS": home / "labels.csv"}
    settings |= {"PYTHON": box_servers.interpreter(), "PLAN": "--queries 50 --charges 5 --vacuous"}
    around = environment(**{key: str(one) for key, one in settings.items()})
    with subprocess.Popen(["sh", shown], env=around, stderr=subprocess.PIPE) as process:
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


@users
def test_a_box_that_is_killed_in_mid_answer_loses_and_doubles_nothing(home, private):
    first, command = [], command_of(AGENT, *asking(home, questions=40, patience=30.0))
    with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True, cwd="/") as client:
        for _ in range(3):
            with started(home, "--mode", "666") as process:
                first += [client.stdout.readline() for _ in range(7)]  # so it is asking now
                process.send_signal(signal.SIGKILL)
                process.wait()
            assert (home / "box" / "socket").is_socket()  # which it left
        with started(home, "--mode", "666"):
            first += client.communicate()[0].splitlines()
            told = ask(home, questions=40, patience=30.0)
    before, again = ([json.loads(line) for line in lines] for lines in (first, told.stdout.splitlines()))
    assert [one[:3] for one in again] == [one[:3] for one in before]
    assert [one[0] for one in again] == list(range(1, 41))  # each question once, in the order it was asked
    assert {(one[3], one[4]) for one in again} == {(True, 40)}
