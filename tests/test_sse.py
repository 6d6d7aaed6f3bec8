"""The framer: standard's rules, any chunking, limits, cost, and the way back."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
import tracemalloc
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import httpx
import httpx_sse
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sseam.errors import FramingError
from sseam.sse import Frame, Framer, Limits, Tail, encode

MIB = 1 << 20
DEFAULT = Limits()

# ---- helpers -----------------------------------------------------------------------------------

Result = tuple[list[Frame], Tail | None, str, "int | None", FramingError | None]


def run(chunks: Iterable[bytes], limits: Limits = DEFAULT) -> Result:
    """Frames, tail, last event ID, retry and error of a stream."""
    framer = Framer(limits)
    frames: list[Frame] = []
    try:
        for chunk in chunks:
            frames += framer.feed(chunk)
    except FramingError as error:
        return frames + error.frames, None, framer.last_event_id, framer.retry, error
    tail = framer.close()
    return frames, tail, framer.last_event_id, framer.retry, None


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def cuts(data: bytes) -> Iterator[list[bytes]]:
    """Whole, byte by byte, with empty chunks, and every two-way cut."""
    yield [data]
    yield cut(data, 1)
    yield [piece for byte in cut(data, 1) for piece in (b"", byte)]
    for at in range(1, len(data)):
        yield [data[:at], data[at:]]


def reference(data: bytes) -> tuple[list[Frame], dict[str, Any]]:
    """The standard's algorithm line by line over a whole stream, in the plainest way."""
    start = 3 if data.startswith(b"\xef\xbb\xbf") else 0
    lines = list(re.compile(rb"([^\r\n]*)(\r\n|\r|\n)").finditer(data, start))
    rest = data[lines[-1].end() if lines else start :]
    frames: list[Frame] = []
    id_buffer = last_id = kind = ""
    retry = own = block = None
    values: list[bytes] = []
    raw = stray = b""
    comments = ignored = 0
    for match in lines:
        line = match[1]
        if not line:
            last_id = id_buffer
            if values:
                frames.append(Frame(kind or "message", b"\n".join(values), last_id, own, block or 0, len(frames)))
            kind, own, block, values, raw = "", None, None, [], b""
            continue
        block = match.start() if block is None else block
        name, _, value = line.partition(b":")
        value = value[1:] if value.startswith(b" ") else value
        raw += match[0] if name in (b"data", b"event", b"id", b"retry") else b""
        if name == b"data":
            values.append(value)
        elif name == b"event":
            kind = value.decode(errors="replace")
        elif name == b"id":
            id_buffer = id_buffer if b"\0" in value else value.decode(errors="replace")
        elif name == b"retry":
            retry = own = int(value) if re.fullmatch(rb"[0-9]+", value) else own
            retry = own if own is not None else retry
        elif name:
            stray, ignored = stray + match[0], ignored + 1
        else:
            comments += 1
    if rest and rest.partition(b":")[0] not in (b"", b"data", b"event", b"id", b"retry"):
        stray, ignored = stray + rest, ignored + 1
    return frames, {
        "incomplete": bool(rest or values or kind or id_buffer != last_id),
        "data": raw + rest,
        "stray": stray,
        "comments": comments + rest.startswith(b":"),
        "ignored": ignored,
        "last_event_id": last_id,
    }


def agree(data: bytes, result: Result) -> None:
    frames, tail, last_event_id, _, error = result
    expected, report = reference(data)
    assert error is None
    assert tail is not None
    assert frames == expected
    seen = {name: getattr(tail, name) for name in report if name != "last_event_id"}
    assert {**seen, "last_event_id": last_event_id} == report


# ---- rules: stream, frames, incomplete, last event ID, retry -----------------------------------


def m(
    data: bytes, offset: int, event: str = "message", id: str = "", retry: int | None = None
) -> tuple[str, bytes, str, int | None, int]:
    return event, data, id, retry, offset


