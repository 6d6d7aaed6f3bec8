"""The neutral events: one small union for every protocol.

A block gives a start, its deltas, and an end; `index` numbers blocks from 0 in the order in which
they start, whatever the wire's own index was. A stream ends in exactly one `Done` or `Failed`.
`sseam.sequence` holds the grammar.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from .errors import SseamError
from .message import Message, OpaqueBlock, ServerToolBlock, ToolCall, Usage, WithheldCall

__all__ = [
    "Done",
    "Event",
    "Failed",
    "Opaque",
    "RefusalDelta",
    "RefusalEnd",
    "RefusalStart",
    "ServerTool",
    "Start",
    "TextDelta",
    "TextEnd",
    "TextStart",
    "ThinkingDelta",
    "ThinkingEnd",
    "ThinkingStart",
    "ToolCallDelta",
    "ToolCallEnd",
    "ToolCallStart",
    "ToolCallWithheld",
    "UsageUpdate",
]


# gc=False: an event refers to nothing that could refer back to it, and thousands are alive at once
# in a list; the collector need not visit them. But `Failed` holds an error, whose traceback holds
# whatever raised it.
class _Event(msgspec.Struct, frozen=True, gc=False, tag=True):
    pass


class Start(_Event, frozen=True, gc=False):
    """The message began. `id` and `model` are "" where the wire does not say."""

    id: str = ""
    model: str = ""


class TextStart(_Event, frozen=True, gc=False):
    """A block of visible text began."""

    index: int


class TextDelta(_Event, frozen=True, gc=False):
    """More visible text."""

    index: int
    text: str


class TextEnd(_Event, frozen=True, gc=False):
    """The text block ended; `text` is all of it, `citations` the provider's own objects."""

    index: int
    text: str
    citations: tuple[dict[str, Any], ...] = ()


class ThinkingStart(_Event, frozen=True, gc=False):
    """A block of reasoning began. `redacted`: its content comes only encrypted."""

    index: int
    redacted: bool = False


class ThinkingDelta(_Event, frozen=True, gc=False):
    """More reasoning text."""

    index: int
    text: str


class ThinkingEnd(_Event, frozen=True, gc=False):
    """The reasoning block ended; `text` is all of it, `signature` what a replay needs."""

    index: int
    text: str
    signature: str | None = None


class RefusalStart(_Event, frozen=True, gc=False):
    """A block of refusal text began, where the provider keeps it apart from the answer."""

    index: int


class RefusalDelta(_Event, frozen=True, gc=False):
    """More refusal text."""

    index: int
    text: str


class RefusalEnd(_Event, frozen=True, gc=False):
    """The refusal block ended; `text` is all of it."""

    index: int
    text: str


class ToolCallStart(_Event, frozen=True, gc=False):
    """A tool call began. `id` and `name` never change afterwards."""

    index: int
    id: str
    name: str


class ToolCallDelta(_Event, frozen=True, gc=False):
    """A fragment of the argument text. It is for a screen: parsable is not finished."""

    index: int
    arguments_json: str


class ToolCallEnd(_Event, frozen=True, gc=False):
    """The block ended and this is its call. Not yet released: see `sseam.release`."""

    index: int
    call: ToolCall


class ToolCallWithheld(_Event, frozen=True, gc=False):
    """The block will never be a call: it was cut off, or cannot be used. Comes right before `Done`."""

    index: int
    call: WithheldCall


class ServerTool(_Event, frozen=True, gc=False):
    """A block of a tool that the provider runs: once when it began, once, with `ended`, when whole."""

    index: int
    block: ServerToolBlock
    ended: bool


class Opaque(_Event, frozen=True, gc=False):
    """A block of a kind that is not modelled: once when it began, once, with `ended`, when whole."""

    index: int
    block: OpaqueBlock
    ended: bool


class UsageUpdate(_Event, frozen=True, gc=False):
    """Token counts so far. They replace earlier ones, never add to them."""

    usage: Usage


class Done(_Event, frozen=True, gc=False):
    """The protocol was wrapped up and every check passed. `reason` is the neutral stop reason."""

    reason: str
    message: Message


class Failed(_Event, frozen=True, gc=True):
    """The stream failed. `message` is what was received whole; it equals `error.partial`."""

    error: SseamError
    message: Message


Event: TypeAlias = (
    Start
    | TextStart
    | TextDelta
    | TextEnd
    | ThinkingStart
    | ThinkingDelta
    | ThinkingEnd
    | RefusalStart
    | RefusalDelta
    | RefusalEnd
    | ToolCallStart
    | ToolCallDelta
    | ToolCallEnd
    | ToolCallWithheld
    | ServerTool
    | Opaque
    | UsageUpdate
    | Done
    | Failed
)
