"""Plain values → JSON, with the place named where one has no JSON form."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, cast

import msgspec

from .errors import RequestError

__all__ = ["encode"]


def encode(value: Any, what: str) -> bytes:
    """`value` as JSON: dicts, lists, texts, numbers, and structs of them.

    Raises:
        RequestError: it holds what JSON cannot, such as half of a surrogate pair, NaN, or an object. The text
            begins with `what` and names the first such place.
    """
    try:
        encoded, reason = _encode(value)
        # msgspec writes a number that is not finite as null, and says nothing.
        place = next(_faults(value, ""), reason) if encoded is None or b"null" in encoded else None
    except RecursionError:
        raise RequestError(f"{what} is nested too deeply") from None
    if encoded is None or place is not None:
        raise RequestError(f"{what} cannot be written as JSON: {place}")
    return encoded


def _encode(value: Any) -> tuple[bytes | None, str | None]:
    """The JSON, or why there is none."""
    try:
        return msgspec.json.encode(value), None
    except RecursionError:
        raise
    except Exception as error:  # besides msgspec's own, whatever an object's attributes raise
        return None, f"{type(error).__name__}: {error}"


def _faults(value: Any, path: str) -> Iterator[str]:
    match value:
        case str():
            if _is_broken(value):
                yield f"{path or 'it'} holds half of a surrogate pair, which UTF-8 cannot carry"
        case float():
            if not math.isfinite(value):
                yield f"{path or 'it'} is {value}"
        case dict():
            for key, item in cast("dict[Any, Any]", value).items():
                if isinstance(key, str) and _is_broken(key):
                    yield f"a key of {path or 'it'} holds half of a surrogate pair, which UTF-8 cannot carry"
                else:
                    yield from _faults(item, f"{path}.{key}" if path else str(key))
        case list() | tuple():
            for number, item in enumerate(cast("list[Any]", value)):
                yield from _faults(item, f"{path}[{number}]")
        case msgspec.Struct():
            yield from _faults(msgspec.structs.asdict(value), path)
        case _:
            try:
                msgspec.json.encode(value)
            except Exception:
                yield f"{path or 'it'} is of type {type(value).__name__}, which has no JSON form"


def _is_broken(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)
