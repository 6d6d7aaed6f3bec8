"""Context, model and options → exact body, for the maker and the dialects; each body is checked by the schema too."""

from __future__ import annotations

import copy
import json
from typing import Any

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
OTHER = ToolCall(id="call_2", name="look", arguments={}, arguments_json="")
CALLED = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{ "city":"Paris"}'}}


def server(dialect, id="m", **fields):
    return models.compatible(id, base_url="http://h/v1", dialect=dialect, **fields)


def body(*args: Any, **fields: Any):
    return valid("openai-chat", vendor_body(*args, **fields))


def vendor_body(messages=(HI,), model=GPT, system: Any = "", tools=(), stream=True, **options):
    """A body with what only a vendor takes, and not the schema of the protocol."""
    context = Context(system=system, messages=tuple(messages), tools=tuple(tools))
    return request.body(model, context, Options(**options), stream=stream)


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
        (models.openai("o1-mini"), "user"),
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
        (server("groq"), ""),
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


@pytest.mark.parametrize("dialect", ["openai", "deepseek", "groq", "mistral", "openrouter", "github-copilot"])
@pytest.mark.parametrize(
    "block",
    [
        OpaqueBlock(kind="image", raw={"type": "image"}),
        ThinkingBlock(thinking="hm", extra={"reasoning_opaque": "o", "reasoning_details": [{"type": "x"}]}),
    ],
)
def test_a_turn_of_nothing_that_the_protocol_has_words_for_goes(dialect, block):
    assert body([HI, turn(block), HI], server(dialect))["messages"] == [USER, USER]


def test_blocks_made_by_hand_may_hold_anything():
    block = ThinkingBlock(thinking="hm", extra={"reasoning_details": None, "reasoning_opaque": None})
    call = ToolCall(id="call_1", name="look", arguments={}, arguments_json="{}", extra={"extra_content": None})
    for dialect in ("openrouter", "github-copilot", "gemini-compat"):
        said = body([HI, turn(block, call), results()], server(dialect))["messages"][1]
        assert None not in [said.get("reasoning_details", ""), said.get("reasoning_opaque", "")]
        assert "extra_content" not in said["tool_calls"][0]


def test_roles_alternate_where_they_must():
    wire = body([HI, UserMessage((TextContent("a"), IMAGE)), assistant("x"), assistant("y")], server("perplexity"))
    assert [message["role"] for message in wire["messages"]] == ["user", "assistant"]
    assert wire["messages"][0]["content"] == [{"type": "text", "text": "hi"}, {"type": "text", "text": "a"}, SHOWN]


