"""The part of every reducer that is the same: blocks, calls, stop, message.

A reducer reads its own wire events and says here what they mean: a block starts, grows, ends; the
message stops. Each verb takes a state and gives the next one and the neutral events it caused. A
verb raises `ProtocolError` for what may not be; `fail` turns that into the `Failed` event.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

from . import release, stop, toolargs
from ._persistent import Index, Vector
from ._text import Text
from .declared import DeclaredTool, declare
from .dialect import Dialect, Grade
from .errors import InvalidToolCall, ProtocolError, SseamError, TruncatedStream, Where
from .events import (
    Done,
    Event,
    Failed,
    Opaque,
    RefusalDelta,
    RefusalEnd,
    RefusalStart,
    ServerTool,
    Start,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolCallWithheld,
    UsageUpdate,
)
from .message import (
    Block,
    Deviation,
    Message,
    OpaqueBlock,
    RedactedThinkingBlock,
    RefusalBlock,
    ServerToolBlock,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    Usage,
    WithheldCall,
)

__all__ = [
    "Events",
    "Head",
    "Kind",
    "Part",
    "Settings",
    "State",
    "Step",
    "append",
    "begin",
    "end",
    "fail",
    "finish",
    "focus",
    "grow",
    "initial",
    "is_over",
    "note",
    "open_parts",
    "partial",
    "parts",
    "require_valid",
    "same_input",
    "server_input",
    "set_head",
    "set_usage",
    "set_wire",
    "settings",
    "start",
    "truncated",
    "update",
    "whole_calls",
    "withhold_unreleased",
]

W = TypeVar("W")
Events: TypeAlias = tuple[Event, ...]


class Kind(enum.Enum):
    """What a block is, to the neutral side."""

    TEXT = "text"
    THINKING = "thinking"
    REDACTED = "redacted_thinking"
    REFUSAL = "refusal"
    TOOL = "tool_use"  # a call for the client
    SERVER = "server_tool"  # run by the provider
    OPAQUE = "opaque"  # not modelled


_DELTA: dict[Kind, type[Any]] = {
    Kind.TEXT: TextDelta,
    Kind.THINKING: ThinkingDelta,
    Kind.REFUSAL: RefusalDelta,
    Kind.TOOL: ToolCallDelta,
}


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What a parser was asked for, the same over the whole stream.

    Attributes:
        protocol: the protocol's name; title: its name in front of error texts.
        tools: declared tools by name; none: unknown, and nothing is checked against them.
        accept: neutral stop reasons taken as an end besides `stop.ALWAYS_ACCEPTED`.
        strict: refuse soft deviations that the dialect does not list.
        dialect: what the server is known for.
        grades: the protocol's deviations by code.
    """

    protocol: str
    title: str
    tools: dict[str, DeclaredTool] = {}
    accept: frozenset[str] = frozenset()
    strict: bool = False
    dialect: Dialect = Dialect(name="")
    grades: dict[str, Grade] = {}


def settings(
    protocol: str,
    title: str,
    grades: dict[str, Grade],
    dialects: Mapping[str, Dialect],
    *,
    dialect: str | Dialect | None,
    strict: bool,
    tools: Iterable[object],
    accept: Collection[str],
) -> Settings:
    """The settings of a parser, checked.

    Raises:
        TypeError, ValueError: a tool that cannot be read, a dialect that the protocol does not have,
            a stop reason that is no neutral one.
    """
    if isinstance(accept, str):
        raise TypeError(f"accept: expected a collection of stop reasons, got the single {accept!r}")
    if unknown := set(accept) - stop.NEUTRAL:
        raise ValueError(f"accept: no neutral stop reason: {sorted(unknown)}. There are {sorted(stop.NEUTRAL)}")
    if isinstance(dialect, str):
        if dialect not in dialects:
            raise ValueError(f"dialect: {protocol} has no {dialect!r}. There are {sorted(dialects)}")
        dialect = dialects[dialect]
    return Settings(
        protocol=protocol,
        title=title,
        tools=declare(tools),
        accept=frozenset(accept),
        strict=strict,
        dialect=dialect or Dialect(name=""),
        grades=grades,
    )


