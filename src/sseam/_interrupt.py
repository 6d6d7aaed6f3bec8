"""Ending a blocked await from another task or thread, under asyncio or trio.

A cancel scope or task of our own around the await would do it too, but scopes must not be held
across a yield and a task per read costs more than the read.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ._wait import under_asyncio, under_trio

__all__ = ["Interrupt", "Interrupted"]

T = TypeVar("T")


class Interrupted(Exception):
    """`Interrupt.fire` was called."""


class Interrupt:
    """A switch that ends the await in `guard`, now or later."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._fired = False
        self._cancel: Callable[[], object] | None = None

    @property
    def fired(self) -> bool:
        """Whether `fire` was called."""
        return self._fired

    def fire(self) -> None:
        """End the await in `guard`, from any task or thread; every later one ends at once."""
        with self._lock:
            self._fired = True
            if self._cancel is not None:
                self._cancel()
                self._cancel = None

    def _enter(self, cancel: Callable[[], object]) -> None:
        with self._lock:
            if self._fired:
                raise Interrupted
            self._cancel = cancel

    def _leave(self) -> bool:
        """Whether the await was ended by `fire`."""
        with self._lock:
            self._cancel = None
            return self._fired

    async def guard(self, awaitable: Callable[[], Awaitable[T]]) -> T:
        """The result of `awaitable()`. Raises `Interrupted` when fired; nothing that came is kept."""
        if under_asyncio():
            return await self._guard_asyncio(awaitable)
        if under_trio():
            return await self._guard_trio(awaitable)
        raise RuntimeError("sseam waits under asyncio or trio, and neither is running here")

    async def _guard_asyncio(self, awaitable: Callable[[], Awaitable[T]]) -> T:
        import asyncio

        loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None
        requested = False

        def cancel() -> None:
            # Runs in the loop. The await may have ended since: then nothing is to be cancelled.
            nonlocal requested
            if waiting:
                requested = True
                task.cancel()

        waiting = True
        self._enter(lambda: loop.call_soon_threadsafe(cancel))
        try:
            result = await awaitable()
        except asyncio.CancelledError:
            waiting = False
            # Ours alone, and not also somebody else's: only then it is ours to swallow.
            if requested and task.uncancel() == 0:
                raise Interrupted from None
            raise
        finally:
            waiting = False
            fired = self._leave()
        if fired:
            if requested:
                task.uncancel()
            raise Interrupted
        return result

    async def _guard_trio(self, awaitable: Callable[[], Awaitable[T]]) -> T:
        import trio

        token = trio.lowlevel.current_trio_token()
        with trio.CancelScope() as scope:
            self._enter(lambda: token.run_sync_soon(scope.cancel))
            try:
                result = await awaitable()
            finally:
                fired = self._leave()
            if not fired:
                return result
        raise Interrupted
