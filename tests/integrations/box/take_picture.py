"""The picture of docs/box.md: ``python tests/integrations/box/take_picture.py docs/images/box.svg``, by root on Linux.

Two users of this machine, a box's and an agent's, type what is seen; what is printed is what they get. The folder is a
temporary one, and shown as /srv.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

sys.path.extend(str(Path(__file__).parents[2] / place) for place in ("tests", "docs/site"))
from box_servers import AGENT, OWNER, command_of, environment, running, shared_folder, why_no_users
from terminal import Said, drawn

_ROWS = 2_000
_USERS = {"box": OWNER, "agent": AGENT}
_ASK = """\
import csv
from reusable_holdout_box import RemoteHoldout

guess = [int(row["y"]) for row in csv.DictReader(open("guess.csv"))]
guard = RemoteHoldout("unix:///srv/box/socket")
print(guard.evaluate_predictions(guess, prior=0.80))
print(guard.evaluate_predictions(guess[::-1], prior=0.79))
"""


class Session:
    """What two users type and see in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.seen: list[Said] = []

    def type(self, who: str, line: str) -> None:
        """Run a line as a user, and note what it prints."""
        self.seen.append(Said(who, line))
        *user, python = command_of(_USERS[who])
        programs = (
            f'python() {{ {python} "$@"; }}; reusable-holdout() {{ {python} -m reusable_holdout "$@"; }}'
        )
        typed = line.replace("/srv", str(self._folder))
        done = subprocess.run(
            [*user, "bash", "-c", f"{programs}; {typed}"],
            cwd=self._folder,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.note(done.stdout)

    def note(self, printed: str) -> None:
        """Lines that were printed."""
        shown = printed.replace(str(self._folder), "/srv")
        self.seen += [Said("", line.rstrip()) for line in shown.splitlines()]


def main(picture: Path) -> None:
    """Make a box, run it, try to read the labels, ask, and draw what was seen."""
    if why := why_no_users():
        raise SystemExit(why)
    with shared_folder() as folder:
        _files(folder)
        session = Session(folder)
        init = (
            "reusable-holdout box init /srv/box --labels labels.csv --queries 100 --tolerance 0.1 | head -n 7"
        )
        session.type("box", init)
        (folder / "labels.csv").unlink()
        run = f"reusable-holdout box run /srv/box --peer-uid {AGENT}"
        session.seen.append(Said("box", f"rm labels.csv; {run} &"))
        log, words = folder / "log", run.replace("/srv", str(folder)).split()[1:]
        with running(OWNER, "-m", "reusable_holdout", *words, socket=folder / "box" / "socket", log=log):
            session.note(log.read_text())
            session.type("agent", "ls /srv/box/private")
            session.type("agent", "tail -n 3 ask.py")
            session.type("agent", "python ask.py")
            session.type("agent", "reusable-holdout box status /srv/box | tail -n 6")
        picture.write_text(drawn(session.seen, title="A box and an agent, two users of one machine"))


def _files(folder: Path) -> None:
    """The labels, whose folder is to be the box's user's; and what the agent has."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, _ROWS)
    guess = np.where(rng.random(_ROWS) < 0.8, labels, 1 - labels)
    for name, values in (("labels", labels), ("guess", guess)):
        (folder / f"{name}.csv").write_text("y\n" + "".join(f"{one}\n" for one in values))
    (folder / "ask.py").write_text(_ASK.replace("/srv", str(folder)))
    os.chown(folder, OWNER, OWNER)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
