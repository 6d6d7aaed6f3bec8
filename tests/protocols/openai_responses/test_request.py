"""Context, model and options → exact body; every body is also checked by the schema of the API."""

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
    ToolResultMessage,
    UserMessage,
    assistant,
)
from sseam.errors import RequestError
from sseam.message import (
    Message,
    OpaqueBlock,
    RedactedThinkingBlock,
    RefusalBlock,
    ServerToolBlock,
    TextBlock,
    ThinkingBlock,
    ToolCall,
)
from sseam.protocols.openai_responses import request
from sseam.tools import Tool, ToolResult

GPT = models.openai_responses("gpt-5")
PLAIN = models.openai_responses("gpt-4.1")
HI = UserMessage("hi")
USER = {"role": "user", "content": "hi"}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CLOSED = {**SCHEMA, "additionalProperties": False}
LOOK = Tool(name="look", description="looks", schema=SCHEMA)
FUNCTION = {"type": "function", "name": "look", "description": "looks", "parameters": SCHEMA, "strict": False}
ITEM = {"id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "e", "status": None}
THOUGHT = ThinkingBlock(thinking="hm", extra=ITEM)
REASONING = {"type": "reasoning", "id": "rs_1", "summary": ITEM["summary"], "encrypted_content": "e"}
CALL = ToolCall(
    id="call_1",
    name="look",
    arguments={"city": "é"},
    arguments_json='{ "city":"é"}',
    extra={"id": "fc_1", "status": "completed"},
)
CALLED = {
    "type": "function_call",
    "call_id": "call_1",
    "name": "look",
    "arguments": '{ "city":"é"}',
    "id": "fc_1",
    "status": "completed",
}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "sunny"}
SAID = {"id": "msg_1", "role": "assistant", "status": "completed", "phase": "final_answer"}


def body(messages=(HI,), model=GPT, system="", tools=(), stream=True, **options):
    context = Context(system=system, messages=tuple(messages), tools=tuple(tools))
    return valid("openai-responses", request.body(model, context, Options(**options), stream=stream))


def turn(*content, **rest):
    return Message(
        content=content, **{"protocol": "openai-responses", "model": "gpt-5-2025-08-07", "complete": True, **rest}
    )


def results(id="call_1", *content, **rest):
    return ToolResultMessage((ToolResult(call_id=id, name="look", content=content or (TextContent("sunny"),), **rest),))


def test_the_smallest_body():
    assert body(model=PLAIN) == {"model": "gpt-4.1", "input": [USER], "store": False, "stream": True}
    assert body(stream=False) == {
        "model": "gpt-5",
        "input": [USER],
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }


@pytest.mark.parametrize(
    ("messages", "items"),
    [
        ([HI, turn(THOUGHT, CALL), results()], [USER, REASONING, CALLED, OUTPUT]),
        # B194
        (
            [HI, turn(THOUGHT, CALL), HI],
            [
                USER,
                REASONING,
                CALLED,
                {**OUTPUT, "output": "Error: This call was not run, and there is no result."},
                USER,
            ],
        ),
        # B196
        (
            [HI, results("gone"), turn(TextBlock(text="ok")), results("gone")],
            [USER, {"role": "assistant", "content": "ok"}],
        ),
        # B200: reasoning goes with the item it led to …
        ([HI, turn(THOUGHT, CALL, complete=False), HI], [USER, USER]),
        ([HI, turn(CALL, THOUGHT), results()], [USER, CALLED, OUTPUT]),
        # … and without its proof it stays out, and what it led to is sent as new.
        (
            [HI, turn(ThinkingBlock(thinking="hm", extra={"id": "rs_1"}), CALL), results()],
            [USER, {key: value for key, value in CALLED.items() if key != "id"}, OUTPUT],
        ),
        # Items of another model are not replayed.
        (
            [HI, turn(THOUGHT, TextBlock(text="a", extra=SAID), CALL, model="gpt-4.1"), results()],
            [
                USER,
                {"role": "assistant", "content": "a"},
                {key: value for key, value in CALLED.items() if key != "id"},
                OUTPUT,
            ],
        ),
        # The parts of one message are one item again.
        (
            [
                HI,
                turn(
                    TextBlock(
                        text="a", citations=({"type": "url_citation"},), extra={**SAID, "part": {"logprobs": [1]}}
                    ),
                    RefusalBlock(text="no", extra=SAID),
                    TextBlock(text="b", extra={**SAID, "id": "msg_2", "phase": None}),
                ),
                HI,
            ],
            [
                USER,
                {
                    "type": "message",
                    **SAID,
                    "content": [
                        {
                            "type": "output_text",
                            "text": "a",
                            "annotations": [{"type": "url_citation"}],
                            "logprobs": [1],
                        },
                        {"type": "refusal", "refusal": "no"},
                    ],
                },
                {
                    "type": "message",
                    "id": "msg_2",
                    "role": "assistant",
                    "status": "completed",
                    "content": [{"type": "output_text", "text": "b", "annotations": []}],
                },
                USER,
            ],
        ),
        ([HI, assistant("ok"), HI], [USER, {"role": "assistant", "content": "ok"}, USER]),
        (
            [
                HI,
                turn(
                    RedactedThinkingBlock(data="e", extra={"id": "rs_1"}),
                    TextBlock(text="a", extra={"phase": "commentary"}),
                ),
                HI,
            ],
            [
                USER,
                {"type": "reasoning", "summary": [], "encrypted_content": "e", "id": "rs_1"},
                {"role": "assistant", "content": "a", "phase": "commentary"},
                USER,
            ],
        ),
        (
            [
                HI,
                turn(
                    ServerToolBlock(
                        kind="web_search_call", raw={"type": "web_search_call", "id": "ws_1", "action": {}}
                    ),
                    OpaqueBlock(kind="compaction", raw={"type": "compaction", "id": "cmp_1", "encrypted_content": "e"}),
                    OpaqueBlock(kind="output_dance", raw={"type": "output_dance"}),
                ),
                HI,
            ],
            [
                USER,
                {"type": "web_search_call", "id": "ws_1", "action": {}},
                {"type": "compaction", "id": "cmp_1", "encrypted_content": "e"},
                USER,
            ],
        ),
        (
            [
                HI,
                turn(ToolCall(id="c", name="run", arguments={"input": "ls"}, arguments_json="ls", kind="custom")),
                results("c"),
            ],
            [
                USER,
                {"type": "custom_tool_call", "call_id": "c", "name": "run", "input": "ls"},
                {"type": "custom_tool_call_output", "call_id": "c", "output": "sunny"},
            ],
        ),
    ],
)
def test_items(messages, items):
    assert body(messages)["input"] == items


