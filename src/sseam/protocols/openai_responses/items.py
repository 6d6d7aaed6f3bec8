"""Output items: what kinds there are, which one an event means, how its blocks start.

An item is found by its id, else by the output index under which one is still open: ids are empty,
rotate with every event or are missing at some servers, and output indexes shift or repeat at others
(wire reference, "Which key identifies an item?", read 2026-11-29).
"""

from __future__ import annotations

from typing import Any, cast

import msgspec

from ... import fold
from ..._persistent import Vector
from ..._text import Text
from ...errors import ProtocolError, Where
from ...fold import Kind
from . import wire
from .state import Slot, State, Step, set_record
from .table import Table

__all__ = [
    "BUILT_IN",
    "CLIENT",
    "PART_TEXTS",
    "SERVER",
    "add",
    "announce",
    "block_name",
    "can_start",
    "kept",
    "find",
    "hide",
    "kind_of",
    "part",
    "reach",
    "set_slot",
    "start",
    "string",
    "typed",
]

# ---- kinds of items

BUILT_IN = {
    "shell_call": ("shell", "action"),
    "local_shell_call": ("local_shell", "action"),
    "apply_patch_call": ("apply_patch", "operation"),
    "tool_search_call": ("tool_search", "arguments"),
    "computer_call": ("computer", None),
}
"""Calls of the client's own built-in tools: the tool's name, and the field that is its input."""

CLIENT = frozenset({"function_call", "custom_tool_call", *BUILT_IN})

SERVER = frozenset(
    {
        "additional_tools",
        "apply_patch_call_output",
        "code_interpreter_call",
        "computer_call_output",
        "custom_tool_call_output",
        "file_search_call",
        "function_call_output",
        "image_generation_call",
        "local_shell_call_output",
        "mcp_approval_request",  # for the client to answer, but not a call to run
        "mcp_approval_response",
        "mcp_call",
        "mcp_list_tools",
        "program",
        "program_output",
        "shell_call_output",
        "tool_search_output",
        "web_search_call",
    }
)
_OPAQUE = frozenset({"compaction", "compaction_trigger", "configuration_update", "item_reference"})

_PART_KINDS = {"output_text": Kind.TEXT, "refusal": Kind.REFUSAL}
PART_TEXTS = {"output_text": "text", "refusal": "refusal"}


def kind_of(state: State, item: dict[str, Any]) -> Kind:
    """Whether the client runs what this item asks for, or what else the item is."""
    settings = state.head.settings
    match item["type"]:
        case "reasoning":
            return Kind.THINKING
        case "function_call" | "local_shell_call" | "apply_patch_call" | "computer_call":
            return Kind.TOOL
        case "custom_tool_call":
            # xAI shows what it ran itself in this form.
            known = string(item, "name") in settings.tools if settings.tools else True
            by_server = not settings.tools and "server_custom_tool" in settings.dialect.codes
            return Kind.TOOL if known and not by_server else Kind.SERVER
        case "shell_call":
            environment = item.get("environment")
            given = cast("dict[str, Any]", environment).get("type") if isinstance(environment, dict) else None
            return Kind.TOOL if given in (None, "local") else Kind.SERVER
        case "tool_search_call":
            return Kind.TOOL if item.get("execution") == "client" else Kind.SERVER
        case type:
            return Kind.SERVER if type in SERVER else Kind.OPAQUE


# ---- which item


def set_slot(state: State, number: int, *, open: Table[int, int | None] | None = None, **fields: Any) -> State:
    """The state with other fields of an item, and with other `open` items where they are given."""
    record = state.wire.record
    slots = record.slots.replace(number, msgspec.structs.replace(record.slots[number], **fields))
    return set_record(state, slots=slots, open=record.open if open is None else open)


def find(state: State, id: object, index: int | None) -> int | None:
    """The item that an event means: one that is open before one that has ended. None: it is new."""
    record = state.wire.record
    named = record.names.get(id) if isinstance(id, str) and id.strip() else None
    if named is not None and not record.slots[named].done:
        return named
    open = record.open.get(index) if index is not None else None
    return open if open is not None else named


def _name(state: State, number: int, id: object) -> State:
    """The state in which `id` means the item."""
    if not isinstance(id, str) or not id.strip():
        return state
    record = state.wire.record
    return state if record.names.get(id) == number else set_record(state, names=record.names.put(id, number))


