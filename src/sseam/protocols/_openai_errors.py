"""Error objects in the many shapes that servers of OpenAI's protocols give them.

Sources: OpenAI's "Error codes" page, the vendors' API references and server sources (read 2026-11-29).
"""

from __future__ import annotations

import json
from typing import Any, cast

from ..errors import ApiError

__all__ = ["NO_RETRY", "api_error", "is_error"]

_RETRY = frozenset({408, 409, 424, 429, 498, 500, 502, 503, 504, 529})

# 429 for a quota that is used up: waiting does not help.
NO_RETRY = frozenset(
    {
        "insufficient_quota",
        "billing_hard_limit_reached",
        "credit_balance_exhausted",
        "organization_spend_limit_exceeded",
        "project_spend_limit_exceeded",
        "organization_usage_limit_exceeded",
        "exceeded_current_quota_error",
        "1113",
        *(str(code) for code in range(1308, 1322)),
    }
)

_STATUS = {
    "invalid_request_error": 400,
    "invalid_prompt": 400,
    "context_length_exceeded": 400,
    "content_filter": 400,
    "tool_use_failed": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "model_not_found": 404,
    "not_found_error": 404,
    "DeploymentNotFound": 404,
    "rate_limit_exceeded": 429,
    "rate_limit_reached_error": 429,
    "too_many_requests": 429,
    "RateLimitReached": 429,
    "insufficient_quota": 429,
    "exceeded_current_quota_error": 429,
    "1302": 429,
    "server_error": 500,
    "api_error": 500,
    "service_unavailable": 503,
    "overloaded": 503,
    "vector_store_timeout": 504,
    "overloaded_error": 503,
    "server_is_overloaded": 503,
    "1305": 503,
}

# An input that is too long, where the server has no code for it.
_OVERFLOW = (
    "maximum context length",
    "context window",
    "reduce the length",
    "prompt too long",
    "too many tokens",
    "total length of all messages",
)


def is_error(value: Any) -> bool:
    """Whether a payload without content is an error, whatever its shape.

    A truthy `error` always is one. The flat shapes are only looked for where there are no choices.
    """
    if isinstance(value, list):
        value = cast("list[Any]", value)[0] if value else None
    if not isinstance(value, dict):
        return False
    raw = cast("dict[str, Any]", value)
    if raw.get("error"):
        return True
    if raw.get("choices"):
        return False
    return bool(
        raw.get("object") == "error"
        or raw.get("type") == "error"
        or raw.get("detail")
        or raw.get("errors")
        or (isinstance(raw.get("message"), str) and ("code" in raw or "type" in raw or "status" in raw))
        or _minimax_status(raw)
    )


def _minimax_status(raw: dict[str, Any]) -> Any:
    status = raw.get("base_resp")
    return isinstance(status, dict) and cast("dict[str, Any]", status).get("status_code")


def api_error(payload: Any, *, delivered: bool) -> ApiError:
    """The error that a payload tells of. Its text is never empty."""
    outer, error = _objects(payload)
    message = _message(outer, error, payload)
    metadata = error.get("metadata")
    kind = error.get("type")
    if not isinstance(kind, str) and isinstance(metadata, dict):
        kind = cast("dict[str, Any]", metadata).get("error_type")
    code = _first(error.get("code"), error.get("status_code"), error.get("http_status_code"), outer.get("code"))
    kind = kind if isinstance(kind, str) and kind != "error" else None
    code = str(code) if code is not None else None
    status = _status(error, code, kind, message)
    return ApiError(
        message,
        type=kind,
        code=code,
        status=status,
        retryable=status in _RETRY and code not in NO_RETRY and kind not in NO_RETRY,
        delivered=delivered,
        raw=payload,
    )


def _objects(payload: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The outer object, and the one that tells of the error: the same where the shape is flat."""
    if isinstance(payload, list) and payload:
        payload = cast("list[Any]", payload)[0]
    outer = cast("dict[str, Any]", payload) if isinstance(payload, dict) else {}
    for key in ("error", "errors", "base_resp"):
        inner = outer.get(key)
        if isinstance(inner, list) and inner:
            inner = cast("list[Any]", inner)[0]
        if isinstance(inner, dict):
            inner = cast("dict[str, Any]", inner)
            nested = inner.get("error")  # an upstream's error in a gateway's
            return outer, cast("dict[str, Any]", nested) if isinstance(nested, dict) and len(inner) == 1 else inner
    return outer, outer


def _message(outer: dict[str, Any], error: dict[str, Any], payload: Any) -> str:
    for found in (
        error.get("message"),
        error.get("error"),
        outer.get("error"),
        outer.get("message"),
        error.get("detail"),
        error.get("msg"),
        error.get("status_msg"),
    ):
        if isinstance(found, str) and found.strip():
            return found
        if isinstance(found, list | dict) and found and found is not error:
            return json.dumps(found, ensure_ascii=False)[:500]
    text = payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False)
    return text[:500] if text.strip() else "the service reported an error without a message"


def _first(*values: Any) -> Any:
    return next((value for value in values if isinstance(value, str | int) and value not in ("", True, False)), None)


def _status(error: dict[str, Any], code: str | None, kind: str | None, message: str) -> int | None:
    for value in (code, error.get("status_code"), error.get("http_status_code"), error.get("status")):
        if isinstance(value, str | int) and str(value).isdecimal() and 400 <= int(value) <= 599:
            return int(value)
    if code in _STATUS:
        return _STATUS[code]
    if any(phrase in message.lower() for phrase in _OVERFLOW):
        return 400
    return _STATUS.get(kind or "")
