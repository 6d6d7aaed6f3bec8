"""Recordings as answers: which pieces come, when, and how they end.

It is the plan alone; `sseam.replay` and `sseam.serve` carry it out.
"""

from __future__ import annotations

import itertools
import math
import os
import random
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypedDict, Unpack

import msgspec

from ..errors import RequestError
from .faults import Fault, apply
from .record import BLANK_LINE, Ending, Recording, load

__all__ = ["Answer", "Answers", "Cuts", "RandomCuts", "ReplayOptions", "Source", "Step", "split"]


class RandomCuts(msgspec.Struct, frozen=True):
    """Cuts at random places, the same for the same seed.

    Attributes:
        seed: of the random numbers.
        mean: bytes of a piece on average.
    """

    seed: int = 0
    mean: int = 40

    def __post_init__(self) -> None:
        _require_size(self.mean)


Cuts = Literal["whole", "frames", "recorded"] | int | Sequence[int] | RandomCuts
"""How a body is cut into pieces.

"whole": not at all. "frames": behind every blank line. "recorded": as it came. A number: every so many bytes.
Numbers: before each of these bytes; those beyond the end mean nothing. `RandomCuts`: at random.
"""

Source = str | os.PathLike[str] | bytes | Recording
"""The path of a file as `record.load` reads it, the bytes of a body, or a recording."""


class ReplayOptions(TypedDict, total=False):
    """How recordings are played, the same for the transport, the server and the fixture.

    Attributes:
        cuts: where the body is cut; "frames" when not given.
        pace: seconds a frame, waited before its first piece, or "recorded" for the arrival times of the recording;
            0 when not given.
        status: HTTP status in place of the recording's.
        headers: response headers beside the recording's or in place of them.
        fault: what goes wrong, in each recording.
        folder: where relative paths begin; the working directory when not given.
    """

    cuts: Cuts
    pace: float | Literal["recorded"]
    status: int
    headers: Mapping[str, str]
    fault: Fault | None
    folder: str | os.PathLike[str]


class Step(NamedTuple):
    """A piece of a body, and the seconds to wait before it."""

    wait: float
    chunk: bytes


class Answer(NamedTuple):
    """A response: what comes, when, and how it ends."""

    status: int
    headers: dict[str, str]
    steps: list[Step]
    ending: Ending


class Answers:
    """Recordings as answers to requests, in the order in which these come.

    A list of recordings answers as many requests; one recording by itself answers every request.

    Raises:
        TypeError: what is no recording, an option that there is not, or one of another type.
        ValueError: an empty list, cuts or a fault that cannot be.
        OSError: a file cannot be read.
    """

    def __init__(self, recordings: Source | Sequence[Source], **options: Unpack[ReplayOptions]) -> None:
        _check(options)
        given: Any = recordings
        single = isinstance(given, str | bytes | Recording) or not hasattr(given, "__iter__")
        sources: Any = [given] if single else given
        if not sources:
            raise ValueError("no recordings to replay")
        self._answers = [_answer(source, options) for source in sources]
        self._taken = itertools.count()
        self._again = single

    def take(self) -> Answer:
        """The next answer. From any thread.

        Raises:
            RequestError: there were fewer recordings than requests.
        """
        number = next(self._taken)
        if self._again:
            return self._answers[0]
        if number >= len(self._answers):
            raise RequestError(f"request {number + 1} has no recording: {len(self._answers)} were given")
        return self._answers[number]


def _check(options: ReplayOptions) -> None:
    """Raise what a plan that is made of these would not say."""
    if unknown := options.keys() - ReplayOptions.__annotations__.keys():
        raise TypeError(f"a replay takes {', '.join(ReplayOptions.__annotations__)}, not {', '.join(sorted(unknown))}")
    for name, (kinds, told) in _KINDS.items():
        value = options.get(name)
        if name in options and (not isinstance(value, kinds) or isinstance(value, bool)):
            raise TypeError(f"{name} is {told}, not {value!r}")
    pace = options.get("pace", 0.0)
    if not (pace == "recorded" if isinstance(pace, str) else 0 <= pace < math.inf):
        raise ValueError(f'pace is a number of seconds from 0, or "recorded", not {pace!r}')