def add(
    state: State, type: str, id: object, index: int | None, item: dict[str, Any] | None = None
) -> tuple[State, int]:
    """A new item; `item` is all of it as it was announced."""
    record = state.wire.record
    number = len(record.slots)
    known = id if isinstance(id, str) and id.strip() else ""
    key = index if index is not None else known or f"item {number}"
    slot = Slot(key=key, index=index, id=known, type=type, item=item or {}, text=Text.empty())
    open = record.open if index is None else record.open.put(index, number)
    state = set_record(state, slots=record.slots.append(slot), open=open)
    return _name(state, number, known), number


def reach(state: State, event: Any, types: tuple[str, ...]) -> tuple[State, int]:
    """The open item that a delta or the end of its text belongs to, made where it was not announced.

    Args:
        types: of items that can have such a text, the one to make first.
    """
    number = find(state, event.item_id, event.output_index)
    if number is None:
        if not (event.item_id or "").strip() and event.output_index is None:
            raise ProtocolError(f"{wire.name(event)} names no item")
        return add(state, types[0], event.item_id, event.output_index)
    slot = state.wire.record.slots[number]
    if slot.type not in types and slot.type in CLIENT | SERVER | {"message", "reasoning"}:
        raise _misfit(event, slot)
    if event.item_id and event.item_id != slot.id and event.item_id.strip():
        if slot.id:
            state = fold.note(state, "item_id_changed")
        else:
            state = set_slot(state, number, id=event.item_id)
        state = _name(state, number, event.item_id)
    return state, number


def _misfit(event: Any, slot: Slot) -> ProtocolError:
    where = Where(block=slot.key)
    if isinstance(event, wire.FunctionArgumentsDelta | wire.CustomInputDelta):
        return ProtocolError(
            f"input_json_delta arrived without an open tool_use block at index {slot.key}",
            where=where,
            hint=f"{wire.name(event)} came for the item {slot.id!r}, a {slot.type}",
        )
    return ProtocolError(f"{wire.name(event)} for {slot.type} block {slot.key}", where=where)


# ---- the start


def announce(state: State, item: dict[str, Any], index: int | None) -> Step:
    """`response.output_item.added`."""
    number = find(state, item.get("id"), index)
    if number is not None and not state.wire.record.slots[number].done:
        slot = state.wire.record.slots[number]
        same = slot.type == item["type"] and (slot.id == string(item, "id") or not slot.item or not slot.id)
        if not same:
            raise ProtocolError(
                f"duplicate {block_name(slot.type)} start for block {slot.key}",
                where=Where(block=slot.key),
                hint=f"The item {slot.id!r} is open, and {item.get('id')!r} starts in its place",
            )
        if slot.item:
            return fold.note(state, "item_repeated"), ()
        state = set_slot(state, number, id=slot.id or string(item, "id"), item=item)
        state = _name(state, number, item.get("id"))
    else:
        state, number = add(state, item["type"], item.get("id"), index, item)
    slot = state.wire.record.slots[number]
    # The parts of a message start by themselves, and the id of a client's tool search changes on its way.
    if slot.type in ("message", "tool_search_call") or not can_start(state, slot, item):
        return state, ()
    return start(state, number, item)


def block_name(type: str) -> str:
    return "tool_use" if type in CLIENT else type


def can_start(state: State, slot: Slot, item: dict[str, Any]) -> bool:
    """Whether all that the start of the item's block says is known."""
    if slot.type not in CLIENT or kind_of(state, item) is not Kind.TOOL:
        return True
    fields = _call_fields(state, slot, item)
    return bool(fields["id"] and fields["name"])


def start(state: State, number: int, item: dict[str, Any]) -> Step:
    """Start the one block of an item that is no message."""
    slot = state.wire.record.slots[number]
    kind = kind_of(state, item)
    text = ""
    accepts = None
    match kind:
        case Kind.THINKING:
            fields: dict[str, Any] = {"extra": kept(item, ())}
        case Kind.TOOL:
            fields = _call_fields(state, slot, item)
            if slot.type not in BUILT_IN:
                text, accepts = slot.text.value(), _ACCEPTS[slot.type]
        case _:
            fields = {"raw": item}
            if slot.type == "custom_tool_call":
                state = fold.note(state, "server_custom_tool")
            elif kind is Kind.OPAQUE and slot.type not in _OPAQUE:
                state = fold.note(state, "unknown_item")
    state = set_slot(state, number, block=state.head.started)
    return fold.start(
        state,
        state.wire,
        kind,
        key=slot.key,
        name=block_name(slot.type) if kind is Kind.TOOL else slot.type,
        fields=fields,
        text=text,
        accepts=accepts,
    )


