"""Model, context and options → the HTTP request of a call: what cannot be sent is told before anything is sent."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from sseam import Client, RequestError, models
from sseam.content import TextContent
from sseam.context import Context, Model, Options, ToolResultMessage, UserMessage
from sseam.message import Message, ToolCall
from sseam.tools import ToolResult

MODELS = [
    models.anthropic("claude-opus-5"),
    models.openai("gpt-5"),
    models.openai_responses("gpt-5"),
    models.gemini("gemini-3-pro"),
    models.gemini_interactions("gemini-3-pro"),
]
HALF = "a\ud800"
HI = UserMessage("hi")


def called(arguments: dict[str, Any], result: str) -> Context:
    text = '{"a":"\ud800"}'
    call = ToolCall(id="c1", name="f", arguments=arguments, arguments_json=text if arguments else "{}")
    found = ToolResult(call_id="c1", name="f", content=(TextContent(result),))
    return Context(messages=(HI, Message(content=(call,), complete=True), ToolResultMessage((found,))))


def declared(*tools: Any) -> Context:
    return Context(messages=(HI,), tools=tools)


REFUSED: dict[str, tuple[Context, Options]] = {
    "user": (Context(messages=(UserMessage(HALF),)), Options()),
    "system": (Context(system=HALF, messages=(HI,)), Options()),
    "tool name": (declared({"name": HALF, "input_schema": {"type": "object"}}), Options()),
    "tool description": (declared({"name": "f", "description": HALF, "input_schema": {"type": "object"}}), Options()),
    "result": (called({}, HALF), Options(skip_signatures=True)),
    "arguments": (called({"a": HALF}, "x"), Options(skip_signatures=True)),
    "extra_body": (Context(messages=(HI,)), Options(extra_body={"a": HALF})),
    "object": (Context(messages=(HI,)), Options(extra_body={"a": object()})),
    "nan": (Context(messages=(HI,)), Options(extra_body={"a": float("nan")})),
    "no name": (declared({"input_schema": {}}), Options()),
    "one name twice": (declared(*[{"name": "f", "input_schema": {"type": "object"}}] * 2), Options()),
    "schema": (declared({"name": "f", "input_schema": 5}), Options()),
    "declarations": (declared({"functionDeclarations": 5}), Options()),
    "nothing": (declared({"type": "function", "function": {}}), Options()),
}


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.protocol)
@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_sent_is_a_request_error(model: Model, what: str) -> None:
    context, options = REFUSED[what]
    with pytest.raises(RequestError):
        Client().stream(model, context, options, key="sk-test")


@pytest.mark.parametrize("model", MODELS[:2], ids=lambda model: model.protocol)
@pytest.mark.parametrize("options", [Options(stop_sequences=(HALF,)), Options(metadata={"user_id": HALF})])
def test_options_too(model: Model, options: Options) -> None:
    with pytest.raises(RequestError, match="half of a surrogate pair"):
        Client().stream(model, Context(messages=(HI,)), options, key="sk-test")


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.protocol)
def test_a_models_name_too(model: Model) -> None:
    with pytest.raises(RequestError):
        Client().stream(msgspec.structs.replace(model, id=HALF), Context(messages=(HI,)), key="sk-test")
