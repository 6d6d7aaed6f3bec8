"""Keys out of the texts of errors: some services repeat the key that they refuse."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from typing import Any, cast
from urllib.parse import quote, unquote

import msgspec

from ._broken import with_causes
from .errors import SseamError

__all__ = [
    "SECRET_HEADER",
    "SECRET_PARAMETER",
    "SECRET_TOKENS",
    "SECRET_WORDS",
    "URL_PARAMETER",
    "URL_USER",
    "mask",
    "mask_error",
    "secrets_in",
]

# Names of what holds a secret.
SECRET_WORDS = r"authorization|cookie|api[-_]?key|access[-_]?key|private[-_]?key|secret|password|passwd|credentials?"
SECRET_TOKENS = r"(?:auth|authorization|access|refresh|session|security|bearer|id)[-_]?token"
SECRET_HEADER = re.compile(rf"(?:{SECRET_WORDS}|{SECRET_TOKENS}|(?:^|-)(?:key|token))$", re.IGNORECASE)
SECRET_PARAMETER = re.compile(rf"(?:{SECRET_WORDS}|(?:^|[-_])(?:key|token|sig|signature))$", re.IGNORECASE)

# Where an address has its user, and its parameters: mark, name and value.
URL_USER = re.compile(r"(?<=://)[^/?#@]+(?=@)")
URL_PARAMETER = re.compile(r"([?&])([^=&#]*)=([^&#]*)")

# A shorter value is a placeholder ("none", "test"), and may stand in any text by chance.
_SHORTEST = 6


def secrets_in(url: str, headers: Mapping[str, str], own: Iterable[str] = ()) -> tuple[str, ...]:
    """The keys in a request, the longest first: in its address, and in headers that are `own` or named like a key."""
    named = [name for name in headers if name in own or SECRET_HEADER.search(name)]
    values = {headers[name].split(" ", 1)[-1].strip() for name in named}
    # By patterns, which also find them in what is no address.
    written = {part for user in URL_USER.findall(url) for part in user.split(":")}
    written |= {value for _, name, value in URL_PARAMETER.findall(url) if SECRET_PARAMETER.search(unquote(name))}
    values |= {unquote(value) for value in written}
    values |= written | {other for value in values for other in (quote(value, safe=""), value.replace("/", "\\/"))}
    return tuple(sorted((value for value in values if len(value) >= _SHORTEST), key=lambda value: (-len(value), value)))


_FIELDS = ("args", "detail", "hint", "message", "type", "code", "raw", "tail")


def mask(value: Any, secrets: Iterable[str]) -> Any:
    """`value` with each of the secrets replaced by "***", in texts, bytes, and lists and dicts of them."""
    match value:
        case str():
            for secret in secrets:
                value = value.replace(secret, "***")
                if _CUT in value:
                    value = _ends(secret).sub("***", value)
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


# How `errors.excerpt` marks what it leaves out: it may have cut a key in two.
_CUT = " … "


@functools.lru_cache(maxsize=32)
def _ends(secret: str) -> re.Pattern[str]:
    """What is left of a secret on both sides of a cut."""
    sizes = range(len(secret) - 1, _SHORTEST - 1, -1)
    heads = "|".join(re.escape(secret[:size]) for size in sizes)
    tails = "|".join(re.escape(secret[-size:]) for size in sizes)
    return re.compile(rf"(?:{heads or '(?!)'})(?=['\"]{_CUT})|(?<={_CUT}['\"])(?:{tails or '(?!)'})")


def mask_error(error: SseamError, secrets: tuple[str, ...]) -> None:
    """Replace the secrets in what the error says, in what it keeps of the service's answer, and in what caused it."""
    if not secrets:
        return
    for name in _FIELDS:
        if hasattr(error, name):
            setattr(error, name, _masked(getattr(error, name), secrets))
    if error.partial is not None and error.partial.raw:
        error.partial = msgspec.structs.replace(error.partial, raw=_masked(error.partial.raw, secrets))
    for cause in (*with_causes(error),)[1:]:
        cause.args = _masked(cause.args, secrets)


def _masked(value: Any, secrets: tuple[str, ...]) -> Any:
    try:
        return mask(value, secrets)
    except RecursionError:  # an answer that is nested too deeply to be searched is not kept
        return {} if isinstance(value, dict) else "***"
