"""Context, model and options → exact body; every body is also checked by the schema of the API."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from schemas import valid
from sseam import models
from sseam.content import DocumentContent, ImageContent, TextContent
from sseam.context import (
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
from sseam.message import Message, ServerToolBlock, TextBlock, ThinkingBlock, ToolCall
from sseam.protocols.gemini_generate import request
from sseam.tools import Tool, ToolResult

NEW = models.gemini("gemini-3-flash-preview")
FLASH = models.gemini("gemini-2.5-flash")
PRO = models.gemini("gemini-2.5-pro")
HI = UserMessage("hi")
USER = {"role": "user", "parts": [{"text": "hi"}]}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string", "minLength": 1}}, "required": ["city"]}
REDUCED = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
LOOK = Tool(name="look", description="looks", schema=SCHEMA)
FUNCTION = {"name": "look", "description": "looks", "parametersJsonSchema": REDUCED}


def body(messages=(HI,), model=FLASH, system="", tools=(), **options):
    context = Context(system=system, messages=tuple(messages), tools=tuple(tools))
    return valid("gemini-generate", request.body(model, context, Options(**options)))


def call(id="call_1", **rest):
    return ToolCall(id=id, name="look", arguments={"city": "x"}, arguments_json="{}", **rest)


def turn(*content, **rest):
    fields = {"protocol": "gemini-generate", "model": "gemini-3-flash-preview", "complete": True, **rest}
    return Message(content=content, **fields)


def results(*ids, **rest):
    fields = {"content": (TextContent("sunny"),), **rest}
    return ToolResultMessage(tuple(ToolResult(call_id=id, name="look", **fields) for id in ids))


def called(id=None, signature=None, **rest):
    part = {"functionCall": {**({"id": id} if id else {}), "name": "look", "args": {"city": "x"}}, **rest}
    return {**part, "thoughtSignature": signature} if signature else part


def answered(id=None, **rest):
    return {"functionResponse": {**({"id": id} if id else {}), "name": "look", "response": {"output": "sunny"}, **rest}}


def model_says(*parts):
    return {"role": "model", "parts": list(parts)}


def user_says(*parts):
    return {"role": "user", "parts": list(parts)}


def test_the_smallest_body_says_nothing_that_was_not_set():
    assert body() == {"contents": [USER]}


PDF = DocumentContent(media_type="application/pdf", data="aGk=")
IMAGE = ImageContent(media_type="image/png", data="aGk=")
BLOB = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}


@pytest.mark.parametrize(
    ("messages", "contents"),
    [
        # B255: a signature goes back on the very part on which it came, an empty part included.
        (
            [
                HI,
                turn(
                    ThinkingBlock(thinking="hm"),
                    TextBlock(text="a"),
                    TextBlock(text="", signature="s1"),
                    call(signature="s2"),
                    call("call_2"),
                ),
                results("call_2", "call_1"),
            ],
            [
                USER,
                model_says(
                    {"text": "a"}, {"text": "", "thoughtSignature": "s1"}, called("call_1", "s2"), called("call_2")
                ),
                user_says(answered("call_1"), answered("call_2")),
            ],
        ),
        (
            [HI, turn(ThinkingBlock(thinking="hm", signature="s"), TextBlock(text="a")), HI],
            [USER, model_says({"text": "hm", "thought": True, "thoughtSignature": "s"}, {"text": "a"}), USER],
        ),
        # An id that the service did not give is not sent.
        (
            [HI, turn(call(signature="s", extra={"id": None})), results("call_1")],
            [USER, model_says(called(None, "s")), user_says(answered())],
        ),
        # Fields of a part that are not modelled, and parts of the service's own tools.
        (
            [
                HI,
                turn(
                    TextBlock(text="a", extra={"partMetadata": {}}),
                    ServerToolBlock(
                        kind="executableCode", raw={"executableCode": {"code": "1"}, "thoughtSignature": "s"}
                    ),
                ),
                HI,
            ],
            [
                USER,
                model_says(
                    {"text": "a", "partMetadata": {}}, {"executableCode": {"code": "1"}, "thoughtSignature": "s"}
                ),
                USER,
            ],
        ),
        # B194
        (
            [HI, turn(call(signature="s")), HI],
            [
                USER,
                model_says(called("call_1", "s")),
                user_says(
                    {
                        "functionResponse": {
                            "id": "call_1",
                            "name": "look",
                            "response": {"error": "This call was not run, and there is no result."},
                        }
                    }
                ),
                USER,
            ],
        ),
        (
            [HI, turn(call(signature="s")), results("call_1", content=(TextContent("see"), IMAGE))],
            [
                USER,
                model_says(called("call_1", "s")),
                user_says(answered("call_1", response={"output": "see"}, parts=[BLOB])),
            ],
        ),
        (
            [
                UserMessage(
                    (
                        TextContent("see"),
                        IMAGE,
                        PDF,
                        ImageContent(media_type="", url="https://x/i"),
                        DocumentContent(media_type="text/plain", text="words", title="t"),
                    )
                )
            ],
            [
                user_says(
                    {"text": "see"},
                    BLOB,
                    {"inlineData": {"mimeType": "application/pdf", "data": "aGk="}},
                    {"fileData": {"fileUri": "https://x/i"}},
                    {"text": "t\n\nwords"},
                )
            ],
        ),
    ],
)
def test_contents(messages, contents):
    assert body(messages, NEW)["contents"] == contents


def test_b255_a_call_of_another_model_goes_to_gemini_3_only_with_the_placeholder_that_is_asked_for():
    foreign = turn(call(), call("call_2"), protocol="openai-chat", model="gpt-4o")
    open_turn = [HI, foreign, results("call_1", "call_2")]
    with pytest.raises(RequestError, match="'look' in the open turn has no thought signature"):
        body(open_turn, NEW)
    _, said, _ = body(open_turn, NEW, skip_signatures=True)["contents"]
    assert said["parts"] == [called("call_1", "skip_thought_signature_validator"), called("call_2")]
    # It stays there when the turn is over.
    over = body([*open_turn, assistant("a"), HI], NEW, skip_signatures=True)["contents"]
    assert over[1] == said
    # Neither in a turn that is over, nor by a model that does not check.
    assert body([*open_turn, HI], NEW)["contents"][1]["parts"][0] == called("call_1")
    assert body(open_turn, FLASH)["contents"][1]["parts"][0] == called("call_1")


def test_b255_every_step_of_the_open_turn_is_looked_at():
    first, second = turn(call(signature="s")), turn(call("call_2"))
    with pytest.raises(RequestError):
        body([HI, first, results("call_1"), second, results("call_2")], NEW)


def test_vertex_takes_no_ids():
    vertex = models.gemini(
        "gemini-3-pro", base_url="https://aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/google"
    )
    _, said, result = body([HI, turn(call(signature="s"), model="gemini-3-pro"), results("call_1")], vertex)["contents"]
    assert said["parts"] == [called(None, "s")]
    assert result["parts"] == [answered()]


@pytest.mark.parametrize(
    ("model", "options", "sent"),
    [
        (FLASH, {}, None),
        (FLASH, {"thinking": "off"}, {"thinkingBudget": 0}),
        (FLASH, {"thinking": "max"}, {"includeThoughts": True, "thinkingBudget": 24_576}),
        (PRO, {"thinking": "off"}, {"thinkingBudget": 128}),
        (PRO, {"thinking": "low", "thinking_summary": False}, {"includeThoughts": False, "thinkingBudget": 2_048}),
        (NEW, {"thinking": "off"}, {"thinkingLevel": "MINIMAL"}),
        (NEW, {"thinking": "max"}, {"includeThoughts": True, "thinkingLevel": "HIGH"}),
        (NEW, {"thinking_summary": True}, {"includeThoughts": True}),
        (
            models.gemini("gemini-3-pro-preview"),
            {"thinking": "medium"},
            {"includeThoughts": True, "thinkingLevel": "LOW"},
        ),
        (models.gemini("gemini-2.0-flash"), {"thinking": "high"}, None),
    ],
)
def test_thinking_levels(model, options, sent):
    assert body(model=model, **options).get("generationConfig", {}).get("thinkingConfig") == sent


@pytest.mark.parametrize(
    ("options", "calling"),
    [
        ({}, None),
        ({"tool_choice": "auto"}, {"mode": "AUTO"}),
        ({"tool_choice": "none"}, {"mode": "NONE"}),
        ({"tool_choice": "required"}, {"mode": "ANY"}),
        ({"tool_choice": NamedTool("look")}, {"mode": "ANY", "allowedFunctionNames": ["look"]}),
    ],
)
def test_tool_choice(options, calling):
    wire = body(tools=[LOOK], **options)
    assert wire["tools"] == [{"functionDeclarations": [FUNCTION]}]
    assert wire.get("toolConfig") == ({"functionCallingConfig": calling} if calling else None)


def test_no_functions_no_choice():
    assert "toolConfig" not in body(tools=[{"googleSearch": {}}], tool_choice="auto")
    assert "toolConfig" not in body(tool_choice="none")


def test_tools_in_every_form():
    before = copy.deepcopy(SCHEMA)
    own = {"functionDeclarations": [{"name": "own"}]}
    nothing = Tool(name="now", description="", schema={"type": "object", "properties": {}})
    anthropic = {"name": "look", "description": "looks", "input_schema": SCHEMA}
    wire = body(tools=[own, nothing, anthropic, {"googleSearch": {}}], model=NEW, tool_choice=NamedTool("own"))
    assert wire["tools"] == [{"functionDeclarations": [{"name": "now"}, FUNCTION]}, own, {"googleSearch": {}}]
    assert wire["toolConfig"]["includeServerSideToolInvocations"] is True
    assert before == SCHEMA
    with pytest.raises(RequestError, match="web_search"):
        body(tools=[{"type": "web_search"}])


@pytest.mark.parametrize("key", ["functionDeclarations", "function_declarations"])
@pytest.mark.unusual_body
def test_declarations_in_either_spelling_are_functions(key):
    own = {key: [{"name": "own"}]}
    for choice, calling in (
        ("required", {"mode": "ANY"}),
        ("none", {"mode": "NONE"}),
        (NamedTool("own"), {"mode": "ANY", "allowedFunctionNames": ["own"]}),
    ):
        context = Context(messages=(HI,), tools=(own,))
        wire = request.body(NEW, context, Options(tool_choice=choice))  # the published schema knows one spelling
        assert (wire["tools"], wire["toolConfig"]) == ([own], {"functionCallingConfig": calling})
    both = request.body(NEW, Context(messages=(HI,), tools=({**own, "googleSearch": {}},)), Options())
    assert both["toolConfig"] == {"includeServerSideToolInvocations": True}


@pytest.mark.parametrize(
    ("schema", "sent"),
    [
        ({"type": "object", "additionalProperties": {"type": "string"}}, True),
        ({"$ref": "#/$defs/A", "$defs": {"A": REDUCED}}, True),
        ({"type": "object", "anyOf": [REDUCED, {"type": "object", "required": ["x"]}]}, True),
        ({"type": "object"}, False),
        ({}, False),
        ({"type": "object", "properties": {}, "additionalProperties": False}, False),
    ],
)
def test_only_a_tool_without_arguments_goes_without_a_schema(schema, sent):
    (tools,) = body(tools=[Tool(name="f", description="", schema=schema)])["tools"]
    assert tools["functionDeclarations"][0].get("parametersJsonSchema") == (schema if sent else None)


@pytest.mark.parametrize("name", ["1-a", "", "a b", "fs/read", "é", "a" * 129, "a\n"])
def test_the_name_of_a_tool_is_one_that_the_service_takes(name):
    for tool in ({"name": name, "input_schema": SCHEMA}, {"functionDeclarations": [{"name": name}]}):
        with pytest.raises(RequestError, match="takes no tool of the name"):
            body(tools=[tool])


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("fs/read", "fs_read"),
        ("default_api.run code", "default_api.run_code"),
        ("1-a", "_1-a"),
        ("", "_"),
        ("é", "_"),
        ("1" * 128, "_" + "1" * 127),
        ("a" * 129, "a" * 128),
        ("fs.read:x-1", "fs.read:x-1"),
    ],
)
def test_a_call_that_was_made_goes_back_under_a_name_that_is_taken(name, sent):
    made = ToolCall(id="call_1", name=name, arguments={}, arguments_json="{}", signature="s")
    outcome = ToolResultMessage((ToolResult(call_id="call_1", name=name),))
    _, said, heard, _ = body([HI, turn(made), outcome, HI])["contents"]
    assert said["parts"][0]["functionCall"]["name"] == sent
    assert heard["parts"][0]["functionResponse"]["name"] == sent


@pytest.mark.parametrize("name", ["_", "a", "fs.read:x-1", "a" * 128])
def test_a_name_may_have_dots_and_colons(name):
    assert body(tools=[{"name": name, "input_schema": SCHEMA}])


def test_the_conversation_begins_with_the_user():
    with pytest.raises(RequestError, match="begins with the model"):
        body([assistant("hello"), HI])
    # What a cache holds comes before.
    assert body([assistant("hello"), HI], extra_body={"cachedContent": "cachedContents/1"})


def test_requests_to_code_assist_are_not_made():
    model = models.gemini("gemini-3-pro", dialect="code-assist")
    for make in (lambda: request.url(model), lambda: body(model=model)):
        with pytest.raises(RequestError, match="Code Assist are not made"):
            make()


def test_the_rest_of_the_options():
    wire = body(
        system=(SystemPart("a"), SystemPart("b")),
        max_output_tokens=9,
        temperature=0,
        top_p=0.5,
        top_k=3,
        seed=1,
        stop_sequences=("END",),
        output=OutputSchema(schema=SCHEMA),
        extra_body={"generationConfig": {"topK": 4}, "safetySettings": []},
    )
    assert wire == {
        "systemInstruction": {"parts": [{"text": "a"}, {"text": "b"}]},
        "contents": [USER],
        "generationConfig": {
            "maxOutputTokens": 9,
            "temperature": 0,
            "topP": 0.5,
            "topK": 4,
            "seed": 1,
            "stopSequences": ["END"],
            "responseMimeType": "application/json",
            "responseJsonSchema": REDUCED,
        },
        "safetySettings": [],
    }


def test_what_cannot_be_asked_for():
    schema: Any = '{"type":"object"}'
    with pytest.raises(RequestError, match="a schema is an object, got str"):
        body(output=OutputSchema(schema=schema))
    with pytest.raises(RequestError, match="the output limit is 0"):
        body(max_output_tokens=0)
    with pytest.raises(RequestError, match="no tools to choose from"):
        body(tools=[{"googleSearch": {}}], tool_choice="required")


def test_what_a_cache_holds_is_not_sent_again():
    wire = body(system="s", tools=[LOOK], tool_choice="auto", extra_body={"cachedContent": "cachedContents/1"})
    assert wire == {"contents": [USER], "cachedContent": "cachedContents/1"}


def test_texts_of_others():
    foreign = turn(
        ThinkingBlock(thinking="x", signature="s"),
        TextBlock(text="a", signature="s"),
        protocol="openai-chat",
        model="m",
    )
    assert body([HI, foreign, assistant("b"), HI])["contents"][1:3] == [
        model_says({"text": "a"}),
        model_says({"text": "b"}),
    ]


def test_url_and_headers():
    base = "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash"
    assert request.url(FLASH) == f"{base}:streamGenerateContent?alt=sse"
    assert request.url(FLASH, stream=False) == f"{base}:generateContent"
    odd = request.url(models.gemini("a?b#c d"), stream=False)
    assert odd == "https://generativelanguage.googleapis.com/v1beta/models/a%3Fb%23c%20d:generateContent"
    assert "/models/a/b@1:" in request.url(models.gemini("a/b@1"))
    assert request.headers(Options(), {"x-goog-api-key": "k"})["x-goog-api-key"] == "k"
