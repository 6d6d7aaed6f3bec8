"""Where each model's request goes, and with which headers, seen by `respx`."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import respx
from tests.calls import CONTEXT

import sseam
from sseam import AsyncClient, Client, Retry
from sseam.context import Model, Options
from sseam.errors import RequestError
from sseam.models import anthropic, compatible, gemini, gemini_interactions, openai, openai_responses

KEYS = {
    "ANTHROPIC_API_KEY": "a-key",
    "OPENAI_API_KEY": "o-key",
    "GEMINI_API_KEY": "g-key",
    "GROQ_API_KEY": "q-key",
    "MY_KEY": "m-key",
}
STATUS = 418  # who gets that far has been routed

ROUTES: list[tuple[Model, str, dict[str, str]]] = [
    (
        anthropic("claude-opus-5"),
        "https://api.anthropic.com/v1/messages",
        {"x-api-key": "a-key", "anthropic-version": "2023-06-01"},
    ),
    (openai("gpt-5"), "https://api.openai.com/v1/chat/completions", {"authorization": "Bearer o-key"}),
    (openai_responses("gpt-5"), "https://api.openai.com/v1/responses", {"authorization": "Bearer o-key"}),
    (
        gemini("gemini-3-flash"),
        "https://generativelanguage.googleapis.com/v1beta/models/gemini-3-flash:streamGenerateContent?alt=sse",
        {"x-goog-api-key": "g-key"},
    ),
    (
        gemini_interactions("gemini-3-flash"),
        "https://generativelanguage.googleapis.com/v1beta/interactions",
        {"x-goog-api-key": "g-key"},
    ),
    (
        compatible("x", base_url="https://api.groq.com/openai/v1"),
        "https://api.groq.com/openai/v1/chat/completions",
        {"authorization": "Bearer q-key"},
    ),
    (
        compatible("x", base_url="https://my.example/v1?api-version=1", key_variable="MY_KEY"),
        "https://my.example/v1/chat/completions?api-version=1",
        {"authorization": "Bearer m-key"},
    ),
]
ALWAYS = {"content-type": "application/json", "accept": "text/event-stream", "accept-encoding": "identity"}


@pytest.mark.parametrize(("model", "url", "headers"), ROUTES, ids=[route[1] for route in ROUTES])
@respx.mock
def test_routes(model: Model, url: str, headers: dict[str, str]) -> None:
    route = respx.post(url).respond(STATUS)
    with Client(httpx.Client(), environ=KEYS) as client, pytest.raises(sseam.ApiError) as caught:
        client.complete(model, CONTEXT)
    assert caught.value.status == STATUS
    (call,) = route.calls
    sent = dict(call.request.headers)
    assert {**ALWAYS, **headers}.items() <= sent.items()
    assert len({"authorization", "x-api-key", "x-goog-api-key"} & sent.keys()) == 1


@respx.mock
def test_the_callers_headers_go_over_ours() -> None:
    route = respx.post("https://api.anthropic.com/v1/messages").respond(STATUS)
    options = Options(extra_headers={"Accept-Encoding": "gzip", "Anthropic-Version": "2026-10-21", "X-Mine": "1"})
    with Client(httpx.Client(headers={"user-agent": "mine"}), environ=KEYS) as client, pytest.raises(sseam.ApiError):
        client.complete(anthropic("claude-opus-5"), CONTEXT, options)
    sent = route.calls[0].request.headers
    assert (sent["accept-encoding"], sent["anthropic-version"], sent["x-mine"], sent["user-agent"]) == (
        "gzip", "2026-10-21", "1", "mine",
    )  # fmt: skip
    assert sent.get_list("anthropic-version") == ["2026-10-21"]


@respx.mock
def test_the_calls_key_goes_before_the_environments() -> None:
    route = respx.post("https://api.openai.com/v1/responses").respond(STATUS)
    with Client(httpx.Client(), environ=KEYS) as client, pytest.raises(sseam.ApiError):
        client.complete(openai_responses("gpt-5"), CONTEXT, key="mine")
    assert route.calls[0].request.headers["authorization"] == "Bearer mine"


@respx.mock
def test_a_key_does_not_follow_a_redirect() -> None:
    respx.post("https://api.openai.com/v1/responses").respond(307, headers={"location": "https://evil.example/"})
    other = respx.route(host="evil.example").respond(200)
    http = httpx.Client(follow_redirects=True)
    with Client(http, environ=KEYS) as client, pytest.raises(sseam.ApiError, match="not followed"):
        client.complete(openai_responses("gpt-5"), CONTEXT)
    assert not other.called


@respx.mock
def test_without_a_key_nothing_is_sent() -> None:
    with Client(httpx.Client(), environ={}) as client, pytest.raises(RequestError, match="ANTHROPIC_API_KEY"):
        client.stream(anthropic("claude-opus-5"), CONTEXT)
    assert not respx.calls


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@respx.mock
async def test_every_attempt_sends_the_same() -> None:
    route = respx.post("https://api.anthropic.com/v1/messages").respond(503)
    async with httpx.AsyncClient() as http:
        client = AsyncClient(http, environ=KEYS, retry=Retry(max_retries=2, first_wait=0.001))
        with pytest.raises(sseam.ApiError):
            await client.complete(anthropic("claude-opus-5"), CONTEXT)
    sent: list[Any] = [call.request for call in route.calls]
    assert len(sent) == 3
    assert len({(request.content, tuple(request.headers.items())) for request in sent}) == 1
