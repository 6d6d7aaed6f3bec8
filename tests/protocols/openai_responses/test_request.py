"""Context, model and options → exact body; every body is also checked by the schema of the API."""

from __future__ import annotations

import copy
import json

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
                {"type": "output_dance"},
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


SAID_NOTHING = TextBlock(text="", extra=SAID)
SEARCH = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {}}
SEARCHED = ServerToolBlock(kind="web_search_call", raw=SEARCH)
UNPROVEN = ThinkingBlock(thinking="hm", extra={"id": "rs_1", "summary": []})


def sent(*content, **rest):
    """The items of an answer."""
    wire = body([HI, turn(*content, **rest), HI])["input"]
    return [item for item in wire if item != USER and not item.get("type", "").endswith("_output")]


def part(text):
    return {"type": "output_text", "text": text, "annotations": []}


def test_an_empty_part_keeps_its_place_in_an_item_that_the_service_knows():
    message = {"type": "message", **SAID}
    more = TextBlock(text="hello", extra=SAID)
    assert sent(THOUGHT, SAID_NOTHING, more) == [REASONING, {**message, "content": [part(""), part("hello")]}]
    assert sent(THOUGHT, SAID_NOTHING, CALL) == [REASONING, {**message, "content": [part("")]}, CALLED]
    # As a message of its own, which has no id, it would be refused.
    assert sent(UNPROVEN, SAID_NOTHING, more) == [{"role": "assistant", "content": "hello", "phase": "final_answer"}]


def test_what_follows_an_empty_text_goes_as_new_with_it():
    nothing, more = TextBlock(text=""), TextBlock(text="hello", extra=SAID)
    new = {"role": "assistant", "content": "hello", "phase": "final_answer"}
    assert sent(THOUGHT, nothing, more) == [new]
    # Without its id an empty part is such a text too, and reasoning that comes later has its own outcome.
    later = ThinkingBlock(thinking="hm", extra={**ITEM, "id": "rs_2"})
    assert sent(THOUGHT, nothing, SAID_NOTHING, more, later, CALL) == [new, {**REASONING, "id": "rs_2"}, CALLED]


@pytest.mark.unusual_body
def test_what_comes_beside_a_block_overrides_none_of_its_fields():
    extra = {"type": "x", "call_id": "toolu_1", "name": "y", "arguments": "z", "input": "z", "role": "user"}
    extra = {**extra, "content": "z", "id": "x_1", "encrypted_content": "z"}
    plain = {key: value for key, value in extra.items() if key != "type"}
    beside = {"type": "x", "text": "z", "refusal": "z", "annotations": [1]}
    blocks = (
        RedactedThinkingBlock(data="e", extra=extra),
        TextBlock(text="a", extra={**extra, "part": beside}),
        RefusalBlock(text="no", extra={**extra, "part": beside}),
        ToolCall(id="call_1", name="look", arguments={}, arguments_json="{}", extra=plain),
        ToolCall(id="call_2", name="run", arguments={}, arguments_json="ls", kind="custom", extra=plain),
        ToolCall(id="call_3", name="run", arguments={}, arguments_json="", extra={"type": "x_call", "call_id": "no"}),
    )
    wire = request.body(GPT, Context(messages=(HI, assistant(*blocks))), Options())["input"][1:6]
    message = {"type": "message", "role": "assistant", "status": "completed"}
    parts = [{**beside, **part("a")}, {**beside, "type": "refusal", "refusal": "no"}]
    assert wire == [
        {**extra, "type": "reasoning", "summary": [], "encrypted_content": "e"},
        {**extra, **message, "content": parts},
        {**plain, "type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"},
        {**plain, "type": "custom_tool_call", "call_id": "call_2", "name": "run", "input": "ls"},
        {"type": "x_call", "call_id": "call_3"},
    ]


@pytest.mark.parametrize("extra", [{"status": "completed"}, {**SAID, "id": None}, {**SAID, "id": " "}])
def test_a_part_that_is_not_known_goes_with_a_message_that_has_no_id(extra):
    dance = OpaqueBlock(kind="dance", raw={"type": "dance"}, extra=extra)
    assert sent(dance, dance, TextBlock(text="a", extra=extra), dance) == sent(TextBlock(text="a", extra=extra))


