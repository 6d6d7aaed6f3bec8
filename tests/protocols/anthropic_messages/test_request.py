"""Context, model and options → exact body; every body is also checked by the schema of the API."""

from __future__ import annotations

import copy
import itertools
import re

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
from sseam.message import (
    Message,
    OpaqueBlock,
    RedactedThinkingBlock,
    ServerToolBlock,
    TextBlock,
    ThinkingBlock,
    ToolCall,
)
from sseam.protocols.anthropic_messages import request
from sseam.tools import Tool, ToolResult

OLD = models.anthropic("claude-sonnet-4-5")
NEW = models.anthropic("claude-opus-4-8")
HI = UserMessage("hi")
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
LOOK = Tool(name="look", description="looks", schema=SCHEMA)
WIRE_LOOK = {"name": "look", "description": "looks", "input_schema": SCHEMA}
CALL = ToolCall(id="toolu_1", name="look", arguments={"city": "Paris"}, arguments_json='{"city":"Paris"}')
NO_CACHE = CachePolicy(breakpoints=False)


def body(messages=(HI,), model=OLD, system="", tools=(), stream=True, **options):
    options.setdefault("cache", NO_CACHE)
    context = Context(system=system, messages=tuple(messages), tools=tuple(tools))
    return valid("anthropic-messages", request.body(model, context, Options(**options), stream=stream))


def said(*blocks):
    return {"role": "assistant", "content": list(blocks)}


def asked(*blocks):
    return {"role": "user", "content": list(blocks)}


def text(value, **rest):
    return {"type": "text", "text": value, **rest}


def turn(*content, **rest):
    fields = {"protocol": "anthropic-messages", "model": "claude-sonnet-4-5-20250929", "complete": True, **rest}
    return Message(content=content, **fields)


def results(id="toolu_1", *content, **rest):
    return ToolResultMessage((ToolResult(call_id=id, name="look", content=content or (TextContent("sunny"),), **rest),))


USED = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"city": "Paris"}}
GIVEN = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "sunny"}
IMAGE = ImageContent(media_type="image/png", data="aGk=")
OMITTED = '{"omitted":"image","media_type":"image/png","bytes":2,"reason":"a result that is an error is text"}'


def test_the_smallest_body_says_nothing_that_was_not_set():
    assert body() == {
        "model": "claude-sonnet-4-5",
        "max_tokens": 32_000,
        "messages": [asked(text("hi"))],
        "stream": True,
    }
    assert "stream" not in body(stream=False)


@pytest.mark.parametrize(
    ("messages", "wire"),
    [
        (
            [HI, turn(ThinkingBlock(thinking="hm", signature="s"), TextBlock(text="ok"), CALL), results()],
            [
                asked(text("hi")),
                said({"type": "thinking", "thinking": "hm", "signature": "s"}, text("ok"), USED),
                asked(GIVEN),
            ],
        ),
        # B194
        (
            [HI, turn(CALL), UserMessage("stop")],
            [
                asked(text("hi")),
                said(USED),
                asked(
                    {**GIVEN, "content": "This call was not run, and there is no result.", "is_error": True},
                    text("stop"),
                ),
            ],
        ),
        # Neighbours of one role are one message.
        ([HI, UserMessage("there")], [asked(text("hi"), text("there"))]),
        (
            [
                UserMessage(
                    (
                        TextContent("see"),
                        ImageContent(media_type="image/png", data="aGk="),
                        ImageContent(media_type="", url="https://x/i"),
                    )
                )
            ],
            [
                asked(
                    text("see"),
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
                    {"type": "image", "source": {"type": "url", "url": "https://x/i"}},
                )
            ],
        ),
        (
            [
                UserMessage(
                    (
                        DocumentContent(media_type="application/pdf", data="aGk=", title="t"),
                        DocumentContent(media_type="text/markdown", text="# a"),
                        DocumentContent(media_type="", url="https://x/d"),
                    )
                )
            ],
            [
                asked(
                    {
                        "type": "document",
                        "source": {"type": "base64", "media_type": "application/pdf", "data": "aGk="},
                        "title": "t",
                    },
                    {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "# a"}},
                    {"type": "document", "source": {"type": "url", "url": "https://x/d"}},
                )
            ],
        ),
        # A result with an image; one that is an error takes text alone, the rest follows it; one without content.
        (
            [HI, turn(CALL), results("toolu_1", TextContent("a"), ImageContent(media_type="image/png", data="aGk="))],
            [
                asked(text("hi")),
                said(USED),
                asked(
                    {
                        **GIVEN,
                        "content": [
                            text("a"),
                            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
                        ],
                    }
                ),
            ],
        ),
        (
            [
                HI,
                turn(CALL),
                results("toolu_1", TextContent("a"), ImageContent(media_type="image/png", data="aGk="), is_error=True),
            ],
            [
                asked(text("hi")),
                said(USED),
                asked({**GIVEN, "content": f"a\n{OMITTED}", "is_error": True}),
            ],
        ),
        (
            [HI, turn(CALL), ToolResultMessage((ToolResult(call_id="toolu_1", name="look"),))],
            [asked(text("hi")), said(USED), asked({"type": "tool_result", "tool_use_id": "toolu_1"})],
        ),
    ],
)
def test_messages(messages, wire):
    assert body(messages)["messages"] == wire


