"""The parts of a candidate's content to blocks: a part continues the block before it or begins another.

A block of text or thoughts goes on until another kind of part comes, or one with a signature. A call is one
part, or a run of steps that give its arguments by their places.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec
from msgspec import Raw

from ... import fold, toolargs
from ...errors import InvalidToolCall, ProtocolError, Where
from ...events import ToolCallDelta
from ...fold import Kind, append
from ...message import ToolCall
from .. import _gemini
from . import wire
from .partial_args import BadEntry, Writer, close, quoted, write

__all__ = ["State", "Step", "Wire", "end_prose", "on_part", "piece", "says"]


class Wire(msgspec.Struct, frozen=True):
    """The reducer's own part of the state.

    Attributes:
        usage: the usage as it came last, to know a repetition by; counts: its fields, earlier ones kept.
        blocked: why the prompt was blocked.
        prose: the block of text or thoughts that goes on, -1 if none does.
        call: the block of the call whose arguments come piece by piece, -1 if none does.
        writer: where its text stands.
        call_ended: whether such a call ended, and nothing came since.
        others: the further candidates by index, each with a state of its own.
    """

    usage: Raw = Raw()
    counts: dict[str, Any] = {}
    blocked: str | None = None
    prose: int = -1
    call: int = -1
    writer: Writer = Writer()
    call_ended: bool = False
    others: dict[int, State] = {}


State: TypeAlias = fold.State[Wire]
Step: TypeAlias = fold.Step[Wire]


def piece(state: State, call: wire.FunctionCall) -> str | None:
    """The text that a step adds, if it is a piece of the string that goes on, and nothing else."""
    entries = call.partial_args
    if entries is None or len(entries) != 1 or call.name or call.id or call.args or not call.will_continue:
        return None
    entry = entries[0]
    string = state.wire.writer.string
    if string is None or entry.json_path != string or state.focus.delta is not ToolCallDelta:
        return None
    value = entry.string_value
    return quoted(value)[1:-1] if value is not None and entry.will_continue else None


def says(part: wire.Part) -> bool:
    """Whether a part holds anything: text that is empty and has no signature does not."""
    return bool(part.text or part.thought_signature or part.function_call) or isinstance(part, wire.FullPart)


def on_part(state: State, part: wire.Part) -> Step:
    if not says(part):
        return state, ()
    ended = state.wire.call_ended
    if ended:
        state = fold.set_wire(state, msgspec.structs.replace(state.wire, call_ended=False))
    call = part.function_call
    if call is not None:
        if ended and call == _END:
            return fold.note(state, "call_end_repeated"), ()
        return _on_step(state, call) if state.wire.call >= 0 else _on_call(state, part, call)
    if isinstance(part, wire.FullPart) and (kept := _kept(part)) is not None:
        return _on_kept(state, part, *kept)
    return _on_prose(state, part)


_END = wire.FunctionCall()

_KEPT = {
    "executableCode": Kind.SERVER,
    "codeExecutionResult": Kind.SERVER,
    "toolCall": Kind.SERVER,
    "toolResponse": Kind.SERVER,
    "functionResponse": Kind.OPAQUE,
    "inlineData": Kind.OPAQUE,
    "fileData": Kind.OPAQUE,
}


def _kept(part: wire.FullPart) -> tuple[Kind, str] | None:
    """What a part is that is kept as it came; None for text with fields that are not modelled."""
    for name, kind in _KEPT.items():
        if name in part.rest:
            return kind, name
    return None if part.text is not None else (Kind.OPAQUE, next(iter(part.rest)))


def _on_kept(state: State, part: wire.FullPart, kind: Kind, name: str) -> Step:
    if name not in _KEPT:
        state = fold.note(state, "unknown_part")
    state, caused = end_prose(state)
    state, more = fold.start(
        state, state.wire, kind, key=state.head.started, name=name, fields={"raw": part.raw, "extra": {}}
    )
    state, last = fold.end(state)
    return state, (*caused, *more, *last)


def _on_prose(state: State, part: wire.Part) -> Step:
    """Text or thoughts: more of the block that goes on, if it is one of these and nothing is bound to the part.

    A signature holds for exactly its part, so that part is a block, even an empty one.
    """
    text = part.text or ""
    signature = part.thought_signature or None
    extra = part.rest if isinstance(part, wire.FullPart) else {}
    kind = Kind.THINKING if part.thought else Kind.TEXT
    bound = signature is not None or bool(extra)
    if state.wire.prose >= 0 and not bound:
        focused = fold.focus(state, state.wire.prose)
        if focused.focus.kind is kind:
            return append(focused, text)
    state, caused = end_prose(state)
    index = state.head.started
    own = state.wire if bound else msgspec.structs.replace(state.wire, prose=index)
    fields = {"signature": signature, "extra": extra}
    state, more = fold.start(state, own, kind, key=index, name=kind.value, fields=fields, text=text)
    caused += more
    if bound:
        state, more = fold.end(state)
        caused += more
    return state, caused


def end_prose(state: State) -> Step:
    """The block of text or thoughts ends, if one goes on."""
    index = state.wire.prose
    if index < 0:
        return state, ()
    own = msgspec.structs.replace(state.wire, prose=-1)
    return fold.end(fold.focus(fold.set_wire(state, own), index))


# ---- calls


def _on_call(state: State, part: wire.Part, call: wire.FunctionCall) -> Step:
    """A call begins; it is whole, unless it says that it goes on or gives its arguments by their places."""
    streamed = bool(call.will_continue or call.partial_args)
    id, name = _gemini.given(call.id), _gemini.given(call.name)
    if not name and streamed:
        index = state.head.started
        raise ProtocolError(
            f"input_json_delta arrived without an open tool_use block at index {index}", where=Where(block=index)
        )
    if _is_repeated(state, call):
        return fold.note(state, "call_repeated"), ()
    state, caused = end_prose(state)
    index = state.head.started
    own = msgspec.structs.replace(state.wire, call=index, writer=Writer()) if streamed else state.wire
    extra = part.rest if isinstance(part, wire.FullPart) else {}
    fields = {
        "id": id or _gemini.made_id(state),
        "name": name,
        "signature": part.thought_signature or None,
        "extra": extra if id else {**extra, "id": None},
    }
    text = "" if _no_args(call) else bytes(call.args).decode()
    state, more = fold.start(
        state, own, Kind.TOOL, key=index, name="tool_use", fields=fields, text="" if streamed else text
    )
    caused += more
    if streamed:
        state, more = _on_step(state, msgspec.structs.replace(call, id=None, name=None))
    else:
        state, more = fold.end(state)
    return state, (*caused, *more)


def _no_args(call: wire.FunctionCall) -> bool:
    return not call.args or bytes(call.args) == b"null"


def _is_repeated(state: State, call: wire.FunctionCall) -> bool:
    """Whether a call has come before, with its id and all else the same. Without an id every call is one."""
    id = _gemini.given(call.id)
    number = state.head.call_ids.get(id) if id else None
    if number is None or call.will_continue or call.partial_args:
        return False
    block = fold.focus(state, number).focus.block
    given = {} if _no_args(call) else toolargs.parse(bytes(call.args).decode())
    return isinstance(block, ToolCall) and (block.id, block.name, block.arguments) == (id, call.name, given)


def _on_step(state: State, call: wire.FunctionCall) -> Step:
    """A call that goes on takes values for places in its arguments, or ends."""
    state = fold.focus(state, state.wire.call)
    part = state.part
    id, name = _gemini.given(call.id), _gemini.given(call.name)
    if name or (id and id != part.fields["id"]):
        raise _broken(part, f"another call, of {name!r}, began before its end", "truncated")
    if not _no_args(call) and bytes(call.args).split() != [b"{}"]:
        raise _broken(part, "it gives arguments both whole and by their places", "malformed")
    writer = state.wire.writer
    text: list[str] = []
    try:
        for entry in call.partial_args or ():
            writer, piece = write(writer, entry)
            text.append(piece)
    except BadEntry as error:
        raise _broken(part, str(error), "malformed") from None
    if call.will_continue:
        own = msgspec.structs.replace(state.wire, writer=writer)
        return _append(fold.set_wire(state, own), "".join(text))
    own = msgspec.structs.replace(state.wire, call=-1, writer=Writer(), call_ended=True)
    state, caused = _append(fold.set_wire(state, own), "".join(text) + close(writer))
    state, more = fold.end(state)
    return state, (*caused, *more)


def _append(state: State, text: str) -> Step:
    return append(state, text) if text else (state, ())


def _broken(part: fold.Part, detail: str, reason: str) -> InvalidToolCall:
    id, name = part.fields["id"], part.fields["name"]
    return InvalidToolCall(
        f"tool_use block {part.key} had invalid input_json_delta JSON",
        id=id,
        name=name,
        arguments_json=part.text,
        reason=reason,
        where=Where(block=part.key, call=id),
        hint=f"Arguments of {name!r}: {detail}",
    )
