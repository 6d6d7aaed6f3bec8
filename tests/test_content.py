"""Content parts: what they accept, and that JSON gives them back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from sseam.content import Content, DocumentContent, ImageContent, TextContent

GOOD = [
    TextContent("hé"),
    ImageContent(media_type="image/png", data="aGk="),
    ImageContent(media_type="", url="https://example.org/a.png"),
    DocumentContent(media_type="application/pdf", data="aGk=", title="Report"),
    DocumentContent(media_type="text/plain", text=""),
    DocumentContent(media_type="text/plain; charset=utf-8", text="a"),
    ImageContent(media_type="image/svg+xml", data="aGk="),
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
    (ImageContent, {"media_type": "png", "data": "aGk="}, "'png' is no media type, such as 'image/png'"),
    (ImageContent, {"media_type": "png", "url": "https://example.org/a.png"}, "'png' is no media type"),
    (ImageContent, {"media_type": "image/", "data": "aGk="}, "is no media type"),
    (DocumentContent, {"media_type": "pdf", "data": "aGk="}, "'pdf' is no media type, such as 'application/pdf'"),
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


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: TextContent(cast("Any", b"x")), "text content: text is text, not bytes"),
        (lambda: TextContent(cast("Any", None)), "text content: text is text, not NoneType"),
        (lambda: image(data=b"aGk="), r"data is base64 text, not bytes; of bytes: base64\.b64encode\(data\)"),
        (lambda: image(data=Path("a.png")), "data is base64 text, not PosixPath|WindowsPath"),
        (lambda: image(url=Path("a.png")), "image content: url is text"),
        (lambda: image(media_type=None, data="aGk="), "media_type is text, not NoneType"),
        (lambda: DocumentContent(media_type="text/plain", text="a", title=cast("Any", 3)), "title is text, not int"),
    ],
)
def test_what_is_no_text_is_refused(make: Callable[[], object], text: str) -> None:
    with pytest.raises(TypeError, match=text):
        make()


def image(**fields: Any) -> ImageContent:
    return ImageContent(**{"media_type": "image/png", **fields})