class Part(msgspec.Struct, frozen=True, gc=False):
    """A block as it grows.

    Attributes:
        delta: the neutral class of its deltas, None once it has ended or where it has none.
        index: its neutral index; key: the wire's own index or key.
        kind: what it is; wire: the wire's word for it.
        text: what its deltas gave so far.
        fields: what else is known: `id`, `name`, `input` of a call, `signature`, `citations`, `raw`
            of a block kept as it came, `extra`.
        block: the finished block, once it has ended and can be used.
        fault: why the call cannot be used, once it has ended so.
        started_at_end: how many blocks had started when it ended.
    """

    delta: type[Any] | None
    text: Text
    index: int
    key: int | str
    kind: Kind
    wire: str
    fields: dict[str, Any]
    block: Block | None = None
    fault: InvalidToolCall | None = None
    started_at_end: int | None = None

    @property
    def ended(self) -> bool:
        return self.started_at_end is not None


class Head(msgspec.Struct, frozen=True):
    """What concerns the message and not one block.

    Attributes:
        settings: see there.
        begun: the start event was given.
        id, model, raw: of the message, see `Message`.
        usage: token counts so far, None while none came.
        reason, raw_reason: the stop reason so far.
        deviations: how often each was seen.
        started: how many blocks started; open: how many of them have not ended.
        call_ids: the ids of the calls so far, each with its block's index.
        fault: index of a block whose call is invalid and not yet judged.
        result: the terminal event, once there is one.
    """

    settings: Settings
    call_ids: Index[str]
    begun: bool = False
    id: str = ""
    model: str = ""
    raw: dict[str, Any] = {}
    usage: Usage | None = None
    reason: str | None = None
    raw_reason: str | None = None
    deviations: dict[str, int] = {}
    started: int = 0
    open: int = 0
    fault: int | None = None
    result: Done | Failed | None = None


class State(msgspec.Struct, Generic[W], frozen=True, gc=False):
    """A reducer's state: the protocol's own part and the common one.

    Attributes:
        part: the block touched last, the newest version of it.
        wire: what only the protocol's reducer knows.
        head: what concerns the message.
        parts: every block by neutral index; stale at `part.index`.
    """

    part: Part
    wire: W
    head: Head
    parts: Vector[Part]


Step: TypeAlias = tuple[State[W], Events]

_NO_PART = Part(None, Text.empty(), -1, -1, Kind.OPAQUE, "", {}, started_at_end=0)


def initial(settings: Settings, wire: W) -> State[W]:
    """The state before the first event."""
    return State(_NO_PART, wire, Head(settings, Index()), Vector())


# ---- the message


def set_wire(state: State[W], wire: W) -> State[W]:
    """The state with another protocol part."""
    return State(state.part, wire, state.head, state.parts)


def set_head(state: State[W], **fields: Any) -> State[W]:
    """The state with other fields of its head."""
    return State(state.part, state.wire, msgspec.structs.replace(state.head, **fields), state.parts)


def is_over(state: State[Any]) -> bool:
    """Whether the terminal event was given."""
    return state.head.result is not None


def begin(state: State[W], *, id: str = "", model: str = "", raw: dict[str, Any] | None = None) -> Step[W]:
    """The message begins."""
    return set_head(state, begun=True, id=id, model=model, raw=raw or {}), (Start(id, model),)


def set_usage(state: State[W], usage: Usage) -> Step[W]:
    """Token counts came; they replace the earlier ones."""
    return set_head(state, usage=usage), (UsageUpdate(usage),)


