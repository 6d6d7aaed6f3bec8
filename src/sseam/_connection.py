"""A request and its response as a source of bytes: the only place that touches a network."""

from __future__ import annotations

import collections
import contextlib
import functools
import itertools
import math
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from typing import Any

from ._abandon import Abandonable, Abandoned
from ._alarm import Alarm
from ._call import Request
from ._httpx import INTERRUPT, in_flight, is_networked
from ._reading import Reading
from ._wait import later, shielded
from .deadlines import TimeLimits
from .response import Response

__all__ = ["AsyncConnection", "Connection"]

# After the stream's own end the body's end is waited for so long: then the connection can be used again.
_GRACE = 0.05
# The steps of a request after which the other side knows of it, as httpcore's `trace` calls them.
_FIRST_STEPS = ("connect_tcp.started", "send_request_headers.started")
# Of a closed connection so many chunks may still be in a buffer.
_BUFFERED = 1_000


class AsyncConnection:
    """The reading's request and its response as a source of bytes; each `open` sends it anew."""

    def __init__(self, get_http: Callable[[], Any], reading: Reading, limits: TimeLimits) -> None:
        self._get_http = get_http
        self._reading = reading
        # A read timeout would be a timer for each read; the stream has one timer for all.
        self._timeout = (limits.connect, None, None, None)
        self._response: Any = None
        self.chunks: AsyncIterator[bytes] | None = None
        self.direct = False
        self._later: Callable[[Callable[[], Coroutine[Any, Any, None]]], None] | None = None

    async def open(self) -> None:
        http = self._get_http()
        connecting: list[Any] = []

        async def trace(event: str, info: dict[str, Any]) -> None:
            _note(event, info, connecting)

        try:
            response = await http.send(
                _build(http, self._reading.request, self._timeout, trace), stream=True, follow_redirects=False
            )
        except BaseException:
            # httpcore does not close a connection whose TLS handshake is cancelled.
            for connection in connecting:
                await shielded(connection.aclose)
            raise
        self._response = response
        self._later = later()
        self._reading.answered(_response_of(response))
        # The raw bytes as `aiter_raw` gives them, which is one generator more and refuses a mock's body.
        self.chunks = _once(response.content) if response.is_stream_consumed else aiter(response.stream)
        self.direct = _socket(_connection(response)) is not None

    async def close(self, *, ended: bool) -> None:
        response, self._response = self._response, None
        chunks, self.chunks = self.chunks, None
        if response is not None:
            await _close(response, chunks, ended=ended)

    def interrupt(self) -> bool:
        return self._response is not None and _shut_down(_connection(self._response))

    def __del__(self) -> None:
        if self._response is not None and self._later is not None:
            self._later(functools.partial(_close, self._response, self.chunks, ended=False))


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def _close(response: Any, chunks: AsyncIterator[bytes] | None, *, ended: bool) -> None:
    try:
        if ended and chunks is not None and _is_reusable(response):
            await _read_out(chunks)
    finally:
        await response.aclose()
    if chunks is not None:
        # Its generators are nested, and whatever finalises them warns or makes tasks: they are to
        # see that the connection is closed, which ends them all.
        await _read_out(chunks)


async def _read_out(chunks: AsyncIterator[bytes]) -> None:
    """Read to the end, or until that takes too long. What goes wrong does not matter any more."""

    async def read() -> None:
        for _ in range(_BUFFERED):
            await anext(chunks)

    import anyio

    with contextlib.suppress(Exception), anyio.move_on_after(_GRACE):
        await read()


def _build(http: Any, request: Request | None, timeout: object, trace: Callable[[str, dict[str, Any]], object]) -> Any:
    """The library's own request. `trace` is told of the connection's steps."""
    assert request is not None
    return http.build_request(
        request.method,
        request.url,
        headers=request.headers,
        content=request.content or None,
        timeout=timeout,
        extensions={"trace": trace},
    )


def _note(event: str, info: dict[str, Any], connecting: list[Any]) -> None:
    """Keep a connection that is being made: what httpcore's `trace` tells of."""
    if event.endswith(("connect_tcp.complete", "start_tls.complete")):
        connecting.append(info["return_value"])


def _is_reusable(response: Any) -> bool:
    """Whether the connection can serve another request once the body was read to its end."""
    kept = response.headers.get("connection", "").lower() != "close"
    return kept and response.http_version == "HTTP/1.1" and "network_stream" in response.extensions


