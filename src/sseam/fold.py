"""The part of every reducer that is the same: blocks, calls, stop, message.

A reducer reads its own wire events and says here what they mean: a block starts, grows, ends; the
message stops. Each verb takes a state and gives the next one and the neutral events it caused. A
verb raises `ProtocolError` for what may not be; `fail` turns that into the `Failed` event.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeAlias, TypeVar, cast

import msgspec

from . import release, stop, toolargs
from ._persistent import Index, Vector
from ._text import LOT, Lots, join, open_lot
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
    "count",
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
    "set_stop",
    "set_usage",
    "set_wire",
    "settings",
    "start",
    "truncated",
    "unfocus",
    "update",
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
        tools=declare(tools) if tools else {},
        accept=frozenset(accept),
        strict=strict,
        dialect=dialect or Dialect(name=""),
        grades=grades,
    )


class Part(msgspec.Struct, frozen=True, gc=False, eq=False):
    """A block as it grows.

    Attributes:
        delta: the neutral class of its deltas, None once it has ended or where it has none.
        accepts: the wire's class of its deltas, as the reducer named it; None once it has ended.
        index: its neutral index; key: the wire's own index or key.
        kind: what it is; wire: the wire's word for it.
        fields: what else is known: `id`, `name`, `input` of a call, `signature`, `citations`, `raw`
            of a block kept as it came, `extra`.
        lots, lot, used: the fragments that its deltas gave, see `sseam._text`. While the block is
            in focus the state's `used` counts.
        block: the finished block, once it has ended and can be used.
        fault: why the call cannot be used, once it has ended so.
        started_at_end: how many blocks had started when it ended.
    """

    delta: type[Any] | None
    accepts: type[Any] | None
    index: int
    key: int | str
    kind: Kind
    wire: str
    fields: dict[str, Any]
    lots: Lots | None
    lot: list[str]
    used: int = 0
    block: Block | None = None
    fault: toolargs.BadArguments | None = None
    started_at_end: int | None = None

    @property
    def text(self) -> str:
        """The joined fragments."""
        return join(self.lots, self.lot, self.used)

    @property
    def arrived(self) -> bool:
        """Whether any fragment came at all; an empty one counts."""
        return self.lots is not None or self.used > 0

    @property
    def ended(self) -> bool:
        """Whether the block has ended, usable or not."""
        return self.started_at_end is not None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Part) and self._value() == other._value()

    def __hash__(self) -> int:
        return hash((self.index, self.used))

    def _value(self) -> tuple[object, ...]:
        shared = ("lots", "lot")
        own = (getattr(self, name) for name in self.__struct_fields__ if name not in shared)
        return (self.text, *own)


class Head(msgspec.Struct, frozen=True):
    """What concerns the message and not one block.

    Attributes:
        settings: see there.
        begun: the start event was given.
        id, model, raw: of the message, see `Message`.
        usage: token counts so far, None while none came.
        reason, raw_reason: the stop reason so far.
        deviations: how often each was seen.
        started: how many blocks started; open: how many of them have not ended; calls: how many
            ended as a call that can be used.
        call_ids: the ids of the calls so far, each with its block's index.
        fault: index of a block whose call is invalid and not yet judged.
        alternatives: the messages of further choices, set before the end.
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
    calls: int = 0
    fault: int | None = None
    alternatives: tuple[Message, ...] = ()
    result: Done | Failed | None = None


