"""The events of an OpenAI Responses stream, named and spelled as on the wire.

Source: the types of OpenAI's SDK and recordings of its servers and of compatible ones (read
2026-11-29). Dispatch is on the payload's `type`, never on the `event:` line, which may be missing.
"""

from __future__ import annotations

from typing import Any, TypeAlias, cast

import msgspec

from ...decoding import convert, loads, mapping, require_utf8
from ...errors import ProtocolError, excerpt
from ...sse import Frame

__all__ = [
    "AnnotationAdded",
    "ApplyPatchDiffDelta",
    "ApplyPatchDiffDone",
    "CodeDelta",
    "CodeDone",
    "Completed",
    "ContentPartAdded",
    "ContentPartDone",
    "Created",
    "CustomInputDelta",
    "CustomInputDone",
    "Delta",
    "DoneMarker",
    "Empty",
    "Error",
    "Event",
    "Failed",
    "FunctionArgumentsDelta",
    "FunctionArgumentsDone",
    "InProgress",
    "Incomplete",
    "ItemAdded",
    "ItemDone",
    "McpArgumentsDelta",
    "McpArgumentsDone",
    "Passive",
    "Queued",
    "ReasoningSummaryDelta",
    "ReasoningSummaryDone",
    "ReasoningTextDelta",
    "ReasoningTextDone",
    "RefusalDelta",
    "RefusalDone",
    "Renamed",
    "ResponseDone",
    "ShellCommandAdded",
    "ShellCommandDelta",
    "ShellCommandDone",
    "Snapshot",
    "TextDelta",
    "TextDone",
    "Unknown",
    "decode",
    "name",
    "read",
    "read_response",
]


