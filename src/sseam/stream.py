"""The chain put together over a source of bytes: events to iterate and the final message."""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Sized
from types import TracebackType
from typing import Any, Protocol, Self, Unpack

from ._interrupt import Interrupt, Interrupted, Watchdog
from ._reading import Reading
from ._wait import Signal, shielded, sleep
from .events import Event
from .message import Message
from .parser import Parser, ParserOptions, chunks_of
from .retry import Attempt

__all__ = ["AsyncStream", "Stream", "aiter_events", "iter_events"]


class Source(Protocol):
    """Where the bytes of a call come from."""

    chunks: Iterator[bytes] | None
    """The bytes; None before `open` and after `close`."""

    def open(self) -> None:
        """Begin an attempt: `chunks` are there then."""
        ...

    def close(self, *, ended: bool) -> None:
        """Let go of the connection. `ended`: the stream's own end was read, only the body's may be missing."""
        ...

    def interrupt(self) -> None:
        """End a read that another thread is blocked in, if that can be."""
        ...


class AsyncSource(Protocol):
    """As `Source`, for coroutines."""

    chunks: AsyncIterator[bytes] | None

    async def open(self) -> None:
        """Begin an attempt: `chunks` are there then."""
        ...

    async def close(self, *, ended: bool) -> None:
        """Let go of the connection. `ended`: the stream's own end was read, only the body's may be missing."""
        ...

    def interrupt(self) -> bool:
        """End a read that a task is blocked in without cancelling the task, from any thread; whether that can be."""
        ...

    direct: bool
    """Whether `interrupt` can be relied on for the chunks that are there now."""


class _Liveness:
    """What both streams tell of a call."""

    _reading: Reading

    @property
    def partial(self) -> Message:
        """The message so far."""
        return self._reading.partial

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """The requests that were made so far, the running one last. None over an iterable of bytes."""
        return tuple(self._reading.attempts)

    @property
    def last_seen(self) -> float | None:
        """When the last bytes came, pings and comments too, by `time.monotonic`; None before the first."""
        return self._reading.deadlines.seen

    @property
    def last_progress(self) -> float | None:
        """When the last event that says something came, by `time.monotonic`; None before the first."""
        return self._reading.deadlines.progressed


class Stream(_Liveness):
    """Events from a source of bytes. Made by `iter_events` and by `Client.stream`.

    Iterating gives the fine events and raises on a fault, after every event before it was given.
    Nothing behind the terminal event is read. `message()` reads what nobody iterated; the events
    stay for the iterator. Usable from several threads; leaving the `with` closes the source.
    """

    def __init__(self, source: Source, reading: Reading) -> None:
        self._source = source
        self._reading = reading
        self._watchdog = Watchdog(reading.deadlines, source.interrupt)
        self._lock = threading.Lock()
        self._released = False

    def __iter__(self) -> Iterator[Event]:
        self._reading.claim()
        return self._events()

    def _events(self) -> Iterator[Event]:
        reading, waiting, lock = self._reading, self._reading.events, self._lock
        while True:
            if not waiting:
                with lock:
                    self._read(until=waiting)
                    if not waiting or reading.failed:
                        self._release()
            if reading.given_up is not None:
                self._release_unread()
            event = reading.take()
            if event is None:
                return
            yield event

    def _read(self, until: Sized = ()) -> None:
        """Read until there is something in `until`, or to the end."""
        reading, source = self._reading, self._source
        deadlines, watchdog = reading.deadlines, self._watchdog
        while not reading.over and not until:
            if reading.pause is not None:
                self._start_over(reading.pause)
                continue
            if reading.fresh:
                reading.begin()
            elif deadlines.paused:
                deadlines.wait(time.monotonic())
            chunk: bytes | None = b""
            try:
                if deadlines.due < watchdog.alarm.due:
                    watchdog.watch()
                if source.chunks is None:
                    source.open()
                else:
                    chunk = next(source.chunks)
            except StopIteration:
                chunk = None
            except Interrupted as stop:
                reading.interrupted(late=stop.late)
            except BaseException as cause:
                if not (watchdog.late and isinstance(cause, Exception)):
                    self._break_off(cause)
            if watchdog.late:
                reading.interrupted(late=True)
            elif chunk != b"" and not reading.over:
                reading.feed(chunk)

    def _break_off(self, cause: BaseException) -> None:
        try:
            self._reading.break_off(cause)
        except BaseException:
            self._release()
            raise

    def _start_over(self, seconds: float) -> None:
        self._source.close(ended=False)
        try:
            self._watchdog.sleep(seconds)
        except Interrupted:
            return
        self._watchdog.late = False
        self._reading.start_over()

    def message(self) -> Message:
        """The final message, reading whatever is left.

        After `abort` it is what was whole by then, with the stop reason "aborted" and not complete.

        Raises:
            SseamError: what is wrong with the stream; its `partial` is the message so far.
        """
        with self._lock:
            self._read()
            self._release()
            return self._reading.message()

    def abort(self) -> None:
        """Give up: a blocked read ends, the iterator raises `StreamAborted`, and nothing more is handed
        out. From any thread.

        Where there is no connection to shut down (an iterable, HTTP/2, a transport of the caller's own), a
        blocked read ends with its next bytes, or with a time limit.
        """
        self._reading.abort()
        if self._reading.given_up is not None:
            self._watchdog.fire()
            self._release_unread()

    def close(self) -> None:
        """Give up, if the stream is not over, and close the source."""
        self._reading.abort(closed=True)
        if self._reading.given_up is not None:
            self._watchdog.fire()
        self._release_unread()

    def _release_unread(self) -> None:
        """Close the source, unless another thread is reading, which then does it."""
        if self._lock.acquire(blocking=False):
            try:
                self._release()
            finally:
                self._lock.release()

    def _release(self) -> None:
        if not self._released:
            self._released = True
            try:
                self._source.close(ended=self._reading.ended)
            finally:
                self._watchdog.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_watchdog"):  # of one whose making was interrupted it is not there
            self._watchdog.stop()


