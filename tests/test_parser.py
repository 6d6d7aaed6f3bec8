"""The parser fed by hand, and the two functions that feed it whole."""

from __future__ import annotations

import errno
import gc
import gzip
import http.client
import itertools
import json
import socket
import ssl
import time
import traceback
import weakref
from pathlib import Path
from typing import Any

import pytest

import sseam
from recordings import CALL, PROTOCOL

A = "anthropic-messages"


def frame(type: str, **fields: Any) -> bytes:
    return f"event: {type}\ndata: {json.dumps({'type': type, **fields})}\n\n".encode()


def start(**fields: Any) -> bytes:
    return frame("message_start", message={"id": "msg_1", "model": "m", "content": [], "stop_reason": None, **fields})


def text(*deltas: str, index: int = 0) -> bytes:
    return (
        frame("content_block_start", index=index, content_block={"type": "text", "text": ""})
        + b"".join(
            frame("content_block_delta", index=index, delta={"type": "text_delta", "text": delta}) for delta in deltas
        )
        + frame("content_block_stop", index=index)
    )


def tool(*fragments: str, index: int = 0, id: str = "toolu_1") -> bytes:
    return (
        frame(
            "content_block_start", index=index, content_block={"type": "tool_use", "id": id, "name": "f", "input": {}}
        )
        + b"".join(
            frame("content_block_delta", index=index, delta={"type": "input_json_delta", "partial_json": fragment})
            for fragment in fragments
        )
        + frame("content_block_stop", index=index)
    )


def end(reason: str = "end_turn") -> bytes:
    return frame("message_delta", delta={"stop_reason": reason}, usage={"output_tokens": 3}) + frame("message_stop")


WHOLE = start() + text("Hi", " there") + end()


def test_events_come_as_their_frames_are_complete() -> None:
    parser = sseam.Parser(A)
    assert parser.feed(WHOLE[:20]) == []
    events = parser.feed(start()[20:])
    assert events == [sseam.Start("msg_1", "m")]
    assert not parser.done
    assert parser.feed(text("Hi", " there")) == [
        sseam.TextStart(0),
        sseam.TextDelta(0, "Hi"),
        sseam.TextDelta(0, " there"),
        sseam.TextEnd(0, "Hi there"),
    ]
    assert parser.partial.text == "Hi there"
    assert not parser.partial.complete
    last = parser.feed(end())
    assert parser.done
    assert last[-1] == sseam.Done("end_turn", parser.close())
    assert parser.close().complete


def test_nothing_behind_the_terminal_event_is_read() -> None:
    parser = sseam.Parser(A)
    parser.feed(WHOLE + b"data: garbage\n\n")
    assert parser.feed(b"data: more\n\n") == []
    assert parser.feed_frame(sseam.Frame("x", b"garbage", "", None, 0, 0)) == []
    assert parser.finish() == []
    assert parser.abort(sseam.StreamAborted("late")) == []
    assert parser.close().text == "Hi there"


def test_a_fault_is_a_last_event_and_then_raises() -> None:
    parser = sseam.Parser(A)
    events = parser.feed(start() + text("Hi") + b"data: oops\n\n" + text("there", index=1))
    failed = events[-1]
    assert isinstance(failed, sseam.Failed)
    assert failed.error.where == sseam.Where(protocol="Anthropic", frame=4, offset=len(start() + text("Hi")))
    assert failed.message.text == "Hi"
    assert parser.done
    with pytest.raises(sseam.ProtocolError, match="data is not JSON") as caught:
        parser.close()
    assert caught.value is failed.error
    assert caught.value.partial == failed.message == parser.partial


def test_frames_framed_elsewhere() -> None:
    parser = sseam.Parser(A)
    frames = [sseam.Frame(found.event, found.data, "", None, 0, 0) for found in sseam.Framer().feed(WHOLE)]
    events = [event for found in frames for event in parser.feed_frame(found)]
    assert events[-1] == sseam.Done("end_turn", parser.close())


def test_a_message_is_not_there_before_the_end() -> None:
    with pytest.raises(RuntimeError, match="not over"):
        sseam.Parser(A).result()


