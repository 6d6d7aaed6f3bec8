"""`sseam.tap`: what a real client gets is recorded, and the client notices nothing."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import httpx
import httpx2
import pytest

from recordings import CALL
from sseam.errors import FramingError
from sseam.recording.playback import split
from sseam.recording.record import RecordedRequest, Recording, load
from sseam.recording.tap import record
from sseam.replay import Transport, transport

URL = "http://api.test/v1/messages?key=abc"
LIBRARIES: list[Any] = [httpx, httpx2]


@pytest.fixture(params=LIBRARIES, ids=lambda library: library.__name__)
def library(request: pytest.FixtureRequest) -> Any:
    return request.param


def read(library: Any, using: Transport, folder: Path, stop_after: int = 999, **request: Any) -> list[bytes]:
    got: list[bytes] = []
    with library.Client(transport=using) as http:
        record(http, folder)
        with http.stream("POST", URL, **request) as response:
            for chunk in response.iter_raw():
                got.append(chunk)
                if len(got) == stop_after:
                    break
    return got


def aread(library: Any, using: Transport, folder: Path, stop_after: int = 999, **request: Any) -> list[bytes]:
    async def work() -> list[bytes]:
        got: list[bytes] = []
        async with library.AsyncClient(transport=using) as http:
            record(http, folder)
            async with http.stream("POST", URL, **request) as response:
                async for chunk in response.aiter_raw():
                    got.append(chunk)
                    if len(got) == stop_after:
                        break
        return got

    return anyio.run(work)


Read = Callable[..., list[bytes]]


@pytest.fixture(params=[read, aread], ids=["sync", "async"])
def drain(request: pytest.FixtureRequest) -> Read:
    return request.param


def test_a_response_is_recorded_and_passed_on(library: Any, drain: Read, tmp_path: Path) -> None:
    using = transport(CALL, cuts=9, status=201, headers={"request-id": "r"})
    request = {"json": {"model": "m"}, "headers": {"x-api-key": "secret", "user-agent": "test"}}
    assert drain(library, using, tmp_path, **request) == split(CALL, 9)
    recording = load(tmp_path / "response-001.sse")
    assert (recording.data, recording.status, recording.ending) == (CALL, 201, "end")
    assert recording.headers == {"content-type": "text/event-stream", "request-id": "r"}
    assert split(CALL, "recorded", recording) == split(CALL, 9)
    sent = recording.request
    assert isinstance(sent, RecordedRequest)
    assert (sent.method, sent.url, sent.body) == ("POST", "http://api.test/v1/messages?key=XXX", {"model": "m"})
    assert (sent.headers["x-api-key"], sent.headers["user-agent"]) == ("XXXXXX", "test")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["response-001.json", "response-001.sse"]


def test_the_recording_replays_the_same(library: Any, drain: Read, tmp_path: Path) -> None:
    first = drain(library, transport(CALL, cuts=9), tmp_path)
    assert drain(library, transport(tmp_path / "response-001.sse", cuts="recorded"), tmp_path) == first
    assert load(tmp_path / "response-002.sse").data == CALL


def test_a_reader_that_leaves(library: Any, drain: Read, tmp_path: Path) -> None:
    assert drain(library, transport(CALL), tmp_path, stop_after=2) == split(CALL, "frames")[:2]
    recording = load(tmp_path / "response-001.sse")
    assert (recording.ending, recording.data) == ("left", b"".join(split(CALL, "frames")[:2]))


def test_a_body_that_nobody_reads(library: Any, tmp_path: Path) -> None:
    with library.Client(transport=transport(CALL)) as http:
        record(http, tmp_path, name="unread")
        with http.stream("GET", URL):
            pass
    recording = load(tmp_path / "unread-001.sse")
    assert (recording.ending, recording.data) == ("left", b"")
    assert recording.request is not None
    assert recording.request.body is None


def test_a_connection_that_breaks(library: Any, drain: Read, tmp_path: Path) -> None:
    with pytest.raises(library.ReadError):
        drain(library, transport(Recording(CALL[:100], ending="reset")), tmp_path)
    recording = load(tmp_path / "response-001.sse")
    assert (recording.data, recording.ending, recording.error) == (
        CALL[:100],
        "close",
        "ReadError: connection reset by peer",
    )


def test_a_content_encoding_is_undone_in_the_recording_alone(library: Any, drain: Read, tmp_path: Path) -> None:
    packed = gzip.compress(CALL)
    using = transport(packed, cuts=50, headers={"Content-Encoding": "gzip"})
    assert b"".join(drain(library, using, tmp_path)) == packed
    recording = load(tmp_path / "response-001.sse")
    assert recording.data == CALL
    assert "content-encoding" not in recording.headers
    assert sum(size for _, size in recording.chunks) == len(CALL)


def test_an_unknown_content_encoding(library: Any, drain: Read, tmp_path: Path) -> None:
    with pytest.raises(FramingError, match="rot13"):
        drain(library, transport(CALL, headers={"Content-Encoding": "rot13"}), tmp_path)


@pytest.mark.parametrize(
    ("content", "body"),
    [(b"{", "{"), (b"\xff", "\ufffd"), (b"[" * 100_000, "[" * 100_000), (b"", None)],
    ids=["no JSON", "no text", "too deep", "none"],
)
def test_bodies_that_are_no_json(tmp_path: Path, content: bytes, body: str | None) -> None:
    read(httpx, transport(CALL), tmp_path, content=content)
    described = json.loads((tmp_path / "response-001.json").read_text())
    assert described["request"]["body"] == body


def test_a_streamed_request_is_not_read(library: Any, tmp_path: Path) -> None:
    async def content() -> AsyncIterator[bytes]:
        yield b"one"

    using = transport(CALL)
    aread(library, using, tmp_path, content=content())
    assert using.requests[0].content == b"one"
    assert json.loads((tmp_path / "response-001.json").read_text())["request"]["body"] is None


def test_hooks_that_are_there_still_run(library: Any, tmp_path: Path) -> None:
    seen: list[str] = []
    hooks = {
        "request": [lambda request: seen.append(request.method)],
        "response": [lambda response: seen.append(response.read().decode())],
    }
    with library.Client(transport=transport(b"data: 1\n\n"), event_hooks=hooks) as http:
        record(http, tmp_path, scrub=lambda text: text.replace("1", "one"))
        http.post(URL)
    assert seen == ["POST", "data: 1\n\n"]
    assert load(tmp_path / "response-001.sse").data == b"data: one\n\n"


def test_two_requests_at_once_have_files_of_their_own(library: Any, tmp_path: Path) -> None:
    (tmp_path / "response-002.sse").touch()
    with library.Client(transport=transport([b"a", b"b"])) as http:
        record(http, tmp_path)
        with http.stream("GET", URL) as first, http.stream("GET", URL) as second:
            assert (second.read(), first.read()) == (b"b", b"a")
    assert [load(tmp_path / f"response-00{number}.sse").data for number in (1, 2, 3)] == [b"a", b"", b"b"]


def test_a_damaged_content_encoding(drain: Read, tmp_path: Path) -> None:
    with pytest.raises(FramingError, match="content-encoding gzip"):
        drain(httpx, transport(CALL, headers={"Content-Encoding": "gzip"}), tmp_path)
    assert load(tmp_path / "response-001.sse").ending == "close"


def test_the_folder_is_made(library: Any, drain: Read, tmp_path: Path) -> None:
    drain(library, transport(CALL), tmp_path / "not" / "there")
    assert (tmp_path / "not" / "there" / "response-001.sse").read_bytes() == CALL


def test_a_folder_that_cannot_be_made_is_told_at_once(library: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with library.Client(transport=transport(CALL)) as http, pytest.raises(FileExistsError):
        record(http, tmp_path / "file")