RULES: list[tuple[str, bytes, list[tuple[Any, ...]], bool, str, int | None]] = [
    ("one event", b"data: a\n\n", [m(b"a", 0)], False, "", None),
    ("named", b"event: e\ndata: a\n\ndata: b\n\n", [m(b"a", 0, event="e"), m(b"b", 18)], False, "", None),
    ("event line last", b"data: a\nevent: e\n\n", [m(b"a", 0, event="e")], False, "", None),
    ("empty type", b"event: a\nevent:\ndata: x\n\n", [m(b"x", 0)], False, "", None),
    ("empty type, plain", b"event: \ndata: x\n\n", [m(b"x", 0)], False, "", None),
    ("joined data", b"data: a\ndata\ndata:b\n\n", [m(b"a\n\nb", 0)], False, "", None),
    ("empty data", b"data\n\ndata:\n\ndata: \n\n", [m(b"", at) for at in (0, 6, 13)], False, "", None),
    ("one space", b"data:  a\n\ndata:\ta\n\n", [m(b" a", 0), m(b"\ta", 10)], False, "", None),
    ("crlf", b"event: e\r\ndata: a\r\n\r\ndata: b\r\n\r\n", [m(b"a", 0, event="e"), m(b"b", 21)], False, "", None),
    ("crlf, stray cr", b"data: a\r\n\r\ndata: b\rc\r\n\r\n", [m(b"a", 0), m(b"b", 11)], False, "", None),
    ("cr", b"data: a\r\rdata: b\r\r", [m(b"a", 0), m(b"b", 9)], False, "", None),
    ("cr in plain", b"data: a\n\ndata: b\rdata: c\n\n", [m(b"a", 0), m(b"b\nc", 9)], False, "", None),
    ("lf cr", b"data: a\n\rdata: b\n\r", [m(b"a", 0), m(b"b", 9)], False, "", None),
    ("lf crlf", b"data: a\n\r\ndata: b\n\r\n", [m(b"a", 0), m(b"b", 10)], False, "", None),
    ("bom", b"\xef\xbb\xbfdata: a\n\n", [m(b"a", 3)], False, "", None),
    ("bom twice", b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", [], False, "", None),
    ("bom later", b"data: a\n\n\xef\xbb\xbfdata: b\n\n", [m(b"a", 0)], False, "", None),
    ("half a bom", b"\xef\xbb", [], True, "", None),
    ("no bom", b"\xef\xbbdata: a\n\n", [], False, "", None),
    ("comment first", b": c\n\n: c\ndata: a\n\n", [m(b"a", 5)], False, "", None),
    ("unicode ends", "data: \u2028\x85\x0b\x1cb\n\n".encode(), [m("\u2028\x85\x0b\x1cb".encode(), 0)], False, "", None),
    ("ill-formed", b"event: \xff\ndata: \xf0\n\n", [m(b"\xf0", 0, event="�")], False, "", None),
    ("ill-formed, slow", b"event: \xff\n:\ndata: \xf0\n\n", [m(b"\xf0", 0, event="�")], False, "", None),
    ("ill-formed id", b"id: \xe2\x82\ndata: a\n\n", [m(b"a", 0, id="�")], False, "�", None),
    ("id stays", b"id: 1\ndata: a\n\ndata: b\n\nid\n\n", [m(b"a", 0, id="1"), m(b"b", 15, id="1")], False, "", None),
    ("id alone", b"id: 1\n\n", [], False, "1", None),
    ("id with nul", b"id: 1\nid: 2\0\ndata: a\n\n", [m(b"a", 0, id="1")], False, "1", None),
    ("id pending", b"data: a\n\nid: 1\n", [m(b"a", 0)], True, "", None),
    ("id pending, same", b"id: 1\n\nid: 1\n", [], False, "1", None),
    ("type pending", b"event: e\n", [], True, "", None),
    ("no leaked type", b"event: e\n\ndata: a\n\n", [m(b"a", 10)], False, "", None),
    ("retry", b"retry: 10\ndata: a\n\ndata: b\n\nretry: 007\n", [m(b"a", 0, retry=10), m(b"b", 19)], False, "", 7),
    ("retry zero", b"retry: 000\ndata: a\n\n", [m(b"a", 0, retry=0)], False, "", 0),
    ("retry absurd", b"retry: " + b"9" * 5000 + b"\n", [], False, "", 10**18),
    ("retry refused", "retry: +5\nretry: ²\nretry:\nretry: 1_0\nretry:  1\n\n".encode(), [], False, "", None),
    ("retry cut", b"retry: 12", [], True, "", None),
    ("unknown", b"Data: a\n data: b\ndata : c\nfoo\n\n", [], False, "", None),
    ("comment at end", b"data: a\n\n: bye\n", [m(b"a", 0)], False, "", None),
    ("cut name", b"data: a\n\nda", [m(b"a", 0)], True, "", None),
    ("cut value", b"data: a\n\ndata: b", [m(b"a", 0)], True, "", None),
    ("cut learned", b"event: e\ndata: a\n\nevent: e\ndat", [m(b"a", 0, event="e")], True, "", None),
    ("no blank line", b"data: a\n\ndata: b\n", [m(b"a", 0)], True, "", None),
    ("no blank line, cr", b"data: a\r\n\r\ndata: b\r", [m(b"a", 0)], True, "", None),
    ("cut blank line", b"data: a\r\n\r", [m(b"a", 0)], False, "", None),
    ("blank lines", b"\n\n\r\n\r\r\n\n\n\ndata: a\n\n\n", [m(b"a", 10)], False, "", None),
    ("long type", b"event: " + b"e" * 300 + b"\ndata: a\n\n", [m(b"a", 0, event="e" * 300)], False, "", None),
    ("nothing", b"", [], False, "", None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "stream", "frames", "incomplete", "last_event_id", "retry"), RULES, ids=[case[0] for case in RULES]
)
def test_rules(
    name: str, stream: bytes, frames: list[tuple[Any, ...]], incomplete: bool, last_event_id: str, retry: int | None
) -> None:
    expected = [Frame(*fields, number=number) for number, fields in enumerate(frames)]
    whole = run([stream])
    tail = whole[1]
    assert tail is not None
    assert (whole[0], tail.incomplete, *whole[2:]) == (expected, incomplete, last_event_id, retry, None)
    if name != "retry absurd":
        agree(stream, whole)
    for chunks in cuts(stream):
        assert run(chunks) == whole


TAILS: list[tuple[bytes, bytes, bytes, tuple[str, bytes, str, int | None] | None, int, int]] = [
    (b"data: a\n\n", b"", b"", None, 0, 0),
    (b"data: a\n\nevent: e\ndata: b\n", b"event: e\ndata: b\n", b"", ("e", b"b", "", None), 0, 0),
    (b"data: a\n\nevent: e\r\ndata: b", b"event: e\r\ndata: b", b"", ("e", b"b", "", None), 0, 0),
    (b"id: 1\nretry: 5\ndata: a\r", b"id: 1\nretry: 5\ndata: a\r", b"", ("message", b"a", "1", 5), 0, 0),
    (b"data: a\ndata", b"data: a\ndata", b"", ("message", b"a\n", "", None), 0, 0),
    (b"data: a\n: c\nfoo\n: d", b"data: a\n: d", b"foo\n", ("message", b"a", "", None), 2, 1),
    (b"event: e\nid: 4\n", b"event: e\nid: 4\n", b"", None, 0, 0),
    (b'{"a":1}', b'{"a":1}', b'{"a":1}', None, 0, 1),
    (b'{\r\n\r\n "a":\r\n1}\r\n', b"", b'{\r\n "a":\r\n1}\r\n', None, 0, 3),
    (b"\xef\xbb\xbf{\r1}", b"1}", b"{\r1}", None, 0, 2),
    (b"\xef\xbb", b"\xef\xbb", b"\xef\xbb", None, 0, 1),
    (b"dat", b"dat", b"dat", None, 0, 1),
]


@pytest.mark.parametrize(("stream", "data", "stray", "frame", "comments", "ignored"), TAILS)
def test_tail(
    stream: bytes, data: bytes, stray: bytes, frame: tuple[Any, ...] | None, comments: int, ignored: int
) -> None:
    for chunks in cuts(stream):
        framer = Framer()
        dispatched = [frame for chunk in chunks for frame in framer.feed(chunk)]
        retry = framer.retry
        tail = framer.close()
        assert (tail.data, tail.stray, tail.comments, tail.ignored) == (data, stray, comments, ignored)
        pending = tail.frame
        assert frame == (pending and (pending.event, pending.data, pending.id, pending.retry))
        assert pending is None or pending.number == len(dispatched)
        # The tail is a report: closing commits nothing.
        assert (framer.last_event_id, framer.retry) == ("", retry)


@pytest.mark.parametrize(
    ("head", "stored", "sampled"),
    [
        (b"{", MIB, MIB),
        (b": ", MIB, 0),
        (b"datas: ", MIB, MIB),
        (b"data: ", 3 * MIB, 0),
        (b"id:", 3 * MIB, 0),
    ],
)
@pytest.mark.parametrize("size", [1000, MIB, 4 * MIB])
def test_only_fields_are_stored_beyond_the_sample(head: bytes, stored: int, sampled: int, size: int) -> None:
    line = head.ljust(3 * MIB, b"x")
    _, tail, *_ = run(cut(line, size))
    assert tail is not None
    assert tail.incomplete
    assert (tail.data, tail.stray) == (line[:stored], line[:sampled])
    ended = run(cut(line + b"\nfoo\ndata: a\n\n", size))
    assert ended == run([line + b"\nfoo\ndata: a\n\n"])
    frames, tail, *_ = ended
    assert tail is not None
    assert tail.stray == (line[:sampled] if sampled else b"foo\n")
    assert [frame.offset for frame in frames] == [0]
    assert frames[0].data.endswith(b"a")


def test_a_json_body_can_be_read_from_the_stray_lines() -> None:
    body = json.dumps({"error": {"message": "x\u2028", "items": [1, 2]}}, indent=2, ensure_ascii=False)
    body = body.replace("\n", "\r\n\r\n").encode()
    for chunks in cuts(body):
        _, tail, *_ = run(chunks)
        assert tail is not None
        assert json.loads(tail.stray) == json.loads(body)


# ---- any chunking, against the reference ---------------------------------------------------------

PARTS = [
    b"data: ", b"data:", b"data", b"event: ", b"event: e\n", b"event: longer\r\n", b"id: ", b"id: 1\n", b"id: \0\n",
    b"retry: 1", b"retry: 20\n", b": c\n", b": c\n\n", b":", b"foo: x\n", b"{", b"}", b'{"a": 1}', b" ", b"\t", b"\n",
    b"\n\n", b"\r", b"\r\n", b"\r\n\r\n", b"\r\r", b"\xef\xbb\xbf", b"\xef\xbb", b"\xff", "é".encode(),
    "\u2028\u0085".encode(), b"data: x\n\n", b"data: y\n\n", b"event: e\ndata: x\n\n", b"event: e\ndata: y\n\n",
    b"event: longer\r\ndata: x\r\n\r\n", b"data: x\r\n\r\n", b"data:x\n\n", b"event: e\ndata: x\ny\n\n",
]  # fmt: skip
STREAMS = st.one_of(st.lists(st.sampled_from(PARTS), max_size=25).map(b"".join), st.binary(max_size=40))
SIZES = st.lists(st.integers(0, 30), min_size=1, max_size=12)


def cut_at(data: bytes, sizes: list[int]) -> list[bytes]:
    """`data` in chunks of the given sizes, repeated; some empty."""
    chunks: list[bytes] = []
    at = step = 0
    while at < len(data):
        size = sizes[step % len(sizes)] if step < 200 else 7
        chunks.append(data[at : at + size])
        at, step = at + size, step + 1
    return chunks


@given(STREAMS, SIZES)
def test_any_chunking_gives_what_the_standard_says(stream: bytes, sizes: list[int]) -> None:
    whole = run([stream])
    agree(stream, whole)
    assert run(cut_at(stream, sizes)) == whole
    assert run(cut(stream, 1)) == whole


@given(STREAMS, SIZES, st.integers(0, 30), st.integers(0, 40) | st.none())
def test_any_chunking_gives_the_same_error(stream: bytes, sizes: list[int], line: int, frame: int | None) -> None:
    limits = Limits(line=line, frame=frame)
    whole = run([stream], limits)
    assert run(cut_at(stream, sizes), limits) == whole
    assert run(cut(stream, 1), limits) == whole


@given(st.lists(st.sampled_from(PARTS[-7:]), max_size=30).map(b"".join), st.integers(1, 200))
def test_plain_streams(stream: bytes, size: int) -> None:
    agree(stream, run(cut(stream, size)))


VALUES = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]))
ORDINARY = st.lists(st.tuples(st.sampled_from(["", "ping", "delta"]), VALUES), max_size=10)


