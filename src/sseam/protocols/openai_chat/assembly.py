"""Which call an entry of `delta.tool_calls` belongs to.

Servers label fragments in every way there is: an index for each call, one index for all, none; an
id once, always, another one each time. The id counts first, an index is a label and not a place, and
no rule joins what may be two calls. Where the labels do not decide it, the answer fails.
"""

from __future__ import annotations

from typing import Any, Literal, cast

import msgspec
from msgspec import UNSET

from ... import fold, toolargs
from ..._persistent import Vector
from ..._text import Text
from ...errors import InvalidToolCall, ProtocolError, Where
from . import wire
from .scanner import Scan, scan, starts_object
from .state import Call, Calls, State, set_calls

__all__ = ["Entry", "add_text", "ambiguous_repeat", "place", "read_entry", "read_legacy", "text_of"]


class Entry(msgspec.Struct, frozen=True):
    """What an entry says, with everything blank taken as absent.

    Attributes:
        start: its text starts an object, so that it may be a call's arguments from their beginning.
    """

    label: int | None
    id: str | None
    name: str | None
    text: str
    kind: Literal["function", "custom", "legacy"]
    start: bool
    extra: dict[str, Any] = {}

    @property
    def where(self) -> Where:
        return Where(block=self.label, call=self.id)


def read_entry(state: State, raw: wire.ToolCall) -> tuple[State, Entry | None]:
    """The entry, None for one that says nothing. Raises `InvalidToolCall` for one that cannot be read."""
    label = raw.index
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    if not isinstance(label, int) or isinstance(label, bool):
        label = None
    where = Where(block=label)
    if raw.type is not UNSET and raw.type not in ("function", "custom"):
        if raw.type not in (None, ""):
            raise InvalidToolCall(
                f"tool_use block {label} is of the unknown type {raw.type!r}", reason="type_unknown", where=where
            )
        state = fold.note(state, "type_missing")
    custom = raw.type == "custom" or raw.custom is not None
    function = (raw.custom if custom else raw.function) or wire.Function()
    state, id = _label(state, raw.id, "id_blank")
    state, name = _label(state, function.name, "name_blank")
    state, text = _text(state, function.input if custom else function.arguments, Where(block=label, call=id), name)
    extra = {"extra_content": raw.extra_content} if raw.extra_content is not None else {}
    if id is name is None and not text and not extra:
        return fold.note(state, "empty_entry"), None
    if label is None:
        state = fold.note(state, "index_missing")
    start = not custom and starts_object(text)
    return state, Entry(label, id, name, text, "custom" if custom else "function", start, extra)


def read_legacy(state: State, raw: wire.Function) -> tuple[State, Entry | None]:
    """The same for a `function_call`, of which a choice has one at most."""
    state, name = _label(state, raw.name, "name_blank")
    state, text = _text(state, raw.arguments, Where(block=0), name)
    if name is None and not text:
        return state, None
    return state, Entry(0, None, name, text, "legacy", starts_object(text))


def _label(state: State, value: Any, blank: str) -> tuple[State, str | None]:
    if value is UNSET:
        return state, None
    text = "" if value is None else str(value).strip()
    if text in ("", "null"):
        return fold.note(state, blank), None
    return state, str(value)


def _text(state: State, value: Any, where: Where, name: str | None) -> tuple[State, str]:
    if isinstance(value, str):
        return state, value
    if value is UNSET:
        return state, ""
    if value is None:
        return fold.note(state, "args_null"), ""
    if isinstance(value, dict):
        fault = toolargs.inspect(cast("dict[str, Any]", value))
        if fault is None:
            return fold.note(state, "args_object"), msgspec.json.encode(value).decode()
        found, reason, hint = "invalid input", fault.reason, fault.detail
    else:
        found, reason = "non-object input", "args_type"
        hint = f"arguments is a {type(value).__name__}, expected text or an object"
    raise InvalidToolCall(
        f"tool_use block {where.block} returned {found}",
        id=where.call or "",
        name=name or "",
        reason=reason,
        where=where,
        hint=hint,
    )


# ---- the rule


def place(state: State, entry: Entry) -> State:
    """The state with the entry added to its call, which is in focus afterwards.

    Raises:
        ProtocolError, InvalidToolCall: the labels leave open whose it is, or it contradicts its call.
    """
    try:
        return _place(state, entry)
    except ProtocolError as error:
        error.at(block=entry.label, call=entry.id)
        raise


def _place(state: State, entry: Entry) -> State:
    calls = state.wire.calls
    if calls.focus is not None and (calls.focus.kind == "legacy") != (entry.kind == "legacy"):
        raise ProtocolError("function_call and tool_calls in one answer", where=entry.where)
    if entry.id is entry.name is None and not entry.text:
        last = calls[len(calls) - 1] if len(calls) else None
        call = calls.at(entry.label) or last
        return state if call is None else _go_on(state, call, entry)
    known: Vector[int] = calls.having(entry.id) if entry.id is not None else Vector()
    if len(known):
        return _place_known(state, entry, known)
    if entry.id is not None:
        return _place_unseen(state, entry)
    if entry.label is not None:
        return _place_labelled(state, entry)
    return _place_bare(state, entry)


