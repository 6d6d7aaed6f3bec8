"""`sseam.record`: recordings to files and back, and the recorder around a client's bytes."""

from __future__ import annotations

import gc
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sseam
from recordings import CALL, PROTOCOL
from sseam.recording.playback import Answers, split
from sseam.recording.record import Ending, RecordedRequest, Recorder, Recording, load, save
from sseam.replay import transport

KEY = "sk-ant-test-0123456789abcdef"


class Clock:
    """Seconds that pass by one at each look."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


class Chunks:
    """A source that can fail, and knows whether it was closed."""

    def __init__(self, *chunks: bytes, error: BaseException | None = None) -> None:
        self.closed = False
        self._chunks = iter(chunks)
        self._error = error

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        chunk = next(self._chunks, None)
        if chunk is None:
            raise self._error or StopIteration
        return chunk

    def close(self) -> None:
        self.closed = True

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            return next(self)
        except StopIteration:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        self.closed = True


def read(recorder: Recorder, source: Any, stop_after: int = 99, **response: Any) -> list[bytes]:
    if response:
        recorder.answered(**response)
    pieces = recorder.iter(source)
    got: list[bytes] = []
    for piece in pieces:
        got.append(piece)
        if len(got) == stop_after:
            break
    pieces.close()  # type: ignore[attr-defined]
    return got


def aread(recorder: Recorder, source: Any, stop_after: int = 99, **response: Any) -> list[bytes]:
    async def work() -> list[bytes]:
        if response:
            recorder.answered(**response)
        pieces = recorder.aiter(source)
        got: list[bytes] = []
        async for piece in pieces:
            got.append(piece)
            if len(got) == stop_after:
                break
        await pieces.aclose()  # type: ignore[attr-defined]
        return got

    return anyio.run(work)


@pytest.fixture(params=[read, aread], ids=["sync", "async"])
def drain(request: pytest.FixtureRequest) -> Any:
    return request.param


REQUEST = RecordedRequest(
    url="https://api.test/v1/messages?key=hidden",
    headers={"X-Api-Key": KEY, "anthropic-version": "2023-06-01"},
    body={"model": "m", "messages": [{"role": "user", "content": f"my key is {KEY}"}]},
)


def test_what_is_recorded(tmp_path: Path, drain: Any) -> None:
    recorder = Recorder(tmp_path / "one.sse", request=REQUEST, clock=Clock())
    source = Chunks(b"data: 1\n", b"\n", b"data: " + KEY.encode() + b"\n\n")
    headers = {
        "Content-Type": "text/event-stream",
        "Content-Encoding": "identity",
        "Set-Cookie": "a=b",
        "Request-Id": "r",
    }
    assert b"".join(drain(recorder, source, status=201, headers=headers)).endswith(KEY.encode() + b"\n\n")
    assert source.closed

    masked = "X" * len(KEY)
    assert (tmp_path / "one.sse").read_bytes() == b"data: 1\n\ndata: " + masked.encode() + b"\n\n"
    assert json.loads((tmp_path / "one.json").read_text()) == {
        "sseam_recording": 1,
        "status": 201,
        "headers": {"content-type": "text/event-stream", "set-cookie": "XXX", "request-id": "r"},
        "ending": "end",
        "error": None,
        "request": {
            "method": "POST",
            "url": "https://api.test/v1/messages?key=XXXXXX",
            "headers": {"x-api-key": masked, "anthropic-version": "2023-06-01"},
            "body": {"model": "m", "messages": [{"role": "user", "content": f"my key is {masked}"}]},
        },
        "chunks": [[1.0, 8], [2.0, 1], [3.0, 6 + len(KEY) + 2]],
    }
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.json", "one.sse"]


@pytest.mark.parametrize(
    ("error", "ending", "text"),
    [
        (httpx.ReadError(f"broken, {KEY}"), "close", f"ReadError: broken, {'X' * len(KEY)}"),
        (ValueError("odd"), "close", "ValueError: odd"),
        (KeyboardInterrupt(), "left", None),
    ],
)
def test_a_source_that_fails(
    tmp_path: Path, drain: Any, error: BaseException, ending: Ending, text: str | None
) -> None:
    source = Chunks(b"data: 1\n\n", error=error)
    with pytest.raises(type(error)):
        drain(Recorder(tmp_path / "one.sse"), source)
    recording = load(tmp_path / "one.sse")
    assert (recording.data, recording.ending, recording.error) == (b"data: 1\n\n", ending, text)
    assert recording.request is None
    assert source.closed


def test_a_reader_that_leaves(tmp_path: Path, drain: Any) -> None:
    source = Chunks(b"data: 1\n\n", b"data: 2\n\n")
    assert drain(Recorder(tmp_path / "one.sse"), source, stop_after=1) == [b"data: 1\n\n"]
    recording = load(tmp_path / "one.sse")
    assert (recording.data, recording.ending, recording.error) == (b"data: 1\n\n", "left", None)
    assert source.closed


def test_a_cancelled_reader(tmp_path: Path) -> None:
    async def forever() -> AsyncIterator[bytes]:
        yield b"data: 1\n\n"
        await anyio.sleep_forever()

    async def work() -> None:
        with anyio.move_on_after(0.01):
            async for _ in Recorder(tmp_path / "one.sse").aiter(forever()):
                pass

    anyio.run(work)
    gc.collect()
    assert load(tmp_path / "one.sse").ending == "left"


def test_sources_without_close(tmp_path: Path) -> None:
    class Bare:
        def __aiter__(self) -> Bare:
            return self

        async def __anext__(self) -> bytes:
            raise StopAsyncIteration

    assert read(Recorder(tmp_path / "a.sse"), [b"x", bytearray(b"y")]) == [b"x", b"y"]
    assert aread(Recorder(tmp_path / "b.sse"), Bare()) == []
    assert load(tmp_path / "a.sse").data == b"xy"
    assert load(tmp_path / "b.sse") == Recording(b"")


def test_nothing_is_left_where_writing_fails(tmp_path: Path) -> None:
    (tmp_path / "one.sse").mkdir()
    (tmp_path / "one.sse" / "in the way").touch()
    with pytest.raises(OSError):
        read(Recorder(tmp_path / "one.sse"), [b"x"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.json", "one.sse"]


def test_around_a_stream(tmp_path: Path) -> None:
    """The parser stops at the terminal event: what came until then is on disk when the stream is closed."""
    recorder = Recorder(tmp_path / "gpt-5.1.sse")
    with sseam.iter_events(recorder.iter(iter(split(CALL, 5))), PROTOCOL) as stream:
        message = stream.message()
    recording = load(tmp_path / "gpt-5.1.sse")
    assert recording.ending in ("end", "left")
    assert sseam.parse(recording.data, PROTOCOL) == message
    assert (tmp_path / "gpt-5.1.json").exists()


def test_scrub_that_changes_lengths(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "one.sse", scrub=lambda text: text.replace("Ann", "A").replace("Bo", "Robert"))
    read(recorder, [b"data: Ann\n\nda", b"ta: Bo", b" and Ann\n", b"\ndata: caf\xc3", b"\xa9 \xff"])
    recording = load(tmp_path / "one.sse")
    assert recording.data == b"data: A\n\ndata: Robert and A\n\ndata: caf\xc3\xa9 \xff"
    assert sum(size for _, size in recording.chunks) == len(recording.data)
    # Blocks that are as they were keep their cuts; in a changed one a cut stays at its distance from the block's start.
    assert split(recording.data, "recorded", recording) == [
        b"data: A\n\nda",
        b"ta: Ro",
        b"bert and ",
        b"A\n\ndata: caf\xc3",
        b"\xa9 \xff",
    ]


@given(
    chunks=st.lists(st.sampled_from([b"", b"a", b"\n", b"\r", b"\n\n", b"Ann", b"\xc3", b"Bo Ann\r\n\r\n", b"\xff"])),
    to=st.sampled_from(["", "A", "Ann", "Annabel"]),
)
def test_scrubbed_chunks_are_the_scrubbed_body(chunks: list[bytes], to: str, tmp_path_factory: Any) -> None:
    path = tmp_path_factory.getbasetemp() / "scrubbed.sse"
    read(Recorder(path, scrub=lambda text: text.replace("Ann", to)), chunks)
    recording = load(path)
    assert recording.data == b"".join(chunks).replace(b"Ann", to.encode())
    assert len(recording.chunks) == len(chunks)
    assert all(size >= 0 for _, size in recording.chunks)
    assert sum(size for _, size in recording.chunks) == len(recording.data)
    if to == "Ann":
        assert [size for _, size in recording.chunks] == [len(chunk) for chunk in chunks]


@pytest.mark.parametrize(
    "recording",
    [
        Recording(b""),
        Recording(CALL, 200, {"a": "b"}, ((0.25, 3), (1.0, 4)), "reset", "ReadError: gone", REQUEST),
    ],
)
def test_save_and_load(tmp_path: Path, recording: Recording) -> None:
    for name in ("one.sse", "two.v1.sse", "noending"):
        save(recording, tmp_path / name)
        assert load(str(tmp_path / name)) == recording
    assert (tmp_path / "two.v1.json").exists()


@pytest.mark.parametrize("other", [None, "{}", '{"outcome": "complete"}', "not json"])
def test_a_body_alone(tmp_path: Path, other: str | None) -> None:
    """JSON of another kind may stand beside a body, such as what is expected of it."""
    (tmp_path / "one.sse").write_bytes(CALL)
    if other is not None:
        (tmp_path / "one.json").write_text(other)
    assert load(tmp_path / "one.sse") == Recording(CALL)


@pytest.mark.parametrize(
    "text",
    [
        b'{"sseam_recording": 2}',
        b'{"sseam_recording": 1, "status": "200"}',
        b'{"sseam_recording": 1, "ending": "sometime"}',
        b'{"sseam_recording": 1',
        b'{"sseam_recording": 1, "error": "\xff"}',
    ],
)
def test_a_wrong_description(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "one.sse").write_bytes(CALL)
    (tmp_path / "one.json").write_bytes(text)
    with pytest.raises(sseam.SseamError, match=r"one\.json does not describe a recording"):
        load(tmp_path / "one.sse")


def test_a_recording_that_failed_is_replayed_so(tmp_path: Path) -> None:
    with pytest.raises(httpx.ReadError):
        read(
            Recorder(tmp_path / "one.sse", clock=Clock()), Chunks(CALL[:300], CALL[300:400], error=httpx.ReadError(""))
        )
    answer = Answers(tmp_path / "one.sse", cuts="recorded", pace="recorded").take()
    assert [(step.wait, len(step.chunk)) for step in answer.steps] == [(1.0, 300), (1.0, 100)]
    with httpx.Client(transport=transport(tmp_path / "one.sse")) as client, pytest.raises(httpx.RemoteProtocolError):
        client.get("http://api.test")


def test_the_folder_is_made_before_anything_comes(tmp_path: Path) -> None:
    path = tmp_path / "not" / "there" / "a.sse"
    list(Recorder(path).iter([b"data: 1\n\n"]))
    assert load(path).data == b"data: 1\n\n"
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(FileExistsError):
        Recorder(tmp_path / "file" / "a.sse")
