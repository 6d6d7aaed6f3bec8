"""The events of an Interactions stream, named and spelled as on the wire.

Source: Google's "Streaming interactions" page and the types of its SDK (read 2026-11-29), with the
schema of steps. Dispatch is on the payload's `event_type`, never on the `event:` line.
"""

from __future__ import annotations

from typing import Any, TypeAlias, cast

import msgspec

from ...decoding import convert, loads, require_utf8
from ...errors import ProtocolError, excerpt
from ...sse import Frame

__all__ = [
    "ArgumentsDelta",
    "Delta",
    "DoneMarker",
    "Empty",
    "Error",
    "Event",
    "FunctionCall",
    "InteractionCompleted",
    "InteractionCreated",
    "OtherStepDelta",
    "StatusUpdate",
    "StepDelta",
    "StepStart",
    "StepStop",
    "TextDelta",
    "Unknown",
    "decode",
    "name",
    "objects",
    "read",
    "read_call",
    "read_response",
    "string",
]


class _Wire(msgspec.Struct, frozen=True, gc=False, tag_field="event_type"):
    pass


# ---- deltas. The texts are called `text` here, so that folding needs no branch.


class _Delta(msgspec.Struct, frozen=True, gc=False, tag_field="type"):
    pass


class TextDelta(_Delta, frozen=True, gc=False, tag="text"):
    text: str


class ArgumentsDelta(_Delta, frozen=True, gc=False, tag="arguments_delta"):
    text: str = msgspec.field(name="arguments", default="")


Delta: TypeAlias = TextDelta | ArgumentsDelta


class FunctionCall(msgspec.Struct, frozen=True, gc=False):
    """A `function_call` step as it starts. Its arguments are a placeholder where deltas follow."""

    id: str | None = None
    name: str | None = None
    arguments: dict[str, Any] | None = None
    signature: str | None = None


# ---- events


class InteractionCreated(_Wire, frozen=True, gc=False, tag="interaction.created"):
    interaction: dict[str, Any]


class StatusUpdate(_Wire, frozen=True, gc=False, tag="interaction.status_update"):
    """What the status is for now; `interaction.completed` decides."""

    status: str | None = None
    usage: dict[str, Any] | None = None
    continuation_token: str | None = None


class StepStart(_Wire, frozen=True, gc=False, tag="step.start"):
    index: int
    step: dict[str, Any]


class StepDelta(_Wire, frozen=True, gc=False, tag="step.delta"):
    index: int
    delta: Delta
    metadata: dict[str, Any] | None = None


class OtherStepDelta(msgspec.Struct, frozen=True, gc=False):
    """A delta that is no piece of text: `type` says what, "" where the wire does not say."""

    index: int
    type: str
    raw: dict[str, Any]
    metadata: dict[str, Any] | None = None


class StepStop(_Wire, frozen=True, gc=False, tag="step.stop"):
    index: int
    usage: dict[str, Any] | None = None


class InteractionCompleted(_Wire, frozen=True, gc=False, tag="interaction.completed"):
    interaction: dict[str, Any]


class Error(_Wire, frozen=True, gc=False, tag="error"):
    """`error` is the provider's object, or whatever stands in its place."""

    error: Any = None


class Unknown(msgspec.Struct, frozen=True, gc=False):
    """An event of a type that is not known yet."""

    type: str
    raw: dict[str, Any]


class Empty(msgspec.Struct, frozen=True, gc=False):
    """An event without data: a keep-alive of a relay."""


class DoneMarker(msgspec.Struct, frozen=True, gc=False):
    """`[DONE]`, the last event of every stream. It proves nothing: the events before it do."""


_Known: TypeAlias = InteractionCreated | StatusUpdate | StepStart | StepDelta | StepStop | InteractionCompleted | Error
Event: TypeAlias = _Known | OtherStepDelta | Unknown | Empty | DoneMarker

_NAMES: dict[type[Any], str] = {
    InteractionCreated: "interaction.created",
    StatusUpdate: "interaction.status_update",
    StepStart: "step.start",
    StepDelta: "step.delta",
    OtherStepDelta: "step.delta",
    StepStop: "step.stop",
    InteractionCompleted: "interaction.completed",
    Error: "error",
    Empty: "an event without data",
    DoneMarker: "[DONE]",
}
_KNOWN = frozenset(_NAMES.values())
# Documented as events of their own; they say what a status_update says.
_STATUSES = frozenset({"interaction.in_progress", "interaction.requires_action"})
# The schema of outputs, which steps replaced in May 2026.
_LEGACY = frozenset({"interaction.start", "interaction.complete", "content.start", "content.delta", "content.stop"})
_DECODER = msgspec.json.Decoder(_Known)


