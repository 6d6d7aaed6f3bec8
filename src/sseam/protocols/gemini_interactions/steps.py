"""Steps to blocks: a step is one block, but `model_output`, whose content makes one each time its kind changes.

What the blocks alone would not tell is in their `extra`, so that the steps can go back as they came: of thoughts
`summary`, its items, unless they are one text; of content `new_step`, whether a step began with it, where content
follows on content of another step or is of a kind that is not known.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, TypeAlias, cast

import msgspec

from ... import fold
from ..._enums import quick
from ..._persistent import Index, Vector
from ...errors import ProtocolError, Where
from ...fold import Kind, append
from .. import _gemini
from . import wire
from .wire import StepDelta

__all__ = [
    "Open",
    "Phase",
    "State",
    "Step",
    "Wire",
    "end_prose",
    "keep",
    "on_delta",
    "on_other_delta",
    "on_step_start",
    "on_step_stop",
    "on_usage",
    "opened",
]


@quick
class Phase(enum.Enum):
    """Where in the interaction the stream is."""

    IDLE = "idle"  # before interaction.created
    STREAMING = "streaming"  # steps come and go


class Open(msgspec.Struct, frozen=True):
    """A step.

    Attributes:
        type: the wire's; block: its block that has not ended, by neutral index, -1 if there is none.
        stopped: whether step.stop came.
    """

    type: str
    block: int = -1
    stopped: bool = False


class Wire(msgspec.Struct, frozen=True):
    """The reducer's own part of the state.

    Attributes:
        phase: see there.
        keys: the wire's index of every step to its number; steps: the steps by number.
        open: how many have not stopped.
        usage: the provider's counts so far, later fields over earlier ones.
        output: the wire's index of the model_output step of which the last block is content, -1 if it is of none.
    """

    phase: Phase
    keys: Index[int]
    steps: Vector[Open]
    open: int = 0
    usage: dict[str, Any] = {}
    output: int = -1


State: TypeAlias = fold.State[Wire]
Step: TypeAlias = fold.Step[Wire]


def on_step_start(state: State, event: wire.StepStart) -> Step:
    index, step = event.index, event.step
    type = step.get("type")
    if not isinstance(type, str):
        raise ProtocolError("step has no type", where=Where(block=index))
    own = state.wire
    if own.keys.get(index) is not None:
        raise ProtocolError(f"duplicate {_word(type)} start for block {index}", where=Where(block=index))
    number = len(own.steps)
    if own.open:
        state = fold.note(state, "interleaved_steps")
    if index != number:
        state = fold.note(state, "index_gap")
    own = msgspec.structs.replace(
        own, keys=own.keys.add(index, number), steps=own.steps.append(Open(type)), open=own.open + 1
    )
    return _START.get(type, _start_kept)(fold.set_wire(state, own), index, step)


def _word(type: str) -> str:
    return "tool_use" if type == "function_call" else type


def _rest(step: dict[str, Any], *typed: str) -> dict[str, Any]:
    return {key: value for key, value in step.items() if key not in ("type", *typed)}


def _start(
    state: State, index: int, kind: Kind, name: str, fields: dict[str, Any], accepts: type[Any] | None = None
) -> Step:
    """A block of the step starts."""
    state = _set_block(state, index, state.head.started)
    own = msgspec.structs.replace(state.wire, output=index if _step_at(state, index).type == "model_output" else -1)
    return fold.start(state, own, kind, key=index, name=name, fields=fields, accepts=accepts)


def _start_content(
    state: State, index: int, kind: Kind, name: str, fields: dict[str, Any], accepts: type[Any] | None = None
) -> Step:
    """A block of a model_output step starts."""
    follows = state.wire.output not in (-1, index)
    known = kind is Kind.TEXT or name in _MEDIA
    extra: dict[str, Any] = {} if known and not follows else {"new_step": follows}
    return _start(state, index, kind, name, {**fields, "extra": extra}, accepts)


def _set_block(state: State, index: int, block: int, *, stopped: bool = False) -> State:
    own = state.wire
    number = cast("int", own.keys.get(index))
    steps = own.steps.replace(number, Open(own.steps[number].type, block, stopped))
    return fold.set_wire(state, msgspec.structs.replace(own, steps=steps, open=own.open - stopped))


def _start_call(state: State, index: int, step: dict[str, Any]) -> Step:
    call = wire.read_call(step)
    extra = _rest(step, "id", "name", "arguments", "signature")
    id = _gemini.given(call.id)
    fields = {
        "id": id or _gemini.made_id(state),
        "name": _gemini.given(call.name),
        "input": step.get("arguments"),  # as it was decoded: it may show a key that was given twice
        "signature": call.signature or None,
        "extra": extra if id else {**extra, "id": None},
    }
    return _start(state, index, Kind.TOOL, "tool_use", fields, wire.ArgumentsDelta)


def _start_thought(state: State, index: int, step: dict[str, Any]) -> Step:
    signature = wire.string(step, "signature", "thought step") or None
    fields = {"signature": signature, "extra": _rest(step, "signature", "summary"), "summary": Vector()}
    state, caused = _start(state, index, Kind.THINKING, "thought", fields)
    for item in wire.objects(step, "summary", "thought step"):
        state, more = _add_summary(state, item)
        caused += more
    return state, caused


def _add_summary(state: State, item: dict[str, Any]) -> Step:
    items: Vector[dict[str, Any]] = state.part.fields["summary"]
    state = fold.update(state, summary=items.append(item))
    text = item.get("text")
    if item.get("type", "text") == "text" and isinstance(text, str):
        return append(state, text)
    return state, ()


def _end_thought(state: State) -> State:
    """The thought in focus with its summary: one text is the block's own."""
    fields = state.part.fields
    items: list[dict[str, Any]] = list(fields["summary"])
    if all(item.keys() == {"type", "text"} and item["type"] == "text" for item in items) and len(items) < 2:
        return state
    return fold.update(state, extra={**fields["extra"], "summary": items})


