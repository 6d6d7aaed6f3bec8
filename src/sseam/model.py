"""Atomic events for a loop: each can be acted on by itself the moment it arrives."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import Any, TypeAlias, get_args, overload

import msgspec

from . import release
from .events import Done, Event, Failed, TextDelta
from .message import Message, ToolCall

__all__ = ["ModelDone", "ModelEvent", "ModelText", "ModelToolCall", "model_events"]


class _ModelEvent(msgspec.Struct, frozen=True, gc=False, tag_field="type"):
    pass


class ModelText(_ModelEvent, frozen=True, gc=False, tag="text"):
    """More visible text."""

    text: str


class ModelToolCall(_ModelEvent, frozen=True, gc=False, tag="tool_call"):
    """One whole, released tool call: it may be run."""

    call: ToolCall


class ModelDone(_ModelEvent, frozen=True, gc=False, tag="done"):
    """The protocol was wrapped up. That the answer is good, `reason` must say."""

    reason: str
    message: Message


ModelEvent: TypeAlias = ModelText | ModelToolCall | ModelDone

_EVENTS = frozenset(get_args(Event))


def advance(pending: release.Pending, event: Event) -> tuple[release.Pending, list[ModelEvent]]:
    """What waits next, and the atomic events that `event` makes.

    Raises the error of a `Failed`, and `TypeError` for what is no fine event.
    """
    if isinstance(event, TextDelta):
        return pending, [ModelText(event.text)]
    if isinstance(event, Failed):
        raise event.error
    if type(event) not in _EVENTS:
        raise TypeError(f"expected a fine event, one of sseam.events, got {type(event).__name__}")
    pending, calls = release.step(pending, event)
    atomic: list[ModelEvent] = [ModelToolCall(call) for call in calls]
    if isinstance(event, Done):
        atomic.append(ModelDone(event.reason, event.message))
    return pending, atomic


@overload
def model_events(stream: AsyncIterable[Event]) -> AsyncIterator[ModelEvent]: ...
@overload
def model_events(stream: Iterable[Event]) -> Iterator[ModelEvent]: ...
def model_events(stream: Iterable[Event] | AsyncIterable[Event]) -> Iterator[ModelEvent] | AsyncIterator[ModelEvent]:
    """The atomic events of a `Stream`, an `AsyncStream`, or anything that gives fine events.

    A fault raises, after every event before it was given.

    Raises:
        TypeError: what is no stream of events; of bytes, `iter_events` makes one.
    """
    if isinstance(stream, AsyncIterable):
        return _AsyncModelEvents(stream)
    given: Any = stream
    found = type(given).__name__
    if isinstance(given, bytes | bytearray | memoryview):
        raise TypeError(f"expected a stream of events, got {found}: sseam.iter_events makes one of bytes")
    if not hasattr(given, "__iter__"):
        raise TypeError(f"expected a stream of events, got {found}")
    return _sync(stream)


def _sync(stream: Iterable[Event]) -> Iterator[ModelEvent]:
    pending = release.Pending()
    for event in stream:
        pending, atomic = advance(pending, event)
        yield from atomic


class _AsyncModelEvents(AsyncIterator[ModelEvent]):
    """A class and no generator: one of those that is left early waits for the collector, of which trio warns."""

    def __init__(self, stream: AsyncIterable[Event]) -> None:
        self._events = aiter(stream)
        self._pending = release.Pending()
        self._due: deque[ModelEvent] = deque()

    async def __anext__(self) -> ModelEvent:
        while not self._due:
            self._pending, atomic = advance(self._pending, await anext(self._events))
            self._due += atomic
        return self._due.popleft()
