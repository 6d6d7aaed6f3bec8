"""Anthropic Messages: wire event by wire event to neutral events.

The table says which event is legal in which phase and what it does; everything that is not in it is
refused by name. Edge cases are decided as in Anthropic's "Streaming Messages", "Stop reasons" and
"Fine-grained tool streaming" pages (read 2026-11-29).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeAlias

import msgspec

from ... import fold, stop
from ..._persistent import Index
from ...decoding import mapping
from ...dialect import Dialect
from ...errors import ApiError, ProtocolError, SseamError, TruncatedStream
from ...fold import append
from ...message import Usage
from . import wire
from .blocks import on_block_delta, on_block_start, on_block_stop, on_unknown_delta, opened, whole_block
from .dialects import DEVIATIONS, DIALECTS
from .state import Phase, State, Step, Wire
from .wire import ContentBlockDelta

__all__ = ["NAME", "STOP_REASONS", "TITLE", "State", "finish", "initial", "reduce"]

NAME = "anthropic-messages"
TITLE = "Anthropic"

STOP_REASONS = {
    "end_turn": "end_turn",
    "tool_use": "tool_use",
    "max_tokens": "max_tokens",
    "stop_sequence": "stop_sequence",
    "pause_turn": "pause_turn",
    "refusal": "refusal",
    "model_context_window_exceeded": "context_window_exceeded",
    "compaction": "compaction",
}


def initial(
    *,
    dialect: str | Dialect | None = None,
    strict: bool = False,
    tools: Iterable[object] = (),
    accept: Collection[str] = (),
) -> State:
    """The state before the first event. See `sseam.Parser` for the arguments."""
    settings = fold.settings(
        NAME, TITLE, DEVIATIONS, DIALECTS, dialect=dialect, strict=strict, tools=tools, accept=accept
    )
    return fold.initial(settings, Wire(Phase.IDLE, Index()))


def reduce(state: State, event: wire.Event) -> Step:
    """The next state, and the neutral events that `event` caused.

    A fault gives one last `Failed` event. After the terminal event nothing more comes.
    """
    # Nearly every event is a delta for the block touched last, and fits it.
    if type(event) is ContentBlockDelta:
        delta = event.delta
        part = state.focus
        if part.key == event.index and part.accepts is type(delta):
            return append(state, delta.text)  # pyright: ignore
    if state.head.result is not None:
        return state, ()
    try:
        return _step(state, event)
    except SseamError as error:
        return fold.fail(state, error)


def _step(state: State, event: wire.Event) -> Step:
    arm = _TABLE[state.wire.phase].get(type(event))
    if arm is None:
        raise _refusal(state, event)
    if state.head.fault is not None and type(event) not in _PASSING:
        return _judge(state, event, arm)
    return arm(state, event)


def finish(state: State) -> Step:
    """The input ended. Without a terminal event before, that is a fault."""
    if state.head.result is not None:
        return state, ()
    try:
        if state.wire.phase is Phase.STOPPED and not state.head.open:
            missing = "stop_missing" in state.head.settings.dialect.codes
            if missing:
                return _on_message_stop(fold.note(state, "stop_missing"), wire.MessageStop())
        if state.wire.phase is not Phase.STOPPED:
            fold.require_valid(state)
        raise _truncated(state)
    except SseamError as error:
        return fold.fail(state, error)


def _truncated(state: State) -> TruncatedStream:
    if state.wire.phase is Phase.IDLE:
        return TruncatedStream("empty event stream", hint="Expected message_start")
    return fold.truncated(state, "message_stop")


# ---- the message


def _on_message_start(state: State, event: wire.MessageStart) -> Step:
    body = wire.read_message(event.message)
    counts = body.usage and _given(body.usage)
    own = Wire(Phase.STREAMING, state.wire.keys, counts or {}, event.message)
    raw = {key: value for key, value in event.message.items() if key not in _MODELLED}
    usage = None if counts is None else _usage(counts)
    state, caused = fold.begin(state, own, id=body.id or "", model=body.model or "", raw=raw, usage=usage)
    for index, block in enumerate(body.content or ()):  # a resumed programmatic call comes whole
        state, more = whole_block(state, index, block)
        caused += more
    return _set_stop(state, body.stop_reason), caused


_MODELLED = frozenset({"id", "type", "role", "model", "content", "stop_reason", "usage"})


def _on_repeated_start(state: State, event: wire.MessageStart) -> Step:
    first = state.wire.start
    fresh = not state.head.started and state.head.raw_reason is None
    if event.message == first or (fresh and event.message.get("id") == first.get("id")):
        return fold.note(state, "start_repeated"), ()
    raise ProtocolError(f"second message {event.message.get('id')!r} spliced into the stream of {first.get('id')!r}")


def _on_message_delta(state: State, event: wire.MessageDelta) -> Step:
    reason = event.delta.get("stop_reason")
    if reason is not None and not isinstance(reason, str):
        raise ProtocolError(f"stop_reason is {reason!r}, expected a string or null")
    if later := _beside_stop(event):
        state = fold.set_head(state, raw={**state.head.raw, **later})
    caused: fold.Events = ()
    if event.usage is not None:
        state, caused = _overlay_usage(state, event.usage)
    return _set_stop(state, reason), caused


def _beside_stop(event: wire.MessageDelta) -> dict[str, Any]:
    """What else a message_delta says of the message. Null leaves the earlier value."""
    later = {key: value for key, value in event.delta.items() if value is not None and key != "stop_reason"}
    if event.context_management is not None:
        later["context_management"] = event.context_management
    if event.input_transformations is not None:
        later["input_transformations"] = event.input_transformations
    return later


def _set_stop(state: State, raw: str | None) -> State:
    if not raw:
        return state
    known = state.head.raw_reason
    if known is not None and known != raw:
        raise ProtocolError(f"stop_reason {raw!r} contradicts the earlier {known!r}")
    own = msgspec.structs.replace(state.wire, phase=Phase.STOPPED)
    return fold.set_stop(state, own, STOP_REASONS.get(raw, stop.UNKNOWN), raw)


def _on_message_stop(state: State, event: wire.MessageStop) -> Step:
    head = state.head
    if event.metrics is not None:
        state = fold.set_head(state, raw={**head.raw, "amazon-bedrock-invocationMetrics": event.metrics})
    if head.reason is None or head.raw_reason is None:
        unclosed = fold.truncated(state, "message_stop") if head.open else None
        raise unclosed or TruncatedStream("message_delta did not provide a stop_reason")
    reason = head.reason
    if reason in ("end_turn", "stop_sequence") and head.calls:
        if "stop_with_calls" in head.settings.dialect.codes:
            state, reason = fold.note(state, "stop_with_calls"), "tool_use"
    return fold.finish(state, reason, head.raw_reason)


def _on_error(state: State, event: wire.Error) -> Step:
    raise _api_error(event, delivered=state.head.started > 0)


def _on_unknown(state: State, event: wire.Unknown) -> Step:
    return fold.note(state, "unknown_event"), ()


def _on_nothing(state: State, event: wire.Ping) -> Step:
    return state, ()


def _on_empty(state: State, event: wire.Empty) -> Step:
    return fold.note(state, "empty_frame"), ()


def _on_done_marker(state: State, event: wire.DoneMarker) -> Step:
    # It marks the end of the input and proves nothing.
    return finish(fold.note(state, "done_marker"))


def _on_renamed(state: State, event: wire.Renamed) -> Step:
    return _step(fold.note(state, event.deviation), event.event)


# ---- usage


def _overlay_usage(state: State, counts: dict[str, Any]) -> Step:
    """Counts are running totals: a later one replaces an earlier one, null and absent do not."""
    own = state.wire
    raw = {**own.usage, **_given(counts)}
    return fold.set_usage(state, Wire(own.phase, own.keys, raw, own.start), _usage(raw))


def _given(counts: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in counts.items() if value is not None}


def _usage(raw: dict[str, Any]) -> Usage:
    read = fold.count(raw, "cache_read_input_tokens")
    written = fold.count(raw, "cache_creation_input_tokens")
    given = fold.count(raw, "input_tokens")
    if given is not None:
        given += (read or 0) + (written or 0)
    output = fold.count(raw, "output_tokens")
    return Usage(
        input_tokens=given,
        output_tokens=output,
        cache_read_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=fold.count(raw.get("output_tokens_details"), "thinking_tokens"),
        total_tokens=given + output if given is not None and output is not None else None,
        raw=raw,
    )


# ---- faults


def _judge(state: State, event: wire.Event, arm: Arm) -> Step:
    """A call that ended unusable is a fault, unless the very next event says that it was cut."""
    if state.wire.phase is Phase.STOPPED:  # judged already, by the stop reason
        return arm(state, event)
    caused: fold.Events = ()
    if isinstance(event, wire.MessageDelta):
        state, caused = arm(state, event)
        if state.head.reason in stop.CUT_OFF:
            return state, caused
    try:
        fold.require_valid(state)
    except ProtocolError as error:
        # Here and not in `reduce`: the stop reason that just came is part of what was received.
        state, failed = fold.fail(state, error)
        return state, (*caused, *failed)
    return state, caused


def _refusal(state: State, event: wire.Event) -> ProtocolError:
    name = wire.name(event)
    if state.wire.phase is Phase.IDLE:
        if isinstance(event, wire.ContentBlockDelta) and isinstance(event.delta, wire.InputJsonDelta):
            opened(state, event.index, event.delta)
        return ProtocolError(f"{name} before message_start")
    return ProtocolError(
        f"{name} after stop_reason {state.head.raw_reason!r}", hint="Only message_delta and message_stop may follow"
    )


_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "conflict_error": 409,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "internal_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


def _api_error(event: wire.Error, *, delivered: bool) -> ApiError:
    error = mapping(event.error) or {"message": event.error}
    kind = error.get("type")
    code = mapping(error.get("details")).get("error_code", error.get("code"))
    status = _STATUS.get(kind) if isinstance(kind, str) else None
    return ApiError(
        str(error.get("message") or "the service reported an error without a message"),
        type=kind if isinstance(kind, str) else None,
        code=str(code) if code is not None else None,
        status=status,
        request_id=event.request_id,
        retryable=status is not None and (status in (409, 429) or status >= 500),
        delivered=delivered,
        raw=event.error,
    )


# ---- the table

Arm: TypeAlias = Callable[[State, Any], Step]

_ANYWHERE: dict[type[Any], Arm] = {
    wire.Ping: _on_nothing,
    wire.Empty: _on_empty,
    wire.Unknown: _on_unknown,
    wire.Error: _on_error,
    wire.DoneMarker: _on_done_marker,
    wire.Renamed: _on_renamed,
}

_TABLE: dict[Phase, dict[type[Any], Arm]] = {
    Phase.IDLE: {
        **_ANYWHERE,
        wire.MessageStart: _on_message_start,
    },
    Phase.STREAMING: {
        **_ANYWHERE,
        wire.MessageStart: _on_repeated_start,
        wire.ContentBlockStart: on_block_start,
        wire.ContentBlockDelta: on_block_delta,
        wire.UnknownContentBlockDelta: on_unknown_delta,
        wire.ContentBlockStop: on_block_stop,
        wire.MessageDelta: _on_message_delta,
        wire.MessageStop: _on_message_stop,
    },
    Phase.STOPPED: {
        **_ANYWHERE,
        wire.MessageStart: _on_repeated_start,
        wire.MessageDelta: _on_message_delta,
        wire.MessageStop: _on_message_stop,
    },
}

# These say nothing about what came before them.
_PASSING = frozenset({wire.Ping, wire.Empty, wire.Unknown, wire.Renamed})