class AsyncStream(_Liveness):
    """Events from a source of bytes, under asyncio or trio. Made by `aiter_events` and `AsyncClient.stream`.

    As `Stream`: one task may iterate while others await `message()`; each event is delivered once.
    Cancelling the task that reads ends the stream for all.
    """

    def __init__(self, source: AsyncSource, reading: Reading) -> None:
        self._source = source
        self._reading = reading
        self._interrupt = Interrupt(reading.deadlines, source.interrupt)
        self._busy = False  # a task is reading or closing
        self._turn: Signal | None = None  # there while others wait for it
        self._released = False

    def __aiter__(self) -> AsyncIterator[Event]:
        self._reading.claim()
        return _AsyncEvents(self)

    async def _next(self) -> Event:
        reading = self._reading
        if not reading.events:
            await self._read(until=reading.events)
            if reading.over and not (reading.events and reading.ended):
                await self._release()
        event = reading.take()
        if event is None:
            raise StopAsyncIteration
        return event

    async def _read(self, until: Sized = ()) -> None:
        """Read until there is something in `until`, or to the end. Of several tasks one reads, the others wait."""
        reading, source, interrupt = self._reading, self._source, self._interrupt
        deadlines = reading.deadlines
        while not reading.over and not until:
            if self._busy:
                await self._wait_turn()
                continue
            self._busy = True
            chunk: bytes | None = b""
            try:
                if reading.pause is not None:
                    await self._start_over(reading.pause)
                    continue
                if reading.fresh:
                    reading.begin()
                if source.chunks is None:
                    await interrupt.guard_request(source.open)
                elif source.direct and interrupt.direct:
                    if deadlines.paused:
                        deadlines.wait(time.monotonic())
                    if deadlines.due < interrupt.watched:
                        interrupt.watch()
                    chunk = await source.chunks.__anext__()
                else:
                    chunk = await interrupt.guard(source.chunks.__anext__)
            except StopAsyncIteration:
                chunk = None
            except Interrupted as stop:
                reading.interrupted(late=stop.late)
            except BaseException as cause:
                if not (interrupt.late and isinstance(cause, Exception)):
                    await self._break_off(cause)
            finally:
                self._busy = False
                if self._turn is not None:
                    self._pass_turn()
            if interrupt.late:
                reading.interrupted(late=True)
            elif chunk != b"" and not reading.over:
                reading.feed(chunk)

    async def _break_off(self, cause: BaseException) -> None:
        try:
            self._reading.break_off(cause)
        except BaseException:
            # What is not ours to tell passes through, and leaves nothing open behind it.
            self._released = True
            await shielded(self._close)
            raise

    async def _start_over(self, seconds: float) -> None:
        try:
            await self._source.close(ended=False)
            await self._interrupt.guard(lambda: sleep(seconds))
        except Interrupted:
            return
        self._interrupt.late = False
        self._reading.start_over()

    async def _wait_turn(self) -> None:
        if self._turn is None:
            self._turn = Signal()
        await self._turn.wait()

    def _pass_turn(self) -> None:
        turn, self._turn = self._turn, None
        if turn is not None:
            turn.set()

    async def message(self) -> Message:
        """The final message, reading whatever is left. As `Stream.message`."""
        await self._read()
        await self._release()
        return self._reading.message()

    def abort(self) -> None:
        """Give up: a blocked read ends at once, the iterator raises `StreamAborted`, and nothing
        more is handed out. From any task or thread."""
        self._reading.abort()
        if self._reading.given_up is not None:
            self._interrupt.fire()

    async def aclose(self) -> None:
        """Give up, if the stream is not over, and close the source. From any task."""
        self._reading.abort(closed=True)
        if self._reading.given_up is not None:
            self._interrupt.fire()
        await self._release()

    async def _release(self) -> None:
        """Close the source, once; return when it is closed."""
        while self._busy:
            await self._wait_turn()
        if self._released:
            return
        self._released = True
        self._busy = True
        try:
            await shielded(self._close)
        finally:
            self._busy = False
            self._pass_turn()

    async def _close(self) -> None:
        self._interrupt.stop()
        await self._source.close(ended=self._reading.ended)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __del__(self) -> None:
        if hasattr(self, "_interrupt"):
            self._interrupt.stop()


