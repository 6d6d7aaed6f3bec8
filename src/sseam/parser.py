"""Bytes to neutral events, fed by hand: the sans-I/O core in one object."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Collection, Iterable
from typing import Any, TypedDict, Unpack

from . import fold
from ._broken import is_broken_connection, transport_error
from .decoding import loads
from .detect import detect
from .dialect import Dialect
from .errors import FramingError, ProtocolError, SseamError, TruncatedStream, excerpt
from .events import Done, Event, Failed
from .jsonarray import AnyFramer
from .message import Message
from .protocols import ARRAYS, load
from .sse import Frame, Framer, Limits, Tail

__all__ = ["Parser", "ParserOptions", "chunks_of", "parse", "parse_response"]


class ParserOptions(TypedDict, total=False):
    """The keyword arguments of `Parser`, which everything that makes one takes too."""

    dialect: str | Dialect | None
    strict: bool
    tools: Iterable[object]
    accept: Collection[str]
    limits: Limits


@functools.cache
def _beginning(protocol: str) -> fold.State[Any]:
    """The state before the first event where nothing is asked for: it never changes, so one serves all parsers."""
    return load(protocol).initial()


class Parser:
    """Reads one response.

    Args:
        protocol: "anthropic-messages", "openai-chat", "openai-responses", "gemini-generate" or
            "gemini-interactions".
        dialect: what the server is known to do otherwise: a name from the protocol's `DIALECTS`, or
            a `Dialect`.
        strict: refuse soft deviations that the dialect does not list.
        tools: the tools that the request declared: `Tool` objects, dicts in any provider's form, or
            names. With none nothing is checked against them.
        accept: neutral stop reasons to take as an end besides "end_turn" and "tool_use".
        limits: for the framer.

    Attributes:
        state: the reducer's state: another object after whatever said something, the same after a ping.

    Raises:
        TypeError, ValueError: an argument that is none of these.
    """

    def __init__(
        self,
        protocol: str,
        *,
        dialect: str | Dialect | None = None,
        strict: bool = False,
        tools: Iterable[object] = (),
        accept: Collection[str] = (),
        limits: Limits = Limits(),
    ) -> None:
        self._protocol = load(protocol)
        self._decode = self._protocol.decode
        self._reduce = self._protocol.reduce
        self._make_framer = lambda: AnyFramer(limits) if protocol in ARRAYS else Framer(limits)
        self._framer = self._make_framer()
        if dialect is None and not (strict or tools or accept):
            self.state = _beginning(protocol)
        else:
            self.state = self._protocol.initial(dialect=dialect, strict=strict, tools=tools, accept=accept)
        self._result: Done | Failed | None = None
        self._first: bytes | None = None  # of what came, to tell what it is where it is not understood

    @property
    def done(self) -> bool:
        """Whether the terminal event was given: no more bytes are needed, and more are not read."""
        return self._result is not None

    @property
    def partial(self) -> Message:
        """The message so far: text as far as it came, released calls, everything else withheld."""
        return fold.partial(self.state)

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that `chunk` completes. Never raises for what the stream holds: a fault is a
        last `Failed`."""
        if self._result is not None:
            return []
        try:
            frames = self._framer.feed(chunk)
        except FramingError as error:
            events = self._run(error.frames)
            return events if self._result is not None else events + self._fail(error)
        return self._run(frames) if frames else []

    def reconnect(self) -> None:
        """The rest of the events comes in another body: whatever frame was cut is forgotten."""
        self._framer = self._make_framer()

    def feed_frame(self, frame: Frame) -> list[Event]:
        """The events of one frame that was framed elsewhere. Not to be mixed with `feed`."""
        return self._run([frame]) if self._result is None else []

    def close(self) -> Message:
        """The message, once the input is over. Raises the error that `Failed` carried."""
        if self._result is None:
            self.finish()
        return self.result()

    def finish(self, *, recording: bool = False) -> list[Event]:
        """The input is over: the terminal event, if there was none.

        Args:
            recording: the input is a whole recording. A last frame that lacks only its blank line is
                used, as the deviation "unterminated_tail".
        """
        if self._result is not None:
            return []
        tail = self._framer.close()
        lost = _is_lost(tail)
        events: list[Event] = []
        body = _json_body(tail.stray, alone=not self.state.head.begun)
        try:
            if not body and tail.stray.strip() and _STRAY in self._protocol.DEVIATIONS:
                self.state = fold.note(self.state, _STRAY)
            if recording and tail.frame is not None and _is_whole(tail.frame.data):
                self.state = fold.note(self.state, "unterminated_tail")
                events += self._run([tail.frame])
                lost = False
            elif body and not self.state.head.begun and "json_completion_body" in self._protocol.DEVIATIONS:
                self.state = fold.note(self.state, "json_completion_body")
        except ProtocolError as error:
            return self._fail(error.at(frame=tail.frames, offset=tail.offset))
        if self._result is None and body:
            events += self.feed_body(body)
            lost = False
        if self._result is None:
            state, last = self._protocol.finish(self.state)
            if lost and isinstance(last[-1], Done):
                state, last = fold.fail(self.state, TruncatedStream("stream ended inside a frame"))
            self.state = state
            events += self._note(last)
        if isinstance(failed := self.state.head.result, Failed):
            _add_tail(failed.error, tail)
        return events

    def abort(self, error: SseamError) -> list[Event]:
        """The input broke off for a reason of its own, `error`: the `Failed` event for it."""
        return self._fail(error) if self._result is None else []

    def result(self) -> Message:
        """The message of the terminal event, which must have come. Raises the error of a `Failed`."""
        match self._result:
            case Done(_, message):
                return message
            case Failed(error):
                raise error.with_traceback(None)  # else a second call would show the first one's too
            case None:
                raise RuntimeError("the stream is not over")

    def _run(self, frames: list[Frame]) -> list[Event]:
        if self._first is None and frames:
            self._first = frames[0].data
        state = self.state
        decode, reduce = self._decode, self._reduce
        events: list[Event] = []
        for frame in frames:
            try:
                state, caused = reduce(state, decode(frame))
            except ProtocolError as error:
                state, caused = fold.fail(state, error)
            except RecursionError:  # how deep is too deep depends on the caller's own stack
                state, caused = fold.fail(state, ProtocolError("data is nested too deeply"))
            events += caused
            result = state.head.result
            if result is not None:
                self.state = state
                self._note(())
                if type(result) is Failed:
                    result.error.at(frame=frame.number, offset=frame.offset)
                break
        self.state = state
        return events

    def _fail(self, error: SseamError) -> list[Event]:
        self.state, events = fold.fail(self.state, error)
        return self._note(events)

    def _note(self, events: tuple[Event, ...]) -> list[Event]:
        self._result = self.state.head.result
        if isinstance(self._result, Failed) and not self.partial.content:
            self._suggest(self._result.error)
        return list(events)

    def _suggest(self, error: SseamError) -> None:
        """Nothing was understood: say so where the bytes are those of another protocol."""
        found = detect(self._first or b"")
        if isinstance(error, ProtocolError) and found not in (None, self._protocol.NAME) and found not in error.hint:
            what = f"The data looks like {found}: read it with that protocol"
            error.hint = f"{error.hint}. {what}" if error.hint else what

    def feed_body(self, body: bytes) -> list[Event]:
        """The events that say the same as a whole non-streaming body."""
        self._first = body
        try:
            wires = self._protocol.read_response(self._load(body))
        except ProtocolError as error:
            return self._fail(error)
        events: list[Event] = []
        for wire in wires:
            self.state, caused = self._reduce(self.state, wire)
            events += caused
        return events + self._note(())

    def _load(self, body: bytes) -> Any:
        try:
            return loads(body)
        except ProtocolError as error:
            what = "What stands outside of events" if self.state.head.begun else "The body"
            found = f"{what} is {_looks_like(body)}: {excerpt(body[:1024])}"
            raise FramingError(f"not an event stream, and {error.detail}", hint=found) from None