def test_b206_results_come_before_everything_else_that_follows_a_call():
    messages = body([HI, turn(CALL), UserMessage("and now"), results()])["messages"]
    assert messages == [asked(text("hi")), said(USED), asked(GIVEN, text("and now"))]


@pytest.mark.unusual_body
def test_the_thinking_of_a_server_that_signs_nothing_goes_back_to_it():
    kimi = models.compatible("kimi-k2", base_url="https://x/anthropic", protocol="anthropic-messages")
    history = [HI, turn(ThinkingBlock(thinking="hm"), CALL, model="kimi-k2"), results()]
    body_sent = request.body(kimi, Context(messages=tuple(history)), Options())
    assert body_sent["messages"][1]["content"][0] == {"type": "thinking", "thinking": "hm", "signature": ""}
    assert body(history, OLD)["messages"][1] == said(USED)


def test_what_the_provider_wants_back_comes_back_unchanged():
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"encrypted_content": "e"}]}
    new = {"type": "connector_text", "whatever": 1}
    cited = ({"type": "web_search_result_location", "encrypted_index": "i"},)
    caller = {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}
    own = turn(
        RedactedThinkingBlock(data="d"),
        ServerToolBlock(kind="server_tool_use", raw=search),
        ServerToolBlock(kind="web_search_tool_result", raw=found),
        TextBlock(text="a", citations=cited),
        OpaqueBlock(kind="connector_text", raw=new),
        ToolCall(id="toolu_1", name="look", arguments={"b": 1, "a": 2}, arguments_json="{}", extra={"caller": caller}),
    )
    assert body([HI, own, results()])["messages"][1]["content"] == [
        {"type": "redacted_thinking", "data": "d"},
        search,
        found,
        text("a", citations=list(cited)),
        new,
        {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"b": 1, "a": 2}, "caller": caller},
    ]


def test_a_caller_whose_block_is_gone_goes_too():
    call = ToolCall(
        id="toolu_1", name="look", arguments={}, arguments_json="{}", extra={"caller": {"tool_id": "srvtoolu_9"}}
    )
    assert body([HI, turn(call), results()])["messages"][1]["content"] == [{**USED, "input": {}}]


def test_a_paused_turn_is_sent_back_as_it_is():
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    paused = turn(
        ServerToolBlock(kind="server_tool_use", raw=search), stop_reason="pause_turn", model="claude-opus-4-8"
    )
    assert body([HI, paused], NEW)["messages"] == [asked(text("hi")), said(search)]
    gone_on = turn(
        ServerToolBlock(kind="web_search_tool_result", raw=found), TextBlock(text="ok"), model="claude-opus-4-8"
    )
    assert body([HI, paused, gone_on, HI], NEW)["messages"][1] == said(search, found, text("ok"))


SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
SEARCHING = ServerToolBlock(kind="server_tool_use", raw=SEARCH)


def test_a_servers_tool_stays_open_only_in_the_last_turn():
    paused = turn(TextBlock(text="so"), SEARCHING, stop_reason="pause_turn")
    assert body([HI, paused])["messages"][-1] == said(text("so"), SEARCH)
    # Blank text is none.
    assert body([HI, paused, UserMessage(" ")])["messages"][-1] == said(text("so"), SEARCH)
    assert body([HI, paused, UserMessage("no")])["messages"][1:] == [said(text("so")), asked(text("no"))]
    mixed = turn(SEARCHING, CALL, stop_reason="tool_use")
    assert body([HI, mixed, results()])["messages"][1:] == [said(SEARCH, USED), asked(GIVEN)]
    assert body([HI, mixed, results(), HI])["messages"][1:] == [said(USED), asked(GIVEN, text("hi"))]
    gone_on = [HI, mixed, results(), turn(TextBlock(text="ok")), HI]
    assert body(gone_on)["messages"][1:4] == [said(USED), asked(GIVEN), said(text("ok"))]
    late = turn(ServerToolBlock(kind="web_search_tool_result", raw=FOUND), TextBlock(text="ok"))
    assert body([HI, mixed, results(), late, HI])["messages"][1] == said(SEARCH, USED)
    # An error goes on with the turn as any result does, whatever is attached to it.
    broken = results("toolu_1", IMAGE, is_error=True)
    assert body([HI, mixed, broken])["messages"][1] == said(SEARCH, USED)


def test_thinking_that_led_to_a_dropped_server_call_goes_too():
    paused = turn(TextBlock(text="so"), ThinkingBlock(thinking="x", signature="s"), SEARCHING, stop_reason="pause_turn")
    assert body([HI, paused, HI])["messages"][1] == said(text("so"))


