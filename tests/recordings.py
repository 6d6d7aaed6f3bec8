"""Small streams that the tests of recording and replay share."""

from __future__ import annotations

import json
from typing import Any

from sseam.sse import Frame, encode


def stream(*events: dict[str, Any]) -> bytes:
    """The events as Anthropic Messages sends them."""
    return b"".join(encode(Frame(event["type"], json.dumps(event).encode(), "", None, 0, 0)) for event in events)


def _start(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def _delta(index: int, **delta: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


# Text and one tool call. The frames are numbered in the tests: 0 message_start, 1 to 4 the text,
# 5 to 8 the call, 9 message_delta, 10 message_stop.
CALL = stream(
    {
        "type": "message_start",
        "message": {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 7, "output_tokens": 1},
        },
    },
    _start(0, type="text", text=""),
    _delta(0, type="text_delta", text="It is "),
    _delta(0, type="text_delta", text="sünny."),
    {"type": "content_block_stop", "index": 0},
    _start(1, type="tool_use", id="toolu_1", name="look", input={}),
    _delta(1, type="input_json_delta", partial_json='{"at": '),
    _delta(1, type="input_json_delta", partial_json='"sky"}'),
    {"type": "content_block_stop", "index": 1},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
    {"type": "message_stop"},
)
PROTOCOL = "anthropic-messages"
