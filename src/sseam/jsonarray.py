"""Bytes to frames for a stream that is one JSON array of objects: `[{…},{…}]`, delivered as it grows.

`streamGenerateContent` answers so where `alt=sse` is missing, or a gateway dropped the query. Here only
the elements' bounds are found, by depth and strings; what an element holds is the decoder's matter.
Each byte is looked at a fixed number of times, however the stream is cut.
"""

from __future__ import annotations

import enum
import re
import sys
from collections.abc import Callable

from .errors import FramingError, Where
from .sse import Frame, Framer, Limits, Tail, as_bytes

__all__ = ["END", "AnyFramer", "ArrayFramer"]

END = "]"
"""Event type of the frame that stands for the array's closing bracket; elements have the type "message"."""

# White space of JSON, and the bytes of a BOM, which may stand in front of everything.
_BLANK = b" \t\r\n\xef\xbb\xbf"
# Of what follows the array this much is kept.
_SAMPLE = 1 << 20

_SPACE = re.compile(rb"[ \t\r\n]*+")
_SPACE_OR_BOM = re.compile(rb"[ \t\r\n\xef\xbb\xbf]*+")
# From inside a string to its closing quote, or to a backslash whose partner has not come.
_IN_STRING = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
# A whole string, or a byte that changes the depth, or the quote of a string that is cut.
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|["{}\[\]]', re.DOTALL)
_DEEPER = {b"{": 1, b"[": 1, b"}": -1, b"]": -1}


class _Place(enum.Enum):
    """Where between the elements the framer stands; the value says what may come."""

    START = "'['"  # before the array
    FIRST = "'{' or ']'"  # behind its opening bracket
    NEXT = "'{'"  # behind a comma
    AFTER = "',' or ']'"  # behind an element
    INSIDE = "the rest of an object"
    OVER = "nothing"  # behind its closing bracket


_TRANSITIONS: dict[tuple[_Place, bytes], _Place] = {
    (_Place.START, b"["): _Place.FIRST,
    (_Place.FIRST, b"{"): _Place.INSIDE,
    (_Place.FIRST, b"]"): _Place.OVER,
    (_Place.NEXT, b"{"): _Place.INSIDE,
    (_Place.AFTER, b","): _Place.NEXT,
    (_Place.AFTER, b"]"): _Place.OVER,
}


class ArrayFramer:
    """Chunks of bytes, cut anywhere, to one frame for each element and one for the end.

    An element is handed out by the `feed` that brings its closing brace.
    """

    def __init__(self, limits: Limits = Limits(), offset: int = 0) -> None:
        """Of the limits that of a frame counts, for the bytes of an element; `offset` is that of the first byte."""
        self._limit = sys.maxsize if limits.frame is None else limits.frame
        self._offset = offset
        self._number = 0
        self._place = _Place.START
        # The element being read: its offset, its bytes, its depth, and what a chunk's end cut.
        self._start = 0
        self._element = bytearray()
        self._depth = 0
        self._string = False
        self._escape = False
        # The report, and why no more bytes are taken ("" while they are).
        self._stray = bytearray()
        self._over = ""

    def feed(self, chunk: bytes | bytearray | memoryview) -> list[Frame]:
        """The frames that `chunk` completes, in order; may be empty, as may the chunk.

        Raises:
            FramingError: what comes is no array of objects, or an element passed its limit, with the frames that
                the chunk completed before in `.frames`; also after an earlier such error and after `close`.
            TypeError: the chunk is not bytes-like.
        """
        if self._over:
            raise FramingError(self._over)
        chunk = as_bytes(chunk)
        frames: list[Frame] = []
        at = 0
        try:
            while at < len(chunk):
                read = self._inside if self._place is _Place.INSIDE else self._between
                at = read(chunk, at, frames)
        except FramingError as error:
            self._over = "the array failed before"
            error.frames = frames
            raise
        self._offset += len(chunk)
        return frames

    def close(self) -> Tail:
        """What was pending at the end of the stream: `incomplete` unless the array was closed.

        Raises:
            FramingError: closed already, or `feed` failed before.
        """
        if self._over:
            raise FramingError(self._over)
        self._over = "the array was closed"
        stray = bytes(self._stray)
        ignored = stray.count(b"\n")
        offset = self._start if self._place is _Place.INSIDE else self._offset
        incomplete = self._place is not _Place.OVER
        return Tail(incomplete, bytes(self._element), stray, None, 0, ignored, self._number, offset)

    def _between(self, chunk: bytes, at: int, frames: list[Frame]) -> int:
        """Read up to the next element's first byte, or to the end of the chunk; gives how far."""
        if self._place is _Place.OVER:
            self._stray += chunk[at:][: _SAMPLE - len(self._stray)]
            return len(chunk)
        space = _SPACE_OR_BOM if self._place is _Place.START else _SPACE
        found = space.match(chunk, at)
        assert found is not None
        at = found.end()
        if at == len(chunk):
            return at
        byte = chunk[at : at + 1]
        place = _TRANSITIONS.get((self._place, byte))
        if place is None:
            raise FramingError(
                f"not an array of JSON objects: {self._place.value} expected, not {byte!r}",
                where=Where(frame=self._number, offset=self._offset + at),
            )
        self._place = place
        if place is _Place.INSIDE:
            self._start = self._offset + at
            return at
        if place is _Place.OVER:
            frames.append(Frame(END, byte, "", None, self._offset + at, self._number))
        return at + 1

    def _inside(self, chunk: bytes, at: int, frames: list[Frame]) -> int:
        """Read on in an element, to its end or that of the chunk; gives how far."""
        end = self._find_end(chunk, at)
        if len(self._element) + end - at > self._limit:
            raise FramingError(
                f"event 'message' is larger than the frame limit of {self._limit:,} bytes",
                where=Where(frame=self._number, offset=self._start),
            )
        self._element += chunk[at:end]
        if not self._depth:
            frames.append(Frame("message", bytes(self._element), "", None, self._start, self._number))
            self._number += 1
            self._element = bytearray()
            self._place = _Place.AFTER
        return end

    def _find_end(self, chunk: bytes, at: int) -> int:
        """Where the element ends in the chunk, which makes the depth 0, or the end of the chunk."""
        if self._string:
            at = self._pass_string(chunk, at)
            if self._string:
                return len(chunk)
        for token in _TOKEN.finditer(chunk, at):
            step = _DEEPER.get(token[0])
            if step is not None:
                self._depth += step
                if not self._depth:
                    return token.end()
            elif len(token[0]) == 1:
                self._string = True
                self._pass_string(chunk, token.end())
                break
        return len(chunk)

    def _pass_string(self, chunk: bytes, at: int) -> int:
        """Read on in a string; gives where it ends, which makes `_string` false, or the end of the chunk."""
        if self._escape:
            self._escape = False
            at += 1
        found = _IN_STRING.match(chunk, at)
        assert found is not None
        at = found.end()
        if at == len(chunk):
            return at
        self._escape = chunk[at] != b'"'[0]
        self._string = self._escape
        return at + 1


class AnyFramer:
    """A framer for a body that is an event stream or a JSON array, told by its first byte that is not blank."""

    def __init__(self, limits: Limits = Limits()) -> None:
        self._limits = limits
        self._blanks = 0
        self._framer: Framer | ArrayFramer = Framer(limits)
        # Once the byte came this is the chosen framer's own method, so that its speed is kept.
        self.feed: Callable[[bytes], list[Frame]] = self._open

    def _open(self, chunk: bytes) -> list[Frame]:
        chunk = as_bytes(chunk)
        begun = chunk.lstrip(_BLANK)
        if not begun:
            self._blanks += len(chunk)
            return self._framer.feed(chunk)
        if begun.startswith(b"["):
            self._framer = ArrayFramer(self._limits, self._blanks)
        self.feed = self._framer.feed
        return self.feed(chunk)

    def close(self) -> Tail:
        """See the framers."""
        return self._framer.close()