def test_every_item_is_sent_as_a_new_one_where_its_reasoning_is_not():
    called = {key: value for key, value in CALLED.items() if key != "id"}
    screen = {"type": "local_shell_call", "id": "lsh_1", "action": {}, "status": "completed"}
    shell = ToolCall(id="call_2", name="local_shell", arguments={}, arguments_json="{}", extra=screen)
    approval = {"type": "mcp_approval_request", "id": "mcpr_1", "arguments": "{}"}
    compaction = {"type": "compaction", "id": "cmp_1", "encrypted_content": "e"}
    wire = sent(
        UNPROVEN,
        SEARCHED,
        RefusalBlock(text="no", extra=SAID),
        CALL,
        shell,
        ServerToolBlock(kind="mcp_approval_request", raw=approval),
        OpaqueBlock(kind="compaction", raw=compaction),
    )
    assert [item.get("id", "") for item in wire[1:3]] == ["", ""]
    assert wire[2] == called
    # Others must have an id: a made one, always the same, but where something names it or proves itself.
    assert wire[0] == {**SEARCH, "id": wire[0]["id"]}
    assert [wire[at]["id"].partition("_")[0] for at in (0, 3)] == ["ws", "lsh"]
    assert not {"ws_1", "lsh_1"} & {wire[0]["id"], wire[3]["id"]}
    assert wire[4:] == [approval, compaction]
    assert sent(UNPROVEN, SEARCHED)[0] == wire[0]
    assert sent(THOUGHT, SEARCHED) == [REASONING, SEARCH]


def test_another_model_gets_no_ids_and_nothing_encrypted():
    fields = {"id": "fusion_1", "type": "fusion_call"}
    wire = sent(
        THOUGHT,
        SEARCHED,
        RefusalBlock(text="no", extra=SAID),
        OpaqueBlock(kind="compaction", raw={"type": "compaction", "id": "cmp_1", "encrypted_content": "e"}),
        OpaqueBlock(kind="fusion_call", raw=fields),
        model="gpt-4.1",
    )
    assert [item["id"] for item in wire if "id" in item] == [wire[0]["id"], wire[2]["id"]]
    assert wire == [
        {**SEARCH, "id": wire[0]["id"]},
        {"role": "assistant", "content": "no"},
        {**fields, "id": wire[2]["id"]},
    ]
    assert not {"ws_1", "fusion_1"} & {item.get("id") for item in wire}


@pytest.mark.parametrize("id", ["", "  ", None])
def test_an_id_of_nothing_is_none(id):
    blank = {"id": id, "status": "completed"}
    wire = sent(
        ThinkingBlock(thinking="hm", extra={**ITEM, "id": id}),
        TextBlock(text="a", extra=blank),
        RedactedThinkingBlock(data="e", extra={"id": id}),
        ToolCall(id="call_1", name="f", arguments={}, arguments_json="{}", extra=blank),
        ServerToolBlock(kind="web_search_call", raw={**SEARCH, "id": id}),
        OpaqueBlock(kind="fusion_call", raw={"type": "fusion_call", "id": id}),
    )
    assert not [item for item in wire if "id" in item]
    assert [item.get("type") for item in wire] == [None, "function_call", "web_search_call", "fusion_call"]


def test_what_is_not_known_goes_back_in_its_place():
    answer = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}
    assert sent(OpaqueBlock(kind="mcp_approval_response", raw=answer), protocol="", model="") == [answer]
    dance = OpaqueBlock(kind="output_dance", raw={"type": "output_dance", "steps": 1}, extra=SAID)
    message = {"type": "message", **SAID, "content": [part("a"), {"type": "output_dance", "steps": 1}]}
    assert sent(TextBlock(text="a", extra=SAID), dance) == [message]
    assert sent(UNPROVEN, TextBlock(text="a"), dance) == [{"role": "assistant", "content": "a"}]


def test_a_call_written_by_hand_has_its_arguments():
    call = ToolCall(id="call_1", name="look", arguments={"x": 1}, arguments_json="")
    assert sent(call)[0]["arguments"] == '{"x":1}'
    assert sent(ToolCall(id="call_1", name="look", arguments={}, arguments_json=""))[0]["arguments"] == "{}"
    deep: dict[str, object] = {}
    for _ in range(100_000):
        deep = {"x": deep}
    with pytest.raises(RequestError, match="call 'call_1': its input is nested too deeply"):
        sent(ToolCall(id="call_1", name="look", arguments=deep, arguments_json=""))


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


def test_an_error_keeps_what_is_attached_to_it():
    history = [HI, turn(CALL), results("call_1", TextContent("boom"), IMAGE, is_error=True)]
    texts = [{"type": "input_text", "text": text} for text in ("Error:", "boom")]
    assert body(history)["input"][-1]["output"] == [*texts, SHOWN]


