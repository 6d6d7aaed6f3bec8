"""What a client's `stream` gave, async or not, as one async iterator that is closed however it is left."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from functools import partial
from typing import Any

from ._job import GRACE, in_thread

__all__ = ["opened"]

_END = object()


@contextlib.asynccontextmanager
async def opened(stream: Any) -> AsyncGenerator[AsyncIterator[Any], None]:
    """The stream's events. A context manager is entered and left; a stream that is not async is read in threads."""
    if hasattr(stream, "__aenter__"):
        async with stream as entered, _closing(aiter(entered)) as iterator:
            yield iterator
    elif hasattr(stream, "__aiter__"):
        async with _closing(aiter(stream)) as iterator:
            yield iterator
    else:
        reading = _ThreadedReading(stream)
        try:
            yield reading
        finally:
            await reading.aclose()


@contextlib.asynccontextmanager
async def _closing(iterator: Any) -> AsyncGenerator[AsyncIterator[Any], None]:
    try:
        yield iterator
    finally:
        close = getattr(iterator, "aclose", None)
        if close is not None:
            await close()


class _ThreadedReading:
    """A stream that is not async. Each step is one call in a thread, so the event loop goes on beside it."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._iterator: Any = None
        self._blocked = False  # a read was given up and may go on in its thread

    def __aiter__(self) -> _ThreadedReading:
        return self

    async def __anext__(self) -> Any:
        self._blocked = True
        event = await in_thread(self._next)
        self._blocked = False
        if event is _END:
            raise StopAsyncIteration
        return event

    def _next(self) -> Any:
        if self._iterator is None:
            enter = getattr(self._stream, "__enter__", None)
            self._iterator = iter(self._stream if enter is None else enter())
        return next(self._iterator, _END)

    async def aclose(self) -> None:
        import anyio

        with anyio.move_on_after(GRACE, shield=True):
            await in_thread(self._close)

    def _close(self) -> None:
        # A generator that is at work in another thread cannot be closed, and a response that is closed under its
        # reader may complain: neither is a fault of the run, which was given up.
        with contextlib.suppress(*([Exception] if self._blocked else [])):
            for close in self._closers():
                close()

    def _closers(self) -> list[Callable[[], object]]:
        closers: list[Callable[[], object]] = []
        if hasattr(self._iterator, "close"):
            closers.append(self._iterator.close)
        if hasattr(self._stream, "__exit__") and self._iterator is not None:
            closers.append(partial(self._stream.__exit__, None, None, None))
        return closers
