"""Argument text to arguments: exactly one JSON object, or a named fault.

The text is parsed once, when its block has ended. Parsable is not finished, so nothing here is ever
asked earlier, and nothing is repaired.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

__all__ = ["BadArguments", "parse"]


class BadArguments(msgspec.Struct, frozen=True):
    """Why an argument text is not one.

    Attributes:
        reason: "truncated" (it ends inside the JSON), "malformed" (it is not JSON, or more than one
            value), "not_object" or "duplicate_key".
        detail: what was found and where, in words.
    """

    reason: str
    detail: str


class _Refused(ValueError):
    pass


class _DuplicateKey(ValueError):
    pass


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _DuplicateKey(f"the key {key!r} stands twice in one object")
            seen.add(key)
    return value


def _constant(name: str) -> Any:
    raise _Refused(f"{name} is not JSON")


def _float(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise _Refused(f"the number {text} is too large")
    return number


# json and not msgspec: msgspec keeps the last of two equal keys without a word.
_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89abAB]|\\u[dD][c-fC-F]")


def parse(text: str) -> dict[str, Any] | BadArguments:
    """The object that `text` spells, or what is wrong with it. Blank text is the caller's matter."""
    try:
        value: Any = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        return _bad_json(text, error)
    except _DuplicateKey as error:
        return BadArguments("duplicate_key", str(error))
    except RecursionError:
        return BadArguments("malformed", "it is nested too deeply")
    except ValueError as error:  # _Refused, and Python's own limit on the digits of an integer
        return BadArguments("malformed", str(error))
    if type(value) is not dict:
        return BadArguments("not_object", f"it is {_NOUNS[type(value)]}, expected an object")
    if _SURROGATE_ESCAPE.search(text) and not _encodable(value):
        return BadArguments("malformed", "it escapes half of a surrogate pair, which no UTF-8 text can hold")
    return value  # pyright: ignore[reportUnknownVariableType]


def _bad_json(text: str, error: json.JSONDecodeError) -> BadArguments:
    # The decoder points at the opening quote of a string that never closes, else at the end.
    cut = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")
    if error.msg == "Extra data":
        return BadArguments("malformed", f"it goes on after the end of the first value, at character {error.pos}")
    if cut:
        return BadArguments("truncated", f"it ends inside its JSON, after {len(text):,} characters")
    return BadArguments("malformed", f"{error.msg} at character {error.pos}")


def _encodable(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


_NOUNS = {
    list: "a list",
    str: "a string",
    int: "a number",
    float: "a number",
    bool: "a boolean",
    type(None): "null",
}
