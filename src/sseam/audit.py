"""Recordings to verdicts: what each stream amounts to, and where it goes wrong.

::

    path ──► pieces ──► protocol ──► Parser ──► message or error ──► Verdict
             read_pieces  open_parser            judge
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import Literal, TypeAlias, Unpack, cast

import msgspec

from . import stop
from .detect import detect
from .errors import (
    ApiError,
    FramingError,
    InvalidToolCall,
    SseamError,
    StopReasonError,
    TransportError,
    TruncatedStream,
    Where,
    excerpt,
)
from .message import Deviation, Message
from .parser import Parser, ParserOptions
from .protocols import load

__all__ = [
    "STDIN",
    "SUFFIXES",
    "Outcome",
    "Verdict",
    "audit",
    "conclude",
    "judge",
    "open_parser",
    "open_recording",
    "read_pieces",
    "recordings",
    "unidentified",
    "unreadable",
]

STDIN = "-"
"""In place of a path: standard input."""

SUFFIXES = (".sse", ".body")
"""What the recordings in a folder are called: response bodies, event streams or not."""

Outcome: TypeAlias = Literal[
    "complete",  # the protocol's own end, every check passed, an accepted stop reason
    "cut_off",  # the output limit or the context window was reached
    "refused",  # the model declined
    "blocked",  # a filter stopped the output
    "paused",  # to be continued by sending it back
    "stop_sequence",  # one of the request's own stop sequences was met
    "compacted",  # the history was compacted, to be continued
    "failed",  # the provider ended with an error as its stop reason
    "aborted",  # given up by the client
    "unknown_stop",  # a stop reason that no table knows
    "contradiction",  # the stop reason does not fit the content
    "truncated",  # the recording ends before the stream does
    "invalid_tool_call",  # a call that ended and cannot be used
    "api_error",  # the service said no
    "not_a_stream",  # no event stream, or over a limit
    "disconnected",  # the connection broke or a time limit passed, in a call
    "protocol_error",  # another rule of the protocol is broken
    "unidentified",  # the bytes do not say which protocol they are
    "unreadable",  # no such file, no permission …
]

_STOPPED: dict[str, Outcome] = {
    "max_tokens": "cut_off",
    "context_window_exceeded": "cut_off",
    "refusal": "refused",
    "content_filter": "blocked",
    "pause_turn": "paused",
    "stop_sequence": "stop_sequence",
    "compaction": "compacted",
    "error": "failed",
    "aborted": "aborted",
}

# In this order: a class before its base.
_FAULTS: tuple[tuple[type[SseamError], Outcome], ...] = (
    (TruncatedStream, "truncated"),
    (InvalidToolCall, "invalid_tool_call"),
    (ApiError, "api_error"),
    (FramingError, "not_a_stream"),
    (TransportError, "disconnected"),
    (SseamError, "protocol_error"),
)

# A recording is read in pieces of at most this size.
_PIECE = 1 << 20
# What may follow a terminal event: nothing, or the marker that many services send in any protocol.
_BLANK = re.compile(rb"\s*(event:[^\r\n]*[\r\n]+)?(data: ?\[DONE\]\s*)?")
# So much is read before a recording's protocol is given up on. Comments and empty frames may come first.
_HEAD = 1 << 18


class Verdict(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What one recording amounts to.

    Attributes:
        file: its path as given, "-" for standard input.
        outcome: see `Outcome`.
        protocol: that it was read with; None where it could not be told.
        model: as the stream names it, "" where it does not.
        reason: why the outcome is not "complete", in words and without the place; "" if it is.
        hint: what else is known about it, or "".
        where: the place of the fault.
        error: name of the error's class, None where there was none.
        stop_reason: the neutral value; raw_stop_reason: the provider's word; None where none came.
        tool_calls: how many calls may be run; withheld: how many began and may not.
        deviations: tolerated departures from the protocol.
        size: bytes of the recording that were read.
        trailing: how many of them come after the terminal event; 0 where those are blank or `[DONE]`.
    """

    file: str
    outcome: Outcome
    protocol: str | None = None
    model: str = ""
    reason: str = ""
    hint: str = ""
    where: Where = Where()
    error: str | None = None
    stop_reason: str | None = None
    raw_stop_reason: str | None = None
    tool_calls: int = 0
    withheld: int = 0
    deviations: tuple[Deviation, ...] = ()
    size: int = 0
    trailing: int = 0


def audit(file: str, protocol: str | None = None, **options: Unpack[ParserOptions]) -> Verdict:
    """The verdict on the recording at the path `file`. See `Parser` for the options.

    Never raises for what the recording holds, nor where it cannot be read.

    Raises:
        TypeError, ValueError: an option that the protocol does not take.
    """
    try:
        with open_recording(file) as source:
            return _audit(file, read_pieces(source), protocol, options)
    except OSError as error:
        return unreadable(file, error)


def _audit(file: str, pieces: Iterator[bytes], protocol: str | None, options: ParserOptions) -> Verdict:
    parser, pieces = open_parser(pieces, protocol, options)
    if parser is None:
        return unidentified(file, pieces)
    size = 0
    for piece in pieces:
        size += len(piece)
        parser.feed(piece)
        if parser.done:
            break
    rest, blank = 0, True
    for piece in pieces:
        rest += len(piece)
        blank = blank and _BLANK.fullmatch(piece) is not None
    parser.finish(recording=True)
    return judge(file, parser, size=size + rest, trailing=0 if blank else rest)