IMAGE = ImageContent(media_type="image/png", data="aGk=")
SHOWN = {"type": "input_image", "image_url": "data:image/png;base64,aGk="}


def test_attachments():
    pdf = DocumentContent(media_type="application/pdf", data="aGk=", title="t.pdf")
    link = DocumentContent(media_type="", url="https://x/d")
    assert body([UserMessage((TextContent("see"), IMAGE, pdf, link))])["input"][0]["content"] == [
        {"type": "input_text", "text": "see"},
        SHOWN,
        {"type": "input_file", "filename": "t.pdf", "file_data": "data:application/pdf;base64,aGk="},
        {"type": "input_file", "file_url": "https://x/d"},
    ]
    history = [HI, turn(CALL), results("call_1", TextContent("see"), IMAGE)]
    assert body(history)["input"][-1]["output"] == [{"type": "input_text", "text": "see"}, SHOWN]


@pytest.mark.parametrize(
    ("item", "result", "sent"),
    [
        (
            {"type": "shell_call", "action": {"commands": ["ls"]}},
            {},
            {
                "type": "shell_call_output",
                "call_id": "c",
                "output": [{"stdout": "out", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
            },
        ),
        (
            {"type": "shell_call", "action": {}},
            {"is_error": True},
            {
                "type": "shell_call_output",
                "call_id": "c",
                "output": [{"stdout": "", "stderr": "Error: out", "outcome": {"type": "exit", "exit_code": 1}}],
            },
        ),
        (
            {"type": "shell_call", "action": {}},
            {"data": [{"stdout": "own"}]},
            {"type": "shell_call_output", "call_id": "c", "output": [{"stdout": "own"}]},
        ),
        (
            {"type": "local_shell_call", "id": "lsh_1", "action": {}},
            {},
            {"type": "local_shell_call_output", "id": "lsh_1", "output": "out"},
        ),
        (
            {"type": "apply_patch_call", "operation": {}},
            {"is_error": True},
            {"type": "apply_patch_call_output", "call_id": "c", "status": "failed", "output": "Error: out"},
        ),
        (
            {"type": "computer_call", "action": {}},
            {"content": (IMAGE,)},
            {
                "type": "computer_call_output",
                "call_id": "c",
                "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,aGk="},
            },
        ),
        (
            {"type": "tool_search_call", "execution": "client"},
            {"data": [{"type": "function"}]},
            {"type": "tool_search_output", "call_id": "c", "tools": [{"type": "function"}]},
        ),
    ],
)
def test_built_in_tools_of_the_client_have_their_own_items(item, result, sent):
    call = ToolCall(id="c", name="x", arguments={}, arguments_json="{}", extra=item)
    fields = {"content": (TextContent("out"),), **result}
    answered = ToolResultMessage((ToolResult(call_id="c", name="x", **fields),))
    assert body([HI, turn(call), answered])["input"] == [USER, {**item, "call_id": "c"}, sent]


@pytest.mark.parametrize(
    ("model", "options", "sent"),
    [
        (GPT, {"thinking": "high", "thinking_summary": True}, {"effort": "high", "summary": "auto"}),
        (GPT, {"thinking": "off"}, {"effort": "minimal"}),
        (models.openai_responses("gpt-5.6"), {"thinking": "max"}, {"effort": "max"}),
        (GPT, {"thinking_summary": False}, None),
        (PLAIN, {"thinking": "high", "thinking_summary": True}, None),
    ],
)
def test_thinking_levels(model, options, sent):
    assert body(model=model, **options).get("reasoning") == sent


@pytest.mark.parametrize(
    ("model", "options", "sent"),
    [
        (
            PLAIN,
            {"temperature": 0.5, "top_p": 1, "top_k": 3, "seed": 1, "stop_sequences": ("a",)},
            {"temperature": 0.5, "top_p": 1},
        ),
        (GPT, {"temperature": 0.5}, {}),
        (models.openai_responses("gpt-5.1"), {"temperature": 0.5, "thinking": "off"}, {"temperature": 0.5}),
    ],
)
def test_sampling(model, options, sent):
    wire = body(model=model, **options)
    assert {key: wire[key] for key in ("temperature", "top_p", "top_k", "seed", "stop") if key in wire} == sent


@pytest.mark.parametrize("strict", [True, False, None])
def test_b247_strict_is_always_said_and_true_only_with_a_schema_that_satisfies_it(strict):
    before = copy.deepcopy(SCHEMA)
    free = Tool(
        name="free", description="", schema={"type": "object", "properties": {"a": {"type": "object"}}}, strict=strict
    )
    look, other = body(tools=[Tool(name="look", description="looks", schema=SCHEMA, strict=strict), free])["tools"]
    assert look == ({**FUNCTION, "parameters": CLOSED, "strict": True} if strict else FUNCTION)
    assert other["strict"] is False
    assert before == SCHEMA


def test_tools_in_every_form():
    own = {"type": "function", "name": "own", "parameters": {"type": "object"}, "defer_loading": True}
    search = {"type": "web_search"}
    custom = {"type": "custom", "name": "run", "format": {"type": "text"}}
    nested = {"type": "function", "function": {"name": "look", "description": "looks", "parameters": SCHEMA}}
    nested_custom = {"type": "custom", "custom": {"name": "run2", "description": "d"}}
    assert body(tools=[own, search, custom, nested, nested_custom])["tools"] == [
        {**own, "strict": False},
        search,
        custom,
        FUNCTION,
        {"type": "custom", "name": "run2", "description": "d"},
    ]
    with pytest.raises(RequestError, match="web_search_20250305"):
        body(tools=[{"type": "web_search_20250305", "name": "web_search"}])


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        ({}, {}),
        (
            {"tool_choice": "required", "parallel_tool_calls": False},
            {"tool_choice": "required", "parallel_tool_calls": False},
        ),
        ({"tool_choice": NamedTool("look")}, {"tool_choice": {"type": "function", "name": "look"}}),
        ({"tool_choice": NamedTool("web_search")}, {"tool_choice": {"type": "web_search"}}),
    ],
)
def test_tool_choice(options, sent):
    wire = body(tools=[LOOK, {"type": "web_search"}], **options)
    assert {key: wire[key] for key in ("tool_choice", "parallel_tool_calls") if key in wire} == sent
    assert "tool_choice" not in body(tool_choice="auto", parallel_tool_calls=True)


