"""The parts of what a user or a tool says: text, images, documents.

A part checks itself when it is made, from Python and from JSON alike: a fault in an attachment is
found where it was attached and not by the provider.
"""

from __future__ import annotations

import binascii
from typing import TypeAlias

import msgspec

__all__ = ["Content", "DocumentContent", "ImageContent", "TextContent"]


class _Content(msgspec.Struct, frozen=True, tag_field="type", omit_defaults=True):
    pass


class TextContent(_Content, frozen=True, tag="text"):
    """Plain text."""

    text: str


class ImageContent(_Content, frozen=True, kw_only=True, tag="image"):
    """An image, by value or by address. Raises ValueError unless it is exactly one of the two.

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
    """A document, by value or by address. Raises ValueError unless it is exactly one of the three.

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
        _check_source("document", self.media_type, data=self.data, text=self.text, url=self.url)


Content: TypeAlias = TextContent | ImageContent | DocumentContent


def _check_source(kind: str, media_type: str, **sources: str | None) -> None:
    given = [name for name, value in sources.items() if value is not None]
    if len(given) != 1:
        raise ValueError(f"{kind} content needs exactly one of {', '.join(sources)}; got {', '.join(given) or 'none'}")
    if not media_type and given != ["url"]:
        raise ValueError(f"{kind} content given as {given[0]} needs a media type")
    data = sources["data"]
    if data is None:
        return
    try:
        binascii.a2b_base64(data, strict_mode=True)
    except ValueError as error:  # binascii.Error, and non-ASCII text
        raise ValueError(f"{kind} content: data is not base64 ({error})") from None
