"""An agent: a model and its tools in a loop, under asyncio or trio."""

from .loop import (
    AgentEvent,
    AgentResult,
    ModelRequest,
    RunCancelled,
    RunReport,
    TurnCommitted,
    TurnDiscarded,
    TurnLimitError,
    TurnStarted,
)
from .run import (
    AgentRun,
    BoundModel,
    ModelClient,
    ModelStream,
    RunOptions,
    RunTimeout,
    run_agent,
    run_agent_sync,
)

__all__ = [
    "AgentEvent",
    "AgentResult",
    "AgentRun",
    "BoundModel",
    "ModelClient",
    "ModelRequest",
    "ModelStream",
    "RunCancelled",
    "RunOptions",
    "RunReport",
    "RunTimeout",
    "TurnCommitted",
    "TurnDiscarded",
    "TurnLimitError",
    "TurnStarted",
    "run_agent",
    "run_agent_sync",
]