_ACCEPTS: dict[str, type[Any]] = {
    "function_call": wire.FunctionArgumentsDelta,
    "custom_tool_call": wire.CustomInputDelta,
}


def _call_fields(state: State, slot: Slot, item: dict[str, Any]) -> dict[str, Any]:
    id = string(item, "call_id") or string(slot.item, "call_id")
    name = string(item, "name") or string(slot.item, "name")
    if slot.type in BUILT_IN:
        name = BUILT_IN[slot.type][0]
        if slot.type == "computer_call" and "computer_use_preview" in state.head.settings.tools:
            name = "computer_use_preview"
        elif slot.type == "local_shell_call":
            id = id or string(item, "id")  # its output is paired by this
        elif slot.type == "tool_search_call":
            id = id or f"call_{slot.key}"  # it may have none
    fields: dict[str, Any] = {"id": id, "name": name, "input": None, "extra": {}}
    if slot.type == "custom_tool_call":
        fields["custom"] = True
    return fields


def part(state: State, number: int, index: int | None, type: str, *, announced: bool) -> Step:
    """The part of a message with this content index in focus, started where it is new."""
    slot = state.wire.record.slots[number]
    at = index or 0
    known = slot.parts.get(at)
    if known is None and not announced and slot.unannounced is not None:
        # Old vLLM counts the index up with every delta.
        first = slot.parts.get(slot.unannounced)
        if first is not None and fold.focus(state, first).part.kind is _PART_KINDS.get(type):
            state = fold.note(state, "content_index_rises")
            state = set_slot(state, number, parts=slot.parts.put(at, first), shared=True)
            known = first
    if known is not None:
        state = fold.focus(state, known)
        if state.part.kind is not _PART_KINDS.get(type, Kind.OPAQUE):
            where = Where(block=state.part.key)
            raise ProtocolError(f"{type} in {state.part.wire} block {state.part.key}", where=where)
        return state, ()
    parts = slot.parts.put(at, state.head.started)
    unannounced = slot.unannounced if announced or slot.unannounced is not None else at
    state = set_slot(state, number, parts=parts, unannounced=unannounced)
    kind = _PART_KINDS.get(type, Kind.OPAQUE)
    if kind is Kind.OPAQUE:
        state = fold.note(state, "unknown_part")
    fields: dict[str, Any] = {"extra": kept(slot.item, ("content",))}
    # An unknown part goes back in its message, so it has the message's fields beside it as the others do.
    fields |= {"raw": {}} if kind is Kind.OPAQUE else {"citations": Vector[Any]()}
    key = slot.key if at == 0 else f"{slot.key}.{at}"
    return fold.start(state, state.wire, kind, key=key, name=type, fields=fields, accepts=_PART_DELTAS.get(kind))


_PART_DELTAS: dict[Kind, type[Any]] = {Kind.TEXT: wire.TextDelta, Kind.REFUSAL: wire.RefusalDelta}


def hide(state: State, number: int, text: str) -> State:
    """The item grows by a text that is only compared with it when it is done."""
    return set_slot(state, number, text=state.wire.record.slots[number].text.add(text))


def kept(item: dict[str, Any], modelled: tuple[str, ...]) -> dict[str, Any]:
    """The fields of an item that a block keeps as they came."""
    return {key: value for key, value in item.items() if key != "type" and key not in modelled}


def string(item: dict[str, Any], field: str) -> str:
    """A field of an item that is a string, "" where it is absent, null or blank. Raises `ProtocolError` for others."""
    value = item.get(field)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ProtocolError(f"{field} of a {item.get('type')} is {value!r}, expected a string")
    return value if value.strip() else ""


def typed(item: dict[str, Any]) -> dict[str, Any]:
    """The item. Raises `ProtocolError` for one that does not say what it is."""
    if not isinstance(item.get("type"), str):
        raise ProtocolError(f"output item has no type, but {sorted(map(str, item))}")
    return item
