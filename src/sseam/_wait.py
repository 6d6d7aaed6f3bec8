"""Waiting for something that another task or thread does, under asyncio or trio.

Neither is imported before a coroutine waits, and then only the one that runs it.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

__all__ = ["Signal", "from_anywhere", "later", "shielded", "sleep", "under_asyncio", "under_trio"]


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


async def sleep(seconds: float) -> None:
    """Wait, under asyncio or trio."""
    if under_trio():
        import trio

        await trio.sleep(seconds)
    else:
        import asyncio

        await asyncio.sleep(seconds)


async def shielded(work: Callable[[], Awaitable[object]]) -> None:
    """Await `work()` also where the task is cancelled already.

    asyncio tells a task of its cancellation once and lets it work on; trio needs a shield.
    """
    if under_trio():
        import trio

        with trio.CancelScope(shield=True):
            await work()
    else:
        await work()


def from_anywhere() -> Callable[[Callable[[], object]], object]:
    """A function, callable from any thread, that runs a plain function soon in the loop that runs here."""
    if under_trio():
        import trio

        return trio.lowlevel.current_trio_token().run_sync_soon
    import asyncio

    return asyncio.get_running_loop().call_soon_threadsafe


def later() -> Callable[[Callable[[], Coroutine[Any, Any, None]]], None]:
    """A function, callable from anywhere, that runs a coroutine soon in the loop that runs here.

    For what is left to do when an object is dropped. It does nothing once the loop is closed.
    """
    if under_trio():
        import trio

        token = trio.lowlevel.current_trio_token()
        left: trio.lowlevel.RunVar[object] = trio.lowlevel.RunVar("left", default=None)

        def spawn(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
            try:
                trio.lowlevel.spawn_system_task(work)
            except RuntimeError:
                # A run whose main function has returned takes no more tasks, and closes every async generator
                # that is still there: those in `work` are to be.
                left.set((work, left.get()))

        def run_in_trio(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
            with contextlib.suppress(trio.RunFinishedError):
                token.run_sync_soon(spawn, work)

        return run_in_trio

    import asyncio

    loop = asyncio.get_running_loop()

    def start(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        task = loop.create_task(work())
        _running.add(task)
        task.add_done_callback(_running.discard)

    def run_in_asyncio(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(start, work)

    return run_in_asyncio


# asyncio itself keeps only weak references to tasks.
_running: set[object] = set()
