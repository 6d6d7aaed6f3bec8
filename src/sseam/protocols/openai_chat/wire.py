"""The chunks of a Chat Completions stream, named and spelled as on the wire.

Source: OpenAI's "Streaming events" page of Chat Completions, the types of its SDK and those of the
compatible servers (read 2026-11-29). Servers differ in every leaf, so a leaf is decoded as whatever
it is; null and absent mean the same unless a field's default says otherwise.
"""

from __future__ import annotations

from typing import Any, TypeAlias, cast

import msgspec
from msgspec import UNSET, UnsetType

from ...decoding import convert, loads, require_utf8
from ...errors import ProtocolError, excerpt
from ...sse import Frame
from .._openai_errors import is_error

__all__ = [
    "Choice",
    "Chunk",
    "Delta",
    "DoneMarker",
    "Empty",
    "Error",
    "Event",
    "FullChunk",
    "Function",
    "ToolCall",
    "decode",
    "read",
    "read_response",
]


class _Wire(msgspec.Struct, frozen=True, gc=False):
    pass


class Function(_Wire, frozen=True, gc=False):
    """Of a call: its name and a fragment of its arguments. Absent is not the same as null here."""

    name: Any = UNSET
    arguments: Any = UNSET
    input: Any = UNSET  # of a custom tool, in the place of `arguments`


class ToolCall(_Wire, frozen=True, gc=False):
    """One entry of `delta.tool_calls`: the start of a call, a fragment of it, or all of it."""

    index: Any = None
    id: Any = UNSET
    type: Any = UNSET
    function: Function | None = None
    custom: Function | None = None
    extra_content: Any = None


class Delta(_Wire, frozen=True, gc=False):
    """What a chunk adds to a choice."""

    role: Any = None
    content: Any = None
    tool_calls: tuple[ToolCall, ...] | None = None
    reasoning_content: Any = None
    reasoning: Any = None
    refusal: Any = None
    reasoning_text: Any = None
    reasoning_opaque: Any = None
    reasoning_details: Any = None
    function_call: Function | None = None
    annotations: Any = None
    audio: Any = None
    images: Any = None
    executed_tools: Any = None
    extra_content: Any = None


class Choice(_Wire, frozen=True, gc=False):
    """One choice in a chunk. `message` is a snapshot of all of it so far, where a server sends one."""

    index: Any = 0
    delta: Delta | None = None
    finish_reason: Any = None
    logprobs: Any = None
    usage: Any = None
    message: Delta | None = None


class Chunk(_Wire, frozen=True, gc=False):
    """A chunk. As an event of its own: one choice, and nothing in it but content, reasoning or calls."""

    id: Any = None
    model: Any = None
    choices: tuple[Choice, ...] | UnsetType | None = UNSET
    usage: Any = None
    x_groq: Any = None
    error: Any = None


class FullChunk(_Wire, frozen=True, gc=False):
    """A chunk of any other content.

    Attributes:
        chunk: its typed part.
        raw: the payload, None where the chunk has content and so is not looked at for more.
        response: it is a whole non-streaming body.
    """

    chunk: Chunk
    raw: dict[str, Any] | None
    response: bool = False


class Error(_Wire, frozen=True, gc=False):
    """An error in any of its shapes: the whole payload, or its text where it is not JSON."""

    payload: Any


class DoneMarker(_Wire, frozen=True, gc=False):
    """`[DONE]`; `variant`: written otherwise."""

    variant: bool = False


class Empty(_Wire, frozen=True, gc=False):
    """An event without data: a keep-alive of a relay."""


Event: TypeAlias = Chunk | FullChunk | Error | DoneMarker | Empty

_DECODER = msgspec.json.Decoder(Chunk)


def decode(frame: Frame) -> Event:
    """The event in a frame.

    Raises:
        ProtocolError: data that is not JSON, not UTF-8 or not an object, or a chunk of a wrong shape.
    """
    data = frame.data
    try:
        chunk = _DECODER.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return _decode_unusual(frame)
    if not data.isascii():
        require_utf8(data)
    if frame.event == "error" or chunk.error:
        return Error(loads(data))
    if _is_plain(chunk):
        return chunk
    raw = loads(data) if _has_no_content(chunk) else None
    if raw is not None and not chunk.choices and is_error(raw):
        return Error(raw)
    return FullChunk(chunk, raw)


def _is_plain(chunk: Chunk) -> bool:
    choices = chunk.choices
    if not choices or len(choices) != 1:
        return False
    choice = choices[0]
    delta = choice.delta
    return delta is not None and (
        choice.finish_reason
        is choice.logprobs
        is choice.usage
        is choice.message
        is chunk.usage
        is chunk.x_groq
        is delta.refusal
        is delta.reasoning_text
        is delta.reasoning_opaque
        is delta.reasoning_details
        is delta.function_call
        is delta.annotations
        is delta.audio
        is delta.images
        is delta.executed_tools
        is delta.extra_content
        is None
        and bool(delta.content or delta.tool_calls or delta.reasoning_content or delta.reasoning)
    )


def _has_no_content(chunk: Chunk) -> bool:
    """Whether the chunk is there for something else: the first one, the finish, usage, metadata."""
    choices = chunk.choices
    if not choices or chunk.usage is not None:
        return True
    choice = choices[0]
    delta = choice.delta
    return (
        delta is None
        or choice.finish_reason is not None
        or not (delta.content or delta.tool_calls or delta.reasoning or delta.reasoning_details)
    )


def _decode_unusual(frame: Frame) -> Event:
    """What the decoder refuses: markers, errors of any shape, and faults, told by what they are."""
    data = frame.data.strip()
    if not data:
        return Empty()
    if data.startswith(b"[DONE]") or data == b"DONE":
        return DoneMarker(variant=data != b"[DONE]")
    try:
        value = loads(data)
    except ProtocolError:
        if frame.event == "error":
            return Error(data.decode("utf-8", "replace"))
        raise
    if frame.event == "error":
        return Error(value)
    return read(value, data)


def read(value: Any, data: bytes = b"") -> Event:
    """The event that a decoded payload is. Raises `ProtocolError` as `decode` does."""
    if is_error(value):
        return Error(value)
    if not isinstance(value, dict):
        raise ProtocolError("data is JSON but not an object", hint=excerpt(data))
    raw = cast("dict[str, Any]", value)
    return FullChunk(convert(raw, Chunk, "chunk"), raw)


def read_response(body: Any) -> list[Event]:
    """A non-streaming body as the events that say the same. Raises `ProtocolError` as `decode` does."""
    if is_error(body):
        return [Error(body)]
    choices = cast("dict[str, Any]", body).get("choices") if isinstance(body, dict) else None
    if not isinstance(choices, list) or not choices:
        raise ProtocolError("body is no chat completion: it has no choices", hint=excerpt(repr(body)))
    return [FullChunk(_whole(convert(body, Chunk, "body")), body, response=True), DoneMarker()]


def _whole(chunk: Chunk) -> Chunk:
    """A body as one chunk: each message as the delta that gives all of it, and places as indexes."""
    choices: list[Choice] = []
    for place, choice in enumerate(cast("tuple[Choice, ...]", chunk.choices)):
        message = choice.message or choice.delta or Delta()
        calls = tuple(
            msgspec.structs.replace(call, index=number) for number, call in enumerate(message.tool_calls or ())
        )
        delta = msgspec.structs.replace(message, tool_calls=calls)
        index = choice.index if choice.index or place == 0 else place
        choices.append(msgspec.structs.replace(choice, index=index, delta=delta, message=None))
    return msgspec.structs.replace(chunk, choices=tuple(choices))
