"""From the calls of a choice to their blocks: as soon as nothing can change them, and at the end."""

from __future__ import annotations

import json
from typing import Any, cast

import msgspec

from ... import fold, toolargs
from ..._text import Text
from ...errors import InvalidToolCall
from ...events import Event
from ...fold import Kind
from . import assembly, wire
from .content import end_prose
from .state import Call, State, Step, set_calls

__all__ = ["add_entries", "add_extra", "add_legacy", "end_calls", "start_all"]


def add_entries(state: State, entries: tuple[wire.ToolCall, ...]) -> Step:
    """The entries of `delta.tool_calls`, one by one. Raises `ProtocolError`, see `assembly.place`."""
    caused: list[Event] = []
    for raw in entries:
        state, entry = assembly.read_entry(state, raw)
        if entry is not None:
            state, more = _give(assembly.place(state, entry))
            caused += more
    return _direct(state), tuple(caused)


def add_legacy(state: State, raw: wire.Function) -> Step:
    """A `delta.function_call`."""
    state, entry = assembly.read_legacy(state, raw)
    return (state, ()) if entry is None else _give(assembly.place(state, entry))


def add_extra(state: State, value: Any) -> State:
    """A `delta.extra_content`: for the call or the block touched last, or for the message where that has ended.

    Of calls made side by side only the first has a proof, so that one which comes behind all of them is its own.
    """
    call = state.wire.calls.focus
    if call is not None and (call.block is None or state.focus.ended or state.focus.index == call.block):
        first = state.wire.calls[0]
        number = call.number if _EXTRA in first.extra else first.number
        return set_calls(state, state.wire.calls.having_extra(number, {_EXTRA: value}))
    if state.focus.ended or "extra" not in state.focus.fields:
        return fold.set_head(state, raw={**state.head.raw, _EXTRA: value})
    return fold.update(state, extra={**state.focus.fields["extra"], _EXTRA: value})


_EXTRA = "extra_content"


def _direct(state: State) -> State:
    """Note the index by which an unnamed fragment would go to the call in focus."""
    calls = state.wire.calls
    call = calls.focus
    if call is None or call.label is None or call.block is None or call.kind != "function" or call.held.arrived:
        return state
    if calls.at(call.label) is not call:
        return state
    return set_calls(state, msgspec.structs.replace(calls, direct=call.label))


# ---- on the way


def _give(state: State) -> Step:
    """Start the blocks of calls that cannot change any more, and give the call in focus its text."""
    caused: list[Event] = []
    calls = state.wire.calls
    while calls.started < len(calls) and _is_settled(state, calls[calls.started]):
        state, more = _start(state, calls[calls.started])
        caused += more
        calls = state.wire.calls
    if calls.focus is not None and calls.focus.block is not None:
        state, more = _flush(state, calls.focus)
        caused += more
    return state, tuple(caused)


def _is_settled(state: State, call: Call) -> bool:
    """Whether no later entry can name, rename or drop the call."""
    tools = state.head.settings.tools
    if call.name is None or (tools and call.name not in tools):
        return False
    return call.kind == "legacy" or (call.id is not None and not _is_duplicate(state, call))


def _is_duplicate(state: State, call: Call) -> bool:
    return call.id is not None and state.wire.calls.having(call.id)[0] != call.number


def _start(state: State, call: Call) -> Step:
    id = call.id or _made_id(state, call)
    state, caused = end_prose(state)
    key = call.number if call.label is None else call.label
    call = msgspec.structs.replace(call, block=state.head.started)
    own = state.wire
    own = msgspec.structs.replace(own, calls=own.calls.put(call).having_started(call.number))
    fields = {"id": id, "name": call.name or "", "custom": call.kind == "custom", "extra": call.extra}
    state, more = fold.start(state, own, Kind.TOOL, key=key, name="tool_use", fields=fields)
    state, last = _flush(state, call)
    return state, (*caused, *more, *last)


def _flush(state: State, call: Call) -> Step:
    """The block of a call takes the text that was held for it."""
    state = fold.focus(state, cast("int", call.block))
    if not call.held.arrived or _may_be_placeholder(state, call):
        return state, ()
    text = call.held.value()
    call = msgspec.structs.replace(call, held=Text.empty())
    return fold.append(set_calls(state, state.wire.calls.put(call)), text)


def _may_be_placeholder(state: State, call: Call) -> bool:
    if state.part.arrived or "args_placeholder" not in state.head.settings.dialect.codes:
        return False
    return "".join(call.held.value().split()) in ("", "{", "{}")


