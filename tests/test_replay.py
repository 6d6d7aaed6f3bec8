"""`sseam.replay`: recordings answer real clients, of both libraries, sync and async."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import httpx
import httpx2
import pytest

import sseam
from recordings import CALL, PROTOCOL
from sseam.errors import RequestError
from sseam.recording.faults import Cut, Fault, WrongContentType, apply, faults
from sseam.recording.playback import RandomCuts, split
from sseam.recording.record import Recording
from sseam.recording.serve import serve
from sseam.replay import Transport, transport

URL = "http://api.test/v1/messages"
LIBRARIES: list[Any] = [httpx, httpx2]


@pytest.fixture(params=LIBRARIES, ids=lambda library: library.__name__)
def library(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


def read(library: Any, using: Transport, **timeout: Any) -> list[bytes]:
    """The chunks that a sync client gets."""
    with library.Client(transport=using, **timeout) as client, client.stream("POST", URL, content=b"?") as response:
        return list(response.iter_raw())


async def aread(library: Any, using: Transport, **timeout: Any) -> list[bytes]:
    """The chunks that an async client gets."""
    async with (
        library.AsyncClient(transport=using, **timeout) as client,
        client.stream("POST", URL, content=b"?") as response,
    ):
        return [chunk async for chunk in response.aiter_raw()]


def either(work: Callable[..., Any]) -> Callable[..., Any]:
    """`read` or `aread`, as a function that a sync test calls."""
    return work if work is read else lambda *args, **timeout: anyio.run(lambda: work(*args, **timeout))


@pytest.fixture(params=[read, aread], ids=["sync", "async"])
def chunks(request: pytest.FixtureRequest) -> Callable[..., list[bytes]]:
    return either(request.param)


@pytest.mark.parametrize("cuts", ["whole", "frames", 1, 7, [3, 100], RandomCuts(5)], ids=str)
def test_a_client_gets_the_pieces(library: Any, chunks: Callable[..., list[bytes]], cuts: Any) -> None:
    assert chunks(library, transport(CALL, cuts=cuts)) == split(CALL, cuts)


def test_status_headers_and_requests(library: Any) -> None:
    using = transport([b"{}", CALL], status=429, headers={"Retry-After": "1"})
    with library.Client(transport=using) as client:
        response = client.post(URL, json={"stream": True}, headers={"x-api-key": "k"})
        second = client.get(URL)
    assert (response.status_code, response.headers["retry-after"]) == (429, "1")
    assert response.headers["content-type"] == "application/json"
    assert response.json() == {}
    assert second.content == CALL
    assert [request.method for request in using.requests] == ["POST", "GET"]
    assert using.requests[0].headers["x-api-key"] == "k"
    assert using.requests[0].content.replace(b" ", b"") == b'{"stream":true}'


@pytest.mark.anyio
async def test_the_body_of_an_async_request_is_read(library: Any) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b"one "
        yield b"two"

    using = transport(CALL)
    async with library.AsyncClient(transport=using) as client:
        await client.post(URL, content=body())
    assert using.requests[0].content == b"one two"


def test_more_requests_than_recordings(library: Any) -> None:
    using = transport([CALL])
    with library.Client(transport=using) as client:
        client.post(URL)
        with pytest.raises(RequestError, match="request 2 has no recording"):
            client.post(URL)
    assert len(using.requests) == 2


def test_both_libraries_and_several_clients_share_a_transport() -> None:
    using = transport(CALL)
    for library in (*LIBRARIES, *LIBRARIES):
        assert read(library, using) == split(CALL, "frames")
    with using:
        assert read(httpx, using) == split(CALL, "frames")
    assert [type(request) for request in using.requests] == [httpx.Request, httpx2.Request] * 2 + [httpx.Request]


@pytest.mark.anyio
async def test_an_async_transport_is_a_context(library: Any) -> None:
    async with transport(CALL) as using:
        assert await aread(library, using) == split(CALL, "frames")


def test_a_request_of_a_derived_class(library: Any) -> None:
    class Request(library.Request): ...

    response = transport(CALL).handle_request(Request("GET", URL))
    assert isinstance(response, library.Response)


@pytest.mark.parametrize(
    ("ending", "error"),
    [
        ("end", None),
        ("left", None),
        ("close", "RemoteProtocolError"),
        ("reset", "ReadError"),
    ],
)
def test_endings(library: Any, chunks: Callable[..., list[bytes]], ending: Any, error: str | None) -> None:
    using = transport(Recording(CALL, ending=ending))
    if error is None:
        assert b"".join(chunks(library, using)) == CALL
    else:
        with pytest.raises(getattr(library, error)) as caught:
            chunks(library, using)
        assert caught.value.request is using.requests[0]


def test_a_stall_lasts_until_the_read_timeout(library: Any, chunks: Callable[..., list[bytes]]) -> None:
    waits: list[float] = []
    using = transport(CALL, fault=Cut(frame=5, ending="stall"), sleep=waits.append)
    with pytest.raises(library.ReadTimeout):
        chunks(library, using, timeout=2.5)
    assert waits == [0.0] * 5 + [2.5]


def test_a_pace_slower_than_the_read_timeout(library: Any, chunks: Callable[..., list[bytes]]) -> None:
    waits: list[float] = []
    with pytest.raises(library.ReadTimeout):
        chunks(library, transport(CALL, pace=3.0, sleep=waits.append), timeout=2.5)
    assert waits == [2.5]


def test_pace_without_a_timeout(library: Any, chunks: Callable[..., list[bytes]]) -> None:
    waits: list[float] = []
    chunks(library, transport(CALL, pace=60.0, sleep=waits.append), timeout=None)
    assert waits == [60.0] * 11


def test_a_real_wait(library: Any, chunks: Callable[..., list[bytes]]) -> None:
    assert b"".join(chunks(library, transport(CALL, pace=0.001))) == CALL
    with pytest.raises(library.ReadTimeout):
        chunks(library, transport(CALL, pace=30.0), timeout=0.01)


@pytest.mark.anyio
async def test_an_async_sleep_is_awaited(library: Any) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        await anyio.sleep(0)
        waits.append(seconds)

    await aread(library, transport(CALL, pace=2.0, sleep=sleep))
    assert waits == [2.0] * 11


@pytest.mark.anyio
async def test_other_tasks_run_between_two_chunks(library: Any) -> None:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.sleep(0)

    async with (
        anyio.create_task_group() as tasks,
        library.AsyncClient(transport=transport(CALL)) as client,
        client.stream("GET", URL) as response,
    ):
        tasks.start_soon(other)
        seen = [turns async for _ in response.aiter_raw()]
        tasks.cancel_scope.cancel()
    assert len(seen) == 11
    assert seen[-1] >= 10


@pytest.mark.anyio
async def test_closing_ends_an_async_stall(library: Any) -> None:
    using = transport(CALL, fault=Cut(frame=1, ending="stall"))
    with anyio.fail_after(5):
        async with library.AsyncClient(transport=using, timeout=None) as client:
            response = await client.send(client.build_request("GET", URL), stream=True)
            async with anyio.create_task_group() as tasks:

                async def close() -> None:
                    await anyio.wait_all_tasks_blocked()
                    await response.stream.aclose()

                tasks.start_soon(close)
                with pytest.raises(library.ReadError, match="closed"):
                    await response.aread()


def test_closing_ends_a_sync_stall(library: Any) -> None:
    using = transport(CALL, fault=Cut(frame=1, ending="stall"))
    with library.Client(transport=using, timeout=None) as client:
        response = client.send(client.build_request("GET", URL), stream=True)
        pieces = response.iter_raw()
        next(pieces)
        closing = threading.Timer(0.05, response.stream.close)
        closing.start()
        with pytest.raises(library.ReadError, match="closed"):
            next(pieces)
        closing.join()


async def message_of(library: Any, using: Transport) -> sseam.Message:
    async with (
        library.AsyncClient(transport=using, timeout=0.01) as client,
        client.stream("POST", URL) as response,
        sseam.aiter_events(response.aiter_raw(), PROTOCOL) as stream,
    ):
        return await stream.message()


def test_the_whole_recording_is_a_message(library: Any) -> None:
    assert anyio.run(message_of, library, transport(CALL, cuts=3)) == sseam.parse(CALL, PROTOCOL)


@pytest.mark.parametrize("fault", [*faults(Recording(CALL))], ids=str)
def test_never_a_message_through_a_client(library: Any, fault: Fault) -> None:
    with pytest.raises(sseam.SseamError) as caught:
        anyio.run(message_of, library, transport(CALL, fault=fault))
    assert caught.value.partial is not None
    assert not caught.value.partial.complete


def test_the_wrong_content_type_is_told(library: Any) -> None:
    with library.Client(transport=transport(CALL, fault=WrongContentType())) as client:
        assert client.get(URL).headers["content-type"] == "text/html; charset=utf-8"


def test_a_fault_in_one_of_several(library: Any) -> None:
    recording = Recording(CALL)
    using = transport([apply(Cut(frame=3), recording), recording])
    with pytest.raises(library.RemoteProtocolError):
        read(library, using)
    assert b"".join(read(library, using)) == CALL


def test_a_file(library: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "answer.sse").write_bytes(CALL)
    monkeypatch.chdir(tmp_path)
    for path in ("answer.sse", tmp_path / "answer.sse", str(tmp_path / "answer.sse")):
        assert b"".join(read(library, transport(path))) == CALL
    with pytest.raises(FileNotFoundError):
        transport("missing.sse")


def test_neither_library_is_imported() -> None:
    code = "import sys, sseam.replay; sys.exit(not {'httpx', 'httpx2', 'asyncio', 'anyio'}.isdisjoint(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


MODEL = sseam.models.anthropic("m", base_url="http://api.test", keys=())
HI = sseam.Context(messages=(sseam.UserMessage("hi"),))


@pytest.mark.parametrize(
    ("limit", "options"),
    [
        ("idle", {"fault": Cut(frame=5, ending="stall")}),
        ("first_event", {"fault": Cut(frame=0, ending="stall")}),
        ("total", {"pace": 30}),
    ],
)
def test_each_limit_of_a_sync_client_ends_a_wait(library: Any, limit: str, options: dict[str, Any]) -> None:
    limits: Any = sseam.TimeLimits(**{limit: 0.05})
    with library.Client(transport=transport(CALL, **options)) as http:
        client = sseam.Client(http, limits=limits, retry=sseam.Retry(max_retries=0))
        with pytest.raises(sseam.TransportError) as caught:
            client.complete(MODEL, HI)
    assert caught.value.timeout == limit


def test_abort_ends_a_stall_of_a_sync_client(library: Any) -> None:
    with library.Client(transport=transport(CALL, fault=Cut(frame=5, ending="stall"))) as http:
        stream = sseam.Client(http).stream(MODEL, HI)
        threading.Timer(0.1, stream.abort).start()
        with pytest.raises(sseam.StreamAborted):
            list(stream)
        assert stream.message().stop_reason == "aborted"


@pytest.mark.parametrize("play", [transport, lambda *args, **options: serve(*args, **options).__enter__()])
def test_an_unknown_option_is_refused(play: Any) -> None:
    with pytest.raises(TypeError, match=r"a replay takes cuts, .*not cutz"):
        play(CALL, cutz=1)
