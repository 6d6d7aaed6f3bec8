"""Content codings of HTTP, undone as the bytes come.

A coding is asked for by nobody here (`Accept-Encoding: identity`): a server that compresses small
events tends to hold them back. Where one comes anyway, each flush of the server gives its events.
Few bytes may stand for very many: no more than a piece of what they give is held at a time.
Source: RFC 9110, section 8.4, and RFC 8878.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeAlias

from .errors import FramingError

__all__ = ["Decoder", "decoder"]

# More codings over each other than anybody uses: each multiplies what few bytes may stand for.
_MOST_LAYERS = 3
_PIECE = 1 << 20

Step: TypeAlias = Callable[[bytes], Iterator[bytes]]
"""What the next bytes give, in pieces; raises the library's own error."""


class Decoder(Protocol):
    """Undoes a coding."""

    def decode(self, chunk: bytes) -> Iterator[bytes]:
        """What `chunk` completes, in pieces that are not empty.

        Raises:
            FramingError: from a place on it is not of the coding; all that came before it was given.
        """
        ...


def decoder(content_encoding: str) -> Decoder | None:
    """What undoes a `Content-Encoding`; None where there is nothing to undo.

    Raises:
        FramingError: a coding that is not known, or whose package is not installed, or too many of them.
    """
    codings = [coding.strip().lower() for coding in content_encoding.split(",")]
    named = [coding for coding in reversed(codings) if coding not in ("", "identity")]
    if len(named) > _MOST_LAYERS:
        raise FramingError(f"content-encoding names {len(named)} codings, of which at most {_MOST_LAYERS} are undone")
    layers = [_layer(coding) for coding in named]
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

    def decode(self, chunk: bytes) -> Iterator[bytes]:
        pieces = iter((chunk,))
        for layer in self._layers:
            pieces = _each(layer, pieces)
        return pieces


def _each(layer: Decoder, pieces: Iterator[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        yield from layer.decode(piece)


class _Layer:
    """One coding.

    Args:
        name: for errors.
        make: a step from the beginning.
        faults: what a step raises.
        size: so many bytes are taken at a time.
    """

    def __init__(self, name: str, make: Callable[[], Step], faults: tuple[type[Exception], ...], size: int) -> None:
        self._name = name
        self._make = make
        self._faults = faults
        self._size = size
        self._step = make()
        self._taken = bytearray()

    def decode(self, chunk: bytes) -> Iterator[bytes]:
        for part in self._parts(chunk):
            given = 0
            try:
                for piece in filter(None, self._step(part)):
                    given += len(piece)
                    yield piece
            except self._faults as error:
                yield from self._before_fault(part, given)
                raise FramingError(f"content-encoding {self._name}: {error}") from error
            self._taken += part

    def _parts(self, data: bytes) -> Iterator[bytes]:
        return (data[start : start + self._size] for start in range(0, len(data), self._size))

    def _before_fault(self, part: bytes, given: int) -> Iterator[bytes]:
        """What a part gives up to its fault, behind the bytes that it gave: the library drops it.

        The way is gone once more, byte by byte at its end: the same comes out however the bytes were cut.
        """
        step = self._make()
        for taken in self._parts(bytes(self._taken)):
            for _ in step(taken):
                pass
        try:
            for at in range(len(part)):
                for piece in step(part[at : at + 1]):
                    skipped = min(given, len(piece))
                    given -= skipped
                    if piece[skipped:]:
                        yield piece[skipped:]
        except self._faults:
            return


def _members(make: Callable[[], Any]) -> Step:
    """One stream of a coding after the other, as gzip and zstd allow.

    `make` gives an object with `decompress`, `eof` and `unused_data`.
    """
    member = make()

    def step(data: bytes) -> Iterator[bytes]:
        nonlocal member
        while data:
            if member.eof:
                member = make()
            yield member.decompress(data)
            data = member.unused_data if member.eof else b""

    return step


def _zlib(window: int) -> Step:
    return _members(lambda: zlib.decompressobj(window))


# Of "deflate" and gzip a byte stands for a thousand at the most, of zstd four bytes for 128 KiB.
_DEFLATE_SIZE = _PIECE // 1032
_ZSTD_SIZE = _PIECE // (128 << 10) * 4


def _gzip() -> Decoder:
    return _Layer("gzip", lambda: _zlib(zlib.MAX_WBITS | 16), (zlib.error,), _DEFLATE_SIZE)


def _deflate() -> Decoder:
    return _Layer("deflate", _inflate, (zlib.error,), _DEFLATE_SIZE)


def _inflate() -> Step:
    """ "deflate" is zlib's format by the standard, and the bare one by what some servers send."""
    inner: Step | None = None
    head = b""

    def step(data: bytes) -> Iterator[bytes]:
        nonlocal inner, head
        if inner is None:
            head += data
            if len(head) < 2:
                return
            wrapped = head[0] & 15 == 8 and int.from_bytes(head[:2], "big") % 31 == 0
            inner, data = _zlib(zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS), head
        yield from inner(data)

    return step


def _brotli() -> Decoder:
    try:
        library: Any = importlib.import_module("brotli")
    except ImportError:
        library = importlib.import_module("brotlicffi")

    def make() -> Step:
        process: Callable[..., bytes] = library.Decompressor().process

        def step(data: bytes) -> Iterator[bytes]:
            while piece := process(data, output_buffer_limit=_PIECE):
                yield piece
                data = b""

        return step

    return _Layer("br", make, (library.error,), 1 << 14)


def _zstd() -> Decoder:
    try:
        library: Any = importlib.import_module("compression.zstd")  # from Python 3.14 on
    except ImportError:
        library = importlib.import_module("zstandard")
        make: Callable[[], Any] = lambda: library.ZstdDecompressor().decompressobj()  # noqa: E731
    else:
        make = library.ZstdDecompressor
    return _Layer("zstd", lambda: _members(make), (library.ZstdError,), _ZSTD_SIZE)


_CODINGS: dict[str, Callable[[], Decoder]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}
