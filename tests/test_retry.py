"""Whether and when a failed attempt is made again."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sseam.errors import ApiError, ProtocolError, SseamError, StreamAborted, TransportError, TruncatedStream
from sseam.retry import Received, Retry, retry_after, should_retry, wait

OVERLOADED = ApiError("overloaded", type="overloaded_error", status=529, retryable=True)
BROKEN = TransportError("broke")
CONNECT = TransportError("no connection", timeout="connect")
FIRST = TransportError("late", timeout="first_event")
TOTAL = TransportError("total", timeout="total")
IDLE = TransportError("idle", timeout="idle", retryable=True)

# Which failure is tried again, by how far the answer came.
AGAIN: list[tuple[SseamError, str]] = [
    (OVERLOADED, "nothing bytes events"),
    (ApiError("no", status=400), ""),
    (BROKEN, "nothing"),
    (CONNECT, "nothing"),
    (FIRST, "nothing bytes"),
    (IDLE, "nothing"),
    (TOTAL, ""),
    (TransportError("never", retryable=False), ""),
    (ProtocolError("x"), ""),
    (TruncatedStream("x"), ""),
    (StreamAborted("x"), ""),
]


@pytest.mark.parametrize("received", ["nothing", "bytes", "events", "content"])
@pytest.mark.parametrize(("error", "again"), AGAIN, ids=[f"{type(e).__name__} {e.detail}" for e, _ in AGAIN])
def test_what_is_tried_again(error: SseamError, again: str, received: Received) -> None:
    assert (wait(Retry(), 1, error, received) is not None) is (received in again.split())


def test_waits_double_up_to_the_cap_less_a_quarter_at_most() -> None:
    policy = Retry(max_retries=8)
    waits = [wait(policy, number, OVERLOADED, "nothing", random=lambda: 0.0) for number in range(1, 10)]
    assert waits == [0.5, 1, 2, 4, 8, 8, 8, 8, None]
    assert wait(policy, 2, OVERLOADED, "nothing", random=lambda: 1.0) == 0.75


@given(st.integers(1, 2_000), st.floats(0, 1))
def test_no_wait_is_longer_than_its_cap(number: int, chance: float) -> None:
    seconds = wait(Retry(max_retries=2_000), number, OVERLOADED, "nothing", random=lambda: chance)
    assert seconds is not None
    assert 0.375 <= seconds <= 8


def test_the_service_decides_how_long_up_to_a_limit() -> None:
    def asked(seconds: float) -> float | None:
        error = ApiError("x", retryable=True, retry_after=seconds)
        return wait(Retry(), 1, error, "nothing", random=lambda: 0.5)

    assert asked(0) == 0
    assert asked(17.5) == 17.5
    assert asked(120) == 120
    assert asked(120.1) is None


def test_none_without_retries() -> None:
    assert wait(Retry(max_retries=0), 1, OVERLOADED, "nothing") is None


NOW = 1_795_996_800.0  # Mon, 30 Nov 2026 00:00:00 GMT

RETRY_AFTER = [
    ({}, None),
    ({"retry-after": "7"}, 7),
    ({"retry-after": " 0.25 "}, 0.25),
    ({"retry-after": "0"}, 0),
    ({"retry-after": "7", "retry-after-ms": "250"}, 0.25),
    ({"retry-after": "7", "retry-after-ms": "soon"}, 7),
    ({"retry-after": "Mon, 30 Nov 2026 00:01:30 GMT"}, 90),
    ({"retry-after": "Monday, 30-Nov-26 00:01:30 GMT"}, 90),
    ({"retry-after": "Mon, 30 Nov 2026 00:01:30 -0000"}, 90),
    ({"retry-after": "Mon, 30 Nov 2026 02:01:30 +0200"}, 90),
    ({"retry-after": "Sun, 29 Nov 2026 00:00:00 GMT"}, 0),
    ({"retry-after": "-3"}, None),
    ({"retry-after": "nan"}, None),
    ({"retry-after": "inf"}, None),
    ({"retry-after": "soon"}, None),
    ({"retry-after": "Mon, 99 Nov 2026 00:00:00 GMT"}, None),
    ({"retry-after": ""}, None),
]


@pytest.mark.parametrize(("headers", "seconds"), RETRY_AFTER)
def test_what_the_headers_ask_for(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, NOW) == seconds


@given(st.text(max_size=40))
def test_no_header_is_a_fault(value: str) -> None:
    for name in ("retry-after", "retry-after-ms"):
        seconds = retry_after({name: value}, NOW)
        assert seconds is None or (seconds >= 0 and math.isfinite(seconds))


@pytest.mark.parametrize(
    ("value", "said"), [("true", True), ("False", False), (" true ", True), ("maybe", None), ("", None)]
)
def test_should_retry(value: str, said: bool | None) -> None:
    assert should_retry({"x-should-retry": value}) is said
    assert should_retry({}) is None
