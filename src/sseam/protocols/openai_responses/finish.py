"""The end: what the final response says, against what was streamed.

Its output decides where there is one, and completes items whose own end never came. The stop reason
is derived: from the status, the reason of an incomplete response, and the calls that are the client's.
"""

from __future__ import annotations

from collections import deque
from typing import Any, cast

from ... import fold, stop
from ...decoding import mapping
from ...errors import ProtocolError, SseamError, TruncatedStream, Where
from ...events import Event
from ...fold import Kind
from ...message import Usage
from .._openai_errors import api_error
from . import complete, items, wire
from .state import Phase, State, Step, identify

__all__ = ["STOP_REASONS", "Ending", "on_ending"]

# The reason of an incomplete response, else the status. "completed" is what the content makes of it.
STOP_REASONS = {
    "completed": "end_turn",
    "failed": "error",
    "cancelled": "aborted",
    "incomplete": stop.UNKNOWN,  # without a reason
    "max_output_tokens": "max_tokens",
    "max_tokens": "max_tokens",
    "length": "max_tokens",
    "content_filter": "content_filter",
    "max_messages": stop.UNKNOWN,
    "steered": stop.UNKNOWN,
}

Ending = wire.Completed | wire.Incomplete | wire.Failed | wire.ResponseDone


def on_ending(state: State, event: Ending) -> Step:
    response = event.response or {}
    status = _status(event, response)
    raw_reason = status
    if status in ("completed", "incomplete"):
        given = mapping(response.get("incomplete_details")).get("reason")
        raw_reason = given if isinstance(given, str) and given.strip() else status
    id, model = response.get("id"), response.get("model")
    state, caused = identify(state, event, _string(id), _string(model))
    raw = {key: value for key, value in response.items() if key not in _MODELLED}
    state = fold.set_head(state, raw=raw)
    if isinstance(usage := response.get("usage"), dict):
        state, more = fold.set_usage(state, state.wire, _usage(cast("dict[str, Any]", usage)))
        caused += more
    if status == "failed" or event.error or response.get("error"):
        state, more = _fail(state, event, status)
        return state, (*caused, *more)
    said = _ENDINGS[type(event)] or status
    if response.get("status") not in (None, said) or (status == "completed" and raw_reason != status):
        state = fold.note(state, "status_contradicts")
    reason = STOP_REASONS.get(raw_reason, stop.UNKNOWN)
    state = fold.set_stop(state, state.wire, reason, raw_reason)
    for stage in (_take_output, _derive, _conclude):
        try:
            state, more = stage(state, response)
        except SseamError as error:
            state, more = fold.fail(state, error)
        caused += more
        if state.head.result is not None:
            break
    return state, caused


_MODELLED = frozenset({"id", "model", "output", "usage", "status"})

_ENDINGS: dict[type[Any], str | None] = {
    wire.Completed: "completed",
    wire.Incomplete: "incomplete",
    wire.Failed: "failed",
    wire.ResponseDone: None,
}


def _status(event: wire.Event, response: dict[str, Any]) -> str:
    """The status that counts: of the response's own and the event's the one that promises less."""
    said = _ENDINGS[type(event)]
    given = response.get("status")
    if said == "failed" or (said == "incomplete" and given == "completed"):
        return said
    if given in ("completed", "incomplete", "failed", "cancelled"):
        return given
    if said == "completed" and isinstance(given, str) and given.strip():
        return given  # of a response that is not over, or one that is not known
    if said is None:
        if isinstance(given, str):
            raise TruncatedStream(f"the response is not over: its status is {given!r}")
        raise TruncatedStream(f"{wire.name(event)} did not provide a status")
    return said


