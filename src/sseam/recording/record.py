"""One response as it came, and the two files that keep it.

::

    chunks ──► Recorder ──► the same chunks
                  └──► name.sse   the body, byte for byte after content decoding
                       name.json  the request, status, headers, when which bytes came, how it ended

Secrets are masked before anything is written.
"""

from __future__ import annotations

import os
import re
import time
import uuid
from bisect import bisect_right
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Literal

import msgspec

from ..errors import SseamError
from .scrub import Scrubber

__all__ = ["Ending", "RecordedRequest", "Recorder", "Recording", "load", "save"]

Ending = Literal["end", "left", "close", "reset", "stall"]
"""How a body ended.

"end": as HTTP has it. "left": its reader stopped reading first. "close": the connection was closed before
the body's end. "reset": it was reset. "stall": no further byte ever came.
"""

# They tell how the body was carried; the bytes that are kept are decoded.
_CARRIAGE = frozenset(("content-encoding", "content-length", "transfer-encoding", "connection", "keep-alive"))
# An empty line, with the line end before it. Line ends are atomic: a CR LF is one, not two.
BLANK_LINE = re.compile(rb"(?>\r\n|\r|\n){2,}")


class RecordedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What was sent.

    Attributes:
        method: the HTTP method.
        url: the whole URL.
        headers: by name.
        body: as decoded from JSON; None where none was sent.
    """

    method: str = "POST"
    url: str = ""
    headers: dict[str, str] = {}
    body: Any = None


class Recording(msgspec.Struct, frozen=True):
    """A response.

    Attributes:
        data: the body after content decoding.
        status: the HTTP status.
        headers: of the response, by name.
        chunks: (seconds since the request, bytes) of each piece as it came; empty where it is not known.
        ending: how the body ended.
        error: the text of the error that ended it, or None.
        request: what was sent, or None where it is not known.
    """

    data: bytes
    status: int = 200
    headers: dict[str, str] = {}
    chunks: tuple[tuple[float, int], ...] = ()
    ending: Ending = "end"
    error: str | None = None
    request: RecordedRequest | None = None


class _Description(msgspec.Struct, frozen=True, kw_only=True):
    """`name.json`: a recording without its body. The first field, the format's version, tells it from other JSON."""

    sseam_recording: Literal[1] = 1
    status: int = 200
    headers: dict[str, str] = {}
    ending: Ending = "end"
    error: str | None = None
    request: RecordedRequest | None = None
    chunks: tuple[tuple[float, int], ...] = ()


def load(path: str | os.PathLike[str]) -> Recording:
    """The recording in `path`, which is `name.sse`, with what `name.json` tells about it.

    Without that file, or where it is JSON of another kind, such as an expectation, the body is all there is.

    Raises:
        OSError: `path` cannot be read.
        SseamError: `name.json` claims to describe a recording and does not.
    """
    data = Path(path).read_bytes()
    described = _beside(Path(path))
    try:
        text = described.read_bytes()
    except FileNotFoundError:
        return Recording(data)
    if b'"sseam_recording"' not in text:
        return Recording(data)
    try:
        about = msgspec.json.decode(text, type=_Description)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SseamError(f"{described.name} does not describe a recording: {error}") from error
    return Recording(data, about.status, about.headers, about.chunks, about.ending, about.error, about.request)


def save(recording: Recording, path: str | os.PathLike[str]) -> None:
    """Write `name.json` and then `name.sse`, which is `path`, each whole or not at all. Nothing is masked here."""
    target = Path(path)
    about = _Description(
        status=recording.status,
        headers=recording.headers,
        ending=recording.ending,
        error=recording.error,
        request=recording.request,
        chunks=recording.chunks,
    )
    # One line a field: the chunks would otherwise fill thousands of lines.
    lines = [f"  {_json(name)}: {_json(value)}" for name, value in msgspec.structs.asdict(about).items()]
    _write(_beside(target), ("{\n" + ",\n".join(lines) + "\n}\n").encode())
    _write(target, recording.data)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _beside(path: Path) -> Path:
    return path.with_name(path.name.removesuffix(".sse") + ".json")


def _as_it_is(chunk: bytes) -> tuple[bytes, ...]:
    return (chunk,)


def _write(path: Path, data: bytes) -> None:
    unfinished = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        unfinished.write_bytes(data)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


