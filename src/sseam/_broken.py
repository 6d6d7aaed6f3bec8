"""What an exception of the source of the bytes says: that the connection broke, or something else."""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterator
from typing import Literal

from .errors import TransportError

__all__ = ["is_broken_connection", "transport_error", "with_causes"]

# Classes of HTTP libraries that say that the connection broke; none of these is imported here.
_BROKEN = frozenset(
    {
        "httpx.TransportError",
        "httpx2.TransportError",
        "httpcore.NetworkError",
        "httpcore.ProtocolError",
        "httpcore.TimeoutException",
        "httpcore2.NetworkError",
        "httpcore2.ProtocolError",
        "httpcore2.TimeoutException",
        "aiohttp.ClientPayloadError",
        "aiohttp.ClientConnectionError",
        "anyio.BrokenResourceError",
        "anyio.ClosedResourceError",
        "trio.BrokenResourceError",
        "trio.ClosedResourceError",
        "http.IncompleteRead",
    }
)

# An OSError of these numbers has no class of its own. Others (a file that is not there) are not ours to tell.
_NETWORK_ERRORS = "ENETDOWN ENETUNREACH ENETRESET EHOSTUNREACH EHOSTDOWN ENOTCONN ESHUTDOWN ENOBUFS"
_NETWORK = frozenset(getattr(errno, name) for name in _NETWORK_ERRORS.split() if hasattr(errno, name))

_TIMEOUTS: dict[str, Literal["connect", "read"]] = {
    "ConnectTimeout": "connect",
    "PoolTimeout": "connect",
    "ReadTimeout": "read",
    "WriteTimeout": "read",
}


def with_causes(error: BaseException) -> Iterator[BaseException]:
    """The exception and all that a traceback shows as its causes, each once."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        yield found
        found = found.__cause__ or found.__context__


def is_broken_connection(cause: BaseException) -> bool:
    """Whether an exception of the source is a fault of the connection."""
    if isinstance(cause, ConnectionError | TimeoutError):
        return True
    if isinstance(cause, OSError):
        return cause.errno in _NETWORK or _is_of(cause, "ssl", "SSLError") or _is_of(cause, "socket", "gaierror")
    return any(f"{base.__module__.partition('.')[0]}.{base.__name__}" in _BROKEN for base in type(cause).__mro__)


def _is_of(cause: BaseException, module: str, name: str) -> bool:
    """Whether `cause` is of a class whose module is not loaded for asking."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(cause, getattr(loaded, name))


def transport_error(cause: BaseException, *, started: bool) -> TransportError:
    """The error for a fault of the connection; `started`: an event had come."""
    name = type(cause).__name__
    which = _TIMEOUTS.get(name)
    if which == "connect":
        return TransportError(f"no connection within its limit: {name}", timeout="connect")
    if which == "read":
        return TransportError(f"nothing came within its limit: {name}", timeout="idle" if started else "first_event")
    return TransportError(f"the connection broke: {name}: {cause}")