@pytest.mark.parametrize("type", ["shell_call", "local_shell_call", "apply_patch_call"])
def test_an_output_that_is_text_says_what_was_attached(type):
    call = ToolCall(id="c", name="x", arguments={}, arguments_json="{}", extra={"type": type, "action": {}})
    wire = json.dumps(body([HI, turn(call), results("c", TextContent("boom"), IMAGE)])["input"][-1])
    assert "image/png" in wire
    assert "attached below" not in wire


def test_a_computers_call_without_a_screenshot_goes_with_its_result():
    item = {"type": "computer_call", "id": "cu_1", "action": {}}
    click = ToolCall(id="c", name="computer", arguments={}, arguments_json="{}", extra=item)
    assert body([HI, turn(THOUGHT, click), HI])["input"] == [USER, USER]
    other = ThinkingBlock(thinking="hm", extra={**ITEM, "id": "rs_2"})
    answered = ToolResultMessage((*results("c").results, *results().results))
    history = [HI, turn(other, click, THOUGHT, CALL), answered]
    assert body(history)["input"] == [USER, REASONING, CALLED, OUTPUT]
    # What else its reasoning led to goes as new: by its id the service would miss that reasoning.
    wire = body([HI, turn(THOUGHT, click, CALL, SEARCHED), answered])["input"]
    assert wire[1] == {key: value for key, value in CALLED.items() if key != "id"}
    assert wire[2] == {**SEARCH, "id": wire[2]["id"]} != SEARCH
    assert wire[0] == USER
    assert wire[3:] == [OUTPUT]
    # A model without eyes is told of the screenshot, which is none either.
    blind = models.openai_responses("gpt-5", input=())
    assert body([HI, turn(THOUGHT, click), results("c", IMAGE), HI], blind)["input"] == [USER, USER]


def test_a_search_for_tools_that_came_without_an_id_is_answered_without_one():
    item = {"type": "tool_search_call", "id": "ts_1", "execution": "client", "arguments": {}}
    call = ToolCall(id="call_0", name="tool_search", arguments={}, arguments_json="{}", extra={**item, "call_id": None})
    assert body([HI, turn(call), results("call_0")])["input"] == [
        USER,
        item,
        {"type": "tool_search_output", "tools": []},
    ]


def test_what_is_made_in_the_background_is_kept():
    assert body(extra_body={"background": True})["store"] is True
    assert body(extra_body={"background": False})["store"] is False


def test_a_limit_of_nothing_is_refused():
    with pytest.raises(RequestError, match="must be 1 or more"):
        body(max_output_tokens=0)


MCP = {"type": "mcp", "server_label": "wiki", "server_url": "https://x"}
CRM = {"type": "namespace", "name": "crm", "description": "d", "tools": [{**FUNCTION, "name": "find"}]}


@pytest.mark.parametrize(
    ("name", "choice"),
    [
        ("mcp", {"type": "mcp", "server_label": "wiki"}),
        ("wiki", {"type": "mcp", "server_label": "wiki"}),
        ("find", {"type": "function", "name": "find"}),
        ("look", {"type": "function", "name": "look"}),
    ],
)
def test_tools_that_have_their_name_elsewhere_can_be_named(name, choice):
    assert body(tools=[MCP, CRM, LOOK], tool_choice=NamedTool(name))["tool_choice"] == choice


def test_a_function_in_a_namespace_says_whether_it_is_strict():
    bare = {key: value for key, value in CRM["tools"][0].items() if key != "strict"}
    assert body(tools=[{**CRM, "tools": [bare]}])["tools"] == [CRM]


@pytest.mark.parametrize("tools", [["f"], [FUNCTION, None], "f", {"name": "f"}])
def test_the_tools_of_a_namespace_that_are_no_objects_are_told(tools):
    with pytest.raises(RequestError, match="the tools of the namespace 'crm' are a list of objects"):
        body(tools=[{**CRM, "tools": tools}])


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


def test_a_message_that_was_made_by_hand_is_not_added_to():
    said = {"type": "output_text", "text": "a", "annotations": []}
    raw = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [said]}
    kept = copy.deepcopy(raw)
    history = [HI, turn(OpaqueBlock(kind="message", raw=raw), TextBlock(text="b", extra=SAID)), HI]
    context = Context(messages=tuple(history))
    assert request.body(GPT, context, Options()) == request.body(GPT, context, Options())
    assert raw == kept
