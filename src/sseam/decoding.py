"""From a frame's bytes to JSON, for every protocol: what may be wrong with them and how it is told.

The wire modules decode with one `msgspec` decoder and come here only when that fails.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar, cast

import msgspec

from .errors import ProtocolError, excerpt

__all__ = ["TwiceGiven", "convert", "json_object", "loads", "mapping", "require_utf8"]

T = TypeVar("T")


class TwiceGiven(dict[str, Any]):
    """An object that gave a key twice; the last value stands, and `key` says which.

    What the object is decides whether that matters: for the arguments of a call it does.
    """

    key: str


def json_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these members, for `json`'s object_pairs_hook."""
    value = dict(pairs)
    if len(value) == len(pairs):
        return value
    twice = TwiceGiven(value)
    seen: set[str] = set()
    twice.key = next(key for key, _ in pairs if key in seen or seen.add(key))
    return twice


def require_utf8(data: bytes) -> None:
    """Raise `ProtocolError` for ill-formed UTF-8.

    `msgspec` checks the strings that it decodes; damage in a field that no struct has would pass.
    """
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise ProtocolError(
            "data is not UTF-8",
            hint=f"{error.reason} at byte {error.start} of the data: {excerpt(data)}",
        ) from None


def loads(data: bytes) -> Any:
    """The JSON value in `data`, with its objects as `json_object` makes them.

    Raises `ProtocolError` for anything that is no JSON.
    """
    require_utf8(data)
    try:
        # Not msgspec: it calls a string that ends in half a surrogate pair truncated.
        value = json.loads(data, parse_constant=_constant, object_pairs_hook=json_object)
    except RecursionError:
        raise ProtocolError("data is JSON nested too deeply", hint=excerpt(data)) from None
    except ValueError as error:
        raise ProtocolError("data is not JSON", hint=f"{error}: {excerpt(data)}") from None
    if b"\\u" in data:
        _require_whole_characters(value, data)
    return value


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


def _require_whole_characters(value: Any, data: bytes) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ProtocolError(
            "data escapes half of a surrogate pair, which no UTF-8 text can hold", hint=excerpt(data)
        ) from None


def convert(value: Any, type: type[T], what: str) -> T:
    """`value` as `type`. Raises `ProtocolError` that says what `what` should have been."""
    try:
        return msgspec.convert(value, type)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:  # the latter: half of a surrogate pair
        raise ProtocolError(f"{what} has the wrong shape: {error}") from None


def mapping(value: Any) -> dict[str, Any]:
    """`value` if it is a JSON object, else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
