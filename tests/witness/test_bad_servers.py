"""Servers that are no witness, or break off."""

import socket
import threading

import pytest

from reusable_holdout.errors import LedgerError
from reusable_holdout.witness import Head, witness_at


def answering(content):
    """Server on a port of its own that answers everything alike."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                connection.recv(65_536)
                connection.sendall(content)

    thread = threading.Thread(target=serve)
    thread.start()
    return server, thread


def reply(body, length=None):
    return (
        f"HTTP/1.1 200 OK\r\nContent-Length: {len(body) if length is None else length}\r\n\r\n{body}".encode()
    )


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no HTTP at all\r\n\r\n",
        reply('{"head": ', length=500),
        reply("[]"),
        reply('"head"'),
        reply("{}"),
        reply('{"head": 7}'),
        reply('{"head": "something else"}'),
        reply('{"head": "' + "x" * 100_000 + '"}'),
    ],
    ids=["nothing", "no HTTP", "breaks off", "list", "text", "empty", "number", "no head", "too long"],
)
def test_a_server_that_is_no_witness_is_said_in_plain_words(content):
    server, thread = answering(content)
    try:
        witness = witness_at(f"http://127.0.0.1:{server.getsockname()[1]}/api/v1/witness/guard", b"k" * 32)
        for use in (witness.read, lambda: witness.advance(Head(1, 1, b"a" * 32), after=None)):
            with pytest.raises(LedgerError, match="witness must be"):
                use()
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join()