# What an option is, as `isinstance` knows it and as it is told. What carries out the others sees to them.
_KINDS: dict[str, tuple[Any, str]] = {
    "pace": ((int, float, str), 'a number of seconds, or "recorded"'),
    "status": (int, "an HTTP status, such as 529"),
    "headers": (Mapping, "a mapping of names to texts"),
}


def _answer(source: Source, options: ReplayOptions) -> Answer:
    recording = _read(source, options.get("folder", ""))
    fault = options.get("fault")
    if fault is not None:
        recording = apply(fault, recording)
    status = options.get("status", recording.status)
    usual = {"content-type": "text/event-stream" if status < 400 else "application/json"}
    given = {name.lower(): value for name, value in options.get("headers", {}).items()}
    chunks = split(recording.data, options.get("cuts", "frames"), recording)
    steps = _paced(chunks, options.get("pace", 0.0), recording)
    return Answer(status, {**usual, **recording.headers, **given}, steps, recording.ending)


def _read(source: Source, folder: str | os.PathLike[str]) -> Recording:
    match source:
        case Recording():
            return source
        case bytes():
            return Recording(source)
        case str() if "\n" in source:
            raise TypeError(f"a recording that is text is the path of a file; {_OF_CONTENT}")
        case str() | os.PathLike():
            try:
                return load(Path(folder, source))
            except OSError as error:
                error.add_note(f"A recording that is text is the path of a file; {_OF_CONTENT}.")
                raise
        case _:
            raise TypeError(f"a recording is a path, bytes or a Recording, not {type(source).__name__}; {_OF_CONTENT}")


_OF_CONTENT = "the content itself is given as bytes"


def split(data: bytes, cuts: Cuts, recording: Recording | None = None) -> list[bytes]:
    """`data` in pieces, none of them empty. "recorded" needs the recording.

    Raises:
        ValueError: cuts that cannot be.
    """
    pieces = pairwise([0, *sorted(_offsets(data, cuts, recording)), len(data)])
    return [data[start:end] for start, end in pieces if start < end]


def _offsets(data: bytes, cuts: Cuts | str, recording: Recording | None) -> list[int]:
    match cuts:
        case "whole":
            return []
        case "frames":
            return [end.end() for end in BLANK_LINE.finditer(data)]
        case "recorded":
            return [end for end in accumulate(size for _, size in _chunks(recording)) if end <= len(data)]
        case int():
            _require_size(cuts)
            return list(range(cuts, len(data), cuts))
        case RandomCuts(seed, mean):
            source = random.Random(seed)
            return [source.randrange(len(data)) for _ in range(len(data) // mean)]
        case str():
            raise ValueError(f"no cuts {cuts!r}. There are {_CUTS}")
        case Sequence():
            return [offset for offset in cuts if 0 < offset < len(data)]
        case _:
            raise TypeError(f"no cuts {cuts!r}. There are {_CUTS}")


_CUTS = '"whole", "frames", "recorded", a number of bytes, a list of offsets, and RandomCuts'


def _require_size(size: int) -> None:
    if size < 1:
        raise ValueError(f"pieces have at least one byte, not {size}")


def _chunks(recording: Recording | None) -> tuple[tuple[float, int], ...]:
    if recording is None or not recording.chunks:
        raise ValueError("the recording does not tell when which bytes came")
    return recording.chunks


def _paced(chunks: list[bytes], pace: float | Literal["recorded"], recording: Recording) -> list[Step]:
    if isinstance(pace, str):
        came = _chunks(recording)
    else:
        sizes = map(len, split(b"".join(chunks), "frames"))
        came = [(pace * number, size) for number, size in enumerate(sizes, 1)]
    times = [at for at, _ in came]
    ends = list(accumulate(size for _, size in came))
    # A piece comes when its last byte did; what a fault put behind the last byte comes with that.
    arrivals = [times[min(bisect_left(ends, end), len(times) - 1)] for end in accumulate(map(len, chunks))]
    return [Step(at - before, chunk) for (before, at), chunk in zip(pairwise([0.0, *arrivals]), chunks, strict=True)]