def note(state: State[W], code: str) -> State[W]:
    """Count a deviation, or refuse it: see `dialect.Grade`."""
    settings = state.head.settings
    grade = settings.grades[code]
    if code not in settings.dialect.codes:
        if grade == "gated":
            raise ProtocolError(f"deviation {code!r} is allowed only for a dialect that is known for it")
        if grade == "soft" and settings.strict:
            raise ProtocolError(f"deviation {code!r} is refused in strict mode")
    seen = state.head.deviations
    return set_head(state, deviations={**seen, code: seen.get(code, 0) + 1})


# ---- blocks


def parts(state: State[Any]) -> Iterator[Part]:
    """Every block in its newest version, by index."""
    newest = state.part
    for part in state.parts:
        yield newest if part.index == newest.index else part


def open_parts(state: State[Any]) -> Iterator[Part]:
    """The blocks that have not ended."""
    return (part for part in parts(state) if not part.ended)


def focus(state: State[W], index: int) -> State[W]:
    """The state with block `index` as its `part`."""
    old = state.part
    if old.index == index:
        return state
    stored = state.parts if old.index < 0 else state.parts.replace(old.index, old)
    return State(stored[index], state.wire, state.head, stored)


def update(state: State[W], **fields: Any) -> State[W]:
    """The state with further `fields` of its block."""
    part = msgspec.structs.replace(state.part, fields={**state.part.fields, **fields})
    return State(part, state.wire, state.head, state.parts)


def start(state: State[W], kind: Kind, *, key: int | str, wire: str, text: str = "", **fields: Any) -> Step[W]:
    """A block starts. `fields`: see `Part`; `text`: what the start already gives of it.

    Raises:
        InvalidToolCall: a call without id or name, with an id that was used, or of an undeclared tool.
    """
    head = state.head
    index = head.started
    if kind is Kind.TOOL:
        call_ids = _claim(head, index, key, fields)
    else:
        call_ids = head.call_ids
    part = Part(_DELTA.get(kind), Text.empty(), index, key, kind, wire, fields)
    stored = state.parts if state.part.index < 0 else state.parts.replace(state.part.index, state.part)
    head = msgspec.structs.replace(head, started=index + 1, open=head.open + 1, call_ids=call_ids)
    state = State(part, state.wire, head, stored.append(part))
    events: Events = (_start_event(part),)
    if text:
        state, more = append(state, text)
        events += more
    return state, events


def _claim(head: Head, index: int, key: int | str, fields: dict[str, Any]) -> Index[str]:
    """The call ids with this call's own, which must be new."""
    id, name = fields["id"], fields["name"]
    fault = {"id": id, "name": name, "where": Where(block=key, call=id or None)}
    if not id or not name:
        missing = "id" if not id else "name"
        raise InvalidToolCall(f"tool_use block {key} has no {missing}", reason="unnamed", **fault)
    if head.call_ids.get(id) is not None:
        raise InvalidToolCall(f"tool id {id} used twice", reason="duplicate_id", **fault)
    tools = head.settings.tools
    if tools and name not in tools:
        hint = f"Declared: {', '.join(sorted(tools))}"
        raise InvalidToolCall(
            f"tool_use block {key} calls the undeclared tool {name!r}", reason="undeclared", hint=hint, **fault
        )
    return head.call_ids.add(id, index)


def _start_event(part: Part) -> Event:
    match part.kind:
        case Kind.TEXT:
            return TextStart(part.index)
        case Kind.THINKING | Kind.REDACTED:
            return ThinkingStart(part.index, part.kind is Kind.REDACTED)
        case Kind.REFUSAL:
            return RefusalStart(part.index)
        case Kind.TOOL:
            return ToolCallStart(part.index, part.fields["id"], part.fields["name"])
        case Kind.SERVER:
            return ServerTool(part.index, _server_block(part), False)
        case Kind.OPAQUE:
            return Opaque(part.index, _opaque_block(part), False)