@given(ORDINARY, st.sampled_from(["\n", "\r\n"]), st.integers(1, 60))
def test_ordinary_streams_read_as_by_httpx_sse(events: list[tuple[str, str]], end: str, size: int) -> None:
    text = "".join(f"{f'event: {kind}{end}' if kind else ''}data: x{value}{end}{end}" for kind, value in events)
    headers = {"content-type": "text/event-stream"}
    peer = httpx_sse.EventSource(httpx.Response(200, headers=headers, content=text.encode()))
    frames, *_ = run(cut(text.encode(), size))
    assert [(f.event, f.data.decode(), f.id) for f in frames] == [(e.event, e.data, e.id) for e in peer.iter_sse()]


# ---- promptness ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chunks", "ready"),
    [
        ([b"data: a\n\n"] * 3, [1, 1, 1]),
        ([b"event: e\r\ndata: a\r\n\r\n"] * 3, [1, 1, 1]),
        ([b"data: a\n", b"\n", b"data: b", b"\n\n"], [0, 1, 0, 1]),
        ([b"data: a\r\n\r", b"\ndata: b\r\n\r", b"\n"], [1, 1, 0]),
        ([b"data: a\r\r", b"data: b\r", b"\r", b"\n"], [1, 0, 1, 0]),
        ([b"data: a\n\ndata: b\n\ndata: c", b"\n", b"\r"], [2, 0, 1]),
        ([b"\xef", b"\xbb", b"\xbfdata: a\n\n"], [0, 0, 1]),
    ],
)
def test_a_frame_is_handed_out_with_its_blank_line(chunks: list[bytes], ready: list[int]) -> None:
    framer = Framer()
    assert [len(framer.feed(chunk)) for chunk in chunks] == ready