class Connection:
    """As `AsyncConnection`, for threads."""

    def __init__(self, get_http: Callable[[], Any], reading: Reading, limits: TimeLimits) -> None:
        self._get_http = get_http
        self._reading = reading
        self._limits = limits
        # Of a response that has not come yet: who waits for it, connections that were made for it, and how to find
        # the one that it waits on.
        self._sending: Abandonable[Any] | None = None
        self._connecting: list[Any] = []
        self._find: Callable[[], Any] | None = None
        self._interrupted = False
        self._response: Any = None
        self.chunks: Iterator[bytes] | None = None

    def open(self) -> None:
        connecting: list[Any] = []

        def send() -> Any:
            return http.send(request, stream=True, follow_redirects=False)

        # The pool keeps what it is given here: it must not be this object, which may be let go of.
        def trace(event: str, info: dict[str, Any]) -> None:
            if sending.abandoned and event.endswith(_FIRST_STEPS):
                raise Abandoned  # in the pool it had to wait for its turn, and nobody wants it any more
            _note(event, info, connecting)

        sending = Abandonable(send, lambda response: response.close())
        self._sending, self._connecting = sending, connecting
        http = self._get_http()
        request = _build(http, self._reading.request, self._timeout(), trace)
        self._find = functools.partial(in_flight, http, request)
        self._require_wanted()
        # Until the headers come not every wait has a socket that is known here: for a place in the pool, in a TLS
        # handshake, on a connection that is used again.
        response = sending.run() if is_networked(http, request.url) else send()
        self._response = response
        self._require_wanted()
        self._sending = self._find = None
        sending.forget()
        connecting.clear()
        timeout = response.request.extensions.get("timeout")
        if isinstance(timeout, dict):
            # For the body the watchdog sees to the limits; a timeout would cost a system call a read.
            timeout["read"] = None if _connection(response) else self._limits.idle
        self._reading.answered(_response_of(response))
        self.chunks = iter((response.content,)) if response.is_stream_consumed else iter(response.stream)

    def _require_wanted(self) -> None:
        """Raise `Abandoned` where the read was ended before there was anything to end."""
        if self._interrupted:
            raise Abandoned

    def _timeout(self) -> tuple[float | None, ...]:
        """The library's own limits: what was turned away from ends by them, soon after the deadline of the stream.

        Not the wait for a place in the pool, where httpcore may lose the place with the request that gives up. Nobody
        waits for it, and with its turn it ends.
        """
        left = self._reading.deadlines.due - time.monotonic() + _GRACE
        if left == math.inf:
            return self._limits.connect, None, None, None
        left = max(left, _GRACE)
        return left if self._limits.connect is None else min(self._limits.connect, left), left, left, None

    def interrupt(self) -> None:
        self._interrupted = True
        response = self._response
        if response is not None:
            if not _shut_down(_connection(response)) and INTERRUPT in response.extensions:
                response.extensions[INTERRUPT]()
        elif (sending := self._sending) is not None:
            self._end_sending()
            sending.abandon()

    def _end_sending(self) -> None:
        """Shut down the connection that a request is waiting on, where it can be found."""
        find = self._find
        for connection in (*self._connecting[-1:], find() if find is not None else None):
            _shut_down(connection)

    def close(self, *, ended: bool) -> None:
        response, self._response = self._response, None
        sending, self._sending = self._sending, None
        chunks, self.chunks = self.chunks, None
        if sending is not None:
            if response is None:
                self._end_sending()
            sending.drop()
        self._interrupted, self._find = False, None
        if response is None:
            return
        if ended and chunks is not None and _is_reusable(response):
            with _grace(_connection(response)), contextlib.suppress(Exception):
                collections.deque(itertools.islice(chunks, _BUFFERED), maxlen=0)
        response.close()


def _response_of(response: Any) -> Response:
    """What our side reads of a response. Of one whose body was read already, by a hook, the coding is undone."""
    headers = response.headers.multi_items()
    if response.is_stream_consumed:
        headers = [(name, value) for name, value in headers if name.lower() != "content-encoding"]
    return Response.of(response.status_code, headers)


def _connection(response: Any) -> Any:
    """The response's connection, if it has one to itself, which one of HTTP/2 does not."""
    return response.extensions.get("network_stream") if response.http_version != "HTTP/2" else None


def _socket(connection: Any) -> Any:
    """The socket of a connection, None where it has none that can be shut down."""
    found = connection.get_extra_info("socket") if connection is not None else None
    if isinstance(found, socket.socket):
        return found
    # What asyncio gives for it; other loops give what cannot be shut down.
    return found if f"{type(found).__module__}.{type(found).__name__}" == "asyncio.trsock.TransportSocket" else None


def _shut_down(connection: Any) -> bool:
    """Let whoever is blocked on a connection go on, to find it closed. Whether that could be done."""
    found = _socket(connection)
    if found is None:
        return False
    with contextlib.suppress(OSError):
        if isinstance(found, socket.socket):
            # Not the method of a TLS socket, which would take its state from under the reader.
            socket.socket.shutdown(found, socket.SHUT_RDWR)
        else:
            found.shutdown(socket.SHUT_RDWR)
    return True


@contextlib.contextmanager
def _grace(connection: Any) -> Generator[None]:
    """Shut a connection down if what is read of it takes too long; not once that is over: it may serve another call."""
    lock = threading.Lock()
    over = False

    def give_up() -> float:
        with lock:
            if not over:
                _shut_down(connection)
        return math.inf

    alarm = Alarm(give_up)
    alarm.set(time.monotonic() + _GRACE)
    try:
        yield
    finally:
        with lock:
            over = True
        alarm.cancel()
