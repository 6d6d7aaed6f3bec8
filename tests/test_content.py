"""Content parts: what they accept, and that JSON gives them back."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from sseam.content import Content, DocumentContent, ImageContent, TextContent

GOOD = [
    TextContent("hé"),
    ImageContent(media_type="image/png", data="aGk="),
    ImageContent(media_type="", url="https://example.org/a.png"),
    DocumentContent(media_type="application/pdf", data="aGk=", title="Report"),
    DocumentContent(media_type="text/plain", text=""),
    DocumentContent(media_type="", url="https://example.org/a.pdf"),
]

BAD: list[tuple[type[Any], dict[str, Any], str]] = [
    (ImageContent, {"media_type": "image/png"}, "exactly one of data, url; got none"),
    (ImageContent, {"media_type": "image/png", "data": "aGk=", "url": "u"}, "exactly one of data, url; got data, url"),
    (ImageContent, {"media_type": "", "data": "aGk="}, "image content given as data needs a media type"),
    (ImageContent, {"media_type": "image/png", "data": "data:image/png;base64,aGk="}, "data is not base64"),
    (ImageContent, {"media_type": "image/png", "data": "aGk=\n"}, "data is not base64"),
    (ImageContent, {"media_type": "image/png", "data": "aGk"}, "data is not base64"),
    (ImageContent, {"media_type": "image/png", "data": "é"}, "data is not base64"),
    (DocumentContent, {"media_type": "text/plain"}, "exactly one of data, text, url; got none"),
    (DocumentContent, {"media_type": "text/plain", "text": "a", "url": "u"}, "got text, url"),
    (DocumentContent, {"media_type": "", "text": "a"}, "document content given as text needs a media type"),
]


@pytest.mark.parametrize("part", GOOD, ids=lambda part: type(part).__name__)
def test_a_part_goes_through_json(part: Content) -> None:
    assert msgspec.json.decode(msgspec.json.encode(part), type=Content) == part


@pytest.mark.parametrize(("cls", "fields", "text"), BAD)
def test_a_faulty_part_is_refused_from_python_and_from_json(cls: type[Any], fields: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        cls(**fields)
    tag = {ImageContent: "image", DocumentContent: "document"}[cls]
    with pytest.raises(msgspec.ValidationError, match=text):
        msgspec.convert({"type": tag, **fields}, Content)
