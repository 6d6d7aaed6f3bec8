"""What `httpx` and `httpx2` have in common: which is there, which made a request, and streams that both accept."""

from __future__ import annotations

import functools
import inspect
import sys
from typing import Any, TypeVar

__all__ = ["INTERRUPT", "installed", "is_networked", "library_of", "require", "stream_class"]

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
    find = getattr(http, "_transport_for_url", None)
    bases = type(find(url)).__mro__ if find is not None else ()
    return any(f"{base.__module__}.{base.__name__}" in _NETWORKED for base in bases)


def library_of(request: Any) -> Any:
    """The module whose class the request is, or is derived from."""
    names = [base.__module__.partition(".")[0] for base in type(request).__mro__ if base.__name__ == "Request"]
    return sys.modules[names[-1]]


@functools.cache
def stream_class(stream: type[T], library: Any) -> type[T]:
    """`stream` as a stream of the library, which asks for instances of its own classes; sync and async."""

    class Stream(stream, library.SyncByteStream, library.AsyncByteStream): ...  # type: ignore[misc,valid-type]

    return Stream
