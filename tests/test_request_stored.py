"""Stored calls are history: they are not validated again (B198)."""

from __future__ import annotations

import importlib
import json
from typing import Any

import pytest

from sseam import models
from sseam.content import TextContent
from sseam.context import Context, Model, Options, ToolResultMessage, UserMessage
from sseam.message import Message, ToolCall
from sseam.protocols import NAMES
from sseam.tools import Tool, ToolArgumentsError, ToolResult

MODELS = [
    models.anthropic("claude-opus-4-8"),
    models.openai("gpt-5"),
    models.openai_responses("gpt-5"),
    models.gemini("gemini-2.5-pro"),
    models.gemini_interactions("gemini-3-pro"),
]
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}},
    "required": ["a"],
    "additionalProperties": False,
}
TOOL = Tool(name="look", description="looks", schema=SCHEMA)


@pytest.mark.parametrize("model", MODELS, ids=[model.protocol for model in MODELS])
@pytest.mark.parametrize("arguments", [{}, {"b": 1}, {"a": "x"}], ids=json.dumps)
@pytest.mark.parametrize("tools", [(TOOL,), ()], ids=["declared", "no longer declared"])
def test_b198_a_stored_call_may_hold_what_its_schema_refuses(
    model: Model, arguments: dict[str, Any], tools: tuple[Tool, ...]
) -> None:
    with pytest.raises(ToolArgumentsError):
        TOOL.arguments(json.dumps(arguments))
    call = ToolCall(id="call_1", name="look", arguments=arguments, arguments_json=json.dumps(arguments))
    asked = Message(
        content=(call,), protocol=model.protocol, model=model.id, complete=True, stop_reason="tool_use", id="m1"
    )
    result = ToolResult(call_id="call_1", name="look", content=(TextContent("sunny"),))
    messages = (UserMessage("q"), asked, ToolResultMessage((result,)), UserMessage("go on"))
    request = importlib.import_module(f"sseam.protocols.{NAMES[model.protocol]}.request")
    sent = request.body(model, Context(messages=messages, tools=tools), Options(skip_signatures=True))
    history = {name: value for name, value in sent.items() if name != "tools"}
    assert '"look"' in json.dumps(history)
    assert "sunny" in json.dumps(history)
    assert arguments in stored_arguments(history)


def stored_arguments(value: Any) -> list[Any]:
    """The arguments of every call in a body, whichever the protocol's name for them."""
    if isinstance(value, list):
        return [found for inner in value for found in stored_arguments(inner)]
    if not isinstance(value, dict):
        return []
    own = [value[name] for name in ("input", "args", "arguments") if name in value]
    own = [json.loads(one) if isinstance(one, str) else one for one in own]
    return [*own, *(found for inner in value.values() for found in stored_arguments(inner))]
