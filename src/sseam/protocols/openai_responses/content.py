"""The arms of the events that bring content: items, their parts, their texts."""

from __future__ import annotations

from typing import Any, TypeAlias, cast

from ... import fold
from ...errors import ProtocolError, Where
from ...fold import Kind, append
from . import complete, items, wire
from .state import Place, Slot, State, Step, Wire

__all__ = [
    "on_annotation",
    "on_call_delta",
    "on_call_done",
    "on_hidden_delta",
    "on_item_added",
    "on_item_done",
    "on_part_added",
    "on_part_done",
    "on_reasoning_delta",
    "on_reasoning_done",
    "on_text_delta",
    "on_text_done",
]


def on_item_added(state: State, event: wire.ItemAdded) -> Step:
    item = event.item
    if item is None:
        return fold.note(state, "null_item"), ()
    return items.announce(state, items.typed(item), event.output_index)


def on_item_done(state: State, event: wire.ItemDone) -> Step:
    item = event.item
    if item is None:
        return fold.note(state, "null_item"), ()
    items.typed(item)
    id = items.string(item, "id") or event.item_id
    number = items.find(state, id, event.output_index)
    if number is None:
        state, number = items.add(state, item["type"], id, event.output_index)
    elif state.wire.record.slots[number].done:
        state = fold.note(state, "item_repeated")
    elif id and id.strip() and id != state.wire.record.slots[number].id:
        state = fold.note(state, "item_id_changed")
    return complete.complete(state, number, item)


def on_part_added(state: State, event: wire.ContentPartAdded) -> Step:
    type = str(event.part.get("type"))
    state, number = items.reach(state, event, _PART_OWNERS)
    slot = state.wire.record.slots[number]
    if slot.type != "message" or (event.content_index or 0) in slot.parts:
        return state, ()
    state, caused = items.part(state, number, event.content_index, type, announced=True)
    text = event.part.get(items.PART_TEXTS.get(type, ""))
    if isinstance(text, str) and text:
        state, more = append(state, text)
        caused += more
    return state, caused


_PART_OWNERS = ("message", "reasoning")


def on_part_done(state: State, event: wire.ContentPartDone) -> Step:
    type = str(event.part.get("type"))
    state, number = items.reach(state, event, _PART_OWNERS)
    slot = state.wire.record.slots[number]
    field = items.PART_TEXTS.get(type)
    if slot.type != "message" or slot.done or field is None:
        return state, ()
    state, caused = items.part(state, number, event.content_index, type, announced=False)
    state, more = _finished(state, slot, event.part.get(field))
    return state, (*caused, *more)


def _finished(state: State, slot: Slot, text: object) -> Step:
    # Of a part under several content indexes no single end has the whole text.
    first = slot.parts.get(slot.unannounced) if slot.shared and slot.unannounced is not None else None
    if state.focus.index == first or not isinstance(text, str):
        return state, ()
    return complete.finished_text(state, text)


def on_annotation(state: State, event: wire.AnnotationAdded) -> Step:
    state, number = items.reach(state, event, ("message",))
    slot = state.wire.record.slots[number]
    if slot.done or event.annotation is None:
        return state, ()
    state, caused = items.part(state, number, event.content_index, "output_text", announced=False)
    citations = state.part.fields["citations"]
    return fold.update(state, citations=citations.append(event.annotation)), caused


# ---- texts

_Text: TypeAlias = Any  # a delta, or the end of a text: all say where it belongs, and have `text`


def on_text_delta(state: State, event: _Text) -> Step:
    state, number = _open(state, event, ("message",))
    type = "refusal" if isinstance(event, wire.RefusalDelta) else "output_text"
    state, caused = items.part(state, number, event.content_index, type, announced=False)
    state, more = append(_at(state, event), event.text)
    return state, (*caused, *more)


