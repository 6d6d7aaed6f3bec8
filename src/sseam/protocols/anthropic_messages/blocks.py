"""A content block starts, takes its deltas, and stops."""

from __future__ import annotations

from typing import Any

import msgspec

from ... import fold
from ..._persistent import Vector
from ...decoding import mapping
from ...errors import ProtocolError, Where
from ...fold import Kind, append
from . import wire
from .state import State, Step, Wire

__all__ = ["on_block_delta", "on_block_start", "on_block_stop", "on_unknown_delta", "opened", "whole_block"]


def on_block_start(state: State, event: wire.ContentBlockStart) -> Step:
    index = event.index
    raw = event.content_block
    if state.wire.keys.get(index) is not None:
        kind = raw.get("type", "block")
        raise ProtocolError(f"duplicate {kind} start for block {index}", where=Where(block=index))
    if state.head.open:
        state = fold.note(state, "interleaved_blocks")
    if index != state.head.started:
        state = fold.note(state, "index_gap")
    return _start(state, index, raw)


def _start(state: State, index: int, raw: dict[str, Any]) -> Step:
    block = wire.read_block(raw)
    fields: dict[str, Any] = {}
    match block:
        case wire.TextBlock(text, citations):
            kind = Kind.TEXT
            fields["citations"] = Vector[dict[str, Any]]().extend(citations or ())
        case wire.ThinkingBlock(text, signature):
            kind = Kind.THINKING
            fields["signature"] = signature or None
        case wire.ToolUseBlock(id, name):
            kind, text = Kind.TOOL, None
            fields.update(id=id or "", name=name or "", input=raw.get("input"), toolset=raw.get("toolset_name"))
        case wire.RedactedThinkingBlock(data):
            kind, text = Kind.REDACTED, None
            fields["data"] = data
        case wire.OtherBlock(type):
            return _start_other(state, index, type, raw)
    name = raw["type"]
    fields["extra"] = {key: value for key, value in raw.items() if key not in _TYPED_FIELDS[kind]}
    return fold.start(
        state,
        _with_key(state, index),
        kind,
        key=index,
        name=name,
        fields=fields,
        text=text or "",
        accepts=_ACCEPTS.get(kind),
    )


_ACCEPTS: dict[Kind, type[Any]] = {
    Kind.TEXT: wire.TextDelta,
    Kind.THINKING: wire.ThinkingDelta,
    Kind.TOOL: wire.InputJsonDelta,
}

_TYPED_FIELDS = {
    Kind.TEXT: frozenset({"type", "text", "citations"}),
    Kind.THINKING: frozenset({"type", "thinking", "signature"}),
    Kind.REDACTED: frozenset({"type", "data"}),
    Kind.TOOL: frozenset({"type", "id", "name", "input"}),
}


def _with_key(state: State, index: int) -> Wire:
    own = state.wire
    return Wire(own.phase, own.keys.add(index, state.head.started), own.usage, own.start)


def _start_other(state: State, index: int, type: str, raw: dict[str, Any]) -> Step:
    if type.endswith(("_tool_use", "_tool_result")) or type in _SERVER_BLOCKS:
        return _start_raw(state, Kind.SERVER, index, type, raw)
    caused: fold.Events = ()
    if type == "fallback":
        # Calls of the model that declined cannot be answered any more.
        state, caused = fold.withhold_unreleased(state)
        answering = mapping(raw.get("to")).get("model")
        state = fold.set_head(state, model=answering or state.head.model)
    elif type not in _OPAQUE_BLOCKS:
        state = fold.note(state, "unknown_block")
    state, more = _start_raw(state, Kind.OPAQUE, index, type, raw)
    return state, (*caused, *more)


_SERVER_BLOCKS = frozenset({"mcp_tool_listing", "container_upload"})
_OPAQUE_BLOCKS = frozenset({"compaction", "fallback"})


def _start_raw(state: State, kind: Kind, index: int, type: str, raw: dict[str, Any]) -> Step:
    return fold.start(state, _with_key(state, index), kind, key=index, name=type, fields={"raw": raw})


