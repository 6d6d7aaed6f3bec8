"""The five protocols told apart by their first bytes, errors included."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest

import sseam

GEMINI = [
    b'data: {"candidates": [{"content": {"parts": [{"text": "Hi"}]}}]}\r\n\r\n',
    b'data: {"usageMetadata": {"promptTokenCount": 1}}\n\n',
    b'data: {"promptFeedback": {"blockReason": "SAFETY"}}\n\n',
    b'[{\n  "candidates": [',
    b'[{"promptFeedback": {',
    b'data: {"response": {"candidates": [',
    b'{"error": {"code": 400, "message": "m", "status": "INVALID_ARGUMENT"',
    b'[{\n "error": {\n "code": 503,\n "message": "m",\n "status": "UNAVAILABLE"',
    b'data: {"error": {"message": "m", "status": "RESOURCE_EXHAUSTED"}}',
]
INTERACTIONS = [
    b'event: interaction.created\ndata: {"interaction"',
    b'data: {"interaction": {"id": "x"}, "event_type": "interaction.created"}\n\n',
    b'data: {"index": 0, "event_type": "step.stop"}\n\n',
    b'event: error\ndata: {"event_type": "error", "error": {"code": "api_error"',
    b'data: {"event_type": "content.delta"',
    b'{"id": "v1_x", "object": "interaction", "status": "completed"',
    b'{"error": {"code": "invalid_request", "message": "m"}}',
]


@pytest.mark.parametrize("body", GEMINI)
def test_gemini_generate(body: bytes) -> None:
    assert sseam.detect(body) == "gemini-generate"


@pytest.mark.parametrize("body", INTERACTIONS)
def test_gemini_interactions(body: bytes) -> None:
    assert sseam.detect(body) == "gemini-interactions"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"data: {",
        b'{"error": {"code": "DeploymentNotFound", "message": "m"}}',
        b'{"error": {"message": "m", "type": "invalid_request_error", "code": "rate_limit_exceeded"}}',
        rb'{"text": "{\"candidates\": [{\"event_type\": \"x\"}]}"}',
        b'{"providerMetadata": {"usageMetadata": {"promptTokenCount": 1}}}',
    ],
)
def test_what_is_no_gemini(body: bytes) -> None:
    assert sseam.detect(body) not in ("gemini-generate", "gemini-interactions")


RESPONSES = [
    b'event: response.created\ndata: {"type":"response.created","response":{"id":"x"',
    b'data: {"response":{"background":false},"sequence_number":0,"type":"response.created"}\n\n',
    b'data: {"type": "response.queued", "response": {"instructions": "say \\"type\\": \\"message\\""}}\n\n',
    b': OPENROUTER PROCESSING\n\ndata: {"type":"response.created"',
    b'event: response.output_text.delta\ndata: {"content_index":0,"delta":"x"',
    b'{"id":"resp_1","object":"response","output":[{"type":"message"',
    b'event: error\ndata: {"type":"error","sequence_number":0,"error":{"type":"x","code":"y","message":"m"}}\n\n',
    b'data: {"type":"error","code":"rate_limit_exceeded","message":"m","param":null,"sequence_number":1}\n\n',
    b'data: {"type":"error","error":{"type":"t","code":"c","message":"m","param":null}}\n\n',
]


@pytest.mark.parametrize("body", RESPONSES)
def test_openai_responses(body: bytes) -> None:
    assert sseam.detect(body) == "openai-responses"


@pytest.mark.parametrize(
    "body",
    [
        b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"m"},"request_id":null}\n\n',
        b'{"error":{"message":"m","type":"invalid_request_error","param":null,"code":null}}',
        b'data: {"id":"c","object":"chat.completion.chunk","choices":[]}\n\n',
    ],
)
def test_what_is_no_responses_stream(body: bytes) -> None:
    assert sseam.detect(body) != "openai-responses"


CHAT = [
    b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0',
    b': PROCESSING\n\n: PROCESSING\n\ndata: {"id":"c","provider":"P","object":"chat.completion.chunk"',
    b'data: {"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[]}',
    b'data: {"id": "c", "model": "m", "created": 1, "usage": {"prompt_tokens": 10, "completion_tokens": 1',
    b'{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant"',
    b'data: {"id":"c","choices":null',
    b'{"error":{"message":"m","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}',
    b'event: error\ndata: {"error":{"message":"m","type":"invalid_request_error","code":"tool_use_failed"}}',
    b'data: {"error":{"code":500,"message":"m","type":"server_error"}}',
    b'data: {"error":{"object":"error","message":"m","type":"InternalServerError"}}',
    b'{"object":"error","message":"m","type":"BadRequestError","param":null,"code":400}',
    b'{"code":"Some error","error":"m"}',
    b'{"error":"m","error_type":"overloaded"}',
    b'{"detail":"Unauthorized"}',
    b'{"success":false,"errors":[{"code":7003,"message":"m"}]}',
    b'{"error":{"code":"DeploymentNotFound","message":"m"}}',
]


@pytest.mark.parametrize("body", CHAT)
def test_openai_chat(body: bytes) -> None:
    assert sseam.detect(body) == "openai-chat"


@pytest.mark.parametrize("blank", [b"\n", b" \n", b"\r\n", b"[", b"{ "])
def test_nothing_to_see_is_seen_at_once(blank: bytes) -> None:
    began = time.process_time()
    assert sseam.detect(blank * 200_000) is None
    assert time.process_time() - began < 2


@pytest.mark.parametrize("body", [bytearray(GEMINI[0]), memoryview(GEMINI[0])])
def test_whatever_holds_bytes(body: Any) -> None:
    assert sseam.detect(body) == "gemini-generate"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (GEMINI[0].decode(), "got str. Of a file: path.read_bytes()"),
        (Path("a.sse"), "Of a file: path.read_bytes()"),
        (None, "got NoneType"),
    ],
)
def test_what_is_no_bytes(body: Any, text: str) -> None:
    with pytest.raises(TypeError, match=re.escape(text)):
        sseam.detect(body)