def test_the_rest_of_the_options():
    wire = body(
        system="be brief",
        max_output_tokens=9,
        output=OutputSchema(schema=SCHEMA),
        cache=CachePolicy(key="k", retention="short"),
        metadata={"a": "b"},
        extra_body={"store": True, "previous_response_id": "resp_1"},
    )
    assert wire == {
        "model": "gpt-5",
        "instructions": "be brief",
        "input": [USER],
        "max_output_tokens": 9,
        "text": {"format": {"type": "json_schema", "name": "output", "schema": CLOSED, "strict": True}},
        "prompt_cache_key": "k",
        "prompt_cache_retention": "in_memory",
        "metadata": {"a": "b"},
        "store": True,
        "include": ["reasoning.encrypted_content"],
        "stream": True,
        "previous_response_id": "resp_1",
    }


def test_b204_ids_of_others_fit():
    foreign = turn(
        ToolCall(id="functions.look:0", name="look", arguments={}, arguments_json="{}"),
        protocol="openai-chat",
        model="kimi",
    )
    _, called, output = body([HI, foreign, results("functions.look:0")])["input"]
    assert called["call_id"] == output["call_id"] != "functions.look:0"


def test_url_and_headers():
    assert request.url(GPT) == "https://api.openai.com/v1/responses"
    assert request.headers(Options(), {"authorization": "Bearer k"})["authorization"] == "Bearer k"
