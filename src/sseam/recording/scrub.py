"""Secrets out of what is recorded: by the name of the field that holds them, and by their own shape.

Each is masked by as many X as it has characters, so that lengths and places stay as they were.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast
from urllib.parse import unquote

from .._mask import SECRET_HEADER, SECRET_PARAMETER, SECRET_TOKENS, SECRET_WORDS, URL_PARAMETER, URL_USER

__all__ = ["Scrubber"]

# In a body a field called only "key" or "token" is too common to be a secret: a tool may have such a parameter.
_BODY_FIELD = re.compile(rf"(?:{SECRET_WORDS}|{SECRET_TOKENS})$", re.IGNORECASE)
# Account ids are no secrets, but nothing to publish with a recording.
_ACCOUNTS = frozenset({"anthropic-organization-id", "openai-organization", "openai-project"})
# Keys as the providers and a few hosts of code make them, bearer tokens, and JSON Web Tokens.
_SHAPES = re.compile(
    r"(?<![\w-])(?:sk-[\w-]{16,}|AIza[\w-]{30,}|(?:gsk|hf|ghp|gho|ghs|github_pat)_\w{16,}|xai-\w{16,}|AKIA[0-9A-Z]{16}"
    r"|eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]+)"
    r"|(?<=\bBearer )[\w.~+/=-]{8,}"
)
# A shorter value may stand in any text by chance.
_SHORTEST = 8


class Scrubber:
    """Masks secrets in one recording. What was found in a header or field is masked in every other place too.

    Args:
        extra: called with each text after the rules; gives the text to keep.
    """

    def __init__(self, extra: Callable[[str], str] | None = None) -> None:
        self._extra = extra
        self._found: set[str] = set()

    def headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """The headers with lower-case names."""
        learned = {
            name.lower(): self._field(value, SECRET_HEADER.search(name) or name.lower() in _ACCOUNTS)
            for name, value in headers.items()
        }
        return {name: self.text(value) for name, value in learned.items()}

    def url(self, url: str) -> str:
        """The URL without user and without the values of parameters that are keys."""

        def mask(match: re.Match[str]) -> str:
            mark, name, value = match.groups()
            return f"{mark}{name}={self._field(value, SECRET_PARAMETER.search(unquote(name)))}"

        return self.text(URL_PARAMETER.sub(mask, URL_USER.sub(_mask, url)))

    def body(self, body: Any) -> Any:
        """A body as decoded from JSON."""
        return self._texts(self._fields(body))

    def text(self, text: str) -> str:
        """A text of any kind."""
        # The longest first: one may be a part of another.
        for secret in sorted(self._found, key=len, reverse=True):
            text = text.replace(secret, "X" * len(secret))
        text = _SHAPES.sub(_mask, text)
        return self._extra(text) if self._extra else text

    def _field(self, value: str, secret: object) -> str:
        if not secret:
            return value
        # A scheme is no secret, and says which kind of key was sent.
        scheme, space, rest = value.partition(" ")
        head, hidden = (scheme + space, rest) if scheme.lower() in ("bearer", "basic") and rest else ("", value)
        self._learn([hidden, unquote(hidden)])
        return head + "X" * len(hidden)

    def _learn(self, values: Iterable[str]) -> None:
        self._found.update(value for value in values if len(value) >= _SHORTEST and value.strip("X"))

    def _fields(self, value: Any) -> Any:
        if isinstance(value, dict):
            entries = cast("dict[str, Any]", value).items()
            return {
                name: self._field(entry, _BODY_FIELD.search(name)) if isinstance(entry, str) else self._fields(entry)
                for name, entry in entries
            }
        return [self._fields(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value

    def _texts(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._texts(entry) for name, entry in cast("dict[str, Any]", value).items()}
        if isinstance(value, list):
            return [self._texts(item) for item in cast("list[Any]", value)]
        return self.text(value) if isinstance(value, str) else value


def _mask(match: re.Match[str]) -> str:
    return "X" * len(match[0])
