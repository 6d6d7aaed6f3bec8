"""The chunks of a Chat Completions stream, named and spelled as on the wire.

Source: OpenAI's "Streaming events" page of Chat Completions, the types of its SDK and those of the
compatible servers (read 2026-11-29). Servers differ in every leaf, so a leaf is decoded as whatever
it is; null and absent mean the same unless a field's default says otherwise.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias, cast

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
    "PlainChoice",
    "PlainChunk",
    "PlainDelta",
    "ToolCall",
    "decode",
    "full",
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
    """A chunk, whatever is in it."""

    id: Any = None
    model: Any = None
    choices: tuple[Choice, ...] | UnsetType | None = UNSET
    usage: Any = None
    x_groq: Any = None
    error: Any = None


class FullChunk(_Wire, frozen=True, gc=False):
    """A chunk that is more than a `PlainChunk`.

    Attributes:
        chunk: its typed part.
        raw: the payload, None where the chunk has content and is not looked at for more.
        response: it is a whole non-streaming body.
    """

    chunk: Chunk
    raw: dict[str, Any] | None
    response: bool = False


# Nearly every chunk adds to choice 0 and says nothing else. What these structs do not allow is left to
# `Chunk`, so that the reducer need not ask for each field whether it is there.

_Some: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]


class PlainFunction(Function, frozen=True, gc=False):
    arguments: str | UnsetType | None = UNSET
    input: str | UnsetType | None = UNSET


class PlainToolCall(ToolCall, frozen=True, gc=False):
    function: PlainFunction | None = None
    custom: PlainFunction | None = None


class PlainDelta(_Wire, frozen=True, gc=False, forbid_unknown_fields=True):
    content: _Some | None = None
    tool_calls: tuple[PlainToolCall, ...] | None = None
    reasoning_content: _Some | None = None
    reasoning: _Some | None = None
    role: Any = None
    refusal: None = None


class PlainChoice(_Wire, frozen=True, gc=False):
    delta: PlainDelta
    index: Literal[0] = 0
    finish_reason: None = None
    logprobs: None = None
    usage: None = None
    message: None = None


class PlainChunk(_Wire, frozen=True, gc=False):
    """A chunk of one choice, number 0, with nothing in it but content, reasoning or calls."""

    choices: tuple[PlainChoice]
    id: Any = None
    model: Any = None
    usage: None = None
    x_groq: None = None
    error: None = None


class Error(_Wire, frozen=True, gc=False):
    """An error in any of its shapes: the whole payload, or its text where it is not JSON."""

    payload: Any


class DoneMarker(_Wire, frozen=True, gc=False):
    """`[DONE]`; `variant`: written otherwise."""

    variant: bool = False


class Empty(_Wire, frozen=True, gc=False):
    """An event without data: a keep-alive of a relay."""


Event: TypeAlias = PlainChunk | FullChunk | Error | DoneMarker | Empty

_PLAIN = msgspec.json.Decoder(PlainChunk)
_FULL = msgspec.json.Decoder(Chunk)
_RAW = msgspec.json.Decoder(dict[str, Any])


def decode(frame: Frame) -> Event:
    """The event in a frame.

    Raises:
        ProtocolError: data that is not JSON, not UTF-8 or not an object, or a chunk of a wrong shape.
    """
    data = frame.data
    try:
        chunk = _PLAIN.decode(data)
        delta = chunk.choices[0].delta
        if frame.event == "error" or not (
            delta.content or delta.tool_calls or delta.reasoning_content or delta.reasoning
        ):
            return _decode_full(frame)
    except (msgspec.DecodeError, RecursionError):
        return _decode_full(frame)
    if not data.isascii():
        require_utf8(data)
    return chunk


def _decode_full(frame: Frame) -> Event:
    data = frame.data
    if data == b"[DONE]":
        return DoneMarker()
    try:
        chunk = _FULL.decode(data)
        raw = _RAW.decode(data) if _has_no_content(chunk) else None
        if _gives_objects(chunk):  # to be told apart from objects that give a key twice
            chunk = convert(loads(data), Chunk, "chunk")
    except (msgspec.DecodeError, RecursionError):
        return _decode_unusual(frame)
    if not data.isascii():
        require_utf8(data)
    if frame.event == "error" or chunk.error or (raw is not None and not chunk.choices and is_error(raw)):
        return Error(raw if raw is not None else loads(data))
    return FullChunk(chunk, raw)


def full(plain: PlainChunk) -> FullChunk:
    """A plain chunk as any other."""
    given = plain.choices[0].delta
    delta = Delta(given.role, given.content, given.tool_calls, given.reasoning_content, given.reasoning)
    return FullChunk(Chunk(plain.id, plain.model, (Choice(0, delta),)), None)


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


def _gives_objects(chunk: Chunk) -> bool:
    """Whether a call has its arguments as an object, of which msgspec would keep the last of two equal keys."""
    for choice in chunk.choices or ():
        for delta in (choice.delta, choice.message):
            if delta is None:
                continue
            functions = [part for call in delta.tool_calls or () for part in (call.function, call.custom)]
            for function in (*functions, delta.function_call):
                if function is not None and (isinstance(function.arguments, dict) or isinstance(function.input, dict)):
                    return True
    return False


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
    raw = cast("dict[str, Any]", body) if isinstance(body, dict) else {}
    if not isinstance(raw.get("choices"), list) or not raw["choices"]:
        raise ProtocolError("body is no chat completion: it has no choices", hint=excerpt(f"{body!r}"))
    return [FullChunk(_whole(convert(raw, Chunk, "body")), raw, response=True), DoneMarker()]


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
