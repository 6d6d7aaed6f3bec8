"""OpenAI Responses: wire event by wire event to neutral events.

The table says what each event does; every one is legal everywhere, since servers leave out any of
them, and what must agree is checked where texts, items and the response end. Edge cases are decided
as in the wire reference's table of them (types of OpenAI's SDK and recordings, read 2026-11-29).

A stream that is entered in the middle (`starting_after` of a background response, without the state
that read its beginning) is told by its first event: one with a number above 0 that is neither of the
response nor the start of the first item. Its content is then taken from the final response. To
resume with nothing held back, go on with the same state; `order.last_number` says after which event.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeAlias, cast

from ... import fold
from ...dialect import Dialect
from ...errors import ProtocolError, SseamError, TruncatedStream
from ...fold import append
from .._openai_errors import api_error
from . import content, order, wire
from .dialects import DEVIATIONS, DIALECTS
from .finish import STOP_REASONS, on_ending
from .state import NOWHERE, Phase, State, Step, Wire, identify, set_record
from .state import initial as initial_wire

__all__ = ["NAME", "STOP_REASONS", "TITLE", "State", "finish", "initial", "reduce"]

NAME = "openai-responses"
TITLE = "OpenAI Responses"


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
    return fold.initial(settings, initial_wire())


def reduce(state: State, event: wire.Event) -> Step:
    """The next state, and the neutral events that `event` caused.

    A fault gives one last `Failed` event. After the terminal event nothing more comes.
    """
    # Nearly every event is a delta for the block touched last, in its turn.
    own = state.wire
    place = own.place
    if place.kind is type(event) and state.focus.delta is not None:
        delta: Any = event
        if delta.item_id == place.item_id and delta.content_index == place.content_index:
            following = own.next
            if following is None:
                return append(state, delta.text)
            if delta.sequence_number == following:
                return append(state, delta.text, Wire(following + 1, place, own.record))
    if state.head.result is not None:
        return state, ()
    try:
        if isinstance(event, wire.Renamed):
            state, event = fold.note(state, event.deviation), event.event
        state, due = order.due(state, event)
    except SseamError as error:
        return fold.fail(state, error)
    return _take(state, due)


def _take(state: State, due: order.Due) -> Step:
    caused: fold.Events = ()
    for event in due:
        try:
            state, more = _step(state, event)
        except SseamError as error:
            state, more = fold.fail(state, error)
        caused += more
        if state.head.result is not None:
            break
    return state, caused


def _step(state: State, event: wire.Event) -> Step:
    own = state.wire
    if own.place is not NOWHERE:
        state = fold.set_wire(state, Wire(own.next, NOWHERE, own.record))
    return _TABLE[own.record.phase][type(event)](state, event)


def finish(state: State) -> Step:
    """The input ended. Without a terminal event before, that is a fault."""
    if state.head.result is not None:
        return state, ()
    caused: fold.Events = ()
    try:
        state, due = order.flush(state)
        state, caused = _take(state, due)
        if state.head.result is not None:
            return state, caused
        fold.require_valid(state)
        raise _truncated(state)
    except SseamError as error:
        state, more = fold.fail(state, error)
        return state, (*caused, *more)


def _truncated(state: State) -> TruncatedStream:
    if state.wire.record.phase is Phase.IDLE:
        return TruncatedStream("empty event stream", hint="Expected response.created")
    return fold.truncated(state, "response.completed")


# ---- the response


def _on_beginning(state: State, event: wire.Created | wire.Queued | wire.InProgress) -> Step:
    response = event.response or wire.Snapshot()
    if isinstance(event, wire.Created) and state.wire.record.phase is not Phase.IDLE:
        another = response.id and state.head.id and response.id != state.head.id
        if another or len(state.wire.record.slots):
            raise ProtocolError(f"second response {response.id!r} spliced into the stream of {state.head.id!r}")
        state = fold.note(state, "created_repeated")
    return identify(state, event, response.id, response.model)


def _on_first(state: State, event: wire.Event) -> Step:
    """The first event is none of the response itself."""
    first = isinstance(event, wire.ItemAdded) and event.output_index in (0, None)
    number = cast("Any", event).sequence_number
    state, caused = identify(state, event, None, None)
    if number and not first:
        state = set_record(fold.note(state, "resumed_midway"), phase=Phase.RESUMED)
    state, more = _step(state, event)
    return state, (*caused, *more)


def _on_skipped(state: State, event: wire.Event) -> Step:
    return state, ()


def _on_error(state: State, event: wire.Error) -> Step:
    found: Any = event.error or {"code": event.code, "message": event.message, "param": event.param}
    if isinstance(found, dict) and event.status is not None:
        found = {"status": event.status, **cast("dict[str, Any]", found)}
    raise api_error({"error": found}, delivered=state.head.started > 0)


def _on_unknown(state: State, event: wire.Unknown) -> Step:
    return fold.note(state, "unknown_event"), ()


def _on_passive(state: State, event: wire.Passive) -> Step:
    return (fold.note(state, "audio_dropped") if event.type.startswith("response.audio") else state), ()


def _on_empty(state: State, event: wire.Empty) -> Step:
    return fold.note(state, "empty_frame"), ()


def _on_done_marker(state: State, event: wire.DoneMarker) -> Step:
    # It marks the end of the input and proves nothing.
    return finish(fold.note(state, "done_marker"))


# ---- the table

Arm: TypeAlias = Callable[[State, Any], Step]

_ALWAYS: dict[type[Any], Arm] = {
    wire.Created: _on_beginning,
    wire.Queued: _on_beginning,
    wire.InProgress: _on_beginning,
    wire.Completed: on_ending,
    wire.Incomplete: on_ending,
    wire.Failed: on_ending,
    wire.ResponseDone: on_ending,
    wire.Error: _on_error,
    wire.Unknown: _on_unknown,
    wire.Passive: _on_passive,
    wire.Empty: _on_empty,
    wire.DoneMarker: _on_done_marker,
}

_CONTENT: dict[type[Any], Arm] = {
    wire.ItemAdded: content.on_item_added,
    wire.ItemDone: content.on_item_done,
    wire.ContentPartAdded: content.on_part_added,
    wire.ContentPartDone: content.on_part_done,
    wire.AnnotationAdded: content.on_annotation,
    wire.TextDelta: content.on_text_delta,
    wire.TextDone: content.on_text_done,
    wire.RefusalDelta: content.on_text_delta,
    wire.RefusalDone: content.on_text_done,
    wire.ReasoningTextDelta: content.on_reasoning_delta,
    wire.ReasoningTextDone: content.on_reasoning_done,
    wire.ReasoningSummaryDelta: content.on_reasoning_delta,
    wire.ReasoningSummaryDone: content.on_reasoning_done,
    wire.FunctionArgumentsDelta: content.on_call_delta,
    wire.FunctionArgumentsDone: content.on_call_done,
    wire.CustomInputDelta: content.on_call_delta,
    wire.CustomInputDone: content.on_call_done,
    wire.ApplyPatchDiffDelta: content.on_hidden_delta,
    wire.ApplyPatchDiffDone: _on_skipped,  # the item has it
    wire.ShellCommandAdded: content.on_hidden_delta,
    wire.ShellCommandDelta: content.on_hidden_delta,
    wire.ShellCommandDone: _on_skipped,
    wire.CodeDelta: content.on_hidden_delta,
    wire.CodeDone: _on_skipped,
    wire.McpArgumentsDelta: content.on_hidden_delta,
    wire.McpArgumentsDone: _on_skipped,
}

_TABLE: dict[Phase, dict[type[Any], Arm]] = {
    Phase.IDLE: {**_ALWAYS, **dict.fromkeys(_CONTENT, _on_first)},
    Phase.STREAMING: {**_ALWAYS, **_CONTENT},
    Phase.RESUMED: {**_ALWAYS, **dict.fromkeys(_CONTENT, _on_skipped)},
}
