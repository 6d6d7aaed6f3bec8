"""Sequence numbers: which events are due.

A number says where an event belongs only once the numbers have been consecutive for a while. Then an
event that comes too early waits, a few events long, for those before it; one that comes again is
passed over. What is missing for good is named, and is a fault where nothing shows that no content went
with it (`reducer`). Servers that number nothing, or everything alike, are read as it comes.
"""

from __future__ import annotations

from typing import Any, TypeAlias, cast

from ... import fold
from ...errors import ProtocolError
from . import wire
from .state import NOWHERE, State, Wire, set_record

__all__ = ["ENDINGS", "WINDOW", "Due", "due", "flush", "last_number"]

WINDOW = 16  # how many events wait for one that is late
_ESTABLISHED = 3  # so many consecutive numbers are no accident

# Whatever their number: nothing is worth waiting for behind these, and none is passed over.
ENDINGS = frozenset({wire.Completed, wire.Incomplete, wire.Failed, wire.ResponseDone, wire.Error})

Due: TypeAlias = tuple[wire.Event, ...]


def last_number(state: State) -> int | None:
    """The number of the last event that was taken, to resume after: None where none is known."""
    following = state.wire.next
    return following - 1 if following is not None else None


def due(state: State, event: wire.Event) -> tuple[State, Due]:
    """The events that can be taken now that `event` came. Raises `ProtocolError` for a refused deviation."""
    assert not isinstance(event, wire.Renamed)
    number = event.sequence_number
    following = state.wire.next
    if isinstance(event, wire.DoneMarker):
        state, held = flush(state)
        return state, (*held, event)
    if number is None:
        if following is not None and not isinstance(event, wire.Empty | wire.Unknown | wire.Error):
            state = fold.note(state, "sequence_missing")
        return state, (event,)
    if state.wire.record.unreliable:
        return state, (event,)
    if following is None:
        return _run_from(state, number), (event,)
    if number == following:
        return _catch_up(_advance(state, number), event)
    return _passed(state, event) if number < following else _ahead(state, event, number)


def _advance(state: State, number: int) -> State:
    return fold.set_wire(state, Wire(number + 1, state.wire.place, state.wire.record))


def _run_from(state: State, number: int) -> State:
    return _advance(set_record(state, since=number), number)


def _established(state: State) -> bool:
    own = state.wire
    return own.record.trusted or (own.next or 0) - own.record.since >= _ESTABLISHED


def _catch_up(state: State, event: wire.Event) -> tuple[State, Due]:
    """The event, and those that waited for it."""
    held = state.wire.record.held
    if not held:
        return state, (event,)
    ready: list[wire.Event] = [event]
    for waiting in held:
        if _number(waiting) != state.wire.next:
            break
        ready.append(waiting)
        state = _advance(state, _number(waiting))
    if len(ready) > len(held):
        state = fold.note(state, "sequence_reordered")
    return set_record(state, held=held[len(ready) - 1 :]), tuple(ready)


def _passed(state: State, event: wire.Event) -> tuple[State, Due]:
    """An event whose number was passed."""
    if not _established(state):
        state = fold.note(set_record(state, unreliable=True), "sequence_unreliable")
        return fold.set_wire(state, Wire(None, state.wire.place, state.wire.record)), (event,)
    state = fold.note(state, "sequence_repeated")
    if type(event) in ENDINGS:
        state, held = flush(state)
        return state, (*held, event)
    if isinstance(event, wire.ItemAdded | wire.ItemDone) and _is_new(state, event):
        raise ProtocolError(
            f"sequence_number {event.sequence_number} came again, with an item that had not come",
            hint=f"Expected {state.wire.next}",
        )
    return state, ()


def _is_new(state: State, event: wire.ItemAdded | wire.ItemDone) -> bool:
    record = state.wire.record
    id: object = (event.item or {}).get("id")
    known = isinstance(id, str) and id in record.names
    return not known and (event.output_index is None or event.output_index not in record.open)


def _ahead(state: State, event: wire.Event, number: int) -> tuple[State, Due]:
    """An event with others missing before it."""
    if not _established(state):
        state = fold.note(state, "sequence_gap")
        return _run_from(state, number), (event,)
    held = list(state.wire.record.held)
    numbers = [_number(waiting) for waiting in held]
    if number in numbers:
        return fold.note(state, "sequence_repeated"), ()
    held.insert(sum(other < number for other in numbers), event)
    state = set_record(state, held=tuple(held), trusted=True)
    if len(held) > WINDOW or type(event) in ENDINGS:
        return flush(state)
    return fold.set_wire(state, Wire(state.wire.next, NOWHERE, state.wire.record)), ()


def _number(waiting: wire.Event) -> int:
    """The number of an event that waits, which has one."""
    return cast("int", cast("Any", waiting).sequence_number)


def flush(state: State) -> tuple[State, Due]:
    """The events that wait, in order; what they waited for is lost."""
    held = state.wire.record.held
    if not held:
        return state, ()
    lost = list(state.wire.record.lost)
    for event in held:
        number = _number(event)
        following = state.wire.next or 0
        if number != following:
            state = fold.note(state, "sequence_gap")
            lost.append((following, number - 1))
            state = set_record(state, since=number)
        state = _advance(state, number)
    return set_record(state, held=(), lost=tuple(lost)), held
