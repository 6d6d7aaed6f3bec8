"""The grammar of the neutral events, whatever protocol or provider they come from.

`step` is a function of a state and an event; `Validator` keeps the state of one stream. Both cost
O(1) an event on average, however many deltas a block has, and refuse with `StreamSequenceError`.
An event is judged whole before anything is taken from it: a refused one changes nothing.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Iterator
from typing import Any, Final, TypeAlias, get_origin

import msgspec

from . import release, toolargs
from ._compare import is_call, is_content, is_redacted, is_unicode, same_json
from ._persistent import Index, Vector
from ._text import Text
from .errors import StreamSequenceError, Where, excerpt
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
from .message import Usage

__all__ = ["BLOCKS", "TRANSITIONS", "Phase", "State", "Validator", "initial", "step"]


class Phase(enum.Enum):
    """Where a stream stands."""

    IDLE = "idle"  # nothing came yet
    STREAMING = "streaming"  # the message began
    TERMINAL = "terminal"  # Done or Failed came, and nothing may follow


# Phase and event to the next phase. A pair that is not here is refused.
TRANSITIONS: Final[dict[Phase, dict[type[Event], Phase]]] = {
    Phase.IDLE: {
        Start: Phase.STREAMING,
        Failed: Phase.TERMINAL,
    },
    Phase.STREAMING: {
        TextStart: Phase.STREAMING,
        TextDelta: Phase.STREAMING,
        TextEnd: Phase.STREAMING,
        ThinkingStart: Phase.STREAMING,
        ThinkingDelta: Phase.STREAMING,
        ThinkingEnd: Phase.STREAMING,
        RefusalStart: Phase.STREAMING,
        RefusalDelta: Phase.STREAMING,
        RefusalEnd: Phase.STREAMING,
        ToolCallStart: Phase.STREAMING,
        ToolCallDelta: Phase.STREAMING,
        ToolCallEnd: Phase.STREAMING,
        ToolCallWithheld: Phase.STREAMING,
        ServerTool: Phase.STREAMING,
        Opaque: Phase.STREAMING,
        UsageUpdate: Phase.STREAMING,
        Done: Phase.TERMINAL,
        Failed: Phase.TERMINAL,
    },
    Phase.TERMINAL: {},
}

# What opens a block, to its deltas and its ends. ServerTool and Opaque say by `ended` which they are.
BLOCKS: Final[dict[type[Event], tuple[type[Event], ...]]] = {
    TextStart: (TextDelta, TextEnd),
    ThinkingStart: (ThinkingDelta, ThinkingEnd),
    RefusalStart: (RefusalDelta, RefusalEnd),
    ToolCallStart: (ToolCallDelta, ToolCallEnd, ToolCallWithheld),
    ServerTool: (ServerTool,),
    Opaque: (Opaque,),
}

# What the tables cannot say, a function each below: indexes are consecutive in order of start; an end
# carries what the deltas gave; a call may be withheld after its end, until it is released; Done carries
# what ended.

_Opening: TypeAlias = TextStart | ThinkingStart | RefusalStart | ToolCallStart | ServerTool | Opaque
_Delta: TypeAlias = TextDelta | ThinkingDelta | RefusalDelta | ToolCallDelta
_End: TypeAlias = TextEnd | ThinkingEnd | RefusalEnd | ToolCallEnd | ToolCallWithheld | ServerTool | Opaque


class _Block(msgspec.Struct, frozen=True):
    """A block: what opened it, what its deltas gave, what ended it last, and how many had started then."""

    start: _Opening
    text: Text
    end: _End | None = None
    started_at_end: int = 0


class State(msgspec.Struct, frozen=True):
    """What is known after some events. It never changes: keep it, compare it, step from it twice.

    Attributes:
        phase: where the stream stands.
        interleaved: whether several blocks may be open at once.
        block: the block touched last, the newest version of it.
        blocks: every block by index; stale at `block`'s own index.
        open: how many blocks are open.
        call_ids: the ids of the tool calls, each with its block's index.
        usage: the token counts that came last.
    """

    phase: Phase
    interleaved: bool
    block: _Block | None
    blocks: Vector[_Block]
    call_ids: Index[str]
    open: int = 0
    usage: Usage | None = None


def initial(interleaved: bool = True) -> State:
    """The state before the first event. `interleaved=False` allows one open block at a time."""
    return State(Phase.IDLE, interleaved, None, Vector(), Index())


class Validator:
    """The grammar kept over one stream.

    A refused event leaves the validator as it was. One is for one stream: it cannot be started again.
    """

    __slots__ = ("_state",)

    def __init__(self, interleaved: bool = True) -> None:
        self._state = initial(interleaved)

    @property
    def phase(self) -> Phase:
        """Where the stream stands."""
        return self._state.phase

    def accept(self, event: Event) -> None:
        """Take the next event. Raises `StreamSequenceError` for one that may not come here."""
        self._state = step(self._state, event)


def step(state: State, event: Event) -> State:
    """The state after `event`. Raises `StreamSequenceError` for one that may not come here."""
    phase = TRANSITIONS[state.phase].get(type(event))
    if phase is None:
        raise _out_of_place(state, event)
    _require_types(state, event)
    try:
        match event:
            case TextDelta() | ThinkingDelta() | RefusalDelta() | ToolCallDelta():
                return _delta(state, event)
            case TextStart() | ThinkingStart() | RefusalStart() | ToolCallStart():
                return _start(state, event)
            case ServerTool() | Opaque():
                return _end_kept(state, event) if event.ended else _start(state, event)
            case TextEnd() | ThinkingEnd() | RefusalEnd():
                return _end_text(state, event)
            case ToolCallEnd():
                return _end_call(state, event)
            case ToolCallWithheld():
                return _withhold(state, event)
            case UsageUpdate():
                return msgspec.structs.replace(state, usage=event.usage)
            case Done():
                _check_done(state, event)
            case Failed():
                _check_failed(state, event)
            case _:
                pass  # Start: the table said it all
    except RecursionError:
        raise _refused(state, event, "holds values that are nested too deeply to compare") from None
    return msgspec.structs.replace(state, phase=phase)


# ---- blocks


def _blocks(state: State) -> Iterator[_Block]:
    """Every block in its newest version, by index."""
    newest = state.block
    for block in state.blocks:
        yield newest if newest is not None and block.start.index == newest.start.index else block


def _settled(state: State) -> Vector[_Block]:
    """`state.blocks` with no stale one."""
    newest = state.block
    return state.blocks if newest is None else state.blocks.replace(newest.start.index, newest)


def _find(state: State, event: _Delta | _End) -> _Block:
    """The block of a delta or an end: one of its own kind, not yet withheld. It may have ended."""
    index, block = event.index, state.block
    if block is None or block.start.index != index:
        if not 0 <= index < len(state.blocks):
            raise _refused(state, event, f"is for block {index}, which never started")
        block = state.blocks[index]
    if type(event) not in BLOCKS[type(block.start)]:
        raise _refused(state, event, f"is for block {index}, which {type(block.start).__name__} opened")
    return block


def _find_open(state: State, event: _Delta | _End) -> _Block:
    block = _find(state, event)
    if block.end is not None:
        raise _refused(state, event, f"is for block {event.index}, which has ended")
    return block


def _with(state: State, block: _Block, opened: int) -> State:
    """The state with another version of a block, and `opened` more (or fewer) open ones."""
    focused = state.block is not None and state.block.start.index == block.start.index
    return State(
        state.phase,
        state.interleaved,
        block,
        state.blocks if focused else _settled(state),
        state.call_ids,
        state.open + opened,
        state.usage,
    )


def _start(state: State, event: _Opening) -> State:
    index = len(state.blocks)
    if event.index != index:
        raise _refused(state, event, f"opens block {event.index}", legal=f"index {index}, the next one")
    if state.open and not state.interleaved:
        raise _refused(state, event, "opens a block while another one is open")
    call_ids = state.call_ids
    if type(event) is ToolCallStart:
        if not event.id or not event.name:
            raise _refused(state, event, f"has no {'name' if event.id else 'id'}")
        if (other := call_ids.get(event.id)) is not None:
            raise _refused(state, event, f"uses the call id of block {other} again")
        call_ids = call_ids.add(event.id, index)
    block = _Block(event, Text.empty())
    return msgspec.structs.replace(
        state, block=block, blocks=_settled(state).append(block), call_ids=call_ids, open=state.open + 1
    )


def _delta(state: State, event: _Delta) -> State:
    block = _find_open(state, event)
    text = event.arguments_json if isinstance(event, ToolCallDelta) else event.text
    return _with(state, _Block(block.start, block.text.add(text)), 0)


def _ended(state: State, block: _Block, event: _End) -> State:
    return _with(state, _Block(block.start, block.text, event, len(state.blocks)), -1 if block.end is None else 0)


def _end_text(state: State, event: TextEnd | ThinkingEnd | RefusalEnd) -> State:
    block = _find_open(state, event)
    _require_equal(state, event, "text", event.text, block.text.value())
    if event.text and is_redacted(block.start):
        raise _refused(state, event, "gives text to redacted thinking")
    return _ended(state, block, event)


def _end_kept(state: State, event: ServerTool | Opaque) -> State:
    block = _find_open(state, event)
    assert isinstance(block.start, ServerTool | Opaque)
    _require_equal(state, event, "block.kind", event.block.kind, block.start.block.kind)
    return _ended(state, block, event)


# ---- calls


def _end_call(state: State, event: ToolCallEnd) -> State:
    block = _find_open(state, event)
    call = event.call
    _require_start(state, event, block)
    if not is_unicode(call.arguments_json):
        raise _refused(state, event, "has a call whose arguments_json is no Unicode text")
    if call.kind == "custom":
        if block.text.arrived:
            _require_equal(state, event, "call.arguments_json", call.arguments_json, block.text.value())
        given: Any = {"input": call.arguments_json}
    elif call.kind == "function":
        given = _given(state, event, block)
    else:
        raise _refused(state, event, f"has a call of kind {call.kind!r}", legal="function or custom")
    if not same_json(call.arguments, given):
        raise _refused(state, event, "has a call whose arguments are not what its arguments_json spells")
    return _ended(state, block, event)


def _given(state: State, event: ToolCallEnd, block: _Block) -> Any:
    """The object that the deltas gave or, where none came, that `arguments_json` spells.

    Blank text stands for no arguments, and the call may spell that out.
    """
    text, joined = event.call.arguments_json, block.text.value()
    if joined.strip():
        _require_equal(state, event, "call.arguments_json", text, joined)
    spelled = toolargs.parse(text) if text.strip() else {}
    if isinstance(spelled, toolargs.BadArguments):
        raise _refused(state, event, f"has a call whose arguments_json cannot be used: {spelled.detail}")
    if spelled and block.text.arrived and not joined.strip():
        raise _refused(state, event, "has a call with arguments although its deltas gave none")
    return spelled


def _withhold(state: State, event: ToolCallWithheld) -> State:
    block, call = _find(state, event), event.call
    if isinstance(block.end, ToolCallWithheld):
        raise _refused(state, event, f"is for block {event.index}, which was withheld")
    _require_start(state, event, block)
    _require_equal(state, event, "call.index", call.index, event.index)
    if isinstance(block.end, ToolCallEnd):
        if release.is_released(block.started_at_end, len(state.blocks)):
            raise _refused(state, event, "takes back a call that the start of a later block released")
        _require_equal(state, event, "call.arguments_json", call.arguments_json, block.end.call.arguments_json)
        reasons = ("unreleased",)
    else:
        if block.text.arrived:
            _require_equal(state, event, "call.arguments_json", call.arguments_json, block.text.value())
        reasons = ("open", "invalid")
    if call.reason not in reasons:
        raise _refused(state, event, f"gives the reason {call.reason!r}", legal=" or ".join(reasons))
    return _ended(state, block, event)


def _require_start(state: State, event: ToolCallEnd | ToolCallWithheld, block: _Block) -> None:
    """A call's id and name never change."""
    assert isinstance(block.start, ToolCallStart)
    _require_equal(state, event, "call.id", event.call.id, block.start.id)
    _require_equal(state, event, "call.name", event.call.name, block.start.name)