def _string(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _fail(state: State, event: Ending, status: str) -> Step:
    response = event.response or {}
    found: Any = event.error or response.get("error") or {"message": "the response failed, and no error says why"}
    state = fold.set_stop(state, state.wire, "error", status)
    return fold.fail(state, api_error({"error": found}, delivered=state.head.started > 0))


def _take_output(state: State, response: dict[str, Any]) -> Step:
    """Check the final response's output against the items that were streamed, and take what is new in it."""
    output = response.get("output")
    entries = cast("list[Any]", output) if isinstance(output, list) else []
    listed = [items.typed(cast("dict[str, Any]", item)) for item in entries if isinstance(item, dict)]
    record = state.wire.record
    if not listed:
        return _without_output(state)
    caused: list[Event] = []
    waiting: dict[str, deque[int]] = {}
    for number, slot in enumerate(record.slots):
        waiting.setdefault(slot.type, deque()).append(number)
    by_index = {slot.index: number for number, slot in enumerate(record.slots)}
    taken: set[int] = set()
    for position, item in enumerate(listed):
        number = _match(state, item, by_index.get(position), waiting, taken)
        if number is None:
            state, number = items.add(state, item["type"], item.get("id"), position)
        elif not (slot := record.slots[number]).done and not slot.cut:
            state = fold.note(state, "item_done_missing")
        taken.add(number)
        state, more = complete.complete(state, number, item)
        caused += more
    for number in range(len(record.slots)):
        if number not in taken:
            state = fold.note(state, "output_differs")
    return state, tuple(caused)


def _match(
    state: State, item: dict[str, Any], at: int | None, waiting: dict[str, deque[int]], taken: set[int]
) -> int | None:
    """The streamed item that one of the final output is: by id, by position, else the next of its type."""
    slots = state.wire.record.slots
    for number in (items.find(state, item.get("id"), None), at):
        if number is not None and number not in taken and slots[number].type == item["type"]:
            return number
    same = waiting.get(item["type"], deque())
    while same:
        number = same.popleft()
        if number not in taken:
            return number
    return None


def _without_output(state: State) -> Step:
    """The final response does not list its output: what was streamed stands, if it is whole."""
    record = state.wire.record
    if record.phase is Phase.RESUMED:
        raise ProtocolError(
            "the final response does not list its output, and the stream was entered after its beginning"
        )
    if record.lost:
        lost = ", ".join(f"{first} to {last}" for first, last in record.lost)
        raise ProtocolError(
            f"events with sequence_number {lost} never came",
            hint="The final response does not list its output, which could show that no content went with them",
        )
    if len(record.slots):
        state = fold.note(state, "output_missing")
    caused: list[Event] = []
    for number, slot in enumerate(record.slots):
        if slot.done or slot.cut:
            continue
        indexes = list(dict.fromkeys(slot.parts.values())) if slot.block is None else [slot.block]
        parts = [fold.focus(state, index).part for index in indexes]
        if parts and all(part.fields.get("whole") for part in parts):
            state = items.set_slot(fold.note(state, "item_done_lost"), number, done=True)
            for index in indexes:
                state, more = fold.end(fold.focus(state, index))
                caused += more
    return state, tuple(caused)


def _derive(state: State, response: dict[str, Any]) -> Step:
    """The stop reason of a completed response, once its content is known to be whole."""
    head = state.head
    if head.raw_reason != "completed":
        return state, ()
    _require_whole(state)
    reason = "tool_use" if head.calls else "refusal" if _refused(state) else "end_turn"
    return fold.set_stop(state, state.wire, reason, head.raw_reason), ()


def _conclude(state: State, response: dict[str, Any]) -> Step:
    reason, raw_reason = state.head.reason or stop.UNKNOWN, state.head.raw_reason or ""
    return fold.finish(state, reason, raw_reason, cut=raw_reason != "completed")


def _require_whole(state: State) -> None:
    """Raise for an item that was not finished, or a call that cannot be used."""
    if state.head.open:
        raise fold.truncated(state, "response.completed")
    for number, slot in enumerate(state.wire.record.slots):
        if not slot.done:
            kind = items.block_name(slot.type)
            where = Where(block=slot.key)
            raise TruncatedStream(f"stream ended with unclosed {kind} block(s): {slot.key}", where=where)
        complete.require_startable(state, number)
    fold.require_valid(state)


def _refused(state: State) -> bool:
    """Whether the last message declines."""
    messages = [slot for slot in state.wire.record.slots if slot.type == "message"]
    numbers = messages[-1].parts.values() if messages else ()
    return any(fold.focus(state, number).part.kind is Kind.REFUSAL for number in numbers)


def _usage(raw: dict[str, Any]) -> Usage:
    given, output = fold.count(raw, "input_tokens"), fold.count(raw, "output_tokens")
    total = fold.count(raw, "total_tokens")
    if total is None and given is not None and output is not None:
        total = given + output
    return Usage(
        input_tokens=given,
        output_tokens=output,
        cache_read_tokens=fold.count(raw.get("input_tokens_details"), "cached_tokens"),
        cache_write_tokens=fold.count(raw.get("input_tokens_details"), "cache_write_tokens"),
        reasoning_tokens=fold.count(raw.get("output_tokens_details"), "reasoning_tokens"),
        total_tokens=total,
        raw=raw,
    )