def _place_known(state: State, entry: Entry, known: Vector[int]) -> State:
    """The id is one that a call had."""
    calls = state.wire.calls
    number = _at_same_index(calls, entry.label, known)
    if number is None:
        call = calls[known[len(known) - 1]]
        if entry.name is not None or call.closed:
            return _new(fold.note(state, "id_duplicate"), entry)
        return _go_on(fold.note(state, "index_changed"), call, entry)
    call = calls[number]
    if entry.name is not None and call.name is not None and entry.name != call.name:
        return _new(fold.note(state, "id_duplicate"), entry)
    if entry.start and call.closed:
        if _repeats(state, call, entry):
            return fold.note(state, "args_repeated")
        if _is_placeholder(state, call):
            return _replace(state, call, entry)
        if entry.name is not None:
            return _new(fold.note(state, "id_duplicate"), entry)
        raise _after_complete(call, entry)
    if entry.id != call.latest_id:
        raise InvalidToolCall(
            f"tool_use block {_key(call)} changed its id and changed it back",
            id=call.id or "",
            name=call.name or "",
            arguments_json=text_of(state, call),
            reason="id_alternates",
            where=entry.where,
            hint="Fragments of two calls were mixed under one index",
        )
    return _go_on(fold.note(state, "id_repeated"), call, entry)


def _at_same_index(calls: Calls, label: int | None, known: Vector[int]) -> int | None:
    """The latest of the known calls that has the entry's index, or has come to have it; any, where it has none."""
    if label is None:
        return known[len(known) - 1]
    at = calls.at(label)
    if at is None:
        return None
    return next((number for number in reversed([*known]) if calls[number].label == label or number == at.number), None)


def _place_unseen(state: State, entry: Entry) -> State:
    """The id is a new one."""
    calls = state.wire.calls
    call = calls.at(entry.label)
    if call is None:
        only = calls.only_open()
        if entry.label is None and entry.name is None and not entry.start and only is not None:
            return _go_on(fold.note(state, "id_changed" if only.id else "id_late"), only, entry)
        return _new(state, entry)
    renamed = entry.name is not None and call.name is not None and entry.name != call.name
    anew = entry.start and call.closed
    if call.id is None and not renamed and not anew:
        return _go_on(fold.note(state, "id_late"), call, entry)
    if entry.name is not None and call.empty and not renamed:
        raise _duplicate(call, entry, "ambiguous_header")
    if entry.name is not None and (renamed or entry.start or call.closed):
        return _new(fold.note(state, "index_reused"), entry)
    if anew:
        return _new(fold.note(state, "index_reused"), entry)
    return _go_on(fold.note(state, "id_changed"), call, entry)


def _place_labelled(state: State, entry: Entry) -> State:
    """No id, but an index."""
    calls = state.wire.calls
    call = calls.at(entry.label)
    if call is None:
        if entry.name is not None:
            return _new(state, entry)
        only = calls.only_open()
        codes = state.head.settings.dialect.codes
        if "orphan_to_open" in codes and only is not None and only.number == len(calls) - 1:
            return _go_on(fold.note(state, "orphan_to_open"), only, entry)
        raise _orphan(entry)
    if entry.name is not None and call.name is not None and entry.name != call.name:
        if not call.empty:
            return _new(fold.note(state, "index_reused"), entry)
        return _join_name(state, call, entry)
    if entry.start and call.closed:
        repeats = _repeats(state, call, entry)
        if entry.name is not None:
            if repeats:
                raise _duplicate(call, entry, "ambiguous_repeat")
            return _new(fold.note(state, "index_reused"), entry)
        if repeats and call.named_again:
            raise _duplicate(call, entry, "ambiguous_repeat")
        if repeats:
            return fold.note(state, "args_repeated")
        if _is_placeholder(state, call):
            return _replace(state, call, entry)
        raise _after_complete(call, entry)
    return _go_on(state, call, entry)


def _place_bare(state: State, entry: Entry) -> State:
    """Neither id nor index."""
    calls = state.wire.calls
    if entry.name is None:
        only = calls.only_open()
        if only is None:
            raise _orphan(entry)
        return _go_on(state, only, entry)
    last = calls[len(calls) - 1] if len(calls) else None
    if last is not None and last.name in (None, entry.name):
        if last.empty or (not last.closed and not entry.start):
            return _go_on(state, last, entry)
    return _new(state, entry)


# ---- what is done with an entry


