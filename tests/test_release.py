"""When a call may be run: after a later block has started, or after the stop reason was checked."""

from __future__ import annotations

import pytest

from sseam import (
    Done,
    Event,
    Failed,
    Message,
    Opaque,
    OpaqueBlock,
    ProtocolError,
    RefusalStart,
    ServerTool,
    ServerToolBlock,
    TextDelta,
    TextStart,
    ThinkingStart,
    ToolCall,
    ToolCallEnd,
    ToolCallStart,
    ToolCallWithheld,
    WithheldCall,
    release,
)

A = ToolCall(id="a", name="f", arguments={}, arguments_json="{}")
B = ToolCall(id="b", name="f", arguments={}, arguments_json="{}")
SERVER = ServerToolBlock(kind="web_search", raw={})
OPAQUE = OpaqueBlock(kind="new", raw={})
DONE = Done("tool_use", Message())


def withheld(index: int) -> Event:
    return ToolCallWithheld(index, WithheldCall(id="", name="f", arguments_json="{}", reason="unreleased", index=index))


@pytest.mark.parametrize(
    ("events", "released"),
    [
        ([ToolCallEnd(0, A)], [[]]),
        ([ToolCallEnd(0, A), TextStart(1)], [[], ["a"]]),
        ([ToolCallEnd(0, A), ThinkingStart(1)], [[], ["a"]]),
        ([ToolCallEnd(0, A), RefusalStart(1)], [[], ["a"]]),
        ([ToolCallEnd(0, A), ToolCallStart(1, "b", "f")], [[], ["a"]]),
        ([ToolCallEnd(0, A), ServerTool(1, SERVER, False)], [[], ["a"]]),
        ([ToolCallEnd(0, A), Opaque(1, OPAQUE, False)], [[], ["a"]]),
        ([ToolCallEnd(0, A), ServerTool(1, SERVER, True), Opaque(1, OPAQUE, True)], [[], [], []]),
        ([ToolCallEnd(0, A), TextDelta(1, "x")], [[], []]),
        ([ToolCallEnd(0, A), ToolCallEnd(1, B), DONE], [[], [], ["a", "b"]]),
        ([ToolCallEnd(0, A), TextStart(2), ToolCallEnd(1, B), DONE], [[], ["a"], [], ["b"]]),
        ([ToolCallEnd(0, A), withheld(0), DONE], [[], [], []]),
        ([ToolCallEnd(0, A), ToolCallEnd(1, B), withheld(1), DONE], [[], [], [], ["a"]]),
        ([ToolCallEnd(0, A), Failed(ProtocolError("x"), Message())], [[], []]),
    ],
)
def test_calls_are_released_by_what_follows(events: list[Event], released: list[list[str]]) -> None:
    pending = release.Pending()
    seen = []
    for event in events:
        pending, calls = release.step(pending, event)
        seen.append([call.id for call in calls])
    assert seen == released


def test_the_count_of_blocks_says_the_same() -> None:
    assert not release.is_released(started_at_end=2, started=2)
    assert release.is_released(started_at_end=2, started=3)