class Recorder:
    """Keeps the bytes of one response and writes the recording when they end, also when they fail.

    Args:
        path: the file for the body, `name.sse`. Its folder is made where it is not there; raises OSError where it
            cannot be, since the end of the response would be too late.
        request: what is sent. Make the recorder when it is: times count from then.
        scrub: called with each text that is kept, after secrets were masked; gives the text to keep.
        clock: seconds, from any start.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        request: RecordedRequest | None = None,
        scrub: Callable[[str], str] | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._request = request
        self._scrub = scrub
        self._clock = clock
        self._started = clock()
        self._status = 200
        self._headers: Mapping[str, str] = {}
        self._decode: Callable[[bytes], Iterable[bytes]] = _as_it_is
        self._chunks: list[tuple[float, bytes]] = []
        self._finished = False

    def answered(self, status: int, headers: Mapping[str, str]) -> None:
        """The response has come. What its content encoding hides is undone for the recording.

        Raises:
            FramingError: an encoding that is not known.
        """
        from ..encoding import decoder

        self._status, self._headers = status, headers
        undo = decoder(next((value for name, value in headers.items() if name.lower() == "content-encoding"), ""))
        self._decode = _as_it_is if undo is None else undo.decode

    def iter(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """The chunks of the body, passed on as they are. Closing the iterator closes `chunks`."""
        try:
            for chunk in chunks:
                self._note(chunk)
                yield chunk
            self.finish("end")
        except Exception as error:
            self.finish("close", error)
            raise
        finally:
            self.finish("left")
            close: Any = getattr(chunks, "close", None)
            if close is not None:
                close()

    async def aiter(self, chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
        """As `iter`, for an async source."""
        try:
            async for chunk in chunks:
                self._note(chunk)
                yield chunk
            self.finish("end")
        except Exception as error:
            self.finish("close", error)
            raise
        finally:
            self.finish("left")
            close: Any = getattr(chunks, "aclose", None)
            if close is not None:
                await close()

    def _note(self, chunk: bytes) -> None:
        at = round(self._clock() - self._started, 6)
        self._chunks += [(at, piece) for piece in self._decode(chunk)]

    def finish(self, ending: Ending, error: Exception | None = None) -> None:
        """Write the recording, which ended so. Does nothing the second time."""
        if self._finished:
            return
        self._finished = True
        scrubber = Scrubber(self._scrub)
        request = self._request and _scrubbed(self._request, scrubber)
        headers = scrubber.headers(self._headers)
        data, sizes = _scrub_body([chunk for _, chunk in self._chunks], scrubber)
        recording = Recording(
            data,
            self._status,
            {name: value for name, value in headers.items() if name not in _CARRIAGE},
            tuple((at, size) for (at, _), size in zip(self._chunks, sizes, strict=True)),
            ending,
            error and scrubber.text(f"{type(error).__name__}: {error}"),
            request,
        )
        save(recording, self._path)


def _scrubbed(request: RecordedRequest, scrubber: Scrubber) -> RecordedRequest:
    # Headers first: the key in them is then known where it stands elsewhere.
    headers = scrubber.headers(request.headers)
    return RecordedRequest(
        method=request.method, url=scrubber.url(request.url), headers=headers, body=scrubber.body(request.body)
    )


def _scrub_body(chunks: list[bytes], scrubber: Scrubber) -> tuple[bytes, list[int]]:
    """The body with secrets masked, and the sizes of its chunks.

    It is done block by block, since a secret does not reach over a blank line: where a text becomes longer or
    shorter, only the chunks of that block move.
    """
    data = b"".join(chunks)
    edges = [0, *(match.end() for match in BLANK_LINE.finditer(data)), len(data)]
    # Bytes that are no text stay as they are.
    texts = [data[start:end].decode("utf-8", "surrogateescape") for start, end in pairwise(edges)]
    blocks = [scrubber.text(text).encode("utf-8", "surrogateescape") for text in texts]
    moved = [0, *accumulate(map(len, blocks))]

    def place(offset: int) -> int:
        block = bisect_right(edges, offset) - 1
        inside = offset - edges[block]
        return moved[block] + min(inside, len(blocks[block])) if inside else moved[block]

    places = [0, *(place(offset) for offset in accumulate(map(len, chunks)))]
    return b"".join(blocks), [end - start for start, end in pairwise(places)]
