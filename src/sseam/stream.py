"""The chain put together over a source of bytes: events to iterate and the final message."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from types import TracebackType
from typing import Any, Self, Unpack

import msgspec

from ._interrupt import Interrupt, Interrupted
from ._wait import Signal
from .errors import SseamError, StreamAborted, TransportError
from .events import Event, Failed
from .message import Message
from .parser import Parser, ParserOptions

__all__ = ["AsyncStream", "Stream", "aiter_events", "iter_events"]


class _Reading:
    """What the two streams share: the parser, the events nobody took yet, and how it ended."""

    def __init__(self, parser: Parser) -> None:
        self.parser = parser
        self.events: deque[Event] = deque()
        self.aborted = False
        self.iterated = False

    def claim(self) -> None:
        if self.iterated:
            raise RuntimeError("the stream has an iterator already: each event is delivered once")
        self.iterated = True

    def feed(self, chunk: bytes) -> None:
        self.events += self.parser.feed(chunk)

    def end(self) -> None:
        self.events += self.parser.finish()

    def break_off(self, cause: BaseException) -> None:
        """The source raised. A broken connection is a fault of ours to tell, everything else passes."""
        if not _is_broken_connection(cause):
            self.fail(StreamAborted(f"the source of the bytes raised {type(cause).__name__}"))
            raise cause
        error = TransportError(
            f"the connection broke: {type(cause).__name__}: {cause}",
            delivered=bool(self.parser.partial.content or self.parser.partial.withheld),
        )
        error.__cause__ = cause
        self.fail(error)

    def fail(self, error: SseamError) -> None:
        self.events += self.parser.abort(error)

    def abort(self) -> None:
        """The reader gave up: what comes now is not read, and what was not taken is not handed out."""
        if not self.parser.done:
            self.aborted = True
            self.events.clear()
            self.parser.abort(StreamAborted("the stream was aborted"))

    def take(self) -> Event | None:
        """The next event, None when the stream is over. Raises the error of a fault in its place."""
        if self.events:
            event = self.events.popleft()
            if isinstance(event, Failed):
                raise event.error
            return event
        if self.aborted:
            self.parser.result()
        return None

    def message(self) -> Message:
        if self.aborted:
            return msgspec.structs.replace(self.parser.partial, stop_reason="aborted")
        return self.parser.result()


# Classes of HTTP libraries that say that the connection broke; none of these is imported here.
_BROKEN = frozenset(
    {
        "httpx.TransportError",
        "httpx2.TransportError",
        "httpcore.NetworkError",
        "httpcore.ProtocolError",
        "httpcore.TimeoutException",
        "aiohttp.ClientPayloadError",
        "aiohttp.ClientConnectionError",
        "anyio.BrokenResourceError",
        "anyio.ClosedResourceError",
        "trio.BrokenResourceError",
        "trio.ClosedResourceError",
        "http.IncompleteRead",
    }
)


def _is_broken_connection(cause: BaseException) -> bool:
    if isinstance(cause, ConnectionError | TimeoutError):
        return True
    return any(f"{base.__module__.partition('.')[0]}.{base.__name__}" in _BROKEN for base in type(cause).__mro__)


class Stream:
    """Events from an iterable of chunks. Made by `iter_events`.

    Iterating gives the fine events and raises on a fault, after every event before it was given.
    Nothing behind the terminal event is read. `message()` reads what nobody iterated; the events
    stay for the iterator. Usable from several threads; leaving the `with` closes the source.
    """

    def __init__(self, chunks: Iterable[bytes], parser: Parser) -> None:
        self._source = chunks
        self._chunks = iter(chunks)
        self._reading = _Reading(parser)
        self._lock = threading.Lock()

    @property
    def partial(self) -> Message:
        """The message so far."""
        return self._reading.parser.partial

    def __iter__(self) -> Iterator[Event]:
        self._reading.claim()
        return self._events()

    def _events(self) -> Iterator[Event]:
        while True:
            event = self._next()
            if event is None:
                return
            yield event

    def _next(self) -> Event | None:
        with self._lock:
            while not self._reading.events and not self._reading.parser.done:
                self._read()
            return self._reading.take()

    def _read(self) -> None:
        reading = self._reading
        try:
            chunk = next(self._chunks, None)
        except BaseException as cause:
            reading.break_off(cause)
        else:
            if chunk is None:
                reading.end()
            else:
                reading.feed(chunk)
        if reading.parser.done:
            self._close_source()

    def message(self) -> Message:
        """The final message, reading whatever is left.

        After `abort` it is what was whole by then, with the stop reason "aborted" and not complete.

        Raises:
            SseamError: what is wrong with the stream; its `partial` is the message so far.
        """
        with self._lock:
            while not self._reading.parser.done:
                self._read()
        return self._reading.message()

    def abort(self) -> None:
        """Give up: the iterator raises `StreamAborted`, and nothing more is handed out.

        From another thread it takes effect when the source gives its next chunk.
        """
        self._reading.abort()

    def close(self) -> None:
        """Give up, if the stream is not over, and close the source."""
        self._reading.abort()
        self._close_source()

    def _close_source(self) -> None:
        close = getattr(self._source, "close", None) or getattr(self._chunks, "close", None)
        if close is not None:
            close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncStream:
    """Events from an async iterable of chunks, under asyncio or trio. Made by `aiter_events`.

    As `Stream`: one task may iterate while others await `message()`; each event is delivered once.
    """

    def __init__(self, chunks: AsyncIterable[bytes], parser: Parser) -> None:
        self._source = chunks
        self._chunks = aiter(chunks)
        self._reading = _Reading(parser)
        self._interrupt = Interrupt()
        self._turn: Signal | None = None  # set when the task that reads has read

    @property
    def partial(self) -> Message:
        """The message so far."""
        return self._reading.parser.partial

    def __aiter__(self) -> AsyncIterator[Event]:
        self._reading.claim()
        return self._events()

    async def _events(self) -> AsyncIterator[Event]:
        reading = self._reading
        while True:
            while not reading.events and not reading.parser.done:
                await self._read()
            event = reading.take()
            if event is None:
                return
            yield event

    async def _read(self) -> None:
        """One chunk more: read by this task, or by the one that is at it already."""
        if self._turn is not None:
            await self._turn.wait()
            return
        self._turn = Signal()
        try:
            await self._read_chunk()
            if self._reading.parser.done:
                await self._close_source()
        finally:
            turn, self._turn = self._turn, None
            turn.set()

    async def _read_chunk(self) -> None:
        reading = self._reading
        try:
            chunk = await self._interrupt.guard(self._chunks.__anext__)
        except StopAsyncIteration:
            reading.end()
        except Interrupted:
            reading.abort()
        except BaseException as cause:
            reading.break_off(cause)
        else:
            reading.feed(chunk)

    async def message(self) -> Message:
        """The final message, reading whatever is left. As `Stream.message`."""
        while not self._reading.parser.done:
            await self._read()
        return self._reading.message()

    def abort(self) -> None:
        """Give up: a blocked read ends at once, the iterator raises `StreamAborted`, and nothing
        more is handed out. From any task or thread."""
        self._reading.abort()
        self._interrupt.fire()

    async def aclose(self) -> None:
        """Give up, if the stream is not over, and close the source."""
        self.abort()
        while self._turn is not None:
            await self._turn.wait()
        await self._close_source()

    async def _close_source(self) -> None:
        close: Any = getattr(self._source, "aclose", None) or getattr(self._chunks, "aclose", None)
        if close is not None:
            await close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def iter_events(chunks: Iterable[bytes], protocol: str, **options: Unpack[ParserOptions]) -> Stream:
    """A stream over chunks of bytes as they come. See `Parser` for the options."""
    return Stream(chunks, Parser(protocol, **options))


def aiter_events(chunks: AsyncIterable[bytes], protocol: str, **options: Unpack[ParserOptions]) -> AsyncStream:
    """An async stream over chunks of bytes as they come. See `Parser` for the options."""
    return AsyncStream(chunks, Parser(protocol, **options))
