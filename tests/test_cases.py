"""Inputs made after public bug reports have their outcome, however they are cut.

They are not part of the project: SSEAM_CORPUS says where they lie.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sseam
from harness import ALL_REASONS, Result, calls, checked, chunkings, load

ROOT = Path(os.environ["SSEAM_CORPUS"]) / "cases" if "SSEAM_CORPUS" in os.environ else None
NEEDS_CASES = pytest.mark.skipif(ROOT is None, reason="SSEAM_CORPUS is not set: no bug-report cases at hand")

NAMES = {
    "anthropic.messages": "anthropic-messages",
    "openai.chat": "openai-chat",
    "openai.responses": "openai-responses",
    "google.generate_content": "gemini-generate",
    "google.interactions": "gemini-interactions",
}

# An outcome of the cases, and the error that says it. StopReasonError is told further by its reason.
ERRORS: dict[str, tuple[type[sseam.SseamError], ...]] = {
    "truncated": (sseam.TruncatedStream, sseam.TransportError),
    "invalid_tool_call": (sseam.InvalidToolCall,),
    "api_error": (sseam.ApiError,),
    "protocol_error": (sseam.ProtocolError,),
}
STOPS = {
    "cut_off": {"max_tokens", "context_window_exceeded"},
    "blocked": {"refusal", "content_filter"},
    "paused": {"pause_turn"},
}


def cases() -> list[Any]:
    if ROOT is None:
        return []
    return [pytest.param(case, id=case["id"]) for case in load(ROOT / "cases.json")["cases"]]


@NEEDS_CASES
@pytest.mark.parametrize("case", cases())
def test_case_has_its_outcome(case: dict[str, Any]) -> None:
    assert ROOT is not None
    expect = case["expect"]
    allowed = [expect["outcome"], *expect.get("also_ok", ())]
    schemas = load(ROOT / "cases.json")["tool_schemas"]
    tools = [{"name": name, "input_schema": schemas[name]} for name in case.get("tools", ()) if name in schemas]
    tools += [
        {"name": name, "input_schema": {"type": "object"}} for name in case.get("tools", ()) if name not in schemas
    ]
    data = (ROOT / case["file"]).read_bytes()

    seen = set()
    for chunks in _chunkings(case, data):
        result = _run(case, chunks, tools)
        outcome = outcome_of(result)
        assert outcome in allowed, (outcome, result.error)
        seen.add((outcome, str(result.error)))
        _compare(expect, outcome, result)
    assert len(seen) == 1, seen


def _chunkings(case: dict[str, Any], data: bytes) -> Iterator[list[bytes]]:
    yield from (chunks for _, chunks in chunkings(data))
    cuts = case.get("cuts", [])
    yield [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def _run(case: dict[str, Any], chunks: list[bytes], tools: list[Any]) -> Result:
    protocol = NAMES[case["protocol"]]
    if case.get("close") == "eof" or "close" not in case:
        parser = sseam.Parser(protocol, tools=tools)
        events = [event for chunk in chunks for event in parser.feed(chunk)]
        return checked(parser, [*events, *parser.finish()])
    return _over_a_source(case["close"], chunks, protocol, tools)


def _over_a_source(close: str, chunks: list[bytes], protocol: str, tools: list[Any]) -> Result:
    def source() -> Iterator[bytes]:
        yield from chunks
        if close == "reset":
            raise ConnectionResetError("connection reset by peer")
        pytest.fail("read on after the terminal event, on a connection that stays open")

    stream = sseam.iter_events(source(), protocol, tools=tools)
    events = []
    try:
        events += stream
        return Result(events, stream.message(), None)
    except sseam.SseamError as error:
        return Result(events, None, error)


def outcome_of(result: Result) -> str:
    """The outcome that a result is."""
    error = result.error
    if error is None:
        return "complete"
    if isinstance(error, sseam.StopReasonError):
        for outcome, reasons in STOPS.items():
            if error.stop_reason in reasons:
                return outcome
        return "protocol_error"
    if isinstance(error, sseam.InvalidToolCall) and error.reason in ("duplicate_id", "unnamed"):
        return "protocol_error"  # the arguments are not what is wrong
    return next(outcome for outcome, types in ERRORS.items() if isinstance(error, types))


def _compare(expect: dict[str, Any], outcome: str, result: Result) -> None:
    last = result.last
    if outcome != "protocol_error" and outcome == expect["outcome"]:
        assert last.text == _text(expect["text"])
    else:
        assert _text(expect["text"]).startswith(last.text)
    if outcome == expect["outcome"] and outcome in ("complete", "cut_off", "blocked", "paused", "invalid_tool_call"):
        assert last.raw_stop_reason == expect["stop_reason"]
    if outcome == "complete" and outcome == expect["outcome"]:
        _compare_calls(expect["tool_calls"], last.tool_calls)
    if outcome != "complete":
        withheld = set(expect.get("withheld", ()))
        whole = expect.get("whole_tool_calls", ())
        assert all(call in whole for call in calls(last.tool_calls) if call["name"] in withheld)
    if "thinking" in expect and outcome == expect["outcome"]:
        assert last.thinking == expect["thinking"]
    if outcome == expect["outcome"]:
        _compare_blocks(expect, last)
        _compare_usage(expect, last)
        told = f"{result.error} {vars(result.error) if result.error else ''}".lower()
        assert all(part.lower() in told for part in expect.get("error_contains", ()))


def _text(value: Any) -> str:
    return value["repeat"] * value["times"] if isinstance(value, dict) else value or ""


def _compare_calls(expected: list[dict[str, Any]], found: tuple[sseam.ToolCall, ...]) -> None:
    assert [call.name for call in found] == [call["name"] for call in expected]
    assert len({call.id for call in found}) == len(found)
    for call, row in zip(found, expected, strict=True):
        assert call.id
        assert call.id == (row["id"] or call.id)
        assert call.arguments == {key: _argument(value) for key, value in row["arguments"].items()}


def _argument(value: Any) -> Any:
    return _text(value) if isinstance(value, dict) and set(value) == {"repeat", "times"} else value


def _compare_blocks(expect: dict[str, Any], message: sseam.Message) -> None:
    if "signatures" in expect:
        signatures = [
            block.signature
            for block in message.content
            if isinstance(block, sseam.ThinkingBlock) or getattr(block, "signature", None)
        ]
        assert signatures == expect["signatures"]
    if "redacted" in expect:
        redacted = [block.data for block in message.content if isinstance(block, sseam.RedactedThinkingBlock)]
        assert redacted == expect["redacted"]


def _compare_usage(expect: dict[str, Any], message: sseam.Message) -> None:
    if "usage" not in expect:
        return
    if expect["usage"] is None:
        assert message.usage == sseam.Usage()
    else:
        for name, count in expect["usage"].items():
            assert _recoverable(message.usage.raw, name) == count


def _recoverable(raw: Any, name: str) -> Any:
    """The number under `name`, at whatever depth the provider keeps it."""
    if isinstance(raw, dict):
        if name in raw:
            return raw[name]
        for value in raw.values():
            if (found := _recoverable(value, name)) is not None:
                return found
    return None


def test_every_neutral_reason_can_be_accepted() -> None:
    assert sseam.Parser("anthropic-messages", accept=ALL_REASONS)
