"""A box that is weakened in every way: what is tried must get into this one, or it proves nothing.

It runs as the agent's own user, with its memory open; whatever it refuses it explains with the labels; it allows all
ways to ask, takes any name, answers what it does not record, and has files for a few callers only.

    python weak_box.py FOLDER
"""

import contextlib
import resource
import selectors
import sys
import time
from pathlib import Path

from reusable_holdout_box import desk, running, server
from reusable_holdout_box.frames import packed

from reusable_holdout.guard import Answer

_FILES = 40
SEEN = {}


def leaky(code, message, **details):
    """A refusal that quotes what it saw."""
    return packed({"error": {"code": code, "message": f"{message} {SEEN['labels']}", "details": details}})


def unrecorded(self, predictions, *, prior=None, name="", **_):
    """Score itself, without the ledger."""
    bound = self._holdout.bound
    value = float((bound.prepare(predictions) == bound.prepare(self._holdout.y)).mean())
    return Answer(value, False, value, value, prior or 0.0, 10**6, 9, False, 0.0, name)


def ended(self, caller):
    """Tell also who has sent half a message."""
    piece = caller.socket.recv(1 << 18)
    if not piece:
        with contextlib.suppress(OSError):
            caller.socket.send(leaky("bad_input", "an unfinished message"))
        raise ConnectionResetError
    caller.came += piece
    self._answer_next(caller)


def accept(self):
    """Take everyone in, until there are no files left."""
    with contextlib.suppress(OSError):
        while True:
            connection, _ = self._door.accept()
            connection.setblocking(False)
            caller = server._Caller(connection, server.peer_of(connection), time.monotonic())
            self._callers[connection.fileno()] = caller
            self._selector.register(connection, selectors.EVENT_READ, caller)


def main(folder):
    """Answer, in every wrong way."""
    opened = running.open_box(folder)
    SEEN["labels"] = "".join(map(str, opened.guard._holdout.y.tolist()))
    opened.guard.close()

    running.close_memory = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (_FILES, _FILES))
    running.check_code = lambda: None
    server.refusal = desk.refusal = leaky
    server.Server._read = ended
    server.Server._accept = accept
    desk._checked_name = lambda name: name
    desk.Desk._check_allowed = lambda *_: None
    guard = type(opened.guard)
    guard.evaluate_predictions = unrecorded
    guard.compare_predictions = lambda self, one, _, **more: unrecorded(self, one, **more)
    guard.evaluate_many = lambda self, several, priors, **_: [unrecorded(self, one) for one in several]
    running.Limits = lambda **_: server.Limits(most_bytes=1 << 20, connections=10**6, message_seconds=1e6)
    running.run_box(folder, mode=0o666)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