def on_text_done(state: State, event: _Text) -> Step:
    state, number = items.reach(state, event, ("message",))
    slot = state.wire.record.slots[number]
    if slot.done:
        return state, ()
    type = "refusal" if isinstance(event, wire.RefusalDone) else "output_text"
    state, caused = items.part(state, number, event.content_index, type, announced=False)
    state, more = _finished(state, slot, event.text)
    return state, (*caused, *more)


def on_reasoning_delta(state: State, event: _Text) -> Step:
    state, number = _open(state, event, ("reasoning",))
    state, caused = _begun(state, number)
    if state.focus.delta is None:
        return state, caused
    state, more = append(_at(state, event), event.text)
    return state, (*caused, *more)


def on_reasoning_done(state: State, event: _Text) -> Step:
    state, number = items.reach(state, event, ("reasoning",))
    if state.wire.record.slots[number].done:
        return state, ()
    state, caused = _begun(state, number)
    if state.part.text or not event.text or state.focus.delta is None:
        return fold.update(state, whole=True), caused
    state, more = append(fold.note(state, "deltas_missing"), event.text)
    return fold.update(state, whole=True), (*caused, *more)


def _begun(state: State, number: int) -> Step:
    """The block of an item that is no message in focus, started where it is not."""
    slot = state.wire.record.slots[number]
    if slot.block is not None:
        return fold.focus(state, slot.block), ()
    return items.start(state, number, slot.item or {"type": slot.type, "id": slot.id})


def on_call_delta(state: State, event: _Text) -> Step:
    state, number = _open(state, event, _FAMILY[type(event)])
    slot = state.wire.record.slots[number]
    if slot.block is None:
        return items.hide(state, number, event.text), ()
    state = fold.focus(state, slot.block)
    if state.focus.accepts is not type(event):  # a custom tool that the server runs
        return items.hide(state, number, event.text), ()
    return append(_at(state, event), event.text)


def on_call_done(state: State, event: _Text) -> Step:
    state, number = items.reach(state, event, _FAMILY[type(event)])
    slot = state.wire.record.slots[number]
    if slot.done:
        return state, ()
    if slot.block is not None and fold.focus(state, slot.block).part.kind is Kind.TOOL:
        return complete.given_arguments(fold.focus(state, slot.block), event.text)
    return (items.hide(state, number, event.text) if not slot.text.value() else state), ()


def on_hidden_delta(state: State, event: _Text) -> Step:
    state, number = _open(state, event, _FAMILY[type(event)])
    return items.hide(state, number, event.text), ()


def _open(state: State, event: _Text, types: tuple[str, ...]) -> tuple[State, int]:
    """The item of a delta, which must not have ended."""
    state, number = items.reach(state, event, types)
    slot = state.wire.record.slots[number]
    if slot.done or slot.cut:
        where = Where(block=slot.key)
        if slot.type in items.CLIENT:
            raise ProtocolError(
                f"input_json_delta arrived without an open tool_use block at index {slot.key}", where=where
            )
        raise ProtocolError(f"delta for ended block {slot.key}", where=where)
    return state, number


def _at(state: State, event: _Text) -> State:
    """The state in which the next delta that says the same of its place goes there too, if none waits before it."""
    own = state.wire
    if own.record.held or not (event.item_id or "").strip():
        return state
    place = Place(cast("type[Any]", type(event)), event.item_id, event.content_index)
    return fold.set_wire(state, Wire(own.next, place, own.record))


_FAMILY: dict[type[Any], tuple[str, ...]] = {
    wire.FunctionArgumentsDelta: ("function_call",),
    wire.FunctionArgumentsDone: ("function_call",),
    wire.CustomInputDelta: ("custom_tool_call",),
    wire.CustomInputDone: ("custom_tool_call",),
    wire.ApplyPatchDiffDelta: ("apply_patch_call",),
    wire.ShellCommandAdded: ("shell_call",),
    wire.ShellCommandDelta: ("shell_call",),
    wire.CodeDelta: ("code_interpreter_call",),
    wire.McpArgumentsDelta: ("mcp_call",),
}
