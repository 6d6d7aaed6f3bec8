"""What a response is before its first event, in every shape that services and proxies give."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sseam.errors import ApiError, FramingError
from sseam.response import Response, error_in, reads_as, refusal, request_id

ANTHROPIC, CHAT, RESPONSES = "anthropic-messages", "openai-chat", "openai-responses"
GEMINI, INTERACTIONS = "gemini-generate", "gemini-interactions"


def response(status: int, **headers: str) -> Response:
    return Response(status, {name.replace("_", "-"): value for name, value in headers.items()})


@pytest.mark.parametrize(
    ("status", "content_type", "kind"),
    [
        (200, "text/event-stream", "events"),
        (200, "text/event-stream; charset=utf-8", "events"),
        (200, "TEXT/Event-Stream;charset=windows-1252", "events"),
        (200, "", "events"),
        (200, "application/json", "body"),
        (200, "application/problem+json; x=y", "body"),
        (200, "text/event-streams", "refusal"),
        (200, "text/html", "refusal"),
        (200, "text/plain", "refusal"),
        (201, "text/event-stream", "refusal"),
        (204, "", "refusal"),
        (301, "text/event-stream", "refusal"),
        (400, "text/event-stream", "refusal"),
        (500, "application/json", "refusal"),
    ],
)
def test_what_a_response_is_read_as(status: int, content_type: str, kind: str) -> None:
    assert reads_as(response(status, content_type=content_type)) == kind


def test_headers_of_one_name_are_joined() -> None:
    made = Response.of(200, [("Content-Encoding", "gzip"), ("content-encoding", "br"), ("X", "1")])
    assert made.headers == {"content-encoding": "gzip, br", "x": "1"}


# protocol, status, body, and what the error says of it: message, type, code.
SHAPES: list[tuple[str, int, Any, str, str | None, str | None]] = [
    (
        ANTHROPIC,
        404,
        {"type": "error", "error": {"type": "not_found_error", "message": "model: x"}},
        "model: x",
        "not_found_error",
        None,
    ),
    (
        ANTHROPIC,
        400,
        {"type": "error", "error": {"type": "invalid_request_error", "message": "m", "details": {"error_code": "c"}}},
        "m",
        "invalid_request_error",
        "c",
    ),
    (
        CHAT,
        401,
        {"error": {"message": "m", "type": "invalid_request_error", "param": None, "code": "invalid_api_key"}},
        "m",
        "invalid_request_error",
        "invalid_api_key",
    ),
    (CHAT, 402, {"error": {"message": "m", "code": 402, "metadata": {}}}, "m", None, "402"),
    (
        CHAT,
        400,
        {"error": {"code": "content_filter", "message": "m", "innererror": {"code": "x"}}},
        "m",
        None,
        "content_filter",
    ),
    (CHAT, 400, {"message": "m", "type": "t", "param": "p", "code": "c"}, "m", "t", "c"),
    (CHAT, 400, {"object": "error", "message": "m", "type": "t", "param": None, "code": 3280}, "m", "t", "3280"),
    (CHAT, 401, {"detail": "Unauthorized"}, "Unauthorized", None, None),
    (
        CHAT,
        422,
        {"detail": [{"loc": ["body"], "msg": "bad", "type": "x"}]},
        '[{"loc": ["body"], "msg": "bad", "type": "x"}]',
        None,
        None,
    ),
    (CHAT, 400, {"code": "Client specified an invalid argument", "error": "m"}, "m", None, None),
    (CHAT, 503, {"error": "m", "error_type": "overloaded"}, "m", None, None),
    (CHAT, 400, [{"error": {"code": 400, "message": "m", "status": "INVALID_ARGUMENT"}}], "m", None, "400"),
    (CHAT, 400, {"success": False, "errors": [{"code": 7003, "message": "m"}]}, "m", None, "7003"),
    (
        RESPONSES,
        400,
        {"error": {"message": "m", "type": "invalid_request_error", "param": "input[2]", "code": "c"}},
        "m",
        "invalid_request_error",
        "c",
    ),
    (
        GEMINI,
        503,
        {"error": {"code": 503, "message": "m", "status": "UNAVAILABLE", "details": []}},
        "m",
        "UNAVAILABLE",
        "503",
    ),
    (
        GEMINI,
        400,
        [{"error": {"code": 400, "message": "m", "status": "INVALID_ARGUMENT"}}],
        "m",
        "INVALID_ARGUMENT",
        "400",
    ),
    (
        INTERACTIONS,
        404,
        {"error": {"code": "model_not_found", "message": "m"}},
        "m",
        "model_not_found",
        "model_not_found",
    ),
]


@pytest.mark.parametrize(("protocol", "status", "body", "message", "kind", "code"), SHAPES)
def test_every_shape_of_an_error(
    protocol: str, status: int, body: Any, message: str, kind: str | None, code: str | None
) -> None:
    error = refusal(protocol, response(status), json.dumps(body, indent=1).encode())
    assert isinstance(error, ApiError)
    assert (error.message, error.type, error.status) == (message, kind, status)
    assert code is None or error.code == code
    # The same as the first event of a stream.
    framed = f"event: error\ndata: {json.dumps(body)}\n\n".encode()
    assert refusal(protocol, response(status, content_type="text/event-stream"), framed) == error


BODIES = [
    (502, b"", {}, "the response has no body"),
    (502, b"  \n", {}, "the response has no body"),
    (502, b"<html><head><title>502 Bad\nGateway</title></head>", {}, "a page: 502 Bad Gateway"),
    (413, b"<h1>Too large</h1>", {}, "a page: '<h1>Too large</h1>'"),
    (503, b"upstream connect error", {}, "upstream connect error"),
    (500, b'{"error":', {}, '{"error":'),
    (500, b"[" * 100_000, {}, "[" * 500),
    (500, b"\xff\xfe", {}, "\ufffd\ufffd"),
    (500, b"[]", {}, "[]"),
    (500, b"null", {}, "null"),
    (307, b"", {"location": "https://other.example/v1?key=s"}, "redirected to https://other.example/v1, which is not"),
    (304, b"", {}, "the response has no body"),
    (500, b"a\x00\x1b[31mred\n", {}, "a\\x00\\x1b[31mred"),
]


@pytest.mark.parametrize(("status", "body", "headers", "words"), BODIES)
def test_what_is_no_json(status: int, body: bytes, headers: dict[str, str], words: str) -> None:
    error = refusal(CHAT, response(status, **headers), body)
    assert isinstance(error, ApiError)
    assert error.message.startswith(words)
    assert error.status == status
    assert len(str(error)) < 700


@pytest.mark.parametrize(
    ("status", "content_type", "body", "words"),
    [
        (200, "text/html", b"<html>", "status 200 with text/html. The body begins '<html>'"),
        (204, "", b"", "status 204 with no content type. The body is empty"),
        (202, "application/json", b"{}", "status 202 with application/json"),
    ],
)
def test_a_success_that_is_no_stream(status: int, content_type: str, body: bytes, words: str) -> None:
    error = refusal(CHAT, response(status, content_type=content_type), body)
    assert isinstance(error, FramingError)
    assert words in str(error)


# Which refusals may be tried again.
AGAIN: list[tuple[str, int, dict[str, Any], bool]] = [
    *((CHAT, status, {}, True) for status in (408, 409, 424, 429, 498, 500, 502, 503, 504, 520, 529)),
    *((CHAT, status, {}, False) for status in (302, 400, 401, 402, 403, 404, 413, 422, 499, 501)),
    (ANTHROPIC, 409, {"type": "conflict_error"}, True),
    (ANTHROPIC, 501, {}, True),
    (ANTHROPIC, 529, {"type": "overloaded_error"}, True),
    *(
        (ANTHROPIC, 429, {"type": "rate_limit_error", "details": {"error_code": code}}, False)
        for code in ("ramp_limit_exceeded", "contract_spend_limit_reached", "enforced_spend_limit_reached")
    ),
    *(
        (CHAT, 429, {"code": code}, False)
        for code in (
            "insufficient_quota",
            "billing_hard_limit_reached",
            "credit_balance_exhausted",
            "organization_spend_limit_exceeded",
            "some_spend_limit_exceeded",
            "organization_usage_limit_exceeded",
            "1113",
            1310,
        )
    ),
    (CHAT, 429, {"type": "exceeded_current_quota_error"}, False),
    (CHAT, 429, {"code": "rate_limit_exceeded"}, True),
    (CHAT, 503, {"code": "something_new"}, True),
    (GEMINI, 409, {"code": 409, "status": "ABORTED"}, False),
    (GEMINI, 409, {}, False),
    (GEMINI, 429, {"code": 429, "status": "RESOURCE_EXHAUSTED"}, True),
    (GEMINI, 500, {"code": 500, "status": "INTERNAL"}, True),
    (GEMINI, 501, {"code": 501, "status": "UNIMPLEMENTED"}, False),
    (GEMINI, 503, {}, True),
    (INTERACTIONS, 429, {"code": "quota_exceeded"}, False),
    (INTERACTIONS, 429, {"code": "rate_limit_exceeded"}, True),
]


@pytest.mark.parametrize(("protocol", "status", "fields", "again"), AGAIN)
def test_b226_which_refusal_may_be_tried_again(protocol: str, status: int, fields: dict[str, Any], again: bool) -> None:
    body = json.dumps({"error": {"message": "rate limit, too many tokens", **fields}}).encode() if fields else b""
    error = refusal(protocol, response(status), body)
    assert isinstance(error, ApiError)
    assert error.retryable is again
    for said in (True, False):
        told = refusal(protocol, response(status, x_should_retry=str(said).lower()), body)
        assert isinstance(told, ApiError)
        assert told.retryable is said


def test_how_long_to_wait() -> None:
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.4s"}
    body = json.dumps({"error": {"code": 429, "message": "m", "status": "RESOURCE_EXHAUSTED", "details": [info]}})
    plain = refusal(GEMINI, response(429), body.encode())
    headed = refusal(GEMINI, response(429, retry_after="2"), body.encode())
    dated = refusal(CHAT, response(429, retry_after="Thu, 01 Jan 1970 00:00:10 GMT"), b"", now=4.0)
    assert [error.retry_after for error in (plain, headed, dated) if isinstance(error, ApiError)] == [34.4, 2, 6]


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        ({"request-id": "r1", "cf-ray": "c"}, "r1"),
        ({"x-request-id": "r2", "cf-ray": "c"}, "r2"),
        ({"apim-request-id": "r3"}, "r3"),
        ({"cf-ray": "c"}, "c"),
        ({"request-id": ""}, None),
        ({}, None),
    ],
)
def test_request_ids(headers: dict[str, str], found: str | None) -> None:
    assert request_id(headers) == found
    error = refusal(ANTHROPIC, Response(500, headers), b"")
    assert isinstance(error, ApiError)
    assert error.request_id == found


def test_the_id_in_the_body_is_the_providers_own() -> None:
    body = json.dumps({"type": "error", "error": {"type": "x", "message": "m"}, "request_id": "req_1"}).encode()
    error = refusal(ANTHROPIC, response(500, request_id="other"), body)
    assert isinstance(error, ApiError)
    assert error.request_id == "req_1"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"message": "m"}}, "m"),
        ({"code": "c", "error": "m"}, "m"),
        ([{"error": {"message": "m"}}], "m"),
        ({"detail": "m"}, "m"),
        ({"choices": []}, None),
        ({"id": "x", "content": []}, None),
        ({"error": None, "output": []}, None),
        ([], None),
        (1, None),
    ],
)
def test_an_error_in_a_body_with_status_200(body: Any, message: str | None) -> None:
    error = error_in(CHAT, response(200, request_id="r"), json.dumps(body).encode())
    assert (error.message if error else None) == message
    assert error is None or error.request_id == "r"


def test_the_recorded_error_bodies(shared: Path) -> None:
    found = sorted((shared / "corpus").glob("*/*.body"))
    assert found
    for file in found:
        error = refusal(file.parent.name, response(400), file.read_bytes())
        assert isinstance(error, ApiError)
        assert error.message not in error.raw if isinstance(error.raw, str) else error.message
        assert not error.retryable