def parse(data: bytes | Iterable[bytes], protocol: str, **options: Unpack[ParserOptions]) -> Message:
    """The message in a recording: all of its bytes, or its chunks in order.

    A last frame that lacks only its blank line is used, as the deviation "unterminated_tail". Nothing
    behind the terminal event is read.

    Args:
        data: the bytes, or an iterable of them.
        protocol: as `Parser` takes it.
        **options: `dialect`, `strict`, `tools`, `accept` and `limits`, as `Parser` takes them.

    Raises:
        SseamError: what is wrong with the stream; its `partial` is the message so far.
        TypeError, ValueError: an argument that is none of these.
    """
    parser = Parser(protocol, **options)
    try:
        for chunk in chunks_of(data):
            parser.feed(chunk)
            if parser.done:
                break
    except Exception as cause:
        if not is_broken_connection(cause):
            raise
        error = transport_error(cause, started=parser.state.head.begun)
        error.__cause__ = cause
        parser.abort(error)
    else:
        parser.finish(recording=True)
    return parser.result()


def chunks_of(source: bytes | Iterable[bytes]) -> Iterable[bytes]:
    """The chunks of a source, which bytes are one of. Raises `TypeError` for what has none."""
    if isinstance(source, bytes | bytearray | memoryview):
        return (bytes(source),)
    given: Any = source
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        hint = ". Of a file: path.read_bytes()" if isinstance(given, str) or hasattr(given, "__fspath__") else ""
        raise TypeError(f"expected bytes or an iterable of them, got {type(given).__name__}{hint}")
    return source


