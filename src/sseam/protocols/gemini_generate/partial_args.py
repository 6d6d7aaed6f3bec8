"""Streamed arguments: values for places in an object, in the order of its text, to the text of that object.

Each entry names its place (`$.list[0].name`) and gives a scalar whole or a string in pieces. They come
in the order in which the finished object is written, so that each adds text behind what is there; an
entry that would change what is written already is refused. Source: Google's "Function calling" page and
the recordings of `streamFunctionCallArguments` (read 2026-11-29).
"""

from __future__ import annotations

import re
from json.encoder import encode_basestring as quoted
from typing import TypeAlias

import msgspec

from ..._persistent import Index
from .wire import PartialArg

__all__ = ["BadEntry", "Writer", "close", "write"]

Segment: TypeAlias = str | int


class BadEntry(ValueError):
    """An entry that cannot be; the text says why."""


class _Level(msgspec.Struct, frozen=True):
    """An object or array that is still open.

    Attributes:
        keys: the keys written, None for an array.
        last: the key or index written last; size: how many there are.
    """

    keys: Index[str] | None
    last: Segment | None = None
    size: int = 0

    @property
    def bracket(self) -> str:
        return "]" if self.keys is None else "}"


class Writer(msgspec.Struct, frozen=True):
    """Where the text of a call's arguments stands.

    Attributes:
        levels: the open containers, outermost first.
        string: the place of the string that goes on, None if none does.
    """

    levels: tuple[_Level, ...] = ()
    string: str | None = None


_SEGMENT = re.compile(r"""\.([^.\[\]"'*?()@\s][^.\[\]"'*?()@]*)|\[(\d{1,9})\]""")


def _place(path: str) -> tuple[list[Segment], bool]:
    """The segments of a path, and whether it ends in `[]`, which means the array itself."""
    array = path.endswith("[]")
    body = path[:-2] if array else path
    if not body.startswith("$"):
        raise BadEntry(f"the path {path!r} does not begin with '$'")
    segments: list[Segment] = []
    at = 1
    while at < len(body):
        found = _SEGMENT.match(body, at)
        if found is None:
            raise BadEntry(f"the path {path!r} has an unknown syntax at character {at}")
        segments.append(found[1] if found[2] is None else int(found[2]))
        at = found.end()
    return segments, array


def write(writer: Writer, entry: PartialArg) -> tuple[Writer, str]:
    """The writer after an entry, and the text that it adds. Raises `BadEntry`."""
    path = entry.json_path
    if path is None:
        raise BadEntry("an entry has no jsonPath")
    goes_on = entry.will_continue is True
    if writer.string is not None:
        if path != writer.string or entry.string_value is None:
            raise BadEntry(f"the string at {writer.string!r} has not ended when {path!r} comes")
        text = quoted(entry.string_value)[1:-1]
        return (writer, text) if goes_on else (Writer(writer.levels), f'{text}"')
    segments, array = _place(path)
    value = _value(entry, path)
    if value is None:
        return (writer, "") if goes_on else _without_value(writer, segments, array, path)
    if array or not segments:
        raise BadEntry(f"the path {path!r} cannot have a value")
    if entry.string_value is not None and goes_on:
        levels, text = _open(writer.levels, segments, value[:-1], path)
        return Writer(levels, path), text
    levels, text = _open(writer.levels, segments, value, path)
    return Writer(levels), text


def close(writer: Writer) -> str:
    """The text that ends the arguments; what a string that goes on lacks is not made up."""
    return "" if writer.string is not None else _closing(writer.levels)


def _value(entry: PartialArg, path: str) -> str | None:
    values = [
        *([] if entry.string_value is None else [quoted(entry.string_value)]),
        *([] if entry.number_value is None else [msgspec.json.encode(entry.number_value).decode()]),
        *([] if entry.bool_value is None else ["true" if entry.bool_value else "false"]),
        *([] if entry.null_value is None else ["null"]),
    ]
    if len(values) > 1:
        raise BadEntry(f"the entry for {path!r} has {len(values)} values")
    return values[0] if values else None


def _without_value(writer: Writer, segments: list[Segment], array: bool, path: str) -> tuple[Writer, str]:
    """The end of a container, or all of an empty one."""
    levels = writer.levels
    shared = _shared(levels, segments)
    if shared == len(segments):  # it is open, and all that is in it has come
        kept = max(shared, 1)
        return Writer(levels[:kept]), _closing(levels[kept:])
    if shared == len(segments) - 1 and shared < len(levels) and _is_written(levels[shared], segments[-1]):
        return writer, ""
    opened, text = _open(levels, segments, "[]" if array else "{}", path)
    return Writer(opened), text


def _shared(levels: tuple[_Level, ...], segments: list[Segment]) -> int:
    """How many segments lead along containers that are open."""
    count = 0
    while count < len(segments) and count + 1 < len(levels) and levels[count].last == segments[count]:
        count += 1
    return count


def _is_written(level: _Level, segment: Segment) -> bool:
    if level.keys is None:
        return isinstance(segment, int) and segment < level.size
    return isinstance(segment, str) and level.keys.get(segment) is not None


def _open(levels: tuple[_Level, ...], segments: list[Segment], value: str, path: str) -> tuple[tuple[_Level, ...], str]:
    """The levels and the text with `value` written at a new place: what leads there is opened, the rest closed."""
    opened = list(levels)
    text: list[str] = []
    if not opened:
        opened.append(_Level(Index()))
        text.append("{")
    shared = _shared(levels, segments)
    text.append(_closing(levels[shared + 1 :]))
    del opened[shared + 1 :]
    for segment, following in zip(segments[shared:], [*segments[shared + 1 :], None], strict=True):
        opened[-1], lead = _enter(opened[-1], segment, path)
        text.append(lead)
        if following is not None:
            opened.append(_Level(Index() if isinstance(following, str) else None))
            text.append("{" if isinstance(following, str) else "[")
    text.append(value)
    return tuple(opened), "".join(text)


def _enter(level: _Level, segment: Segment, path: str) -> tuple[_Level, str]:
    """The level with a new entry, and what stands in front of its value."""
    comma = "," if level.size else ""
    if (level.keys is None) != isinstance(segment, int):
        raise BadEntry(f"the path {path!r} takes an object for an array, or an array for an object")
    if _is_written(level, segment):
        raise BadEntry(f"the path {path!r} leads to what is written already")
    if level.keys is None:
        if segment != level.size:
            raise BadEntry(f"the path {path!r} leaves a gap in an array of {level.size:,}")
        return _Level(None, segment, level.size + 1), comma
    assert isinstance(segment, str)
    return _Level(level.keys.add(segment, level.size), segment, level.size + 1), f"{comma}{quoted(segment)}:"


def _closing(levels: tuple[_Level, ...]) -> str:
    return "".join(level.bracket for level in reversed(levels))