def test_retry_and_id_are_known_at_once() -> None:
    framer = Framer()
    framer.feed(b"retry: 5\nid: 1\n")
    assert (framer.retry, framer.last_event_id) == (5, "")
    framer.feed(b"\n")
    assert framer.last_event_id == "1"
    assert [frame.id for frame in framer.feed(b"data: a\n\n")] == ["1"]


# ---- limits and misuse ---------------------------------------------------------------------------


def line(event: str, limit: int, frame: int, offset: int) -> str:
    return f"a line of event '{event}' is longer than the line limit of {limit} bytes (frame {frame}, byte {offset})"


def block(event: str, limit: int, frame: int, offset: int) -> str:
    return f"event '{event}' is larger than the frame limit of {limit} bytes (frame {frame}, byte {offset})"


LIMITS: list[tuple[Limits, bytes, int, str | None]] = [
    (Limits(line=7), b"data: a\n\ndata: b\n\n", 2, None),
    (Limits(line=7), b"data: a\n\ndata: bc\n\n", 1, line("message", 7, 1, 9)),
    (Limits(line=7), b": 345678", 0, line("message", 7, 0, 0)),
    (Limits(line=8), b"event: e\ndata: abc", 0, line("e", 8, 0, 0)),
    (Limits(frame=14), b"data: a\ndata: b\n\n" * 3, 3, None),
    (Limits(frame=16), b"data: a\n\n: c\ndata: a\ndata: b\n\ndata: a\ndata: b\nfoo", 2, block("message", 16, 2, 30)),
    (Limits(frame=15), b"event: e\nevent: e\n", 0, block("e", 15, 0, 0)),
    (Limits(frame=16), b": comment\n" * 9 + b"foo\n" * 9 + b"data: a\n\n", 1, None),
    (Limits(line=20, frame=15), b"data: a\ndata: bc\n\n", 1, None),
    (Limits(line=10, frame=16), b"data: a\ndata: bcdef\n", 0, block("message", 16, 0, 0)),
    (Limits(line=8, frame=16), b"data: a\ndata: bcdef\n", 0, line("message", 8, 0, 0)),
    (Limits(line=0, frame=0), b"\xef\xbb", 0, None),
    (Limits(line=None, frame=None), b"data: " + b"a" * 1000 + b"\n\n", 1, None),
]  # fmt: skip