def whole_block(state: State, index: int, raw: dict[str, Any]) -> Step:
    state, caused = _start(state, index, raw)
    state, more = _end(state)
    return state, (*caused, *more)


def on_block_delta(state: State, event: wire.ContentBlockDelta) -> Step:
    delta = event.delta
    state = opened(state, event.index, delta)
    part = state.part
    match delta:
        case wire.TextDelta(text) | wire.ThinkingDelta(text) | wire.InputJsonDelta(text) if part.accepts is type(delta):
            return append(state, text)
        case wire.InputJsonDelta(text) if part.kind is Kind.SERVER:
            return fold.grow(state, text), ()
        case wire.SignatureDelta(signature) if part.kind is Kind.THINKING:
            return _sign(state, signature), ()
        case wire.CitationsDelta(citation) if part.kind is Kind.TEXT:
            return fold.update(state, citations=part.fields["citations"].append(citation)), ()
        case wire.CompactionDelta() if part.wire == "compaction":
            given = {key: value for key, value in msgspec.structs.asdict(delta).items() if value is not None}
            return fold.update(state, raw={**part.fields["raw"], **given}), ()
        case _ if part.kind is Kind.OPAQUE and part.wire not in _OPAQUE_BLOCKS:
            return _keep_delta(state, msgspec.to_builtins(delta)), ()
        case _:
            raise _misfit(event.index, part, type(delta).__struct_config__.tag)


def on_unknown_delta(state: State, event: wire.UnknownContentBlockDelta) -> Step:
    state = opened(state, event.index, None)
    part = state.part
    if part.kind in (Kind.TOOL, Kind.SERVER):  # what it holds may be arguments
        raise _misfit(event.index, part, event.type)
    return _keep_delta(fold.note(state, "unknown_delta"), event.raw), ()


def opened(state: State, index: int, delta: wire.Delta | None) -> State:
    """The state with the open block `index` in focus."""
    number = state.wire.keys.get(index)
    where = Where(block=index)
    if number is not None:
        state = fold.focus(state, number)
        if not state.part.ended:
            return state
    if isinstance(delta, wire.InputJsonDelta):
        raise ProtocolError(f"input_json_delta arrived without an open tool_use block at index {index}", where=where)
    raise ProtocolError(f"delta for {'unopened' if number is None else 'ended'} block {index}", where=where)


def _misfit(index: int, part: fold.Part, delta: object) -> ProtocolError:
    if delta == "input_json_delta":
        return ProtocolError(
            f"input_json_delta arrived without an open tool_use block at index {index}",
            where=Where(block=index),
            hint=f"Block {index} is {part.wire}",
        )
    return ProtocolError(f"{delta} in {part.wire} block {index}", where=Where(block=index))


def _sign(state: State, signature: str) -> State:
    known = state.part.fields["signature"]
    if known and signature and known != signature:
        where = Where(block=state.part.key)
        raise ProtocolError(f"second signature for thinking block {state.part.key}", where=where)
    return fold.update(state, signature=signature or known)


def _keep_delta(state: State, raw: dict[str, Any]) -> State:
    kept: Vector[dict[str, Any]] = state.part.fields.get("deltas", Vector())
    return fold.update(state, deltas=kept.append(raw))


def on_block_stop(state: State, event: wire.ContentBlockStop) -> Step:
    index = event.index
    number = state.wire.keys.get(index)
    if number is None:
        raise ProtocolError(f"stop for unopened block {index}", where=Where(block=index))
    state = fold.focus(state, number)
    if state.part.ended:
        raise ProtocolError(f"block {index} stopped twice", where=Where(block=index))
    return _end(state)


def _end(state: State) -> Step:
    part = state.part
    if part.kind is Kind.SERVER and part.text.strip():
        arguments = fold.server_input(part)
        state = fold.update(state, raw={**part.fields["raw"], "input": arguments})
    elif part.kind is Kind.TOOL and part.fields["input"] and part.arrived and not fold.same_input(part):
        state = fold.note(state, "input_given_twice")
    elif part.kind is not Kind.OPAQUE and "deltas" in part.fields:
        state = fold.update(state, extra={**part.fields["extra"], "unknown_deltas": list(part.fields["deltas"])})
    return fold.end(state)
