"""A block starts, grows and ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from .. import toolargs
from .._text import LOT, open_lot
from ..events import (
    Event,
    Opaque,
    RefusalDelta,
    RefusalEnd,
    RefusalStart,
    ServerTool,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from ..message import Block, OpaqueBlock, RedactedThinkingBlock, RefusalBlock, ServerToolBlock, TextBlock, ThinkingBlock
from .calls import claim, make_call
from .state import Events, Kind, Part, State, Step, W, refocus, store

__all__ = ["BLOCKS", "append", "end", "grow", "start"]

_DELTA: dict[Kind, type[Any]] = {
    Kind.TEXT: TextDelta,
    Kind.THINKING: ThinkingDelta,
    Kind.REFUSAL: RefusalDelta,
    Kind.TOOL: ToolCallDelta,
}


def start(
    state: State[W],
    wire: W,
    kind: Kind,
    *,
    key: int | str,
    name: str,
    fields: dict[str, Any],
    text: str = "",
    accepts: type[Any] | None = None,
) -> Step[W]:
    """A block starts and comes into focus. `wire` is the protocol part of the next state.

    Args:
        key: the wire's own index or key; name: the wire's word for the block.
        fields: see `Part`.
        text: what the start already gives of it.
        accepts: the wire's class of its deltas, for a reducer that tells by it what fits.

    Raises:
        InvalidToolCall: a call without id or name, or with an id that was used.
    """
    head = state.head
    index = head.started
    call_ids = claim(head, index, key, fields) if kind is Kind.TOOL else head.call_ids
    part = Part(_DELTA.get(kind), accepts, index, key, kind, name, fields, None, [])
    head = msgspec.structs.replace(head, started=index + 1, open=head.open + 1, call_ids=call_ids)
    state = State(part, 0, wire, head, store(state).append(part))
    events: Events = (_START[kind](part),)
    if text:
        state, more = append(state, text)
        events += more
    return state, events


_START: dict[Kind, Callable[[Part], Event]] = {
    Kind.TEXT: lambda part: TextStart(part.index),
    Kind.THINKING: lambda part: ThinkingStart(part.index),
    Kind.REDACTED: lambda part: ThinkingStart(part.index, redacted=True),
    Kind.REFUSAL: lambda part: RefusalStart(part.index),
    Kind.TOOL: lambda part: ToolCallStart(part.index, part.fields["id"], part.fields["name"]),
    Kind.SERVER: lambda part: ServerTool(part.index, _server_block(part), False),
    Kind.OPAQUE: lambda part: Opaque(part.index, _opaque_block(part), False),
}


def append(state: State[W], text: str, wire: W | None = None) -> Step[W]:
    """The block in focus, which has deltas, grows by `text`. `wire` is the protocol part of the next state, if new."""
    part = state.focus
    lot = part.lot
    used = state.used
    if used != len(lot) or used == LOT:
        return append(_make_room(state), text, wire)
    lot.append(text)
    state = State(part, used + 1, state.wire if wire is None else wire, state.head, state.stored)
    return state, ((part.delta(part.index, text),) if text else ())  # pyright: ignore[reportOptionalCall]


def grow(state: State[W], text: str) -> State[W]:
    """The block in focus grows by `text`, of which the neutral side is not told."""
    lot = state.focus.lot
    if state.used != len(lot) or state.used == LOT:
        return grow(_make_room(state), text)
    lot.append(text)
    return State(state.focus, state.used + 1, state.wire, state.head, state.stored)


def _make_room(state: State[W]) -> State[W]:
    part = state.focus
    lots, lot = open_lot(part.lots, part.lot, state.used)
    return refocus(state, msgspec.structs.replace(part, lots=lots, lot=lot, used=len(lot)))


def end(state: State[W]) -> Step[W]:
    """The block in focus ends.

    A call that cannot be used gives no event and is kept as the `fault` of the head: the reducer
    judges it when the stop reason tells whether it was cut.
    """
    head = state.head
    part = state.part
    result = make_call(part, head.settings) if part.kind is Kind.TOOL else BLOCKS[part.kind](part)
    closed = {"delta": None, "accepts": None, "started_at_end": head.started}
    if isinstance(result, toolargs.BadArguments):
        part = msgspec.structs.replace(part, fault=result, **closed)
        head = msgspec.structs.replace(head, open=head.open - 1, fault=part.index)
        return State(part, part.used, state.wire, head, state.stored), ()
    part = msgspec.structs.replace(part, lots=None, lot=[], used=0, block=result, **closed)
    calls = head.calls + (part.kind is Kind.TOOL)
    head = msgspec.structs.replace(head, open=head.open - 1, calls=calls)
    return State(part, 0, state.wire, head, state.stored), (_END[part.kind](part.index, result),)


def _text_block(part: Part) -> TextBlock:
    fields = part.fields
    return TextBlock(
        text=part.text,
        citations=tuple(fields.get("citations", ())),
        signature=fields.get("signature"),
        extra=fields["extra"],
    )


def _thinking_block(part: Part) -> ThinkingBlock:
    return ThinkingBlock(thinking=part.text, signature=part.fields.get("signature"), extra=part.fields["extra"])


def _redacted_block(part: Part) -> RedactedThinkingBlock:
    return RedactedThinkingBlock(data=part.fields["data"], extra=part.fields["extra"])


def _refusal_block(part: Part) -> RefusalBlock:
    return RefusalBlock(text=part.text, extra=part.fields["extra"])


def _server_block(part: Part) -> ServerToolBlock:
    return ServerToolBlock(kind=part.wire, raw=part.fields["raw"])


def _opaque_block(part: Part) -> OpaqueBlock:
    fields = part.fields
    deltas = tuple(fields.get("deltas", ()))
    return OpaqueBlock(kind=part.wire, raw=fields["raw"], deltas=deltas, extra=fields.get("extra", {}))


# Every kind but a call makes its block from whatever has come so far.
BLOCKS: dict[Kind, Callable[[Part], Block]] = {
    Kind.TEXT: _text_block,
    Kind.THINKING: _thinking_block,
    Kind.REDACTED: _redacted_block,
    Kind.REFUSAL: _refusal_block,
    Kind.SERVER: _server_block,
    Kind.OPAQUE: _opaque_block,
}


_END: dict[Kind, Callable[[int, Any], Event]] = {
    Kind.TEXT: lambda index, block: TextEnd(index, block.text, block.citations),
    Kind.THINKING: lambda index, block: ThinkingEnd(index, block.thinking, block.signature),
    Kind.REDACTED: lambda index, block: ThinkingEnd(index, ""),
    Kind.REFUSAL: lambda index, block: RefusalEnd(index, block.text),
    Kind.TOOL: ToolCallEnd,
    Kind.SERVER: lambda index, block: ServerTool(index, block, True),
    Kind.OPAQUE: lambda index, block: Opaque(index, block, True),
}
