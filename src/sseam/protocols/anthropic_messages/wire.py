"""The events of an Anthropic Messages stream, named and spelled as on the wire.

Source: Anthropic's "Streaming Messages" page and the types of its SDKs (read 2026-11-29). Dispatch is
on the payload's `type`, never on the `event:` line, which proxies drop or change.
"""

from __future__ import annotations

from typing import Any, TypeAlias, cast

import msgspec

from ...decoding import convert, loads, mapping, require_utf8
from ...errors import ProtocolError, excerpt
from ...sse import Frame

__all__ = [
    "Block",
    "CitationsDelta",
    "CompactionDelta",
    "ContentBlockDelta",
    "ContentBlockStart",
    "ContentBlockStop",
    "Delta",
    "DoneMarker",
    "Empty",
    "Error",
    "Event",
    "InputJsonDelta",
    "MessageBody",
    "MessageDelta",
    "MessageStart",
    "MessageStop",
    "OtherBlock",
    "Ping",
    "RedactedThinkingBlock",
    "Renamed",
    "SignatureDelta",
    "TextBlock",
    "TextDelta",
    "ThinkingBlock",
    "ThinkingDelta",
    "ToolUseBlock",
    "Unknown",
    "UnknownContentBlockDelta",
    "decode",
    "name",
    "read",
    "read_block",
    "read_message",
    "read_response",
]


class _Wire(msgspec.Struct, frozen=True, gc=False):
    pass


# ---- deltas. The texts of all kinds are called `text` here, so that folding needs no branch.


class TextDelta(_Wire, frozen=True, gc=False, tag="text_delta"):
    text: str


class ThinkingDelta(_Wire, frozen=True, gc=False, tag="thinking_delta"):
    text: str = msgspec.field(name="thinking")


class InputJsonDelta(_Wire, frozen=True, gc=False, tag="input_json_delta"):
    text: str = msgspec.field(name="partial_json")


class SignatureDelta(_Wire, frozen=True, gc=False, tag="signature_delta"):
    signature: str


class CitationsDelta(_Wire, frozen=True, gc=False, tag="citations_delta"):
    citation: dict[str, Any]


class CompactionDelta(_Wire, frozen=True, gc=False, tag="compaction_delta"):
    content: str | None = None
    encrypted_content: str | None = None


Delta: TypeAlias = TextDelta | ThinkingDelta | InputJsonDelta | SignatureDelta | CitationsDelta | CompactionDelta


# ---- blocks, as a start or a whole message gives them


class TextBlock(_Wire, frozen=True, gc=False, tag="text"):
    text: str | None = None
    citations: tuple[dict[str, Any], ...] | None = None


class ThinkingBlock(_Wire, frozen=True, gc=False, tag="thinking"):
    thinking: str | None = None
    signature: str | None = None


class RedactedThinkingBlock(_Wire, frozen=True, gc=False, tag="redacted_thinking"):
    data: str


class ToolUseBlock(_Wire, frozen=True, gc=False, tag="tool_use"):
    id: str | None = None
    name: str | None = None
    input: dict[str, Any] | None = None


class OtherBlock(_Wire, frozen=True, gc=False):
    """A block that is kept as it came: run by the provider, or not modelled."""

    type: str


Block: TypeAlias = TextBlock | ThinkingBlock | RedactedThinkingBlock | ToolUseBlock | OtherBlock

_BLOCKS: dict[str, type[TextBlock | ThinkingBlock | RedactedThinkingBlock | ToolUseBlock]] = {
    "text": TextBlock,
    "thinking": ThinkingBlock,
    "redacted_thinking": RedactedThinkingBlock,
    "tool_use": ToolUseBlock,
}


class MessageBody(_Wire, frozen=True, gc=False):
    """A message as `message_start` opens it, or whole, as a body."""

    id: str | None = None
    model: str | None = None
    content: tuple[dict[str, Any], ...] | None = None
    stop_reason: str | None = None
    usage: dict[str, Any] | None = None


# ---- events


class MessageStart(_Wire, frozen=True, gc=False, tag="message_start"):
    message: dict[str, Any]


class ContentBlockStart(_Wire, frozen=True, gc=False, tag="content_block_start"):
    index: int
    content_block: dict[str, Any]


class ContentBlockDelta(_Wire, frozen=True, gc=False, tag="content_block_delta"):
    index: int
    delta: Delta


class UnknownContentBlockDelta(_Wire, frozen=True, gc=False):
    """A delta of a type that is not known yet."""

    index: int
    type: str
    raw: dict[str, Any]


class ContentBlockStop(_Wire, frozen=True, gc=False, tag="content_block_stop"):
    index: int


class MessageDelta(_Wire, frozen=True, gc=False, tag="message_delta"):
    delta: dict[str, Any]
    usage: dict[str, Any] | None = None
    context_management: dict[str, Any] | None = None
    input_transformations: list[dict[str, Any]] | None = None


class MessageStop(_Wire, frozen=True, gc=False, tag="message_stop"):
    metrics: dict[str, Any] | None = msgspec.field(name="amazon-bedrock-invocationMetrics", default=None)


class Ping(_Wire, frozen=True, gc=False, tag="ping"):
    pass


