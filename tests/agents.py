"""What the tests of `run_agent` share: two tools, ways to run, and what every history must hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest

import virtual
from sseam.agent import AgentEvent, AgentRun, run_agent
from sseam.context import Context, HistoryMessage, ToolResultMessage, UserMessage
from sseam.errors import SseamError
from sseam.message import Message
from sseam.tools import tool

backends = pytest.mark.parametrize("backend", virtual.BACKENDS)


@tool(eager=True)
async def look(seconds: float = 1) -> str:
    """Looks at something, for so long."""
    await anyio.sleep(seconds)
    return "seen"


@tool
async def write(seconds: float = 0) -> str:
    """Changes something."""
    await anyio.sleep(seconds)
    return "written"


TOOLS = [look, write]
ASKED = UserMessage("go")


def begin(client: Any, **options: Any) -> AgentRun:
    options.setdefault("tools", TOOLS)
    return run_agent(client, "go", **options)


async def fail(run: AgentRun, error: type[Exception] = SseamError) -> Any:
    with pytest.raises(error) as caught:
        await run
    return caught.value


def kinds(events: list[AgentEvent]) -> list[str]:
    return [type(event).__name__ for event in events]


def results_of(messages: tuple[HistoryMessage, ...]) -> list[tuple[str, str]]:
    return [(r.call_id, r.text) for m in messages if isinstance(m, ToolResultMessage) for r in m.results]


def require_sendable(context: Context) -> None:
    """Every call has its one result right behind its message, in order, and no result is without a call."""
    messages = context.messages
    for number, message in enumerate(messages):
        if isinstance(message, Message):
            assert message.complete
            calls = [call.id for call in message.tool_calls]
            if calls:
                results = messages[number + 1]
                assert isinstance(results, ToolResultMessage)
                assert [result.call_id for result in results.results] == calls
        elif isinstance(message, ToolResultMessage):
            before = messages[number - 1]
            assert isinstance(before, Message)
            assert before.tool_calls
    assert Context.from_json(context.to_json()).messages == messages


async def read(run: AgentRun, into: list[AgentEvent], do: Callable[[AgentEvent], object] | None = None) -> None:
    """Read the events until there are no more, or the run fails."""
    async for event in run:
        into.append(event)
        if do is not None:
            do(event)