class State(msgspec.Struct, Generic[W], frozen=True, gc=False, eq=False):
    """A reducer's state: the protocol's own part and the common one.

    Attributes:
        focus: the block touched last, as it was when it came into focus or last changed but by
            growing; `_NOWHERE` before the first block and after the last.
        used: how many fragments of the open lot of `focus` are this state's own.
        wire: what only the protocol's reducer knows.
        head: what concerns the message.
        stored: every block by neutral index; stale at `focus.index`.
    """

    focus: Part
    used: int
    wire: W
    head: Head
    stored: Vector[Part]

    @property
    def part(self) -> Part:
        """The block in focus, with all that it has grown."""
        focus = self.focus
        return focus if focus.used == self.used else msgspec.structs.replace(focus, used=self.used)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, State) and self._value() == cast("State[Any]", other)._value()

    def __hash__(self) -> int:
        return hash((self.focus.index, self.used))

    def _value(self) -> tuple[object, ...]:
        return (self.focus.index, self.wire, self.head, tuple(parts(self)))


Step: TypeAlias = tuple[State[W], Events]

_NOWHERE = Part(None, None, -1, "", Kind.OPAQUE, "", {}, None, [], started_at_end=0)


def initial(settings: Settings, wire: W) -> State[W]:
    """The state before the first event."""
    return State(_NOWHERE, 0, wire, Head(settings, Index()), Vector())


# ---- the message


def set_wire(state: State[W], wire: W) -> State[W]:
    """The state with another protocol part."""
    return State(state.focus, state.used, wire, state.head, state.stored)


def set_head(state: State[W], **fields: Any) -> State[W]:
    """The state with other fields of its head."""
    head = msgspec.structs.replace(state.head, **fields)
    return State(state.focus, state.used, state.wire, head, state.stored)


def is_over(state: State[Any]) -> bool:
    """Whether the terminal event was given."""
    return state.head.result is not None


def begin(state: State[W], wire: W, *, id: str = "", model: str = "", raw: dict[str, Any] | None = None) -> Step[W]:
    """The message begins. `wire` is the protocol part of the next state."""
    head = msgspec.structs.replace(state.head, begun=True, id=id, model=model, raw=raw or {})
    return State(state.focus, state.used, wire, head, state.stored), (Start(id, model),)


def set_usage(state: State[W], wire: W, usage: Usage) -> Step[W]:
    """Token counts came; they replace the earlier ones. `wire` is the protocol part of the next state."""
    head = msgspec.structs.replace(state.head, usage=usage)
    return State(state.focus, state.used, wire, head, state.stored), (UsageUpdate(usage),)


def count(raw: Any, key: str) -> int | None:
    """The whole number that `raw` reports under `key`, None where it reports none."""
    value = cast("dict[str, Any]", raw).get(key) if type(raw) is dict else None
    return value if type(value) is int else None


def set_stop(state: State[W], wire: W, reason: str, raw_reason: str) -> State[W]:
    """The stop reason came. No block is in focus any more: a delta that comes now fits none."""
    head = msgspec.structs.replace(state.head, reason=reason, raw_reason=raw_reason)
    return State(_NOWHERE, 0, wire, head, _store(state))


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
    focused = state.part
    for part in state.stored:
        yield focused if part.index == focused.index else part


def open_parts(state: State[Any]) -> Iterator[Part]:
    """The blocks that have not ended."""
    return (part for part in parts(state) if not part.ended)


def focus(state: State[W], index: int) -> State[W]:
    """The state with block `index` in focus."""
    if state.focus.index == index:
        return state
    stored = _store(state)
    part = stored[index]
    return State(part, part.used, state.wire, state.head, stored)


def unfocus(state: State[W]) -> State[W]:
    """The state with no block in focus: a delta finds none that it fits."""
    return State(_NOWHERE, 0, state.wire, state.head, _store(state))


def _store(state: State[Any]) -> Vector[Part]:
    part = state.part
    return state.stored if part is _NOWHERE else state.stored.replace(part.index, part)


def _refocus(state: State[W], part: Part) -> State[W]:
    """The state with `part`, a newer version of the block in focus."""
    return State(part, part.used, state.wire, state.head, state.stored)


