"""Streaming wire protocols of language-model APIs, read without a vendor's SDK.

Nothing half-finished is ever handed out as complete.
"""

import importlib
from typing import TYPE_CHECKING, Any

from . import events, protocols, sequence, sse
from .channel import EventStream
from .deadlines import TimeLimits
from .detect import detect
from .dialect import Dialect
from .errors import (
    ApiError,
    FramingError,
    InvalidToolCall,
    OutputProtocolViolation,
    ProtocolError,
    RequestError,
    SseamError,
    StopReasonError,
    StreamAborted,
    StreamSequenceError,
    TransportError,
    TruncatedStream,
    Where,
)
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
    Timing,
    ToolCall,
    Usage,
    WithheldCall,
)
from .model import ModelDone, ModelEvent, ModelText, ModelToolCall, model_events
from .parser import Parser, parse, parse_response
from .retry import Attempt, Retry
from .sse import Frame, Framer, Limits, Tail
from .stream import AsyncStream, Stream, aiter_events, iter_events

if TYPE_CHECKING:
    from . import agent, content, context, cost, faults, models, record, replay, serve, tap, testing, tools
    from .agent import (
        AgentRun,
        BoundModel,
        ModelClient,
        run_agent,
        run_agent_sync,
    )
    from .agent.approval import Allow, Deny, Edit
    from .agent.cancel import CancelToken
    from .agent.execute import ToolExecutor
    from .client import AsyncClient, Client
    from .content import DocumentContent, ImageContent, TextContent
    from .context import (
        CachePolicy,
        Context,
        Model,
        NamedTool,
        Options,
        OutputSchema,
        SystemPart,
        ToolResultMessage,
        UserMessage,
        assistant,
    )
    from .forged import discard_protocol_violation
    from .tools import Tool, ToolContext, ToolError, ToolResult, tool

__version__ = "0.1.0"

__all__ = [
    # the core, by hand
    "Parser",
    "parse",
    "parse_response",
    "detect",
    # the core, over a source of bytes
    "iter_events",
    "aiter_events",
    "Stream",
    "AsyncStream",
    "EventStream",
    "model_events",
    # a call over HTTP
    "AsyncClient",
    "Client",
    "Model",
    "Context",
    "SystemPart",
    "UserMessage",
    "TextContent",
    "ImageContent",
    "DocumentContent",
    "ToolResultMessage",
    "assistant",
    "Options",
    "NamedTool",
    "OutputSchema",
    "CachePolicy",
    "TimeLimits",
    "Retry",
    "Attempt",
    "discard_protocol_violation",
    # tools, and the loop around them
    "Tool",
    "tool",
    "ToolContext",
    "ToolResult",
    "ToolError",
    "ToolExecutor",
    "run_agent",
    "run_agent_sync",
    "AgentRun",
    "ModelClient",
    "BoundModel",
    "Allow",
    "Deny",
    "Edit",
    "CancelToken",
    # what comes out
    "Message",
    "Block",
    "TextBlock",
    "ThinkingBlock",
    "RedactedThinkingBlock",
    "RefusalBlock",
    "ToolCall",
    "ServerToolBlock",
    "OpaqueBlock",
    "WithheldCall",
    "Usage",
    "Timing",
    "Deviation",
    # fine events
    "Event",
    "Start",
    "TextStart",
    "TextDelta",
    "TextEnd",
    "ThinkingStart",
    "ThinkingDelta",
    "ThinkingEnd",
    "RefusalStart",
    "RefusalDelta",
    "RefusalEnd",
    "ToolCallStart",
    "ToolCallDelta",
    "ToolCallEnd",
    "ToolCallWithheld",
    "ServerTool",
    "Opaque",
    "UsageUpdate",
    "Done",
    "Failed",
    # atomic events
    "ModelEvent",
    "ModelText",
    "ModelToolCall",
    "ModelDone",
    # what goes wrong
    "SseamError",
    "ProtocolError",
    "FramingError",
    "TruncatedStream",
    "StopReasonError",
    "InvalidToolCall",
    "StreamSequenceError",
    "OutputProtocolViolation",
    "ApiError",
    "TransportError",
    "StreamAborted",
    "RequestError",
    "Where",
    # the edges: models to call and what that cost; recordings made, replayed, served and damaged
    "models",
    "cost",
    "record",
    "tap",
    "replay",
    "serve",
    "faults",
    "testing",
    # the parts
    "agent",
    "content",
    "context",
    "tools",
    "Dialect",
    "Frame",
    "Framer",
    "Limits",
    "Tail",
    "events",
    "protocols",
    "sequence",
    "sse",
]


# What stands above the core, by the module that has it. Whoever only parses bytes loads none of it.
_EDGES = {
    "agent": ("AgentRun", "BoundModel", "ModelClient", "run_agent", "run_agent_sync"),
    "agent.approval": ("Allow", "Deny", "Edit"),
    "agent.cancel": ("CancelToken",),
    "agent.execute": ("ToolExecutor",),
    "client": ("AsyncClient", "Client"),
    "content": ("DocumentContent", "ImageContent", "TextContent"),
    "context": (
        "CachePolicy",
        "Context",
        "Model",
        "NamedTool",
        "Options",
        "OutputSchema",
        "SystemPart",
        "ToolResultMessage",
        "UserMessage",
        "assistant",
    ),
    "forged": ("discard_protocol_violation",),
    "tools": ("Tool", "ToolContext", "ToolError", "ToolResult", "tool"),
}
_HOMES = {name: module for module, names in _EDGES.items() for name in names}
_MODULES = frozenset(
    (
        "agent",
        "content",
        "context",
        "cost",
        "faults",
        "models",
        "record",
        "replay",
        "serve",
        "tap",
        "testing",
        "tools",
    )
)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
