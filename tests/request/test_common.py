from __future__ import annotations

import threading

import pytest

from sseam.content import DocumentContent, ImageContent, TextContent
from sseam.context import NamedTool, Options
from sseam.errors import RequestError
from sseam.request import (
    FunctionTool,
    join_url,
    merge_body,
    merge_headers,
    output_limit,
    read_tools,
    require_declared,
    result_text,
)
from sseam.tools import Tool, ToolResult

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
F = FunctionTool(name="f", description="d", schema=SCHEMA)


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("https://h/v1", "https://h/v1/x"),
        ("https://h/v1/", "https://h/v1/x"),
        ("https://h", "https://h/x"),
        ("https://h/v1?api-version=2024", "https://h/v1/x?api-version=2024"),
    ],
)
def test_join_url(base, url):
    assert join_url(base, "/x") == url


def test_the_callers_headers_win_whatever_their_case():
    options = Options(extra_headers={"Anthropic-Version": "new", "X": "1"})
    assert merge_headers({"anthropic-version": "old", "a": "b"}, options) == {
        "anthropic-version": "new",
        "a": "b",
        "x": "1",
    }


def test_the_callers_fields_are_merged_and_nothing_is_changed_in_place():
    body = {"a": {"b": 1, "c": [1]}, "d": 1}
    extra = {"a": {"c": [2]}, "e": {"f": []}}
    merged = merge_body(body, extra)
    assert merged == {"a": {"b": 1, "c": [2]}, "d": 1, "e": {"f": []}}
    merged["e"]["f"].append(1)
    merged["a"]["x"] = 1
    assert (body, extra) == ({"a": {"b": 1, "c": [1]}, "d": 1}, {"a": {"c": [2]}, "e": {"f": []}})


