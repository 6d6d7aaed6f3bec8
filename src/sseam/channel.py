"""The push channel: a producer of one's own on one side, events and a message on the other."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Awaitable, Callable
from types import TracebackType

from ._wait import Signal
from .errors import StreamSequenceError
from .events import Done, Event, Failed
from .message import Message
from .sequence import Phase, Validator

__all__ = ["EventStream"]


class EventStream:
    """A stream of neutral events that someone pushes and someone else reads.

    Every event passes `sequence.Validator`. The stream ends once, with the first of: a `Done`, a
    `Failed`, a refused event, `fail`. What comes after that changes nothing for its readers.

    `push` and `fail` may be called from any thread; the reader runs under asyncio or trio. Events
    wait for their reader without limit, since a producer that is no coroutine cannot be held back.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._validator = Validator()
        self._waiting: deque[Event] = deque()
        self._over = Signal()
        self._message: Message | None = None
        self._error: Exception | None = None
        self._traceback: TracebackType | None = None
        self._arrival: Signal | None = None  # there while a reader waits, set by what it waits for
        self._reader: weakref.ref[_Reader] | None = None
        self._read_out = False
        self._given_up = False

    def push(self, event: Event) -> None:
        """Hand on the next event.

        Raises:
            StreamSequenceError: the event may not come here. If the stream was not over, it has
                now failed with this same error.
        """
        with self._lock:
            if self._over.is_set:
                raise self._too_late(event)
            try:
                self._validator.accept(event)
            except StreamSequenceError as error:
                self._end(error)
                raise
            match event:
                case Failed():
                    self._end(event.error)
                case Done():
                    self._hand_on(event)
                    self._message = event.message
                    self._end(None)
                case _:
                    self._hand_on(event)

    def fail(self, error: Exception) -> None:
        """End the stream with an error of the producer's own; ignored when the stream is over.

        The readers get it as it is. Only an error that means "no more items" to Python, and would
        end an `async for` as if all had come, becomes the cause of a `RuntimeError`.

        Raises:
            TypeError: `error` is no `Exception`; a cancellation belongs to the task it was sent to.
        """
        if not isinstance(error, Exception):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"fail() takes an Exception, not {type(error).__name__}")
        if isinstance(error, StopIteration | StopAsyncIteration):
            cause, error = error, RuntimeError(f"the producer raised {type(error).__name__}")
            error.__cause__ = cause
        with self._lock:
            if not self._over.is_set:
                self._end(error)

    def __aiter__(self) -> _Reader:
        """The events, each delivered once, with `Done` as the last; then, or instead, the error.

        A reader that leaves (by `break`, by cancellation) frees its place, and the next one goes
        on behind the last event that was delivered. One that leaves by `aclose()` gives up the
        rest, which is dropped as it comes. `result()` works in any case.

        Raises:
            RuntimeError: another reader is there, or the events were all read or given up.
        """
        with self._lock:
            if self._read_out or self._given_up:
                raise RuntimeError("the events of this stream were read or given up; await result() for its message")
            reader = _Reader(self._next, self._give_up)
            self._take_place(reader)
            return reader

    async def result(self) -> Message:
        """The message of the `Done`, whether or not anyone reads the events. Raises what the stream failed with."""
        await self._over.wait()
        self._raise_failure()
        assert self._message is not None
        return self._message

    # Called with the lock held.

    def _take_place(self, reader: _Reader) -> None:
        other = self._reader and self._reader()
        if other is not None and other is not reader:
            raise RuntimeError("this stream is being read already, and each event is delivered once")
        self._reader = weakref.ref(reader)

    def _hand_on(self, event: Event) -> None:
        if not self._given_up:
            self._waiting.append(event)
            self._wake()

    def _end(self, error: Exception | None) -> None:
        if error is not None:
            self._error, self._traceback = error, error.__traceback__
        self._over.set()
        self._wake()

    def _wake(self) -> None:
        if self._arrival is not None:
            self._arrival.set()
            self._arrival = None

    def _too_late(self, event: object) -> StreamSequenceError:
        kind = type(event).__name__
        how = "failed" if self._error is not None else "done"
        error = StreamSequenceError(
            f"{kind} came after the stream was {how}", event_type=kind, phase=Phase.TERMINAL.value
        )
        error.__cause__ = self._error
        return error

    # The reader's side.

    async def _next(self, reader: _Reader) -> Event:
        while True:
            with self._lock:
                self._take_place(reader)
                if self._waiting:
                    return self._waiting.popleft()
                if self._given_up:
                    raise StopAsyncIteration
                if self._over.is_set:
                    self._read_out = True
                    break
                arrival = self._arrival = self._arrival or Signal()
            try:
                await arrival.wait()
            except BaseException:
                self._reader = None  # the traceback of a cancellation may keep a reader alive that has left
                raise
        self._raise_failure()
        raise StopAsyncIteration

    def _give_up(self) -> None:
        with self._lock:
            self._given_up = True
            self._waiting.clear()
            self._wake()

    def _raise_failure(self) -> None:
        # All readers raise the same object; without this it would gather the traceback of each.
        if self._error is not None:
            raise self._error.with_traceback(self._traceback)


class _Reader:
    """The one iterator of an `EventStream`, which does not keep it alive: letting go of it is leaving."""

    __slots__ = ("__weakref__", "_advance", "_give_up")

    def __init__(self, advance: Callable[[_Reader], Awaitable[Event]], give_up: Callable[[], None]) -> None:
        self._advance = advance
        self._give_up = give_up

    def __aiter__(self) -> _Reader:
        return self

    async def __anext__(self) -> Event:
        return await self._advance(self)

    async def aclose(self) -> None:
        """Give up the events that were not read yet."""
        self._give_up()
