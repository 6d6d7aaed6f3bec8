"""Waiting for something that another task or thread does, under asyncio or trio.

Neither is imported before a coroutine waits, and then only the one that runs it.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable

__all__ = ["Signal", "under_asyncio", "under_trio"]


class Signal:
    """A flag that is set once, from any thread, and that any number of coroutines wait for."""

    __slots__ = ("_is_set", "_lock", "_wakers")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_set = False
        self._wakers: dict[object, Callable[[], object]] = {}

    @property
    def is_set(self) -> bool:
        """Whether `set` was called."""
        return self._is_set

    def set(self) -> None:
        """Set the flag and wake all who wait. Does nothing the second time."""
        with self._lock:
            self._is_set = True
            wakers = list(self._wakers.values())
            self._wakers.clear()
        for wake in wakers:
            # A loop that ended without its tasks says so with a RuntimeError: nobody waits there.
            with contextlib.suppress(RuntimeError):
                wake()

    async def wait(self) -> None:
        """Return once the flag is set; at once, without giving way to other tasks, when it is already.

        Raises:
            RuntimeError: neither asyncio nor trio runs the caller.
        """
        if self._is_set:
            return
        if under_asyncio():
            await self._wait_asyncio()
        elif under_trio():
            await self._wait_trio()
        else:
            raise RuntimeError("sseam waits under asyncio or trio, and neither is running here")

    def _enter(self, key: object, wake: Callable[[], object]) -> None:
        with self._lock:
            if not self._is_set:
                self._wakers[key] = wake
                return
        wake()  # it was set since `wait` looked

    def _leave(self, key: object) -> None:
        with self._lock:
            self._wakers.pop(key, None)

    async def _wait_asyncio(self) -> None:
        import asyncio

        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()

        def resolve() -> None:
            if not future.done():  # it is done when the waiter was cancelled
                future.set_result(None)

        self._enter(future, lambda: loop.call_soon_threadsafe(resolve))
        try:
            await future
        finally:
            self._leave(future)

    async def _wait_trio(self) -> None:
        import trio

        task = trio.lowlevel.current_task()
        token = trio.lowlevel.current_trio_token()
        parked = [task]  # emptied by whichever comes first, the wake-up or the cancellation

        def resume() -> None:
            if parked:
                trio.lowlevel.reschedule(parked.pop())

        def abort(_: object) -> trio.lowlevel.Abort:
            parked.clear()
            self._leave(task)
            return trio.lowlevel.Abort.SUCCEEDED

        self._enter(task, lambda: token.run_sync_soon(resume))
        await trio.lowlevel.wait_task_rescheduled(abort)


def under_asyncio() -> bool:
    # Not get_running_loop: trio as a guest of an asyncio loop has one too, but no asyncio task.
    asyncio = sys.modules.get("asyncio")
    try:
        return asyncio is not None and asyncio.current_task() is not None
    except RuntimeError:
        return False


def under_trio() -> bool:
    trio = sys.modules.get("trio")
    try:
        return trio is not None and trio.lowlevel.current_task() is not None
    except RuntimeError:
        return False
