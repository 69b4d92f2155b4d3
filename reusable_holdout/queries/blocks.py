"""Work on large arrays in pieces that fit a processor's cache, on all processors.

NumPy releases the interpreter's lock inside its loops, so threads suffice.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["BLOCK", "each_block"]

BLOCK = 1 << 16  # elements of one piece: 512 KiB of float64, a fraction of a core's second-level cache
_PROCESSORS = os.cpu_count() or 1
_WORTH_THREADS = 16  # pieces below which starting threads costs more than it saves


def each_block(work: Callable[[slice], None], length: int, size: int = BLOCK) -> None:
    """Call `work` on consecutive slices that cover ``range(length)``.

    Every index is covered exactly once; the order is not defined, so `work` must write to disjoint places.

    Parameters
    ----------
    work : callable
        Takes one slice.
    length : int
        What to cover.
    size : int
        Longest slice; at least 1.

    Examples
    --------
    >>> seen = []
    >>> each_block(seen.append, 5, 3)
    >>> seen
    [slice(0, 3, None), slice(3, 5, None)]
    """
    pieces = [slice(start, min(start + size, length)) for start in range(0, length, size)]
    threads = min(_PROCESSORS, len(pieces) // (_WORTH_THREADS // 2))
    if threads < 2:
        for piece in pieces:
            work(piece)
        return
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(work, pieces):
            pass
