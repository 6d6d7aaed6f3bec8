"""What the tests of the client share: a model on the test server, a conversation, and answers in frames."""

from __future__ import annotations

import json
from collections.abc import AsyncIterable
from typing import Any

from sseam.context import Context, Model, UserMessage
from sseam.models import anthropic, compatible

CONTEXT = Context(messages=(UserMessage("Hello"),))
TOOL = {"name": "get_weather", "description": "", "input_schema": {"type": "object", "properties": {}}}
WITH_TOOL = Context(messages=(UserMessage("Hello"),), tools=(TOOL,))


def model(url: str) -> Model:
    """A model behind the server that needs no key."""
    return anthropic("claude-opus-5", base_url=url, keys=())


def chat_model(url: str) -> Model:
    """As `model`, of Chat Completions."""
    return compatible("m", base_url=url)


def frame(kind: str, **fields: Any) -> bytes:
    """One event of Anthropic Messages."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def begin(id: str = "msg_1", tokens: int = 7) -> bytes:
    message = {"id": id, "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None}
    return frame("message_start", message={**message, "usage": {"input_tokens": tokens, "output_tokens": 1}})


def text_start(index: int = 0) -> bytes:
    return frame("content_block_start", index=index, content_block={"type": "text", "text": ""})


def delta(text: str, index: int = 0) -> bytes:
    return frame("content_block_delta", index=index, delta={"type": "text_delta", "text": text})


def block_stop(index: int = 0) -> bytes:
    return frame("content_block_stop", index=index)


def stop(reason: str = "end_turn") -> bytes:
    return frame("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage={"output_tokens": 5})


PING = frame("ping")
LAST = frame("message_stop")


def call(index: int, id: str = "toolu_1", name: str = "get_weather", arguments: str = "{}") -> list[bytes]:
    """The frames of a tool call."""
    return [
        frame(
            "content_block_start", index=index, content_block={"type": "tool_use", "id": id, "name": name, "input": {}}
        ),
        frame("content_block_delta", index=index, delta={"type": "input_json_delta", "partial_json": arguments}),
        block_stop(index),
    ]


def text(*pieces: str, id: str = "msg_1") -> list[bytes]:
    """The frames of a whole answer of text."""
    return [begin(id), text_start(), *map(delta, pieces), block_stop(), stop(), LAST]


def api_error(kind: str, message: str = "no", **more: Any) -> bytes:
    """An error's body."""
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}, **more}).encode()


async def collect(stream: AsyncIterable[Any], into: list[Any]) -> None:
    """Put all events into a list, which holds those before a fault too."""
    async for event in stream:
        into.append(event)  # noqa: PERF401


def error_frame(kind: str, message: str = "no") -> bytes:
    """An error in the stream."""
    return frame("error", error={"type": kind, "message": message})
