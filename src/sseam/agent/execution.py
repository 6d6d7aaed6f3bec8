"""What becomes of a tool call: its states, its one result, and the events on the way.

The tables say which state follows which, and under which status a call is settled from each.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import msgspec

from ..errors import SseamError
from ..message import ToolCall
from ..tools import ToolResult

__all__ = [
    "STATUSES",
    "TRANSITIONS",
    "CallLimitError",
    "CallState",
    "ExecutionStatus",
    "ToolEvent",
    "ToolExecution",
    "ToolFinished",
    "ToolProgress",
    "ToolStarted",
]

ExecutionStatus: TypeAlias = Literal["done", "error", "timeout", "denied", "cancelled", "not_run"]


class CallState(enum.Enum):
    """Where a call is."""

    WAITING = "waiting"  # known; the turn's stop reason was not checked yet
    CHECKING = "checking"  # its arguments are checked, then it waits for approval
    QUEUED = "queued"  # it may run as soon as there is a place
    RUNNING = "running"  # the tool has it
    SETTLED = "settled"  # it has its one result


# state → the states that may follow, each with the statuses under which a call is settled from there.
TRANSITIONS: Mapping[CallState, frozenset[CallState]] = MappingProxyType(
    {
        CallState.WAITING: frozenset({CallState.CHECKING, CallState.SETTLED}),
        CallState.CHECKING: frozenset({CallState.QUEUED, CallState.SETTLED}),
        CallState.QUEUED: frozenset({CallState.RUNNING, CallState.SETTLED}),
        CallState.RUNNING: frozenset({CallState.SETTLED}),
        CallState.SETTLED: frozenset(),
    }
)
STATUSES: Mapping[CallState, frozenset[ExecutionStatus]] = MappingProxyType(
    {
        CallState.WAITING: frozenset({"not_run"}),
        CallState.CHECKING: frozenset({"error", "denied", "not_run"}),
        CallState.QUEUED: frozenset({"not_run"}),
        CallState.RUNNING: frozenset({"done", "error", "timeout", "cancelled"}),
        CallState.SETTLED: frozenset(),
    }
)


class ToolExecution(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of one call. It goes through JSON and comes back equal.

    Attributes:
        call: the call as the model made it.
        status: "done"; "error" (the tool raised, or the arguments or the name cannot be used);
            "timeout" (the tool's own limit passed); "denied"; "cancelled" (given up while it ran: it
            may have had effects); "not_run" (given up before it began).
        result: what the model is told. An error result for every status but "done", which may be one too.
        edited: the arguments that the approval put in place of the call's; None: the call's own.
    """

    call: ToolCall
    status: ExecutionStatus
    result: ToolResult
    edited: dict[str, Any] | None = None


class _ToolEvent(msgspec.Struct, frozen=True, tag=True):
    pass


class ToolStarted(_ToolEvent, frozen=True):
    """The tool is being called."""

    call: ToolCall


class ToolProgress(_ToolEvent, frozen=True):
    """What the tool reported with `ToolContext.progress`."""

    call: ToolCall
    value: Any


class ToolFinished(_ToolEvent, frozen=True):
    """The call has its one result; it may never have started."""

    execution: ToolExecution


ToolEvent: TypeAlias = ToolStarted | ToolProgress | ToolFinished


class CallLimitError(SseamError):
    """The model made more calls in one turn than are allowed. None of them was started for it.

    Attributes:
        limit: how many are allowed.
    """

    kind = "tool call limit"

    def __init__(self, detail: str, *, limit: int = 0, **common: Any) -> None:
        super().__init__(detail, **common)
        self.limit = limit
