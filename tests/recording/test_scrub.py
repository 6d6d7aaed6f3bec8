"""`sseam.recording.scrub`: which texts are masked, and what stays."""

from __future__ import annotations

from typing import Any

import pytest

from sseam.recording.scrub import Scrubber

SECRET = "s3cr3t-value-1"
MASKED = "X" * len(SECRET)


@pytest.mark.parametrize(
    "name",
    [
        "Authorization",
        "Proxy-Authorization",
        "x-api-key",
        "api-key",
        "x-goog-api-key",
        "Cookie",
        "set-cookie",
        "x-auth-token",
        "x-amz-security-token",
        "x-access-key",
        "anthropic-organization-id",
        "openai-organization",
        "openai-project",
    ],
)
def test_headers_that_are_masked(name: str) -> None:
    assert Scrubber().headers({name: SECRET}) == {name.lower(): MASKED}


@pytest.mark.parametrize(
    "name",
    [
        "content-type",
        "request-id",
        "anthropic-ratelimit-tokens-remaining",
        "x-ratelimit-limit-tokens",
        "openai-processing-ms",
        "www-authenticate",
    ],
)
def test_headers_that_stay(name: str) -> None:
    assert Scrubber().headers({name: SECRET}) == {name: SECRET}


@pytest.mark.parametrize(
    ("value", "masked"),
    [
        ("Bearer abc", "Bearer XXX"),
        ("Basic dXNlcg==", "Basic XXXXXXXX"),
        ("Bearer", "XXXXXX"),
        ("Digest abc", "XXXXXXXXXX"),
        ("", ""),
    ],
)
def test_the_scheme_of_an_authorization_stays(value: str, masked: str) -> None:
    assert Scrubber().headers({"authorization": value}) == {"authorization": masked}


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        ("https://h/v1?key=abc&alt=sse#key=1", "https://h/v1?key=XXX&alt=sse#key=1"),
        ("https://h/v1?alt=sse&api_key=abc", "https://h/v1?alt=sse&api_key=XXX"),
        (
            "https://h/?X-Amz-Signature=ab&X-Amz-Security-Token=cd",
            "https://h/?X-Amz-Signature=XX&X-Amz-Security-Token=XX",
        ),
        ("https://h/?pagetoken&monkey=1", "https://h/?pagetoken&monkey=1"),
        ("https://me:pass@h/v1", "https://XXXXXXX@h/v1"),
        ("https://h/v1/models/m:generate", "https://h/v1/models/m:generate"),
    ],
)
def test_urls(url: str, masked: str) -> None:
    assert Scrubber().url(url) == masked


@pytest.mark.parametrize(
    ("body", "masked"),
    [
        ({"api_key": "abc", "apiKey": "abc"}, {"api_key": "XXX", "apiKey": "XXX"}),
        (
            {"mcp_servers": [{"url": "u", "authorization_token": "abc"}], "n": 1, "none": None},
            {"mcp_servers": [{"url": "u", "authorization_token": "XXX"}], "n": 1, "none": None},
        ),
        ({"headers": {"Authorization": "Bearer abc"}}, {"headers": {"Authorization": "Bearer XXX"}}),
        # Not secrets: parameters of tools, and limits.
        ({"key": "abc", "token": "abc", "max_tokens": 5}, {"key": "abc", "token": "abc", "max_tokens": 5}),
        ({"password": {"type": "string"}}, {"password": {"type": "string"}}),
        ("text", "text"),
        (None, None),
    ],
)
def test_bodies(body: Any, masked: Any) -> None:
    assert Scrubber().body(body) == masked


@pytest.mark.parametrize(
    "secret",
    [
        "sk-ant-api03-" + "a" * 20,
        "sk-proj-" + "a_-" * 8,
        "AIza" + "b" * 35,
        "gsk_" + "c" * 20,
        "hf_" + "c" * 20,
        "github_pat_" + "d" * 22,
        "xai-" + "e" * 20,
        "AKIA" + "F" * 16,
        "eyJhbGciOiJI.eyJzdWIiOiIx.c2ln-bmF0",
    ],
)
def test_secrets_by_shape(secret: str) -> None:
    for before, after in (("", ""), ('{"text":"', '"}'), ("key=", " and"), ("Bearer ", "\n")):
        assert Scrubber().text(before + secret + after) == before + "X" * len(secret) + after


@pytest.mark.parametrize("text", ["a-task-" + "a" * 30, "sk-short", "Bearer of news", "toolu_" + "a" * 20])
def test_texts_that_stay(text: str) -> None:
    assert Scrubber().text(text) == text


def test_what_was_found_is_masked_everywhere() -> None:
    scrubber = Scrubber()
    scrubber.headers({"x-api-key": SECRET, "authorization": f"Bearer {SECRET}9", "cookie": "short"})
    assert scrubber.text(f"bad key {SECRET}9 or {SECRET}") == f"bad key {MASKED}X or {MASKED}"
    assert scrubber.body({"messages": [{"content": f"my {SECRET}"}]}) == {"messages": [{"content": f"my {MASKED}"}]}
    assert scrubber.headers({"x-echo": SECRET}) == {"x-echo": MASKED}
    # Too short to be looked for in other texts.
    assert scrubber.text("in short") == "in short"


def test_a_secret_in_a_url_is_found_as_it_is_and_decoded() -> None:
    scrubber = Scrubber()
    scrubber.url("https://h/?key=abc%2Fdefgh")
    assert scrubber.text("abc/defgh abc%2Fdefgh") == "XXXXXXXXX XXXXXXXXXXX"


def test_the_extra_rule_comes_last() -> None:
    seen: list[str] = []

    def extra(text: str) -> str:
        seen.append(text)
        return text.replace("Ann", "N.N.")

    scrubber = Scrubber(extra)
    assert scrubber.headers({"x-api-key": "abcd", "x-user": "Ann"}) == {"x-api-key": "XXXX", "x-user": "N.N."}
    assert scrubber.url("https://h/Ann?key=1") == "https://h/N.N.?key=X"
    assert scrubber.body(["Ann", {"Ann": "Ann"}]) == ["N.N.", {"Ann": "N.N."}]
    assert "abcd" not in "".join(seen)