class Error(_Wire, frozen=True, gc=False, tag="error"):
    """`error` is the provider's object, or whatever stands in its place."""

    error: Any = None
    request_id: str | None = None


class Unknown(_Wire, frozen=True, gc=False):
    """An event of a type that is not known yet."""

    type: str
    raw: dict[str, Any]


class Empty(_Wire, frozen=True, gc=False):
    """An event without data: a keep-alive of a relay."""


class DoneMarker(_Wire, frozen=True, gc=False):
    """`[DONE]`, which older vLLM and some routers put behind the last event."""


class Renamed(_Wire, frozen=True, gc=False):
    """An event whose `event:` line is missing or says another type; `deviation` says which."""

    event: Event
    deviation: str


_Known: TypeAlias = (
    MessageStart | ContentBlockStart | ContentBlockDelta | ContentBlockStop | MessageDelta | MessageStop | Ping | Error
)
Event: TypeAlias = _Known | UnknownContentBlockDelta | Unknown | Empty | DoneMarker | Renamed

_NAMES: dict[type[Any], str] = {
    ContentBlockDelta: "content_block_delta",
    ContentBlockStart: "content_block_start",
    ContentBlockStop: "content_block_stop",
    MessageStart: "message_start",
    MessageDelta: "message_delta",
    MessageStop: "message_stop",
    Ping: "ping",
    Error: "error",
    UnknownContentBlockDelta: "content_block_delta",
}
_KNOWN = frozenset(_NAMES.values())
_KNOWN_DELTAS = frozenset(delta.__struct_config__.tag for delta in Delta.__args__)
_DECODER = msgspec.json.Decoder(_Known)


def decode(frame: Frame) -> Event:
    """The event in a frame.

    Raises:
        ProtocolError: data that is not JSON, not UTF-8 or not an object, or a known event of a wrong
            shape. A type that is not known is no fault: it comes as `Unknown`.
    """
    data = frame.data
    try:
        event: Event = _DECODER.decode(data)
    except (msgspec.DecodeError, RecursionError):
        event = _decode_unusual(data)
    if type(event) in _HOLDS_ARGUMENTS and _gives_arguments(event):
        event = _decode_unusual(data)  # told apart from arguments that give a key twice
    if not data.isascii():
        require_utf8(data)
    name = _NAMES.get(type(event))
    if frame.event != name and name is not None:
        missing = frame.event in ("message", "")
        return Renamed(event, "event_name_missing" if missing else "event_name_mismatch")
    return event


_HOLDS_ARGUMENTS = frozenset({ContentBlockStart, MessageStart})


def _gives_arguments(event: Event) -> bool:
    """Whether an event has arguments of a call in it, whole, where msgspec would keep the last of two equal keys."""
    if isinstance(event, MessageStart):
        return bool(event.message.get("content"))
    return isinstance(event, ContentBlockStart) and bool(event.content_block.get("input"))


def _decode_unusual(data: bytes) -> Event:
    """What the decoder refuses: markers, types that are new, and faults, told by what they are."""
    if not data.strip():
        return Empty()
    if data.strip() == b"[DONE]":
        return DoneMarker()
    return read(loads(data), data)


def read(value: Any, data: bytes = b"") -> Event:
    """The event that a decoded payload is. Raises `ProtocolError` as `decode` does."""
    if not isinstance(value, dict):
        raise ProtocolError("data is JSON but not an object", hint=f"{excerpt(data)}")
    raw = cast("dict[str, Any]", value)
    kind = raw.get("type")
    if not isinstance(kind, str):
        if "error" in raw:  # relays put the OpenAI envelope here, which has no outer type
            return Error(raw["error"])
        raise ProtocolError("data has no type", hint=f"{excerpt(data)}")
    if kind not in _KNOWN:
        return Unknown(kind, raw)
    if kind == "content_block_delta":
        index, delta = raw.get("index"), mapping(raw.get("delta"))
        delta_kind = delta.get("type")
        if type(index) is int and isinstance(delta_kind, str) and delta_kind not in _KNOWN_DELTAS:
            return UnknownContentBlockDelta(index, delta_kind, delta)
    return cast("Event", convert(raw, cast("Any", _Known), f"event {kind}"))


def read_response(body: Any) -> list[Event]:
    """A non-streaming body as the events that say the same. Raises `ProtocolError` as `decode` does."""
    if isinstance(body, dict) and cast("dict[str, Any]", body).get("type") == "message":
        return [MessageStart(cast("dict[str, Any]", body)), MessageStop()]
    return [read(body)]


def name(event: Event) -> str:
    """The wire's name of an event."""
    return event.type if isinstance(event, Unknown) else _NAMES[type(event)]


def read_block(raw: dict[str, Any]) -> Block:
    """A block as its start or a whole message gives it. Raises `ProtocolError` for a wrong shape."""
    kind = raw.get("type")
    if not isinstance(kind, str):
        raise ProtocolError("content block has no type", hint=excerpt(repr(raw)))
    typed = _BLOCKS.get(kind)
    return convert(raw, typed, f"{kind} block") if typed else OtherBlock(kind)


def read_message(raw: dict[str, Any]) -> MessageBody:
    """The typed part of a message. Raises `ProtocolError` for a wrong shape."""
    return convert(raw, MessageBody, "message")
