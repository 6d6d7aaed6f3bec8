"""What an HTTP response is before its first event: a stream, a JSON body, or a refusal.

Pure functions over status, headers and body. A body's shape is read by what it is, whatever its
content type says: proxies answer in the name of the service, and each in its own way.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping
from typing import Any, Literal, cast

import msgspec

from .errors import ApiError, FramingError, SseamError, excerpt
from .retry import retry_after, should_retry
from .sse import Framer

__all__ = ["Response", "error_in", "reads_as", "refusal", "request_id", "undecodable"]

# Of the body of an error this much is read; the largest that was seen had a few kilobytes.
MAX_ERROR_BODY = 1 << 18

# In this order: the provider's own, then those of what stands before it.
_REQUEST_IDS = ("request-id", "x-request-id", "apim-request-id", "x-amzn-requestid", "x-goog-request-id", "cf-ray")

# A quota or budget that is used up: waiting does not help.
_NEVER = frozenset(
    {"ramp_limit_exceeded", "contract_spend_limit_reached", "enforced_spend_limit_reached", "quota_exceeded"}
)
_NEVER_SUFFIXES = ("_spend_limit_exceeded",)

_RETRY = frozenset({408, 409, 424, 429, 498})
_NOT_IMPLEMENTED = frozenset({501, 505})


class Response(msgspec.Struct, frozen=True):
    """Status and headers of a response; header names in lower case."""

    status: int
    headers: dict[str, str]

    @classmethod
    def of(cls, status: int, headers: Iterable[tuple[str, str]]) -> Response:
        """The response with its headers as the library lists them; those of one name are joined."""
        joined: dict[str, str] = {}
        for name, value in headers:
            name = name.lower()
            joined[name] = f"{joined[name]}, {value}" if name in joined else value
        return cls(status, joined)

    @property
    def media_type(self) -> str:
        """The content type without its parameters, in lower case, the first where there are several; "" where there is
        none."""
        return self.headers.get("content-type", "").partition(",")[0].partition(";")[0].strip().lower()


def reads_as(response: Response) -> Literal["events", "body", "refusal"]:
    """What the response is by its status and content type.

    "events": an event stream, or not said: then its first byte tells. "body": a whole JSON body.
    "refusal": an error, or something that cannot be an answer.
    """
    if response.status != 200:
        return "refusal"
    media_type = response.media_type
    if media_type in ("text/event-stream", ""):
        return "events"
    if media_type == "application/json" or media_type.endswith("+json"):
        return "body"
    return "refusal"


def request_id(headers: Mapping[str, str]) -> str | None:
    """The id under which provider or proxy knows the request, None where neither says."""
    return next((headers[name] for name in _REQUEST_IDS if headers.get(name)), None)


def refusal(protocol: str, response: Response, body: bytes, *, now: float | None = None) -> SseamError:
    """The error for a response that `reads_as` calls a refusal.

    Args:
        protocol: name of the protocol, which decides what may be tried again.
        body: as much of it as came, decoded from its content encoding.
        now: seconds since the epoch, for a date in `retry-after`; None: the clock's.
    """
    if 200 <= response.status < 300:
        return _no_event_stream(response, body)
    body = body[:MAX_ERROR_BODY]
    payload = _payload(body)
    error = _read(protocol, payload) if isinstance(payload, dict | list) and payload else None
    if error is None:
        error = ApiError(_describe(response, body), raw=body.decode("utf-8", "replace"))
    return _complete(error, protocol, response, time.time() if now is None else now)


def undecodable(protocol: str, response: Response, fault: SseamError, *, now: float | None = None) -> SseamError:
    """The error for a refusal whose body's content coding cannot be undone, of which `fault` tells."""
    if 200 <= response.status < 300:
        return fault
    error = ApiError(f"the body of the error could not be decoded: {fault.detail}", hint=fault.hint)
    return _complete(error, protocol, response, time.time() if now is None else now)


