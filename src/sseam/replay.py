"""A recording that answers a real client.

::

    client = httpx.AsyncClient(transport=sseam.replay.transport("answer.sse", cuts=7))

One transport serves `httpx` and `httpx2`, sync and async: it imports neither, and makes each response of the classes
that the request came with.
"""

from __future__ import annotations

import inspect
import math
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from ._httpx import INTERRUPT, library_of, stream_class
from ._wait import Signal
from .recording.playback import Answer, Answers, Cuts, RandomCuts, ReplayOptions, Source

if TYPE_CHECKING:
    import httpx
    import httpx2

__all__ = ["Cuts", "RandomCuts", "ReplayOptions", "Source", "Transport", "transport"]


if TYPE_CHECKING:

    class _Base(httpx.BaseTransport, httpx.AsyncBaseTransport, httpx2.BaseTransport, httpx2.AsyncBaseTransport):
        def handle_request(self, request: Any) -> Any: ...
        async def handle_async_request(self, request: Any) -> Any: ...

else:
    # No class can be a subclass of what is not imported, and the clients do not ask for it.
    _Base = object


class Transport(_Base):
    """Answers the requests of one or more clients. Made by `transport`.

    Attributes:
        requests: the requests that came, in order, as the client made them.
    """

    def __init__(self, answers: Answers, sleep: Callable[[float], object] | None) -> None:
        self.requests: list[Any] = []
        self._answers = answers
        self._sleep = sleep

    def handle_request(self, request: Any) -> Any:
        """The response, for a sync client."""
        request.read()
        return self._respond(request)

    async def handle_async_request(self, request: Any) -> Any:
        """The response, for an async client."""
        await request.aread()
        return self._respond(request)

    def _respond(self, request: Any) -> Any:
        self.requests.append(request)
        library = library_of(request)
        answer = self._answers.take()
        body = stream_class(_Body, library)(library, request, answer, self._sleep)
        return library.Response(answer.status, headers=answer.headers, stream=body, extensions={INTERRUPT: body.close})

    def close(self) -> None:
        """Nothing: the transport can answer the next client."""

    async def aclose(self) -> None:
        """Nothing: the transport can answer the next client."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None: ...

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None: ...


def transport(
    recordings: Source | Sequence[Source],
    *,
    sleep: Callable[[float], object] | None = None,
    **options: Unpack[ReplayOptions],
) -> Transport:
    """A transport for `httpx.Client`, `httpx.AsyncClient` and those of `httpx2`.

    A wait that is longer than the request's read timeout ends as it does on a network, with `ReadTimeout`.

    Args:
        recordings: one, which answers every request, or a list, whose items answer one each.
        sleep: called with seconds in place of waiting; what it returns to an async client is awaited if it can be.
        **options: see `ReplayOptions`.

    Raises:
        TypeError: what is no recording, an option that there is not, or one of another type.
        ValueError: no recordings, or cuts or a fault that cannot be.
        OSError: a file cannot be read.
    """
    return Transport(Answers(recordings, **options), sleep)


class _Body:
    """Plays an answer's body. What breaks is told by the library's own errors, as its transports do."""

    def __init__(self, library: Any, request: Any, answer: Answer, sleep: Callable[[float], object] | None) -> None:
        self._library = library
        self._request = request
        self._answer = answer
        self._sleep = sleep
        self._closed = threading.Event()
        self._closing = Signal()

    def __iter__(self) -> Iterator[bytes]:
        for wait, chunk in self._answer.steps:
            self._wait(wait)
            yield chunk
        if self._answer.ending == "stall":
            self._wait(math.inf)
        self._end()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for wait, chunk in self._answer.steps:
            await self._async_wait(wait)
            yield chunk
        if self._answer.ending == "stall":
            await self._async_wait(math.inf)
        self._end()

    def _wait(self, seconds: float) -> None:
        seconds, late = self._within_limit(seconds)
        if seconds == math.inf:
            self._closed.wait()
        elif self._sleep is not None:
            self._sleep(seconds)
        elif seconds:
            self._closed.wait(seconds)
        self._check(late)

    async def _async_wait(self, seconds: float) -> None:
        seconds, late = self._within_limit(seconds)
        if seconds == math.inf:
            await self._closing.wait()
        elif self._sleep is not None:
            slept = self._sleep(seconds)
            if inspect.isawaitable(slept):
                await slept
        else:
            await self._async_sleep(seconds)
        self._check(late)

    async def _async_sleep(self, seconds: float) -> None:
        import anyio  # both libraries need it

        if not seconds:
            await anyio.sleep(0)  # between two chunks other tasks have their turn, as with a socket
            return
        with anyio.move_on_after(seconds):
            await self._closing.wait()

    def _within_limit(self, seconds: float) -> tuple[float, bool]:
        """The seconds to wait, and whether the time is up then."""
        limit: float | None = self._request.extensions.get("timeout", {}).get("read")
        return (seconds, False) if limit is None or seconds <= limit else (limit, True)

    def _check(self, late: bool) -> None:
        if self._closed.is_set():
            raise self._library.ReadError("the response was closed while it was read", request=self._request)
        if late:
            raise self._library.ReadTimeout("the read operation timed out", request=self._request)

    def _end(self) -> None:
        if self._answer.ending == "close":
            broken = "peer closed connection without sending complete message body (incomplete chunked read)"
            raise self._library.RemoteProtocolError(broken, request=self._request)
        if self._answer.ending == "reset":
            raise self._library.ReadError("connection reset by peer", request=self._request)

    def close(self) -> None:
        self._closed.set()
        self._closing.set()

    async def aclose(self) -> None:
        self.close()