# ---- the end


def _check_done(state: State, event: Done) -> None:
    message = event.message
    if state.open:
        raise _refused(state, event, "leaves blocks open", legal="their ends")
    if not message.complete:
        raise _refused(state, event, "has a message that is not complete")
    _require_equal(state, event, "reason", event.reason, message.stop_reason)
    if state.usage is not None and message.usage != state.usage:
        raise _refused(state, event, "has a message with another usage than the last UsageUpdate")
    blocks = list(_blocks(state))
    withheld = tuple(block.end.call for block in blocks if isinstance(block.end, ToolCallWithheld))
    if message.withheld != withheld:
        raise _refused(state, event, f"has a message that does not withhold the {len(withheld)} calls that were")
    kept = [block for block in blocks if not isinstance(block.end, ToolCallWithheld)]
    if type(message.content) is not tuple or len(message.content) != len(kept):
        raise _refused(state, event, f"has a message whose content is not a tuple of the {len(kept)} ended blocks")
    for position, (block, content) in enumerate(zip(kept, message.content, strict=True)):
        if not is_content(block.start, block.end, content):
            raise _refused(state, event, f"has content[{position}] unlike what block {block.start.index} gave")


def _check_failed(state: State, event: Failed) -> None:
    message = event.message
    if message.complete:
        raise _refused(state, event, "has a message that is complete")
    if event.error.partial != message:
        raise _refused(state, event, "has a message that is not its error's partial")
    if type(message.content) is not tuple:
        raise _refused(state, event, "has a message whose content is not a tuple")
    ended = (block.end.call for block in _blocks(state) if isinstance(block.end, ToolCallEnd))
    for call in message.tool_calls:
        if not any(is_call(call, other) for other in ended):  # goes on in `ended` where the last one was found
            raise _refused(state, event, f"has a message with the call {call.id!r}, which did not end so")