def _start_output(state: State, index: int, step: dict[str, Any]) -> Step:
    """Its blocks start with their first content."""
    caused: fold.Events = ()
    if step.get("error") is not None:
        state = keep(state, {"error": step["error"]})
    for item in wire.objects(step, "content", "model_output step"):
        state, more = _add_content(state, index, item)
        caused += more
    return state, caused


def _add_content(state: State, index: int, item: dict[str, Any]) -> Step:
    text = item.get("text")
    if item.get("type") != "text" or not isinstance(text, str):
        return _add_media(state, index, item)
    state, caused = _focus_text(state, index)
    state, more = append(state, text)
    state = _annotate(state, item)
    return state, (*caused, *more)


def _add_media(state: State, index: int, item: dict[str, Any]) -> Step:
    """Content that is not text is a block of its own, kept as it came."""
    state, caused = _end_block(state, index)
    kind = str(item.get("type", ""))
    if kind not in _MEDIA:
        state = fold.note(state, "unknown_delta")
    state, more = _start_content(state, index, Kind.OPAQUE, kind, {"raw": item})
    state, last = _end_block(state, index)
    return state, (*caused, *more, *last)


_MEDIA = frozenset({"image", "audio", "video", "document"})


def _focus_text(state: State, index: int) -> Step:
    """The open text block of a model_output step, which is started if there is none."""
    block = _step_at(state, index).block
    if block >= 0:
        return fold.focus(state, block), ()
    return _start_content(state, index, Kind.TEXT, "model_output", {"citations": Vector()}, wire.TextDelta)


def _annotate(state: State, item: dict[str, Any]) -> State:
    given = wire.objects(item, "annotations", "text")
    if not given:
        return state
    citations: Vector[dict[str, Any]] = state.part.fields["citations"]
    for citation in given:
        citations = citations.append(citation)
    return fold.update(state, citations=citations)


def _start_kept(state: State, index: int, step: dict[str, Any]) -> Step:
    """A step that the provider runs, or one that is not modelled."""
    type = step["type"]
    if type not in _SERVER | _OPAQUE:
        state = fold.note(state, "unknown_step")
    kind = Kind.SERVER if type in _SERVER else Kind.OPAQUE
    return _start(state, index, kind, type, {"raw": step, "extra": {}})


