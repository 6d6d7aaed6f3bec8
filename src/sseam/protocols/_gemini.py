"""What the two Gemini protocols share: counts, ids made by rule, errors of the service and of requests.

Sources: Google's pages "API errors" and "Understand and count tokens", the types of its SDK (read 2026-11-29).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

import msgspec

from ..errors import ApiError, RequestError
from ..fold import State, count
from ..message import Usage

__all__ = ["SKIP_SIGNATURE", "UsageNames", "api_error", "given", "made_id", "read_usage", "unsigned"]


class UsageNames(msgspec.Struct, frozen=True, kw_only=True):
    """What a protocol calls its counts. Input is without `tool`, output without `thoughts`."""

    input: str
    tool: str
    cached: str
    output: str
    thoughts: str
    total: str


def read_usage(raw: dict[str, Any], names: UsageNames) -> Usage:
    """The counts of a usage object. Thoughts are output that the provider counts apart."""
    thoughts = count(raw, names.thoughts)
    given = _add(count(raw, names.input), count(raw, names.tool))
    output = _add(count(raw, names.output), thoughts)
    total = count(raw, names.total)
    if total is None and given is not None and output is not None:
        total = given + output
    return Usage(
        input_tokens=given,
        output_tokens=output,
        cache_read_tokens=count(raw, names.cached),
        reasoning_tokens=thoughts,
        total_tokens=total,
        raw=raw,
    )


def _add(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else one + other


def given(text: str | None) -> str:
    """An id or a name, "" where it is missing or blank."""
    return text if text and text.strip() else ""


def made_id(state: State[Any]) -> str:
    """An id for a call that has none of its own: by its block's place, the same at every parse.

    Such a call has `{"id": None}` in its `extra`: no id goes back with it, or with its result.
    """
    id = f"call_{state.head.started}"
    while state.head.call_ids.get(id) is not None:
        id += "_"
    return id


SKIP_SIGNATURE = "skip_thought_signature_validator"
"""What may stand for the signature of a call that Gemini did not make. Source: Google's guide "Thought signatures"
(read 2026-11-30)."""


def unsigned(name: str, way_out: str) -> RequestError:
    """The error for a call that Gemini 3 would refuse, since it has no proof of who made it."""
    return RequestError(
        f"the call of {name!r} in the open turn has no thought signature",
        hint=f"Another model made it, or its signature was lost; {way_out}",
    )


# generateContent: the error's `status`; Interactions: its `code`.
_STATUS = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "OUT_OF_RANGE": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "ABORTED": 409,
    "ALREADY_EXISTS": 409,
    "RESOURCE_EXHAUSTED": 429,
    "CANCELLED": 499,
    "INTERNAL": 500,
    "UNKNOWN": 500,
    "DATA_LOSS": 500,
    "UNIMPLEMENTED": 501,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
    "invalid_request": 400,
    "failed_precondition": 400,
    "parameter_unknown": 400,
    "authentication": 401,
    "payment_required": 402,
    "permission_denied": 403,
    "not_found": 404,
    "model_not_found": 404,
    "already_exists": 409,
    "aborted": 409,
    "out_of_range": 416,
    "rate_limit_exceeded": 429,
    "too_many_requests": 429,
    "quota_exceeded": 429,
    "cancelled": 499,
    "api_error": 500,
    "unimplemented": 501,
    "service_unavailable": 503,
    "deadline_exceeded": 504,
    "gateway_timeout": 504,
}
_RETRYABLE = frozenset({408, 429, 500, 502, 503, 504})
_NEVER = frozenset({"quota_exceeded", "deadline_exceeded"})  # the page says so, whatever their status
_DELAY = re.compile(r"retry in (\d+(?:\.\d+)?)s", re.IGNORECASE)
_SECONDS = re.compile(r"\d{1,9}(?:\.\d+)?s")


def api_error(error: Any, *, delivered: bool) -> ApiError:
    """The error for an error object, or for whatever stands in its place."""
    fields = cast("dict[str, Any]", error) if isinstance(error, dict) else {"message": error}
    code, kind = fields.get("code"), fields.get("status")
    name = kind if isinstance(kind, str) else code if isinstance(code, str) else None
    status = code if isinstance(code, int) and not isinstance(code, bool) else _STATUS.get(name or "")
    message = str(fields.get("message") or "the service reported an error without a message")
    details = list(_details(fields))
    reasons = [detail["reason"] for detail in details if isinstance(detail.get("reason"), str)]
    return ApiError(
        message,
        type=name,
        code=str(code) if code is not None else None,
        status=status,
        retry_after=_retry_after(details, message),
        retryable=status in _RETRYABLE and name not in _NEVER and not _is_daily(details),
        delivered=delivered,
        raw=error,
        hint=f"Reason: {', '.join(reasons)}" if reasons else "",
    )


def _details(fields: dict[str, Any]) -> Iterator[dict[str, Any]]:
    details = fields.get("details")
    for detail in cast("list[Any]", details) if isinstance(details, list) else ():
        if isinstance(detail, dict):
            yield cast("dict[str, Any]", detail)


def _retry_after(details: list[dict[str, Any]], message: str) -> float | None:
    """Seconds to wait: RetryInfo's delay, such as "34.4s", else what the message says."""
    for detail in details:
        delay = detail.get("retryDelay")
        if isinstance(delay, str) and _SECONDS.fullmatch(delay):
            return float(delay[:-1])
    found = _DELAY.search(message)
    return float(found[1]) if found else None


def _is_daily(details: list[dict[str, Any]]) -> bool:
    """Whether a quota is used up that waiting a little does not fill: one for a day, or one of 0."""
    for detail in details:
        violations = detail.get("violations")
        for violation in cast("list[Any]", violations) if isinstance(violations, list) else ():
            if isinstance(violation, dict):
                quota = cast("dict[str, Any]", violation)
                if "PerDay" in str(quota.get("quotaId")) or str(quota.get("quotaValue")) == "0":
                    return True
    return False