# ---- refusals


@functools.cache
def _fields(kind: type[Event]) -> tuple[tuple[str, Any], ...]:
    """The event's fields, each with the type that its value must have, to the first level."""
    return tuple(
        (field.name, tuple if get_origin(field.type) is tuple else field.type) for field in msgspec.structs.fields(kind)
    )


def _require_types(state: State, event: Event) -> None:
    # A struct does not check what its constructor is given.
    for name, kind in _fields(type(event)):
        value = getattr(event, name)
        if not isinstance(value, kind):
            legal = getattr(kind, "__name__", str(kind))
            raise _refused(state, event, f"has {type(value).__name__} as its {name}", legal=legal)


def _require_equal(state: State, event: Event, field: str, got: object, expected: object) -> None:
    if got != expected:
        shown = excerpt(expected) if isinstance(expected, str) else repr(expected)
        found = excerpt(got) if isinstance(got, str) else repr(got)
        raise _refused(state, event, f"has {field} {found}", legal=shown)


_NEUTRAL = TRANSITIONS[Phase.IDLE].keys() | TRANSITIONS[Phase.STREAMING].keys()


def _out_of_place(state: State, event: object) -> StreamSequenceError:
    if type(event) not in _NEUTRAL:
        return _refused(state, event, "is no neutral event")
    if state.phase is Phase.TERMINAL:
        return _refused(state, event, "came after the terminal event", legal="nothing")
    if state.phase is Phase.STREAMING:
        return _refused(state, event, "came a second time")
    return _refused(state, event, "came before Start")


