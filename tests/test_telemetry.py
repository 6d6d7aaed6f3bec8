"""The span of a call, and the names in it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import httpx
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.calls import CONTEXT, api_error, begin, delta, model, text, text_start

import sseam
from sseam import Client, Message, Retry, Usage, stop
from sseam.context import Options
from sseam.message import Timing
from sseam.models import anthropic, compatible, gemini, openai_responses
from sseam.telemetry import request_attributes, response_attributes

EXPORTER = InMemorySpanExporter()


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Any:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(EXPORTER))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    EXPORTER.clear()
    return EXPORTER.get_finished_spans


def client(status: int, body: bytes, **settings: Any) -> Client:
    headers = {"content-type": "text/event-stream" if status == 200 else "application/json"}
    transport = httpx.MockTransport(lambda _: httpx.Response(status, headers=headers, content=body))
    return Client(httpx.Client(transport=transport), retry=Retry(max_retries=0), **settings)


def test_the_span_of_a_call(spans: Any) -> None:
    tracer = trace.get_tracer("test")
    with tracer.start_as_current_span("parent") as parent:
        client(200, b"".join(text("Hello"))).complete(model("http://host:81"), CONTEXT, Options(max_output_tokens=9))
    span, _ = spans()
    assert span.name == "chat claude-opus-5"
    assert span.kind is trace.SpanKind.CLIENT
    assert span.parent.span_id == parent.get_span_context().span_id
    assert span.status.status_code is trace.StatusCode.UNSET
    assert parent.start_time <= span.start_time < span.end_time <= parent.end_time
    found = dict(span.attributes)
    assert 0 < found.pop("gen_ai.response.time_to_first_chunk") < 5
    assert found == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "claude-opus-5",
        "gen_ai.request.max_tokens": 9,
        "server.address": "host",
        "server.port": 81,
        "gen_ai.response.id": "msg_1",
        "gen_ai.response.model": "m",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 5,
    }


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (404, api_error("not_found_error"), "not_found_error"),
        (502, b"", "ApiError"),
        (200, b"".join([begin(), text_start(), delta("Hello")]), "TruncatedStream"),
    ],
)
def test_a_call_that_fails(spans: Any, status: int, body: bytes, kind: str) -> None:
    with pytest.raises(sseam.SseamError) as caught:
        client(status, body).complete(model("http://host"), CONTEXT)
    (span,) = spans()
    assert span.attributes["error.type"] == kind
    assert span.status.status_code is trace.StatusCode.ERROR
    assert span.status.description == str(caught.value)


def test_one_that_was_given_up(spans: Any) -> None:
    with client(200, b"".join([begin(), text_start()])).stream(model("http://host"), CONTEXT) as stream:
        next(iter(stream))
        stream.abort()
    (span,) = spans()
    assert span.attributes["error.type"] == "StreamAborted"
    with client(200, b"").stream(model("http://host"), CONTEXT):
        pass
    assert len(spans()) == 1


def test_it_can_be_switched_off(spans: Any) -> None:
    client(200, b"".join(text("Hello")), telemetry=False).complete(model("http://host"), CONTEXT)
    assert spans() == ()


@pytest.mark.parametrize(
    ("of", "provider"),
    [
        (anthropic("x"), "anthropic"),
        (openai_responses("x"), "openai"),
        (gemini("x"), "gcp.gemini"),
        (compatible("x", base_url="https://api.groq.com/openai/v1"), "groq"),
        (compatible("x", base_url="https://api.mistral.ai/v1"), "mistral_ai"),
        (compatible("x", base_url="https://api.x.ai/v1"), "x_ai"),
        (compatible("x", base_url="http://localhost:1/v1"), "openai"),
    ],
)
def test_providers(of: Any, provider: str) -> None:
    assert request_attributes(of, Options())["gen_ai.provider.name"] == provider


def test_only_what_is_known() -> None:
    assert response_attributes(Message()) == {}
    usage = Usage(input_tokens=0, cache_read_tokens=1, cache_write_tokens=2, reasoning_tokens=3)
    assert response_attributes(Message(usage=usage, timing=Timing(duration=1.0))) == {
        "gen_ai.usage.input_tokens": 0,
        "gen_ai.usage.cache_read.input_tokens": 1,
        "gen_ai.usage.cache_creation.input_tokens": 2,
        "gen_ai.usage.reasoning.output_tokens": 3,
    }


def test_every_stop_reason_has_a_word() -> None:
    words = {
        response_attributes(Message(stop_reason=reason))["gen_ai.response.finish_reasons"][0] for reason in stop.NEUTRAL
    }
    assert words >= {"stop", "length", "content_filter", "tool_call", "error"}


def test_nothing_is_needed_and_nothing_is_loaded_before() -> None:
    code = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from sseam.telemetry import span_recorder\n"
        "from sseam.context import Options; from sseam.models import gemini\n"
        "print(span_recorder(gemini('x'), Options()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "None"
