"""Errors say where, what and what to do; they compare by what they say, and survive pickling."""

from __future__ import annotations

import copy
import pickle

import pytest

import sseam
from sseam.errors import excerpt

ALL = [
    sseam.ProtocolError("wrong"),
    sseam.FramingError("too long", frames=[]),
    sseam.TruncatedStream("cut", tail=b"x"),
    sseam.StopReasonError("no", stop_reason="max_tokens", raw_stop_reason="length"),
    sseam.InvalidToolCall("bad", id="a", name="f", arguments_json="{", reason="truncated"),
    sseam.StreamSequenceError("late", event_type="TextDelta", phase="idle"),
    sseam.OutputProtocolViolation("text", format="invoke", tool="f"),
    sseam.ApiError("no", type="overloaded_error", code="c", status=529, request_id="req_1", retryable=True),
    sseam.TransportError("broke", timeout="idle"),
    sseam.StreamAborted("given up"),
]


@pytest.mark.parametrize("error", ALL, ids=lambda error: type(error).__name__)
def test_every_error_is_one_of_ours_and_can_be_copied(error: sseam.SseamError) -> None:
    assert isinstance(error, sseam.SseamError)
    for twin in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert twin == error
        assert hash(twin) == hash(error)
        assert vars(twin) == vars(error)
    assert error != ValueError(str(error))


def test_the_text_is_made_from_the_fields() -> None:
    error = sseam.ProtocolError("wrong", where=sseam.Where(block=1, call="toolu_1"), hint="Do this")
    assert str(error) == "wrong (block 1, call 'toolu_1'). Do this"
    error.at(protocol="Anthropic", frame=41, offset=9812, block=7)
    assert error.where.block == 1, "a place that is known stays"
    expected = "Anthropic stream protocol error: wrong (frame 41, byte 9,812, block 1, call 'toolu_1'). Do this"
    assert str(error) == expected


def test_an_api_error_shows_its_class_and_request() -> None:
    error = sseam.ApiError("Overloaded", type="overloaded_error", status=529, request_id="req_1")
    assert str(error) == "Overloaded [529, overloaded_error]"
    assert str(sseam.ApiError("No")) == "No"


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ("short", "'short'"),
        (b"bytes \xff", "'bytes \ufffd'"),
        ("a" * 100 + "b" * 100, f"'{'a' * 60}' … 80 more … '{'b' * 60}'"),
    ],
)
def test_an_excerpt_shows_head_and_tail(data: bytes | str, shown: str) -> None:
    assert excerpt(data) == shown
