from __future__ import annotations

from typing import Any

import msgspec
import pytest

from sseam import models
from sseam._call import prepare
from sseam.content import DocumentContent, ImageContent, TextContent
from sseam.context import (
    CachePolicy,
    Context,
    NamedTool,
    Options,
    OutputSchema,
    SystemPart,
    ToolResultMessage,
    UserMessage,
    assistant,
)
from sseam.errors import RequestError
from sseam.message import Message, ThinkingBlock, ToolCall
from sseam.tools import Tool, ToolResult

CALL = ToolCall(
    id="c1", name="look", arguments={"at": "é"}, arguments_json='{"at":"é"}', extra={"caller": {"type": "direct"}}
)

CONTEXTS = [
    Context(),
    Context(system="be brief", messages=(UserMessage("hi"),)),
    Context(
        system=(SystemPart("a", cache=True), SystemPart("b")),
        messages=(
            UserMessage((TextContent("see"), ImageContent(media_type="image/png", data="aGk=")), cache=True),
            Message(
                id="m1", model="x", protocol="openai-chat", content=(ThinkingBlock(thinking="hm"), CALL), complete=True
            ),
            ToolResultMessage(
                (ToolResult(call_id="c1", name="look", content=(TextContent("found"),), data={"n": [1]}),)
            ),
            UserMessage((DocumentContent(media_type="text/plain", text="doc", title="t"),)),
            assistant("done"),
        ),
        tools=({"name": "look", "input_schema": {"type": "object"}},),
    ),
]


@pytest.mark.parametrize("context", CONTEXTS)
def test_a_context_goes_through_json(context):
    assert Context.from_json(context.to_json()) == context


def test_a_tool_is_stored_as_what_the_model_sees_of_it():
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    tool = Tool(name="f", description="d", schema=schema, run=lambda args: args, strict=True)
    stored = Context.from_json(Context(tools=(tool,)).to_json())
    assert stored.tools == ({"name": "f", "description": "d", "inputSchema": schema, "strict": True},)


@pytest.mark.parametrize("make", [models.anthropic, models.openai, models.openai_responses, models.gemini])
@pytest.mark.parametrize("strict", [True, False, None])
def test_a_stored_context_gives_the_same_request(make, strict):
    schema = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}}
    tools = (Tool(name="f", schema=schema, strict=strict, validate=False), Tool(name="g", description="d", schema={}))
    context = Context(messages=(UserMessage("hi"),), tools=tools)
    stored = Context.from_json(context.to_json())
    first, second = (prepare(make("m"), each, Options(), key="k") for each in (context, stored))
    assert first.content == second.content


def test_an_output_limit_is_not_negative():
    with pytest.raises(RequestError, match=r"options\.max_output_tokens"):
        prepare(models.openai("m"), CONTEXTS[1], Options(max_output_tokens=-1), key="k")


@pytest.mark.parametrize(
    "value",
    [
        Options(),
        Options(tool_choice="required", thinking="high", stop_sequences=("a",)),
        Options(
            tool_choice=NamedTool("f"),
            output=OutputSchema(schema={"type": "object"}),
            cache=CachePolicy(retention="long"),
        ),
        models.anthropic("claude-opus-5"),
        models.compatible("m", base_url="http://localhost:11434/v1"),
    ],
)
def test_options_and_models_go_through_json(value):
    assert msgspec.json.decode(msgspec.json.encode(value), type=type(value)) == value


@pytest.mark.parametrize(
    ("context", "place"),
    [
        (Context(system="a\ud800"), "system holds half of a surrogate pair"),
        (Context(messages=(UserMessage("\udc00"),)), r"messages\[0\].content holds half"),
        (Context(tools=({"name": "f", "x": object()},)), r"tools\[0\].x is of type object"),
        (Context(tools=({"name": "f", "x": float("nan")},)), r"tools\[0\].x is nan"),
    ],
)
def test_what_cannot_be_stored_is_told_with_its_place(context, place):
    with pytest.raises(RequestError, match=place):
        context.to_json()


def test_what_is_no_context_is_refused():
    with pytest.raises(msgspec.ValidationError):
        Context.from_json(b'{"messages":[{"role":"nobody","content":"x"}]}')


def test_what_an_assistant_cannot_have_said() -> None:
    wrong: Any = ["yes"]
    with pytest.raises(TypeError, match="expected texts and blocks, got list"):
        assistant(wrong)


def test_the_repr_of_a_model_shows_no_key_of_its_address() -> None:
    model = models.compatible("m", base_url="https://me:pass-word@a.test/v1?api_key=very-secret&v=2")
    assert "base_url='https://me:***@a.test/v1?api_key=***&v=2'" in repr(model)
    broken = models.anthropic("m", base_url="http://me:pass-word@[::1?api_key=very-secret", keys=())
    assert "base_url='http://***@[::1?api_key=***'" in repr(broken).replace("me:***", "***")
    with pytest.raises(RequestError, match="is no address") as caught:
        prepare(broken, Context(messages=(UserMessage("x"),)), Options())
    assert "pass-word" not in str(caught.value)
    assert "very-secret" not in str(caught.value)
    assert repr(models.openai("gpt-5")).startswith("Model(id='gpt-5', protocol='openai-chat', base_url='https://api.")
