"""Context, model and options → exact body, for the maker and the dialects; each body is checked by the schema too."""

from __future__ import annotations

import copy

import pytest

from schemas import valid
from sseam import models
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
from sseam.message import Message, OpaqueBlock, RefusalBlock, TextBlock, ThinkingBlock, ToolCall
from sseam.protocols.openai_chat import request
from sseam.protocols.openai_chat.request_dialects import DIALECTS
from sseam.tools import Tool, ToolResult

GPT = models.openai("gpt-4o")
HI = UserMessage("hi")
USER = {"role": "user", "content": "hi"}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
STRICT = {
    "type": "object",
    "properties": {"city": {"type": ["string", "null"]}},
    "required": ["city"],
    "additionalProperties": False,
}
LOOK = Tool(name="look", description="looks", schema=SCHEMA)
FUNCTION = {"name": "look", "description": "looks", "parameters": SCHEMA}
CALL = ToolCall(id="call_1", name="look", arguments={"city": "Paris"}, arguments_json='{ "city":"Paris"}')
CALLED = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{ "city":"Paris"}'}}


def server(dialect, id="m", **fields):
    return models.compatible(id, base_url="http://h/v1", dialect=dialect, **fields)


def body(messages=(HI,), model=GPT, system="", tools=(), stream=True, **options):
    context = Context(system=system, messages=tuple(messages), tools=tuple(tools))
    return valid("openai-chat", request.body(model, context, Options(**options), stream=stream))


def turn(*content, **rest):
    return Message(content=content, **{"protocol": "openai-chat", "model": "", "complete": True, **rest})


def results(id="call_1", *content, **rest):
    return ToolResultMessage((ToolResult(call_id=id, name="look", content=content or (TextContent("sunny"),), **rest),))


def test_the_smallest_body_says_nothing_that_was_not_set():
    assert body(stream=False) == {"model": "gpt-4o", "messages": [USER]}


@pytest.mark.parametrize(
    ("dialect", "asked"),
    [
        ("openai", True),
        ("azure-openai", True),
        ("vllm", True),
        ("ollama", True),
        ("xai", True),
        ("mistral", False),
        ("groq", False),
        ("perplexity", False),
        (None, False),
    ],
)
def test_b251_usage_is_asked_for_where_the_dialect_has_it(dialect, asked):
    wire = body(model=server(dialect))
    assert wire.get("stream_options") == ({"include_usage": True} if asked else None)
    assert "stream_options" not in body(model=server(dialect), stream=False)


@pytest.mark.parametrize(
    ("model", "field"),
    [
        (models.openai("gpt-5"), "max_completion_tokens"),
        (GPT, "max_completion_tokens"),
        (server("azure-openai"), "max_completion_tokens"),
        (server("openrouter"), "max_completion_tokens"),
        (server("deepseek"), "max_tokens"),
        (server("ollama"), "max_tokens"),
        (server("mistral"), "max_tokens"),
        (server(None), "max_tokens"),
    ],
)
def test_b245_the_limit_has_its_right_name(model, field):
    wire = body(model=model, max_output_tokens=7)
    assert {key: value for key, value in wire.items() if key.startswith("max_")} == {field: 7}


@pytest.mark.parametrize(
    ("model", "role"),
    [
        (GPT, "system"),
        (models.openai("o3"), "developer"),
        (server("azure-openai", "gpt-5"), "developer"),
        (server("openrouter", "openai/gpt-5"), "system"),
    ],
)
def test_the_role_of_the_system_prompt(model, role):
    wire = body(model=model, system=(SystemPart("a"), SystemPart("b", cache=True)))
    assert wire["messages"] == [{"role": role, "content": "a\n\nb"}, USER]


@pytest.mark.parametrize(
    ("model", "content"),
    [
        (GPT, None),
        (server("deepseek"), None),
        (server(None), None),
        (server("mistral"), ""),
        (server("nvidia-nim"), ""),
    ],
)
def test_b253_the_content_of_a_turn_of_nothing_but_calls(model, content):
    assert body([HI, turn(CALL), results()], model)["messages"][1]["content"] == content
    assert body([HI, turn(TextBlock(text="x"), CALL), results()], model)["messages"][1]["content"] == "x"


IMAGE = ImageContent(media_type="image/png", data="aGk=")
PDF = DocumentContent(media_type="application/pdf", data="aGk=", title="t.pdf")
SHOWN = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}