class _Wire(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    sequence_number: int | None = None


class _InItem(_Wire, frozen=True, gc=False, kw_only=True):
    """What belongs to an item. `content_index` is the index of a part of it, whatever the wire calls that."""

    item_id: str | None = None
    output_index: int | None = None
    content_index: int | None = None


class _InSummary(_Wire, frozen=True, gc=False, kw_only=True):
    item_id: str | None = None
    output_index: int | None = None
    content_index: int | None = msgspec.field(name="summary_index", default=None)


class _InShell(_Wire, frozen=True, gc=False, kw_only=True):
    item_id: str | None = None  # OpenAI sends none
    output_index: int | None = None
    content_index: int | None = msgspec.field(name="command_index", default=None)


# ---- the response


class Snapshot(msgspec.Struct, frozen=True, gc=False):
    """What is read of a response that has not ended. The rest is the request once more."""

    id: str | None = None
    model: str | None = None


class _Beginning(_Wire, frozen=True, gc=False):
    response: Snapshot | None = None


class Created(_Beginning, frozen=True, gc=False, tag="response.created"):
    pass


class Queued(_Beginning, frozen=True, gc=False, tag="response.queued"):
    pass


class InProgress(_Beginning, frozen=True, gc=False, tag="response.in_progress"):
    pass


class _Ending(_Wire, frozen=True, gc=False):
    """The whole response. `error` beside it is where some servers put what went wrong."""

    response: dict[str, Any] | None = None
    error: Any = None


class Completed(_Ending, frozen=True, gc=False, tag="response.completed"):
    pass


class Incomplete(_Ending, frozen=True, gc=False, tag="response.incomplete"):
    pass


class Failed(_Ending, frozen=True, gc=False, tag="response.failed"):
    pass


class ResponseDone(_Ending, frozen=True, gc=False, tag="response.done"):
    """The end as the Codex backend tells it, and a body that is no stream: its status says what end."""


class Error(_Wire, frozen=True, gc=False, kw_only=True, tag="error"):
    """An error in any of its shapes: `error` is the nested object or what stands in its place."""

    error: Any = None
    code: Any = None
    message: Any = None
    param: Any = None
    status: Any = None


# ---- items and their parts


class ItemAdded(_Wire, frozen=True, gc=False, kw_only=True, tag="response.output_item.added"):
    item: dict[str, Any] | None = None
    output_index: int | None = None


class ItemDone(_Wire, frozen=True, gc=False, kw_only=True, tag="response.output_item.done"):
    item: dict[str, Any] | None = None
    output_index: int | None = None
    item_id: str | None = None  # Bedrock Mantle gives it here where the item has none


class ContentPartAdded(_InItem, frozen=True, gc=False, kw_only=True, tag="response.content_part.added"):
    part: dict[str, Any]


class ContentPartDone(_InItem, frozen=True, gc=False, kw_only=True, tag="response.content_part.done"):
    part: dict[str, Any]


class AnnotationAdded(_InItem, frozen=True, gc=False, kw_only=True, tag="response.output_text.annotation.added"):
    annotation: dict[str, Any] | None = None


# ---- texts that grow. All are called `text` here, so that folding needs no branch.


class TextDelta(_InItem, frozen=True, gc=False, kw_only=True, tag="response.output_text.delta"):
    text: str = msgspec.field(name="delta")


class TextDone(_InItem, frozen=True, gc=False, kw_only=True, tag="response.output_text.done"):
    text: str


class RefusalDelta(_InItem, frozen=True, gc=False, kw_only=True, tag="response.refusal.delta"):
    text: str = msgspec.field(name="delta")


class RefusalDone(_InItem, frozen=True, gc=False, kw_only=True, tag="response.refusal.done"):
    text: str = msgspec.field(name="refusal")


class ReasoningTextDelta(_InItem, frozen=True, gc=False, kw_only=True, tag="response.reasoning_text.delta"):
    text: str = msgspec.field(name="delta")


class ReasoningTextDone(_InItem, frozen=True, gc=False, kw_only=True, tag="response.reasoning_text.done"):
    text: str


class ReasoningSummaryDelta(
    _InSummary, frozen=True, gc=False, kw_only=True, tag="response.reasoning_summary_text.delta"
):
    text: str = msgspec.field(name="delta")


class ReasoningSummaryDone(_InSummary, frozen=True, gc=False, kw_only=True, tag="response.reasoning_summary_text.done"):
    text: str


class FunctionArgumentsDelta(
    _InItem, frozen=True, gc=False, kw_only=True, tag="response.function_call_arguments.delta"
):
    text: str = msgspec.field(name="delta")


class FunctionArgumentsDone(_InItem, frozen=True, gc=False, kw_only=True, tag="response.function_call_arguments.done"):
    text: str = msgspec.field(name="arguments")


class CustomInputDelta(_InItem, frozen=True, gc=False, kw_only=True, tag="response.custom_tool_call_input.delta"):
    text: str = msgspec.field(name="delta")


class CustomInputDone(_InItem, frozen=True, gc=False, kw_only=True, tag="response.custom_tool_call_input.done"):
    text: str = msgspec.field(name="input")


class ApplyPatchDiffDelta(
    _InItem, frozen=True, gc=False, kw_only=True, tag="response.apply_patch_call_operation_diff.delta"
):
    text: str = msgspec.field(name="delta")


class ApplyPatchDiffDone(
    _InItem, frozen=True, gc=False, kw_only=True, tag="response.apply_patch_call_operation_diff.done"
):
    text: str = msgspec.field(name="diff")


class ShellCommandAdded(_InShell, frozen=True, gc=False, kw_only=True, tag="response.shell_call_command.added"):
    text: str = msgspec.field(name="command", default="")


class ShellCommandDelta(_InShell, frozen=True, gc=False, kw_only=True, tag="response.shell_call_command.delta"):
    text: str = msgspec.field(name="delta")


class ShellCommandDone(_InShell, frozen=True, gc=False, kw_only=True, tag="response.shell_call_command.done"):
    text: str = msgspec.field(name="command")


class CodeDelta(_InItem, frozen=True, gc=False, kw_only=True, tag="response.code_interpreter_call_code.delta"):
    text: str = msgspec.field(name="delta")


class CodeDone(_InItem, frozen=True, gc=False, kw_only=True, tag="response.code_interpreter_call_code.done"):
    text: str = msgspec.field(name="code")


class McpArgumentsDelta(_InItem, frozen=True, gc=False, kw_only=True, tag="response.mcp_call_arguments.delta"):
    text: str = msgspec.field(name="delta")


class McpArgumentsDone(_InItem, frozen=True, gc=False, kw_only=True, tag="response.mcp_call_arguments.done"):
    text: str = msgspec.field(name="arguments")


# ---- the rest


class Passive(_Wire, frozen=True, gc=False, kw_only=True):
    """An event of a known type that adds nothing to what its item says when it is done."""

    type: str


class Unknown(_Wire, frozen=True, gc=False, kw_only=True):
    """An event of a type that is not known yet."""

    type: str
    raw: dict[str, Any]


class Empty(_Wire, frozen=True, gc=False):
    """An event without data: a keep-alive of a relay."""


class DoneMarker(_Wire, frozen=True, gc=False):
    """`[DONE]`, which OpenRouter and older litellm put behind the last event."""


class Renamed(msgspec.Struct, frozen=True, gc=False):
    """An event whose `event:` line says another type; `deviation` says so."""

    event: Event
    deviation: str


Delta: TypeAlias = (
    TextDelta
    | RefusalDelta
    | ReasoningTextDelta
    | ReasoningSummaryDelta
    | FunctionArgumentsDelta
    | CustomInputDelta
    | ApplyPatchDiffDelta
    | ShellCommandDelta
    | CodeDelta
    | McpArgumentsDelta
)
_Known: TypeAlias = (
    Delta
    | Created
    | Queued
    | InProgress
    | Completed
    | Incomplete
    | Failed
    | ResponseDone
    | Error
    | ItemAdded
    | ItemDone
    | ContentPartAdded
    | ContentPartDone
    | AnnotationAdded
    | TextDone
    | RefusalDone
    | ReasoningTextDone
    | ReasoningSummaryDone
    | FunctionArgumentsDone
    | CustomInputDone
    | ApplyPatchDiffDone
    | ShellCommandAdded
    | ShellCommandDone
    | CodeDone
    | McpArgumentsDone
)
Event: TypeAlias = _Known | Passive | Unknown | Empty | DoneMarker | Renamed


def _steps(family: str, *steps: str) -> list[str]:
    return [f"response.{family}.{step}" for step in steps]


# What these tell is progress for a screen, or stands whole in the item that is done.
_PASSIVE = frozenset(
    [
        *_steps("reasoning_summary_part", "added", "done"),
        *_steps("reasoning_part", "added", "done"),  # Bedrock Mantle
        *_steps("web_search_call", "in_progress", "searching", "completed"),
        *_steps("file_search_call", "in_progress", "searching", "completed"),
        *_steps("code_interpreter_call", "in_progress", "interpreting", "completed"),
        *_steps("image_generation_call", "in_progress", "generating", "partial_image", "completed"),
        *_steps("mcp_list_tools", "in_progress", "completed", "failed"),
        *_steps("mcp_call", "in_progress", "completed", "failed"),
        *_steps("shell_call_output_content", "delta", "done"),
        *_steps("shell_call", "in_progress", "completed"),
        *_steps("shell_call_output", "done"),
        *_steps("compaction", "compacting"),
        *_steps("audio", "delta", "done"),
        *_steps("audio.transcript", "delta", "done"),
        "image_generation.partial_image",
    ]
)

_NAMES: dict[type[Any], str] = {event: event.__struct_config__.tag for event in _Known.__args__}
_KNOWN = frozenset(_NAMES.values())
_DECODER = msgspec.json.Decoder(_Known)


class _Typed(msgspec.Struct, frozen=True, gc=False):
    type: str | None = None
    sequence_number: int | None = None


_TYPE_DECODER = msgspec.json.Decoder(_Typed)


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
        event = _decode_unusual(frame)
    if type(event) in _HOLDS_ITEMS and _gives_arguments(event):
        event = read(loads(data), data)  # told apart from arguments that give a key twice
    if not data.isascii():
        require_utf8(data)
    named = frame.event
    if named != "message" and _NAMES.get(type(event), named) != named:
        return Renamed(event, "event_name_mismatch")
    return event


_HOLDS_ITEMS = frozenset({ItemAdded, ItemDone, Completed, Incomplete, Failed, ResponseDone})
_ARGUMENTS = ("arguments", "input", "action", "actions", "operation")


def _gives_arguments(event: Any) -> bool:
    """Whether an event has arguments of a call that are no text, where msgspec keeps the last of two equal keys."""
    if isinstance(event, ItemAdded | ItemDone):
        items: list[Any] = [event.item]
    else:
        output = mapping(event.response).get("output")
        items = cast("list[Any]", output) if isinstance(output, list) else []
    return any(
        isinstance(cast("dict[str, Any]", item).get(field), dict | list)
        for item in items
        if isinstance(item, dict)
        for field in _ARGUMENTS
    )


def _decode_unusual(frame: Frame) -> Event:
    """What the decoder refuses: markers, types that are not folded or new, and faults, told by what they are."""
    data = frame.data
    text = data.strip()
    if not text:
        return Empty()
    if text.startswith(b"[DONE]"):
        return DoneMarker()
    try:
        typed = _TYPE_DECODER.decode(data)
    except (msgspec.DecodeError, RecursionError):
        if frame.event == "error" and not text.startswith((b"{", b"[", b'"')):  # a proxy's own words
            return Error(message=text.decode("utf-8", "replace"))
    else:
        if typed.type in _PASSIVE:
            return Passive(type=typed.type, sequence_number=typed.sequence_number)
    return read(loads(data), data)


def read(value: Any, data: bytes = b"") -> Event:
    """The event that a decoded payload is. Raises `ProtocolError` as `decode` does."""
    if not isinstance(value, dict):
        raise ProtocolError("data is JSON but not an object", hint=f"{excerpt(data)}")
    raw = cast("dict[str, Any]", value)
    kind = raw.get("type")
    if not isinstance(kind, str):
        return _read_untyped(raw, data)
    if kind in _PASSIVE:
        return Passive(type=kind, sequence_number=_number(raw))
    if kind not in _KNOWN:
        return Unknown(type=kind, raw=raw, sequence_number=_number(raw))
    known: Any = _Known
    return cast("Event", convert(raw, known, f"event {kind}"))


def _read_untyped(raw: dict[str, Any], data: bytes) -> Event:
    found = raw.get("error") or raw.get("detail")  # FastAPI's word, which vLLM and SGLang use
    if found:
        return Error(error=found, status=raw.get("status"))
    if str(raw.get("object")).startswith("chat.completion"):
        raise ProtocolError(
            f"data is an OpenAI Chat {raw['object']!r}, expected an event of a Responses stream",
            hint="Read it with the protocol 'openai-chat'",
        )
    raise ProtocolError("data has no type", hint=f"{excerpt(data)}")


def _number(raw: dict[str, Any]) -> int | None:
    number = raw.get("sequence_number")
    return number if isinstance(number, int) and not isinstance(number, bool) else None


def read_response(body: Any) -> list[Event]:
    """A non-streaming body as the events that say the same. Raises `ProtocolError` as `decode` does."""
    if isinstance(body, dict):
        raw = cast("dict[str, Any]", body)
        if raw.get("object") == "response" or ("output" in raw and "type" not in raw):
            snapshot = convert({"id": raw.get("id"), "model": raw.get("model")}, Snapshot, "response")
            return [Created(response=snapshot), ResponseDone(response=raw)]
    return [read(body)]


def name(event: Event) -> str:
    """The wire's name of an event."""
    return event.type if isinstance(event, Unknown | Passive) else _NAMES[type(event)]