@pytest.mark.parametrize(("limits", "stream", "count", "text"), LIMITS)
def test_limits(limits: Limits, stream: bytes, count: int, text: str | None) -> None:
    for chunks in cuts(stream):
        frames, _, _, _, error = run(chunks, limits)
        assert len(frames) == count
        assert (error and str(error)) == text


def test_a_limit_is_checked_as_the_bytes_arrive() -> None:
    framer = Framer(Limits(line=1000))
    framer.feed(b"data: " + b"x" * 994)
    with pytest.raises(FramingError, match="line limit of 1,000 bytes"):
        framer.feed(b"x")


def test_a_frame_of_very_many_tiny_lines_is_limited() -> None:
    chunk = b"data\n" * 10_000
    framer = Framer(Limits(frame=MIB))
    fed = 0
    with pytest.raises(FramingError, match="frame limit") as caught:  # noqa: PT012 (whichever chunk passes it)
        for _ in range(30):
            framer.feed(chunk)
            fed += len(chunk)
    assert caught.value.frames == []
    assert fed * 4 // 5 <= MIB < (fed + len(chunk)) * 4 // 5


def test_no_bytes_are_taken_after_an_error() -> None:
    framer = Framer(Limits(line=8))
    assert len(framer.feed(b"data: a\n\n")) == 1
    with pytest.raises(FramingError) as caught:
        framer.feed(b"data: b\n\ndata: 123456789\n\ndata: c\n\n")
    assert [frame.data for frame in caught.value.frames] == [b"b"]
    assert (caught.value.where.frame, caught.value.where.offset) == (2, 18)
    with pytest.raises(FramingError, match="failed before"):
        framer.feed(b"data: a\n\n")
    with pytest.raises(FramingError, match="failed before"):
        framer.close()


