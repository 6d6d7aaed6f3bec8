"""Bytes to frames and back: the event stream format of the WHATWG HTML standard, section "Server-sent events".

::

    chunk ──► feed ──► one whole event, written like the last one?  ──► Frame             fast path
                └────► pieces between blank lines, each tried likewise ──► Frame          fast path
                              └────► lines ──► fields ──► blank line ──► Frame            line machine

The line machine is the standard's algorithm and could do everything alone. The fast paths only take a block of a
data line, or of an event line and a data line, that the machine would turn into one frame; why that is sound is
said at `Framer.feed`. Everything works on bytes: no byte inside a UTF-8 sequence is a CR, LF, colon or space, so
bytes are cut exactly where text would be, and a character cut by a chunk's end is no special case. Each byte is
looked at a bounded number of times, however the stream is cut.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import msgspec

from .errors import FramingError, Where, excerpt

__all__ = ["Frame", "Framer", "Limits", "Tail", "as_bytes", "encode"]

_LF, _CR = 10, 13
_BOM = b"\xef\xbb\xbf"
_FIELDS = frozenset((b"data", b"event", b"id", b"retry"))
_LONGEST_FIELD = len(b"event:")

# Of lines that mean nothing this much is kept, to show what came in place of an event stream.
_SAMPLE = 1 << 20
# A reconnection time beyond this many digits is absurd, and int() refuses very long ones.
_RETRY_DIGITS = 18
_RETRY_MAX = 10**_RETRY_DIGITS
# So many small pieces are held before they are joined: a pointer and an object header for each would
# otherwise be many times the bytes that the limits count.
_PACK = 4096
# A prefix that comes in many chunks is compared again with each: its length bounds that.
_LONGEST_HEAD = 256


class Limits(msgspec.Struct, frozen=True):
    """How much may be held before a blank line; None is no limit.

    The byte that passes a limit raises `FramingError`. An image comes as one frame of up to tens of MB, so the
    defaults leave room for that.

    Attributes:
        line: bytes of one line of any kind without its end.
        frame: bytes of all field lines of one block without their ends, the line being read included.
    """

    line: int | None = 64 << 20
    frame: int | None = 64 << 20


class Frame(msgspec.Struct, frozen=True, gc=False):
    """One dispatched event.

    Attributes:
        event: the type; "message" where the stream names none.
        data: values of the data lines, joined with LF; as received, so it may be ill-formed UTF-8.
        id: the last event ID string when the event was dispatched.
        retry: reconnection time in milliseconds if this event's own block set one.
        offset: offset in the stream, in bytes, of the first line after the previous blank line.
        number: count of the frames dispatched before it.
    """

    event: str
    data: bytes
    id: str = ""
    retry: int | None = None
    offset: int = 0
    number: int = 0


class Tail(msgspec.Struct, frozen=True):
    """What was left when the stream ended, and what was passed over in it.

    Attributes:
        incomplete: the end threw something away: text after the last line end, data, a type, or an id that no
            blank line committed.
        data: the field lines since the last blank line and the unfinished line, as received. Of an unfinished
            line that is no field at most the first MiB.
        stray: the lines that are no field, each with its line end, and the unfinished line if it is none; at most
            the first MiB. A JSON body sent in place of a stream can be read from it.
        frame: the frame that a line end and a blank line would have completed, None if there is no data. It was
            not dispatched: only the reader of a whole recording can know that nothing more was to come.
        comments: number of comment lines, an unfinished one included.
        ignored: number of lines in `stray`, had it no bound.
        frames: number of frames dispatched.
        offset: offset in the stream, in bytes, of the first line behind the last blank line.
    """

    incomplete: bool
    data: bytes
    stray: bytes
    frame: Frame | None
    comments: int
    ignored: int
    frames: int = 0
    offset: int = 0


class _Pieces(list[bytes]):
    """Byte strings to be joined once by `between`, held in memory near to the sum of their lengths."""

    between = b""
    _packed = 0

    def add(self, piece: bytes) -> None:
        self.append(piece)
        if len(self) - self._packed > _PACK:
            self[self._packed :] = [self.between.join(self[self._packed :])]
            self._packed += 1

    def join(self) -> bytes:
        return self.between.join(self)

    def clear(self) -> None:
        super().clear()
        self._packed = 0


class Framer:
    """Chunks of bytes, cut anywhere, to frames.

    A frame is handed out by the `feed` that brings the first byte of its blank line's end: a CR at the end of a
    chunk does not wait for a possible LF. A frame without its blank line is never handed out.

    Attributes:
        last_event_id: the last event ID string, as committed by the last blank line.
        retry: the last reconnection time that the stream set, in milliseconds; None if it set none. More than
            18 digits count as 10**18.
    """

    # What a framer begins with stands here as far as it cannot change in place and not every frame asks for it: to
    # set all of it for each framer would cost a short stream as much as all of its frames.

    # What of the stream outlives a block: the standard's reconnection time, and the ID buffer, which a blank line
    # commits to `last_event_id`.
    retry: int | None = None
    _id = ""

    # Chunk ends that cut something: the start of the stream that may yet become a BOM (None once decided); after a CR
    # whose LF may follow, what takes that LF to where its line was kept.
    _bom: bytes | None = b""
    _cr: Callable[[bytes], None] | None = None

    # The unfinished line: its length, and how much of that length was not kept in `_line`.
    _length = 0
    _dropped = 0

    # The block since the last blank line: offset (-1: no line yet), type, its own retry, and the size of its field
    # lines as the frame limit counts.
    _start = -1
    _type = b""
    _retry: int | None = None
    _size = 0

    # The fast paths: what stands before the value in a block written like the last plain one, and the size of what is
    # in `_held`.
    _learned = b"data: "
    _held_size = 0

    # The report, and why no more bytes are taken ("" while they are).
    _comments = 0
    _ignored = 0
    _over = ""

    def __init__(self, limits: Limits = Limits()) -> None:
        self._line_limit = sys.maxsize if limits.line is None else limits.line
        self._frame_limit = sys.maxsize if limits.frame is None else limits.frame
        # What fits into this passes neither limit; `_room` is what the next line may have of it.
        self._limit = self._room = min(self._line_limit, self._frame_limit)
        # Offset of the current line, number of dispatched frames, and the last committed id.
        self._offset = 0
        self._number = 0
        self.last_event_id = ""
        # The unfinished line; of the block its data buffer and its field lines as received; lines that are no field.
        self._line = _Pieces()
        self._data = _Pieces()
        self._data.between = b"\n"
        self._block = _Pieces()
        self._stray = bytearray()
        # The fast paths: `_prefix` is `_learned` while the next byte begins a block, else b"", which no chunk loses;
        # then what stands behind the value, and the type that the block gives. `_held` is such a block's beginning
        # that was not run yet: a part of `_learned`, or all of it and bytes without line end, within the limits. Of
        # all that a line can do it could only have set the type.
        self._prefix = b""
        self._ends = b"\n\n"
        self._event = "message"
        self._held = _Pieces()

    def feed(self, chunk: bytes | bytearray | memoryview) -> list[Frame]:
        """The frames that `chunk` completes, in order; may be empty, as may the chunk.

        Raises:
            FramingError: a line or frame passed its limit, with the frames that the chunk completed before in
                `.frames`; also after an earlier such error and after `close`.
            TypeError: the chunk is not bytes-like; text was decoded too early.
        """
        # A chunk that holds one whole event written like the last one. `_prefix` is a run of whole lines that set
        # the type and nothing else, and "data: "; it stands there only while the machine is between two blocks.
        # If the rest is a value without line ends, then one line end and the same again, the machine would
        # dispatch the learned type with that value and be between two blocks again. A second data line, another
        # field, a comment or a stray CR has a line end too many and goes the long way, as does all that could
        # pass a limit. `removeprefix` and `removesuffix` test and cut in one call; they give the bytes themselves
        # when they cut nothing, but only for exact bytes.
        prefix = self._prefix
        if prefix and type(chunk) is bytes:
            value = chunk.removeprefix(prefix)
            if value is chunk and self._learn(chunk, b"\n"):
                value = chunk.removeprefix(self._prefix)
            if value is not chunk:
                data = value.removesuffix(self._ends)
                size = len(chunk)
                if data is not value and _LF not in data and _CR not in data and size <= self._limit:
                    offset, number = self._offset, self._number
                    self._offset, self._number = offset + size, number + 1
                    return [Frame(self._event, data, self.last_event_id, None, offset, number)]
        return self._feed(chunk)

    def close(self) -> Tail:
        """What was pending at the end of the stream; nothing of it is dispatched or committed.

        Raises:
            FramingError: closed already, or `feed` failed before.
        """
        if self._over:
            raise FramingError(self._over)
        if self._held_size:
            self._run(self._held.join(), [])
        line = self._bom or self._line.join()
        data = self._block.join() + line
        incomplete = bool(line or self._data or self._type or self._id != self.last_event_id)
        committed, retry = self.last_event_id, self.retry
        number, offset = self._number, self._offset if self._start < 0 else self._start
        frames: list[Frame] = []
        if line:
            self._room = sys.maxsize  # all that is held was checked, but for half a BOM
            self._interpret(line, self._dropped, frames)
        self._interpret(b"", 0, frames)
        self.last_event_id, self.retry = committed, retry
        self._end("the event stream was closed")
        frame = frames[0] if frames else None
        return Tail(incomplete, data, bytes(self._stray), frame, self._comments, self._ignored, number, offset)

    def _end(self, why: str) -> None:
        self._over = why
        self._prefix = b""

    def _feed(self, chunk: bytes | bytearray | memoryview) -> list[Frame]:
        """`feed` for every chunk, without the fast path for one whole event."""
        if self._over:
            raise FramingError(self._over)
        if type(chunk) is not bytes:
            chunk = as_bytes(chunk)
        if self._bom is not None:
            chunk = self._skip_bom(chunk, self._bom)
        if self._cr is not None and chunk:
            chunk = self._skip_lf(chunk, self._cr)
        frames: list[Frame] = []
        if chunk:
            try:
                self._advance(chunk, frames)
            except FramingError as error:
                self._end("the event stream failed before")
                error.frames = frames
                raise
        return frames

    def _advance(self, chunk: bytes, frames: list[Frame]) -> None:
        """Take a chunk that is not empty, by the cheapest way that is exact for it."""
        plain = _LF not in chunk and _CR not in chunk
        if self._held_size:
            size = self._held_size + len(chunk)
            if plain and self._held_size >= len(self._learned) and size <= self._limit:
                self._held.add(chunk)
                self._held_size = size
                return
            self._held.append(chunk)
            chunk = self._held.join()
            self._held = _Pieces()
            self._held_size = 0
            self._prefix = self._learned
        elif plain and not self._prefix:
            self._extend(chunk)
            return
        if len(chunk) > self._limit:
            self._run(chunk, frames)
        else:
            self._run_blocks(chunk, frames)

    def _skip_bom(self, chunk: bytes, held: bytes) -> bytes:
        """`held` and `chunk`, which begin the stream, without a BOM; b"" while it may yet become one."""
        chunk = held + chunk
        if len(chunk) < len(_BOM) and _BOM.startswith(chunk):
            self._bom = chunk
            return b""
        self._bom = None
        if chunk.startswith(_BOM):
            self._offset = len(_BOM)
            chunk = chunk[len(_BOM) :]
        self._arm()
        return chunk

    def _skip_lf(self, chunk: bytes, keep: Callable[[bytes], None]) -> bytes:
        """`chunk`, which follows a CR, without the LF of that line end."""
        self._cr = None
        if chunk[0] == _LF:
            keep(b"\n")
            self._offset += 1
            chunk = chunk[1:]
        self._arm()
        return chunk

    def _arm(self) -> None:
        """Let the fast paths run if the next byte begins a block."""
        between = self._start < 0 and not self._length and self._cr is None
        self._prefix = self._learned if between else b""

    def _run_blocks(self, chunk: bytes, frames: list[Frame]) -> None:
        """Run over a chunk within the limits, block by block.

        What stands in front of two line ends is a block, or several, or the rest of one; the machine is between
        two blocks behind them in any case. So the argument at `feed` holds for each piece with its two line ends.
        """
        end = b"\r\n" if _CR in chunk else b"\n"
        self._ends = ends = end + end
        *blocks, rest = chunk.split(ends)
        width = len(ends)
        # Attributes stand in locals while the blocks are plain.
        prefix, event, id, offset, number = self._prefix, self._event, self.last_event_id, self._offset, self._number
        for block in blocks:
            value = block.removeprefix(prefix)
            if value is block and self._learn(block, end):
                prefix, event = self._prefix, self._event
                value = block.removeprefix(prefix)
            if value is not block and _LF not in value and _CR not in value:
                frames.append(Frame(event, value, id, None, offset, number))
                offset += len(block) + width
                number += 1
            else:
                self._offset, self._number = offset, number
                self._run(block + ends, frames)
                prefix, id, offset, number = self._prefix, self.last_event_id, self._offset, self._number
        self._offset, self._number = offset, number
        if rest and not self._hold(rest, end):
            self._run(rest, frames)

    def _learn(self, block: bytes, end: bytes) -> bool:
        """Learn what stands before the value if `block` is one, and begins like a plain one."""
        if not self._prefix:
            return False
        between = end + b"data: "
        if block[:7] == b"event: ":
            cut = block.find(between, 7, _LONGEST_HEAD)
            name = block[7:cut]
            if cut < 0 or _LF in name or _CR in name:
                return False
            self._learned = block[: cut + len(between)]
            self._event = name.decode("utf-8", "replace") or "message"
        elif block[:6] == b"data: ":
            self._learned, self._event = b"data: ", "message"
        else:
            return False
        self._prefix = self._learned
        return True

    def _hold(self, rest: bytes, end: bytes) -> bool:
        """Whether `rest`, a block's beginning, can wait in `_held` for the bytes after it; then it does."""
        prefix = self._prefix
        if len(rest) >= len(prefix) or not prefix.startswith(rest):
            value = rest.removeprefix(prefix)
            if value is rest and self._learn(rest, end):
                value = rest.removeprefix(self._prefix)
            if value is rest or _LF in value or _CR in value:
                return False
        self._held.append(rest)
        self._held_size = len(rest)
        self._prefix = b""
        return True

    def _run(self, data: bytes, frames: list[Frame]) -> None:
        """Run the line machine over `data`, which is not empty and does not begin with a skipped LF."""
        # For bytes, splitlines cuts at LF, CR and CR LF only.
        lines = data.splitlines(keepends=True)
        unfinished = b"" if data[-1] in (_LF, _CR) else lines.pop()
        line = b""
        for line in lines:
            dropped = 0
            if self._length:
                line = self._line.join() + line
                dropped = self._dropped
                self._line.clear()
                self._length = self._dropped = 0
            self._interpret(line, dropped, frames)
        if unfinished:
            self._extend(unfinished)
            return
        if data[-1] == _CR:
            self._cr = self._keeper(line)
        self._arm()

    def _keeper(self, line: bytes) -> Callable[[bytes], None]:
        """What keeps the bytes of a line such as this one."""
        name = line.rstrip(b"\r").partition(b":")[0]
        return self._block.add if name in _FIELDS else self._sample if name else _drop

    def _sample(self, stray: bytes) -> None:
        self._stray += stray[: _SAMPLE - len(self._stray)]

    def _extend(self, fragment: bytes) -> None:
        """Add bytes without a line end to the unfinished line."""
        before = self._length
        self._length = length = before + len(fragment)
        if length > self._room:
            raise self._too_long()
        self._prefix = b""
        if self._dropped:
            self._dropped += len(fragment)
            return
        self._line.add(fragment)
        if before <= _SAMPLE < length:
            kept = self._line.join()
            if kept[:_LONGEST_FIELD].partition(b":")[0] not in _FIELDS:
                self._line.clear()
                self._line.add(kept[:_SAMPLE])
                self._dropped = length - _SAMPLE

    def _interpret(self, raw: bytes, dropped: int, frames: list[Frame]) -> None:
        """Process one line, given with its end, of which `dropped` bytes were not kept."""
        line = raw.rstrip(b"\r\n")
        if len(line) + dropped > self._room:
            raise self._too_long()
        offset = self._offset
        self._offset = offset + len(raw) + dropped
        if not line:
            self._blank(frames)
            return
        if self._start < 0:
            self._start = offset
        name, _, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        if name == b"data":
            self._data.add(value)
        elif name == b"event":
            self._type = value
        elif name == b"id":
            if 0 not in value:
                self._id = value.decode("utf-8", "replace")
        elif name == b"retry":
            if value.isdigit():
                self.retry = self._retry = _milliseconds(value)
        elif name:
            self._ignored += 1
            self._sample(raw)
            return
        else:
            self._comments += 1
            return
        self._block.add(raw)
        self._size += len(line)
        self._room = min(self._line_limit, self._frame_limit - self._size)

    def _blank(self, frames: list[Frame]) -> None:
        """Process a blank line: commit the id, dispatch if there is data, and begin a new block."""
        if self._start < 0:
            return
        self.last_event_id = self._id
        if self._data:
            event = self._type.decode("utf-8", "replace") or "message"
            frames.append(Frame(event, self._data.join(), self._id, self._retry, self._start, self._number))
            self._number += 1
            self._data.clear()
        self._block.clear()
        self._size = 0
        self._room = self._limit
        self._start = -1
        self._type = b""
        self._retry = None

    def _too_long(self) -> FramingError:
        event = excerpt(self._type or b"message")
        if self._line_limit <= self._frame_limit - self._size:
            detail = f"a line of event {event} is longer than the line limit of {self._line_limit:,} bytes"
        else:
            detail = f"event {event} is larger than the frame limit of {self._frame_limit:,} bytes"
        offset = self._offset if self._start < 0 else self._start
        return FramingError(detail, where=Where(frame=self._number, offset=offset))