FORMS = [
    Tool(name="f", description="d", schema=SCHEMA),
    {"name": "f", "description": "d", "input_schema": SCHEMA},
    {"name": "f", "description": "d", "inputSchema": SCHEMA},
    {"type": "function", "name": "f", "description": "d", "parameters": SCHEMA},
    {"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}},
    {"functionDeclarations": [{"name": "f", "description": "d", "parametersJsonSchema": SCHEMA}]},
    {"function_declarations": [{"name": "f", "description": "d", "parameters": SCHEMA}]},
]


@pytest.mark.parametrize("tool", FORMS)
def test_a_tool_is_read_in_every_form(tool):
    assert read_tools([tool], lambda _: False) == [F]


OWN_FORM = {"type": "OBJECT", "properties": {"a": {"type": "STRING", "nullable": True}}}
READ = {"type": "object", "properties": {"a": {"type": ["string", "null"]}}}


def test_the_parameters_of_a_declaration_are_read_as_json_schema():
    declared = {"functionDeclarations": [{"name": "f", "parameters": OWN_FORM}, {"name": "g"}]}
    first, second = read_tools([declared], lambda _: False)
    assert (first.schema, second.schema) == (READ, {"type": "object", "properties": {}})
    # The other field holds JSON Schema already.
    (as_is,) = read_tools([{"functionDeclarations": [{"name": "f", "parametersJsonSchema": SCHEMA}]}], lambda _: False)
    assert as_is.schema is SCHEMA


@pytest.mark.parametrize("schema", [{}, {"type": "object"}, {"additionalProperties": False}])
def test_a_tool_whose_schema_says_no_more_than_object_has_no_arguments(schema):
    for tool in ({"name": "f", "input_schema": schema}, Tool(name="f", schema=schema)):
        (read,) = read_tools([tool], lambda _: False)
        assert read.schema == {"type": "object", **schema, "properties": {}}


def test_a_tool_of_any_arguments_keeps_its_schema():
    anything = {"type": "object", "additionalProperties": True}
    (read,) = read_tools([{"name": "f", "input_schema": anything}], lambda _: False)
    assert read.schema is anything


def test_a_tool_in_the_services_own_form_is_not_touched():
    own = {"type": "web_search_20250305", "name": "web_search"}
    assert read_tools([own], lambda tool: tool is own)[0] is own


@pytest.mark.parametrize("entry", [{"type": "custom", "name": "f"}, {"type": "custom", "custom": {"name": "f"}}])
def test_a_tool_of_free_text_has_a_schema_where_it_needs_one(entry):
    (tool,) = read_tools([entry], lambda _: False)
    assert tool.free_text
    assert tool.schema["required"] == ["input"]


@pytest.mark.parametrize(
    ("tools", "told"),
    [
        ([{"type": "web_search"}], r"tools\[0\]: a tool that this service does not know: 'web_search'"),
        ([{"googleSearch": {}}], r"tools\[0\]: a tool that this service does not know: \['googleSearch'\]"),
        (["name"], r"tools\[0\]: expected a Tool or a dict, got str"),
        ([{"functionDeclarations": [], "googleSearch": {}}], r"this service does not know: \['googleSearch'\]"),
        ([{"functionDeclarations": {"name": "f"}}, {"name": "f"}], "two tools have the name 'f'"),
        ([{"functionDeclarations": ["f"]}], "functionDeclarations is a list of objects, got str"),
        ([{"function_declarations": 5}], "function_declarations is a list of objects, got int"),
        ([{"name": "f", "input_schema": True}], r"tools\[0\]: the schema of 'f' is an object, got bool"),
        ([FORMS[0], FORMS[1]], "two tools have the name 'f'"),
    ],
)
def test_what_is_no_tool_of_the_service_is_told(tools, told):
    with pytest.raises(RequestError, match=told):
        read_tools(tools, lambda _: False)


@pytest.mark.parametrize(
    ("tools", "told"),
    [
        ([{"input_schema": {}}], r"tools\[0\]: a tool's name is a text, got NoneType"),
        ([{"name": 5, "input_schema": {}}], r"tools\[0\]: a tool's name is a text, got int"),
        ([{"name": "f", "input_schema": {}}] * 2, "two tools have the name 'f'"),
        ([{"name": "f", "input_schema": {}}, {"type": "function", "function": {"name": "f"}}], "the name 'f'"),
        ([{"functionDeclarations": [{"name": "f"}, {"name": "f"}]}], "the name 'f'"),
    ],
)
def test_tools_in_the_services_own_form_have_names_of_their_own(tools, told):
    with pytest.raises(RequestError, match=told):
        read_tools(tools, lambda _: True)


def test_built_in_tools_need_no_name():
    tools = [{"type": "mcp", "server": "a"}, {"type": "mcp", "server": "b"}, {"googleSearch": {}}]
    assert read_tools(tools, lambda _: True) == tools


def test_what_cannot_be_copied_is_no_body():
    with pytest.raises(RequestError, match="extra_body: 'a' cannot be copied"):
        merge_body({}, {"a": threading.Lock()})


@pytest.mark.parametrize(
    ("choice", "names", "told"),
    [(NamedTool("g"), ["f"], r"'g', which is not among the tools \['f'\]"), ("required", [], "there are no tools")],
)
def test_a_forced_tool_must_be_there(choice, names, told):
    with pytest.raises(RequestError, match=told):
        require_declared(choice, names)
    require_declared(NamedTool("f"), ["f"])
    require_declared("required", [], nameless=True)
    with pytest.raises(RequestError, match="not among the tools"):
        require_declared(NamedTool("g"), [], nameless=True)


def test_an_output_limit_leaves_room_for_something():
    assert [output_limit(Options(max_output_tokens=limit)) for limit in (None, 1)] == [None, 1]
    with pytest.raises(RequestError, match="the output limit is 0, it must be 1 or more"):
        output_limit(Options(max_output_tokens=0))


def test_a_result_as_one_text():
    parts = (
        TextContent("a"),
        ImageContent(media_type="image/png", data=""),
        DocumentContent(media_type="text/plain", text="b", title="t"),
    )
    result = ToolResult(call_id="c", name="f", content=parts)
    assert result_text(result) == "a\n(attached below)\nt\n\nb"
    assert result_text(ToolResult(call_id="c", name="f", content=(TextContent("x"),), is_error=True)) == "Error: x"
