"""Keys out of the texts of errors."""

from __future__ import annotations

from typing import Any

import pytest

from sseam._mask import mask, mask_error, secrets_in
from sseam.errors import ApiError, FramingError, excerpt

KEY = "sk-abcdef"


@pytest.mark.parametrize(
    ("value", "masked"),
    [
        (f"the key {KEY} is wrong, {KEY}", "the key *** is wrong, ***"),
        (f"{KEY}".encode(), b"***"),
        ({"a": [KEY, 1, None], KEY: {"b": KEY}}, {"a": ["***", 1, None], "***": {"b": "***"}}),
        ("sk-abc", "sk-abc"),
    ],
)
def test_each_place_is_masked(value: Any, masked: Any) -> None:
    assert mask(value, (KEY,)) == masked


def test_an_error_loses_the_key_everywhere() -> None:
    error = ApiError(f"bad {KEY}", type=KEY, code=KEY, status=401, raw={"error": {"message": KEY}}, hint=KEY)
    mask_error(error, (KEY,))
    assert KEY not in f"{error!r} {error} {vars(error)}"
    assert (error.message, error.status, error.raw) == ("bad ***", 401, {"error": {"message": "***"}})
    framing = FramingError("not an event stream", hint=f"The body begins {KEY}")
    mask_error(framing, (KEY,))
    assert framing.hint == "The body begins ***"


def test_what_cannot_be_searched_is_not_kept() -> None:
    raw: Any = KEY
    for _ in range(5_000):
        raw = [raw]
    error = ApiError("no", raw=raw)
    mask_error(error, (KEY,))
    assert error.raw == "***"


@pytest.mark.parametrize(
    ("url", "headers", "found"),
    [
        ("https://a.test/v1", {"x-api-key": "secret-1", "accept": "text/plain"}, ("secret-1",)),
        ("https://a.test/v1", {"authorization": "Bearer secret-1"}, ("secret-1",)),
        ("https://a.test/v1", {"x-session-token": "secret-1", "x-monkey": "banana-1"}, ("secret-1",)),
        ("https://a.test/v1", {"x-own": "secret-1"}, ("secret-1",)),
        ("https://a.test/v1", {"authorization": "none"}, ()),
        ("https://a.test/v1?key=secret-1&api-version=2024-10-21", {}, ("secret-1",)),
        ("https://a.test/v1?api_key=se%2Fcret", {}, ("se%2Fcret", "se\\/cret", "se/cret")),
        ("https://somebody:pass-word@a.test/v1", {}, ("pass-word", "somebody")),
    ],
)
def test_where_keys_are_in_a_request(url: str, headers: dict[str, str], found: tuple[str, ...]) -> None:
    assert secrets_in(url, headers, own=("x-own",)) == found


@pytest.mark.parametrize("before", range(40, 62))
def test_a_key_that_an_excerpt_cut_in_two(before: int) -> None:
    secret = "sk-abcdefghijklmnop"
    shown = mask(excerpt("-" * before + secret + "-" * 200), (secret,))
    assert "sk-abc" not in shown
    assert shown.endswith("-'")
    ending = mask(excerpt("-" * 200 + secret + "-" * before), (secret,))
    assert "klmnop" not in ending
    assert ending.startswith("'-")
