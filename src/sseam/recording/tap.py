"""Recordings of all that an HTTP client gets, made where the client is made.

::

    with httpx.Client() as http:
        sseam.tap.record(http, "recordings")      # recordings/response-001.sse, response-001.json, ...
        client = sseam.Client(http)
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._httpx import library_of, stream_class
from .record import RecordedRequest, Recorder

if TYPE_CHECKING:
    import httpx
    import httpx2

__all__ = ["record"]

_RECORDER = "sseam.recorder"


def record(
    http: httpx.Client | httpx.AsyncClient | httpx2.Client | httpx2.AsyncClient,
    folder: str | os.PathLike[str],
    *,
    name: str = "response",
    scrub: Callable[[str], str] | None = None,
) -> None:
    """Write each response that `http` gets from now on into `folder`, which is made where it is not there.

    Args:
        http: the client of either library, whose event hooks this adds to.
        folder: for the files.
        name: what they are called, before a number. Files that are there are never written over.
        scrub: see `Recorder`.

    Raises:
        OSError: the folder cannot be made.
        FramingError: from the client's requests, where a response has a content encoding that is not known.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    numbers = itertools.count(1)

    def sent(request: Any) -> None:
        free = (Path(folder, f"{name}-{number:03}.sse") for number in numbers)
        path = next(path for path in free if not path.exists())
        request.extensions[_RECORDER] = Recorder(path, request=_recorded(request), scrub=scrub)

    def came(response: Any) -> None:
        recorder: Recorder = response.request.extensions[_RECORDER]
        recorder.answered(response.status_code, dict(response.headers))
        response.stream = stream_class(_Body, library_of(response.request))(response.stream, recorder)

    async def async_sent(request: Any) -> None:
        sent(request)

    async def async_came(response: Any) -> None:
        came(response)

    hooks: Any = http.event_hooks
    is_async = hasattr(http, "__aenter__")
    http.event_hooks = {
        "request": [*hooks["request"], async_sent if is_async else sent],
        "response": [async_came if is_async else came, *hooks["response"]],
    }


def _recorded(request: Any) -> RecordedRequest:
    try:
        content = request.content
    except RuntimeError:  # it is streamed, and reading it here would take it away
        content = b""
    return RecordedRequest(
        method=request.method, url=str(request.url), headers=dict(request.headers), body=_body(content)
    )


def _body(content: bytes) -> Any:
    try:
        return json.loads(content) if content else None
    except (ValueError, RecursionError):
        return content.decode("utf-8", "replace")


class _Body:
    """A response's body on its way through a recorder."""

    def __init__(self, stream: Any, recorder: Recorder) -> None:
        self._stream = stream
        self._recorder = recorder

    def __iter__(self) -> Iterator[bytes]:
        return self._recorder.iter(self._stream)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._recorder.aiter(self._stream)

    def close(self) -> None:
        # Before the connection is closed: what a reader in another thread gets from that is no fault of the stream.
        self._recorder.finish("left")
        self._stream.close()

    async def aclose(self) -> None:
        self._recorder.finish("left")
        await self._stream.aclose()