def _new(state: State, entry: Entry) -> State:
    """The entry starts a call."""
    calls = state.wire.calls
    number = len(calls)
    if number == 0 and entry.label not in (None, 0):
        state = fold.note(state, "index_base")
    call = Call(number, entry.label, entry.kind, entry.id, entry.id, entry.name, extra=entry.extra)
    return _store(state, call, entry)


def _go_on(state: State, call: Call, entry: Entry) -> State:
    """The entry is more of a call."""
    if entry.name is not None and call.name is not None:
        state = fold.note(state, "name_repeated")
    call = msgspec.structs.replace(
        call,
        id=call.id or entry.id,
        latest_id=entry.id or call.latest_id,
        name=call.name or entry.name,
        extra={**call.extra, **entry.extra},
        named_again=call.named_again or (entry.name is not None and call.closed),
    )
    return _store(state, call, entry)


def _store(state: State, call: Call, entry: Entry) -> State:
    calls = state.wire.calls.put(call)
    if entry.id is not None:
        calls = calls.name_by(entry.id, call.number)
    if entry.label is not None:
        calls = calls.label_as(entry.label, call.number)
    state = set_calls(state, calls)
    return add_text(state, entry.text) if entry.text else state


def _join_name(state: State, call: Call, entry: Entry) -> State:
    """A second name before any argument: the rest of the name, if the tools know only the whole."""
    tools = state.head.settings.tools
    joined = f"{call.name}{entry.name}"
    if joined in tools and call.name not in tools and entry.name not in tools:
        call = msgspec.structs.replace(call, name=joined)
        return _store(fold.note(state, "name_split"), call, entry)
    raise InvalidToolCall(
        f"tool_use block {_key(call)} changed its name from {call.name!r} to {entry.name!r}",
        id=call.id or "",
        name=call.name or "",
        reason="name_changed",
        where=entry.where,
    )


def _is_placeholder(state: State, call: Call) -> bool:
    return text_of(state, call).split() in (["{}"], ["{", "}"])


def _replace(state: State, call: Call, entry: Entry) -> State:
    """`{}` stood for arguments to come. Only for a dialect that does so, for which it was held back."""
    state = fold.note(state, "args_placeholder")
    call = msgspec.structs.replace(call, scan=Scan(), held=Text.empty(), trailing=Text.empty())
    return _store(state, call, entry)


def add_text(state: State, text: str) -> State:
    """The call in focus with more text, held until its block takes it.

    What stands behind the end of its JSON value is kept apart: it may be the whole text again.
    """
    calls = state.wire.calls
    call = cast("Call", calls.focus)
    if call.kind == "custom":
        scanned = call.scan if call.scan.begun else Scan(begun=True)
        end = len(text)
    elif call.closed:
        scanned, end = call.scan, 0
    else:
        scanned, end = scan(call.scan, text)
    trailing = call.trailing
    if text[end:].strip() or trailing.arrived:
        trailing = trailing.add(text[end:])
    else:
        end = len(text)
    held = call.held.add(text[:end]) if end else call.held
    call = msgspec.structs.replace(call, scan=scanned, held=held, trailing=trailing)
    return set_calls(state, calls.put(call))


def text_of(state: State, call: Call) -> str:
    """All argument text of a call so far."""
    if call.block is None:
        return call.held.value()
    part = state.part if state.focus.index == call.block else state.stored[call.block]
    return part.text + call.held.value()


def _repeats(state: State, call: Call, entry: Entry) -> bool:
    return text_of(state, call).strip() == entry.text.strip()


# ---- refusals


def _key(call: Call) -> int:
    return call.number if call.label is None else call.label


def _orphan(entry: Entry) -> ProtocolError:
    index = "none" if entry.label is None else entry.label
    return ProtocolError(
        f"input_json_delta arrived without an open tool_use block at index {index}",
        where=entry.where,
        hint="orphan_fragment: expected a fragment with the id or index of a call, or exactly one open call",
    )


def _duplicate(call: Call, entry: Entry, code: str) -> ProtocolError:
    found = {
        "ambiguous_header": "another id came before any arguments of the first call",
        "ambiguous_repeat": "the same name and arguments came again without an id, a repetition or a second call",
    }
    return ProtocolError(
        f"duplicate tool_use start for block {_key(call)}", where=entry.where, hint=f"{code}: {found[code]}"
    )


def ambiguous_repeat(call: Call) -> ProtocolError:
    """The error for a call of which came only the name of the whole call before it."""
    return _duplicate(call, Entry(call.label, call.id, call.name, "", call.kind, False), "ambiguous_repeat")


def _after_complete(call: Call, entry: Entry) -> InvalidToolCall:
    return InvalidToolCall(
        f"tool_use block {_key(call)} had invalid input_json_delta JSON",
        id=call.id or "",
        name=call.name or "",
        reason="after_complete",
        where=entry.where,
        hint="after_complete: another object starts behind the whole arguments",
    )