@pytest.mark.parametrize(
    ("messages", "wire"),
    [
        (
            [HI, turn(TextBlock(text="a"), TextBlock(text="b"), CALL), results(), turn(TextBlock(text="c"))],
            [
                USER,
                {"role": "assistant", "content": "ab", "tool_calls": [CALLED]},
                {"role": "tool", "tool_call_id": "call_1", "content": "sunny"},
                {"role": "assistant", "content": "c"},
            ],
        ),
        # The results stand directly behind their calls; what they show comes after the last of them.
        (
            [
                HI,
                turn(CALL, ToolCall(id="call_2", name="look", arguments={}, arguments_json="")),
                results("call_1", TextContent("see"), IMAGE),
                results("call_2", is_error=True),
            ],
            [
                USER,
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        CALLED,
                        {"id": "call_2", "type": "function", "function": {"name": "look", "arguments": "{}"}},
                    ],
                },
                {"role": "tool", "tool_call_id": "call_1", "content": "see\n(attached below)"},
                {"role": "tool", "tool_call_id": "call_2", "content": "Error: sunny"},
                {
                    "role": "user",
                    "content": [{"type": "text", "text": "Attached to the result of look (call_1):"}, SHOWN],
                },
            ],
        ),
        ([UserMessage((TextContent("one"),))], [{"role": "user", "content": "one"}]),
        (
            [UserMessage((TextContent("see"), IMAGE, ImageContent(media_type="", url="https://x/i"), PDF))],
            [
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "see"},
                        SHOWN,
                        {"type": "image_url", "image_url": {"url": "https://x/i"}},
                        {
                            "type": "file",
                            "file": {"filename": "t.pdf", "file_data": "data:application/pdf;base64,aGk="},
                        },
                    ],
                }
            ],
        ),
        (
            [HI, turn(RefusalBlock(text="no")), HI],
            [USER, {"role": "assistant", "content": None, "refusal": "no"}, USER],
        ),
        (
            [
                HI,
                turn(ToolCall(id="c", name="run", arguments={"input": "ls"}, arguments_json="ls", kind="custom")),
                results("c"),
            ],
            [
                USER,
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "run", "input": "ls"}}],
                },
                {"role": "tool", "tool_call_id": "c", "content": "sunny"},
            ],
        ),
    ],
)
def test_messages(messages, wire):
    assert body(messages)["messages"] == wire


def test_messages_in_the_form_of_other_servers():
    custom = turn(ToolCall(id="call_1", name="run", arguments={"input": "ls"}, arguments_json="ls", kind="custom"))
    _, said, result = body([HI, custom, results()], server("mistral"))["messages"]
    id = said["tool_calls"][0]["id"]
    assert said["tool_calls"][0]["function"] == {"name": "run", "arguments": '{"input":"ls"}'}
    assert result == {"role": "tool", "tool_call_id": id, "content": "sunny", "name": "run"}
    assert (len(id), id.isalnum()) == (9, True)  # B204
    user = UserMessage((TextContent("x"), ImageContent(media_type="", url="https://x/i"), PDF))
    assert [part["type"] for part in body([user], server("ollama"))["messages"][0]["content"]] == [
        "text",
        "text",
        "text",
    ]
    assert body([HI, turn(RefusalBlock(text="no")), HI], server(None))["messages"][1] == {
        "role": "assistant",
        "content": "no",
    }


def test_a_turn_of_nothing_that_the_protocol_has_words_for_goes():
    image = turn(OpaqueBlock(kind="image", raw={"type": "image"}))
    assert body([HI, image, HI])["messages"] == [USER, USER]


def test_roles_alternate_where_they_must():
    wire = body([HI, UserMessage((TextContent("a"), IMAGE)), assistant("x"), assistant("y")], server("perplexity"))
    assert [message["role"] for message in wire["messages"]] == ["user", "assistant"]
    assert wire["messages"][0]["content"] == [{"type": "text", "text": "hi"}, {"type": "text", "text": "a"}, SHOWN]


THOUGHT = ThinkingBlock(thinking="hm")
DETAILS = [{"type": "reasoning.text", "text": "hm", "signature": "s"}, {"type": "reasoning.encrypted", "data": "d"}]