def test_a_caller_goes_with_the_open_call_that_it_names():
    caller = {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}
    call = ToolCall(id="toolu_1", name="look", arguments={}, arguments_json="{}", extra={"caller": caller})
    mixed = turn(SEARCHING, call, stop_reason="tool_use")
    assert body([HI, mixed, results(), HI])["messages"][1] == said({**USED, "input": {}})
    for answer in (results(), results("toolu_1", IMAGE, is_error=True)):
        assert body([HI, mixed, answer])["messages"][1] == said(SEARCH, {**USED, "input": {}, "caller": caller})


@pytest.mark.parametrize("id", [[1], {}, None, 3])
def test_an_id_of_a_server_call_that_is_no_text_is_none(id):
    odd = ServerToolBlock(kind="server_tool_use", raw={**SEARCH, "id": id})
    lost = ServerToolBlock(kind="web_search_tool_result", raw={**FOUND, "tool_use_id": id})
    call = ToolCall(id="toolu_1", name="look", arguments={}, arguments_json="{}", extra={"caller": {"tool_id": id}})
    assert body([HI, turn(odd, lost, call), results(), HI])["messages"][1] == said({**USED, "input": {}})


@pytest.mark.unusual_body
def test_what_comes_beside_a_block_overrides_none_of_its_fields():
    extra = {"type": "x", "id": "fc_1", "name": "y", "input": 1, "text": "z", "thinking": "z", "signature": "z"}
    extra = {**extra, "data": "z", "citations": [1]}
    call = ToolCall(id="toolu_1", name="look", arguments={"city": "Paris"}, arguments_json="", extra=extra)
    blocks = (
        ThinkingBlock(thinking="x", signature="s", extra=extra),
        RedactedThinkingBlock(data="d", extra=extra),
        TextBlock(text="a", citations=({"type": "c"},), extra=extra),
        call,
    )
    history = (HI, assistant(*blocks), results())
    sent = request.body(OLD, Context(messages=history), Options(cache=NO_CACHE))["messages"][1]["content"]
    own = (
        {"type": "thinking", "thinking": "x", "signature": "s"},
        {"type": "redacted_thinking", "data": "d"},
        text("a", citations=[{"type": "c"}]),
        USED,
    )
    assert sent == [extra | fields for fields in own]


@pytest.mark.parametrize("raw", [{}, {"type": None}, {"id": "x"}])
@pytest.mark.parametrize("kind", [OpaqueBlock, ServerToolBlock])
@pytest.mark.parametrize("after", [(), (HI,), (CALL, results())])
def test_a_block_without_a_type_is_told(raw, kind, after):
    blocks = [kind(kind="x", raw=raw), *(block for block in after if isinstance(block, ToolCall))]
    following = (message for message in after if not isinstance(message, ToolCall))
    with pytest.raises(RequestError, match="a block of the kind 'x' has no type"):
        body([HI, turn(*blocks), *following], thinking="low" if after else None)


def test_a_block_that_is_nested_too_deeply_is_told():
    raw = {"type": "x"}
    for _ in range(3_000):
        raw = {"type": "x", "content": [raw]}
    for cache in (NO_CACHE, CachePolicy()):
        with pytest.raises(RequestError, match="nested too deeply"):
            body([HI, turn(OpaqueBlock(kind="x", raw=raw)), HI], cache=cache)


def test_a_summary_is_gone_on_from():
    summary = {"type": "compaction", "content": "so far", "encrypted_content": "e"}
    compacted = turn(OpaqueBlock(kind="compaction", raw=summary), stop_reason="compaction")
    assert body([HI, compacted], NEW)["messages"] == [asked(text("hi")), said(summary)]


def test_a_paused_turn_that_was_not_accepted_is_a_prefill():
    paused = turn(TextBlock(text="so "), SEARCHING, stop_reason="pause_turn", complete=False)
    assert body([HI, paused])["messages"][1] == said(text("so"))
    with pytest.raises(RequestError, match="ends with the assistant"):
        body([HI, paused], NEW)


def test_a_last_turn_of_which_nothing_is_left_leaves_the_users_text_alone():
    history = [UserMessage("hi \n"), turn(SEARCHING)]
    for model in (OLD, NEW):
        assert body(history, model)["messages"] == [asked(text("hi \n"))]


def test_a_paused_turn_without_thinking_goes_on_without():
    paused = turn(TextBlock(text="so"), SEARCHING, stop_reason="pause_turn")
    assert body([HI, paused], thinking="high")["thinking"] == {"type": "disabled"}
    thought = turn(ThinkingBlock(thinking="x", signature="s"), SEARCHING, stop_reason="pause_turn")
    assert body([HI, thought], thinking="high")["thinking"]["type"] == "enabled"


