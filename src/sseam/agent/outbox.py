"""The events of a run on their way to its reader, at the reader's pace."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

from .._wait import Signal

__all__ = ["Outbox"]

T = TypeVar("T")

# A reader is this many events behind at most before the run waits for it.
_ROOM = 64


class Outbox(Generic[T]):
    """A queue in one event loop.

    The writer waits for the reader: for `room` between events, and with `flush` until the reader has
    dealt with every event and come back for more, so that what it does about an event (a cancel) is
    seen. Nothing waits once the outbox is released.
    """

    def __init__(self) -> None:
        self._events: deque[T] = deque()
        self._handed = 0  # events that a reader took and has not come back from
        self._has_reader = False
        self._uninterrupted = 0  # events since the writer last gave way
        self._released = False
        self._closed = False
        self._arrival: Signal | None = None
        self._progress: Signal | None = None

    def put(self, event: T) -> None:
        """Hand on an event. Never waits; dropped when nobody will read it."""
        if self._closed or (self._released and not self._has_reader):
            return
        self._events.append(event)
        self._wake_reader()

    async def room(self) -> None:
        """Return once the reader is less than a fixed number of events behind.

        A writer that never waits for anything itself gives way to other tasks here, now and then.
        """
        self._uninterrupted += 1
        if self._uninterrupted >= _ROOM:
            await self.give_way()
        while len(self._events) >= _ROOM and not self._released:
            await self._wait_for_reader()

    async def give_way(self) -> None:
        """Let every other task that is ready go on first."""
        import anyio.lowlevel

        self._uninterrupted = 0
        # Trio shuffles what is ready in one step, so only after the second one has everything had its turn.
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()

    async def flush(self) -> None:
        """Return once the reader has dealt with all events."""
        while (self._events or self._handed) and not self._released:
            await self._wait_for_reader()

    async def take(self) -> T | None:
        """The next event, None when closed and empty. Coming back says that the last one was dealt with."""
        self._has_reader = True
        self._handed = max(0, self._handed - 1)
        self._wake_writer()
        while not self._events:
            if self._closed:
                return None
            self._arrival = self._arrival or Signal()
            await self._arrival.wait()
        self._handed += 1
        event = self._events.popleft()
        self._wake_writer()
        return event

    def release(self) -> None:
        """Let the writer go on without waiting. Events are kept if somebody has begun to read, else dropped."""
        self._released = True
        if not self._has_reader:
            self._events.clear()
        self._wake_writer()

    def close(self) -> None:
        """No more events come."""
        self._closed = True
        self._released = True
        self._wake_reader()
        self._wake_writer()

    async def _wait_for_reader(self) -> None:
        self._progress = self._progress or Signal()
        await self._progress.wait()

    def _wake_reader(self) -> None:
        if self._arrival is not None:
            self._arrival.set()
            self._arrival = None

    def _wake_writer(self) -> None:
        if self._progress is not None:
            self._progress.set()
            self._progress = None
