"""Work in a task of its own that nothing of its maker's encloses, under asyncio or trio.

A task group would have to be held open while the maker goes on, across whatever the maker yields
to, and could be left only in the task that entered it. A job can be started, watched and cancelled
from anywhere; that it ends is up to its maker, who cancels it and waits in a `finally`.
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

from .._wait import Signal, under_asyncio, under_trio

if TYPE_CHECKING:
    import asyncio

    import anyio

__all__ = ["GRACE", "Home", "Job", "in_thread", "wind_down"]

T = TypeVar("T")

# Seconds for cancelled work of others to wind down. What ignores its cancellation for longer is left to itself: a run
# must not hang on it.
GRACE = 5.0


class Home:
    """The event loop in which it is made, to be reached from any thread.

    Raises RuntimeError where neither asyncio nor trio runs the caller.
    """

    __slots__ = ("_post", "_thread")

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._post: Callable[[Callable[[], object]], object]
        if under_asyncio():
            import asyncio

            self._post = asyncio.get_running_loop().call_soon_threadsafe
        elif under_trio():
            import trio

            self._post = trio.lowlevel.current_trio_token().run_sync_soon
        else:
            raise RuntimeError("sseam runs tools and agents under asyncio or trio, and neither is running here")

    def call(self, work: Callable[[], object]) -> None:
        """Do `work` in the loop's thread: now, when this is it, else soon. Not at all once the loop has ended."""
        if threading.get_ident() == self._thread:
            work()
            return
        with contextlib.suppress(RuntimeError):
            self._post(work)


class Job:
    """`work` in a task of its own, begun right away. What `work` raises, but for its cancellation, it must handle.

    Attributes:
        finished: set when the task has ended.
    """

    __slots__ = ("__weakref__", "_cancelled", "_scope", "_task", "finished")

    def __init__(self, work: Callable[[], Awaitable[None]]) -> None:
        self.finished = Signal()
        self._cancelled = False
        self._scope: anyio.CancelScope | None = None
        self._task: asyncio.Task[None] | None = None  # the loop itself would not keep it alive
        if under_asyncio():
            import asyncio

            self._task = asyncio.get_running_loop().create_task(self._main(work))
            self._task.add_done_callback(lambda _: self.finished.set())  # it may be cancelled before it begins
        else:
            import trio

            context = contextvars.copy_context()
            trio.lowlevel.spawn_system_task(self._main, work, name=work, context=context)

    async def _main(self, work: Callable[[], Awaitable[None]]) -> None:
        import anyio

        try:
            with anyio.CancelScope() as self._scope:
                if self._cancelled:
                    self._scope.cancel()
                await work()
        finally:
            self._scope = None
            self.finished.set()

    def cancel(self) -> None:
        """Interrupt the work, now and whenever it waits again. Only in the loop's thread."""
        self._cancelled = True
        if self._scope is not None:
            self._scope.cancel()


async def wind_down(jobs: Iterable[Job]) -> None:
    """Cancel the jobs and wait until all have ended, `GRACE` at most, even if the caller is cancelled itself."""
    import anyio

    cancelled = list(jobs)
    for job in cancelled:
        job.cancel()
    with anyio.move_on_after(GRACE, shield=True):
        for job in cancelled:
            await job.finished.wait()


async def in_thread(work: Callable[[], T]) -> T:
    """`work()`, done in a thread. When the caller is cancelled the thread goes on, and what comes of it is dropped.

    Raises what `work` raises; a StopIteration, which no coroutine can raise, becomes a RuntimeError.
    """
    import anyio

    def guarded() -> tuple[T] | GeneratorExit:
        try:
            return (work(),)
        except StopIteration as error:
            raise RuntimeError(f"StopIteration: {error.value!r}") from error
        except GeneratorExit as error:
            return error  # thrown into a coroutine it would close the inner ones and then arrive at the outermost

    # A limiter of its own: threads that were given up must not take the places of others.
    limiter = anyio.CapacityLimiter(1)
    outcome = await anyio.to_thread.run_sync(guarded, abandon_on_cancel=True, limiter=limiter)
    if isinstance(outcome, GeneratorExit):
        raise outcome
    return outcome[0]