def _legal(state: State) -> str:
    """What might have come instead."""
    if state.phase is not Phase.STREAMING:
        return " or ".join(kind.__name__ for kind in TRANSITIONS[state.phase]) or "nothing"
    open_blocks = [block.start for block in _blocks(state) if block.end is None]
    goes_on = ", ".join(
        f"{'/'.join(kind.__name__ for kind in BLOCKS[type(start)])} for block {start.index}"
        for start in open_blocks[:8]  # enough to see the fault by
    )
    begins = f"the start of block {len(state.blocks)}" if state.interleaved or not open_blocks else ""
    end = "" if open_blocks else "Done"
    return ", ".join(part for part in (goes_on, begins, "UsageUpdate", end, "Failed") if part)


def _refused(state: State, event: object, fault: str, legal: str | None = None) -> StreamSequenceError:
    kind = type(event).__name__
    return StreamSequenceError(
        f"{kind} {fault}",
        event_type=kind,
        phase=state.phase.value,
        where=_place(event),
        hint=f"Legal here: {legal or _legal(state)}",
    )


def _place(event: object) -> Where:
    match event:
        case ToolCallStart():
            return Where(block=event.index, call=event.id or None)
        case ToolCallEnd() | ToolCallWithheld():
            return Where(block=event.index, call=getattr(event.call, "id", None) or None)
        case _ if type(event) in _NEUTRAL:
            return Where(block=getattr(event, "index", None))
        case _:
            return Where()