class _AsyncEvents:
    """The iterator of an `AsyncStream`. No generator: an event loop would have to finalise one."""

    __slots__ = ("_stream",)

    def __init__(self, stream: AsyncStream) -> None:
        self._stream = stream

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    def __anext__(self) -> Any:
        return self._stream._next()  # pyright: ignore[reportPrivateUsage]


class _Chunks:
    """An iterable of chunks as a source."""

    def __init__(self, source: bytes | Iterable[bytes]) -> None:
        self._source = source
        self.chunks: Iterator[bytes] | None = iter(chunks_of(source))

    def open(self) -> None:
        """Nothing: an iterable is open from the start, and is not opened again."""

    def close(self, *, ended: bool) -> None:
        del ended
        close = getattr(self._source, "close", None) or getattr(self.chunks, "close", None)
        if close is not None:
            close()

    def interrupt(self) -> None:
        """Nothing: an iterable cannot be told."""


class _AsyncChunks:
    """An async iterable of chunks as a source."""

    def __init__(self, source: AsyncIterable[bytes]) -> None:
        self._source = source
        self.chunks: AsyncIterator[bytes] | None = aiter(source)
        self.direct = False

    async def open(self) -> None:
        """Nothing: as `_Chunks.open`."""

    async def close(self, *, ended: bool) -> None:
        del ended
        close: Any = getattr(self._source, "aclose", None) or getattr(self.chunks, "aclose", None)
        if close is not None:
            await close()

    def interrupt(self) -> bool:
        return False


def iter_events(chunks: bytes | Iterable[bytes], protocol: str, **options: Unpack[ParserOptions]) -> Stream:
    """A stream over chunks of bytes as they come.

    Args:
        chunks: the chunks, or all of the bytes.
        protocol: as `Parser` takes it.
        **options: `dialect`, `strict`, `tools`, `accept` and `limits`, as `Parser` takes them.

    Raises:
        TypeError, ValueError: an argument that is none of these.
    """
    return Stream(_Chunks(chunks), Reading(lambda: Parser(protocol, **options), protocol=protocol))


def aiter_events(chunks: AsyncIterable[bytes], protocol: str, **options: Unpack[ParserOptions]) -> AsyncStream:
    """An async stream over chunks of bytes as they come. As `iter_events`."""
    if not hasattr(chunks, "__aiter__"):
        raise TypeError(f"expected an async iterable of bytes, got {type(chunks).__name__}")
    return AsyncStream(_AsyncChunks(chunks), Reading(lambda: Parser(protocol, **options), protocol=protocol))
