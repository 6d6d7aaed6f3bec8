"""What an item that is done must agree with: its deltas, its own ends, the final response.

An item is complete when `response.output_item.done` or the final response says so, not when its
status does; only an incomplete or failed one is not (wire reference, "Output items", read 2026-11-29).
Texts and arguments that contradict each other are faults, since a fragment may be missing anywhere.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec

from ... import fold, toolargs
from ...errors import InvalidToolCall, ProtocolError, Where
from ...events import Event
from ...fold import Kind
from .items import BUILT_IN, PART_TEXTS, SERVER, block_name, can_start, kept, kind_of, part, set_slot, start, string
from .state import Slot, State, Step

__all__ = ["append_text", "complete", "finished_text", "given_arguments", "require_startable"]


# ---- texts that came in deltas and came whole


def append_text(state: State, text: str) -> Step:
    """The part in focus grows by what its finished text has and its deltas had not, `text` being all of it."""
    streamed = state.part.text
    if text == streamed or not text:
        return state, ()
    if not text.startswith(streamed):
        raise _disagreement(state, text)
    state = fold.note(state, "deltas_incomplete" if streamed else "deltas_missing")
    return fold.append(state, text[len(streamed) :])


def _disagreement(state: State, text: str) -> ProtocolError:
    part = state.part
    lost = ", ".join(f"{first} to {last}" for first, last in state.wire.record.lost)
    streamed = part.text
    return ProtocolError(
        f"{part.wire} block {part.key} ended with another text than its deltas gave",
        where=Where(block=part.key),
        hint=f"{len(streamed):,} characters came in deltas, the finished text has {len(text):,}"
        + (f"; events with sequence_number {lost} never came" if lost else ""),
    )


def finished_text(state: State, text: str) -> Step:
    """A part's own end came: all of its text is there, whatever becomes of its item."""
    state, caused = append_text(state, text)
    return fold.update(state, whole=True), caused


def given_arguments(state: State, text: str) -> Step:
    """The call in focus, whose arguments came whole: those of its deltas, if there were any."""
    part = state.part
    streamed = part.text
    if text == streamed or (not text and part.arrived):
        return state, ()
    if streamed:
        hint = f"{len(streamed):,} characters came in deltas, the finished arguments have {len(text):,}"
        raise _invalid(part, "ended with other arguments than its deltas gave", streamed, hint=hint)
    if not text:
        return state, ()
    if not part.arrived:
        state = fold.note(state, "deltas_missing")
    return fold.append(state, text)


# ---- the end


def complete(state: State, number: int, item: dict[str, Any]) -> Step:
    """The item is whole: check it against what came of it, and end its blocks."""
    slot = state.wire.record.slots[number]
    if item["type"] != slot.type:
        raise ProtocolError(
            f"{block_name(slot.type)} block {slot.key} ended as {item['type']}", where=Where(block=slot.key)
        )
    if slot.done:
        return _confirm(state, slot, item), ()
    cut = item.get("status") == "incomplete" or (item.get("status") == "failed" and slot.type not in SERVER)
    caused: fold.Events = ()
    if slot.type != "message" and slot.block is None:
        if not can_start(state, slot, item):
            # Judged when the response has ended: it may have been cut anyway.
            return set_slot(_close(state, number, cut=cut), number, item=item), ()
        state, caused = start(state, number, item)
    if slot.type == "message":
        state, more = _complete_message(state, number, item, cut=cut)
    else:
        state, more = _complete_block(state, number, item, cut=cut)
    return _close(state, number, cut=cut), (*caused, *more)


def require_startable(state: State, number: int) -> None:
    """Raise the `InvalidToolCall` of an item that is done and could not become a call."""
    slot = state.wire.record.slots[number]
    if slot.type == "message" or slot.block is not None:
        return
    try:
        start(state, number, slot.item)
    except InvalidToolCall as error:
        field = "input" if slot.type == "custom_tool_call" else "arguments"
        given = slot.item.get(field)
        error.arguments_json = given if isinstance(given, str) and given else slot.text.value()
        raise


def _close(state: State, number: int, *, cut: bool) -> State:
    record = state.wire.record
    slot = record.slots[number]
    open = record.open
    if slot.index is not None and open.get(slot.index) == number:
        open = open.put(slot.index, None)
    return set_slot(state, number, open=open, done=not cut, cut=cut)


def _complete_message(state: State, number: int, item: dict[str, Any], *, cut: bool) -> Step:
    """End the parts of a message. What was streamed and is not in the item stands."""
    caused: list[Event] = []
    content = [cast("dict[str, Any]", entry) for entry in _list(item.get("content")) if isinstance(entry, dict)]
    texts: dict[int, list[dict[str, Any]]] = {}
    slot = state.wire.record.slots[number]
    indexes = _indexes(slot, len(content))
    if content and slot.unannounced is None and indexes[0] != 0:
        state = fold.note(state, "content_index_shifted")
    for index, entry in zip(indexes, content, strict=True):
        state, more = part(state, number, index, str(entry.get("type")), announced=True)
        caused += more
        texts.setdefault(state.focus.index, []).append(entry)
    slot = state.wire.record.slots[number]
    if not slot.parts and not cut:  # an answer of nothing is one too, and goes back as one
        state, more = part(state, number, 0, "output_text", announced=True)
        caused += more
    extra = kept(item, ("content",))
    for index in dict.fromkeys(state.wire.record.slots[number].parts.values()):
        state = fold.focus(state, index)
        if entries := texts.get(index):
            state, more = _complete_part(state, entries, extra)
            caused += more
        else:
            if content:
                state = fold.note(state, "part_missing")
            state = fold.update(state, extra=extra)
        if not cut:
            state, more = fold.end(state)
            caused += more
    return state, tuple(caused)