def test_no_bytes_are_taken_after_close() -> None:
    framer = Framer()
    framer.feed(b"data: a\n\n")
    framer.close()
    for again in (lambda: framer.feed(b"data: a\n\n"), lambda: framer.feed(b""), framer.close):
        with pytest.raises(FramingError, match="was closed"):
            again()


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, type("Sub", (bytes,), {})])
def test_bytes_of_any_kind(kind: Any) -> None:
    framer = Framer()
    frames = [frame for part in (b"data: a\n\n", b"data: b", b"", b"\n\nfoo\n\n") for frame in framer.feed(kind(part))]
    assert [frame.data for frame in frames] == [b"a", b"b"]
    assert {type(frame.data) for frame in frames} == {bytes}


@pytest.mark.parametrize("chunk", ["data: a\n\n", None, 5, [1]])
def test_what_is_no_bytes_is_refused(chunk: Any) -> None:
    framer = Framer()
    framer.feed(b"data: a\n\n")
    with pytest.raises(TypeError, match=r"a chunk is .*, expected bytes"):
        framer.feed(chunk)
    assert len(framer.feed(b"data: a\n\n")) == 1


# ---- cost ----------------------------------------------------------------------------------------

COSTS: dict[str, tuple[bytes, bytes, int, bytes, int]] = {
    # head, repeated, times, end, chunk size (0: whole)
    "line in bytes": (b"data: ", b"x", 40_000, b"\n\n", 1),
    "line after a line in bytes": (b"data: a\ndata: ", b"x", 40_000, b"\n\n", 1),
    "long type in bytes": (b"event: ", b"x", 40_000, b"\ndata: a\n\n", 1),
    "unknown line in bytes": (b"", b"x", 40_000, b"\n\n", 1),
    "line in blocks": (b"data: ", b"x", 8 * MIB, b"\n\n", 1000),
    "early CR": (b"data: a\r", b"data: b\n", 40_000, b"\n", 0),
    "events": (b"", b"data: a\n\n", 60_000, b"", 0),
    "named events in pieces": (b"", b"event: e\ndata: abc\n\n", 15_000, b"", 7),
    "events, late CR": (b"", b"data: a\n\n", 20_000, b"\r", 0),
    "comments": (b"data: a\n", b": c\n", 60_000, b"\n", 0),
    "comment blocks": (b"", b": c\n\n", 20_000, b"", 4096),
    "blank lines": (b"", b"\n", 60_000, b"", 4096),
    "data lines": (b"", b"data\n", 40_000, b"\n", 4096),
    "data lines in bytes": (b"", b"data\r\n", 8_000, b"\n", 1),
    "id lines": (b"", b"id: 1\n", 40_000, b"\n", 4096),
}


