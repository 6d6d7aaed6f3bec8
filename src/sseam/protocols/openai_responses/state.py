"""What the Responses reducer knows beside the blocks: items, and where in the numbering the stream is."""

from __future__ import annotations

import enum
from typing import Any, TypeAlias

import msgspec

from ... import fold
from ..._enums import quick
from ..._persistent import Vector
from ..._text import Text
from . import wire
from .table import Table

__all__ = ["NOWHERE", "Phase", "Place", "Record", "Slot", "State", "Step", "Wire", "identify", "initial", "set_record"]


@quick
class Phase(enum.Enum):
    """Where in the response the stream is."""

    IDLE = "idle"  # before its first event
    STREAMING = "streaming"  # items come and go
    RESUMED = "resumed"  # entered midway: the content is taken from the final response


class Slot(msgspec.Struct, frozen=True, kw_only=True):
    """One output item.

    Attributes:
        key: what errors call it: its output index where it has one.
        index, id: `output_index` and `id` as first seen.
        type: the item's type.
        item: the item as it was announced, {} where it was not.
        block: neutral index of the item's block, None while it has none, and for messages.
        parts: content index to neutral index, for the parts of a message; shared: one has several of them.
        unannounced: content index of the part that a delta opened without `content_part.added`.
        text: deltas that are only compared with the finished item, or wait for the call's name.
        done: the item is whole and can be used; cut: it ended as incomplete.
    """

    key: int | str
    index: int | None
    id: str
    type: str
    item: dict[str, Any]
    text: Text
    block: int | None = None
    parts: Table[int, int] = Table()
    shared: bool = False
    unannounced: int | None = None
    done: bool = False
    cut: bool = False


class Place(msgspec.Struct, frozen=True, gc=False):
    """What the last delta was and where it belongs: the next one that says the same goes there too.

    `output_index` is not among it, since an id that is known says more.
    """

    kind: type[Any] | None
    item_id: str | None
    content_index: int | None


NOWHERE = Place(None, None, None)


class Record(msgspec.Struct, frozen=True):
    """What only the rarer events need.

    Attributes:
        phase: see there.
        slots: every item in the order in which they were first seen.
        open: every output index to the slot that is open under it, None where that has ended.
        names: every id that an item was called by to the slot that it means.
        unreliable: the numbers of the events say nothing.
        trusted: they once were consecutive; since: the first of the present run.
        held: events that came before others with lower numbers, in order.
        lost: ranges of numbers that never came.
    """

    phase: Phase = Phase.IDLE
    slots: Vector[Slot] = Vector()
    open: Table[int, int | None] = Table()
    names: Table[str, int] = Table()
    unreliable: bool = False
    trusted: bool = False
    since: int = 0
    held: tuple[wire.Event, ...] = ()
    lost: tuple[tuple[int, int], ...] = ()


class Wire(msgspec.Struct, frozen=True, gc=False):
    """The reducer's own part of the state.

    Attributes:
        next: the number that the next event should have, None where none is expected.
        place: where the last event left off, if it was a delta.
        record: see there.
    """

    next: int | None
    place: Place
    record: Record


State: TypeAlias = fold.State[Wire]
Step: TypeAlias = fold.Step[Wire]


def initial() -> Wire:
    """The part before the first event."""
    return Wire(None, NOWHERE, Record())


def set_record(state: State, **fields: Any) -> State:
    """The state with other fields of its record."""
    own = state.wire
    record = msgspec.structs.replace(own.record, **fields)
    return fold.set_wire(state, Wire(own.next, own.place, record))


def identify(state: State, event: wire.Event, id: str | None, model: str | None) -> Step:
    """The response says what it is called; a later word stands."""
    if not state.head.begun:
        if not isinstance(event, wire.Created):
            state = fold.note(state, "created_missing")
        state = set_record(state, phase=Phase.STREAMING)
        return fold.begin(state, state.wire, id=id or "", model=model or "")
    head = state.head
    if id and head.id and id != head.id:
        state = fold.note(state, "response_id_changed")
    id, model = id or head.id, model or head.model
    return (state if id == head.id and model == head.model else fold.set_head(state, id=id, model=model)), ()