@pytest.mark.parametrize(
    ("dialect", "content", "sent"),
    [
        ("openai", (THOUGHT, TextBlock(text="a")), {"content": "a"}),
        (None, (THOUGHT, TextBlock(text="a")), {"content": "a"}),
        ("deepseek", (THOUGHT, TextBlock(text="a")), {"content": "a", "reasoning_content": "hm"}),
        ("deepseek", (TextBlock(text="a"),), {"content": "a", "reasoning_content": ""}),
        ("moonshot", (THOUGHT, TextBlock(text="a")), {"content": "a"}),
        ("moonshot", (THOUGHT, CALL), {"content": None, "reasoning_content": "hm", "tool_calls": [CALLED]}),
        ("groq", (THOUGHT, TextBlock(text="a")), {"content": "a", "reasoning": "hm"}),
        (
            "mistral",
            (ThinkingBlock(thinking="hm", signature="s"), TextBlock(text="a")),
            {
                "content": [
                    {
                        "type": "thinking",
                        "thinking": [{"type": "text", "text": "hm"}],
                        "closed": True,
                        "signature": "s",
                    },
                    {"type": "text", "text": "a"},
                ]
            },
        ),
        ("openrouter", (THOUGHT, TextBlock(text="a")), {"content": "a"}),
        (
            "openrouter",
            (ThinkingBlock(thinking="hm", extra={"reasoning_details": DETAILS}), TextBlock(text="a")),
            {"content": "a", "reasoning_details": DETAILS},
        ),
        (
            "github-copilot",
            (ThinkingBlock(thinking="hm", extra={"reasoning_opaque": "o"}), TextBlock(text="a")),
            {"content": "a", "reasoning_text": "hm", "reasoning_opaque": "o"},
        ),
    ],
)
def test_reasoning_goes_back_in_the_dialects_field(dialect, content, sent):
    wire = body([HI, turn(*content), HI], server(dialect))
    assert wire["messages"][1] == {"role": "assistant", **sent}


def test_a_proof_on_a_call_goes_back_on_that_call():
    proof = {"google": {"thought_signature": "s"}}
    call = ToolCall(id="call_1", name="look", arguments={}, arguments_json="{}", extra={"extra_content": proof})
    for dialect, sent in (("gemini-compat", proof), ("openai", None)):
        wire = body([HI, turn(call), results()], server(dialect))
        assert wire["messages"][1]["tool_calls"][0].get("extra_content") == sent


@pytest.mark.parametrize(
    ("dialect", "id", "level", "sent"),
    [
        ("openai", "gpt-4o", "high", {}),
        ("openai", "gpt-5", "off", {"reasoning_effort": "minimal"}),
        ("openai", "gpt-5.1", "off", {"reasoning_effort": "none"}),
        ("openai", "gpt-5.1", "minimal", {"reasoning_effort": "low"}),
        ("openai", "gpt-5.6", "max", {"reasoning_effort": "xhigh"}),
        ("deepseek", "deepseek-v4", "off", {"thinking": {"type": "disabled"}}),
        ("deepseek", "deepseek-v4", "max", {"thinking": {"type": "enabled"}, "reasoning_effort": "max"}),
        ("moonshot", "kimi-k2.6", "low", {"thinking": {"type": "enabled", "keep": "all"}}),
        ("moonshot", "kimi-k3", "off", {"reasoning_effort": "low"}),
        ("alibaba", "qwen3", "low", {"enable_thinking": True, "thinking_budget": 2_048, "preserve_thinking": True}),
        ("alibaba", "qwen3", "off", {"enable_thinking": False}),
        ("zai", "glm-5", "low", {"thinking": {"type": "enabled", "clear_thinking": False}}),
        ("minimax", "m2", "low", {"reasoning_split": True}),
        ("minimax", "m2", "off", {}),
        ("mistral", "magistral", "medium", {"reasoning_effort": "high"}),
        ("groq", "qwen", "off", {"reasoning_effort": "none"}),
        ("together", "x", "low", {"reasoning": {"enabled": True}, "reasoning_effort": "low"}),
        ("together", "x", "off", {"reasoning": {"enabled": False}}),
        ("openrouter", "x", "max", {"reasoning": {"effort": "xhigh"}}),
        ("openrouter", "x", "off", {"reasoning": {"enabled": False}}),
        ("anthropic-compat", "c", "low", {"thinking": {"type": "enabled", "budget_tokens": 2_048}}),
        ("anthropic-compat", "c", "off", {"thinking": {"type": "disabled"}}),
        ("vllm", "x", "low", {"chat_template_kwargs": {"enable_thinking": True}}),
        ("baseten", "x", "off", {"chat_template_args": {"enable_thinking": False}}),
        ("ollama", "x", "max", {"reasoning_effort": "max"}),
        ("writer", "x", "high", {}),
        (None, "x", "high", {}),
    ],
)
def test_thinking_levels_in_the_dialects_words(dialect, id, level, sent):
    wire = body(model=server(dialect, id), thinking=level, stream=False)
    assert wire == {"model": id, "messages": [USER], **sent}


