"""What `httpx` and `httpx2` have in common: which is there, which made a request, and streams that both accept."""

from __future__ import annotations

import functools
import inspect
import sys
from typing import Any, TypeVar

__all__ = ["INTERRUPT", "in_flight", "installed", "is_networked", "library_of", "require", "stream_class"]

T = TypeVar("T")

_NETWORKED = frozenset({"httpx.HTTPTransport", "httpx2.HTTPTransport"})

INTERRUPT = "sseam.interrupt"
"""The extension of a response that has no connection: a function that ends a read of its body, from any thread."""


def installed() -> Any:
    """`httpx`, or `httpx2` where that is all there is. Raises ImportError, which says what to install."""
    try:
        import httpx
    except ImportError:
        try:
            import httpx2 as httpx
        except ImportError:
            raise ImportError("a client needs httpx: pip install 'sseam[http]'", name="httpx") from None
    return httpx


def require(http: Any, kind: str) -> None:
    """Raise `TypeError` where `http` is no HTTP client of the kind, "Client" or "AsyncClient"."""
    send = getattr(http, "send", None)
    if isinstance(http, type) or not callable(send) or inspect.iscoroutinefunction(send) != (kind == "AsyncClient"):
        found = http.__name__ if isinstance(http, type) else f"{type(http).__module__}.{type(http).__name__}"
        raise TypeError(f"sseam.{kind} sends with an httpx.{kind} or httpx2.{kind}, not with {found}")


def is_networked(http: Any, url: Any) -> bool:
    """Whether a sync client sends a request by its library's own transport.

    Another one may need the thread of its caller: an application in the same process, with its database.
    """
    bases = type(_transport_of(http, url)).__mro__
    return any(f"{base.__module__}.{base.__name__}" in _NETWORKED for base in bases)


def in_flight(http: Any, request: Any) -> Any:
    """The connection on which a sync client's request waits for its answer, as far as the library lets it be seen.

    httpcore tells of a connection when it is made and with a response, but not of one that is used again in between.
    """
    pool: Any = getattr(_transport_of(http, request.url), "_pool", None)
    for entry in list(getattr(pool, "_requests", ())):
        if entry.request.extensions.get("trace") is request.extensions.get("trace"):
            connection: Any = getattr(getattr(entry, "connection", None), "_connection", None)
            return getattr(connection, "_network_stream", None)
    return None


def _transport_of(http: Any, url: Any) -> Any:
    find: Any = getattr(http, "_transport_for_url", None)
    return None if find is None else find(url)


def library_of(request: Any) -> Any:
    """The module whose class the request is, or is derived from."""
    names = [base.__module__.partition(".")[0] for base in type(request).__mro__ if base.__name__ == "Request"]
    return sys.modules[names[-1]]


@functools.cache
def stream_class(stream: type[T], library: Any) -> type[T]:
    """`stream` as a stream of the library, which asks for instances of its own classes; sync and async."""

    class Stream(stream, library.SyncByteStream, library.AsyncByteStream): ...  # type: ignore[misc,valid-type]

    return Stream