def test_a_history_of_calls_where_no_tools_are_taken():
    history = [HI, turn(TextBlock(text="a")), turn(TextBlock(text="b"), CALL, OTHER), results(), results("call_2"), HI]
    wire = body([*history, turn(CALL), results("call_1", IMAGE), HI], server("perplexity"))["messages"]
    assert [(message["role"], sorted(message)) for message in wire] == [
        ("user", ["content", "role"]),
        ("assistant", ["content", "role"]),
        ("user", ["content", "role"]),
    ]
    assert [part["text"] for part in wire[1]["content"]] == ["a", "b"]
    assert [part.get("text", part["type"]) for part in wire[2]["content"]] == [
        "Result of look (call_1):\nsunny",
        "Result of look (call_2):\nsunny",
        "hi",
        "Result of look (call_1):\n(attached below)",
        "image_url",
        "hi",
    ]


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
        (
            "mistral",
            (THOUGHT, TextBlock(text="X"), ThinkingBlock(thinking="so"), TextBlock(text="Y")),
            {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}], "closed": True},
                    {"type": "text", "text": "X"},
                    {"type": "thinking", "thinking": [{"type": "text", "text": "so"}], "closed": True},
                    {"type": "text", "text": "Y"},
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
        (
            "groq",
            (ThinkingBlock(thinking="hm", extra={"reasoning_opaque": "o"}), TextBlock(text="a")),
            {"content": "a", "reasoning": "hm"},
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


def test_what_a_server_does_not_take_by_its_kind_is_told_and_not_lost():
    image = ImageContent(media_type="image/png", url="https://a.test/i.png")
    document = DocumentContent(media_type="application/pdf", title="Plan", data="eHg=")
    (said,) = body([UserMessage((image, document))], server("gemini-compat"))["messages"]
    assert [json.loads(part["text"]) for part in said["content"]] == [
        {
            "omitted": "image",
            "media_type": "image/png",
            "url": "https://a.test/i.png",
            "reason": "the server takes no images by address",
        },
        {
            "omitted": "document",
            "title": "Plan",
            "media_type": "application/pdf",
            "bytes": 2,
            "reason": "the server takes no documents of this kind",
        },
    ]


def test_gemini_3_wants_the_proof_of_every_step_of_the_open_turn():
    new, old = server("gemini-compat", "gemini-3-pro"), server("gemini-compat", "gemini-2.5-pro")
    signed = {"extra_content": {"google": {"thought_signature": "s"}}}
    first = ToolCall(id="call_1", name="look", arguments={}, arguments_json="{}", extra=signed)
    bare = ToolCall(id="call_2", name="go", arguments={}, arguments_json="{}")
    parallel = [HI, turn(first, bare), results(), HI]
    assert "extra_content" not in body(parallel, new)["messages"][1]["tool_calls"][1]
    assert body([HI, turn(bare), results("call_2"), HI], new)  # its turn is over
    open_turn = [HI, turn(first), results(), turn(bare), results("call_2")]
    with pytest.raises(RequestError, match="the call of 'go' in the open turn has no thought signature"):
        body(open_turn, new)
    assert "extra_content" not in body(open_turn, old)["messages"][3]["tool_calls"][0]
    said = body(open_turn, new, skip_signatures=True)["messages"]
    assert said[1]["tool_calls"][0]["extra_content"] == signed["extra_content"]
    placeholder = {"google": {"thought_signature": "skip_thought_signature_validator"}}
    assert said[3]["tool_calls"][0]["extra_content"] == placeholder
    # What was sent stays as it was.
    over = [*open_turn, turn(TextBlock(text="a")), HI]
    assert body(over, new, skip_signatures=True)["messages"][: len(said)] == said


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
        ("gemini-compat", "gemini-2.5-pro", "off", {"reasoning_effort": "minimal"}),
        ("gemini-compat", "gemini-2.5-flash", "off", {"reasoning_effort": "none"}),
        ("xai", "grok-4.20-reasoning", "off", {}),
        ("xai", "grok-4.20-non-reasoning", "high", {}),
        ("anthropic-compat", "claude-opus-4-8", "high", {}),
        ("anthropic-compat", "claude-opus-4-8", "off", {"thinking": {"type": "disabled"}}),
        ("anthropic-compat", "claude-opus-5-5", "off", {}),
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


@pytest.mark.parametrize("choice", ["required", NamedTool("look")])
def test_a_tool_is_forced_where_the_model_takes_it(choice):
    named = {"type": "function", "function": {"name": "look"}}
    for id, sent in (("kimi-k3", "required"), ("kimi-k2-thinking", "required"), ("kimi-k2.6", None)):
        model = server("moonshot", id)
        if sent is None:
            with pytest.raises(RequestError, match="cannot be made to call a tool"):
                body(model=model, tools=[LOOK], tool_choice=choice)
        else:
            assert body(model=model, tools=[LOOK], tool_choice=choice)["tool_choice"] == sent
    # What thinks unasked is told not to.
    wire = body(model=server("deepseek"), tools=[LOOK], tool_choice=choice)
    assert wire["tool_choice"] == (choice if choice == "required" else named)
    assert wire["thinking"] == {"type": "disabled"}
    assert "thinking" not in body(model=server("deepseek"), tools=[LOOK])
    assert "thinking" not in body(model=server("anthropic-compat"), tools=[LOOK], tool_choice=choice)


def test_thinking_in_the_words_of_anthropic_keeps_its_rules():
    model = server("anthropic-compat", "claude-sonnet-4-5")
    options = {"thinking": "high", "temperature": 0.2}
    wire = body(model=model, max_output_tokens=4_000, **options)
    assert wire["thinking"] == {"type": "enabled", "budget_tokens": 2_000}
    assert "temperature" not in wire
    with pytest.raises(RequestError, match=r"above 1,024 tokens, it is 1,000"):
        body(model=model, max_output_tokens=1_000, **options)
    wire = body(model=model, tools=[LOOK], tool_choice="required", **options)
    assert (wire["thinking"], wire["temperature"]) == ({"type": "disabled"}, 0.2)
    wire = body(model=model, temperature=0.2, top_p=0.5)
    assert (wire["temperature"], wire.get("top_p")) == (0.2, None)


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
        {"type": "function", "function": {"name": "own", "parameters": {"type": "object", "properties": {}}}},
        custom,
        {"type": "custom", "custom": {"name": "run2", "description": "d"}},
        {"type": "function", "function": FUNCTION},
    ]
    named = body(tools=[custom], tool_choice=NamedTool("run"))["tool_choice"]
    assert named == {"type": "custom", "custom": {"name": "run"}}


