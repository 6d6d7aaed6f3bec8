"""A server on loopback that speaks HTTP/1.1 by hand: exact cuts, delays, resets, and whatever else goes wrong.

It runs in a thread of its own, so that sync clients and clients of any event loop can talk to it.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self


class End(enum.Enum):
    """How an answer ends, where it does not end well."""

    CLOSE = "the connection closes before the end of the body"
    RESET = "the connection is reset"
    HANG = "nothing more comes, until the client closes"
    IGNORE = "nothing more comes, and the client's close is not looked at"
    NOTHING = "the connection closes without an answer"
    SILENCE = "no answer comes"


@dataclass(frozen=True)
class Pause:
    """Seconds before the next step."""

    seconds: float


@dataclass(frozen=True)
class Raw:
    """Bytes that are sent as they are, no chunk of their own."""

    data: bytes


@dataclass(frozen=True)
class Answer:
    """What one request is answered with.

    Attributes:
        steps: pieces of the body, each a chunk and a write of its own; pauses; the way it ends.
        length: send this `Content-Length` in place of chunks.
    """

    steps: tuple[bytes | Pause | Raw | End, ...] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"content-type": "text/event-stream"})
    length: int | None = None


def answer(*steps: bytes | Pause | Raw | End, status: int = 200, length: int | None = None, **headers: str) -> Answer:
    """An answer; headers with underscores for hyphens, an empty one is left out."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    merged = {"content-type": "text/event-stream", **given}
    return Answer(steps, status, {name: value for name, value in merged.items() if value}, length)


@dataclass(frozen=True)
class Request:
    """A request as it came; `connection` numbers the connections."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int


class Server:
    """Answers requests with the answers given to `add`, in order; the last one answers every further one."""

    def __init__(self, *answers: Answer) -> None:
        self.requests: list[Request] = []
        self.open = 0
        self._answers = deque(answers)
        self._choose: Callable[[Request], Answer] = self._next
        self._connections = 0
        self._changed = threading.Condition()
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()), daemon=True)
        self._tasks: set[asyncio.Task[Any]] = set()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def add(self, *answers: Answer) -> None:
        self._answers.extend(answers)

    def choose(self, choose: Callable[[Request], Answer]) -> None:
        """Answer each request with what `choose` returns for it."""
        self._choose = choose

    def wait_closed(self, left: int = 0, seconds: float = 3.0) -> bool:
        """Whether no more than `left` connections are open within that time."""
        with self._changed:
            return self._changed.wait_for(lambda: self.open <= left, seconds)

    def wait_requests(self, count: int, seconds: float = 3.0) -> bool:
        """Whether that many requests have come within that time."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self.requests) >= count, seconds)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._started.wait(5)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(5)

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, backlog=1024)
        self.port = server.sockets[0].getsockname()[1]
        self._started.set()
        await self._stop.wait()
        # Whom it has accepted already it must still make a transport for.
        for listening in server.sockets:
            self._loop.remove_reader(listening.fileno())
        for _ in range(5):
            await asyncio.sleep(0)
        server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        number = self._count(1)
        try:
            while await self._exchange(reader, writer, number):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(Exception, asyncio.CancelledError):
                await writer.wait_closed()
            self._tasks.discard(task)
            self._count(-1)

    def _count(self, change: int) -> int:
        with self._changed:
            self.open += change
            self._connections += change > 0
            self._changed.notify_all()
            return self._connections

    def _next(self, request: Request) -> Answer:
        del request
        return self._answers.popleft() if len(self._answers) > 1 else self._answers[0]

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> bool:
        """One request and its answer. Whether another may follow on this connection."""
        request = await _read_request(reader, number)
        if request is None:
            return False
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()
        chosen = self._choose(request)
        if chosen.steps[:1] == (End.NOTHING,):
            return False
        if chosen.steps[:1] == (End.SILENCE,):
            await reader.read()
            return False
        writer.write(_head(chosen))
        await writer.drain()
        for step in chosen.steps:
            if isinstance(step, End):
                await self._break(step, reader, writer)
                return False
            await _do(step, writer, chunked=chosen.length is None)
        if chosen.length is None:
            writer.write(b"0\r\n\r\n")
        await writer.drain()
        return chosen.headers.get("connection") != "close"

    async def _break(self, end: End, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        match end:
            case End.RESET:
                connection = writer.get_extra_info("socket")
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                writer.transport.abort()
            case End.HANG:
                await reader.read()
            case End.IGNORE:
                await self._stop.wait()
            case _:
                return


async def _do(step: bytes | Pause | Raw, writer: asyncio.StreamWriter, *, chunked: bool) -> None:
    match step:
        case Pause(seconds):
            await asyncio.sleep(seconds)
        case Raw(data):
            writer.write(data)
            await writer.drain()
        case b"":
            pass  # as a chunk it would be the last
        case bytes():
            writer.write(b"%x\r\n%b\r\n" % (len(step), step) if chunked else step)
            await writer.drain()
            await asyncio.sleep(0)


def _head(chosen: Answer) -> bytes:
    headers = dict(chosen.headers)
    if chosen.length is None:
        headers["transfer-encoding"] = "chunked"
    else:
        headers["content-length"] = str(chosen.length)
    lines = [f"HTTP/1.1 {chosen.status} Whatever", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


async def _read_request(reader: asyncio.StreamReader, connection: int) -> Request | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, path, headers, body, connection)


def until(condition: Callable[[], bool], seconds: float = 3.0) -> bool:
    """Whether the condition holds within that time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True
