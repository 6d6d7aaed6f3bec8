"""What passes between a tool and whoever runs it: the context goes in, the result comes out."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

import msgspec

from ..content import Content, DocumentContent, ImageContent, TextContent
from .arguments import ToolArgumentsError

__all__ = ["ToolContext", "ToolError", "ToolResult"]


class ToolError(Exception):
    """Raised by a tool on purpose: its text is meant for the model and is shown to it."""


def _ignore(value: object) -> None:
    del value


class ToolContext(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What a tool may know of its own call: it asks for this with a parameter of this type.

    Attributes:
        call_id: the id of the call.
        name: the tool's name.
        progress: reports a value to whoever watches the run; may be called from any thread.
        cancellation: set when the call is cancelled. A tool in a thread cannot be interrupted: it
            looks at `cancelled`, or waits with `cancellation.wait(seconds)` in place of sleeping.
    """

    call_id: str
    name: str
    progress: Callable[[object], None] = _ignore
    cancellation: threading.Event = msgspec.field(default_factory=threading.Event)

    @property
    def cancelled(self) -> bool:
        """Whether the call was cancelled, so that its result will not be used."""
        return self.cancellation.is_set()


class _Call(Protocol):
    """What a result needs of its call: `ToolCall`, `WithheldCall` and `InvalidToolCall` have it."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...


class ToolResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The one result of one call. It goes through JSON and comes back equal.

    Attributes:
        call_id: the id of the call.
        name: the tool's name.
        content: what the model sees.
        data: the structured value behind a JSON text, as plain JSON values; None where there is none.
        is_error: the tool failed or was not run; `content` says why.
    """

    call_id: str
    name: str
    content: tuple[Content, ...] = ()
    data: Any = None
    is_error: bool = False

    @classmethod
    def from_value(cls, call: _Call, value: object) -> ToolResult:
        """The result for what a tool returned. Never raises.

        Text is passed on; so are content parts, alone or in a list that may hold text as well. A
        `ToolResult` is kept and gets this call's id and name. Half of a surrogate pair in a text is replaced, and
        what has one elsewhere becomes an error. Everything else that has a JSON form
        (dict, list, number, None, dataclass, Struct, pydantic model, datetime …) becomes JSON text,
        its plain value beside it in `data`. A value without one (bytes included: say what they are
        with `ImageContent` or `DocumentContent`) becomes an error that names its type.
        """
        match value:
            case ToolResult():
                return cls._from_result(call, value)
            case str():
                return cls(call_id=call.id, name=call.name, content=(TextContent(_unicode(value)),))
            case TextContent() | ImageContent() | DocumentContent():
                return cls._from_result(call, cls(call_id="", name="", content=(value,)))
            case list() | tuple() if _is_content(cast("Sequence[object]", value)):
                items = cast("Sequence[str | Content]", value)
                parts = tuple(TextContent(item) if isinstance(item, str) else item for item in items)
                return cls._from_result(call, cls(call_id="", name="", content=parts))
            case bytes() | bytearray() | memoryview():
                return cls.error(call, f"tool {call.name} returned bytes, which are no text")
            case _:
                return cls._from_data(call, value)

    @classmethod
    def _from_result(cls, call: _Call, result: ToolResult) -> ToolResult:
        """The result for this call; an error where it could not be stored or sent."""
        try:
            content = tuple(
                TextContent(_unicode(part.text)) if isinstance(part, TextContent) else part for part in result.content
            )
            kept = msgspec.structs.replace(result, call_id=call.id, name=call.name, content=content)
            msgspec.json.encode(kept)
        except Exception as error:
            detail = f"a result that has no JSON form ({type(error).__name__})"
            return cls.error(call, f"tool {call.name} returned {detail}")
        return kept

    @classmethod
    def _from_data(cls, call: _Call, value: object) -> ToolResult:
        try:
            text = msgspec.json.encode(value, enc_hook=_encode_model).decode()
            # Read back: `data` holds what the text says, and nothing that JSON would lose.
            data = msgspec.json.decode(text)
        except Exception as error:
            detail = f"{type(value).__name__}, which has no JSON form ({type(error).__name__})"
            return cls.error(call, f"tool {call.name} returned {detail}")
        return cls(call_id=call.id, name=call.name, content=(TextContent(text),), data=data)

    @classmethod
    def error(cls, call: _Call, text: str) -> ToolResult:
        """An error result with this text."""
        return cls(call_id=call.id, name=call.name, content=(TextContent(_unicode(text)),), is_error=True)

    @classmethod
    def from_exception(cls, call: _Call, error: BaseException, *, expose_errors: bool = False) -> ToolResult:
        """The error result for what a tool raised.

        A `ToolError` and a `ToolArgumentsError` are meant for the model and shown in full. Of any
        other exception only the class is named, since its message may hold what the model's provider
        must not see; `expose_errors` shows message and traceback.
        """
        if isinstance(error, ToolArgumentsError):
            return cls.error(call, str(error))
        if isinstance(error, ToolError):
            return cls.error(call, f"{type(error).__name__}: {error}")
        text = f"tool {call.name} failed: {type(error).__name__}"
        if expose_errors:
            text = f"{text}\n{''.join(traceback.format_exception(error))}"
        return cls.error(call, text)

    @property
    def text(self) -> str:
        """All text of the content, parts joined with nothing between."""
        return "".join(part.text for part in self.content if isinstance(part, TextContent))


def _is_content(parts: Sequence[object]) -> bool:
    kinds = [isinstance(part, TextContent | ImageContent | DocumentContent) for part in parts]
    return any(kinds) and all(kind or isinstance(part, str) for kind, part in zip(kinds, parts, strict=True))


def _unicode(text: str) -> str:
    """`text` with each lone surrogate (a file name that is no UTF-8) replaced: no request could carry it."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _encode_model(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    raise TypeError(f"{type(value).__name__} has no JSON form")
