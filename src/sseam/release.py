"""When a tool call may be run.

A closed block whose JSON parses is not yet proof: a provider that cuts its output at a limit may
close the last block with values missing. A call is released when a later block has started after it
ended (the model went on to something else), or when the stop reason has been checked.
"""

from __future__ import annotations

import msgspec

from .events import (
    Done,
    Event,
    Failed,
    Opaque,
    RefusalStart,
    ServerTool,
    TextStart,
    ThinkingStart,
    ToolCallEnd,
    ToolCallStart,
    ToolCallWithheld,
)
from .message import ToolCall

__all__ = ["Pending", "is_released", "step"]


def is_released(started_at_end: int, started: int) -> bool:
    """Whether a call that ended when `started_at_end` blocks had started is released at `started`."""
    return started > started_at_end


class Pending(msgspec.Struct, frozen=True):
    """Calls that ended and are not released, with their blocks' indexes, in order of their ends."""

    calls: tuple[tuple[int, ToolCall], ...] = ()


def step(pending: Pending, event: Event) -> tuple[Pending, tuple[ToolCall, ...]]:
    """The same rule read off the neutral events: what waits next, and the calls released by `event`.

    A call that the end of the stream does not release is taken out by its `ToolCallWithheld`, which
    comes before the `Done`.
    """
    match event:
        case ToolCallEnd(index, call):
            return Pending((*pending.calls, (index, call))), ()
        case ToolCallWithheld(index):
            return Pending(tuple(held for held in pending.calls if held[0] != index)), ()
        case TextStart() | ThinkingStart() | RefusalStart() | ToolCallStart() | Done():
            return Pending(), tuple(call for _, call in pending.calls)
        case ServerTool(ended=False) | Opaque(ended=False):
            return Pending(), tuple(call for _, call in pending.calls)
        case Failed():
            return Pending(), ()
        case _:
            return pending, ()