def test_the_container_comes_back_while_a_turn_waits_in_it():
    raw = {"container": {"id": "container_1", "expires_at": "later"}}
    waiting = turn(SEARCHING, CALL, stop_reason="tool_use", raw=raw)
    assert body([HI, waiting, results()])["container"] == "container_1"
    skills = {"skills": [{"type": "anthropic", "skill_id": "x"}]}
    wire = body([HI, waiting, results()], extra_body={"container": skills})
    assert wire["container"] == {"id": "container_1", **skills}
    assert body([HI, turn(SEARCHING, stop_reason="pause_turn", raw=raw)])["container"] == "container_1"
    # It waits for an error too, and for another model of the service, but not for what another service gave.
    other = turn(CALL, stop_reason="tool_use", raw=raw, model="claude-sonnet-5")
    for pending in ([waiting, results("toolu_1", IMAGE, is_error=True)], [other, results()]):
        assert body([HI, *pending])["container"] == "container_1"
    foreign = turn(CALL, stop_reason="tool_use", raw=raw, protocol="openai-chat")
    assert "container" not in body([HI, foreign, results()])
    for over in ([waiting, results(), HI], [turn(TextBlock(text="ok"), raw=raw)], [turn(CALL, raw={}), results()]):
        assert "container" not in body([HI, *over])


def test_what_answers_behind_a_fallback_goes_back_to_both_models():
    fallback = {"type": "fallback", "from": {"model": "claude-fable-5"}, "to": {"model": "claude-opus-4-8"}}
    thought = ThinkingBlock(thinking="x", signature="s")
    own = turn(OpaqueBlock(kind="fallback", raw=fallback), thought, CALL, model="claude-opus-4-8")
    signed = {"type": "thinking", "thinking": "x", "signature": "s"}
    for model in (models.anthropic("claude-fable-5"), NEW):
        assert body([HI, own, results()], model)["messages"][1] == said(fallback, signed, USED)
    assert body([HI, own, results()], models.anthropic("claude-opus-5"))["messages"][1] == said(fallback, USED)


def test_thinking_with_an_unknown_delta_is_not_what_came():
    odd = ThinkingBlock(thinking="x", signature="s", extra={"unknown_deltas": [{"type": "new"}]})
    shown = TextBlock(text="a", extra={"unknown_deltas": [{"type": "new"}]})
    assert body([HI, turn(odd, shown), HI])["messages"][1] == said(text("a"))


def test_an_error_says_what_was_attached_to_it():
    log = DocumentContent(media_type="text/plain", text="log", title="t")
    messages = body([HI, turn(CALL), results("toolu_1", IMAGE, log, is_error=True), UserMessage("and now")])["messages"]
    error = {**GIVEN, "content": f"{OMITTED}\nt\n\nlog", "is_error": True}
    assert messages[2] == asked(error, text("and now"))
    silent = ToolResultMessage((ToolResult(call_id="toolu_1", name="look", is_error=True),))
    assert (
        body([HI, turn(CALL), silent])["messages"][2]["content"][0]["content"] == "The tool failed without a message."
    )


def test_attachments_go_in_the_form_that_is_taken():
    def sent(*parts):
        return body([UserMessage((TextContent("see"), *parts))])["messages"][0]["content"][1:]

    plain = {"type": "text", "media_type": "text/plain", "data": "hi"}
    assert sent(DocumentContent(media_type="text/csv; charset=utf-8", data="aGk=")) == [
        {"type": "document", "source": plain}
    ]
    assert sent(ImageContent(media_type="image/jpg", data="aGk=")) == [
        {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "aGk="}}
    ]
    assert sent(DocumentContent(media_type="text/plain", text=" ")) == []
    for part in (
        ImageContent(media_type="image/svg+xml", data="aGk="),
        DocumentContent(media_type="application/msword", data="aGk=", title="t"),
    ):
        (described,) = sent(part)
        assert described["type"] == "text"
        assert f"of type {part.media_type} is not taken" in described["text"]


def test_names_that_the_api_refuses():
    foreign = turn(ToolCall(id="t", name="a.b:c", arguments={}, arguments_json="{}"), model="x", protocol="openai-chat")
    assert body([HI, foreign, results("t")])["messages"][1]["content"][0]["name"] == "a_b_c"
    nameless = assistant(ToolCall(id="t", name="", arguments={}, arguments_json="{}"))
    assert body([HI, nameless, results("t")])["messages"][1]["content"][0]["name"] == "_"
    for name in ("a.b", "a:b", "x" * 65):
        with pytest.raises(RequestError, match="1 to 64 of letters"):
            body(tools=[{"name": name, "parameters": {"type": "object"}}])
        with pytest.raises(RequestError, match="1 to 64 of letters"):
            body(tools=[{"name": name, "input_schema": {"type": "object"}}])


