"""Everything that sseam raises, in one family.

::

    SseamError
    ├── ProtocolError            the bytes are wrong
    │   ├── FramingError         not an event stream, or over a limit
    │   ├── TruncatedStream      the input ended before the protocol's own end
    │   ├── StopReasonError      the end contradicts the content, or was not accepted
    │   ├── InvalidToolCall      a call's arguments cannot be used
    │   ├── StreamSequenceError  a neutral event out of order
    │   └── OutputProtocolViolation   a tool call written as text
    ├── RequestError             a request that the service would refuse; nothing was sent
    ├── ApiError                 the service said no
    ├── TransportError           connection and time limits
    └── StreamAborted            the reader gave up

An error is made where the rule is broken, which knows the block; the parser adds the frame and
the byte, which only it knows. The text is put together from the fields when it is asked for, so
both arrive in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from .agent.loop import RunReport
    from .message import Message
    from .sse import Frame

__all__ = [
    "ApiError",
    "FramingError",
    "InvalidToolCall",
    "OutputProtocolViolation",
    "ProtocolError",
    "RequestError",
    "SseamError",
    "StopReasonError",
    "StreamAborted",
    "StreamSequenceError",
    "TransportError",
    "TruncatedStream",
    "Where",
    "excerpt",
]


class Where(msgspec.Struct, frozen=True, kw_only=True):
    """The place of a fault. A field is None where it means nothing or is not known.

    Attributes:
        protocol: the protocol's title, as it stands in front of the text ("Anthropic").
        frame: number of the frame in the stream, from 0.
        offset: offset of the frame's first byte in the stream, in bytes.
        block: the wire's own index or key of the block.
        call: the id of the tool call.
    """

    protocol: str | None = None
    frame: int | None = None
    offset: int | None = None
    block: int | str | None = None
    call: str | None = None

    def __str__(self) -> str:
        parts: list[str] = []
        if self.frame is not None:
            parts.append(f"frame {self.frame}")
        if self.offset is not None:
            parts.append(f"byte {self.offset:,}")
        if self.block is not None:
            parts.append(f"block {self.block}")
        if self.call is not None:
            parts.append(f"call {self.call!r}")
        return ", ".join(parts)


def excerpt(data: bytes | str, limit: int = 120) -> str:
    """`data` for a message: whole when short, else head and tail with what is left out."""
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    if len(text) <= limit:
        return repr(text)
    half = limit // 2
    return f"{text[:half]!r} … {len(text) - 2 * half:,} more … {text[-half:]!r}"


class SseamError(Exception):
    """Base of all errors here.

    Two errors are equal when their type, text and place are: the same bytes give the same error,
    however they were cut.

    Attributes:
        detail: what is wrong, in words, without the place.
        where: the place.
        hint: what to do about it, or "".
        partial: the message so far, text and whole calls only; None where no stream was read.
        run: what an agent's run had done when it ended with this error; None outside of a run.
    """

    kind = "error"
    run: RunReport | None = None

    def __init__(
        self, detail: str, *, where: Where | None = None, hint: str = "", partial: Message | None = None
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.where = where or Where()
        self.hint = hint
        self.partial = partial

    def __str__(self) -> str:
        head = f"{self.where.protocol} {self.kind}: " if self.where.protocol else ""
        place = str(self.where)
        return f"{head}{self.detail}{f' ({place})' if place else ''}{f'. {self.hint}' if self.hint else ''}"

    def at(self, **place: Any) -> SseamError:
        """This error with the given fields of its place filled in where they were not known."""
        known = {field: value for field in place if (value := getattr(self.where, field)) is not None}
        self.where = msgspec.structs.replace(self.where, **{**place, **known})
        return self

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash((type(self), self.detail))

    def __reduce__(self) -> tuple[Any, ...]:
        # The default would call __init__ with args alone, which the subclasses do not take.
        return _restore, (type(self), self.args, self.__dict__)


def _restore(cls: type[SseamError], args: tuple[Any, ...], fields: dict[str, Any]) -> SseamError:
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(fields)
    return error


class ProtocolError(SseamError):
    """The bytes break a rule of the protocol."""

    kind = "stream protocol error"


class FramingError(ProtocolError):
    """The bytes are no event stream, or a line or frame is over its limit.

    Attributes:
        frames: the frames that the same chunk completed before the fault.
    """

    def __init__(self, detail: str, *, frames: list[Frame] | None = None, **common: Any) -> None:
        super().__init__(detail, **common)
        self.frames = frames or []


class TruncatedStream(ProtocolError):
    """The input ended before the protocol's own end.

    Attributes:
        tail: the bytes after the last whole frame.
    """

    def __init__(self, detail: str, *, tail: bytes = b"", **common: Any) -> None:
        super().__init__(detail, **common)
        self.tail = tail


class StopReasonError(ProtocolError):
    """The stop reason contradicts the content, or the caller did not accept it.

    Attributes:
        stop_reason: the neutral value, see `sseam.stop`.
        raw_stop_reason: the provider's own word.
    """

    def __init__(
        self, detail: str, *, stop_reason: str | None = None, raw_stop_reason: str | None = None, **common: Any
    ) -> None:
        super().__init__(detail, **common)
        self.stop_reason = stop_reason
        self.raw_stop_reason = raw_stop_reason


class InvalidToolCall(ProtocolError):
    """A tool call that ended, whose arguments, id or name cannot be used.

    Attributes:
        id: the call's id.
        name: the tool's name.
        arguments_json: the argument text exactly as it came.
        reason: "empty", "truncated", "malformed", "not_object", "duplicate_key", "undeclared",
            "unnamed", "duplicate_id" or another rule's name.
    """

    def __init__(
        self,
        detail: str,
        *,
        id: str = "",
        name: str = "",
        arguments_json: str = "",
        reason: str = "malformed",
        **common: Any,
    ) -> None:
        super().__init__(detail, **common)
        self.id = id
        self.name = name
        self.arguments_json = arguments_json
        self.reason = reason


class StreamSequenceError(ProtocolError):
    """A neutral event out of order.

    Attributes:
        event_type: name of the event's class.
        phase: "idle", "streaming" or "terminal".
    """

    kind = "event sequence error"

    def __init__(self, detail: str, *, event_type: str = "", phase: str = "", **common: Any) -> None:
        super().__init__(detail, **common)
        self.event_type = event_type
        self.phase = phase


class OutputProtocolViolation(ProtocolError):
    """A model wrote a tool call as text instead of making one.

    Attributes:
        format: name of the notation that was found.
        tool: the declared tool that it names.
    """

    def __init__(self, detail: str, *, format: str = "", tool: str = "", **common: Any) -> None:
        super().__init__(detail, **common)
        self.format = format
        self.tool = tool


class RequestError(SseamError):
    """What was asked for cannot be sent: the service would refuse it, or a key is missing."""

    kind = "request error"


class ApiError(SseamError):
    """The service said no: an HTTP status, an error body, or an error inside the stream.

    Attributes:
        type: the provider's error type, or None.
        message: the provider's own text.
        code: the provider's error code as text, or None.
        status: the HTTP status; for an error inside a stream the one that the type stands for.
        request_id: the provider's id of the request.
        retry_after: seconds to wait, as the service asked.
        retryable: whether the same request may succeed later.
        delivered: whether content had been handed out before the error.
        raw: the error object or the body as it came.
    """

    kind = "API error"

    def __init__(
        self,
        message: str,
        *,
        type: str | None = None,
        code: str | None = None,
        status: int | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
        retryable: bool = False,
        delivered: bool = False,
        raw: Any = None,
        **common: Any,
    ) -> None:
        label = ", ".join(str(part) for part in (status, type, code) if part is not None)
        super().__init__(f"{message} [{label}]" if label else message, **common)
        self.message = message
        self.type = type
        self.code = code
        self.status = status
        self.request_id = request_id
        self.retry_after = retry_after
        self.retryable = retryable
        self.delivered = delivered
        self.raw = raw


class TransportError(SseamError):
    """The connection broke or a time limit passed.

    Attributes:
        timeout: which limit passed: "connect", "first_event", "idle" or "total"; None for a break.
        retryable: whether another attempt makes sense.
        delivered: whether content had been handed out before the fault.
    """

    kind = "transport error"

    def __init__(
        self, detail: str, *, timeout: str | None = None, retryable: bool = True, delivered: bool = False, **common: Any
    ) -> None:
        super().__init__(detail, **common)
        self.timeout = timeout
        self.retryable = retryable
        self.delivered = delivered


class StreamAborted(SseamError):
    """The stream was given up by its reader: `abort`, `close`, or a cancelled task."""

    kind = "stream"
