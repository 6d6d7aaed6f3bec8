"""Frames to wire events: what each payload is taken for, and which are refused."""

from __future__ import annotations

from typing import Any

import pytest

from sseam.errors import ProtocolError
from sseam.protocols.openai_chat import decode, read_response, wire

from .streams import HEAD, chunk, frame


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        (chunk({"content": "Hi"}), wire.PlainChunk),
        (chunk({"role": "assistant", "content": "Hi", "refusal": None}, usage=None), wire.PlainChunk),
        (chunk({"reasoning": "Hm"}), wire.PlainChunk),
        (chunk({"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]}), wire.PlainChunk),
        (chunk({"tool_calls": [{"index": 0, "function": {"arguments": {"a": 1}}}]}), wire.FullChunk),
        (chunk({"content": "Hi"}, unknown={"a": 1}), wire.PlainChunk),
        (chunk({"role": "assistant", "content": ""}), wire.FullChunk),
        (chunk({"content": "Hi"}, "stop"), wire.FullChunk),
        (chunk({"content": "Hi"}, index=1), wire.FullChunk),
        (chunk({"content": "Hi"}, usage={"prompt_tokens": 1}), wire.FullChunk),
        (chunk({"content": [{"type": "text", "text": "Hi"}]}), wire.FullChunk),
        (chunk({"content": "Hi", "new_field": 1}), wire.FullChunk),
        (chunk({}), wire.FullChunk),
        (chunk(None), wire.FullChunk),
        ({**HEAD, "choices": []}, wire.FullChunk),
        ({**HEAD, "choices": None}, wire.FullChunk),
        ({"id": "c", "cost": "0"}, wire.FullChunk),
        ({"id": "c", "created": 1.5, "model": 3}, wire.FullChunk),
        ({"error": "text"}, wire.Error),
        (chunk({"content": "Hi"}, error={"message": "m"}), wire.Error),
        ({"object": "error", "message": "m"}, wire.Error),
        ({"detail": "m"}, wire.Error),
        ([{"error": {"message": "m"}}], wire.Error),
        (b"[DONE]", wire.DoneMarker),
        (b" [DONE]\r", wire.DoneMarker),
        (b"DONE", wire.DoneMarker),
        (b"", wire.Empty),
        (b" \t", wire.Empty),
    ],
)
def test_event_of_a_payload(payload: Any, kind: type[Any]) -> None:
    assert type(decode(frame(payload))) is kind


@pytest.mark.parametrize("payload", [b"not json", {"message": "m"}, chunk({"content": "Hi"}), [1]])
def test_the_event_name_error_makes_it_one(payload: Any) -> None:
    assert type(decode(frame(payload, "error"))) is wire.Error


def test_other_event_names_mean_nothing() -> None:
    assert type(decode(frame(chunk({"content": "Hi"}), "sglext_ids"))) is wire.PlainChunk


@pytest.mark.parametrize(
    ("payload", "told"),
    [
        (b"{", "data is not JSON"),
        (b": PROCESSING", "': PROCESSING'"),
        (b"1", "not an object"),
        (b"[1]", "not an object"),
        (b'{"choices": 1}', "wrong shape"),
        (b'{"choices": [1]}', "wrong shape"),
        (b'{"choices": [{"delta": "Hi"}]}', "wrong shape"),
        (b'{"choices": [{"delta": {"tool_calls": [1]}}]}', "wrong shape"),
        (b'{"choices": [{"index": 0, "delta": {"content": "\\ud83d"}}]}', "surrogate"),
        (b'{"choices": [{"index": 0, "delta": {"content": "a"}}], "x": "\xff"}', "not UTF-8"),
        (b'{"choices": [{"index": 0, "delta": {"content": "a\xff"}}]}', "not UTF-8"),
        (b'{"choices": [], "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
    ],
)
def test_refused(payload: bytes, told: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        decode(frame(payload))
    assert told in str(caught.value)


def test_null_and_absent_differ_only_where_that_is_noted() -> None:
    entry = {"index": 0, "id": None, "function": {"arguments": None}}
    event = decode(frame(chunk({"tool_calls": [entry], "function_call": None})))
    assert isinstance(event, wire.PlainChunk | wire.FullChunk)
    event = event if isinstance(event, wire.FullChunk) else wire.full(event)
    assert event.chunk.choices
    delta = event.chunk.choices[0].delta
    assert delta is not None
    assert delta.tool_calls is not None
    assert delta.tool_calls[0].id is None
    assert delta.tool_calls[0].function == wire.Function(arguments=None)
    assert delta.function_call is None


def test_a_body_is_one_chunk_and_the_end() -> None:
    message = {"role": "assistant", "content": "Hi", "tool_calls": [{"id": "a"}, {"id": "b"}]}
    body = {**HEAD, "choices": [{"message": message, "finish_reason": "stop"}, {"message": message}]}
    first, last = read_response(body)
    assert last == wire.DoneMarker()
    assert isinstance(first, wire.FullChunk)
    assert first.response
    assert first.chunk.choices
    assert [choice.index for choice in first.chunk.choices] == [0, 1]
    for choice in first.chunk.choices:
        assert choice.delta is not None
        assert choice.delta.tool_calls is not None
        assert [call.index for call in choice.delta.tool_calls] == [0, 1]


@pytest.mark.parametrize("body", [None, 1, "text", [], {}, {"choices": []}, {"choices": None}, {"id": "c"}])
def test_a_body_that_is_no_completion(body: Any) -> None:
    with pytest.raises(ProtocolError, match="no chat completion"):
        read_response(body)


@pytest.mark.parametrize("body", [{"error": {"message": "m"}}, [{"error": {"message": "m"}}], {"detail": "m"}])
def test_an_error_body(body: Any) -> None:
    assert read_response(body) == [wire.Error(body)]
