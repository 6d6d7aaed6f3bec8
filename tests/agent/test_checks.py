"""What a run is refused for before it begins, and in which words."""

from __future__ import annotations

import asyncio
import re
import warnings
from functools import partial
from typing import Any

import httpx
import pytest

import sseam
from sseam.agent import BoundModel, run_agent, run_agent_sync
from sseam.context import Context, UserMessage
from sseam.testing import FakeClient

MODEL = sseam.models.anthropic("m")


@sseam.tool
def look(at: str) -> str:
    """Look."""
    return at


def plain(at: str) -> str:
    return at


class Bare:
    stream = 3


class Varied:
    def stream(self, *args: Any, **more: Any) -> list[Any]:
        return []


@pytest.mark.parametrize(
    ("client", "text"),
    [
        (sseam.Client(), "Client.stream takes more than a request. Wrap it: BoundModel(client, model)"),
        (sseam.AsyncClient(), "AsyncClient.stream takes more than a request. Wrap it: BoundModel(client, model)"),
        (httpx.Client(), "Client.stream takes more than a request"),
        (MODEL, "Model is no model client: a run asks what has `stream(request)`, such as a BoundModel"),
        (FakeClient, "FakeClient is no model client"),
        (Bare(), "Bare is no model client"),
        (None, "NoneType is no model client"),
    ],
)
def test_what_is_no_client(client: Any, text: str) -> None:
    with pytest.raises(TypeError, match=re.escape(text)):
        run_agent(client, "q")


@pytest.mark.parametrize("client", [Varied(), FakeClient(["x"]), BoundModel(sseam.Client(), MODEL)])
def test_what_can_be_asked(client: Any) -> None:
    run_agent(client, "q", tools=[look, {"name": "hear", "input_schema": {"type": "object"}}])


@pytest.mark.parametrize("context", [[{"role": "user", "content": "q"}], None, UserMessage("q"), b"q"])
def test_what_is_no_context(context: Any) -> None:
    with pytest.raises(TypeError, match=rf"the context is a {type(context).__name__}, expected text or a Context\("):
        run_agent(FakeClient(["x"]), context)


@pytest.mark.parametrize(
    ("tools", "text"),
    [
        ([lambda x: x], "tools[0] is a function: decorate it with @sseam.tool"),
        ([look, plain], "tools[1] is a function: decorate it with @sseam.tool"),
        ([partial(plain, "x")], "tools[0] is a partial: decorate it with @sseam.tool"),
        ([3], "tools[0]: expected a Tool, a dict or a name, got int"),
        (look, "tools: expected a list of tools, got a single one"),
        (plain, "tools: expected a list of tools, got a single one"),
        ({"name": "look"}, "tools: expected a list of tools, got a single one"),
    ],
)
def test_what_is_no_tool(tools: Any, text: str) -> None:
    with pytest.raises(TypeError, match=re.escape(text)):
        run_agent(FakeClient(["x"]), "q", tools=tools)


def test_what_is_no_tool_of_a_context() -> None:
    with pytest.raises(TypeError, match=r"tools\[0\] is a function"):
        run_agent(FakeClient(["x"]), Context(messages=(UserMessage("q"),), tools=(plain,)))


@pytest.mark.parametrize(
    ("tool", "text"),
    [(plain, "is a function: decorate it with @sseam.tool"), ({"name": "x"}, "is a dict: expected a sseam.Tool")],
)
def test_an_executor_runs_tools_alone(tool: Any, text: str) -> None:
    with pytest.raises(TypeError, match=re.escape(f"tools[0] {text}")):
        sseam.ToolExecutor([tool])


def test_a_bound_model_has_its_parts_in_order() -> None:
    with pytest.raises(TypeError, match="BoundModel takes a client and a model"):
        BoundModel(MODEL, sseam.Client())  # type: ignore[arg-type]


def test_no_loop_in_a_loop() -> None:
    async def main() -> None:
        with pytest.raises(RuntimeError, match=r"one is running here: use `await run_agent\(…\)`"):
            run_agent_sync(FakeClient(["x"]), "q")

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of a coroutine that nobody awaits
        asyncio.run(main())
