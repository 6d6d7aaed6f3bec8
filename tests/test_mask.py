"""Keys out of the texts of errors."""

from __future__ import annotations

from typing import Any

import pytest

from sseam._mask import mask, mask_error
from sseam.errors import ApiError, FramingError

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
