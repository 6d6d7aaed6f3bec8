"""Frames to wire events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import sseam
from sseam.protocols.anthropic_messages import STOP_REASONS, decode, wire


def framed(data: bytes | str, event: str = "message") -> sseam.Frame:
    return sseam.Frame(event, data if isinstance(data, bytes) else data.encode(), "", None, 0, 0)


def event(type: str, **fields: Any) -> wire.Event:
    return decode(framed(json.dumps({"type": type, **fields}), type))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (event("ping"), wire.Ping()),
        (event("message_stop", new=1), wire.MessageStop()),
        (event("message_start", message={"id": "x"}), wire.MessageStart({"id": "x"})),
        (event("content_block_stop", index=3), wire.ContentBlockStop(3)),
        (
            event("content_block_start", index=0, content_block={"type": "text", "new": 1}),
            wire.ContentBlockStart(0, {"type": "text", "new": 1}),
        ),
        (
            event("content_block_delta", index=0, delta={"type": "text_delta", "text": "x"}),
            wire.ContentBlockDelta(0, wire.TextDelta("x")),
        ),
        (
            event("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": "x"}),
            wire.ContentBlockDelta(0, wire.ThinkingDelta("x")),
        ),
        (
            event("content_block_delta", index=0, delta={"type": "input_json_delta", "partial_json": "x"}),
            wire.ContentBlockDelta(0, wire.InputJsonDelta("x")),
        ),
        (
            event("content_block_delta", index=0, delta={"type": "future_delta", "x": 1}),
            wire.UnknownContentBlockDelta(0, "future_delta", {"type": "future_delta", "x": 1}),
        ),
        (event("future", x=1), wire.Unknown("future", {"type": "future", "x": 1})),
        (event("error", error={"type": "t"}), wire.Error({"type": "t"})),
        (decode(framed('{"error": {"message": "m"}}', "error")), wire.Error({"message": "m"})),
        (decode(framed("")), wire.Empty()),
        (decode(framed("  \n ")), wire.Empty()),
        (decode(framed(" [DONE] ")), wire.DoneMarker()),
        (decode(framed('{"type":"ping"}')), wire.Renamed(wire.Ping(), "event_name_missing")),
        (decode(framed('{"type":"ping"}', "pong")), wire.Renamed(wire.Ping(), "event_name_mismatch")),
    ],
)
def test_a_frame_is_read(found: wire.Event, expected: wire.Event) -> None:
    assert found == expected


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ("{", "data is not JSON"),
        ("upstream connect error", "upstream connect error"),
        ("[DONE]x", "data is not JSON"),
        ('{"type": NaN}', "NaN"),
        ("[]", "not an object"),
        ("7", "not an object"),
        ("{}", "no type"),
        ('{"type": 7}', "no type"),
        ('{"type": "content_block_stop"}', "content_block_stop has the wrong shape"),
        ('{"type": "content_block_stop", "index": "0"}', r"\$.index"),
        ('{"type": "content_block_delta", "index": 0, "delta": []}', r"\$.delta"),
        ('{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta"}}', "text"),
        ('{"type": "content_block_delta", "index": true, "delta": {"type": "new"}}', "wrong shape"),
        (b'{"type": "ping", "x": "\xff"}', "not UTF-8"),
        (b"\xff", "not UTF-8"),
        ('{"type": "future", "x": "\\udc00"}', "surrogate"),
        ('{"type": "ping", "x": "\\ud800"}', "surrogate"),
        ('{"type": "future", "x": ' + "[" * 100_000, "nested too deeply"),
    ],
)
def test_a_frame_that_is_no_event_is_told(data: bytes | str, told: str) -> None:
    with pytest.raises(sseam.ProtocolError, match=told):
        decode(framed(data, "ping"))


@pytest.mark.parametrize(
    ("raw", "block"),
    [
        ({"type": "text"}, wire.TextBlock()),
        ({"type": "thinking", "thinking": "x", "signature": None}, wire.ThinkingBlock("x")),
        ({"type": "redacted_thinking", "data": "x"}, wire.RedactedThinkingBlock("x")),
        ({"type": "tool_use", "id": "a", "name": "f", "input": None}, wire.ToolUseBlock("a", "f")),
        ({"type": "web_search_tool_result", "content": []}, wire.OtherBlock("web_search_tool_result")),
    ],
)
def test_a_block_is_read(raw: dict[str, Any], block: wire.Block) -> None:
    assert wire.read_block(raw) == block


@pytest.mark.parametrize("raw", [{}, {"type": None}, {"type": "redacted_thinking"}, {"type": "text", "text": 1}])
def test_a_block_of_a_wrong_shape_is_told(raw: dict[str, Any]) -> None:
    with pytest.raises(sseam.ProtocolError):
        wire.read_block(raw)


def test_every_type_of_the_reference_is_known(shared: Path) -> None:
    reference = json.loads((shared / "protocols" / "anthropic-messages.events.json").read_text())
    for entry in reference["events"]:
        fields = {"index": 0, "message": {}, "content_block": {}, "error": {}}
        delta = {"type": "text_delta", "text": ""} if entry["type"] == "content_block_delta" else {}
        assert not isinstance(event(entry["type"], delta=delta, **fields), wire.Unknown | wire.Renamed)
    values = {"text": "", "thinking": "", "partial_json": "", "signature": "", "citation": {}}
    for entry in reference["deltas"]:
        found = event("content_block_delta", index=0, delta={"type": entry["type"], **values})
        assert isinstance(found, wire.ContentBlockDelta)
    known = {entry["value"] for entry in reference["stop_reasons"] if entry["status"] in ("ga", "beta")}
    assert known == set(STOP_REASONS)