def test_tools_and_reasoning_where_only_one_is_taken():
    model = models.openai("gpt-5.6")
    assert body(model=model, tools=[LOOK])["reasoning_effort"] == "none"
    assert body(model=model, tools=[LOOK], thinking="off")["reasoning_effort"] == "none"
    with pytest.raises(RequestError, match="no tools together with reasoning"):
        body(model=model, tools=[LOOK], thinking="low")


@pytest.mark.parametrize(
    ("model", "options", "sent"),
    [
        (GPT, {"temperature": 0, "top_p": 0.5, "seed": 3, "top_k": 4}, {"temperature": 0, "top_p": 0.5, "seed": 3}),
        (models.openai("gpt-5"), {"temperature": 1}, {}),
        (models.openai("gpt-5.1"), {"temperature": 1}, {}),
        (
            models.openai("gpt-5.1"),
            {"temperature": 1, "thinking": "off"},
            {"temperature": 1, "reasoning_effort": "none"},
        ),
        (GPT, {"stop_sequences": ("a",)}, {"stop": ["a"]}),
        (models.openai("o3"), {"stop_sequences": ("a",)}, {}),
        (server("mistral"), {"seed": 3}, {"random_seed": 3}),
        (server("vllm"), {"top_k": 4}, {"top_k": 4}),
        (server("deepseek"), {"seed": 3}, {}),
    ],
)
def test_sampling(model, options, sent):
    assert body(model=model, stream=False, **options) == {"model": model.id, "messages": [USER], **sent}


@pytest.mark.parametrize(
    ("dialect", "options", "sent"),
    [
        ("openai", {}, {}),
        ("openai", {"tool_choice": "auto"}, {"tool_choice": "auto"}),
        ("openai", {"tool_choice": "none"}, {"tool_choice": "none"}),
        (
            "openai",
            {"tool_choice": "required", "parallel_tool_calls": False},
            {"tool_choice": "required", "parallel_tool_calls": False},
        ),
        (
            "openai",
            {"tool_choice": NamedTool("look")},
            {"tool_choice": {"type": "function", "function": {"name": "look"}}},
        ),
        ("mistral", {"tool_choice": "required"}, {"tool_choice": "any"}),
        ("ollama", {"tool_choice": "auto", "parallel_tool_calls": True}, {}),
        ("minimax", {"tool_choice": "none"}, {"tool_choice": "none"}),
    ],
)
def test_tool_choice(dialect, options, sent):
    wire = body(model=server(dialect), tools=[LOOK], **options)
    assert {key: wire[key] for key in ("tool_choice", "parallel_tool_calls") if key in wire} == sent
    assert wire["tools"] == [{"type": "function", "function": FUNCTION}]


def test_a_choice_that_a_server_has_no_word_for():
    other = Tool(name="other", description="", schema={})
    # Where no tool can be named, only that one is offered.
    wire = body(model=server("llama-cpp"), tools=[other, LOOK], tool_choice=NamedTool("look"))
    assert (wire["tools"], wire["tool_choice"]) == ([{"type": "function", "function": FUNCTION}], "required")
    # Where calls cannot be forbidden, no tool is offered.
    assert "tools" not in body(model=server("zai"), tools=[LOOK], tool_choice="none")
    for dialect, choice in (("zai", "required"), ("ollama", NamedTool("look")), ("alibaba", "required")):
        with pytest.raises(RequestError, match="cannot be made to call a tool"):
            body(model=server(dialect), tools=[LOOK], tool_choice=choice)
    with pytest.raises(RequestError, match="takes no tools"):
        body(model=server("perplexity"), tools=[LOOK])
    assert body(model=server("deepseek"), tools=[LOOK], tool_choice="required", thinking="high")["thinking"] == {
        "type": "disabled"
    }


def test_no_tools_no_fields_of_tools():
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & set(body(tool_choice="auto", parallel_tool_calls=True))


@pytest.mark.parametrize(
    ("dialect", "strict", "function"),
    [
        ("openai", None, FUNCTION),
        ("openai", True, {**FUNCTION, "parameters": STRICT, "strict": True}),
        ("openai", False, {**FUNCTION, "strict": False}),
        ("groq", True, FUNCTION),
        (None, True, FUNCTION),
    ],
)
def test_b247_strict_tools(dialect, strict, function):
    before = copy.deepcopy(SCHEMA)
    tool = Tool(name="look", description="looks", schema=SCHEMA, strict=strict)
    assert body(model=server(dialect), tools=[tool])["tools"] == [{"type": "function", "function": function}]
    assert before == SCHEMA