@pytest.mark.parametrize("key", ["anyOf", "oneOf", "allOf"])
def test_a_schema_that_branches_at_its_root_is_told(key):
    with pytest.raises(RequestError, match=f"tool 'f': its schema has '{key}' at the root"):
        body(tools=[{"name": "f", "parameters": {key: [{"type": "object"}]}}])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"max_output_tokens": 0}, "an output limit of 0"),
        ({"max_output_tokens": -5}, "the output limit is negative: -5"),
        ({"stop_sequences": ("END", " \n")}, re.escape("stop_sequences[1] holds nothing but white space")),
    ],
)
def test_limits_that_the_api_refuses(options, told):
    with pytest.raises(RequestError, match=told):
        body(**options)


def test_a_tool_without_a_name_cannot_be_named():
    with pytest.raises(RequestError, match="tool_choice names 'None'"):
        body(tools=[{"type": "mcp_toolset", "mcp_server_name": "x"}], tool_choice=NamedTool("None"))


@pytest.mark.parametrize(
    ("level", "model", "sent"),
    [
        (None, OLD, {}),
        ("off", OLD, {"thinking": {"type": "disabled"}}),
        ("minimal", OLD, {"thinking": {"type": "enabled", "budget_tokens": 1_024}}),
        ("medium", OLD, {"thinking": {"type": "enabled", "budget_tokens": 8_192}}),
        ("max", OLD, {"thinking": {"type": "enabled", "budget_tokens": 16_000}}),
        (
            "xhigh",
            models.anthropic("claude-opus-4-5"),
            {"thinking": {"type": "enabled", "budget_tokens": 16_000}, "output_config": {"effort": "high"}},
        ),
        (
            "xhigh",
            models.anthropic("claude-opus-4-6"),
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}},
        ),
        ("minimal", NEW, {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}),
        ("xhigh", NEW, {"thinking": {"type": "adaptive"}, "output_config": {"effort": "xhigh"}}),
        ("off", NEW, {"thinking": {"type": "disabled"}}),
        ("max", models.anthropic("claude-fable-5"), {"output_config": {"effort": "max"}}),
        ("off", models.anthropic("claude-fable-5"), {"output_config": {"effort": "low"}}),
        (
            "medium",
            models.anthropic("claude-sonnet-5-5"),
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "medium"}},
        ),
        ("high", models.anthropic("claude-3-opus-20240229"), {}),
        ("off", models.anthropic("claude-3-opus-20240229"), {}),
        (
            "low",
            models.compatible("kimi-k2", base_url="https://x/anthropic", protocol="anthropic-messages"),
            {"thinking": {"type": "enabled", "budget_tokens": 2_048}},
        ),
    ],
)
def test_thinking_levels(level, model, sent):
    wire = body(model=model, thinking=level)
    assert {key: wire[key] for key in ("thinking", "output_config") if key in wire} == sent


@pytest.mark.parametrize(
    ("summary", "display"), [(None, {}), (True, {"display": "summarized"}), (False, {"display": "omitted"})]
)
def test_readable_thinking_is_asked_for(summary, display):
    assert body(model=NEW, thinking="low", thinking_summary=summary)["thinking"] == {"type": "adaptive", **display}


def test_thinking_leaves_room_for_an_answer():
    assert body(thinking="high", max_output_tokens=3_000)["thinking"]["budget_tokens"] == 1_500
    assert body(thinking="high", max_output_tokens=1_100)["thinking"]["budget_tokens"] == 1_024
    with pytest.raises(RequestError, match="above 1,024"):
        body(thinking="low", max_output_tokens=1_024)


def test_thinking_with_a_budget_waits_for_a_turn_that_began_with_it():
    foreign = turn(ThinkingBlock(thinking="x", signature="s"), CALL, protocol="gemini-generate", model="gemini-3-pro")
    assert body([HI, foreign, results()], thinking="low")["thinking"] == {"type": "disabled"}
    own = turn(ThinkingBlock(thinking="x", signature="s"), CALL)
    second = turn(ToolCall(id="toolu_2", name="look", arguments={}, arguments_json="{}"))
    assert body([HI, own, results(), second, results("toolu_2")], thinking="low")["thinking"]["type"] == "enabled"
    assert body([HI, foreign, results(), HI], thinking="low")["thinking"]["type"] == "enabled"
    broken = results("toolu_1", IMAGE, is_error=True)
    assert body([HI, turn(CALL), broken], thinking="low")["thinking"] == {"type": "disabled"}


