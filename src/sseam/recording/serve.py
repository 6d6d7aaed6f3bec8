"""Recordings over real HTTP/1.1 on loopback, for clients that take no transport.

::

    with sseam.serve.serve("answer.sse", cuts=7) as server:
        client = anyone.Client(base_url=server.base_url)

The server answers any method and path with the next recording, chunked, one chunk a piece; the cuts, pace and faults
are those of `sseam.recording.playback`.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import os
import socket
import struct
import threading
from collections.abc import Generator, Sequence
from typing import NamedTuple, Unpack

from ..errors import RequestError
from .playback import Answer, Answers, ReplayOptions, Source, Step

__all__ = ["ReceivedRequest", "Server", "serve"]

_LARGEST_HEAD = 1 << 20


class ReceivedRequest(NamedTuple):
    """A request as it came.

    Attributes:
        method: the HTTP method.
        target: path and query.
        headers: by lower-case name.
        body: after transfer decoding.
    """

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


class Server:
    """A running server. Made by `serve`.

    Attributes:
        base_url: "http://127.0.0.1:PORT", without a slash.
        requests: those that came, in order.
    """

    def __init__(self, answers: Answers, listener: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        host, port = listener.getsockname()
        self.base_url = f"http://{host}:{port}"
        self.requests: list[ReceivedRequest] = []
        self._answers = answers
        self._listener = listener
        self._loop = loop
        self._connections: set[asyncio.Task[None]] = set()
        self._stop = asyncio.Event()

    async def run(self) -> None:
        """Serve until `stop`."""
        server = await asyncio.start_server(self._connection, sock=self._listener, limit=_LARGEST_HEAD)
        async with server:
            await self._stop.wait()
            for connection in self._connections:
                connection.cancel()
            await asyncio.gather(*self._connections)

    def stop(self) -> None:
        """End `run` and every connection. From another thread."""
        self._loop.call_soon_threadsafe(self._stop.set)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            # The client left, or sent what is no request, or the answer ends the connection.
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, ValueError):
                while True:
                    self.requests.append(await _read_request(reader))
                    await self._respond(reader, writer)
            writer.close()
            await writer.wait_closed()
        except (asyncio.CancelledError, ConnectionError):
            writer.transport.abort()
        finally:
            self._connections.discard(task)

    async def _respond(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            answer = self._answers.take()
        except RequestError as error:
            answer = _refusal(error)
        chunked = "content-length" not in answer.headers
        headers = answer.headers | ({"transfer-encoding": "chunked"} if chunked else {})
        reason = http.client.responses.get(answer.status, "")
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        writer.write(f"HTTP/1.1 {answer.status} {reason}\r\n{head}\r\n".encode("latin-1"))
        for wait, chunk in answer.steps:
            await asyncio.sleep(wait)
            writer.write(b"%x\r\n%b\r\n" % (len(chunk), chunk) if chunked else chunk)
            await writer.drain()
        await _end(answer, reader, writer, chunked)


async def _end(answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, chunked: bool) -> None:
    """End the body. Raises ConnectionError where the connection ends with it."""
    match answer.ending:
        case "end" | "left":
            writer.write(b"0\r\n\r\n" if chunked else b"")
            await writer.drain()
            return
        case "stall":
            await reader.read()  # until the client closes
        case "reset":
            connection: socket.socket = writer.get_extra_info("socket")
            # Lingering for no time makes the close a reset.
            connection.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("hh" if os.name == "nt" else "ii", 1, 0)
            )
            writer.transport.abort()
        case _:
            pass
    raise ConnectionError


def _refusal(error: RequestError) -> Answer:
    # 404: no client tries that again.
    return Answer(404, {"content-type": "text/plain"}, [Step(0.0, str(error).encode())], "end")


async def _read_request(reader: asyncio.StreamReader) -> ReceivedRequest:
    """The next request. Raises ValueError for what is none, IncompleteReadError when the client has closed."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError as error:
        raise ValueError(f"a request's head is larger than {_LARGEST_HEAD:,} bytes") from error
    first, *lines = head.decode("latin-1").rstrip().split("\r\n")
    method, target, _ = first.split(" ")
    fields = (line.partition(":") for line in lines)
    headers = {name.lower(): value.strip() for name, _, value in fields}
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return ReceivedRequest(method, target, headers, await _read_chunks(reader))
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return ReceivedRequest(method, target, headers, body)


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while size := int((await reader.readline()).partition(b";")[0], 16):
        body += await reader.readexactly(size)
        await reader.readline()
    while (await reader.readline()).strip():  # trailers, and the blank line behind them
        pass
    return bytes(body)


@contextlib.contextmanager
def serve(recordings: Source | Sequence[Source], **options: Unpack[ReplayOptions]) -> Generator[Server]:
    """A server for as long as the block runs, in a thread of its own. See `replay.transport` for the recordings.

    A request beyond the last recording gets status 404 with a text that says so.

    Raises:
        TypeError: what is no recording, an option that there is not, or one of another type.
        ValueError: no recordings, or cuts or a fault that cannot be.
        OSError: a file cannot be read, or no port is to be had.
    """
    answers = Answers(recordings, **options)
    loop = asyncio.new_event_loop()
    server = Server(answers, socket.create_server(("127.0.0.1", 0)), loop)
    thread = threading.Thread(target=_run, args=(server, loop), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join()


def _run(server: Server, loop: asyncio.AbstractEventLoop) -> None:
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(server.run())
