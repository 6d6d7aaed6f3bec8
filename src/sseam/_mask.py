"""Keys out of the texts of errors: some services repeat the key that they refuse."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from .errors import SseamError

__all__ = ["mask", "mask_error"]

_FIELDS = ("args", "detail", "hint", "message", "type", "code", "raw")


def mask(value: Any, secrets: Iterable[str]) -> Any:
    """`value` with each of the secrets replaced by "***", in texts, bytes, and lists and dicts of them."""
    match value:
        case str():
            for secret in secrets:
                value = value.replace(secret, "***")
            return value
        case bytes():
            for secret in secrets:
                value = value.replace(secret.encode(), b"***")
            return value
        case dict():
            items = cast("dict[Any, Any]", value).items()
            return {mask(key, secrets): mask(item, secrets) for key, item in items}
        case list():
            return [mask(item, secrets) for item in cast("list[Any]", value)]
        case tuple():
            return tuple(mask(item, secrets) for item in cast("tuple[Any, ...]", value))
        case _:
            return value


def mask_error(error: SseamError, secrets: tuple[str, ...]) -> None:
    """Replace the secrets in what the error says and in what it keeps of the service's answer."""
    if secrets:
        for name in _FIELDS:
            if hasattr(error, name):
                try:
                    shown = mask(getattr(error, name), secrets)
                except RecursionError:  # an answer that is nested too deeply to be searched is not kept
                    shown = "***"
                setattr(error, name, shown)
