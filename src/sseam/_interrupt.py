"""Ending a blocked read from another task or thread, or when a time limit passes.

Where there is a connection it is shut down: the read then ends as it would had the other side closed it,
and cleans up undisturbed. Where there is none, the task that reads is cancelled, and the cancellation is
taken back. A cancel scope or a task of our own around each read would do it too, but a scope must not be
held across a yield, and both cost more than the read's own share. One timer serves the whole stream: it
looks at the deadline when it goes off and is set anew if that has moved.
"""

from __future__ import annotations

import contextlib
import math
import queue
import threading
import time
import weakref
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ._alarm import Alarm
from ._wait import from_anywhere, under_asyncio, under_trio
from .deadlines import Deadlines

if TYPE_CHECKING:
    import asyncio

__all__ = ["Interrupt", "Interrupted", "Watchdog"]

T = TypeVar("T")


class Interrupted(Exception):
    """The read was ended: `fire` was called, or, with `late`, the deadline passed."""

    def __init__(self, *, late: bool) -> None:
        super().__init__("a time limit passed" if late else "interrupted")
        self.late = late


class Interrupt:
    """A switch that ends a read, now or later, under asyncio or trio.

    Args:
        deadlines: of the stream.
        shut_down: ends a read without cancelling its task; whether it could. From any thread.

    Attributes:
        direct: reads that `shut_down` can end need no `guard`, only `watch`: not under trio, which has no
            timers but those of its cancel scopes.
        watched: the deadline that the timer knows of; a direct read with an earlier one calls `watch`.
        late: the read was ended because the deadline passed.
    """

    def __init__(self, deadlines: Deadlines, shut_down: Callable[[], bool]) -> None:
        self._deadlines = deadlines
        # What is watched may be dropped without a word: the timer must not be what keeps it.
        self._shut_down = weakref.WeakMethod(shut_down)  # pyright: ignore[reportArgumentType]
        self._lock = threading.Lock()
        self._fired = False
        self._cancel: Callable[[], object] | None = None  # ends the guarded await, from any thread
        self._guard: Callable[[Callable[[], Awaitable[Any]]], Awaitable[Any]] = self._first_guard
        self.direct = False
        self.watched = math.inf
        self.late = False
        # Under asyncio only:
        self._task: asyncio.Task[Any] | None = None
        self._waiting = False
        self._requested = False
        self._cancelling = 0  # how often somebody else had cancelled the task before the read
        self._timer: asyncio.TimerHandle | None = None

    def fire(self) -> None:
        """End the read, from any task or thread; every later one in `guard` ends at once."""
        with self._lock:
            self._fired = True
            cancel = self._cancel
        if not self._end() and cancel is not None:
            # A loop that ended without its tasks says so with a RuntimeError: nobody waits there.
            with contextlib.suppress(RuntimeError):
                cancel()

    def stop(self) -> None:
        """Leave nothing behind in the event loop."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.watched = math.inf

    def watch(self) -> None:
        """A read begins whose deadline is not watched. Raises `Interrupted` when it has passed."""
        now = time.monotonic()
        if self._deadlines.due <= now:
            raise Interrupted(late=True)
        self._set_timer(now)

    def guard(self, awaitable: Callable[[], Awaitable[T]]) -> Awaitable[T]:
        """The result of `awaitable()`. Raises `Interrupted`; nothing that came by then is kept."""
        return self._guard(awaitable)

    async def guard_request(self, awaitable: Callable[[], Awaitable[T]]) -> T:
        """As `guard`, by a cancel scope of anyio, which every HTTP library here needs itself: what it
        shields is left to end, and a connection that is being made is cleaned up after."""
        import anyio

        if not (under_asyncio() or under_trio()):
            raise RuntimeError("sseam waits under asyncio or trio, and neither is running here")
        self.direct = under_asyncio()
        return await self._guard_scope(awaitable, anyio.CancelScope, anyio.current_time())

    async def _first_guard(self, awaitable: Callable[[], Awaitable[T]]) -> T:
        if under_asyncio():
            import asyncio

            self._current_task = asyncio.current_task
            self._cancelled_error = asyncio.CancelledError
            self._guard = self._guard_asyncio
        elif under_trio():
            self._guard = self._guard_trio
        else:
            raise RuntimeError("sseam waits under asyncio or trio, and neither is running here")
        return await self._guard(awaitable)

    def _attach(self, cancel: Callable[[], object] | None) -> None:
        with self._lock:
            self._cancel = cancel
            if self._fired and cancel is not None:
                raise Interrupted(late=False)

    async def _guard_trio(self, awaitable: Callable[[], Awaitable[T]]) -> T:
        import trio

        return await self._guard_scope(awaitable, trio.CancelScope, trio.current_time())

    async def _guard_scope(self, awaitable: Callable[[], Awaitable[T]], make: Any, clock: float) -> T:
        now = time.monotonic()
        if self._deadlines.paused:
            self._deadlines.wait(now)
        left = self._deadlines.due - now
        if left <= 0:
            raise Interrupted(late=True)
        run = from_anywhere()
        with make(deadline=clock + left) as scope:
            self._attach(lambda: run(scope.cancel))
            try:
                result = await awaitable()
            finally:
                self._attach(None)
            if not self._fired:
                return result
        raise Interrupted(late=not self._fired)

    async def _guard_asyncio(self, awaitable: Callable[[], Awaitable[T]]) -> T:
        task = self._current_task()
        assert task is not None
        if task is not self._task:
            self._task = task
            run = from_anywhere()
            self._attach(lambda: run(self._request))
        deadlines = self._deadlines
        if deadlines.paused:
            deadlines.wait(time.monotonic())
        if self._fired:
            raise Interrupted(late=False)
        if deadlines.due < self.watched:
            self.watch()
        self._cancelling = task.cancelling()
        self._waiting = True
        try:
            result = await awaitable()
        except BaseException as error:
            self._waiting = False
            if not self._requested:
                raise
            # Ours alone, and not also somebody else's: only then it is ours to swallow.
            others = self._take_back()
            if others or not isinstance(error, Exception | self._cancelled_error):
                raise
            raise Interrupted(late=self.late and not self._fired) from None
        self._waiting = False
        if self._requested or self._fired:
            if self._requested:
                self._take_back()
            raise Interrupted(late=self.late and not self._fired)
        return result

    def _set_timer(self, now: float) -> None:
        import asyncio

        self.stop()
        due = self._deadlines.due
        if due < math.inf:
            self.watched = due
            self._timer = asyncio.get_running_loop().call_later(due - now, self._look)

    def _look(self) -> None:
        """The timer went off: the deadline has moved since, or it has passed."""
        import asyncio

        self._timer = None
        self.watched = math.inf
        now = time.monotonic()
        if self._deadlines.due > now:
            self._set_timer(now)
        elif not self._deadlines.paused:
            # In a loop that was held up the bytes may be there, and their reader is to wake in the next turn.
            loop = asyncio.get_running_loop()
            loop.call_soon(loop.call_soon, self._pass)

    def _pass(self) -> None:
        """The deadline has passed: for whoever reads now, and not for a reader who is busy."""
        if self._deadlines.due <= time.monotonic() and not self._deadlines.paused:
            self.late = True
            if not self._end():
                self._request()

    def _end(self) -> bool:
        shut_down = self._shut_down()
        return shut_down is not None and shut_down()

    def _request(self) -> None:
        # Runs in the loop. The await may have ended since: then nothing is to be cancelled. Nor if somebody
        # else has done it: a second one would hit the clean-up.
        task = self._task
        if self._waiting and not self._requested and task is not None and task.cancelling() == self._cancelling:
            self._requested = True
            task.cancel()

    def _take_back(self) -> bool:
        """Take the cancellation back. Whether there is another one."""
        assert self._task is not None
        self._requested = False
        return self._task.uncancel() > self._cancelling


class Watchdog:
    """The same for a thread that reads: the read is ended by `interrupt`, from another thread.

    Attributes:
        alarm: goes off at the deadline it knows of; a read with an earlier one calls `watch`.
        late: the read was ended because the deadline passed.
    """

    __slots__ = ("_deadlines", "_fired", "_interrupt", "_is_fired", "alarm", "late")

    def __init__(self, deadlines: Deadlines, interrupt: Callable[[], object]) -> None:
        self._deadlines = deadlines
        # What is watched may be dropped without a word: the alarm must not be what keeps it.
        self._interrupt = weakref.WeakMethod(interrupt)  # pyright: ignore[reportArgumentType]
        # A signal handler may fire while its own thread sleeps: of a queue `put` can be called within `get`.
        self._fired: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._is_fired = False
        self.alarm = Alarm(self._look)
        self.late = False

    def fire(self) -> None:
        """End the read, and every later one."""
        self._is_fired = True
        self._fired.put(None)
        self._end()

    def watch(self) -> None:
        """A read begins whose deadline is not watched. Raises `Interrupted` when it has passed."""
        due = self._deadlines.due
        if due <= time.monotonic():
            raise Interrupted(late=True)
        self.alarm.set(due)

    def sleep(self, seconds: float) -> None:
        """Wait. Raises `Interrupted` when fired."""
        if not self._is_fired:
            with contextlib.suppress(queue.Empty):
                self._fired.get(timeout=min(seconds, threading.TIMEOUT_MAX))
        if self._is_fired:
            raise Interrupted(late=False)

    def stop(self) -> None:
        """Watch no longer."""
        self.alarm.cancel()

    def _look(self) -> float:
        """The alarm went off: the deadline has moved since, or it has passed: for whoever reads now, and
        not for a reader who is busy."""
        paused, due = self._deadlines.paused, self._deadlines.due  # in this order: see `Deadlines.wait`
        if due > time.monotonic():
            return due
        if not paused:
            self.late = True
            self._end()
        return math.inf

    def _end(self) -> None:
        interrupt = self._interrupt()
        if interrupt is not None:
            interrupt()
