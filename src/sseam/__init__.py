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
    from . import faults, models, record, replay, serve, tap
    from .client import AsyncClient, Client

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
    # the core, over HTTP
    "AsyncClient",
    "Client",
    "TimeLimits",
    "Retry",
    "Attempt",
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
    "Where",
    # the edges: models to call; recordings made, replayed, served and damaged
    "models",
    "record",
    "tap",
    "replay",
    "serve",
    "faults",
    # the parts
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


_EDGES = frozenset(("faults", "models", "record", "replay", "serve", "tap"))


def __getattr__(name: str) -> Any:
    # Whoever only parses bytes does not load what makes requests.
    if name in ("AsyncClient", "Client"):
        from . import client

        return getattr(client, name)
    if name in _EDGES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