@pytest.mark.parametrize(
    ("model", "options", "sent"),
    [
        (OLD, {"temperature": 0.5, "top_p": 0.9, "top_k": 5}, {"temperature": 0.5, "top_k": 5}),
        (OLD, {"top_p": 0.9}, {"top_p": 0.9}),
        (OLD, {"temperature": 0}, {"temperature": 0}),
        (OLD, {"temperature": 1, "top_p": 0.96, "thinking": "low"}, {"top_p": 0.96}),
        (OLD, {"top_p": 0.5, "thinking": "low"}, {}),
        (
            models.anthropic("claude-3-5-haiku-latest"),
            {"temperature": 0.5, "top_p": 0.9},
            {"temperature": 0.5, "top_p": 0.9},
        ),
        (NEW, {"temperature": 0.5, "top_p": 0.9, "top_k": 5}, {}),
        (OLD, {"temperature": 0.5, "extra_headers": {"Anthropic-Version": "2026-10-21"}}, {}),
        (OLD, {"seed": 1}, {}),
    ],
)
def test_sampling_is_left_out_where_it_is_refused(model, options, sent):
    wire = body(model=model, **options)
    assert {key: wire[key] for key in ("temperature", "top_p", "top_k", "seed") if key in wire} == sent


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        ({}, None),
        ({"tool_choice": "auto"}, {"type": "auto"}),
        ({"tool_choice": "none"}, {"type": "none"}),
        ({"tool_choice": "required"}, {"type": "any"}),
        ({"tool_choice": NamedTool("look")}, {"type": "tool", "name": "look"}),
        ({"parallel_tool_calls": False}, {"type": "auto", "disable_parallel_tool_use": True}),
        ({"tool_choice": "required", "parallel_tool_calls": True}, {"type": "any", "disable_parallel_tool_use": False}),
    ],
)
def test_tool_choice(options, sent):
    assert body(tools=[LOOK], **options).get("tool_choice") == sent


def test_no_tools_no_choice():
    assert "tool_choice" not in body(tool_choice="auto", parallel_tool_calls=False)
    assert "tool_choice" not in body(tool_choice="none")


def test_a_forced_tool_and_thinking():
    assert body(tools=[LOOK], tool_choice="required", thinking="high")["thinking"] == {"type": "disabled"}
    assert body(model=NEW, tools=[LOOK], tool_choice="required", thinking="high")["thinking"] == {"type": "adaptive"}
    with pytest.raises(RequestError, match="does not take a forced tool_choice"):
        body(model=models.anthropic("claude-opus-5-5"), tools=[LOOK], tool_choice="required")


def test_a_prefill_is_taken_where_the_model_takes_it():
    prefill = [HI, assistant("The answer is \n")]
    assert body(prefill)["messages"][1] == said(text("The answer is"))
    for model, options in ((NEW, {}), (OLD, {"thinking": "low"}), (OLD, {"output": OutputSchema(schema=SCHEMA)})):
        with pytest.raises(RequestError, match="ends with the assistant"):
            body(prefill, model, **options)


def test_tools_in_every_form():
    web = {"type": "web_search_20250305", "name": "web_search", "max_uses": 2}
    own = {"name": "own", "input_schema": {"type": "object"}, "defer_loading": True}
    nested = {"type": "function", "function": {"name": "other", "parameters": {"properties": {}}}}
    assert body(tools=[LOOK, web, own, nested])["tools"] == [
        WIRE_LOOK,
        web,
        own,
        {"name": "other", "input_schema": {"type": "object", "properties": {}}},
    ]


@pytest.mark.parametrize("type", ["browser_toolset_20260801", "computer_toolset_20260801", "mcp_toolset"])
def test_a_set_of_tools_has_no_name(type):
    assert body(tools=[LOOK, {"type": type}])["tools"] == [WIRE_LOOK, {"type": type}]
    assert body(tools=[{"type": type}], tool_choice="required")["tool_choice"] == {"type": "any"}


@pytest.mark.parametrize("strict", [True, False, None])
def test_b247_strict_is_sent_only_with_a_schema_that_satisfies_it(strict):
    before = copy.deepcopy(SCHEMA)
    free = Tool(
        name="free", description="", schema={"type": "object", "properties": {"a": {"type": "object"}}}, strict=strict
    )
    first, second = body(tools=[Tool(name="look", description="looks", schema=SCHEMA, strict=strict), free])["tools"]
    if strict:
        assert first == {**WIRE_LOOK, "input_schema": {**SCHEMA, "additionalProperties": False}, "strict": True}
    else:
        assert first == WIRE_LOOK
    assert second == {"name": "free", "input_schema": free.schema}
    assert before == SCHEMA


def test_structured_output():
    closed = {"type": "json_schema", "schema": {**SCHEMA, "additionalProperties": False}}
    assert body(output=OutputSchema(schema=SCHEMA))["output_config"] == {"format": closed}
    assert body(model=NEW, thinking="low", output=OutputSchema(schema=SCHEMA))["output_config"] == {
        "effort": "low",
        "format": closed,
    }
    free = {"type": "object", "additionalProperties": True}
    assert body(output=OutputSchema(schema=free, strict=False))["output_config"]["format"]["schema"] == free
    with pytest.raises(RequestError, match="no strict form"):
        body(output=OutputSchema(schema=free))