def append(state: State[W], text: str) -> Step[W]:
    """The block in focus grows by `text`."""
    part = state.part
    delta = part.delta
    assert delta is not None
    grown = Part(delta, part.text.add(text), part.index, part.key, part.kind, part.wire, part.fields)
    state = State(grown, state.wire, state.head, state.parts)
    return state, ((delta(part.index, text),) if text else ())


def grow(state: State[W], text: str) -> State[W]:
    """The block in focus grows by `text`, of which the neutral side is not told."""
    part = msgspec.structs.replace(state.part, text=state.part.text.add(text))
    return State(part, state.wire, state.head, state.parts)


def end(state: State[W]) -> Step[W]:
    """The block in focus ends.

    A call that cannot be used gives no event and is kept as the `fault` of the head: the reducer
    judges it with the event that follows.
    """
    head = state.head
    result = _finished(state.part, head.settings)
    fault = result if isinstance(result, InvalidToolCall) else None
    part = msgspec.structs.replace(
        state.part,
        delta=None,
        text=state.part.text if fault else Text.empty(),
        block=None if isinstance(result, InvalidToolCall) else result,
        fault=fault,
        started_at_end=head.started,
    )
    head = msgspec.structs.replace(head, open=head.open - 1, fault=part.index if fault else head.fault)
    events = (_end_event(part.index, part.block),) if part.block is not None else ()
    return State(part, state.wire, head, state.parts), events


def _finished(part: Part, settings: Settings) -> Block | InvalidToolCall:
    fields = part.fields
    extra: dict[str, Any] = fields.get("extra", {})
    match part.kind:
        case Kind.TEXT:
            citations = tuple(fields.get("citations", ()))
            return TextBlock(
                text=part.text.value(), citations=citations, signature=fields.get("signature"), extra=extra
            )
        case Kind.THINKING:
            return ThinkingBlock(thinking=part.text.value(), signature=fields.get("signature"), extra=extra)
        case Kind.REDACTED:
            return RedactedThinkingBlock(data=fields["data"], extra=extra)
        case Kind.REFUSAL:
            return RefusalBlock(text=part.text.value(), extra=extra)
        case Kind.TOOL:
            return _call(part, settings)
        case Kind.SERVER:
            return _server_block(part)
        case Kind.OPAQUE:
            return _opaque_block(part)


def _server_block(part: Part) -> ServerToolBlock:
    return ServerToolBlock(kind=part.wire, raw=part.fields["raw"])


def _opaque_block(part: Part) -> OpaqueBlock:
    return OpaqueBlock(kind=part.wire, raw=part.fields["raw"], deltas=tuple(part.fields.get("deltas", ())))


def _end_event(index: int, block: Block) -> Event:
    match block:
        case TextBlock():
            return TextEnd(index, block.text, block.citations)
        case ThinkingBlock():
            return ThinkingEnd(index, block.thinking, block.signature)
        case RedactedThinkingBlock():
            return ThinkingEnd(index, "")
        case RefusalBlock():
            return RefusalEnd(index, block.text)
        case ToolCall():
            return ToolCallEnd(index, block)
        case ServerToolBlock():
            return ServerTool(index, block, True)
        case OpaqueBlock():
            return Opaque(index, block, True)


# ---- calls


def _call(part: Part, settings: Settings) -> ToolCall | InvalidToolCall:
    """The call that an ended block makes.

    No fragment arrived: the input given at the start stands. Any arrived: their joined text is the
    truth; a blank one means no arguments, unless the declared tool cannot do without.
    """
    fields = part.fields
    text = part.text.value()
    if fields.get("custom"):
        arguments: dict[str, Any] | toolargs.BadArguments = {"input": text}
    elif not part.text.arrived and fields.get("input") is not None:
        arguments = fields["input"]
        text = msgspec.json.encode(arguments).decode()
    elif not text.strip():
        arguments, text = {}, "{}"
    else:
        arguments = toolargs.parse(text)
    if isinstance(arguments, toolargs.BadArguments):
        return _invalid(part, text, arguments.reason, arguments.detail)
    tool = settings.tools.get(fields["name"])
    if not arguments and tool is not None and tool.required:
        return _invalid(part, part.text.value(), "empty", f"the tool requires {', '.join(tool.required)}")
    return ToolCall(
        id=fields["id"],
        name=fields["name"],
        arguments=arguments,
        arguments_json=text,
        signature=fields.get("signature"),
        kind="custom" if fields.get("custom") else "function",
        extra=fields.get("extra", {}),
    )


