"""The parts of what a user or a tool says: text, images, documents.

A part checks itself when it is made, from Python and from JSON alike: a fault in an attachment is
found where it was attached and not by the provider.
"""

from __future__ import annotations

import binascii
import re
from typing import TypeAlias

import msgspec

__all__ = ["Content", "DocumentContent", "ImageContent", "TextContent"]

# A type and a subtype, perhaps with parameters behind them. Source: RFC 9110, section 8.3.1 (read 2026-11-30).
_MEDIA_TYPE = re.compile(r"[\w!#$%&'*+.^`|~-]+/[\w!#$%&'*+.^`|~-]+[ \t]*(?:;|$)", re.ASCII)
_BASE64 = 'base64.b64encode(data).decode("ascii")'
_EXAMPLES = {"image": "image/png", "document": "application/pdf"}


class _Content(msgspec.Struct, frozen=True, tag_field="type", omit_defaults=True):
    pass


class TextContent(_Content, frozen=True, tag="text"):
    """Plain text. Raises TypeError for what is none."""

    text: str

    def __post_init__(self) -> None:
        _require_text("text", "text", self.text)


class ImageContent(_Content, frozen=True, kw_only=True, tag="image"):
    """An image, by value or by address. Raises ValueError unless it is exactly one of the two, TypeError for what is
    no text.

    Attributes:
        media_type: such as "image/png"; may be "" beside a URL.
        data: the bytes in base64: standard alphabet, padded, neither line breaks nor a "data:" prefix.
        url: where the provider fetches it.
    """

    media_type: str
    data: str | None = None
    url: str | None = None

    def __post_init__(self) -> None:
        _check_source("image", self.media_type, data=self.data, url=self.url)


class DocumentContent(_Content, frozen=True, kw_only=True, tag="document"):
    """A document, by value or by address. Raises ValueError unless it is exactly one of the three, TypeError for what
    is no text.

    Attributes:
        media_type: such as "application/pdf" or "text/plain"; may be "" beside a URL.
        data: the bytes in base64, as in `ImageContent`.
        text: the content of a plain-text document.
        url: where the provider fetches it.
        title: a name for the model to see.
    """

    media_type: str
    data: str | None = None
    text: str | None = None
    url: str | None = None
    title: str | None = None

    def __post_init__(self) -> None:
        if self.title is not None:
            _require_text("document", "title", self.title)
        _check_source("document", self.media_type, data=self.data, text=self.text, url=self.url)


Content: TypeAlias = TextContent | ImageContent | DocumentContent


def _require_text(kind: str, name: str, value: object) -> None:
    if not isinstance(value, str):
        what, hint = "text", ""
        if name == "data":
            what, hint = "base64 text", f"; of bytes: {_BASE64}"
        raise TypeError(f"{kind} content: {name} is {what}, not {type(value).__name__}{hint}")


def _check_source(kind: str, media_type: str, **sources: str | None) -> None:
    _require_text(kind, "media_type", media_type)
    given = [name for name, value in sources.items() if value is not None]
    for name in given:
        _require_text(kind, name, sources[name])
    if len(given) != 1:
        raise ValueError(f"{kind} content needs exactly one of {', '.join(sources)}; got {', '.join(given) or 'none'}")
    if not media_type and given != ["url"]:
        raise ValueError(f"{kind} content given as {given[0]} needs a media type")
    if media_type and not _MEDIA_TYPE.match(media_type):
        raise ValueError(f"{kind} content: {media_type!r} is no media type, such as {_EXAMPLES[kind]!r}")
    data = sources["data"]
    if data is None:
        return
    try:
        binascii.a2b_base64(data, strict_mode=True)
    except ValueError as error:  # binascii.Error, and non-ASCII text
        hint = 'Neither "data:" nor line breaks stand in it'
        raise ValueError(f"{kind} content: data is not base64 ({error}). {hint}; of bytes: {_BASE64}") from None
