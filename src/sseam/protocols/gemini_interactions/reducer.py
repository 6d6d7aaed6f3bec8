"""Gemini Interactions: wire event by wire event to neutral events.

The table says which event is legal in which phase and what it does; everything that is not in it is
refused by name. Edge cases are decided as in Google's "Streaming interactions" and "API errors" pages
(read 2026-11-29).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeAlias, cast

import msgspec

from ... import fold, stop
from ..._compare import same_json
from ..._persistent import Index, Vector
from ...decoding import mapping
from ...dialect import Dialect
from ...errors import ProtocolError, SseamError, TruncatedStream, Where
from ...fold import append
from ...message import ToolCall
from .. import _gemini
from . import wire
from .dialects import DEVIATIONS, DIALECTS
from .steps import (
    Phase,
    State,
    Step,
    Wire,
    end_prose,
    keep,
    on_delta,
    on_other_delta,
    on_step_start,
    on_step_stop,
    on_usage,
    opened,
)
from .wire import StepDelta

__all__ = ["NAME", "STOP_REASONS", "TITLE", "State", "finish", "initial", "reduce"]

NAME = "gemini-interactions"
TITLE = "Gemini Interactions"

# The interaction's last status. "completed" also ends a turn with calls: then it becomes "tool_use".
STOP_REASONS = {
    "completed": "end_turn",
    "requires_action": "tool_use",
    "incomplete": "max_tokens",
    "budget_exceeded": "max_tokens",
    "requires_continuation": "pause_turn",
    "failed": "error",
    "cancelled": "aborted",
}

# Statuses of an interaction that is not over.
UNFINISHED = frozenset({"queued", "in_progress", "idle"})

# Whatever was open then is not finished, and no fault of the stream.
BROKEN_OFF = frozenset({"error", "aborted", "pause_turn"})

# Codes of an error event that stand for a stop reason.
ERROR_CODES = {
    "safety": "content_filter",
    "recitation": "content_filter",
    "language": "content_filter",
    "prohibited_content": "content_filter",
    "spii": "content_filter",
    "blocklist": "content_filter",
    "image_safety": "content_filter",
    "image_prohibited_content": "content_filter",
    "image_recitation": "content_filter",
    "image_other": "content_filter",
    "content_blocked": "content_filter",
    "malformed_function_call": "error",
    "malformed_tool_call": "error",
    "unexpected_tool_call": "error",
    "no_image": "error",
    "too_many_tool_calls": "error",
    "missing_thought_signature": "error",
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
    return fold.initial(settings, Wire(Phase.IDLE, Index(), Vector()))


def reduce(state: State, event: wire.Event) -> Step:
    """The next state, and the neutral events that `event` caused.

    A fault gives one last `Failed` event. After the terminal event nothing more comes.
    """
    # Nearly every event is a delta for the block touched last, and fits it.
    if type(event) is StepDelta:
        delta = event.delta
        part = state.focus
        if part.key == event.index and part.accepts is type(delta) and event.metadata is None:
            return append(state, delta.text)
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
        _judge(state, event)
    return arm(state, event)


def finish(state: State) -> Step:
    """The input ended. Without a terminal event before, that is a fault."""
    if state.head.result is not None:
        return state, ()
    try:
        _judge(state, None)
        raise _truncated(state)
    except SseamError as error:
        return fold.fail(state, error)


def _truncated(state: State) -> TruncatedStream:
    if state.wire.phase is Phase.IDLE:
        return TruncatedStream("empty event stream", hint="Expected interaction.created")
    return fold.truncated(state, "interaction.completed")


# ---- the interaction


def _on_created(state: State, event: wire.InteractionCreated) -> Step:
    fields = event.interaction
    own = msgspec.structs.replace(state.wire, phase=Phase.STREAMING)
    raw = {key: value for key, value in fields.items() if key not in _MODELLED}
    return fold.begin(state, own, id=_text(fields, "id"), model=_model(fields), raw=raw)


_MODELLED = frozenset({"id", "model", "status", "usage", "steps"})


def _text(fields: dict[str, Any], key: str) -> str:
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def _model(fields: dict[str, Any]) -> str:
    return _text(fields, "model") or _text(fields, "agent")


def _on_created_again(state: State, event: wire.InteractionCreated) -> Step:
    id, known = _text(event.interaction, "id"), state.head.id
    if id != known or state.head.started:
        raise ProtocolError(f"second message {id!r} spliced into the stream of {known!r}")
    return fold.note(state, "created_repeated"), ()


def _on_status(state: State, event: wire.StatusUpdate) -> Step:
    if event.continuation_token is not None:
        state = keep(state, {"continuation_token": event.continuation_token})
    return on_usage(state, event.usage)


def _on_completed(state: State, event: wire.InteractionCompleted) -> Step:
    fields = event.interaction
    head = state.head
    kept = {key: value for key, value in fields.items() if key not in _MODELLED and value is not None}
    state = fold.set_head(
        state, id=head.id or _text(fields, "id"), model=head.model or _model(fields), raw={**head.raw, **kept}
    )
    if (error := fields.get("error")) is not None:
        raise _gemini.api_error(error, delivered=head.started > 0)
    _require_same_calls(state, wire.objects(fields, "steps", "interaction.completed"))
    usage = fields.get("usage")
    state, caused = on_usage(state, cast("dict[str, Any]", usage) if isinstance(usage, dict) else None)
    raw = _text(fields, "status")
    if not raw:
        raise TruncatedStream("interaction.completed did not provide a status")
    if raw in UNFINISHED:
        raise TruncatedStream(f"interaction.completed has the status {raw!r}", hint="The interaction is not over")
    reason = STOP_REASONS.get(raw, stop.UNKNOWN)
    if reason == "end_turn" and state.head.calls:
        reason = "tool_use"
    said = _text(mapping(state.head.raw.get("error")), "message")
    state, more = _end(state, reason, raw, said=said)
    return state, (*caused, *more)


def _require_same_calls(state: State, steps: list[dict[str, Any]]) -> None:
    """Raise `ProtocolError` where the finished interaction gives a call otherwise than its own step did."""
    for step in steps:
        number = state.head.call_ids.get(_text(step, "id")) if step.get("type") == "function_call" else None
        if number is None:
            continue
        call = fold.focus(state, number).part.block
        if not isinstance(call, ToolCall):
            continue
        name, arguments = step.get("name"), step.get("arguments")
        differs = name is not None and name != call.name
        if differs or (arguments is not None and not same_json(arguments, call.arguments)):
            what = "name" if differs else "input"
            raise ProtocolError(
                f"interaction.completed gives call {call.id} another {what} than its step did",
                where=Where(block=number, call=call.id),
            )


def _end(state: State, reason: str, raw: str, *, said: str) -> Step:
    """The interaction is over for this reason, of which the provider `said` something."""
    state = fold.set_stop(state, state.wire, reason, raw)
    cut = reason in stop.CUT_OFF or reason in BROKEN_OFF
    caused: fold.Events = ()
    try:
        state, caused = end_prose(state, noted=not cut)
        state, more = fold.finish(state, reason, raw, cut=cut)
    except SseamError as error:
        if said:
            error.hint = f"The provider says: {said}. {error.hint}"
        state, more = fold.fail(state, error)
    return state, (*caused, *more)


def _on_error(state: State, event: wire.Error) -> Step:
    error = _gemini.api_error(event.error, delivered=state.head.started > 0)
    reason = ERROR_CODES.get(error.code or "")
    if reason is None:
        raise error
    return _end(state, reason, cast("str", error.code), said=error.message)


def _on_unknown(state: State, event: wire.Unknown) -> Step:
    return fold.note(state, "unknown_event"), ()


def _on_empty(state: State, event: wire.Empty) -> Step:
    return fold.note(state, "empty_frame"), ()


def _on_done_marker(state: State, event: wire.DoneMarker) -> Step:
    return finish(state)


# ---- faults


def _judge(state: State, event: wire.Event | None) -> None:
    """A call that ended unusable is a fault, unless the very next event says that the answer was cut."""
    if isinstance(event, wire.InteractionCompleted):
        if STOP_REASONS.get(_text(event.interaction, "status")) in stop.CUT_OFF:
            return
    fold.require_valid(state)


def _refusal(state: State, event: wire.Event) -> ProtocolError:
    if isinstance(event, StepDelta) and isinstance(event.delta, wire.ArgumentsDelta):
        opened(state, event.index, arguments=True)
    return ProtocolError(f"{wire.name(event)} before interaction.created")


# ---- the table

Arm: TypeAlias = Callable[[State, Any], Step]

_ANYWHERE: dict[type[Any], Arm] = {
    wire.Empty: _on_empty,
    wire.Unknown: _on_unknown,
    wire.Error: _on_error,
    wire.DoneMarker: _on_done_marker,
}

_TABLE: dict[Phase, dict[type[Any], Arm]] = {
    Phase.IDLE: {
        **_ANYWHERE,
        wire.InteractionCreated: _on_created,
        wire.StatusUpdate: lambda state, event: (state, ()),
    },
    Phase.STREAMING: {
        **_ANYWHERE,
        wire.InteractionCreated: _on_created_again,
        wire.StatusUpdate: _on_status,
        wire.StepStart: on_step_start,
        StepDelta: on_delta,
        wire.OtherStepDelta: on_other_delta,
        wire.StepStop: on_step_stop,
        wire.InteractionCompleted: _on_completed,
    },
}

# These say nothing about what came before them.
_PASSING = frozenset({wire.Empty, wire.Unknown, wire.StatusUpdate})