_FAULT_TEXTS = {
    "not_object": "tool_use block {} returned non-object input",
    "duplicate_key": "tool_use block {} has a key twice in its input",
    "empty": "tool_use block {} has no input",
}


def _invalid(part: Part, text: str, reason: str, detail: str) -> InvalidToolCall:
    head = _FAULT_TEXTS.get(reason, "tool_use block {} had invalid input_json_delta JSON").format(part.key)
    id, name = part.fields["id"], part.fields["name"]
    return InvalidToolCall(
        head,
        id=id,
        name=name,
        arguments_json=text,
        reason=reason,
        where=Where(block=part.key, call=id),
        hint=f"Arguments of {name!r}: {detail}",
    )


def same_input(part: Part) -> bool:
    """Whether the deltas of a call gave what its start gave already."""
    return toolargs.parse(part.text.value()) == part.fields["input"]


def server_input(part: Part) -> dict[str, Any]:
    """The input of an ended block of a server-run tool. Raises `ProtocolError` for bad JSON."""
    arguments = toolargs.parse(part.text.value())
    if isinstance(arguments, toolargs.BadArguments):
        raise ProtocolError(
            f"{part.wire} block {part.key} had invalid input_json_delta JSON",
            where=Where(block=part.key),
            hint=arguments.detail,
        )
    return arguments


def whole_calls(state: State[Any]) -> int:
    """How many calls ended and can be used."""
    return sum(isinstance(part.block, ToolCall) for part in parts(state))


def withhold_unreleased(state: State[W]) -> Step[W]:
    """Take back every call that has ended and is not released: it will not be one."""
    events: list[Event] = []
    for part in list(parts(state)):
        if isinstance(part.block, ToolCall) and not _is_released(part, state.head):
            state = focus(state, part.index)
            withheld = _withheld(part)
            state = State(
                msgspec.structs.replace(state.part, block=None, fields={**part.fields, "withheld": withheld}),
                state.wire,
                state.head,
                state.parts,
            )
            events.append(ToolCallWithheld(part.index, withheld))
    return state, tuple(events)


def _is_released(part: Part, head: Head) -> bool:
    return part.started_at_end is not None and release.is_released(part.started_at_end, head.started)


def _withheld(part: Part) -> WithheldCall:
    fields = part.fields
    if "withheld" in fields:
        return fields["withheld"]
    if isinstance(part.block, ToolCall):
        text, reason = part.block.arguments_json, "unreleased"
    else:
        text, reason = part.text.value(), "invalid" if part.ended else "open"
    return WithheldCall(
        id=fields["id"], name=fields["name"], arguments_json=text, reason=reason, index=part.index
    )


# ---- the end


def finish(state: State[W], reason: str, raw_reason: str) -> Step[W]:
    """The protocol's own end was seen with this stop reason: `Done`, if everything fits.

    Raises:
        TruncatedStream: a block is still open, and the stop reason does not say that it was cut.
        InvalidToolCall: a call that cannot be used, and likewise.
        StopReasonError: the reason contradicts the content, or is not accepted.
    """
    state = set_head(state, reason=reason, raw_reason=raw_reason)
    if reason not in stop.CUT_OFF:
        _require_closed(state)
        require_valid(state)
    if error := stop.check(reason, raw_reason, whole_calls(state), state.head.settings.accept):
        raise error
    events: Events = ()
    if reason not in stop.ALWAYS_ACCEPTED:
        state, events = _close_cut(state)
    message = _message(state, complete=True, checked=reason in stop.ALWAYS_ACCEPTED)
    done = Done(reason, message)
    return set_head(state, result=done), (*events, done)