def _indexes(slot: Slot, count: int) -> list[int]:
    """The content indexes under which `count` parts of a finished message were streamed."""
    streamed = sorted(index for index, _ in slot.parts.items())
    if not streamed or streamed[-1] < count:
        return list(range(count))
    new = range(streamed[-1] + 1, streamed[-1] + 1 + count)
    return [*streamed, *new][:count]


def _complete_part(state: State, entries: list[dict[str, Any]], extra: dict[str, Any]) -> Step:
    entry = entries[-1]
    type = str(entry.get("type"))
    field = PART_TEXTS.get(type)
    if field is None:
        return fold.update(state, raw=entry, extra=extra), ()
    state, caused = append_text(state, "".join(str(each.get(field) or "") for each in entries))
    annotations = [each for one in entries for each in _list(one.get("annotations"))]
    citations = [cast("dict[str, Any]", each) for each in annotations if isinstance(each, dict)]
    beside = {key: value for key, value in entry.items() if value and key not in ("type", field, "annotations")}
    fields: dict[str, Any] = {"extra": {**extra, "part": beside} if beside else extra}
    if citations:
        fields["citations"] = citations
    return fold.update(state, **fields), caused


def _complete_block(state: State, number: int, item: dict[str, Any], *, cut: bool) -> Step:
    slot = state.wire.record.slots[number]
    assert slot.block is not None
    state = fold.focus(state, slot.block)
    kind = state.part.kind
    if kind_of(state, item) is not kind:
        raise ProtocolError(
            f"{block_name(slot.type)} block {slot.key} changed between the client's and the server's",
            where=Where(block=slot.key),
        )
    match kind:
        case Kind.THINKING:
            state, caused = _complete_reasoning(state, item)
        case Kind.TOOL:
            state, caused = _complete_call(state, slot, item)
        case _:
            state, caused = _compare_hidden(state, slot, item), ()
            state = fold.update(state, raw=item)
    if cut:
        return state, caused
    state, more = fold.end(state)
    return state, (*caused, *more)


def _complete_reasoning(state: State, item: dict[str, Any]) -> Step:
    """Reasoning is for reading: what was streamed stands where the item says otherwise."""
    caused: fold.Events = ()
    streamed = state.part.text
    summary, content = (_texts(item.get(key)) for key in ("summary", "content"))
    whole = [text for text in (summary + content, content + summary, summary, content) if text]
    if whole and streamed not in whole:
        longer = next((text for text in whole if text.startswith(streamed)), None)
        if longer is None:
            state = fold.note(state, "reasoning_mismatch")
        else:
            state = fold.note(state, "deltas_incomplete" if streamed else "deltas_missing")
            state, caused = fold.append(state, longer[len(streamed) :])
    return fold.update(state, extra=kept(item, ())), caused


def _complete_call(state: State, slot: Slot, item: dict[str, Any]) -> Step:
    fields = state.part.fields
    id, name = string(item, "call_id"), string(item, "name")
    if id and id != fields["id"]:
        state = fold.note(state, "call_id_changed")
    if slot.type in BUILT_IN:
        state = _compare_hidden(state, slot, item)
        extra = {key: value for key, value in item.items() if key != "call_id"}
        if not (id or string(slot.item, "call_id")):
            extra["call_id"] = None  # the call's id was made up here, and is not the service's
        return fold.update(state, input=_input(state, slot, item), extra=extra), ()
    if name and name != fields["name"]:
        hint = f"It began as {fields['name']!r}"
        raise _invalid(state.part, f"ended with the name {name!r}", state.part.text, hint=hint)
    field = "input" if slot.type == "custom_tool_call" else "arguments"
    given = item.get(field)
    if given is None:
        given = slot.item.get(field)
    caused: fold.Events = ()
    if isinstance(given, dict):
        state, caused = _given_object(fold.note(state, "arguments_as_object"), cast("dict[str, Any]", given))
    elif given is not None:
        if not isinstance(given, str):
            raise ProtocolError(
                f"{field} of tool_use block {slot.key} is {given!r}, expected a string", where=Where(block=slot.key)
            )
        state, caused = given_arguments(state, given)
    extra = kept(item, ("call_id", "name", field))
    return fold.update(state, extra=extra), caused