def test_the_rest_of_the_options():
    wire = body(
        max_output_tokens=10,
        stop_sequences=("END",),
        metadata={"user_id": "u"},
        extra_body={"service_tier": "auto", "metadata": {"user_id": "v"}},
    )
    assert wire == {
        "model": "claude-sonnet-4-5",
        "max_tokens": 10,
        "messages": [asked(text("hi"))],
        "stop_sequences": ["END"],
        "metadata": {"user_id": "v"},
        "stream": True,
        "service_tier": "auto",
    }
    assert body(max_output_tokens=0, stream=False)["max_tokens"] == 0
    assert body(model=models.anthropic("claude-3-opus-20240229"))["max_tokens"] == 4_096


def test_url_and_headers():
    assert request.url(OLD) == "https://api.anthropic.com/v1/messages"
    options = Options(extra_headers={"Anthropic-Beta": "a,b"})
    assert request.headers(options, {"x-api-key": "k"}) == {
        "content-type": "application/json",
        "accept": "text/event-stream",
        "anthropic-version": "2023-06-01",
        "x-api-key": "k",
        "anthropic-beta": "a,b",
    }


# ---- cache breakpoints

MARK = {"cache_control": {"type": "ephemeral"}}


def marks(wire):
    """The paths of the marked blocks."""
    found = [f"tools[{n}]" for n, tool in enumerate(wire.get("tools", ())) if "cache_control" in tool]
    found += [f"system[{n}]" for n, part in enumerate(wire.get("system", ())) if "cache_control" in part]
    for m, message in enumerate(wire["messages"]):
        found += [f"messages[{m}].content[{n}]" for n, part in enumerate(message["content"]) if "cache_control" in part]
    return found


@pytest.mark.parametrize(
    ("context", "places"),
    [
        ({}, ["messages[0].content[0]"]),
        ({"system": "s"}, ["system[0]", "messages[0].content[0]"]),
        ({"system": "s", "tools": [LOOK]}, ["tools[0]", "system[0]", "messages[0].content[0]"]),
        ({"messages": [HI, turn(CALL), results()]}, ["messages[2].content[0]"]),
        ({"messages": [HI, turn(CALL), results(), UserMessage("x")]}, ["messages[2].content[1]"]),
        ({"messages": [HI, assistant("a")]}, ["messages[0].content[0]"]),
        (
            {"system": (SystemPart("a", cache=True), SystemPart("b"))},
            ["system[0]", "system[1]", "messages[0].content[0]"],
        ),
        ({"system": (SystemPart("a"), SystemPart("b", cache=True))}, ["system[1]", "messages[0].content[0]"]),
        # The caller's own leave room for one: the last user message comes first.
        (
            {
                "system": (SystemPart("a", cache=True), SystemPart("b", cache=True), SystemPart("c")),
                "messages": [UserMessage("x", cache=True), assistant("a"), HI],
            },
            ["system[0]", "system[1]", "messages[0].content[0]", "messages[2].content[0]"],
        ),
        # Not on a tool that is loaded later.
        (
            {"tools": [LOOK, {"name": "late", "input_schema": {"type": "object"}, "defer_loading": True}]},
            ["tools[0]", "messages[0].content[0]"],
        ),
    ],
)
def test_breakpoints_place_themselves(context, places):
    assert marks(body(cache=CachePolicy(), **context)) == places


def test_the_callers_own_are_kept_where_none_are_to_be_placed():
    history = [UserMessage("x", cache=True), turn(CALL), ToolResultMessage(results().results, cache=True)]
    assert marks(body(history, system="s")) == ["messages[0].content[0]", "messages[2].content[0]"]


def test_b249_a_fifth_breakpoint_is_a_local_error_that_names_the_places():
    tool = {**WIRE_LOOK, **MARK}
    system = (SystemPart("a", cache=True), SystemPart("b", cache=True))
    messages = [UserMessage("x", cache=True), assistant("a"), UserMessage("y", cache=True)]
    places = "tools[0], system[0], system[1], messages[0].content[0], messages[2].content[0]"
    told = f"5 cache breakpoints, at most 4 are taken: {places}"
    with pytest.raises(RequestError, match=re.escape(told)):
        body(messages, system=system, tools=[tool])
    with pytest.raises(RequestError, match="5 cache breakpoints"):
        body(messages, system=system, extra_body={"cache_control": {"type": "ephemeral"}})


def test_b249_marks_are_counted_on_the_blocks_that_are_sent():
    nested = [text(str(n), **MARK) for n in range(5)]
    with pytest.raises(RequestError, match=re.escape("messages[0].content[0].content[4]")):
        body(extra_body={"messages": [asked({"type": "tool_result", "tool_use_id": "t", "content": nested})]})


@pytest.mark.parametrize(("retention", "ttl"), [(None, {}), ("short", {"ttl": "5m"}), ("long", {"ttl": "1h"})])
def test_how_long_a_breakpoint_lives(retention, ttl):
    wire = body(system=(SystemPart("a", cache=True),), cache=CachePolicy(retention=retention))
    assert (
        wire["system"][0]["cache_control"]
        == wire["messages"][0]["content"][0]["cache_control"]
        == {"type": "ephemeral", **ttl}
    )


