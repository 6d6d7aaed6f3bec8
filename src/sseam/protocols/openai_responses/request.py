"""Context, model and options → the request of OpenAI's Responses API.

Nothing is kept at the service: the whole conversation is sent each time, reasoning as the encrypted
items that it gave (`store` false). Whoever wants it otherwise says so in `extra_body`; a response that
is made in the background is kept, since it can be had in no other way.

Source: the provider's API reference and its pages on reasoning and conversation state, read 2026-11-29.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeGuard, cast

from ..._encode import encode
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
from ...errors import RequestError
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
    data_url,
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
from ...request.families import OpenAIFamily, nearest, openai_family
from ...request.schema_subset import openai_strict
from ...transform import Target, repair, require_messages
from .._openai import cache_fields, output_format, sampling_fields
from .results import drop_unseen_screens, has_no_call_id, result_item

__all__ = ["body", "headers", "target", "url"]


def target(model: Model) -> Target:
    """What a history is repaired for."""
    ids = IdRule(alphabet="a-zA-Z0-9_-", max_length=64, unique=True)
    return Target(model=model, ids=ids, thinking="signed", needs_outcome=True, paired=True)


def url(model: Model, *, stream: bool = True) -> str:
    """The address that the body is posted to."""
    return join_url(model.base_url, "/responses")


def headers(options: Options, credential: Mapping[str, str]) -> dict[str, str]:
    """The headers, with the one of `sseam.models.credential`."""
    return merge_headers({"content-type": "application/json", "accept": "text/event-stream", **credential}, options)


def body(model: Model, context: Context, options: Options, *, stream: bool = True) -> dict[str, Any]:
    """The JSON body. Stop sequences have no field here and are left out.

    Raises RequestError for a forced tool that is not there, and where nothing is left to send.
    """
    family = openai_family(model.id, model.thinking)
    tools = [_tool(tool) for tool in read_tools(context.tools, _is_native)]
    sent: dict[str, Any] = {"model": model.id}
    if system := system_parts(context):
        sent["instructions"] = "\n\n".join(part.text for part in system)
    sent["input"] = _items(drop_unseen_screens(repair(context.messages, target(model))))
    sent |= _tool_fields(tools, options)
    reasoning = _reasoning(options, family)
    if reasoning:
        sent["reasoning"] = reasoning
    sent |= sampling_fields(options, family, reasoning.get("effort"))
    if (limit := output_limit(options)) is not None:
        sent["max_output_tokens"] = limit
    if options.output is not None:
        sent["text"] = {"format": {"type": "json_schema", **output_format(options)}}
    sent |= cache_fields(options, family)
    if options.metadata:
        sent["metadata"] = dict(options.metadata)
    sent["store"] = options.extra_body.get("background") is True
    if family.reasoning:
        sent["include"] = ["reasoning.encrypted_content"]
    if stream:
        sent["stream"] = True
    return merge_body(sent, options.extra_body)


# ---- items


def _items(history: Iterable[HistoryMessage]) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    calls: dict[str, ToolCall] = {}
    for message in history:
        match message:
            case Message():
                calls |= {call.id: call for call in message.tool_calls}
                items += _assistant(message)
            case ToolResultMessage():
                items += (result_item(result, calls[result.call_id], _part) for result in message.results)
            case UserMessage():
                items.append({"role": "user", "content": _content(message.content)})
    return require_messages(items)


def _content(content: str | tuple[Content, ...]) -> str | list[dict[str, Any]]:
    return content if isinstance(content, str) else [_part(part) for part in parts_of(content)]


def _part(part: Content) -> dict[str, Any]:
    text = text_of(part)
    if text is not None:
        return {"type": "input_text", "text": text}
    if isinstance(part, ImageContent):
        return {"type": "input_image", "image_url": data_url(part)}
    assert isinstance(part, DocumentContent)
    if part.url is not None:
        return {"type": "input_file", "file_url": part.url}
    return {"type": "input_file", "filename": part.title or "document", "file_data": data_url(part)}


def _assistant(message: Message) -> list[dict[str, Any]]:
    """The items of a turn, in their order; the parts of one message item together again."""
    items: list[dict[str, Any]] = []
    open_item: dict[str, Any] = {}  # the message that was made here last: no other's content is ours to add to
    for block in message.content:
        if not isinstance(block, TextBlock | RefusalBlock) and not _is_part(block):
            items.append(_item(block))
            open_item = {}
        elif _is_same_item(open_item, said := _said(block)):
            open_item["content"] += said["content"]
        else:
            items.append(said)
            open_item = said
    return items


def _is_part(block: Block) -> TypeGuard[OpaqueBlock]:
    """Whether it is an unknown part of a message, and no item: then it has the fields of its message beside it."""
    return isinstance(block, OpaqueBlock) and bool(block.extra)


def _said(block: TextBlock | RefusalBlock | OpaqueBlock) -> dict[str, Any]:
    item = {name: value for name, value in block.extra.items() if name != "part" and value is not None}
    if "id" not in item and not isinstance(block, OpaqueBlock):
        # Without an id it is a message of its own, whose text has no parts.
        phase = {"phase": item["phase"]} if "phase" in item else {}
        return {"role": "assistant", "content": block.text, **phase}
    beside: dict[str, Any] = block.extra.get("part", {})
    match block:
        case OpaqueBlock():
            part = block.raw
        case RefusalBlock():
            part = _with_rest({"type": "refusal", "refusal": block.text}, beside)
        case TextBlock():
            own = {"type": "output_text", "text": block.text, "annotations": list(block.citations)}
            part = _with_rest(own, beside)
    said = _with_rest({"type": "message", "role": "assistant"}, {"status": "completed", **item})
    return {**said, "content": [part]}


def _is_same_item(before: dict[str, Any], after: dict[str, Any]) -> bool:
    id = before.get("id")
    return before.get("type") == after.get("type") == "message" and id is not None and id == after.get("id")


def _item(block: ThinkingBlock | RedactedThinkingBlock | ToolCall | ServerToolBlock | OpaqueBlock) -> dict[str, Any]:
    match block:
        case ThinkingBlock():
            return _with_rest({"type": "reasoning"}, {"summary": [], **_given(block.extra)})
        case RedactedThinkingBlock():
            own = {"type": "reasoning", "encrypted_content": block.data}
            return _with_rest(own, {"summary": [], **_given(block.extra)})
        case ToolCall() if "type" in block.extra:  # a built-in tool of the client: the item is all there
            return {**_given(block.extra), **({} if has_no_call_id(block) else {"call_id": block.id})}
        case ToolCall(kind="custom"):
            fields = {"call_id": block.id, "name": block.name, "input": block.arguments_json}
            return _with_rest({"type": "custom_tool_call", **fields}, _given(block.extra))
        case ToolCall():
            # The text as it came; a call that was written by hand may have none.
            text = block.arguments_json
            arguments = text if text.strip() else encode(block.arguments, f"call {block.id!r}: its input").decode()
            fields = {"call_id": block.id, "name": block.name, "arguments": arguments}
            return _with_rest({"type": "function_call", **fields}, _given(block.extra))
        case ServerToolBlock() | OpaqueBlock():
            return dict(block.raw)


def _with_rest(own: dict[str, Any], rest: dict[str, Any]) -> dict[str, Any]:
    """Our own fields, then the rest: in a turn written by hand there may be any, and they stand for nothing of ours."""
    return own | rest | own


def _given(extra: dict[str, Any]) -> dict[str, Any]:
    """The fields without those that the service itself left open."""
    return {name: value for name, value in extra.items() if value is not None}


# ---- tools


# Anthropic's own tools have a date behind their name.
_OF_ANTHROPIC = re.compile(r"_\d{8}$")


def _is_native(tool: dict[str, Any]) -> bool:
    kind = tool.get("type")
    if kind in ("function", "custom"):
        return "name" in tool and "input_schema" not in tool
    return isinstance(kind, str) and "input_schema" not in tool and not _OF_ANTHROPIC.search(kind)


def _tool(tool: FunctionTool | dict[str, Any]) -> dict[str, Any]:
    if isinstance(tool, dict):
        return _own_tool(tool)
    described = {"description": tool.description} if tool.description else {}
    if tool.free_text:
        return {"type": "custom", "name": tool.name, **described}
    strict = openai_strict(tool.schema) if tool.strict else None
    parameters = strict or {"type": "object", "properties": {}, **tool.schema}
    return {"type": "function", "name": tool.name, **described, "parameters": parameters, "strict": strict is not None}


def _own_tool(tool: dict[str, Any]) -> dict[str, Any]:
    """The server takes a function that says nothing for strict, and then refuses or rewrites its schema."""
    if inner := _inner_tools(tool):
        return {**tool, "tools": [_own_tool(entry) for entry in inner]}
    says_strict = tool.get("type") != "function" or isinstance(tool.get("strict"), bool)
    return tool if says_strict else {**tool, "strict": False}


def _inner_tools(tool: dict[str, Any]) -> list[dict[str, Any]]:
    """The tools of a namespace; others have none."""
    inner: object = tool.get("tools") if tool.get("type") == "namespace" else None
    if inner is None:
        return []
    if not isinstance(inner, list) or not all(isinstance(entry, dict) for entry in cast("list[object]", inner)):
        raise RequestError(f"the tools of the namespace {tool.get('name')!r} are a list of objects")
    return cast("list[dict[str, Any]]", inner)


def _choices(tools: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """What `tool_choice` is for each name that may be named: of a function, an MCP server, a built-in type.

    Of two with one name the first stands.
    """
    choices: dict[str, dict[str, Any]] = {}
    for tool in tools:
        kind, name, label = (tool.get(field) for field in ("type", "name", "server_label"))
        if kind == "namespace":
            found = _choices(_inner_tools(tool))
        elif kind == "mcp":
            choice = {"type": kind, "server_label": label}
            found = {label: choice, kind: choice} if isinstance(label, str) else {}
        elif isinstance(name, str):
            found = {name: {"type": kind, "name": name}}
        else:
            found = {str(kind): {"type": kind}}
        choices = {**found, **choices}
    return choices


def _tool_fields(tools: list[dict[str, Any]], options: Options) -> dict[str, Any]:
    choice = options.tool_choice
    choices = _choices(tools)
    require_declared(choice, choices)
    if not tools:
        return {}
    sent: dict[str, Any] = {"tools": tools}
    match choice:
        case NamedTool(name):
            sent["tool_choice"] = choices[name]
        case None:
            pass
        case _:
            sent["tool_choice"] = choice
    if options.parallel_tool_calls is not None:
        sent["parallel_tool_calls"] = options.parallel_tool_calls
    return sent


def _reasoning(options: Options, family: OpenAIFamily) -> dict[str, Any]:
    effort = nearest(options.thinking, family.efforts) if options.thinking is not None else None
    sent: dict[str, Any] = {"effort": effort} if effort else {}
    if options.thinking_summary and family.reasoning:
        sent["summary"] = "auto"
    return sent
