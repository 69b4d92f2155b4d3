"""News of a board: server-sent events for those who listen, all from one look at the database."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator

from reusable_holdout_leaderboard.competition import Competition
from reusable_holdout_leaderboard.web.security import Problem
from reusable_holdout_leaderboard.web.services import Boards

__all__ = ["Feed"]

_QUIET_SECONDS = 15.0  # after which a comment keeps proxies from hanging up


class Feed:
    """Revisions of competitions, for streams: however many listen, a worker looks once in each interval.

    Parameters
    ----------
    boards : Boards
    """

    def __init__(self, boards: Boards) -> None:
        self._boards = boards
        self._watches: dict[str, _Watch] = {}
        self._listeners: Counter[str] = Counter()
        self._ended = asyncio.Event()

    def stream(self, competition: Competition, address: str) -> AsyncIterator[bytes]:
        """Server-sent events "revision", with the number of the board's last event: at once, and when it changes.

        Raises
        ------
        Problem
            429 if too many listen; then poll.
        """
        settings = self._boards.settings
        if self._listeners.total() >= settings.streams or (
            self._listeners[address] >= settings.streams_per_address
        ):
            raise Problem(429, "streams", "too many listen; poll instead", headers={"Retry-After": "10"})
        return self._stream(competition, address)

    async def close(self) -> None:
        """End all streams."""
        self._ended.set()
        for watch in self._watches.values():
            await watch.close()

    async def _stream(self, competition: Competition, address: str) -> AsyncIterator[bytes]:
        watch = self._watches.get(competition.slug)
        if watch is None:
            watch = self._watches[competition.slug] = _Watch(self._boards, competition)
        self._listeners[address] += 1
        watch.begin()
        try:
            yield b"retry: 2000\n\n"
            seen = -1
            while not self._ended.is_set():
                revision = await watch.after(seen)
                if revision is None:
                    yield b": nothing new\n\n"
                else:
                    seen = revision
                    yield f"id: {revision}\nevent: revision\ndata: {revision}\n\n".encode()
        finally:
            watch.end()
            self._listeners[address] -= 1
            if not self._listeners[address]:
                del self._listeners[address]


class _Watch:
    """Looks at one competition while anybody listens."""

    def __init__(self, boards: Boards, competition: Competition) -> None:
        self._boards, self._competition = boards, competition
        self._changed = asyncio.Condition()
        self._revision, self._listeners = -1, 0
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        self._listeners += 1
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look())

    def end(self) -> None:
        self._listeners -= 1

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        async with self._changed:
            self._changed.notify_all()

    async def after(self, seen: int) -> int | None:
        """Revision when it is another than the one seen; None if nothing happens for a while."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_QUIET_SECONDS), self._changed:
                await self._changed.wait_for(lambda: self._revision not in {seen, -1})
                return self._revision
        return None

    async def _look(self) -> None:
        while self._listeners:
            with contextlib.suppress(Problem):  # a database that fails for a while
                revision = await self._boards.run(lambda: self._competition.revision)
                if revision != self._revision:
                    async with self._changed:
                        self._revision = revision
                        self._changed.notify_all()
            await asyncio.sleep(self._boards.settings.poll_seconds)
