"""How a stream ends: the checks of its end, and the message, whole or partial."""

from __future__ import annotations

from typing import Any

from .. import stop
from ..errors import SseamError, TruncatedStream, Where
from ..events import Done, Event, Failed, ToolCallWithheld
from ..message import Block, Deviation, Message, ToolCall, Usage, WithheldCall
from .blocks import BLOCKS, end
from .calls import is_released, require_valid, withheld_call, withhold_unreleased
from .state import Events, Kind, Part, State, Step, W, focus, open_parts, parts, set_head, unfocus

__all__ = ["fail", "finish", "partial", "truncated"]


def finish(state: State[W], reason: str, raw_reason: str, *, cut: bool = False) -> Step[W]:
    """The protocol's own end was seen with this stop reason: `Done`, if everything fits.

    Args:
        cut: the protocol says that the output was cut, whatever the reason.

    Raises:
        TruncatedStream: a block is still open, and the stop reason does not say that it was cut.
        InvalidToolCall: a call that cannot be used, and likewise.
        StopReasonError: the reason contradicts the content, or is not accepted.
    """
    if reason != state.head.reason or raw_reason != state.head.raw_reason:
        state = set_head(state, reason=reason, raw_reason=raw_reason)
    if not cut and reason not in stop.CUT_OFF:
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
            events.append(ToolCallWithheld(part.index, withheld_call(part)))
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
            content.append(part.block or BLOCKS[part.kind](part))
        elif isinstance(part.block, ToolCall) and (checked or is_released(part, head)):
            content.append(part.block)
        else:
            withheld.append(withheld_call(part))
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