def test_a_limit_breaks_after_the_events_before_it() -> None:
    parser = sseam.Parser(A, limits=sseam.Limits(line=300, frame=300))
    events = parser.feed(start() + text("Hi") + b"data: " + b"x" * 400)
    assert [type(event).__name__ for event in events] == ["Start", "TextStart", "TextDelta", "TextEnd", "Failed"]
    with pytest.raises(sseam.FramingError, match="300"):
        parser.close()


def test_a_limit_behind_the_terminal_event_does_not_matter() -> None:
    parser = sseam.Parser(A, limits=sseam.Limits(line=300, frame=300))
    parser.feed(WHOLE + b"data: " + b"x" * 400)
    assert parser.close().text == "Hi there"


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"accept": "max_tokens"}, TypeError, "accept"),
        ({"accept": ["length"]}, ValueError, "length"),
        ({"dialect": "unheard-of"}, ValueError, "unheard-of"),
        ({"tools": [7]}, TypeError, r"tools\[0\]"),
    ],
)
def test_wrong_options_are_told_at_once(options: dict[str, Any], error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        sseam.Parser(A, **options)


def test_a_protocol_that_is_none() -> None:
    with pytest.raises(ValueError, match="anthropic-messages"):
        sseam.Parser("soap")


def test_an_own_dialect_allows_what_it_lists() -> None:
    dialect = sseam.Dialect(name="mine", codes=frozenset({"stop_missing"}))
    cut = WHOLE[: -len(frame("message_stop"))]
    assert sseam.parse(cut, A, dialect=dialect).text == "Hi there"
    with pytest.raises(sseam.TruncatedStream):
        sseam.parse(cut, A)


def test_parse_takes_bytes_or_chunks_and_stops_at_the_end() -> None:
    def chunks() -> Any:
        yield WHOLE[:100]
        yield WHOLE[100:]
        raise AssertionError("read on")

    assert sseam.parse(chunks(), A) == sseam.parse(WHOLE, A) == sseam.parse(bytearray(WHOLE), A)


@pytest.mark.parametrize("lost", [1, 2])
def test_only_a_recording_may_lack_its_last_blank_line(lost: int) -> None:
    assert sseam.parse(WHOLE[:-lost], A).deviations == (
        sseam.Deviation(code="unterminated_tail", grade="soft", count=1),
    )
    parser = sseam.Parser(A)
    parser.feed(WHOLE[:-lost])
    with pytest.raises(sseam.TruncatedStream) as caught:
        parser.close()
    assert b"message_stop" in caught.value.tail
    assert "message_stop" in str(caught.value)


@pytest.mark.parametrize("tail", [b"data: 1", b'data: "x"', b"data: nul", b"data: [1]", b"data: " + b"[" * 100_000])
def test_a_tail_that_could_go_on_is_not_used(tail: bytes) -> None:
    with pytest.raises(sseam.TruncatedStream):
        sseam.parse(start() + tail, A)


BODY = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "Hi"}, {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}}],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 2},
}


def test_a_body_gives_the_message_that_its_stream_would() -> None:
    streamed = sseam.parse(
        start(role="assistant", type="message", stop_sequence=None, usage={"input_tokens": 1, "output_tokens": 0})
        + text("Hi")
        + tool('{"a":1}', index=1)
        + frame("message_delta", delta={"stop_reason": "tool_use"}, usage={"output_tokens": 2})
        + frame("message_stop"),
        A,
    )
    for body in (BODY, json.dumps(BODY), json.dumps(BODY, indent=1).encode()):
        assert sseam.parse_response(body, A) == streamed


@pytest.mark.parametrize(
    ("body", "error", "told"),
    [
        ({**BODY, "stop_reason": "end_turn"}, sseam.StopReasonError, "end_turn"),
        ({**BODY, "stop_reason": "max_tokens"}, sseam.StopReasonError, "max_tokens"),
        ({**BODY, "stop_reason": None}, sseam.TruncatedStream, "stop_reason"),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "Busy"}}, sseam.ApiError, "Busy"),
        ({"type": "ping"}, sseam.TruncatedStream, "empty"),
        ({"x": 1}, sseam.ProtocolError, "no type"),
        ([], sseam.ProtocolError, "not an object"),
        ("", sseam.FramingError, "not JSON"),
        ("<html>", sseam.FramingError, "HTML"),
        ('{"a":', sseam.FramingError, "broken JSON"),
        ("Bad gateway", sseam.FramingError, "Bad gateway"),
        ("[" * 100_000, sseam.FramingError, "nested too deeply"),
    ],
)
def test_a_body_is_checked_as_a_stream_is(body: Any, error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        sseam.parse_response(body, A)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({**BODY, "id": "\ud83d"}, "surrogate"),
        (json.dumps(BODY).replace("msg_1", "\ud83d"), "surrogate"),
        ({**BODY, "x": float("nan")}, "NaN"),
    ],
)
def test_a_body_that_no_wire_can_carry(body: Any, told: str) -> None:
    with pytest.raises(sseam.ProtocolError, match=told):
        sseam.parse_response(body, A)


