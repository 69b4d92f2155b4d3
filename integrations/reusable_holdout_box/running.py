"""Run a box: close the memory, open the guard, answer at the door, and end tidily."""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path

from reusable_holdout_box.desk import Desk
from reusable_holdout_box.door import only_one, opened_door
from reusable_holdout_box.folder import OpenBox, open_box, private_of, socket_of
from reusable_holdout_box.server import Limits, Server, told_to_end
from reusable_holdout_box.wall import check_code, close_memory

__all__ = ["Limits", "run_box"]

_LEAST_BYTES = 1 << 20
_QUESTIONS_TOGETHER = 8


def run_box(
    folder: Path,
    *,
    socket: Path | None = None,
    mode: int = 0o660,
    group: str | None = None,
    peer_uids: Collection[int] = (),
    most_bytes: int | None = None,
    answer_seconds: float = 0.0,
) -> None:
    """Answer at a box's socket until the process is told to end.

    Parameters
    ----------
    folder : Path
    socket : Path, optional
        By default ``folder/socket``.
    mode : int
        Of the socket: who may write to it may ask.
    group : str, optional
        Of the socket.
    peer_uids : collection of int
        Users who may ask; empty for all who can open the socket.
    most_bytes : int, optional
        Of a message; by default room for eight questions, at least a megabyte.
    answer_seconds : float
        As for :class:`Limits`.

    Raises
    ------
    WallError
        If others could change the code, or read or exchange the folder or the socket.
    InputError, LedgerError
        If there is no box, it runs already, or the socket cannot be bound.
    """
    close_memory()
    check_code()
    box = open_box(folder)
    try:
        with only_one(private_of(folder)):
            limits = Limits(most_bytes=most_bytes or _most_bytes(box), answer_seconds=answer_seconds)
            where = socket_of(folder) if socket is None else socket
            with opened_door(where, mode=mode, group=group) as door:
                _tell(f"answering at unix://{where.absolute()}")
                server = Server(door, Desk(box, most_bytes=limits.most_bytes), limits, peer_uids=peer_uids)
                with told_to_end(server.stop):
                    server.run()
                _tell("told to end; ended")
    finally:
        box.guard.close()


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _most_bytes(box: OpenBox) -> int:
    """Room for several questions of numbers, with a column for each class."""
    classes = box.guard.classes
    numbers = box.guard.rows * (1 if classes is None else len(classes))
    return max(_LEAST_BYTES, 8 * numbers * _QUESTIONS_TOGETHER)
