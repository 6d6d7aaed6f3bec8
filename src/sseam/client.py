"""One call over HTTP: the only place that touches a network.

::

    async with sseam.AsyncClient() as client:
        async with client.stream(model, context, options) as stream:
            async for event in stream:
                ...
        message = await stream.message()

Two thin loops, sync and async, over the same pure parts: `_call` makes the request, `response` reads
status and errors, `_reading` decides. `httpx` is the library; a client of the same shape (`httpx2`)
is taken as it is.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import itertools
import math
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias, Unpack

from ._abandon import Abandonable, Abandoned
from ._alarm import Alarm
from ._call import CallOptions, Request, make_settings, prepare, reading_of
from ._httpx import INTERRUPT, in_flight, installed, is_networked, require
from ._reading import Reading
from ._wait import later, shielded
from .context import Context, Model, Options
from .deadlines import TimeLimits
from .message import Message
from .response import Response
from .retry import Retry
from .stream import AsyncStream, Stream

if TYPE_CHECKING:
    import httpx
    import httpx2

SyncHTTP: TypeAlias = "httpx.Client | httpx2.Client"
AsyncHTTP: TypeAlias = "httpx.AsyncClient | httpx2.AsyncClient"

__all__ = ["AsyncClient", "Client"]

# After the stream's own end the body's end is waited for so long: then the connection can be used again.
_GRACE = 0.05
# The steps of a request after which the other side knows of it, as httpcore's `trace` calls them.
_FIRST_STEPS = ("connect_tcp.started", "send_request_headers.started")
# Of a closed connection so many chunks may still be in a buffer.
_BUFFERED = 1_000


class AsyncClient:
    """Calls models, under asyncio or trio.

    Args:
        http: an `httpx.AsyncClient`, or one of the same shape, which stays the caller's to close. Its
            own timeouts and redirects are not used. Without it one is made at the first call.
        retry: how often a failed attempt is made again.
        limits: time limits.
        refuse_text_calls: where tools are declared, a tool call that was written as text in place of
            a real one is an `OutputProtocolViolation`.
        telemetry: make a span of each call, where `opentelemetry-api` is installed.
        environ: where keys are looked for; the process's environment when not given.
    """

    def __init__(
        self,
        http: AsyncHTTP | None = None,
        *,
        retry: Retry = Retry(),
        limits: TimeLimits = TimeLimits(),
        refuse_text_calls: bool = True,
        telemetry: bool = True,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        if http is not None:
            require(http, "AsyncClient")
        self._http: Any = http
        self._is_own = http is None
        self._settings = make_settings(
            retry=retry, limits=limits, refuse_text_calls=refuse_text_calls, telemetry=telemetry
        )
        self._environ = environ

    def stream(
        self, model: Model, context: Context, options: Options = Options(), **call: Unpack[CallOptions]
    ) -> AsyncStream:
        """The answer as it comes. The request is sent at the first read.

        Args:
            model: made by a function of `sseam.models`.
            context: the conversation and the tools.
            options: what else is asked for.
            **call: `key`: the key for the model's service, in place of the environment's; `accept`: neutral stop
                reasons to take as an end besides "end_turn" and "tool_use"; `strict`: refuse soft deviations from the
                protocol.

        Raises:
            RequestError: what was asked for cannot be sent, or there is no key.
            TypeError: an argument that is none of these.
        """
        request = prepare(model, context, options, call.get("key"), self._environ)
        reading = reading_of(model, context, options, request, self._settings, call)
        return AsyncStream(_AsyncConnection(self._get_http, reading, self._settings.limits), reading)

    async def complete(
        self, model: Model, context: Context, options: Options = Options(), **call: Unpack[CallOptions]
    ) -> Message:
        """The whole answer. It is streamed all the same, so that the time limits hold. Takes what `stream` takes.

        Raises:
            SseamError: what went wrong; its `partial` is the message so far.
        """
        async with self.stream(model, context, options, **call) as stream:
            return await stream.message()

    def _get_http(self) -> Any:
        if self._http is None:
            library = installed()
            self._http = library.AsyncClient(timeout=None, limits=library.Limits(max_connections=None))
        return self._http

    async def aclose(self) -> None:
        """Close the HTTP client, if it was made here."""
        if self._is_own and self._http is not None:
            await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class Client:
    """Calls models, without an event loop.

    Args:
        http: an `httpx.Client`, or one of the same shape, which stays the caller's to close; made here without.
        retry, limits, refuse_text_calls, telemetry, environ: as in `AsyncClient`.
    """

    def __init__(
        self,
        http: SyncHTTP | None = None,
        *,
        retry: Retry = Retry(),
        limits: TimeLimits = TimeLimits(),
        refuse_text_calls: bool = True,
        telemetry: bool = True,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        if http is not None:
            require(http, "Client")
        self._http: Any = http
        self._is_own = http is None
        self._settings = make_settings(
            retry=retry, limits=limits, refuse_text_calls=refuse_text_calls, telemetry=telemetry
        )
        self._environ = environ
        self._making = threading.Lock()

    def stream(
        self, model: Model, context: Context, options: Options = Options(), **call: Unpack[CallOptions]
    ) -> Stream:
        """The answer as it comes. The request is sent at the first read.

        Args:
            model: made by a function of `sseam.models`.
            context: the conversation and the tools.
            options: what else is asked for.
            **call: `key`, `accept`, `strict`: as in `AsyncClient.stream`.

        Raises:
            RequestError: what was asked for cannot be sent, or there is no key.
            TypeError: an argument that is none of these.
        """
        request = prepare(model, context, options, call.get("key"), self._environ)
        reading = reading_of(model, context, options, request, self._settings, call)
        return Stream(_Connection(self._get_http, reading, self._settings.limits), reading)

    def complete(
        self, model: Model, context: Context, options: Options = Options(), **call: Unpack[CallOptions]
    ) -> Message:
        """The whole answer. Takes what `stream` takes.

        Raises:
            SseamError: what went wrong; its `partial` is the message so far.
        """
        with self.stream(model, context, options, **call) as stream:
            return stream.message()

    def _get_http(self) -> Any:
        with self._making:
            if self._http is None:
                library = installed()
                self._http = library.Client(timeout=None, limits=library.Limits(max_connections=None))
            return self._http

    def close(self) -> None:
        """Close the HTTP client, if it was made here."""
        if self._is_own and self._http is not None:
            self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _AsyncConnection:
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


class _Connection:
    """As `_AsyncConnection`, for threads."""

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