def test_a_body_nested_too_deeply() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(sseam.ProtocolError, match="nested too deeply"):
        sseam.parse_response({**BODY, "x": deep}, A)


@pytest.mark.parametrize("depth", [200, 985, 990, 995, 5000])
def test_depth_is_told_wherever_it_hurts(depth: int) -> None:
    body = frame("content_block_start", index=0, content_block={"type": "tool_use", "id": "a", "name": "f", "input": 0})
    body = body.replace(b'"input": 0', b'"input": {"a":' + b"[" * depth + b"]" * depth + b"}")
    with pytest.raises(sseam.ProtocolError, match=r"nested too deeply|invalid input_json_delta"):
        sseam.parse(start() + body + frame("content_block_stop", index=0) + end("tool_use"), A)


@pytest.mark.parametrize(
    "error",
    [
        ConnectionResetError("reset"),
        TimeoutError("late"),
        OSError(errno.EHOSTUNREACH, "no route"),
        ssl.SSLEOFError("eof"),
        socket.gaierror("no name"),
        http.client.IncompleteRead(b""),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_broken_connection_is_told_with_what_was_whole(error: Exception) -> None:
    def chunks() -> Any:
        yield start() + text("Hi")
        raise error

    with pytest.raises(sseam.TransportError) as caught:
        sseam.parse(chunks(), A)
    assert caught.value.partial is not None
    assert caught.value.partial.text == "Hi"
    assert caught.value.__cause__ is error


@pytest.mark.parametrize("error", [FileNotFoundError(2, "gone"), ValueError("odd"), KeyError("x")], ids=type)
def test_what_else_a_source_raises_passes_through(error: Exception) -> None:
    def chunks() -> Any:
        yield start()
        raise error

    with pytest.raises(type(error)) as caught:
        sseam.parse(chunks(), A)
    assert caught.value is error


def test_an_error_raised_again_shows_one_traceback() -> None:
    parser = sseam.Parser(A)
    depths = set()
    for _ in range(5):
        with pytest.raises(sseam.TruncatedStream) as caught:
            parser.close()
        depths.add(len(list(traceback.walk_tb(caught.value.__traceback__))))
    assert len(depths) <= 2  # the first call ends the input, too


def test_every_end_of_input_has_its_place() -> None:
    for data in (start() + tool("{"), start(), start() + text("Hi") + frame("message_delta", delta={})):
        with pytest.raises(sseam.ProtocolError) as caught:
            sseam.parse(data, A)
        assert caught.value.where.offset == len(data)


def test_a_body_where_a_stream_was_expected() -> None:
    assert sseam.parse(json.dumps(BODY, indent=2).encode(), A) == sseam.parse_response(BODY, A)


def test_a_failed_parser_is_collected() -> None:
    """Its error holds a traceback, which holds the parser: the collector must see the whole ring."""

    def fail() -> weakref.ref[sseam.Parser]:
        parser = sseam.Parser(A)
        parser.feed(start() + tool("{") + end("tool_use"))
        with pytest.raises(sseam.InvalidToolCall):
            parser.close()
        return weakref.ref(parser)

    parser = fail()
    gc.collect()
    assert parser() is None


@pytest.mark.parametrize("block", [tool, text])
@pytest.mark.parametrize(
    ("size", "fragment"),
    # Where fragments are long, a copy of what came before shows, too.
    [*((size, '"k":"v",') for size in (1, 7, 64, 16384, None)), (None, '"k":"' + "v" * 2000 + '",')],
    ids=["1", "7", "64", "16384", "whole", "long fragments"],
)
def test_b239_b241_cost_is_linear_however_the_bytes_are_cut(block: Any, size: int | None, fragment: str) -> None:
    def seconds(count: int) -> float:
        data = start() + block(*(["{"] + [fragment] * count)) + end("max_tokens")
        step = size or len(data)
        chunks = [data[at : at + step] for at in range(0, len(data), step)]
        best = float("inf")
        for _ in range(3):
            began = time.process_time()
            parser = sseam.Parser(A, accept=["max_tokens"])
            for chunk in chunks:
                parser.feed(chunk)
            best = min(best, time.process_time() - began)
        return best

    small = seconds(300)
    assert seconds(2400) < 8 * 3 * small


def test_many_open_blocks_that_take_turns_cost_no_more() -> None:
    def seconds(blocks: int) -> float:
        opened = [
            frame("content_block_start", index=at, content_block={"type": "text", "text": ""}) for at in range(blocks)
        ]
        turns = [
            frame("content_block_delta", index=at % blocks, delta={"type": "text_delta", "text": "x"})
            for at in range(4000)
        ]
        parser = sseam.Parser(A)
        for chunk in itertools.chain([start()], opened):
            parser.feed(chunk)
        began = time.process_time()
        for chunk in turns:
            parser.feed(chunk)
        return time.process_time() - began

    assert seconds(2000) < 8 * seconds(2)


BEGINNINGS = {
    "anthropic-messages": b'data: {"type":"message_start","message":{"id":"m","type":"message"}}\n\n',
    "openai-chat": b'data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{}}]}\n\n',
    "openai-responses": b'data: {"type":"response.created","response":{"id":"r","object":"response"}}\n\n',
    "gemini-generate": b'data: {"candidates":[{"content":{"parts":[{"text":"a"}]}}]}\n\n',
    "gemini-interactions": b'data: {"event_type":"interaction.created","interaction":{"id":"v"}}\n\n',
}


@pytest.mark.parametrize("protocol", BEGINNINGS)
@pytest.mark.parametrize("spoken", BEGINNINGS)
def test_a_stream_of_another_protocol_is_told_as_one(spoken: str, protocol: str) -> None:
    data = BEGINNINGS[spoken]
    errors: list[sseam.SseamError] = []
    for chunks in ([data], [data[:9], data[9:]]):
        with pytest.raises(sseam.ProtocolError) as caught:
            sseam.parse(chunks, protocol)
        errors.append(caught.value)
    assert (spoken in errors[0].hint) is (spoken != protocol)
    assert str(errors[0]) == str(errors[1])
    body = data[6:-2]
    if spoken != protocol:
        with pytest.raises(sseam.ProtocolError) as caught:
            sseam.parse_response(body, protocol)
        assert spoken in caught.value.hint


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("text", "expected bytes or an iterable of them, got str. Of a file: path.read_bytes()"),
        (Path("a.sse"), "expected bytes or an iterable of them, got .*Path. Of a file: path.read_bytes()"),
        (None, "expected bytes or an iterable of them, got NoneType$"),
        (["text"], "a chunk is str, expected bytes: it was decoded before the frames were found"),
        ([5], "a chunk is int, expected bytes$"),
    ],
)
@pytest.mark.parametrize("protocol", ["anthropic-messages", "gemini-generate"])
def test_a_source_that_gives_no_bytes(source: Any, words: str, protocol: str) -> None:
    with pytest.raises(TypeError, match=words):
        sseam.parse(source, protocol)
    with pytest.raises(TypeError, match=words):
        list(sseam.iter_events(source, protocol))


def test_bytes_are_one_chunk() -> None:
    assert list(sseam.iter_events(CALL, PROTOCOL)) == list(sseam.iter_events([CALL], PROTOCOL))


def test_what_is_no_async_iterable() -> None:
    source: Any = [CALL]
    with pytest.raises(TypeError, match="expected an async iterable of bytes, got list"):
        sseam.aiter_events(source, PROTOCOL)


def test_compressed_bytes_are_told_as_such() -> None:
    with pytest.raises(sseam.FramingError, match=r"The body is compressed \(gzip\), and is to be decompressed"):
        sseam.parse(gzip.compress(CALL), PROTOCOL)


def test_a_whole_stream_of_another_protocol_is_told_as_one() -> None:
    with pytest.raises(sseam.TruncatedStream, match="The data looks like anthropic-messages: read it with that"):
        sseam.parse(CALL, "openai-chat")
