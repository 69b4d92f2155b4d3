"""A connection that sends any bytes, and a check of the replies."""

import contextlib
import json
import socket
import struct

from intruder.case import CASE, NoError


def frame(head, body=b""):
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    return struct.pack(">II", len(text), len(body)) + text + body


class Caller:
    """A connection that takes any reply."""

    def __enter__(self):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(5)
        self.socket.connect(CASE.socket)
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, message):
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.socket.sendall(message)

    def reply(self):
        start = self.exactly(8)
        head, body = struct.unpack(">II", start)
        return json.loads(self.exactly(head)), self.exactly(body)

    def exactly(self, count):
        found = b""
        while len(found) < count:
            piece = self.socket.recv(count - len(found))
            if not piece:
                raise NoError("it closed the connection")
            found += piece
        return found


def asked(message):
    with Caller() as caller:
        caller.send(message)
        return caller.reply()[0]


def ask(ask_, **more):
    return asked(frame({"ask": ask_, **more}))


def state():
    found = ask("status")
    return found["answered"], found["queries_left"], found["charges_left"], found["halted"]


def refused(message):
    """A message that must be refused: it got in if it is answered, charged, or the reply holds a secret."""
    before = state()
    with Caller() as caller:
        caller.send(message)
        with contextlib.suppress(OSError):
            caller.socket.shutdown(socket.SHUT_WR)
        try:
            reply = caller.reply()[0]
        except NoError as closed:
            reply = {"error": {"message": str(closed)}}
    text = json.dumps(reply)
    if any(needle.decode("latin-1") in text for needle in CASE.needles):
        return f"a secret: {text[:80]}"
    if "error" not in reply:
        return text
    after = state()
    if after != before:
        return f"{before} became {after}"
    raise NoError(reply["error"]["message"])


def question(**changes):
    given = {"ask": "evaluate", "predictions": [[0, 1] * (CASE.rows // 2)], "prior": 0.5, "name": "attempt"}
    return {name: one for name, one in {**given, **changes}.items() if one is not ...}
