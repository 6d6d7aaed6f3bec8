"""Frames to chunks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import sseam
from sseam.protocols.gemini_generate import decode, read_response, wire
from sseam.protocols.gemini_generate.reducer import BLOCK_REASONS, STOP_REASONS, UNSPECIFIED


def framed(data: bytes | str, event: str = "message") -> sseam.Frame:
    return sseam.Frame(event, data if isinstance(data, bytes) else data.encode(), "", None, 0, 0)


def chunk(**fields: Any) -> wire.Event:
    return decode(framed(json.dumps(fields)))


def part(**fields: Any) -> wire.Part:
    found = chunk(candidates=[{"content": {"parts": [fields]}}])
    assert isinstance(found, wire.Chunk)
    assert found.candidates is not None
    content = found.candidates[0].content
    assert content is not None
    assert content.parts is not None
    return content.parts[0]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (chunk(), wire.Chunk()),
        (chunk(responseId="r", modelVersion="m", createTime="t"), wire.Chunk(None, msgspec.Raw(), "m", "r", "t")),
        (chunk(candidates=[]), wire.Chunk(())),
        (chunk(candidates=None, promptFeedback={}), wire.FullChunk(rest={"promptFeedback": {}})),
        (
            chunk(candidates=[{"finishReason": "STOP", "index": 1}]),
            wire.Chunk((wire.Candidate(index=1, finish_reason="STOP"),)),
        ),
        (
            chunk(candidates=[{"finishReason": "STOP", "avgLogprobs": -1}]),
            wire.FullChunk((wire.FullCandidate(finish_reason="STOP", rest={"avgLogprobs": -1}),)),
        ),
        (
            chunk(candidates=[{"content": {"role": "model", "new": 1}}]),
            wire.FullChunk((wire.FullCandidate(wire.Content((), "model")),)),
        ),
        (
            chunk(response={"responseId": "r"}, traceId="t"),
            wire.FullChunk(response_id="r", deviations=("wrapped",)),
        ),
        (chunk(response={"error": {"code": 1}}), wire.Error({"code": 1})),
        (chunk(error={"code": 1}), wire.Error({"code": 1})),
        (chunk(error="x"), wire.Error("x")),
        (chunk(heartbeat=1), wire.Unknown({"heartbeat": 1})),
        (part(text="x"), wire.Part("x")),
        (part(text="x", thought=True, thoughtSignature="s"), wire.Part("x", True, "s")),
        (
            part(text="x", new={"a": 1}),
            wire.FullPart("x", raw={"text": "x", "new": {"a": 1}}, rest={"new": {"a": 1}}),
        ),
        (part(functionCall={"name": "f"}), wire.Part(function_call=wire.FunctionCall(name="f"))),
        (
            part(functionCall={"name": "f", "new": 1}),
            wire.FullPart(
                function_call=wire.FunctionCall(name="f"),
                raw={"functionCall": {"name": "f", "new": 1}},
                rest={"functionCall": {"new": 1}},
            ),
        ),
        (
            part(functionCall={"partialArgs": [{"jsonPath": "$.a", "numberValue": 1}], "willContinue": True}),
            wire.Part(
                function_call=wire.FunctionCall(
                    partial_args=(wire.PartialArg("$.a", number_value=1),), will_continue=True
                )
            ),
        ),
        (decode(framed("")), wire.Empty()),
        (decode(framed(" [DONE] ")), wire.DoneMarker()),
        (decode(framed("]", "]")), wire.ArrayEnd()),
    ],
)
def test_a_frame_is_read(found: Any, expected: Any) -> None:
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize("beside", [{}, {"partMetadata": {}}])
def test_arguments_are_kept_as_they_came(beside: dict[str, Any]) -> None:
    text = '{"a" : 1.0, "a": 12345678901234567890}'
    data = '{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":%s}%s}]}}]}'
    found = decode(framed(data % (text, "".join(f',"{key}":{{}}' for key in beside))))
    assert isinstance(found, wire.Chunk)
    call = found.candidates[0].content.parts[0].function_call  # type: ignore[index,union-attr]
    assert call is not None
    assert bytes(call.args).decode() == text


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ("{", "data is not JSON"),
        ("upstream connect error", "upstream connect error"),
        ("]", "data is not JSON"),
        ("[1]", "not an object"),
        ("7", "not an object"),
        ('{"candidates": 7}', r"chunk has the wrong shape: .*candidates"),
        ('{"candidates": [7]}', "candidate has the wrong shape"),
        ('{"candidates": [{"index": "0"}]}', "candidate has the wrong shape: .*index"),
        ('{"candidates": [{"content": []}]}', "content has the wrong shape"),
        ('{"candidates": [{"content": {"parts": {}}}]}', "content has the wrong shape: .*parts"),
        ('{"candidates": [{"content": {"parts": ["x"]}}]}', "part has the wrong shape"),
        ('{"candidates": [{"content": {"parts": [{"thought": "yes"}]}}]}', "part has the wrong shape: .*thought"),
        ('{"candidates": [{"content": {"parts": [{"functionCall": 1}]}}]}', "functionCall has the wrong shape"),
        ('{"candidates": [{"content": {"parts": [{"functionCall": {"partialArgs": [1]}}]}}]}', "partialArgs"),
        ('{"responseId": 7}', "chunk has the wrong shape: .*responseId"),
        ('{"object": "chat.completion.chunk", "choices": []}', "OpenAI Chat Completions"),
        ('{"choices": []}', "openai-chat"),
        ('{"response": {"candidates": 7}}', "wrong shape"),
        (b'{"responseId": "\xff"}', "not UTF-8"),
        (b'{"candidates": [{"content": {"parts": [{"functionCall": {"args": {"a": "\xff"}}}]}}]}', "not UTF-8"),
        ('{"responseId": "\\ud800"}', "surrogate"),
        ('{"new": ' + "[" * 100_000, "nested too deeply"),
        ('{"candidates": [{"content": {"parts": [{"functionCall": {"args": ' + "[" * 100_000, "nested too deeply"),
        ('{"usageMetadata": {"a": 01}}', "data is not JSON"),
    ],
)
def test_a_frame_that_is_no_chunk_is_told(data: bytes | str, told: str) -> None:
    with pytest.raises(sseam.ProtocolError, match=told):
        decode(framed(data))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"responseId": "r"}, [wire.FullChunk(response_id="r")]),
        ([{"responseId": "r"}, {"error": 1}], [wire.FullChunk(response_id="r"), wire.Error(1)]),
        ([], []),
        ({"error": {"code": 400}}, [wire.Error({"code": 400})]),
    ],
)
def test_a_body_is_read(body: Any, expected: list[wire.Event]) -> None:
    assert read_response(body) == expected


@pytest.mark.parametrize("body", [7, "x", None, {"responseId": {1, 2}}, {"responseId": float("nan")}, [[7]]])
def test_a_body_that_is_none_is_told(body: Any) -> None:
    with pytest.raises(sseam.ProtocolError):
        read_response(body)


def test_every_value_of_the_reference_is_known(shared: Path) -> None:
    reference = json.loads((shared / "protocols" / "gemini.events.json").read_text())["generate_content"]
    reasons = {entry["value"]: entry["stop"] for entry in reference["finish_reasons"]}
    assert set(reasons) - UNSPECIFIED == set(STOP_REASONS)
    assert set(reference["block_reasons"]) - UNSPECIFIED == set(BLOCK_REASONS)
    for reason, neutral in reasons.items():
        if neutral in sseam.stop.NEUTRAL:
            assert STOP_REASONS[reason] == neutral
    assert set(reference["function_call_fields"]) == {
        field.encode_name for field in msgspec.structs.fields(wire.FunctionCall)
    }
    assert set(reference["partial_arg_fields"]) == {
        field.encode_name for field in msgspec.structs.fields(wire.PartialArg)
    }
