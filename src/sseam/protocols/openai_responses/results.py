"""A tool's result as the output item that belongs to its call: built-in tools of the client have their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from ...content import Content, ImageContent, TextContent
from ...message import ToolCall
from ...request import data_url, result_text
from ...tools import ToolResult

__all__ = ["result_item"]


def result_item(result: ToolResult, call: ToolCall, part: Callable[[Content], dict[str, Any]]) -> dict[str, Any]:
    """The item; `part` gives a content part in the form of an input. No item knows failure but by its text."""
    kind = call.extra.get("type")
    match kind:
        case "shell_call":
            return {"type": "shell_call_output", "call_id": result.call_id, "output": _shell_output(result)}
        case "local_shell_call":
            # Its output is paired by the item's id.
            id = call.extra.get("id", result.call_id)
            return {"type": "local_shell_call_output", "id": id, "output": result_text(result)}
        case "apply_patch_call":
            status = "failed" if result.is_error else "completed"
            fields = {"call_id": result.call_id, "status": status, "output": result_text(result)}
            return {"type": "apply_patch_call_output", **fields}
        case "computer_call" if any(isinstance(shown, ImageContent) for shown in result.content):
            image = next(shown for shown in result.content if isinstance(shown, ImageContent))
            screenshot = {"type": "computer_screenshot", "image_url": data_url(image)}
            return {"type": "computer_call_output", "call_id": result.call_id, "output": screenshot}
        case "tool_search_call":
            return {"type": "tool_search_output", "call_id": result.call_id, "tools": _data(result) or []}
        case _:
            kind = "custom_tool_call_output" if call.kind == "custom" else "function_call_output"
            return {"type": kind, "call_id": result.call_id, "output": _output(result, part)}


def _output(result: ToolResult, part: Callable[[Content], dict[str, Any]]) -> str | list[dict[str, Any]]:
    if all(isinstance(shown, TextContent) for shown in result.content) or result.is_error:
        return result_text(result)
    return [part(shown) for shown in result.content]


def _shell_output(result: ToolResult) -> list[Any]:
    """What the tool gave in the provider's own form, else its text as the output of one command."""
    data = _data(result)
    if data is not None:
        return data
    text = result_text(result)
    streams = {"stdout": "", "stderr": text} if result.is_error else {"stdout": text, "stderr": ""}
    return [{**streams, "outcome": {"type": "exit", "exit_code": 1 if result.is_error else 0}}]


def _data(result: ToolResult) -> list[Any] | None:
    data: object = result.data
    return cast("list[Any]", data) if isinstance(data, list) else None