_START: dict[str, Callable[[State, int, dict[str, Any]], Step]] = {
    "function_call": _start_call,
    "thought": _start_thought,
    "model_output": _start_output,
}
_SERVER = frozenset(
    f"{tool}_{half}"
    for tool in (
        "code_execution",
        "url_context",
        "google_search",
        "google_maps",
        "file_search",
        "retrieval",
        "mcp_server_tool",
        "tool_search",
        "processing",
    )
    for half in ("call", "result")
)
_OPAQUE = frozenset({"function_result", "user_input"})


def on_step_stop(state: State, event: wire.StepStop) -> Step:
    index = event.index
    step = _find(state, index)
    if step is None:
        raise ProtocolError(f"stop for unopened block {index}", where=Where(block=index))
    if step.stopped:
        raise ProtocolError(f"block {index} stopped twice", where=Where(block=index))
    state, caused = _end_block(state, index)
    state, more = on_usage(_set_block(state, index, -1, stopped=True), event.usage)
    return state, (*caused, *more)


def _end_block(state: State, index: int) -> Step:
    """The open block of a step ends, if there is one."""
    block = _step_at(state, index).block
    if block < 0:
        return state, ()
    state = _set_block(fold.focus(state, block), index, -1)
    part = state.part
    if part.kind is Kind.SERVER and part.text.strip():
        arguments = fold.server_input(part)
        state = fold.update(state, raw={**part.fields["raw"], "arguments": arguments})
    elif part.kind is Kind.TOOL and part.fields["input"] and part.arrived and not fold.same_input(part):
        state = fold.note(state, "input_given_twice")
    elif part.kind is Kind.THINKING:
        state = _end_thought(state)
    return fold.end(state)


def _find(state: State, index: int) -> Open | None:
    number = state.wire.keys.get(index)
    return None if number is None else state.wire.steps[number]


def _step_at(state: State, index: int) -> Open:
    return cast("Open", _find(state, index))


# ---- deltas


def on_delta(state: State, event: StepDelta) -> Step:
    index, delta = event.index, event.delta
    arguments = isinstance(delta, wire.ArgumentsDelta)
    step = opened(state, index, arguments=arguments)
    caused: fold.Events = ()
    if step.type == "model_output" and not arguments:
        state, caused = _focus_text(state, index)
        state, more = append(state, delta.text)
        caused += more
    elif step.type == "function_call" and arguments:
        state, caused = append(fold.focus(state, step.block), delta.text)
    elif step.type in _SERVER and arguments:
        state = fold.grow(fold.focus(state, step.block), delta.text)
    elif step.type in _START or step.type in _SERVER:
        raise _misfit(index, step, "arguments_delta" if arguments else "text")
    else:
        state = _keep_delta(fold.focus(state, step.block), msgspec.to_builtins(delta))
    state, more = _on_metadata(state, event.metadata)
    return state, (*caused, *more)


def _on_metadata(state: State, metadata: dict[str, Any] | None) -> Step:
    usage = (metadata or {}).get("total_usage")
    return on_usage(state, cast("dict[str, Any]", usage) if isinstance(usage, dict) else None)


def on_other_delta(state: State, event: wire.OtherStepDelta) -> Step:
    step = opened(state, event.index, arguments=False)
    state, caused = _ARMS.get(step.type, _kept_delta)(state, step, event)
    state, more = _on_metadata(state, event.metadata)
    return state, (*caused, *more)


def _call_delta(state: State, step: Open, event: wire.OtherStepDelta) -> Step:
    if event.type != "thought_signature":
        raise _misfit(event.index, step, event.type)  # what it holds may be arguments
    return _sign(fold.focus(state, step.block), event.raw), ()


