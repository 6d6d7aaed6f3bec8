"""Whether a failed attempt is made again, and after how many seconds.

A request may be sent again only while nothing was delivered, and not where the first one may have
had an effect:

==================  ====================================================================
what failed         is tried again while
==================  ====================================================================
the connection      no byte of the answer's body has come: it may have run, and cost
the first event     no event has come, however many pings did
the service         no content has come (an error status, or an error as the first event)
==================  ====================================================================

Sources: the back-off of the providers' SDKs and their pages on errors and rate limits (read 2026-11-29).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC
from typing import Literal, TypeAlias

import msgspec

from .errors import ApiError, SseamError, TransportError
from .message import Usage

__all__ = ["Attempt", "Received", "Retry", "back_off", "retry_after", "say_what_was_asked", "should_retry", "wait"]

Received: TypeAlias = Literal["nothing", "bytes", "events", "content"]
"""How far an answer came: bytes of its body, events that only open the message, content."""


class Retry(msgspec.Struct, frozen=True, kw_only=True):
    """How a call is tried again. All times in seconds.

    Attributes:
        max_retries: attempts after the first; 0 for none.
        first_wait: before the first retry; it doubles with each.
        max_wait: the longest wait of our own.
        max_retry_after: the longest wait that the service may ask for; if it asks for more, its error
            goes to the caller at once.
    """

    max_retries: int = 2
    first_wait: float = 0.5
    max_wait: float = 8.0
    max_retry_after: float = 120.0


class Attempt(msgspec.Struct, kw_only=True):
    """One request of a call.

    Attributes:
        number: from 1.
        waited: seconds waited before it.
        status: HTTP status, None where none came.
        request_id: the provider's id of the request.
        headers: of the response, names in lower case.
        error: what it failed with, None while it runs and when it succeeded.
        usage: tokens that were reported before it failed; None: unknown, which is not zero.
    """

    number: int
    waited: float = 0.0
    status: int | None = None
    request_id: str | None = None
    headers: dict[str, str] = {}
    error: SseamError | None = None
    usage: Usage | None = None


def wait(
    policy: Retry, number: int, error: SseamError, received: Received, *, random: Callable[[], float] | None = None
) -> float | None:
    """Seconds to wait before the next attempt; None when there is to be none.

    Args:
        number: of the attempt that failed, from 1.
        received: how far its answer came.
        random: gives numbers from 0 to 1, for the jitter; None: `random.random`.
    """
    if number > policy.max_retries or not _may_repeat(error, received):
        return None
    asked = error.retry_after if isinstance(error, ApiError) else None
    if asked is not None:
        return asked if asked <= policy.max_retry_after else None
    return back_off(policy, number, random=random)


def back_off(policy: Retry, number: int, *, random: Callable[[], float] | None = None) -> float:
    """Seconds before the retry with this number, where nobody says how long: less by up to a quarter, at random."""
    if random is None:
        from random import random
    longest = min(policy.first_wait * 2.0 ** min(number - 1, 64), policy.max_wait)
    return longest * (1 - 0.25 * random())


def _may_repeat(error: SseamError, received: Received) -> bool:
    match error:
        case ApiError(retryable=True):
            return received != "content"
        case TransportError(timeout="total"):
            return False
        case TransportError(retryable=True, timeout="first_event"):
            return received in ("nothing", "bytes")
        case TransportError(retryable=True):
            return received == "nothing"
        case _:
            return False


def say_what_was_asked(error: ApiError | TransportError, request: str, attempts: int, policy: Retry) -> None:
    """Add to the hint of an error that ends a call: `request`, how often it was made, and why no more."""
    said = [error.hint] if error.hint else []
    asked = error.retry_after if isinstance(error, ApiError) else None
    if asked is not None and asked > policy.max_retry_after:
        said.append(f"The service asks to wait {asked:g} s, more than Retry.max_retry_after")
    said.append(f"{request}, {attempts} attempts" if attempts > 1 else request)
    error.hint = ". ".join(said)


def should_retry(headers: Mapping[str, str]) -> bool | None:
    """What the service itself says (`x-should-retry`), over any table of ours; None where it does not."""
    return {"true": True, "false": False}.get(headers.get("x-should-retry", "").strip().lower())


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that the service asks to wait; None where it does not, or not so that it can be read.

    `retry-after-ms` goes before `retry-after`, which is a number of seconds or an HTTP date.

    Args:
        headers: names in lower case.
        now: seconds since the epoch.
    """
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "").strip()
    seconds = _number(value)
    if seconds is not None or not value:
        return seconds
    import email.utils

    try:
        date = email.utils.parsedate_to_datetime(value)
        if date.tzinfo is None:
            date = date.replace(tzinfo=UTC)  # "-0000": the time is right, and who wrote it does not say where
        return max(0.0, date.timestamp() - now)
    except (ValueError, OverflowError):
        return None


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None