def update(state: State[W], **fields: Any) -> State[W]:
    """The state with further `fields` of the block in focus."""
    part = state.part
    return _refocus(state, msgspec.structs.replace(part, fields={**part.fields, **fields}))


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
        InvalidToolCall: a call without id or name, with an id that was used, or of an undeclared tool.
    """
    head = state.head
    index = head.started
    call_ids = _claim(head, index, key, fields) if kind is Kind.TOOL else head.call_ids
    part = Part(_DELTA.get(kind), accepts, index, key, kind, name, fields, None, [])
    head = msgspec.structs.replace(head, started=index + 1, open=head.open + 1, call_ids=call_ids)
    state = State(part, 0, wire, head, _store(state).append(part))
    events: Events = (_START[kind](part),)
    if text:
        state, more = append(state, text)
        events += more
    return state, events


def _claim(head: Head, index: int, key: int | str, fields: dict[str, Any]) -> Index[str]:
    """The call ids with this call's own, which must be new."""
    id, name = fields["id"], fields["name"]
    where = Where(block=key, call=id or None)
    if not id or not name:
        detail = f"tool_use block {key} has no {'name' if id else 'id'}"
        raise InvalidToolCall(detail, id=id, name=name, reason="unnamed", where=where)
    if head.call_ids.get(id) is not None:
        raise InvalidToolCall(f"tool id {id} used twice", id=id, name=name, reason="duplicate_id", where=where)
    tools = head.settings.tools
    if tools and name not in tools:
        detail = f"tool_use block {key} calls the undeclared tool {name!r}"
        hint = f"Declared: {', '.join(sorted(tools))}"
        raise InvalidToolCall(detail, id=id, name=name, reason="undeclared", where=where, hint=hint)
    return head.call_ids.add(id, index)


_START: dict[Kind, Callable[[Part], Event]] = {
    Kind.TEXT: lambda part: TextStart(part.index),
    Kind.THINKING: lambda part: ThinkingStart(part.index),
    Kind.REDACTED: lambda part: ThinkingStart(part.index, redacted=True),
    Kind.REFUSAL: lambda part: RefusalStart(part.index),
    Kind.TOOL: lambda part: ToolCallStart(part.index, part.fields["id"], part.fields["name"]),
    Kind.SERVER: lambda part: ServerTool(part.index, _server_block(part), False),
    Kind.OPAQUE: lambda part: Opaque(part.index, _opaque_block(part), False),
}


def append(state: State[W], text: str) -> Step[W]:
    """The block in focus, which has deltas, grows by `text`."""
    part = state.focus
    lot = part.lot
    used = state.used
    if used != len(lot) or used == LOT:
        return append(_make_room(state), text)
    lot.append(text)
    state = State(part, used + 1, state.wire, state.head, state.stored)
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
    return _refocus(state, msgspec.structs.replace(part, lots=lots, lot=lot, used=len(lot)))


def end(state: State[W]) -> Step[W]:
    """The block in focus ends.

    A call that cannot be used gives no event and is kept as the `fault` of the head: the reducer
    judges it with the event that follows.
    """
    head = state.head
    part = state.part
    result = _call(part, head.settings) if part.kind is Kind.TOOL else _BLOCK[part.kind](part)
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
    return OpaqueBlock(kind=part.wire, raw=part.fields["raw"], deltas=tuple(part.fields.get("deltas", ())))