def _made_id(state: State, call: Call) -> str:
    """An id for a call that has none of its own: by its place, the same at every parse."""
    id = f"call_{call.number}"
    while len(state.wire.calls.having(id)) or state.head.call_ids.get(id) is not None:
        id += "_"
    return id


# ---- at the end


def start_all(state: State, *, cut: bool) -> Step:
    """Every call has its block, and its block all of its text.

    Args:
        cut: the answer was cut off, so that no call will be one: what cannot have a block gets none.

    Raises:
        InvalidToolCall: a call without a name, or of a tool that was not declared.
    """
    caused: list[Event] = []
    known: set[tuple[str, str, str]] = set()
    for number in range(len(state.wire.calls)):
        call = state.wire.calls[number]
        repeated = _is_repeated(state, call, known)
        if number >= state.wire.calls.started:
            if cut and not _is_named(state, call):
                state = set_calls(state, state.wire.calls.having_started(number))
            else:
                state, more = _start_late(state, call, cut, repeated)
                caused += more
        call = state.wire.calls[number]
        if call.block is not None and call.held.arrived:
            state, more = fold.append(fold.focus(state, call.block), call.held.value())
            caused += more
    return state, tuple(caused)


def _is_repeated(state: State, call: Call, known: set[tuple[str, str, str]]) -> bool:
    """Whether a call before it, of those with an id in common, says the same. All of them are in `known`."""
    if call.id is None or len(state.wire.calls.having(call.id)) == 1:
        return False
    text = assembly.text_of(state, call)
    arguments = toolargs.parse(text)
    said = text if isinstance(arguments, toolargs.BadArguments) else json.dumps(arguments, sort_keys=True)
    key = (call.id, call.name or "", said)
    repeated = key in known
    known.add(key)
    return repeated


def _is_named(state: State, call: Call) -> bool:
    tools = state.head.settings.tools
    return call.name is not None and (not tools or call.name in tools)


def _start_late(state: State, call: Call, cut: bool, repeated: bool) -> Step:
    if _is_duplicate(state, call):
        if repeated and not cut:
            state = set_calls(state, state.wire.calls.having_started(call.number))
            return fold.note(state, "call_repeated"), ()
        call = msgspec.structs.replace(call, id=None)
    elif call.id is None and call.kind != "legacy" and not cut:
        if call.label is None and call.empty and call.number:
            before = state.wire.calls[call.number - 1]
            if before.closed and before.name == call.name:
                raise assembly.ambiguous_repeat(call)
        state = fold.note(state, "id_missing")
    try:
        return _start(state, call)
    except InvalidToolCall as error:
        error.arguments_json = call.held.value()
        raise


def end_calls(state: State) -> Step:
    """The blocks of all calls end, each with what it amounts to."""
    caused: list[Event] = []
    state = _claim_proof(state)
    calls = state.wire.calls
    for number in range(len(calls)):
        call = calls[number]
        if call.block is None:  # repeated
            continue
        state = fold.update(fold.focus(state, call.block), extra=call.extra)
        state, more = _check_text(state, call)
        state, last = fold.end(state)
        caused += (*more, *last)
    return state, tuple(caused)


def _claim_proof(state: State) -> State:
    """The first call has the proof of the answer, if one came before it and none with a call.

    Source: "OpenAI compatibility" and "Thought signatures" of the Gemini API's pages, read 2026-11-30.
    """
    calls = state.wire.calls
    if any(_EXTRA in calls[number].extra for number in range(len(calls))):
        return state
    places = [state.head.raw, *(part.fields.get("extra", {}) for part in fold.parts(state))]
    came = [place[_EXTRA] for place in places if _is_proof(place.get(_EXTRA))]
    return set_calls(state, calls.having_extra(0, {_EXTRA: came[-1]})) if came else state


def _is_proof(value: Any) -> bool:
    google = cast("dict[str, Any]", value).get("google") if isinstance(value, dict) else None
    return isinstance(google, dict) and "thought_signature" in google


def _check_text(state: State, call: Call) -> Step:
    if call.trailing.arrived:
        trailing = call.trailing.value()
        if trailing.strip() == state.part.text.strip():
            return fold.note(state, "args_repeated"), ()
        return fold.append(state, trailing)  # which makes it invalid
    # A text that closed is not blank; to join it here would hold it once more while it is parsed.
    if call.kind != "custom" and not call.closed and not state.part.text.strip():
        tool = state.head.settings.tools.get(call.name or "")
        if tool is None or not tool.required:
            return fold.note(state, "args_empty"), ()
    return state, ()
