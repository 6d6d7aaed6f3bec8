"""Whether a message holds what the events gave, and a call what its text spells."""

from __future__ import annotations

from typing import cast

from .events import Event, Opaque, RefusalEnd, ServerTool, TextEnd, ThinkingEnd, ThinkingStart, ToolCallEnd
from .message import (
    OpaqueBlock,
    RedactedThinkingBlock,
    RefusalBlock,
    ServerToolBlock,
    TextBlock,
    ThinkingBlock,
    ToolCall,
)

__all__ = ["is_call", "is_content", "is_redacted", "is_unicode", "same_json"]


def is_content(start: Event, end: Event | None, content: object) -> bool:
    """Whether `content` is the form in a message of the block that `start` opened and `end` ended."""
    match end, content:
        case TextEnd(), TextBlock():
            return content.text == end.text and content.citations == end.citations
        case ThinkingEnd(), RedactedThinkingBlock():
            return is_redacted(start)
        case ThinkingEnd(), ThinkingBlock():
            return not is_redacted(start) and (content.thinking, content.signature) == (end.text, end.signature)
        case RefusalEnd(), RefusalBlock():
            return content.text == end.text
        case ToolCallEnd(), ToolCall():
            return is_call(content, end.call)
        case (ServerTool(), ServerToolBlock()) | (Opaque(), OpaqueBlock()):
            return content == end.block
        case _:
            return False


def is_redacted(start: Event) -> bool:
    """Whether the block that `start` opened is thinking that comes only encrypted."""
    return isinstance(start, ThinkingStart) and start.redacted


def is_call(call: ToolCall, ended: ToolCall) -> bool:
    """Whether `call` is the call of a `ToolCallEnd`."""
    return call is ended or (call == ended and same_json(call.arguments, ended.arguments))


def same_json(value: object, spelled: object) -> bool:
    """Whether `value` is the JSON value `spelled`, as deep as it goes.

    Python's own comparison takes true for 1, a key 1 for a key true, and lets any object answer.
    """
    if isinstance(spelled, dict):
        if not isinstance(value, dict):
            return False
        given, parts = cast("dict[object, object]", value), cast("dict[object, object]", spelled)
        return given.keys() == parts.keys() and all(same_json(given[key], part) for key, part in parts.items())
    if isinstance(spelled, list):
        if not isinstance(value, list):
            return False
        items, expected = cast("list[object]", value), cast("list[object]", spelled)
        return len(items) == len(expected) and all(map(same_json, items, expected))
    if isinstance(spelled, bool) or isinstance(value, bool):
        return value is spelled
    return isinstance(value, int | float | str | None) and value == spelled


def is_unicode(text: object) -> bool:
    """Whether `text` is a text that UTF-8 can hold: a str without half of a surrogate pair."""
    if not isinstance(text, str):
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
