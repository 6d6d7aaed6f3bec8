"""Content codings of HTTP, undone as the bytes come.

A coding is asked for by nobody here (`Accept-Encoding: identity`): a server that compresses small
events tends to hold them back. Where one comes anyway, each flush of the server gives its events.
Source: RFC 9110, section 8.4, and RFC 8878.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable
from typing import Any, Protocol

from .errors import FramingError

__all__ = ["Decoder", "decoder"]


class Decoder(Protocol):
    """Undoes a coding."""

    def decode(self, chunk: bytes) -> bytes:
        """The bytes that `chunk` completes. Raises `FramingError` for what is not of the coding."""
        ...


def decoder(content_encoding: str) -> Decoder | None:
    """What undoes a `Content-Encoding`; None where there is nothing to undo.

    Raises:
        FramingError: a coding that is not known, or whose package is not installed.
    """
    codings = [coding.strip().lower() for coding in content_encoding.split(",")]
    layers = [_layer(coding) for coding in reversed(codings) if coding not in ("", "identity")]
    if not layers:
        return None
    return layers[0] if len(layers) == 1 else _Layers(layers)


def _layer(coding: str) -> Decoder:
    make = _CODINGS.get(coding)
    if make is None:
        known = ", ".join(sorted(_CODINGS))
        raise FramingError(f"content-encoding {coding!r} is not known", hint=f"Known are {known}")
    try:
        return make()
    except ImportError as error:
        raise FramingError(
            f"content-encoding {coding!r} needs a package that is not installed: {error.name}",
            hint="It was not asked for; a proxy may have put it on",
        ) from error


class _Layers:
    """Codings one over the other, the outermost first."""

    def __init__(self, layers: list[Decoder]) -> None:
        self._layers = layers

    def decode(self, chunk: bytes) -> bytes:
        for layer in self._layers:
            chunk = layer.decode(chunk)
        return chunk


class _Members:
    """One stream of a coding after the other, as gzip and zstd allow.

    `make` gives an object with `decompress`, `eof` and `unused_data`; `faults` is what it raises.
    """

    def __init__(self, name: str, make: Callable[[], Any], faults: tuple[type[Exception], ...]) -> None:
        self._name = name
        self._make = make
        self._faults = faults
        self._member = make()

    def decode(self, chunk: bytes) -> bytes:
        pieces: list[bytes] = []
        while chunk:
            if self._member.eof:
                self._member = self._make()
            try:
                pieces.append(self._member.decompress(chunk))
            except self._faults as error:
                raise FramingError(f"content-encoding {self._name}: {error}") from error
            chunk = self._member.unused_data if self._member.eof else b""
        return b"".join(pieces)


class _Deflate:
    """ "deflate" is zlib's format by the standard, and the bare one by what some servers send."""

    def __init__(self) -> None:
        self._inner: _Members | None = None
        self._head = b""

    def decode(self, chunk: bytes) -> bytes:
        if self._inner is None:
            self._head += chunk
            if len(self._head) < 2:
                return b""
            chunk = self._head
            wrapped = chunk[0] & 15 == 8 and int.from_bytes(chunk[:2], "big") % 31 == 0
            window = zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS
            self._inner = _Members("deflate", lambda: zlib.decompressobj(window), (zlib.error,))
        return self._inner.decode(chunk)


def _gzip() -> Decoder:
    return _Members("gzip", lambda: zlib.decompressobj(zlib.MAX_WBITS | 16), (zlib.error,))


class _Brotli:
    def __init__(self) -> None:
        try:
            library: Any = importlib.import_module("brotli")
        except ImportError:
            library = importlib.import_module("brotlicffi")
        self._step: Callable[[bytes], bytes] = library.Decompressor().process
        self._fault: type[Exception] = library.error

    def decode(self, chunk: bytes) -> bytes:
        try:
            return self._step(chunk)
        except self._fault as error:
            raise FramingError(f"content-encoding br: {error}") from error


def _zstd() -> Decoder:
    try:
        library: Any = importlib.import_module("compression.zstd")  # from Python 3.14 on
    except ImportError:
        library = importlib.import_module("zstandard")
        return _Members("zstd", lambda: library.ZstdDecompressor().decompressobj(), (library.ZstdError,))
    return _Members("zstd", library.ZstdDecompressor, (library.ZstdError,))


_CODINGS: dict[str, Callable[[], Decoder]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _Deflate,
    "br": _Brotli,
    "zstd": _zstd,
}
