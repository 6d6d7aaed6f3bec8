"""Context, model and options → the request of Gemini's Interactions API.

Nothing is kept at the service: the whole conversation is sent each time (`store` false). Whoever
wants it otherwise says so in `extra_body`.

Source: Google's reference of the Interactions API, read 2026-11-29.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...content import Content, DocumentContent, ImageContent
from ...context import (
    Context,
    HistoryMessage,
    Model,
    NamedTool,
    Options,
    ToolResultMessage,
    UserMessage,
    parts_of,
)
from ...message import (
    Block,
    Message,
    OpaqueBlock,
    RedactedThinkingBlock,
    RefusalBlock,
    ServerToolBlock,
    TextBlock,
    ThinkingBlock,
    ToolCall,
)
from ...request import (
    FunctionTool,
    join_url,
    merge_body,
    merge_headers,
    read_tools,
    require_declared,
    system_parts,
    text_of,
)
from ...request.calls import IdRule
from ...request.families import GeminiFamily, gemini_family, nearest
from ...request.schema_subset import for_gemini
from ...tools import ToolResult
from ...transform import Target, repair

__all__ = ["body", "headers", "target", "url"]


def target(model: Model) -> Target:
    """What a history is repaired for: a result finds its call by id, in the whole conversation."""
    return Target(model=model, ids=IdRule(unique=True), thinking="signed")


def url(model: Model, *, stream: bool = True) -> str:
    """The address that the body is posted to."""
    return join_url(model.base_url, "/interactions")


def headers(options: Options, credential: Mapping[str, str]) -> dict[str, str]:
    """The headers, with the one of `sseam.models.credential`."""
    return merge_headers({"content-type": "application/json", "accept": "text/event-stream", **credential}, options)


def body(model: Model, context: Context, options: Options, *, stream: bool = True) -> dict[str, Any]:
    """The JSON body. Raises RequestError for a forced tool that is not there, and where nothing is left to send."""
    family = gemini_family(model.id, model.thinking)
    tools = [_tool(tool) for tool in read_tools(context.tools, _is_native)]
    require_declared(options.tool_choice, (str(tool.get("name")) for tool in tools))
    sent: dict[str, Any] = {"model": model.id}
    if system := system_parts(context):
        sent["system_instruction"] = "\n\n".join(part.text for part in system)
    sent["input"] = _steps(repair(context.messages, target(model)))
    if tools:
        sent["tools"] = tools
    if config := _generation(options, family, bool(tools)):
        sent["generation_config"] = config
    if options.output is not None:
        schema = for_gemini(options.output.schema)
        sent["response_format"] = {"type": "text", "mime_type": "application/json", "schema": schema}
    sent["store"] = False
    if stream:
        sent["stream"] = True
    return merge_body(sent, options.extra_body)


# ---- steps


def _steps(history: Iterable[HistoryMessage]) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    for message in history:
        match message:
            case Message():
                steps += _assistant(message)
            case ToolResultMessage():
                steps += (_result(result) for result in message.results)
            case UserMessage():
                content = [_part(part) for part in parts_of(message.content)]
                steps.append({"type": "user_input", "content": content})
    return steps


def _assistant(message: Message) -> list[dict[str, Any]]:
    """The steps of a turn in their order; neighbouring texts are one step."""
    steps: list[dict[str, Any]] = []
    for block in message.content:
        step = _step(block)
        if step["type"] == "model_output" and steps and steps[-1]["type"] == "model_output":
            steps[-1]["content"] += step["content"]
        else:
            steps.append(step)
    return steps


# Kinds of content, as against kinds of steps.
_MEDIA = frozenset({"image", "audio", "video", "document"})


def _step(block: Block) -> dict[str, Any]:
    match block:
        case TextBlock():
            text: dict[str, Any] = {"type": "text", "text": block.text}
            if block.citations:
                text["annotations"] = list(block.citations)
            return {"type": "model_output", "content": [text]}
        case RefusalBlock():
            return {"type": "model_output", "content": [{"type": "text", "text": block.text}]}
        case ThinkingBlock():
            said = [{"type": "text", "text": block.thinking}] if block.thinking else []
            summary = [*said, *block.extra.get("summary", ())]
            return {"type": "thought", "signature": block.signature, **({"summary": summary} if summary else {})}
        case RedactedThinkingBlock():
            return {"type": "thought", "signature": block.data}
        case ToolCall():
            step = {"type": "function_call", "id": block.id, "name": block.name, "arguments": block.arguments}
            return {**step, "signature": block.signature} if block.signature else step
        case OpaqueBlock(kind=kind) if kind in _MEDIA:
            return {"type": "model_output", "content": [block.raw]}
        case ServerToolBlock() | OpaqueBlock():
            return dict(block.raw)


def _part(part: Content) -> dict[str, Any]:
    text = text_of(part)
    if text is not None:
        return {"type": "text", "text": text}
    assert isinstance(part, ImageContent | DocumentContent)
    kind = "image" if isinstance(part, ImageContent) else "document"
    media = {"mime_type": part.media_type} if part.media_type else {}
    return {"type": kind, **media, **({"uri": part.url} if part.url is not None else {"data": part.data})}


def _result(result: ToolResult) -> dict[str, Any]:
    texts = [text_of(part) for part in result.content]
    whole = "\n".join(text for text in texts if text is not None)
    shown: Any = [_part(part) for part in result.content] if None in texts else whole
    sent = {"type": "function_result", "call_id": result.call_id, "name": result.name, "result": shown}
    return {**sent, "is_error": True} if result.is_error else sent


# ---- tools and generation


def _is_native(tool: dict[str, Any]) -> bool:
    kind = tool.get("type")
    if kind == "function":
        return "name" in tool
    return isinstance(kind, str) and kind != "custom" and "name" not in tool


def _tool(tool: FunctionTool | dict[str, Any]) -> dict[str, Any]:
    if isinstance(tool, dict):
        return tool
    sent: dict[str, Any] = {"type": "function", "name": tool.name}
    if tool.description:
        sent["description"] = tool.description
    return {**sent, "parameters": for_gemini(tool.schema)} if tool.schema.get("properties") else sent


def _generation(options: Options, family: GeminiFamily, tools: bool) -> dict[str, Any]:
    wanted: dict[str, Any] = {
        "max_output_tokens": options.max_output_tokens,
        "temperature": options.temperature,
        "top_p": options.top_p,
        "seed": options.seed,
        "stop_sequences": list(options.stop_sequences) or None,
        "tool_choice": _choice(options) if tools else None,
    }
    level = options.thinking
    if family.thinking != "none":
        shown = options.thinking_summary if options.thinking_summary is not None else level not in (None, "off")
        if shown or options.thinking_summary is not None:
            wanted["thinking_summaries"] = "auto" if shown else "none"
        if level is not None:
            wanted["thinking_level"] = nearest(level, family.levels)
    return {name: value for name, value in wanted.items() if value is not None}


def _choice(options: Options) -> Any:
    match options.tool_choice:
        case NamedTool(name):
            return {"allowed_tools": {"mode": "any", "tools": [name]}}
        case "required":
            return "any"
        case choice:
            return choice
