"""One way to run a stream through the library, for every table of streams in the tests."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import sseam
from sseam.events import Done, Event, Failed
from sseam.protocols import NAMES
from sseam.stop import NEUTRAL

PROTOCOLS = tuple(NAMES)
ALL_REASONS = frozenset(NEUTRAL)


class Result(NamedTuple):
    """What came of a stream: its events, and the message or the error."""

    events: list[Event]
    message: sseam.Message | None
    error: sseam.SseamError | None

    @property
    def last(self) -> sseam.Message:
        """The message, or what there is of it."""
        message = self.message or (self.error.partial if self.error else None)
        assert message is not None
        return message


def run(chunks: Iterable[bytes], protocol: str, *, recording: bool = True, **options: Any) -> Result:
    """Feed the chunks, end the input, and check what must hold for every stream."""
    parser = sseam.Parser(protocol, **options)
    events: list[Event] = []
    for chunk in chunks:
        events += parser.feed(chunk)
    events += parser.finish(recording=recording)
    return checked(parser, events)


def checked(parser: sseam.Parser, events: list[Event]) -> Result:
    """The result of a finished parser, whose events must obey the grammar."""
    validator = sseam.sequence.Validator()
    for event in events:
        validator.accept(event)
    match events[-1]:
        case Done(_, message):
            assert parser.close() == message
            assert sseam.Message.from_json(message.to_json()) == message
            return Result(events, message, None)
        case Failed(error, message):
            assert error.partial == message
            assert not message.complete
            return Result(events, None, error)
        case last:
            raise AssertionError(f"the stream ended with {last}")


def outcome(result: Result) -> tuple[Any, ...]:
    """A result as a value that does not depend on how the bytes were cut."""
    return (result.events, result.message, str(result.error), type(result.error))


def ended_without_marker(cut: sseam.Message, whole: sseam.Message) -> bool:
    """Whether a cut stream is a message by right: Chat Completions may lack its [DONE], and says so.

    The choice ends with its finish_reason; servers that send no marker are many. What the model said is all there,
    unless the server sends more behind the reason, which is a deviation of its own.
    """
    codes = {deviation.code for deviation in cut.deviations}
    late = {deviation.code for deviation in whole.deviations} & {"delta_after_finish", "finish_conflict"}
    said = [(message.text, message.thinking, message.tool_calls) for message in (cut, whole)]
    return "done_missing" in codes and (said[0] == said[1] or bool(late))


def chunkings(data: bytes, seed: int = 0) -> Iterator[tuple[str, list[bytes]]]:
    """The ways in which a stream is cut: whole, in 7-byte pieces, at random, byte by byte."""
    yield "whole", [data]
    yield "random", random_cuts(data, seed)
    if len(data) <= 65536:
        yield "seven", [data[at : at + 7] for at in range(0, len(data), 7)]
        yield "bytes", [data[at : at + 1] for at in range(len(data))]
    else:
        yield "64 KiB", [data[at : at + 65536] for at in range(0, len(data), 65536)]


def random_cuts(data: bytes, seed: int) -> list[bytes]:
    """`data` in pieces of random sizes, the same for the same seed."""
    source = random.Random(seed)
    cuts = sorted(source.choices(range(len(data) + 1), k=max(2, len(data) // 200)))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def calls(found: Iterable[sseam.ToolCall]) -> list[dict[str, Any]]:
    """Calls as the tables write them."""
    return [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in found]


def load(path: Path) -> Any:
    """The JSON in a file."""
    return json.loads(path.read_text(encoding="utf-8"))
