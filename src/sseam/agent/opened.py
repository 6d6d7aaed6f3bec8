"""What a client's `stream` gave, async or not, as one async iterator that is closed however it is left."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from .job import GRACE, in_thread

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

    def __aiter__(self) -> _ThreadedReading:
        return self

    async def __anext__(self) -> Any:
        event = await in_thread(self._next)
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
        """Leave the stream, or close its iterator. After a read that was given up it may still be at work in its
        thread, and raise for it: nobody is told, since the run is over then."""
        if self._iterator is None:
            return
        if hasattr(self._stream, "__exit__"):
            self._stream.__exit__(None, None, None)
        elif hasattr(self._iterator, "close"):
            self._iterator.close()
