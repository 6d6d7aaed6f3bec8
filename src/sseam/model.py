"""Atomic events for a loop: each can be acted on by itself the moment it arrives."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import TypeAlias, overload

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


def advance(pending: release.Pending, event: Event) -> tuple[release.Pending, list[ModelEvent]]:
    """What waits next, and the atomic events that `event` makes. Raises the error of a `Failed`."""
    if isinstance(event, TextDelta):
        return pending, [ModelText(event.text)]
    if isinstance(event, Failed):
        raise event.error
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
    """
    return _AsyncModelEvents(stream) if isinstance(stream, AsyncIterable) else _sync(stream)


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