# Every kind but a call makes its block from whatever has come so far.
_BLOCK: dict[Kind, Callable[[Part], Block]] = {
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


# ---- calls


def _call(part: Part, settings: Settings) -> ToolCall | toolargs.BadArguments:
    """The call that an ended block makes.

    No fragment arrived: the input given at the start stands. Any arrived: their joined text is the
    truth; a blank one means no arguments, unless the declared tool cannot do without.
    """
    fields = part.fields
    text = part.text
    if fields.get("custom"):
        arguments: dict[str, Any] | toolargs.BadArguments = {"input": text}
    elif not part.arrived and fields.get("input") is not None:
        arguments = fields["input"]
        text = msgspec.json.encode(arguments).decode()
    elif not text.strip():
        arguments, text = {}, "{}"
    else:
        arguments = toolargs.parse(text)
    if isinstance(arguments, toolargs.BadArguments):
        return arguments
    tool = settings.tools.get(fields["name"])
    if not arguments and tool is not None and tool.required:
        return toolargs.BadArguments("empty", f"the tool requires {', '.join(tool.required)}")
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


def _invalid(part: Part, fault: toolargs.BadArguments) -> InvalidToolCall:
    text = _FAULT_TEXTS.get(fault.reason, "tool_use block {} had invalid input_json_delta JSON")
    id, name = part.fields["id"], part.fields["name"]
    return InvalidToolCall(
        text.format(part.key),
        id=id,
        name=name,
        arguments_json=part.text,
        reason=fault.reason,
        where=Where(block=part.key, call=id),
        hint=f"Arguments of {name!r}: {fault.detail}",
    )


def same_input(part: Part) -> bool:
    """Whether the deltas of a call gave what its start gave already."""
    return toolargs.parse(part.text) == part.fields["input"]


def server_input(part: Part) -> dict[str, Any]:
    """The input of an ended block of a server-run tool. Raises `ProtocolError` for bad JSON."""
    arguments = toolargs.parse(part.text)
    if isinstance(arguments, toolargs.BadArguments):
        raise ProtocolError(
            f"{part.wire} block {part.key} had invalid input_json_delta JSON",
            where=Where(block=part.key),
            hint=arguments.detail,
        )
    return arguments


def withhold_unreleased(state: State[W]) -> Step[W]:
    """Take back every call that has ended and is not released: it will not be one."""
    events: list[Event] = []
    for part in list(parts(state)):
        if isinstance(part.block, ToolCall) and not _is_released(part, state.head):
            withheld = _withheld(part)
            gone = msgspec.structs.replace(part, block=None, fields={**part.fields, "withheld": withheld})
            state = set_head(_refocus(focus(state, part.index), gone), calls=state.head.calls - 1)
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
        text, reason = part.text, "invalid" if part.ended else "open"
    return WithheldCall(id=fields["id"], name=fields["name"], arguments_json=text, reason=reason, index=part.index)


# ---- the end


def finish(state: State[W], reason: str, raw_reason: str) -> Step[W]:
    """The protocol's own end was seen with this stop reason: `Done`, if everything fits.

    Raises:
        TruncatedStream: a block is still open, and the stop reason does not say that it was cut.
        InvalidToolCall: a call that cannot be used, and likewise.
        StopReasonError: the reason contradicts the content, or is not accepted.
    """
    if reason != state.head.reason or raw_reason != state.head.raw_reason:
        state = set_head(state, reason=reason, raw_reason=raw_reason)
    if reason not in stop.CUT_OFF:
        _require_closed(state)
        require_valid(state)
    if error := stop.check(reason, raw_reason, state.head.calls, state.head.settings.accept):
        raise error
    events: Events = ()
    if reason not in stop.ALWAYS_ACCEPTED:
        state, events = _close_cut(state)
    message = _message(state, complete=True, checked=reason in stop.ALWAYS_ACCEPTED)
    done = Done(reason, message)
    return set_head(unfocus(state), result=done), (*events, done)


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
    if not state.head.open:
        return
    unclosed = list(open_parts(state))
    calls = [part for part in unclosed if part.kind is Kind.TOOL]
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
    return f"{named} had {len(part.text):,} characters{stopped}"


def require_valid(state: State[Any]) -> None:
    """Raise the `InvalidToolCall` of the first call that ended and cannot be used."""
    if state.head.fault is not None:
        for part in parts(state):
            if part.fault is not None:
                raise _invalid(part, part.fault)


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
    return set_head(unfocus(state), result=failed), (failed,)


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
            content.append(part.block or _BLOCK[part.kind](part))
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
        alternatives=head.alternatives,
    )
