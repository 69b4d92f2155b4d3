"""The attempts of a program with a shell under another user: none gets in, and each gets into a weak box."""

import collections
import json
import os
from pathlib import Path

import numpy as np
import pytest
from box_servers import AGENT, BOX, OWNER, interpreter, run_as, running, shared_folder, why_no_users

from reusable_holdout.ledger.key_file import read_key_file

pytestmark = [
    pytest.mark.timeout(900),  # two hundred seconds on busy cores
    pytest.mark.skipif(bool(why_no_users()), reason=why_no_users()),
    pytest.mark.long(*BOX, "tests/integrations/box/weak_box.py", "tests/intruder"),
]

ROWS, QUERIES = 400, 3_000
FILES = ["labels.csv", "guard.db", "guard.db.key", "guard.db.heads", "box.json"]
GROUPS = ["messages", "budget", "commands", "socket", "process", "files"]
NO_CONTROL = {"set the clock", "date -s"}  # only root can: a weak box does not help
_HERE = Path(__file__).parent


def make(folder, uid, *more):
    """Make a box as a user; return its folder, and texts of its secrets."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, ROWS)
    file = folder / "rows.csv"
    file.write_text("id,label\n" + "".join(f"r{k},{one}\n" for k, one in enumerate(labels)))
    home = folder / "home"
    home.mkdir()
    for one in (file, home):
        os.chown(one, uid, uid)
    options = ("--labels", file, "--id", "id", "--queries", QUERIES, "--charges", 60, "--vacuous", *more)
    made = run_as(uid, "-m", "reusable_holdout", "box", "init", home / "box", *options, folder=folder)
    assert made.returncode == 0, made.stderr
    file.unlink()
    key = read_key_file(home / "box" / "private" / "guard.db.key")
    first = labels[:64]
    needles = [key, key.hex().encode(), first.astype(np.int64).tobytes(), first.astype(np.uint8).tobytes()]
    needles += ["".join(map(str, first)).encode(), "".join(f"r{k},{labels[k]}\n" for k in range(3)).encode()]
    return home / "box", needles


def tried(folder, box, process, needles, *, weak):
    """Return the result of each attempt, by group and name."""
    work = folder / "work"
    work.mkdir()
    os.chown(work, AGENT, AGENT)
    case = {"private": box / "private", "socket": box / "socket", "work": work, "python": interpreter()}
    case = {name: str(one) for name, one in case.items()}
    case |= {"pid": process.pid, "needles": [one.hex() for one in needles], "files": FILES}
    case |= {"rows": ROWS, "seed": 1, "weak": weak, "groups": GROUPS}
    done = run_as(AGENT, "-m", "intruder", folder=work, given=json.dumps(case))
    assert done.returncode == 0, done.stderr[-2_000:]
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    found = {(group, name): (got, evidence) for group, name, got, evidence in lines}
    assert len(found) == len(lines), collections.Counter((one[0], one[1]) for one in lines).most_common(9)
    return found


@pytest.fixture(scope="module")
def strong():
    with shared_folder() as folder:
        box, needles = make(folder, OWNER)
        log = folder / "log"
        arguments = ("-m", "reusable_holdout", "box", "serve", box, "--mode", "666")
        with running(OWNER, *arguments, socket=box / "socket", log=log) as process:
            found = tried(folder, box, process, needles, weak=False)
            assert process.poll() is None
        yield found, log.read_text(), needles


@pytest.fixture(scope="module")
def weak():
    with shared_folder() as folder:
        box, needles = make(folder, AGENT, "--allow", "evaluate", "compare", "reveal", "choose", "final")
        arguments = (_HERE / "weak_box.py", box)
        with running(AGENT, *arguments, socket=box / "socket", log=folder / "log") as process:
            yield tried(folder, box, process, needles, weak=True)


def test_no_attempt_gets_in(strong):
    found, _, _ = strong
    assert len(found) >= 470  # two more where gdb is installed
    assert {name: evidence for name, (got, evidence) in found.items() if got} == {}


def test_each_attempt_gets_into_a_weak_box(strong, weak):
    assert weak.keys() == strong[0].keys()
    failed = {
        name: evidence for name, (got, evidence) in weak.items() if not got and name[1] not in NO_CONTROL
    }
    assert failed == {}


def test_they_are_of_every_kind(strong):
    groups = collections.Counter(group for group, _ in strong[0])
    assert min(groups[one] for one in ("files", "process", "malformed", "forbidden", "names", "killed")) >= 20


def test_nothing_of_the_asked_or_the_secret_is_in_the_log(strong):
    _, log, needles = strong
    assert "attempt" not in log
    assert len(log.splitlines()) <= 3
    assert not any(needle.decode("latin-1") in log for needle in needles)
