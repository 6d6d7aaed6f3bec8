"""`sseam.serve`: recordings over real HTTP on loopback."""

from __future__ import annotations

import http.client
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import httpx
import pytest

import sseam
from recordings import CALL, PROTOCOL
from sseam.recording.faults import Cut, Fault, WrongContentType, faults
from sseam.recording.playback import RandomCuts, split
from sseam.recording.record import Recording
from sseam.recording.serve import Server, serve


@contextmanager
def connection(server: Server) -> Iterator[socket.socket]:
    """A bare socket to the server, without Nagle's delay and with a time limit."""
    host, port = server.base_url.removeprefix("http://").split(":")
    with closing(socket.create_connection((host, int(port)), timeout=10)) as plug:
        plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield plug


def everything(plug: socket.socket) -> bytes:
    """All bytes until the server closes."""
    return b"".join(iter(lambda: plug.recv(65536), b""))


def test_the_standard_library_reads_it() -> None:
    with serve(CALL) as server, urllib.request.urlopen(f"{server.base_url}/v1/messages?x=1", data=b"{}") as response:
        assert response.status == 200
        assert response.headers["content-type"] == "text/event-stream"
        assert response.headers["transfer-encoding"] == "chunked"
        assert sseam.parse(response.read(), PROTOCOL) == sseam.parse(CALL, PROTOCOL)
    (request,) = server.requests
    assert (request.method, request.target, request.body) == ("POST", "/v1/messages?x=1", b"{}")
    assert request.headers["content-length"] == "2"


@pytest.mark.parametrize("cuts", ["whole", "frames", 7, RandomCuts(3)], ids=str)
def test_the_chunks_on_the_wire_are_the_pieces(cuts: Any) -> None:
    with serve(CALL, cuts=cuts, status=202, headers={"X-A": "b"}) as server, connection(server) as plug:
        plug.sendall(b"GET / HTTP/1.1\r\n\r\n")
        plug.shutdown(socket.SHUT_WR)
        head, _, body = everything(plug).partition(b"\r\n\r\n")
    assert head.split(b"\r\n") == [
        b"HTTP/1.1 202 Accepted",
        b"content-type: text/event-stream",
        b"x-a: b",
        b"transfer-encoding: chunked",
    ]
    assert body == b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in split(CALL, cuts)) + b"0\r\n\r\n"


@pytest.mark.parametrize("missing", [0, 1])
def test_a_length_in_place_of_chunks(missing: int) -> None:
    headers = {"content-length": str(len(CALL) + missing)}
    recording = Recording(CALL, ending="close" if missing else "end")
    with serve(recording, headers=headers) as server, urllib.request.urlopen(server.base_url) as response:
        assert response.headers["transfer-encoding"] is None
        if missing:
            with pytest.raises(http.client.IncompleteRead) as caught:
                response.read()
            assert caught.value.partial == CALL
        else:
            assert response.read() == CALL


def test_one_connection_serves_several_requests() -> None:
    recordings = [Recording(b'{"error":{}}', 429, {"retry-after": "0"}), CALL]
    with serve(recordings) as server:
        client = http.client.HTTPConnection(server.base_url.removeprefix("http://"))
        with closing(client):
            answers: list[tuple[int, bytes]] = []
            for _ in range(3):
                client.request("POST", "/", body=iter([b"one ", b"two"]), encode_chunked=True)
                response = client.getresponse()
                answers.append((response.status, response.read()))
    assert answers[:2] == [(429, b'{"error":{}}'), (200, CALL)]
    assert answers[2][0] == 404
    assert b"request 3 has no recording: 2 were given" in answers[2][1]
    assert [request.body for request in server.requests] == [b"one two"] * 3


def test_a_chunked_request_with_extensions_and_trailers() -> None:
    with serve(CALL) as server, connection(server) as plug:
        plug.sendall(b"POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nTrailer: 1\r\n\r\n")
        plug.shutdown(socket.SHUT_WR)
        everything(plug)
    assert server.requests[0].body == b"abc"


