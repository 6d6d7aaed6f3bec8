"""Clients: a model, a context and options become a stream.

::

    async with sseam.AsyncClient() as client:
        async with client.stream(model, context, options) as stream:
            async for event in stream:
                ...
        message = await stream.message()

`_call` makes the request, `_connection` sends it, `_reading` decides what the answer means. `httpx` is the
library; a client of the same shape (`httpx2`) is taken as it is.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias, Unpack

from ._call import CallOptions, make_settings, prepare, reading_of
from ._connection import AsyncConnection, Connection
from ._httpx import installed, require
from .context import Context, Model, Options
from .deadlines import TimeLimits
from .message import Message
from .retry import Retry
from .stream import AsyncStream, Stream

if TYPE_CHECKING:
    import httpx
    import httpx2

SyncHTTP: TypeAlias = "httpx.Client | httpx2.Client"
AsyncHTTP: TypeAlias = "httpx.AsyncClient | httpx2.AsyncClient"

__all__ = ["AsyncClient", "Client"]


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
        return AsyncStream(AsyncConnection(self._get_http, reading, self._settings.limits), reading)

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
        return Stream(Connection(self._get_http, reading, self._settings.limits), reading)

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