def parse_response(body: bytes | str | dict[str, Any], protocol: str, **options: Unpack[ParserOptions]) -> Message:
    """The message in a non-streaming JSON body, checked as a stream is.

    Args:
        body: the body, or what it decodes to.

    Raises:
        SseamError: as `parse` does; `ApiError` for an error body.
        TypeError: a body that is neither text nor JSON values.
    """
    parser = Parser(protocol, **options)
    try:
        text = body if isinstance(body, bytes | str) else json.dumps(body, ensure_ascii=False)
        data = text.encode() if isinstance(text, str) else text
    except UnicodeEncodeError:
        parser.abort(ProtocolError("the body holds half of a surrogate pair, which no UTF-8 text can hold"))
    except RecursionError:
        parser.abort(ProtocolError("the body is nested too deeply"))
    else:
        parser.feed_body(data)
    return parser.close()


# A service that fails in mid-stream may write its error as plain JSON over several lines (Gemini does),
# or into a field of its own (llama-box).
_JSON_LINE = re.compile(rb"(?:^|[\r\n])[ \t]*(?:error:[ \t]*)?([{\[])")


def _json_body(stray: bytes, *, alone: bool) -> bytes:
    """Of lines that are no field, what is to be read as a body: all if they came `alone`, else JSON only."""
    if alone:
        return stray if stray.strip() else b""
    found = _JSON_LINE.search(stray)
    return stray[found.start(1) :] if found else b""


# For protocols whose answer ends with the input.
_STRAY = "stray_text"

_NOTHING = re.compile(rb":.*|[ \t]+", re.DOTALL)  # a comment, or blanks


def _is_lost(tail: Tail) -> bool:
    """Whether the end of the input threw away what may have been part of the answer."""
    marker = tail.frame is not None and tail.frame.data.strip() == b"[DONE]"
    return tail.incomplete and not marker and not _NOTHING.fullmatch(tail.data)


def _is_whole(data: bytes) -> bool:
    """Whether data that lacks its blank line cannot be the beginning of something longer."""
    if data.strip() == b"[DONE]":
        return True
    try:
        return isinstance(json.loads(data), dict)
    except (ValueError, RecursionError):
        return False


_COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}


def _looks_like(body: bytes) -> str:
    for magic, coding in _COMPRESSED.items():
        if body.startswith(magic):
            return f"compressed ({coding}), and is to be decompressed before it is read"
    start = body.lstrip()[:1].lower()
    if start in (b"{", b"["):
        return "broken JSON"
    return "HTML" if start == b"<" else "text"


def _add_tail(error: SseamError, tail: Tail) -> None:
    """Say where the input ended, and in the middle of what. Frames that were fed whole have no place."""
    if tail.offset or tail.data or tail.stray:
        error.at(frame=tail.frames, offset=tail.offset)
    if isinstance(error, TruncatedStream) and tail.data:
        error.tail = tail.data
        error.hint = f"{error.hint}{'. ' if error.hint else ''}The input ended inside a frame: {excerpt(tail.data)}"