def _thought_delta(state: State, step: Open, event: wire.OtherStepDelta) -> Step:
    state = fold.focus(state, step.block)
    content = event.raw.get("content")
    match event.type:
        case "thought_signature":
            return _sign(state, event.raw), ()
        case "thought_summary" if isinstance(content, dict):
            return _add_summary(state, cast("dict[str, Any]", content))
        case "thought_summary" if content is None:
            return state, ()
        case "" | "thought_summary":
            raise _misfit(event.index, step, event.type)
        case _:
            extra = state.part.fields["extra"]
            unknown = [*extra.get("unknown_deltas", ()), event.raw]
            return fold.update(fold.note(state, "unknown_delta"), extra={**extra, "unknown_deltas": unknown}), ()


def _output_delta(state: State, step: Open, event: wire.OtherStepDelta) -> Step:
    match event.type:
        case "text_annotation_delta":
            state, caused = _focus_text(state, event.index)
            return _annotate(state, event.raw), caused
        case "" | "thought_signature" | "thought_summary":
            raise _misfit(event.index, step, event.type)
        case _:
            return _add_media(state, event.index, event.raw)


_ARMS: dict[str, Callable[[State, Open, wire.OtherStepDelta], Step]] = {
    "function_call": _call_delta,
    "thought": _thought_delta,
    "model_output": _output_delta,
}


def _kept_delta(state: State, step: Open, event: wire.OtherStepDelta) -> Step:
    """A delta of a kept step gives the whole object, or fields of it."""
    state = fold.focus(state, step.block)
    part = state.part
    known = step.type in _SERVER | _OPAQUE
    if event.type in (step.type, "") or (known and event.type == "thought_signature"):
        return fold.update(state, raw={**part.fields["raw"], **_rest(event.raw)}), ()
    if known:
        raise _misfit(event.index, step, event.type)
    return _keep_delta(state, event.raw), ()


def _keep_delta(state: State, raw: dict[str, Any]) -> State:
    return fold.update(state, deltas=(*state.part.fields.get("deltas", ()), raw))


def _sign(state: State, raw: dict[str, Any]) -> State:
    signature = wire.string(raw, "signature", "thought_signature delta")
    return fold.update(state, signature=signature) if signature else state


def opened(state: State, index: int, *, arguments: bool) -> Open:
    """The step at `index`, which must be open."""
    step = _find(state, index)
    if step is not None and not step.stopped:
        return step
    where = Where(block=index)
    if arguments:
        raise ProtocolError(f"input_json_delta arrived without an open tool_use block at index {index}", where=where)
    raise ProtocolError(f"delta for {'unopened' if step is None else 'ended'} block {index}", where=where)


def _misfit(index: int, step: Open, delta: str) -> ProtocolError:
    where = Where(block=index)
    if delta == "arguments_delta":
        return ProtocolError(
            f"input_json_delta arrived without an open tool_use block at index {index}",
            where=where,
            hint=f"Block {index} is {step.type}",
        )
    found = f"{delta} delta" if delta else "delta without a type that its fields would tell"
    return ProtocolError(f"{found} in {_word(step.type)} block {index}", where=where)


# ---- what concerns the interaction


def keep(state: State, fields: dict[str, Any]) -> State:
    return fold.set_head(state, raw={**state.head.raw, **fields})


def end_prose(state: State, *, noted: bool) -> Step:
    """What is open ends, but for calls: only their own stop proves them whole."""
    caused: fold.Events = ()
    for step in state.wire.steps if state.wire.open else ():
        if step.stopped or step.type == "function_call":
            continue
        if noted:
            state = fold.note(state, "step_unstopped")
        if step.block >= 0:
            state = fold.focus(state, step.block)
            state, more = fold.end(_end_thought(state) if step.type == "thought" else state)
            caused += more
    return state, caused


_USAGE = _gemini.UsageNames(
    input="total_input_tokens",
    tool="total_tool_use_tokens",
    cached="total_cached_tokens",
    output="total_output_tokens",
    thoughts="total_thought_tokens",
    total="total_tokens",
)


def on_usage(state: State, counts: dict[str, Any] | None) -> Step:
    """Counts are running totals: a later one replaces an earlier one."""
    if not counts:
        return state, ()
    usage = {**state.wire.usage, **{key: value for key, value in counts.items() if value is not None}}
    own = msgspec.structs.replace(state.wire, usage=usage)
    return fold.set_usage(state, own, _gemini.read_usage(usage, _USAGE))
