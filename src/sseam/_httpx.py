"""What `httpx` and `httpx2` have in common: which is there, which made a request, and streams that both accept."""

from __future__ import annotations

import functools
import sys
from typing import Any, TypeVar

__all__ = ["installed", "library_of", "stream_class"]

T = TypeVar("T")


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


def library_of(request: Any) -> Any:
    """The module whose class the request is, or is derived from."""
    names = [base.__module__.partition(".")[0] for base in type(request).__mro__ if base.__name__ == "Request"]
    return sys.modules[names[-1]]


@functools.cache
def stream_class(stream: type[T], library: Any) -> type[T]:
    """`stream` as a stream of the library, which asks for instances of its own classes; sync and async."""

    class Stream(stream, library.SyncByteStream, library.AsyncByteStream): ...  # type: ignore[misc,valid-type]

    return Stream