def test_b247_a_schema_that_has_no_strict_form_is_sent_as_it_is():
    free = Tool(
        name="f", description="", schema={"type": "object", "properties": {"a": {"type": "object"}}}, strict=True
    )
    assert body(tools=[free])["tools"][0]["function"] == {"name": "f", "parameters": free.schema}


def test_tools_in_every_form():
    own = {"type": "function", "function": {"name": "own", "parameters": {}}}
    custom = {"type": "custom", "custom": {"name": "run", "format": {"type": "text"}}}
    flat = {"type": "custom", "name": "run2", "description": "d"}
    anthropic = {"name": "look", "description": "looks", "input_schema": SCHEMA}
    assert body(tools=[own, custom, flat, anthropic])["tools"] == [
        own,
        custom,
        {"type": "custom", "custom": {"name": "run2", "description": "d"}},
        {"type": "function", "function": FUNCTION},
    ]
    named = body(tools=[custom], tool_choice=NamedTool("run"))["tool_choice"]
    assert named == {"type": "custom", "custom": {"name": "run"}}


OUTPUT = OutputSchema(schema=SCHEMA, name="place", description="d")


@pytest.mark.parametrize(
    ("dialect", "output", "sent"),
    [
        (
            "openai",
            OUTPUT,
            {
                "type": "json_schema",
                "json_schema": {"name": "place", "description": "d", "schema": STRICT, "strict": True},
            },
        ),
        (
            "openai",
            OutputSchema(schema=SCHEMA, strict=False),
            {"type": "json_schema", "json_schema": {"name": "output", "schema": SCHEMA, "strict": False}},
        ),
        (
            "openai",
            OutputSchema(schema={"type": "object", "additionalProperties": True}),
            {
                "type": "json_schema",
                "json_schema": {
                    "name": "output",
                    "schema": {"type": "object", "additionalProperties": True},
                    "strict": False,
                },
            },
        ),
        ("deepseek", OUTPUT, {"type": "json_object"}),
        ("anthropic-compat", OUTPUT, None),
    ],
)
def test_structured_output(dialect, output, sent):
    assert body(model=server(dialect), output=output).get("response_format") == sent


def test_structured_output_beside_tools():
    assert "response_format" in body(tools=[LOOK], output=OUTPUT)
    assert "response_format" not in body(model=server("groq"), tools=[LOOK], output=OUTPUT)


def test_the_makers_own_fields():
    options = {"metadata": {"a": "b"}, "cache": CachePolicy(key="k", retention="long")}
    sent = {"metadata": {"a": "b"}, "prompt_cache_key": "k", "prompt_cache_retention": "24h"}
    assert body(stream=False, **options) == {"model": "gpt-4o", "messages": [USER], **sent}
    newer = body(model=models.openai("gpt-6-luna"), cache=CachePolicy(retention="short"))
    assert newer["prompt_cache_options"] == {"ttl": "30m"}
    assert body(model=server("vllm"), stream=False, **options) == {"model": "m", "messages": [USER]}


def test_extra_body_comes_last():
    wire = body(temperature=0.5, extra_body={"temperature": 1, "stream_options": {"include_usage": False}})
    assert (wire["temperature"], wire["stream_options"]) == (1, {"include_usage": False})


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_gives_a_body_that_the_schema_takes(dialect):
    tools = [LOOK] if DIALECTS[dialect].tools else []
    history = [
        HI,
        turn(THOUGHT, CALL),
        results(),
        turn(THOUGHT, TextBlock(text="ok")),
        UserMessage((TextContent("x"), IMAGE)),
    ]
    for level in ("off", "high"):
        options = {
            "thinking": level,
            "temperature": 1,
            "top_k": 3,
            "seed": 1,
            "output": OUTPUT,
            "parallel_tool_calls": True,
        }
        body(history, server(dialect), "s", tools, max_output_tokens=9, stop_sequences=("a",), **options)


def test_url_and_headers():
    assert request.url(GPT) == "https://api.openai.com/v1/chat/completions"
    assert request.url(server("writer")) == "http://h/v1/chat"
    azure = models.compatible("d", base_url="https://r.openai.azure.com/openai/deployments/d?api-version=1")
    assert request.url(azure) == "https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=1"
    assert request.headers(Options(extra_headers={"X-Title": "t"}), {"authorization": "Bearer k"}) == {
        "content-type": "application/json",
        "accept": "text/event-stream",
        "authorization": "Bearer k",
        "x-title": "t",
    }
