"""One process or thread at a time."""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["alone"]


@contextmanager
def alone(descriptor: int) -> Iterator[None]:
    """Hold a file's lock, and wait for it meanwhile.

    It is given back in so many words: closing would leave it with children that were forked meanwhile.
    """
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
