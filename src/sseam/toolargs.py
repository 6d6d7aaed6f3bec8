"""Argument text to arguments: exactly one JSON object, or a named fault.

The text is parsed once, when its block has ended. Parsable is not finished, so nothing here is ever
asked earlier, and nothing is repaired. Arguments that came as JSON already, inside their event, are
held to the same rules.
"""

from __future__ import annotations

import json
import re
from math import isfinite
from typing import Any, cast

import msgspec

from .decoding import TwiceGiven, json_object

__all__ = ["BadArguments", "inspect", "parse"]


class BadArguments(msgspec.Struct, frozen=True):
    """Why an argument text is not one.

    Attributes:
        reason: "truncated" (it ends inside the JSON), "malformed" (it is not JSON, or more than one
            value), "not_object" or "duplicate_key".
        detail: what was found and where, in words.
    """

    reason: str
    detail: str


# A value that is deeper than any schema is no argument; what copies or compares it would break.
_DEEPEST = 128

# json and not msgspec: msgspec keeps the last of two equal keys without a word.
_DECODER = json.JSONDecoder(object_pairs_hook=json_object)


def parse(text: str) -> dict[str, Any] | BadArguments:
    """The object that `text` spells, or what is wrong with it. Blank text is the caller's matter."""
    try:
        value: Any = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        return _bad_json(text, error)
    except RecursionError:
        return _TOO_DEEP
    except ValueError as error:  # Python's own limit on the digits of an integer
        return BadArguments("malformed", str(error))
    if type(value) is not dict and type(value) is not TwiceGiven:
        return BadArguments("not_object", f"it is {_NOUNS[type(value)]}, expected an object")
    arguments = cast("dict[str, Any]", value)
    return inspect(arguments) or arguments


_TOO_DEEP = BadArguments("malformed", "it is nested too deeply")


def inspect(arguments: dict[str, Any]) -> BadArguments | None:
    """What is wrong with arguments that are JSON already, decoded by `decoding.loads`."""
    level: list[Any] = [arguments]
    for _ in range(_DEEPEST):
        deeper: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                if isinstance(value, TwiceGiven):
                    return BadArguments("duplicate_key", f"the key {value.key!r} stands twice in one object")
                held = cast("dict[str, Any]", value)
                deeper += held
                deeper += held.values()
            elif isinstance(value, list):
                deeper += cast("list[Any]", value)
            elif fault := _bad_scalar(value):
                return fault
        if not deeper:
            return None
        level = deeper
    return _TOO_DEEP


def _bad_scalar(value: Any) -> BadArguments | None:
    if isinstance(value, float) and not isfinite(value):
        return BadArguments("malformed", "it holds a number that is too large, or none that JSON knows")
    if isinstance(value, str) and not value.isascii() and _SURROGATE.search(value):
        return BadArguments("malformed", "it escapes half of a surrogate pair, which no UTF-8 text can hold")
    return None


_SURROGATE = re.compile("[\ud800-\udfff]")


def _bad_json(text: str, error: json.JSONDecodeError) -> BadArguments:
    # The decoder points at the opening quote of a string that never closes, else at the end.
    cut = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")
    if error.msg == "Extra data":
        return BadArguments("malformed", f"it goes on after the end of the first value, at character {error.pos}")
    if cut:
        return BadArguments("truncated", f"it ends inside its JSON, after {len(text):,} characters")
    return BadArguments("malformed", f"{error.msg} at character {error.pos}")


_NOUNS = {
    list: "a list",
    str: "a string",
    int: "a number",
    float: "a number",
    bool: "a boolean",
    type(None): "null",
}