@pytest.mark.parametrize(
    "sent",
    [
        b"\r\n\r\n",
        b"GET /\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: many\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nabc",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nabc\r\n",
        b"GET / HTTP/1.1\r\nx: " + b"x" * (1 << 20) + b"\r\n\r\n",
        b"",
    ],
    ids=lambda sent: repr(sent[:40]),
)
def test_what_is_no_request_ends_the_connection(sent: bytes) -> None:
    with serve(CALL) as server:
        with connection(server) as plug:
            plug.sendall(sent)
            plug.shutdown(socket.SHUT_WR)
            try:
                assert everything(plug) == b""
            except ConnectionResetError:  # it did not read all that was sent
                assert len(sent) > 1 << 20
        assert server.requests == []
        assert urllib.request.urlopen(server.base_url).read() == CALL


@pytest.mark.parametrize(
    ("ending", "error"),
    [("close", httpx.RemoteProtocolError), ("reset", httpx.ReadError), ("stall", httpx.ReadTimeout)],
)
def test_endings(client: httpx.Client, ending: Any, error: type[Exception]) -> None:
    got: list[bytes] = []
    with (
        serve(CALL, fault=Cut(frame=3, ending=ending)) as server,
        client.stream("POST", server.base_url) as response,
        pytest.raises(error),
    ):
        got.extend(response.iter_raw())
    assert b"".join(got) in (b"".join(split(CALL, "frames")[:3]), b"")


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    """One for all tests: the certificates that each loads take longer than a test."""
    with httpx.Client(timeout=0.2) as client:
        yield client


def message_of(client: httpx.Client, server: Server) -> sseam.Message:
    with client.stream("POST", server.base_url) as response:
        return sseam.iter_events(response.iter_raw(), PROTOCOL).message()


@pytest.mark.parametrize("fault", [*faults(Recording(CALL))], ids=str)
def test_never_a_message(client: httpx.Client, fault: Fault) -> None:
    with serve(CALL, fault=fault, cuts=50) as server, pytest.raises(sseam.SseamError) as caught:
        message_of(client, server)
    assert caught.value.partial is not None
    assert not caught.value.partial.complete


def test_the_wrong_content_type_is_told() -> None:
    with serve(CALL, fault=WrongContentType()) as server, urllib.request.urlopen(server.base_url) as response:
        assert response.headers["content-type"] == "text/html; charset=utf-8"


def test_pace(client: httpx.Client) -> None:
    began = time.monotonic()
    with serve(CALL, pace=0.02) as server, client.stream("POST", server.base_url) as response:
        assert list(response.iter_raw()) == split(CALL, "frames")
    assert time.monotonic() - began >= 11 * 0.02


@pytest.mark.parametrize("ending", ["stall", "close"])
@pytest.mark.parametrize("data", [CALL, b"x" * (8 << 20)], ids=["small", "large"])
def test_the_server_ends_while_a_client_is_connected(data: bytes, ending: Any) -> None:
    """It may be waiting for the client to leave, or to read what was written."""
    before = threading.active_count()
    with ExitStack() as later:
        with serve(Recording(data, ending=ending), cuts="whole") as server:
            plug = later.enter_context(connection(server))
            plug.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert plug.recv(4) == b"HTTP"
        assert threading.active_count() == before


def test_a_client_that_leaves_a_large_answer() -> None:
    with serve(b"x" * (8 << 20), cuts=1 << 16) as server:
        with connection(server) as plug:
            plug.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert plug.recv(4) == b"HTTP"
        assert len(urllib.request.urlopen(server.base_url).read()) == 8 << 20


def test_an_exception_in_the_block_stops_the_server() -> None:
    with pytest.raises(KeyError), serve(CALL) as server:
        raise KeyError
    with pytest.raises(ConnectionRefusedError), connection(server):
        pass


def test_what_cannot_be_served() -> None:
    with pytest.raises(ValueError, match="no recordings"), serve([]):
        pass