def decode(frame: Frame) -> Event:
    """The event in a frame.

    Raises:
        ProtocolError: data that is not JSON, not UTF-8 or not an object, a known event of a wrong
            shape, or one of the older schema. A type that is not known is no fault: it comes as `Unknown`.
    """
    data = frame.data
    try:
        event: Event = _DECODER.decode(data)
    except (msgspec.DecodeError, RecursionError):
        event = _decode_unusual(data)
    if type(event) is StepStart and event.step.get("arguments"):
        event = _decode_unusual(data)  # told apart from arguments that give a key twice
    if not data.isascii():
        require_utf8(data)
    return event


def _decode_unusual(data: bytes) -> Event:
    """What the decoder refuses: markers, other deltas, types that are new, and faults, told by what they are."""
    if not data.strip():
        return Empty()
    if data.strip() == b"[DONE]":
        return DoneMarker()
    return read(loads(data), data)


def read(value: Any, data: bytes = b"") -> Event:
    """The event that a decoded payload is. Raises `ProtocolError` as `decode` does."""
    if not isinstance(value, dict):
        raise ProtocolError("data is JSON but not an object", hint=excerpt(data))
    raw = cast("dict[str, Any]", value)
    kind = raw.get("event_type")
    if not isinstance(kind, str):
        if "error" in raw:
            return Error(raw["error"])
        raise ProtocolError("data has no event_type", hint=excerpt(data))
    if kind in _LEGACY:
        raise ProtocolError(
            f"event {kind} belongs to the schema of outputs, which the Interactions API gave up in 2026",
            hint="Only streams with the schema of steps are read",
        )
    if kind in _STATUSES:
        return StatusUpdate(kind.partition(".")[2])
    if kind not in _KNOWN:
        return Unknown(kind, raw)
    if kind == "step.delta":
        return _read_delta(raw)
    return cast("Event", convert(raw, cast("Any", _Known), f"event {kind}"))


class _AnyDelta(msgspec.Struct):
    index: int
    delta: dict[str, Any]
    metadata: dict[str, Any] | None = None


def _read_delta(raw: dict[str, Any]) -> Event:
    event = convert(raw, _AnyDelta, "event step.delta")
    kind = event.delta.get("type", "")
    if not isinstance(kind, str):
        raise ProtocolError(f"event step.delta has a delta of type {kind!r}")
    if kind == "" and (inferred := _infer(event.delta)):  # samples for agents leave the type out
        kind = inferred
    if kind in ("text", "arguments_delta"):
        typed = {**event.delta, "type": kind}
        delta = cast("Delta", convert(typed, cast("Any", Delta), f"delta {kind}"))
        return StepDelta(event.index, delta, event.metadata)
    return OtherStepDelta(event.index, kind, event.delta, event.metadata)


def _infer(delta: dict[str, Any]) -> str:
    """The type of a delta by its one key, "" where that does not tell."""
    match list(delta.items()):
        case [("text", str())]:
            return "text"
        case [("arguments", str())]:
            return "arguments_delta"
        case [("signature", str())]:
            return "thought_signature"
        case [("content", dict())]:
            return "thought_summary"
        case [("annotations", list())]:
            return "text_annotation_delta"
        case _:
            return ""


def read_response(body: Any) -> list[Event]:
    """A non-streaming body as the events that say the same. Raises `ProtocolError` as `decode` does."""
    if isinstance(body, dict) and "status" in body and cast("dict[str, Any]", body).get("error") is None:
        interaction = cast("dict[str, Any]", body)
        steps: Any = interaction.get("steps") or []
        if "outputs" in interaction or not isinstance(steps, list):
            raise ProtocolError("the interaction has no list of steps")
        head = {key: value for key, value in interaction.items() if key != "steps"}
        events: list[Event] = [InteractionCreated(head)]
        for index, step in enumerate(cast("list[Any]", steps)):
            if not isinstance(step, dict):
                raise ProtocolError(f"step {index} is not an object")
            events += [StepStart(index, cast("dict[str, Any]", step)), StepStop(index)]
        return [*events, InteractionCompleted(head)]
    return [read(body)]


def name(event: Event) -> str:
    """The wire's name of an event."""
    return event.type if isinstance(event, Unknown) else _NAMES[type(event)]


def read_call(step: dict[str, Any]) -> FunctionCall:
    """The typed part of a `function_call` step. Raises `ProtocolError` for a wrong shape."""
    return convert(step, FunctionCall, "function_call step")


def string(fields: dict[str, Any], key: str, what: str) -> str:
    """A text that may be missing, then "". Raises `ProtocolError` for anything else."""
    value = fields.get(key)
    if value is not None and not isinstance(value, str):
        raise ProtocolError(f"{key} of {what} is no string")
    return value or ""


def objects(fields: dict[str, Any], key: str, what: str) -> list[dict[str, Any]]:
    """A list of objects that may be missing, then empty. Raises `ProtocolError` for anything else."""
    items = fields.get(key)
    if items is None:
        return []
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in cast("list[Any]", items)):
        raise ProtocolError(f"{key} of {what} is no list of objects")
    return cast("list[dict[str, Any]]", items)
