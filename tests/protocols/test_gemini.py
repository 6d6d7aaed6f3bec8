"""Counts and errors, which the two Gemini protocols share."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sseam
from sseam.protocols import _gemini
from sseam.sequence import Validator

NAMES = _gemini.UsageNames(input="i", tool="u", cached="c", output="o", thoughts="t", total="s")


@pytest.mark.parametrize(
    ("raw", "usage"),
    [
        ({}, {}),
        ({"i": 1}, {"input_tokens": 1}),
        ({"i": 1, "u": 2}, {"input_tokens": 3}),
        ({"o": 1}, {"output_tokens": 1}),
        ({"o": 1, "t": 2}, {"output_tokens": 3, "reasoning_tokens": 2}),
        ({"t": 2}, {"output_tokens": 2, "reasoning_tokens": 2}),
        ({"i": 1, "o": 2}, {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}),
        (
            {"i": 1, "o": 2, "s": 9, "c": 1},
            {"input_tokens": 1, "output_tokens": 2, "total_tokens": 9, "cache_read_tokens": 1},
        ),
        ({"i": 0, "o": 0}, {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}),
        ({"i": None, "o": "7", "s": True}, {}),
    ],
)
def test_usage(raw: dict[str, Any], usage: dict[str, int]) -> None:
    assert _gemini.read_usage(raw, NAMES) == sseam.Usage(**usage, raw=raw)


RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.4s"}


def quota(**fields: str) -> dict[str, Any]:
    return {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [fields]}


@pytest.mark.parametrize(
    ("error", "status", "type", "retryable", "retry_after"),
    [
        ({"code": 503, "status": "UNAVAILABLE"}, 503, "UNAVAILABLE", True, None),
        ({"status": "UNAVAILABLE"}, 503, "UNAVAILABLE", True, None),
        ({"code": 502}, 502, None, True, None),
        ({"code": 400, "status": "INVALID_ARGUMENT"}, 400, "INVALID_ARGUMENT", False, None),
        ({"status": "MOON"}, None, "MOON", False, None),
        ({"code": 429, "details": [RETRY]}, 429, None, True, 34.4),
        ({"code": 429, "details": [quota(quotaId="RequestsPerDay"), RETRY]}, 429, None, False, 34.4),
        ({"code": 429, "details": [quota(quotaId="RequestsPerMinute")]}, 429, None, True, None),
        ({"code": 429, "details": [quota(quotaId="x", quotaValue="0")]}, 429, None, False, None),
        ({"code": 429, "message": "Please retry in 7s"}, 429, None, True, 7.0),
        ({"code": 429, "details": [{"retryDelay": "soon"}, 5, None]}, 429, None, True, None),
        ({"code": 429, "details": {"violations": 1}}, 429, None, True, None),
        ({"code": "rate_limit_exceeded"}, 429, "rate_limit_exceeded", True, None),
        ({"code": "quota_exceeded"}, 429, "quota_exceeded", False, None),
        ({"code": "deadline_exceeded"}, 504, "deadline_exceeded", False, None),
        ({"code": "model_not_found"}, 404, "model_not_found", False, None),
        ({"code": True, "status": 5}, None, None, False, None),
        ("upstream failed", None, None, False, None),
        (None, None, None, False, None),
    ],
)
def test_an_error(error: Any, status: int | None, type: str | None, retryable: bool, retry_after: float | None) -> None:
    found = _gemini.api_error(error, delivered=True)
    assert (found.status, found.type, found.retryable, found.retry_after) == (status, type, retryable, retry_after)
    assert found.delivered
    assert found.raw is error
    assert found.message


def test_every_error_of_the_reference_is_known(shared: Path) -> None:
    reference = json.loads((shared / "protocols" / "gemini.events.json").read_text())["errors"]
    for name, status in reference["generate_content_status_to_http"].items():
        error = _gemini.api_error({"status": name}, delivered=False)
        assert (error.status, error.retryable) == (status, status in reference["generate_content_retryable_http"])
    for entry in reference["interactions_codes"]:
        error = _gemini.api_error({"code": entry["code"]}, delivered=False)
        assert (error.status, error.retryable) == (entry["http"], entry["retry"])


FIXTURES = Path(__file__).parents[2] / "fixtures"
WRONG: list[Any] = [None, 5, "x", [], {}, True, [5]]


def wrong(value: Any) -> Iterator[Any]:
    """A JSON value with each of its fields and items in turn replaced by each of `WRONG`."""
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        for part in (*WRONG, *wrong(value[key])):
            if isinstance(value, dict):
                yield {**value, key: part}
            else:
                yield [*value[:key], part, *value[key + 1 :]]


@pytest.mark.parametrize(
    "name",
    [
        "gemini-generate/body-in-one-object",
        "gemini-generate/row-30-two-candidates",
        "gemini-generate/row-31-grounding-before-the-end",
        "gemini-generate/server-code",
        "gemini-generate/signed-thought",
        "gemini-generate/streamed-arguments",
        "gemini-interactions/annotations",
        "gemini-interactions/body",
        "gemini-interactions/completed-repeats-its-steps",
        "gemini-interactions/failed-with-a-reason",
        "gemini-interactions/server-search",
        "gemini-interactions/thought-and-text",
        "gemini-interactions/thought-whole-in-start",
        "gemini-interactions/tool-call",
    ],
)
def test_a_field_of_a_wrong_type_is_a_fault_or_makes_a_message_that_can_be_read_back(name: str) -> None:
    data = (FIXTURES / f"{name}.sse").read_bytes()
    protocol = name.partition("/")[0]
    if data.startswith(b"{"):
        bodies = [json.dumps(body).encode() for body in wrong(json.loads(data))]
    else:
        lines = data.split(b"\n")
        bodies = [
            b"\n".join([*lines[:number], b"data: " + json.dumps(event).encode(), *lines[number + 1 :]])
            for number, line in enumerate(lines)
            if line.startswith(b"data: {")
            for event in wrong(json.loads(line[6:]))
        ]
    for body in bodies:
        parser, validator = sseam.Parser(protocol), Validator()
        for event in (*parser.feed(body), *parser.finish()):
            validator.accept(event)
        message = parser.partial
        assert sseam.Message.from_json(message.to_json()) == message
