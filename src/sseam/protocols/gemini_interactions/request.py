"""Context, model and options → the request of Gemini's Interactions API.

Nothing is kept at the service: the whole conversation is sent each time (`store` false). Whoever
wants it otherwise says so in `extra_body`.

Source: Google's reference of the Interactions API, read 2026-11-29.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

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
    output_limit,
    read_tools,
    require_declared,
    system_parts,
    text_of,
)
from ...request.calls import IdRule
from ...request.families import GeminiFamily, gemini_family, nearest
from ...request.schema_subset import for_gemini, takes_arguments
from ...tools import ToolResult
from ...transform import Target, repair
from .. import _gemini

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
    """The JSON body.

    Raises RequestError for a forced tool that is not there, for an output limit below 1, for a schema that is none or
    becomes too large, where nothing is left to send, and for a call of another model in the open turn, unless
    `Options.skip_signatures` is set: then it is sent without a proof, since the placeholder of generateContent is not
    documented here.
    """
    family = gemini_family(model.id, model.thinking)
    tools = [_tool(tool) for tool in read_tools(context.tools, _is_native)]
    names = [tool["name"] for tool in tools if tool["type"] == "function"]
    require_declared(options.tool_choice, names, nameless=len(names) < len(tools))
    sent: dict[str, Any] = {"model": model.id}
    if system := system_parts(context):
        sent["system_instruction"] = "\n\n".join(part.text for part in system)
    sent["input"] = _steps(repair(context.messages, target(model)))
    if family.thinking == "level" and not options.skip_signatures:
        _require_signatures(sent["input"])
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
    """The steps of a turn in their order; neighbouring content is one step, where nothing says otherwise."""
    steps: list[dict[str, Any]] = []
    is_content = False
    for block in message.content:
        step, follows = _step(block), is_content
        is_content = _is_content(block)
        if is_content and follows and not block.extra.get("new_step"):
            steps[-1] = {**steps[-1], "content": [*steps[-1]["content"], *step["content"]]}
        else:
            steps.append(step)
    return steps


# Kinds of content, as against kinds of steps.
_MEDIA = frozenset({"image", "audio", "video", "document"})


def _is_content(block: Block) -> bool:
    """Whether a block is content of a model_output step, and no step itself."""
    if isinstance(block, OpaqueBlock):
        return block.kind in _MEDIA or "new_step" in block.extra
    return isinstance(block, TextBlock | RefusalBlock)


# Fields of `extra` that no step came with.
_OURS = frozenset({"summary", "new_step", "unknown_deltas"})


def _step(block: Block) -> dict[str, Any]:
    fields = {name: value for name, value in block.extra.items() if name not in _OURS}
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
            summary = block.extra.get("summary", said)
            step = {"type": "thought", "signature": block.signature, **fields}
            return {**step, "summary": summary} if summary else step
        case RedactedThinkingBlock():
            return {"type": "thought", "signature": block.data}
        case ToolCall():
            step = {"type": "function_call", "id": block.id, "name": block.name, "arguments": block.arguments}
            if block.signature:
                step["signature"] = block.signature
            return {**fields, **step}
        case OpaqueBlock() if _is_content(block):
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


def _require_signatures(steps: list[dict[str, Any]]) -> None:
    """Raises RequestError where the calls of an answer of the open turn have no proof.

    It is on the first call, or on what led to it: in the recordings on the thought, and the call's own is empty.
    """
    asked = [number for number, step in enumerate(steps) if step.get("type") == "user_input"]
    proven = False
    for step in steps[asked[-1] if asked else 0 :]:
        if step.get("type") == "function_result":
            proven = False  # what follows is another answer
        elif step.get("signature"):
            proven = True
        elif step.get("type") == "function_call" and not proven:
            raise _gemini.unsigned(step["name"], "skip_signatures=True sends it without")


# ---- tools and generation


# Source: Google's reference of the Interactions API, read 2026-11-30.
_BUILT_IN = frozenset(
    {
        "code_execution",
        "computer_use",
        "file_search",
        "google_maps",
        "google_search",
        "mcp_server",
        "retrieval",
        "tool_search",
        "url_context",
    }
)
_FUNCTION = frozenset({"type", "name", "description", "parameters", "defer_loading"})


def _is_native(tool: dict[str, Any]) -> bool:
    """A built-in tool, or a function with no more than the fields it has here: OpenAI's has the same form."""
    kind = tool.get("type")
    if kind == "function":
        return "name" in tool and tool.keys() <= _FUNCTION
    return isinstance(kind, str) and kind in _BUILT_IN


def _tool(tool: FunctionTool | dict[str, Any]) -> dict[str, Any]:
    if isinstance(tool, dict):
        schema: Any = tool.get("parameters")
        return {**tool, "parameters": for_gemini(cast("Any", schema))} if isinstance(schema, dict) else tool
    sent: dict[str, Any] = {"type": "function", "name": tool.name}
    if tool.description:
        sent["description"] = tool.description
    return {**sent, "parameters": for_gemini(tool.schema)} if takes_arguments(tool.schema) else sent


def _generation(options: Options, family: GeminiFamily, tools: bool) -> dict[str, Any]:
    wanted: dict[str, Any] = {
        "max_output_tokens": output_limit(options),
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