def judge(file: str, parser: Parser, *, size: int = 0, trailing: int = 0) -> Verdict:
    """The verdict on what `parser`, which is done, has read. See `Verdict` for the rest."""
    error: SseamError | None = None
    try:
        message = parser.result()
    except SseamError as caught:
        error, message = caught, parser.partial
    return conclude(file, message, error, size=size, trailing=trailing)


def conclude(file: str, message: Message, error: SseamError | None, *, size: int = 0, trailing: int = 0) -> Verdict:
    """The verdict on a message, or on what there is of it and the error. See `Verdict` for the rest."""
    outcome, reason, hint = _outcome(error, message)
    ended = error is None or isinstance(error, StopReasonError)
    return Verdict(
        file=file,
        outcome=outcome,
        protocol=message.protocol,
        model=message.model,
        reason=reason,
        hint=hint,
        where=error.where if error is not None else Where(),
        error=type(error).__name__ if error is not None else None,
        stop_reason=message.stop_reason,
        raw_stop_reason=message.raw_stop_reason,
        tool_calls=len(message.tool_calls),
        withheld=len(message.withheld),
        deviations=message.deviations,
        size=size,
        trailing=trailing if ended else 0,
    )


def _outcome(error: SseamError | None, message: Message) -> tuple[Outcome, str, str]:
    """The outcome, its reason and hint."""
    if error is None:
        return "complete", "", ""
    if not isinstance(error, StopReasonError):
        return next(outcome for kind, outcome in _FAULTS if isinstance(error, kind)), error.detail, error.hint
    # With every reason accepted, what is still wrong is a contradiction.
    calls = len(message.tool_calls) + sum(call.reason == "unreleased" for call in message.withheld)
    reason, raw = error.stop_reason or stop.UNKNOWN, error.raw_stop_reason or ""
    if reason in stop.ALWAYS_ACCEPTED or stop.check(reason, raw, calls, stop.NEUTRAL) is not None:
        return "contradiction", error.detail, error.hint
    if reason == stop.UNKNOWN:
        return "unknown_stop", f"unknown stop reason {raw!r}", ""
    return _STOPPED[reason], f"stop reason {raw!r}{'' if raw == reason else f', which is {reason}'}", ""


def unreadable(file: str, error: OSError) -> Verdict:
    """The verdict on a recording that cannot be read."""
    return Verdict(file=file, outcome="unreadable", reason=error.strerror or str(error), error=type(error).__name__)


def unidentified(file: str, chunks: Iterator[bytes]) -> Verdict:
    """The verdict on a recording that `open_parser` found no protocol for; `chunks` is what it gave back."""
    start = next((chunk for chunk in chunks if chunk.strip()), b"")
    if not start:
        return Verdict(file=file, outcome="unidentified", reason="it is empty")
    hint = f"It begins {excerpt(start[:60])}; name the protocol with --protocol"
    return Verdict(file=file, outcome="unidentified", reason="its first bytes tell no protocol", hint=hint)


def open_parser(
    chunks: Iterator[bytes], protocol: str | None, options: ParserOptions
) -> tuple[Parser | None, Iterator[bytes]]:
    """A parser for a recording, and all of its chunks: none is fed yet.

    Where `protocol` is None it is told from the first bytes, and the parser is None if they do not
    say. Then a dialect holds for recordings of the protocol that has it, and others are read without.

    Raises:
        TypeError, ValueError: an option that the protocol does not take.
    """
    if protocol is not None:
        return Parser(protocol, **options), chunks
    protocol, head = _identify(chunks)
    chunks = chain(head, chunks)
    if protocol is None:
        return None, chunks
    dialect = options.get("dialect")
    if isinstance(dialect, str) and dialect not in load(protocol).DIALECTS:
        options = {**options, "dialect": None}
    return Parser(protocol, **options), chunks


def _identify(chunks: Iterator[bytes]) -> tuple[str | None, list[bytes]]:
    """The protocol's name, None where it cannot be told, and the chunks that were read to tell it."""
    head: list[bytes] = []
    size = tried = 0
    for chunk in chunks:
        head.append(chunk)
        size += len(chunk)
        # A line says something once it is whole; a live stream's first frame ends in one. What told
        # nothing is looked at again only when it has doubled, so the cost stays linear.
        if b"\n" in chunk and size >= 2 * tried:
            tried = size
            if (protocol := detect(b"".join(head))) is not None:
                return protocol, head
        if size >= _HEAD:
            break
    return detect(b"".join(head)), head


def open_recording(file: str) -> AbstractContextManager[BufferedReader]:
    """The recording at the path `file`, or standard input, to be entered for reading. Raises `OSError`."""
    if file == STDIN:
        return nullcontext(cast("BufferedReader", sys.stdin.buffer))
    return open(file, "rb")


def read_pieces(source: BufferedReader) -> Iterator[bytes]:
    """The bytes of a recording, cut behind each blank line, and at the latest at 1 MiB.

    No result depends on the cuts. They are the ones that say where the terminal event ends, and what
    can be paced.
    """
    piece = bytearray()
    while line := source.readline(_PIECE):
        piece += line
        if line in (b"\n", b"\r\n") or len(piece) >= _PIECE:
            yield bytes(piece)
            piece.clear()
    if piece:
        yield bytes(piece)


def recordings(folder: Path) -> list[str]:
    """The paths of all recordings under `folder`, sorted; see `SUFFIXES`."""
    return [str(path) for path in sorted(folder.rglob("*")) if path.suffix in SUFFIXES and path.is_file()]
