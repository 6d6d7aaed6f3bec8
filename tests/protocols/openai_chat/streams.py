"""Chat Completions streams made up for the tests of this package."""

from __future__ import annotations

import json
from typing import Any

import sseam
from sseam.sse import Frame

HEAD = {"id": "c", "object": "chat.completion.chunk", "created": 1_764_000_000, "model": "m"}
DONE = b"data: [DONE]\n\n"


def frame(payload: Any, event: str = "message") -> Frame:
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return Frame(event, data, "", None, 0, 0)


def event(payload: Any) -> bytes:
    return b"data: " + json.dumps(payload).encode() + b"\n\n"


def chunk(delta: Any, finish: str | None = None, index: int = 0, **fields: Any) -> dict[str, Any]:
    return {**HEAD, "choices": [{"index": index, "delta": delta, "finish_reason": finish}], **fields}


def stream(*chunks: dict[str, Any]) -> bytes:
    return b"".join(map(event, chunks)) + DONE


def parse(*chunks: dict[str, Any], **options: Any) -> sseam.Message:
    return sseam.parse(stream(*chunks), "openai-chat", **options)


def codes(message: sseam.Message) -> set[str]:
    return {deviation.code for deviation in message.deviations}