def as_bytes(chunk: bytes | bytearray | memoryview) -> bytes:
    """A chunk as bytes that nobody changes. Raises `TypeError` for what is none."""
    try:
        return bytes(memoryview(chunk))
    except TypeError:
        early = ": it was decoded before the frames were found" if isinstance(chunk, str) else ""
        raise TypeError(f"a chunk is {type(chunk).__name__}, expected bytes{early}") from None


def _drop(_: bytes) -> None:
    pass


def _milliseconds(digits: bytes) -> int:
    digits = digits.lstrip(b"0")
    return int(digits or b"0") if len(digits) <= _RETRY_DIGITS else _RETRY_MAX


def encode(frame: Frame) -> bytes:
    """The frame as one block with its blank line, with LF as line end.

    A framer reads back an equal event, data, id and retry. The type "message" and an empty id need no line; so after
    a frame with an id, one without keeps that id, as it does in the standard. The data stands in one data line for
    each of its lines.

    Raises:
        FramingError: the format cannot carry the frame: a CR in the data (a framer never gives one), a line end in the
            type or id, NUL in the id, an empty type, a lone surrogate, a retry out of range.
    """
    try:
        event, id = frame.event.encode(), frame.id.encode()
    except UnicodeEncodeError as error:
        raise FramingError("an event's type or id is no Unicode text: a lone surrogate") from error
    if not event or _LF in event or _CR in event:
        raise FramingError(f"an event's type is one line of text, not {excerpt(event)}")
    if 0 in id or _LF in id or _CR in id:
        raise FramingError(f"an event's id is one line of text without NUL, not {excerpt(id)}")
    if _CR in frame.data:
        raise FramingError("an event's data cannot hold a CR: it would be read back as a line end")
    lines: list[bytes] = []
    if id:
        lines.append(b"id: " + id)
    if frame.retry is not None:
        if not 0 <= frame.retry <= _RETRY_MAX:
            raise FramingError(f"an event's retry is 0 to {_RETRY_MAX:,} milliseconds, not {frame.retry:,}")
        lines.append(b"retry: %d" % frame.retry)
    if event != b"message":
        lines.append(b"event: " + event)
    lines += [b"data: " + line for line in frame.data.split(b"\n")]
    return b"\n".join(lines) + b"\n\n"
