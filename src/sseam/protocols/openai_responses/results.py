"""A tool's result as the output item that belongs to its call: built-in tools of the client have their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import msgspec

from ...content import Content, ImageContent, TextContent
from ...context import HistoryMessage, ToolResultMessage
from ...handover import without
from ...message import Block, Message, ToolCall
from ...request import data_url, result_text
from ...target import Messages, with_content
from ...tools import ToolResult
from ...transform import described_result

__all__ = ["drop_unseen_screens", "has_no_call_id", "result_item"]


def drop_unseen_screens(messages: Messages) -> Messages:
    """The messages without calls of a computer whose result shows no screen, and without those results.

    Such a call takes nothing but a screenshot for an answer, and it must have one. Expects ids that are used once.
    """
    results = [result for message in messages if isinstance(message, ToolResultMessage) for result in message.results]
    unseen = {result.call_id for result in results if _screen(result) is None}

    def goes(block: Block) -> bool:
        return isinstance(block, ToolCall) and block.extra.get("type") == "computer_call" and block.id in unseen

    said = (block for message in messages if isinstance(message, Message) for block in message.content)
    gone = {block.id for block in said if isinstance(block, ToolCall) and goes(block)}

    def cleaned(message: HistoryMessage) -> HistoryMessage:
        match message:
            case Message():
                return with_content(message, without(message.content, goes, paired=True))
            case ToolResultMessage():
                kept = (result for result in message.results if result.call_id not in gone)
                return msgspec.structs.replace(message, results=tuple(kept))
            case _:
                return message

    return tuple(map(cleaned, messages)) if gone else messages


def _screen(result: ToolResult) -> ImageContent | None:
    return next((shown for shown in result.content if isinstance(shown, ImageContent)), None)


def result_item(result: ToolResult, call: ToolCall, part: Callable[[Content], dict[str, Any]]) -> dict[str, Any]:
    """The item; `part` gives a content part in the form of an input. No item knows failure but by its text."""
    kind = call.extra.get("type")
    match kind:
        case "shell_call":
            return {"type": "shell_call_output", "call_id": result.call_id, "output": _shell_output(result)}
        case "local_shell_call":
            # Its output is paired by the item's id.
            id = call.extra.get("id", result.call_id)
            return {"type": "local_shell_call_output", "id": id, "output": _text(result)}
        case "apply_patch_call":
            status = "failed" if result.is_error else "completed"
            fields = {"call_id": result.call_id, "status": status, "output": _text(result)}
            return {"type": "apply_patch_call_output", **fields}
        case "computer_call" if (image := _screen(result)) is not None:
            screenshot = {"type": "computer_screenshot", "image_url": data_url(image)}
            return {"type": "computer_call_output", "call_id": result.call_id, "output": screenshot}
        case "tool_search_call":
            # The one call that may come without an id, which is then made up.
            pair = {} if has_no_call_id(call) else {"call_id": result.call_id}
            return {"type": "tool_search_output", **pair, "tools": _data(result) or []}
        case _:
            kind = "custom_tool_call_output" if call.kind == "custom" else "function_call_output"
            return {"type": kind, "call_id": result.call_id, "output": _output(result, part)}


def has_no_call_id(call: ToolCall) -> bool:
    """Whether the wire gave none: what the call has was made for it here."""
    return "call_id" in call.extra and call.extra["call_id"] is None


def _output(result: ToolResult, part: Callable[[Content], dict[str, Any]]) -> str | list[dict[str, Any]]:
    if all(isinstance(shown, TextContent) for shown in result.content):
        return result_text(result)
    shown = [part(shown) for shown in result.content]
    return [part(TextContent("Error:")), *shown] if result.is_error else shown


def _text(result: ToolResult) -> str:
    """The result where its output is text alone: of what is attached, that it was there."""
    return result_text(described_result(result, "the output of this tool is text"))


def _shell_output(result: ToolResult) -> list[Any]:
    """What the tool gave in the provider's own form, else its text as the output of one command."""
    data = _data(result)
    if data is not None:
        return data
    text = _text(result)
    streams = {"stdout": "", "stderr": text} if result.is_error else {"stdout": text, "stderr": ""}
    return [{**streams, "outcome": {"type": "exit", "exit_code": 1 if result.is_error else 0}}]


def _data(result: ToolResult) -> list[Any] | None:
    data: object = result.data
    return cast("list[Any]", data) if isinstance(data, list) else None
