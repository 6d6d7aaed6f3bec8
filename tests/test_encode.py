"""Plain values as JSON, and what has no JSON form with its place."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from sseam._encode import encode
from sseam.content import TextContent
from sseam.errors import RequestError


def nested(depth: int) -> Any:
    value: Any = float("nan")
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [None, {"a": [1, "é😀", None, True, 1e300]}, "null", {"null": "null"}, {1: "a"}, (TextContent("x"),)],
)
def test_what_has_a_json_form_is_msgspecs(value: Any) -> None:
    assert encode(value, "it") == msgspec.json.encode(value)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("\ud800", "the body cannot be written as JSON: it holds half of a surrogate pair, which UTF-8 cannot carry"),
        ({"a": [{"b": "x\udfffy"}]}, "a[0].b holds half of a surrogate pair"),
        ({"a": {"\udc00": 1}}, "a key of a holds half of a surrogate pair"),
        ({"a": [0.0, float("nan")]}, "a[1] is nan"),
        ({"a": (None, -float("inf"))}, "a[1] is -inf"),
        ((TextContent("\ud800"),), "[0].text holds half of a surrogate pair"),
        ({"a": object()}, "a is of type object, which has no JSON form"),
        ({"a": dict.fromkeys([object()], 1)}, "TypeError"),
        (nested(100_000), "the body is nested too deeply"),
        (nested(990), "the body is nested too deeply"),
    ],
)
def test_what_has_none_is_told_with_its_place(value: Any, told: str) -> None:
    with pytest.raises(RequestError) as caught:
        encode(value, "the body")
    assert told in str(caught.value)
