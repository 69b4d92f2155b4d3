"""A box that is weakened in every way: an attempt must get into this one, or it proves nothing.

It runs as the agent's own user, with its memory open. Its refusals quote the labels. It takes any name, answers without
a record, and has files for a few callers only. It was made with all ways to ask.

    python weak_box.py FOLDER
"""

import contextlib
import resource
import selectors
import sys
import time
from pathlib import Path

from reusable_holdout_box import desk, server
from reusable_holdout_box.frames import packed

from reusable_holdout import Answer

_FILES = 40
SEEN = {}


def leaky(code, message, **details):
    """Refuse, and quote the labels."""
    return packed({"error": {"code": code, "message": f"{message} {SEEN['labels']}", "details": details}})


def unrecorded(guard, way, several, prior=None, name="", **_):
    """Score without the ledger."""
    bound = guard._view.holdout.bound
    truth = bound.prepare(guard._view.holdout.y)
    values = [
        float((bound.prepare(one) == truth).mean()) for one in (several if way == "many" else several[:1])
    ]
    of_all = {"charges_left": 9, "replayed": False, "prior": prior or 0.0, "query": 10**6, "nats": 0.0}
    return [Answer(one, one, one, "agreed", None, charged=False, **of_all, name=name) for one in values]


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
            caller = server._Caller(connection, server.user_of(connection), time.monotonic())
            self._callers[connection.fileno()] = caller
            self._selector.register(connection, selectors.EVENT_READ, caller)


def main(folder):
    """Answer, in every wrong way."""
    opened = server.open_box(folder)
    SEEN["labels"] = "".join(map(str, opened.guard._view.holdout.y.tolist()))
    opened.guard.close()

    server.close_memory = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (_FILES, _FILES))
    server.check_code = lambda: None
    server.refusal = desk.refusal = leaky
    server.Server._read = ended
    server.Server._accept = accept
    desk._CHECKS |= {"name": (lambda _: True, "")}
    desk.ask = unrecorded
    limits = server.Limits
    server.Limits = lambda **_: limits(most_bytes=1 << 20, connections=10**6, message_seconds=1e6)
    server.run_box(folder, mode=0o666)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