def _close_cut(state: State[W]) -> Step[W]:
    """End what a cut left open: text as far as it came, calls as withheld."""
    events: list[Event] = []
    for part in list(parts(state)):
        if part.kind is not Kind.TOOL and not part.ended:
            state, more = end(focus(state, part.index))
            events += more
        elif part.kind is Kind.TOOL and part.block is None and "withheld" not in part.fields:
            events.append(ToolCallWithheld(part.index, _withheld(part)))
    state, more = withhold_unreleased(state)
    return state, (*events, *more)


def _require_closed(state: State[Any]) -> None:
    unclosed = list(open_parts(state))
    calls = [part for part in unclosed if part.kind is Kind.TOOL]
    if not unclosed:
        return
    named = calls or unclosed
    kinds = "/".join(dict.fromkeys(part.wire for part in named))
    keys = ", ".join(str(part.key) for part in named)
    raise TruncatedStream(
        f"stream ended with unclosed {kinds} block(s): {keys}",
        where=Where(block=named[0].key, call=named[0].fields.get("id")),
        hint=_progress(named[0], state.head.raw_reason),
    )


def _progress(part: Part, raw_reason: str | None) -> str:
    named = f"Tool call {part.fields['name']!r}" if part.kind is Kind.TOOL else "The block"
    stopped = f"; stop_reason was {raw_reason!r}" if raw_reason is not None else ""
    return f"{named} had {len(part.text.value()):,} characters{stopped}"


def require_valid(state: State[Any]) -> None:
    """Raise the `InvalidToolCall` of the first call that ended and cannot be used."""
    if state.head.fault is not None:
        for part in parts(state):
            if part.fault is not None:
                raise part.fault


def truncated(state: State[Any], expected: str) -> TruncatedStream:
    """The error for input that ended before `expected`."""
    try:
        _require_closed(state)
    except TruncatedStream as error:
        return error
    raw = state.head.raw_reason
    hint = f"All blocks were closed and stop_reason was {raw!r}" if raw is not None else ""
    return TruncatedStream(f"stream ended before {expected}", hint=hint)


def fail(state: State[W], error: SseamError) -> Step[W]:
    """The stream failed: the `Failed` event with what was received whole."""
    message = partial(state)
    error.partial = message
    error.at(protocol=state.head.settings.title)
    failed = Failed(error, message)
    return set_head(state, result=failed), (failed,)


def partial(state: State[Any]) -> Message:
    """The message so far: text as far as it came, released calls, everything else withheld."""
    result = state.head.result
    return result.message if result is not None else _message(state, complete=False, checked=False)


def _message(state: State[Any], *, complete: bool, checked: bool) -> Message:
    head = state.head
    settings = head.settings
    content: list[Block] = []
    withheld: list[WithheldCall] = []
    for part in parts(state):
        if part.kind is not Kind.TOOL:
            content.append(part.block or _as_far_as_it_came(part, settings))
        elif isinstance(part.block, ToolCall) and (checked or _is_released(part, head)):
            content.append(part.block)
        else:
            withheld.append(_withheld(part))
    return Message(
        id=head.id,
        model=head.model,
        protocol=settings.protocol,
        content=tuple(content),
        withheld=tuple(withheld),
        stop_reason=head.reason,
        raw_stop_reason=head.raw_reason,
        usage=head.usage or Usage(),
        deviations=tuple(
            Deviation(code=code, grade=settings.grades[code], count=count)  # pyright: ignore[reportArgumentType]
            for code, count in head.deviations.items()
        ),
        complete=complete,
        raw=head.raw,
    )


def _as_far_as_it_came(part: Part, settings: Settings) -> Block:
    block = _finished(part, settings)
    assert not isinstance(block, InvalidToolCall)
    return block
