"""What the server and the process that reads files say to each other: a line of JSON, and bytes after it."""

from __future__ import annotations

import json
from typing import IO, Any

__all__ = ["received", "sent"]

_LONGEST_LINE = 1 << 20


def sent(pipe: IO[bytes], head: dict[str, Any], *bodies: Any) -> None:
    """Send a message.

    Raises
    ------
    OSError
        If nobody reads.
    """
    sizes = [memoryview(body).nbytes for body in bodies]
    pipe.write(json.dumps(head | {"sizes": sizes}).encode() + b"\n")
    for body in bodies:
        pipe.write(body)
    pipe.flush()


def received(pipe: IO[bytes], *, most_bytes: int | None = None) -> tuple[dict[str, Any], list[bytes]]:
    """Next message.

    Parameters
    ----------
    pipe : file
    most_bytes : int, optional
        Of what follows the line.

    Raises
    ------
    EOFError
        If there is none, or none that fits.
    """
    line = pipe.readline(_LONGEST_LINE)
    try:
        head = json.loads(line)
        sizes = [int(size) for size in head.pop("sizes")]
    except (ValueError, TypeError, KeyError, AttributeError):
        raise EOFError from None
    if most_bytes is not None and (min(sizes, default=0) < 0 or sum(sizes) > most_bytes):
        raise EOFError
    bodies = [pipe.read(size) for size in sizes]
    if [len(body) for body in bodies] != sizes:
        raise EOFError
    return head, bodies
