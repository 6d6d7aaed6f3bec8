"""Atomic events: text, whole released calls, done."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

import sseam

CALL = sseam.ToolCall(id="a", name="f", arguments={}, arguments_json="{}")
MESSAGE = sseam.Message(content=(sseam.TextBlock(text="Hi"), CALL), stop_reason="tool_use", complete=True)
EVENTS: list[sseam.Event] = [
    sseam.Start(),
    sseam.TextStart(0),
    sseam.TextDelta(0, "Hi"),
    sseam.TextEnd(0, "Hi"),
    sseam.ThinkingStart(1),
    sseam.ThinkingDelta(1, "Hm"),
    sseam.ThinkingEnd(1, "Hm"),
    sseam.ToolCallStart(2, "a", "f"),
    sseam.ToolCallDelta(2, "{}"),
    sseam.ToolCallEnd(2, CALL),
    sseam.Done("tool_use", MESSAGE),
]
ATOMIC = [sseam.ModelText("Hi"), sseam.ModelToolCall(CALL), sseam.ModelDone("tool_use", MESSAGE)]


def test_of_a_sync_stream() -> None:
    assert list(sseam.model_events(EVENTS)) == ATOMIC


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_of_an_async_stream() -> None:
    async def source() -> AsyncIterator[sseam.Event]:
        for event in EVENTS:
            yield event

    assert [event async for event in sseam.model_events(source())] == ATOMIC


def test_a_call_comes_the_moment_it_is_released() -> None:
    events = iter([*EVENTS[:-1], sseam.TextStart(3)])
    atomic = sseam.model_events(events)
    assert [next(atomic), next(atomic)] == ATOMIC[:2]


def test_a_fault_raises_after_what_came_before_and_releases_nothing() -> None:
    error = sseam.TruncatedStream("cut")
    atomic = sseam.model_events([*EVENTS[:-1], sseam.Failed(error, sseam.Message())])
    assert next(atomic) == ATOMIC[0]
    with pytest.raises(sseam.TruncatedStream):
        next(atomic)


@pytest.mark.parametrize(
    ("stream", "text"),
    [
        (b"data: {}", "got bytes: sseam.iter_events makes one of bytes"),
        (None, "got NoneType"),
        ([1], "expected a fine event, one of sseam.events, got int"),
        ("ab", "got str"),
        (ATOMIC, "got ModelText"),
    ],
)
def test_what_is_no_stream_of_events(stream: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        list(sseam.model_events(stream))
