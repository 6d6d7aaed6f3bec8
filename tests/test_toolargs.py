"""Argument text to arguments."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sseam import toolargs
from sseam.decoding import loads
from sseam.toolargs import BadArguments


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{}", {}),
        (' \n{"a": [1, 2.5, true, null, "x"]}\t', {"a": [1, 2.5, True, None, "x"]}),
        ('{"a": 9007199254740993}', {"a": 9007199254740993}),
        ('{"a": 123456789012345678901234567890}', {"a": 123456789012345678901234567890}),
        ('{"a": "\\ud83c\\udf0d"}', {"a": "🌍"}),
        ('{"a": "\\u00fc\u2028"}', {"a": "ü\u2028"}),
        ('{"a": {"x": 1}, "b": {"x": 1}}', {"a": {"x": 1}, "b": {"x": 1}}),
    ],
)
def test_an_object_is_read(text: str, value: dict[str, Any]) -> None:
    assert toolargs.parse(text) == value


@pytest.mark.parametrize(
    ("text", "reason", "detail"),
    [
        ("", "truncated", "after 0 characters"),
        ('{"a"', "truncated", "after 4 characters"),
        ('{"a": "Par', "truncated", "inside its JSON"),
        ('{"a": [1, 2', "truncated", "inside its JSON"),
        ('{"a": 1}{"b": 2}', "malformed", "goes on after the end of the first value, at character 8"),
        ('{"a": 1} done', "malformed", "goes on after"),
        ("{a: 1}", "malformed", "character 1"),
        ('{"a": NaN}', "malformed", "none that JSON knows"),
        ('{"a": -Infinity}', "malformed", "none that JSON knows"),
        ('{"a": 1e400}', "malformed", "a number that is too large"),
        ('{"a": "\n"}', "malformed", "character"),
        ('{"a": "\\ud83d"}', "malformed", "surrogate"),
        ('{"a": "\\udC00x"}', "malformed", "surrogate"),
        ('{"a": ' + "[" * 200 + "]" * 200 + "}", "malformed", "nested too deeply"),
        ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", "malformed", "nested too deeply"),
        ('{"a": ' + "9" * 5000 + "}", "malformed", "digits"),
        ("[1]", "not_object", "a list"),
        ('"x"', "not_object", "a string"),
        ("1", "not_object", "a number"),
        ("1.5", "not_object", "a number"),
        ("true", "not_object", "a boolean"),
        ("null", "not_object", "null"),
        ('{"a": 1, "a": 1}', "duplicate_key", "'a'"),
        ('{"x": [{"b": 1, "c": 2, "b": 3}]}', "duplicate_key", "'b'"),
    ],
)
def test_anything_else_is_told(text: str, reason: str, detail: str) -> None:
    found = toolargs.parse(text)
    assert isinstance(found, BadArguments)
    assert found.reason == reason
    assert detail in found.detail


def test_arguments_that_came_as_json_are_held_to_the_same() -> None:
    found = toolargs.inspect(loads(b'{"a": [{"b": 1, "b": 2}]}'))
    assert found == BadArguments("duplicate_key", "the key 'b' stands twice in one object")
    assert toolargs.inspect(loads(b'{"a": {"b": [1, "x", null]}}')) is None
    assert toolargs.inspect({"a": float("inf")}) is not None
    assert toolargs.inspect({"\ud800": 1}) is not None


@given(st.text())
def test_no_text_raises(text: str) -> None:
    assert isinstance(toolargs.parse(text), dict | BadArguments)


@given(st.text(alphabet='{}[]",:\\u0d8 1e+-tru'))
def test_no_text_like_json_raises(text: str) -> None:
    assert isinstance(toolargs.parse(text), dict | BadArguments)