def error_in(protocol: str, response: Response, body: bytes) -> ApiError | None:
    """The error that a whole body with status 200 tells of, None where it tells of none."""
    from .protocols._openai_errors import is_error

    payload = _payload(body)
    if not is_error(payload):
        return None
    error = _read(protocol, payload)
    error.request_id = error.request_id or request_id(response.headers)
    return error


def _complete(error: ApiError, protocol: str, response: Response, now: float) -> ApiError:
    """The error with what status and headers say of it."""
    headers = response.headers
    asked = should_retry(headers)
    fresh = ApiError(
        error.message,
        type=error.type,
        code=error.code,
        status=response.status,
        request_id=error.request_id or request_id(headers),
        retryable=_is_retryable(protocol, response.status, error) if asked is None else asked,
        raw=error.raw,
        hint=error.hint,
    )
    said = retry_after(headers, now)
    fresh.retry_after = error.retry_after if said is None else said
    return fresh


def _is_retryable(protocol: str, status: int, error: ApiError) -> bool:
    from .protocols._openai_errors import NO_RETRY

    names = {name for name in (error.type, error.code) if name}
    if names & (_NEVER | NO_RETRY) or any(name.endswith(_NEVER_SUFFIXES) for name in names):
        return False
    if protocol.startswith("gemini") and error.status is not None:
        return error.retryable
    if protocol.startswith("gemini") and status in (409, 424):
        return False
    if status in _NOT_IMPLEMENTED:
        return protocol == "anthropic-messages" and status == 501
    return status in _RETRY or status >= 500


def _read(protocol: str, payload: Any) -> ApiError:
    """The error in a decoded body, whatever its shape."""
    first: Any = cast("list[Any]", payload)[0] if isinstance(payload, list) else payload
    inner: Any = cast("dict[str, Any]", first).get("error") if isinstance(first, dict) else None
    if protocol.startswith("gemini") and isinstance(inner, dict):
        from .protocols import _gemini

        return _gemini.api_error(inner, delivered=False)
    from .protocols import _openai_errors

    error = _openai_errors.api_error(payload, delivered=False)
    outer = cast("dict[str, Any]", first) if isinstance(first, dict) else {}
    details: Any = cast("dict[str, Any]", inner).get("details") if isinstance(inner, dict) else None
    code = cast("dict[str, Any]", details).get("error_code") if isinstance(details, dict) else None
    if isinstance(code, str):
        error = ApiError(error.message, type=error.type, code=code, status=error.status, raw=error.raw)
    if isinstance(outer.get("request_id"), str):
        error.request_id = outer["request_id"]
    return error


def _payload(body: bytes) -> Any:
    """The JSON in a body: all of it, or the data of its first event; None where there is none."""
    if body.lstrip()[:1] not in (b"{", b"["):
        try:
            frames = Framer().feed(body + b"\n\n")
        except FramingError:
            return None
        body = next((frame.data for frame in frames if frame.data.strip()), b"")
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


_TITLE = re.compile(r"<title[^>]{0,100}>([^<]{1,200})", re.IGNORECASE)


def _describe(response: Response, body: bytes) -> str:
    """A text for a refusal that gives no reason that can be read."""
    target = response.headers.get("location", "").partition("?")[0]
    if 300 <= response.status < 400 and target:
        return f"redirected to {target}, which is not followed: the key is for the address that was given"
    text = body[:4096].decode("utf-8", "replace")
    if not text.strip():
        return "the response has no body"
    if text.lstrip().startswith("<"):
        title = _TITLE.search(text)
        return f"a page: {' '.join(title[1].split())}" if title else f"a page: {excerpt(text)}"
    return "".join(char if char.isprintable() or char in "\n\t" else repr(char)[1:-1] for char in text.strip()[:500])


def _no_event_stream(response: Response, body: bytes) -> FramingError:
    kind = response.media_type or "no content type"
    found = f"The body begins {excerpt(body[:1024])}" if body.strip() else "The body is empty"
    return FramingError(f"not an event stream, but status {response.status} with {kind}", hint=found)
