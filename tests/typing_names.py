"""The public types, held by the type checker: this file is checked, not run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import assert_type

import sseam


def sync(chunks: list[bytes]) -> None:
    stream = sseam.iter_events(chunks, "anthropic-messages", tools=["f"], accept=["max_tokens"])
    assert_type(stream, sseam.Stream)
    for event in stream:
        assert_type(event, sseam.Event)
    assert_type(stream.message(), sseam.Message)
    assert_type(sseam.model_events(stream), Iterator[sseam.ModelEvent])


async def asynchronous(source: AsyncIterator[bytes]) -> None:
    stream = sseam.aiter_events(source, "openai-chat", strict=True)
    assert_type(stream, sseam.AsyncStream)
    async for event in stream:
        assert_type(event, sseam.Event)
    assert_type(await stream.message(), sseam.Message)
    assert_type(sseam.model_events(stream), AsyncIterator[sseam.ModelEvent])


def by_hand(data: bytes) -> None:
    parser = sseam.Parser("gemini-generate")
    assert_type(parser.feed(data), list[sseam.Event])
    message = parser.close()
    assert_type(message.tool_calls, tuple[sseam.ToolCall, ...])
    assert_type(message.content, tuple[sseam.Block, ...])
    assert_type(message.usage.input_tokens, int | None)
    assert_type(sseam.parse(data, "openai-responses"), sseam.Message)
    assert_type(sseam.detect(data), str | None)