def cpu(stream: bytes, size: int) -> float:
    """Seconds of CPU for a stream, the least of three runs."""
    chunks = cut(stream, size or len(stream))
    times: list[float] = []
    for _ in range(3):
        framer = Framer()
        start = time.process_time()
        for chunk in chunks:
            framer.feed(chunk)
        framer.close()
        times.append(time.process_time() - start)
    return min(times)


@pytest.mark.parametrize(("head", "body", "times", "end", "size"), COSTS.values(), ids=COSTS)
def test_cost_is_linear(head: bytes, body: bytes, times: int, end: bytes, size: int) -> None:
    # Four times the bytes: 4 when linear, 16 when quadratic. The constant is for the clock and the collector.
    once, four = (cpu(head + body * (times // 4 * factor) + end, size) for factor in (1, 4))
    assert four < 9 * once + 0.01


@pytest.mark.parametrize("body", [b"data: " + b"xy" * 200_000, b"data:xy\n" * 50_000], ids=["line", "data lines"])
def test_small_pieces_are_held_in_memory_near_their_size(body: bytes) -> None:
    framer = Framer()
    tracemalloc.start()
    for at in range(0, len(body), 2):
        framer.feed(body[at : at + 2])
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Up to 4,096 pieces of about 35 bytes and a pointer wait to be joined, in the line, the data and the block.
    assert held < 1.5 * len(body) + 500_000


# ---- the way back --------------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\0"))
FRAMES = st.builds(
    Frame,
    event=TEXT.map(lambda text: text or "message"),
    data=st.binary().map(lambda data: data.replace(b"\r", b"\n")),
    id=TEXT,
    retry=st.none() | st.integers(0, 10**18),
    offset=st.just(0),
    number=st.just(0),
)


@given(FRAMES)
def test_encoded_frames_are_read_back(frame: Frame) -> None:
    frames, tail, *_ = run([encode(frame)])
    assert frames == [frame]
    assert tail == Tail(False, b"", b"", None, 0, 0, frames=1, offset=len(encode(frame)))


@pytest.mark.parametrize(
    ("frame", "encoded"),
    [
        (Frame("message", b"", "", None, 0, 0), b"data: \n\n"),
        (Frame("e", b"a\n\nb", "", None, 9, 9), b"event: e\ndata: a\ndata: \ndata: b\n\n"),
        (Frame("e", b" a", "1", 5, 0, 0), b"id: 1\nretry: 5\nevent: e\ndata:  a\n\n"),
    ],
)
def test_encoded(frame: Frame, encoded: bytes) -> None:
    assert encode(frame) == encoded


@pytest.mark.parametrize(
    ("frame", "text"),
    [
        (Frame("e", b"a\rb", "", None, 0, 0), "cannot hold a CR"),
        (Frame("", b"a", "", None, 0, 0), "type is one line of text, not ''"),
        (Frame("a\nb", b"a", "", None, 0, 0), "type is one line of text"),
        (Frame("a\rb", b"a", "", None, 0, 0), "type is one line of text"),
        (Frame("e", b"a", "a\nb", None, 0, 0), "id is one line of text"),
        (Frame("e", b"a", "a\rb", None, 0, 0), "id is one line of text"),
        (Frame("e", b"a", "a\0b", None, 0, 0), "id is one line of text without NUL"),
        (Frame("\ud800", b"a", "", None, 0, 0), "lone surrogate"),
        (Frame("e", b"a", "\ud800", None, 0, 0), "lone surrogate"),
        (Frame("e", b"a", "", -1, 0, 0), "retry is 0 to"),
        (Frame("e", b"a", "", 10**18 + 1, 0, 0), "retry is 0 to"),
    ],
)
def test_what_cannot_be_read_back_is_not_encoded(frame: Frame, text: str) -> None:
    with pytest.raises(FramingError, match=text):
        encode(frame)


# ---- vectors -------------------------------------------------------------------------------------


def vector_chunks(vector: dict[str, Any]) -> list[bytes]:
    if "chunks_gen" not in vector:
        return [base64.b64decode(chunk) for chunk in vector["chunks_b64"]]
    whole = b"".join(base64.b64decode(piece["b64"]) * piece["times"] for piece in vector["chunks_gen"]["pieces"])
    return cut(whole, vector["chunks_gen"]["chunk"] or len(whole))


def data_of(frame: Frame, expected: Any) -> Any:
    text = frame.data.decode("utf-8", "replace")
    if isinstance(expected, str):
        return text
    return {"utf8_len": len(text.encode()), "sha256": hashlib.sha256(text.encode()).hexdigest()}


def check_vector(vector: dict[str, Any], chunks: list[bytes]) -> None:
    frames, tail, last_event_id, retry, error = run(chunks)
    assert error is None
    assert tail is not None
    events = [event for event in vector["events"] for _ in range(event.get("times", 1))]
    assert len(frames) == len(events)
    for frame, event in zip(frames, events, strict=True):
        assert (frame.event, frame.id) == (event["event"], event["id"])
        assert data_of(frame, event["data"]) == event["data"]
        assert vector.get("retry_unchecked") or frame.retry == event.get("retry")
    assert (tail.incomplete, last_event_id) == (vector["incomplete_tail"], vector["last_event_id"])
    assert vector.get("retry_unchecked") or retry == vector["retry"]


@pytest.mark.parametrize("part", range(1, 10))
def test_vectors(shared: Path, part: int) -> None:
    (file,) = (shared / "vectors" / "sse").glob(f"{part:02}_*.json")
    for vector in json.loads(file.read_bytes()):
        chunks = vector_chunks(vector)
        start = time.process_time()
        whole = run(chunks)
        assert time.process_time() - start < vector.get("max_seconds", 10), vector["name"]
        check_vector(vector, chunks)
        framer = Framer()
        ready = 0
        for chunk, expected in zip(chunks, vector.get("ready_after", ()), strict=False):
            ready += len(framer.feed(chunk))
            assert ready == expected, vector["name"]
        if vector.get("split") != "every":
            continue
        stream = b"".join(chunks)
        for other in cuts(stream) if len(stream) < 3000 else (cut(stream, size) for size in (1, 2, 7, 64, 1000, 16384)):
            assert run(other) == whole, vector["name"]
        if len(stream) <= 24:
            for first in range(len(stream)):
                for second in range(first, len(stream)):
                    assert run([stream[:first], stream[first:second], stream[second:]]) == whole, vector["name"]
