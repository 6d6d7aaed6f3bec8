"""What can go wrong with a recording on its way, as data.

::

    for fault in faults(recording):
        damaged = apply(fault, recording)      # a recording again

A reader that is right answers every fault that `faults` gives with an error, or with the whole recording's own
message where the fault came too late to matter; never with another message. A `Drop` or `Duplicate` of a piece of
text is beyond any reader: no protocol numbers its deltas so that they could be told.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from typing import Literal, get_args

import msgspec

from ..sse import Frame, Framer, encode
from .record import BLANK_LINE, Recording

__all__ = ["Cut", "Drop", "Duplicate", "ErrorEvent", "Fault", "Garbage", "Gzip", "WrongContentType", "apply", "faults"]

_PAGE = "<!doctype html><title>502 Bad Gateway</title><h1>502 Bad Gateway</h1>\n"
# Every protocol reads an error in this, each by the field that it looks at.
_ERROR = '{"type":"error","event_type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'


class _Fault(msgspec.Struct, frozen=True, tag_field="fault", tag=str.lower): ...


class Cut(_Fault, frozen=True):
    """The body ends early: before `byte`, or before `frame`. One of them is given; negative ones count from the end.

    Attributes:
        ending: "end" is a body that is whole for HTTP, as a proxy makes it. "close", "reset", "stall": see `Ending`.
    """

    byte: int | None = None
    frame: int | None = None
    ending: Literal["end", "close", "reset", "stall"] = "close"

    def __post_init__(self) -> None:
        if (self.byte is None) == (self.frame is None):
            raise ValueError("a cut is before a byte or before a frame: give one of them")


class Drop(_Fault, frozen=True):
    """A frame is lost."""

    frame: int


class Duplicate(_Fault, frozen=True):
    """A frame comes twice."""

    frame: int


class Garbage(_Fault, frozen=True):
    """`data` stands in the middle of a frame's data, where it breaks the JSON."""

    frame: int
    data: bytes = b"\x00\xff\xfe\x00"


class ErrorEvent(_Fault, frozen=True):
    """An error event comes before a frame.

    Attributes:
        event: its type.
        data: its payload. The one that is set here is an error in every protocol.
    """

    frame: int
    event: str = "error"
    data: str = _ERROR


class WrongContentType(_Fault, frozen=True):
    """Something else comes with the same status, such as a gateway's page."""

    content_type: str = "text/html; charset=utf-8"
    body: str = _PAGE


class Gzip(_Fault, frozen=True):
    """The body is compressed and no header says so."""


Fault = Cut | Drop | Duplicate | Garbage | ErrorEvent | WrongContentType | Gzip


def apply(fault: Fault, recording: Recording) -> Recording:
    """The recording with the fault in it.

    Raises:
        ValueError: the recording has no such frame.
        TypeError: what is no fault.
    """
    data = recording.data
    match fault:
        case Cut(byte, frame, ending):
            end = byte if frame is None else _frame(data, frame)[1]
            return _with(recording, data[:end], ending=ending)
        case Drop(frame):
            _, start, end = _frame(data, frame)
            return _with(recording, data[:start] + data[end:])
        case Duplicate(frame):
            _, start, end = _frame(data, frame)
            return _with(recording, data[:end] + data[start:])
        case Garbage(frame, garbage):
            found, start, end = _frame(data, frame)
            middle = len(found.data) // 2
            broken = msgspec.structs.replace(found, data=found.data[:middle] + garbage + found.data[middle:])
            return _with(recording, data[:start] + encode(broken) + data[end:])
        case ErrorEvent(frame, event, payload):
            start = _frame(data, frame)[1]
            error = encode(Frame(event, payload.encode(), "", None, 0, 0))
            return _with(recording, data[:start] + error + data[start:])
        case WrongContentType(content_type, body):
            return _with(recording, body.encode(), headers={**recording.headers, "content-type": content_type})
        case Gzip():
            return _with(recording, gzip.compress(data, mtime=0))
        case _:
            names = ", ".join(kind.__name__ for kind in get_args(Fault))
            raise TypeError(f"a fault is one of sseam.faults ({names}), such as Cut(frame=2), not {fault!r}")


def faults(recording: Recording) -> Iterator[Fault]:
    """Faults of every kind that a right reader tells, at each frame: see the top of this module."""
    spans = _frames(recording.data)
    for number, (_, start, end) in enumerate(spans):
        yield Cut(frame=number)
        yield Cut(frame=number, ending="end")
        yield Cut(byte=(start + end) // 2)
        yield Cut(byte=(start + end) // 2, ending="end")
        yield Cut(byte=(start + end) // 2, ending="reset")
        yield Garbage(frame=number)
        yield ErrorEvent(frame=number)
    yield Cut(frame=len(spans) // 2, ending="stall")
    yield WrongContentType()
    yield Gzip()


def _with(recording: Recording, data: bytes, **changes: object) -> Recording:
    return msgspec.structs.replace(recording, data=data, **changes)


def _frame(data: bytes, number: int) -> tuple[Frame, int, int]:
    found = _frames(data)
    if not -len(found) <= number < len(found):
        raise ValueError(f"there is no frame {number}: the recording has {len(found)}")
    return found[number]


def _frames(data: bytes) -> list[tuple[Frame, int, int]]:
    """The frames with where each begins and ends, its blank line included; also one that lacks its blank line."""
    framer = Framer()
    found = framer.feed(data)
    tail = framer.close()
    if tail.frame is not None:
        found.append(tail.frame)
    spans: list[tuple[Frame, int, int]] = []
    for frame in found:
        end = BLANK_LINE.search(data, frame.offset)
        spans.append((frame, frame.offset, end.end() if end else len(data)))
    return spans