def test_a_tool_in_the_service_s_own_form_is_read_like_any_other():
    nested = {"type": "function", "function": {"name": "look", "strict": True, "parameters": SCHEMA}}
    strict = {"name": "look", "parameters": STRICT, "strict": True}
    for entry in (nested, {"function": nested["function"]}):
        assert body(tools=[entry])["tools"] == [{"type": "function", "function": strict}]  # B247
        sent = body(model=server("xai"), tools=[entry])["tools"]
        assert sent == [{"type": "function", "function": {"name": "look", "parameters": SCHEMA}}]
    custom = {"type": "custom", "custom": {"name": "run", "description": "d"}}
    for entry in (custom, {"type": "custom", "name": "run", "description": "d"}):
        (sent,) = body(model=server("deepseek"), tools=[entry])["tools"]
        assert (sent["type"], sorted(sent["function"]["parameters"]["properties"])) == ("function", ["input"])


@pytest.mark.unusual_body
def test_what_the_service_runs_itself_is_sent_as_it_is():
    search = {"type": "builtin_function", "function": {"name": "$web_search"}}
    web = {"type": "web_search", "web_search": {"enable": True}}
    assert vendor_body(model=server("moonshot"), tools=[search])["tools"] == [search]
    assert vendor_body(model=server("zai"), tools=[web], tool_choice="auto")["tools"] == [web]
    assert vendor_body(model=server("vllm"), tools=[web], tool_choice="required")["tool_choice"] == "required"


@pytest.mark.parametrize(
    "entry",
    [
        {"type": "function", "function": {"parameters": {}}},
        {"type": "function", "function": {"name": 5}},
        {"type": "function", "function": {"name": "f", "parameters": [1], "strict": True}},
        {"type": "function"},
        {"type": 5, "function": {}},
        {"type": None},
        {"function": None},
        {"type": "web_search"},
        {"type": "mcp", "custom": {"name": "x"}},
        {},
    ],
)
@pytest.mark.parametrize("choice", [None, "required", NamedTool("run")])
def test_a_tool_that_is_none_is_refused(entry, choice):
    with pytest.raises(RequestError):
        request.body(GPT, Context(messages=(HI,), tools=(entry,)), Options(tool_choice=choice))


def test_a_tool_without_a_type_can_be_named():
    wire = body(tools=[{"function": {"name": "run"}}], tool_choice=NamedTool("run"))
    assert wire["tool_choice"] == {"type": "function", "function": {"name": "run"}}


@pytest.mark.parametrize("name", ["fs.read:x", "a" * 65, "", "wörter", "a b"])
@pytest.mark.unusual_body
def test_a_tool_whose_name_cannot_be_declared_is_named(name):
    for tool in ({"name": name}, {"type": "custom", "custom": {"name": name}}):
        with pytest.raises(RequestError, match="cannot be declared") as caught:
            body(tools=[tool])
        assert repr(name) in str(caught.value)
    assert (
        vendor_body(model=server("vllm"), tools=[{"name": "fs.read:x"}])["tools"][0]["function"]["name"] == "fs.read:x"
    )