def _given_object(state: State, given: dict[str, Any]) -> Step:
    """The call in focus, whose arguments came whole and not as text."""
    fault = toolargs.inspect(given)
    if fault is not None and (state.part.text or state.part.fields.get("custom")):
        raise _invalid(state.part, "ended with bad arguments", state.part.text, reason=fault.reason, hint=fault.detail)
    if fault is not None:  # judged when the call has ended
        return fold.update(state, input=given), ()
    if not state.part.text:
        return fold.append(state, msgspec.json.encode(given).decode())
    state = fold.update(state, input=given)
    if not fold.same_input(state.part):
        raise _invalid(state.part, "ended with other arguments than its deltas gave", state.part.text)
    return state, ()


def _input(state: State, slot: Slot, item: dict[str, Any]) -> dict[str, Any]:
    """The input of a built-in tool's call."""
    field = BUILT_IN[slot.type][1]
    if field is None:
        return _computer_input(item)
    given = item.get(field)
    if isinstance(given, dict):
        return cast("dict[str, Any]", given)
    raise _invalid(state.part, "returned non-object input", msgspec.json.encode(given).decode(), reason="not_object")


def _compare_hidden(state: State, slot: Slot, item: dict[str, Any]) -> State:
    """Compare deltas that the neutral side was not told with what the item has in their place."""
    match item["type"]:
        case "shell_call":
            commands = _list(_dict(item.get("action")).get("commands"))
            final = "".join(command for command in commands if isinstance(command, str))
        case "apply_patch_call":
            final = _dict(item.get("operation")).get("diff")
        case "code_interpreter_call":
            final = item.get("code")
        case "mcp_call":
            final = item.get("arguments")
        case "custom_tool_call":
            final = item.get("input")
        case _:
            return state
    streamed = slot.text.value()
    if not streamed or not final or streamed == final:
        return state
    if state.part.kind is Kind.TOOL:
        raise _invalid(state.part, "ended with other arguments than its deltas gave", streamed)
    return fold.note(state, "server_text_mismatch")


def _confirm(state: State, slot: Slot, item: dict[str, Any]) -> State:
    """An item that is done came whole once more: it must say the same."""
    if slot.type == "message":
        content = _list(item.get("content"))
        for index, entry in zip(_indexes(slot, len(content)), content, strict=True):
            number = slot.parts.get(index)
            if number is not None and isinstance(entry, dict):
                entry = cast("dict[str, Any]", entry)
                state = _confirm_text(fold.focus(state, number), entry)
        return state
    if slot.block is None:
        return state
    state = fold.focus(state, slot.block)
    part = state.part
    if part.kind is not Kind.TOOL:
        return state
    id = string(item, "call_id")
    if id and id != part.fields["id"]:
        state = fold.note(state, "call_id_changed")
    if part.block is not None:  # else it is a fault already
        _confirm_call(slot, part, part.block, item)
    return state


def _confirm_call(slot: Slot, part: fold.Part, call: Any, item: dict[str, Any]) -> None:
    name = string(item, "name")
    if slot.type not in BUILT_IN and name and name != call.name:
        hint = f"It ended as {call.name!r}"
        raise _invalid(part, f"has the name {name!r} in the final response", call.arguments_json, hint=hint)
    field = BUILT_IN[slot.type][1] if slot.type in BUILT_IN else "arguments"
    given: Any = item.get("input" if slot.type == "custom_tool_call" else field) if field else _computer_input(item)
    same = True
    if isinstance(given, str) and given.strip():
        same = given == call.arguments_json
    elif isinstance(given, dict) and given:
        ended = toolargs.parse(call.arguments_json)  # of a custom tool too, whose text this object was
        same = given == ended and toolargs.inspect(cast("dict[str, Any]", given)) is None
    if not same:
        raise _invalid(part, "has other arguments in the final response", call.arguments_json)


def _computer_input(item: dict[str, Any]) -> dict[str, Any]:
    return {key: item[key] for key in ("action", "actions", "pending_safety_checks") if item.get(key) is not None}


def _confirm_text(state: State, entry: dict[str, Any]) -> State:
    block = state.part.block
    field = PART_TEXTS.get(str(entry.get("type")))
    ended = getattr(block, "text", None)
    text = entry.get(field) if field else None
    if isinstance(text, str) and text and isinstance(ended, str) and text != ended:
        raise ProtocolError(
            f"{state.part.wire} block {state.part.key} has another text in the final response",
            where=Where(block=state.part.key),
            hint=f"{len(ended):,} characters came in the stream, the final text has {len(text):,}",
        )
    return state


def _invalid(
    part: fold.Part, fault: str, arguments_json: str, *, reason: str = "contradictory", hint: str = ""
) -> InvalidToolCall:
    id = part.fields["id"]
    return InvalidToolCall(
        f"tool_use block {part.key} {fault}",
        id=id,
        name=part.fields["name"],
        arguments_json=arguments_json,
        reason=reason,
        where=Where(block=part.key, call=id),
        hint=hint,
    )


# ---- values that may be anything


def _list(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _dict(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _texts(value: object) -> str:
    entries = [cast("dict[str, Any]", entry) for entry in _list(value) if isinstance(entry, dict)]
    return "".join(str(entry.get("text") or "") for entry in entries)
