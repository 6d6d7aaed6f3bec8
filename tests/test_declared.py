"""Declared tools: every form there is, and what no form is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sseam.declared import DeclaredTool, declare

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = DeclaredTool("weather", SCHEMA, ("city",))
BARE = DeclaredTool("weather")

FORMS: list[tuple[str, object, list[DeclaredTool]]] = [
    ("bare name", "weather", [BARE]),
    ("Tool object", SimpleNamespace(name="weather", schema=SCHEMA), [WEATHER]),
    ("Anthropic", {"name": "weather", "input_schema": SCHEMA}, [WEATHER]),
    ("Anthropic, typed", {"type": "custom", "name": "weather", "input_schema": SCHEMA}, [WEATHER]),
    ("MCP", {"name": "weather", "inputSchema": SCHEMA}, [WEATHER]),
    ("Chat", {"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}, [WEATHER]),
    ("Chat without parameters", {"type": "function", "function": {"name": "weather"}}, [BARE]),
    ("Chat, legacy functions", {"name": "weather", "parameters": SCHEMA}, [WEATHER]),
    ("Chat custom", {"type": "custom", "custom": {"name": "weather", "format": {"type": "text"}}}, [BARE]),
    ("Responses", {"type": "function", "name": "weather", "parameters": SCHEMA}, [WEATHER]),
    ("Responses, null parameters", {"type": "function", "name": "weather", "parameters": None}, [BARE]),
    ("Responses custom", {"type": "custom", "name": "weather"}, [BARE]),
    (
        "Responses namespace",
        {"type": "namespace", "name": "sky", "tools": [{"type": "function", "name": "weather", "parameters": SCHEMA}]},
        [WEATHER],
    ),
    (
        "Gemini",
        {"functionDeclarations": [{"name": "weather", "parametersJsonSchema": SCHEMA}, {"name": "now"}]},
        [WEATHER, DeclaredTool("now")],
    ),
    ("Gemini SDK", {"function_declarations": [{"name": "weather", "parameters_json_schema": SCHEMA}]}, [WEATHER]),
    ("Gemini built-in", {"googleSearch": {}}, [DeclaredTool("googleSearch")]),
    (
        "Gemini mixed",
        {"functionDeclarations": ({"name": "weather", "parameters": SCHEMA},), "url_context": {}},
        [WEATHER, DeclaredTool("url_context")],
    ),
    ("Gemini, none", {"functionDeclarations": []}, []),
    ("Anthropic built-in", {"type": "bash_20250124", "name": "bash"}, [DeclaredTool("bash")]),
    ("OpenAI built-in", {"type": "web_search"}, [DeclaredTool("web_search")]),
    ("schema without required", {"name": "now", "input_schema": {}}, [DeclaredTool("now", {})]),
]

NO_FORMS: list[tuple[object, str]] = [
    (7, r"tools\[1\]: expected a Tool, a dict or a name, got int"),
    ("", r"tools\[1\]: a tool's name must be a string that is not empty, got ''"),
    ({}, r"tools\[1\]: no tool's form"),
    ({"input_schema": SCHEMA}, r"neither a name nor a built-in type among \['input_schema'\]"),
    ({"type": "function"}, r"tools\[1\]: no tool's form"),
    ({"type": "custom", "custom": {}}, r"tools\[1\].custom: no tool's form"),
    ({"type": 3}, r"must be a string that is not empty, got 3"),
    ({"name": 3, "input_schema": SCHEMA}, r"must be a string that is not empty, got 3"),
    ({"name": "weather", "input_schema": "{}"}, r"the schema of tool 'weather' must be a dict, got str"),
    ({"name": "weather", "input_schema": {"required": True}}, r"`required` of tool 'weather' .*got True"),
    ({"name": "weather", "input_schema": {"required": [1]}}, r"`required` of tool 'weather' .*got \[1\]"),
    ({"functionDeclarations": {"name": "weather"}}, r"tools\[1\].functionDeclarations: expected a list"),
    ({"functionDeclarations": [{}]}, r"tools\[1\].functionDeclarations\[0\]: no tool's form"),
    ({"type": "namespace", "name": "sky"}, r"tools\[1\].tools: expected a list of tools, got NoneType"),
    (SimpleNamespace(name="weather", schema=lambda: SCHEMA), r"must be a dict, got function"),
]


@pytest.mark.parametrize(("entry", "expected"), [form[1:] for form in FORMS], ids=[form[0] for form in FORMS])
def test_every_form_is_read(entry: object, expected: list[DeclaredTool]) -> None:
    assert declare([entry]) == {tool.name: tool for tool in expected}


@pytest.mark.parametrize(("entry", "text"), NO_FORMS)
def test_no_form_is_a_type_error_that_says_which_and_why(entry: object, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        declare(["other", entry])


@pytest.mark.parametrize("tools", ["weather", b"weather", {"functionDeclarations": []}])
def test_one_tool_in_place_of_a_list_is_refused(tools: Any) -> None:
    with pytest.raises(TypeError, match="expected a list of tools"):
        declare(tools)


def test_order_is_kept_and_the_same_tool_may_come_twice() -> None:
    tools = declare(iter(["b", {"name": "weather", "input_schema": SCHEMA}, "b", "a"]))
    assert list(tools) == ["b", "weather", "a"]


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match=r"tools\[1\]: there is already another tool named 'weather'"):
        declare([{"name": "weather", "input_schema": SCHEMA}, "weather"])


def test_the_schema_is_the_callers_own_object() -> None:
    assert declare([{"name": "weather", "input_schema": SCHEMA}])["weather"].schema is SCHEMA