@pytest.mark.parametrize(
    ("name", "sent"), [("fs.read:x", "fs_read_x"), ("a" * 100, "a" * 64), ("ok-1_A", "ok-1_A"), ("", "_")]
)
def test_a_call_of_another_service_goes_back_under_a_name_that_is_taken(name, sent):
    call = ToolCall(id="call_1", name=name, arguments={}, arguments_json="{}")
    free = ToolCall(id="call_2", name=name, arguments={"input": "x"}, arguments_json="x", kind="custom")
    history = [HI, turn(call, free, protocol="anthropic-messages"), results(), results("call_2")]
    first, second = body(history)["messages"][1]["tool_calls"]
    assert (first["function"]["name"], second["custom"]["name"]) == (sent, sent)
    theirs = vendor_body(history, server("vllm"))["messages"][1]["tool_calls"][0]
    assert theirs["function"]["name"] == name


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
    ],
)
def test_structured_output(dialect, output, sent):
    assert body(model=server(dialect), output=output).get("response_format") == sent


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("dialect", ["openai", "deepseek"])
def test_a_schema_is_no_text(dialect, strict):
    schema: Any = '{"type":"object"}'
    with pytest.raises(RequestError, match="a schema is an object, got str"):
        body(model=server(dialect), output=OutputSchema(schema=schema, strict=strict))


@pytest.mark.parametrize("dialect", ["openai", "deepseek"])
def test_an_output_limit_below_one_is_refused(dialect):
    with pytest.raises(RequestError, match="the output limit is 0"):
        body(model=server(dialect), max_output_tokens=0)


def test_structured_output_beside_tools():
    assert "response_format" in body(tools=[LOOK], output=OUTPUT)
    for dialect in ("groq", "tgi"):
        with pytest.raises(RequestError, match="no structured output in a request with tools"):
            body(model=server(dialect), tools=[LOOK], output=OUTPUT)


@pytest.mark.parametrize("dialect", ["anthropic-compat", "hyper", "avian"])
def test_structured_output_where_there_is_none(dialect):
    with pytest.raises(RequestError, match=f"{dialect} has no structured output"):
        body(model=server(dialect), output=OUTPUT)


def test_a_schema_that_has_no_field_of_its_own_is_said():
    for dialect in ("deepseek", "minimax", "github-copilot", "gpustack"):
        wire = body(model=server(dialect), system="s", output=OUTPUT)
        said = wire["messages"][0]
        assert (said["role"], said["content"][:3]) == ("system", "s\n\n")
        assert "It is: d Its JSON schema:\n" + '{"type":"object","properties":{"city"' in said["content"]
    assert "JSON schema" in body(model=server("deepseek"), output=OutputSchema(schema={}))["messages"][0]["content"]


@pytest.mark.unusual_body
def test_no_more_stop_sequences_than_are_taken():
    for model in (GPT, server("azure-openai")):
        assert body(model=model, stop_sequences=tuple("abcd"))["stop"] == [*"abcd"]
        with pytest.raises(RequestError, match="at most 4 stop sequences, there are 5"):
            body(model=model, stop_sequences=tuple("abcde"))
    assert "stop" not in body(model=models.openai("o3"), stop_sequences=tuple("abcde"))
    assert len(vendor_body(model=server("vllm"), stop_sequences=tuple("abcde"))["stop"]) == 5


def test_the_makers_own_fields():
    options = {"metadata": {"a": "b"}, "cache": CachePolicy(key="k", retention="long")}
    sent = {"metadata": {"a": "b"}, "prompt_cache_key": "k", "prompt_cache_retention": "24h"}
    assert body(stream=False, **options) == {"model": "gpt-4o", "messages": [USER], **sent}
    for id in ("gpt-6-luna", "gpt-5.6-pro"):
        newer = body(model=models.openai(id), cache=CachePolicy(retention="short"))
        assert newer["prompt_cache_options"] == {"ttl": "30m"}
    long = models.openai("gpt-5.5")
    assert body(model=long, cache=CachePolicy(retention="long"))["prompt_cache_retention"] == "24h"
    assert "prompt_cache_retention" not in body(model=long, cache=CachePolicy(retention="short"))
    assert body(model=server("vllm"), stream=False, **options) == {"model": "m", "messages": [USER]}


def test_extra_body_comes_last():
    wire = body(temperature=0.5, extra_body={"temperature": 1, "stream_options": {"include_usage": False}})
    assert (wire["temperature"], wire["stream_options"]) == (1, {"include_usage": False})


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_gives_a_body_that_the_schema_takes(dialect):
    row = DIALECTS[dialect]
    tools = [LOOK] if row.tools else []
    output = OUTPUT if row.formats and row.format_with_tools else None
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
            "output": output,
            "parallel_tool_calls": True,
        }
        body(history, server(dialect), "s", tools, max_output_tokens=2_000, stop_sequences=("a",), **options)


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