def test_a_longer_life_behind_a_shorter_one_is_told():
    with pytest.raises(RequestError, match=re.escape("messages[0].content[0] lives longer than tools[0]")):
        body([UserMessage("x", cache=True)], tools=[{**WIRE_LOOK, **MARK}], cache=CachePolicy(retention="long"))


LONG = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
SHORT = {"cache_control": {"type": "ephemeral", "ttl": "5m"}}


def test_breakpoints_that_place_themselves_give_way_to_the_callers():
    wire = body(system="s", tools=[{**WIRE_LOOK, **MARK}], cache=CachePolicy(retention="long"))
    assert wire["tools"] == [{**WIRE_LOOK, **MARK}]
    assert wire["system"] == [text("s", **SHORT)]
    assert wire["messages"] == [asked(text("hi", **SHORT))]
    # Before one that lives longer there is none: the longer one covers what stands before it.
    wire = body(tools=[LOOK], cache=CachePolicy(), extra_body={"system": [text("s", **LONG)]})
    assert (wire["tools"], wire["system"]) == ([WIRE_LOOK], [text("s", **LONG)])
    assert wire["messages"] == [asked(text("hi", **MARK))]
    wire = body(tools=[LOOK], cache=CachePolicy(retention="long"), extra_body={"system": [text("s", **SHORT)]})
    assert (wire["tools"], wire["messages"]) == ([{**WIRE_LOOK, **LONG}], [asked(text("hi", **SHORT))])


def test_b249_one_mark_of_the_callers_is_one_breakpoint():
    calls = [ToolCall(id=f"t{n}", name="look", arguments={}, arguments_json="{}") for n in range(3)]
    given = tuple(ToolResult(call_id=call.id, name="look", content=(TextContent("r"),)) for call in calls)
    wire = body([HI, *map(turn, calls), ToolResultMessage(given, cache=True)])
    assert marks(wire) == ["messages[6].content[0]"]


@pytest.mark.parametrize(
    ("extra", "told"),
    [
        ({"messages": [{"role": "user"}]}, "messages[0]: expected an object with content, got dict"),
        ({"messages": None}, "messages: expected a list, got NoneType"),
        ({"messages": ["x"]}, "messages[0]: expected an object with content, got str"),
        ({"messages": [{"role": "user", "content": [1]}]}, "messages[0].content[0]: expected an object, got int"),
        ({"messages": [asked({"type": ["x"]})]}, "messages[0].content[0].type: expected a text, got list"),
        ({"messages": [asked(text("x", cache_control="x"))]}, "cache_control: expected an object, got str"),
        ({"tools": ["x"]}, "tools[0]: expected an object, got str"),
        ({"tools": {"a": 1}}, "tools: expected a list, got dict"),
        ({"system": ["x"]}, "system[0]: expected an object, got str"),
        ({"cache_control": "x"}, "cache_control: expected an object, got str"),
    ],
)
@pytest.mark.parametrize("breakpoints", [True, False])
def test_what_the_caller_puts_into_the_body_is_looked_at_before_it_is_read(extra, told, breakpoints):
    options = Options(extra_body=extra, cache=CachePolicy(breakpoints=breakpoints))
    with pytest.raises(RequestError, match=re.escape(told)):
        request.body(OLD, Context(messages=(HI,)), options)


@pytest.mark.parametrize("extra", [{"system": "s"}, {"system": None}, {"messages": [{"role": "user", "content": "x"}]}])
@pytest.mark.unusual_body
def test_what_the_api_knows_in_two_forms_passes(extra):
    sent = request.body(OLD, Context(messages=(HI,)), Options(extra_body=extra))
    assert all(sent[name] == value for name, value in extra.items())


def test_the_automatic_breakpoint_is_left_alone():
    wire = body(system="s", cache=CachePolicy(), extra_body={"cache_control": {"type": "ephemeral"}})
    assert marks(wire) == []


def test_a_growing_conversation_keeps_its_bytes():
    history = [
        HI,
        turn(ThinkingBlock(thinking="x", signature="s"), CALL),
        results(),
        assistant("ok"),
        HI,
        assistant("a"),
        HI,
    ]
    bodies = [body(history[: n + 1], system="s", tools=[LOOK], cache=CachePolicy()) for n in range(0, 7, 2)]
    for before, after in itertools.pairwise(bodies):
        assert (before["system"], before["tools"]) == (after["system"], after["tools"])
        for earlier, later in zip(before["messages"], after["messages"], strict=False):
            assert unmarked(earlier) == unmarked(later)


def unmarked(message):
    return {
        **message,
        "content": [{k: v for k, v in part.items() if k != "cache_control"} for part in message["content"]],
    }
