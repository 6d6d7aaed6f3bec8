"""Context, model and options → the request of Anthropic's Messages API.

Source: the provider's API reference, its pages on tool use, extended thinking, prompt caching and
errors, and the notes of each model's release (read 2026-11-29).
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Mapping
from typing import Any, cast

from ...content import Content, DocumentContent, ImageContent, TextContent
from ...context import (
    Context,
    HistoryMessage,
    Model,
    NamedTool,
    Options,
    OutputSchema,
    ToolResultMessage,
    UserMessage,
    parts_of,
)
from ...errors import RequestError
from ...handover import server_ids
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
)
from ...request.calls import IdRule
from ...request.families import AnthropicFamily, anthropic_budget, anthropic_family, nearest
from ...request.names import NameRule
from ...request.schema_subset import anthropic_strict
from ...tools import ToolResult
from ...transform import Target, repair, require_messages
from .caching import CacheControl, cache_control, check_breakpoints, place_breakpoints

__all__ = ["body", "headers", "target", "url"]

VERSION = "2023-06-01"
# With this version the sampling parameters are refused for every model.
_WITHOUT_SAMPLING = "2026-10-21"


def target(model: Model) -> Target:
    """What a history is repaired for; ids as the API's error texts give their pattern."""
    signed = anthropic_family(model.id, model.thinking).signed
    return Target(
        model=model,
        ids=IdRule(alphabet="a-zA-Z0-9_-", max_length=64, unique=True),
        thinking="signed" if signed else "own",
        needs_outcome=signed,
        blank_text=True,
        error_text=True,
        image_types=("image/jpeg", "image/jpg", "image/png", "image/gif", "image/webp"),
        document_types=("application/pdf", "text/*"),
    )


def url(model: Model, *, stream: bool = True) -> str:
    """The address that the body is posted to."""
    return join_url(model.base_url, "/v1/messages")


def headers(options: Options, credential: Mapping[str, str]) -> dict[str, str]:
    """The headers, with the one of `sseam.models.credential`. Betas go into `extra_headers`."""
    own = {"content-type": "application/json", "accept": "text/event-stream", "anthropic-version": VERSION}
    return merge_headers({**own, **credential}, options)


def body(model: Model, context: Context, options: Options, *, stream: bool = True) -> dict[str, Any]:
    """The JSON body.

    Raises RequestError for what the API would refuse and what cannot be left out: a forced tool or a
    prefill that the model does not take, more than four cache breakpoints, thinking without room for it.
    """
    family = anthropic_family(model.id, model.thinking)
    control = cache_control(options.cache)
    tools = _tools(context, control)
    history = repair(context.messages, target(model))
    messages = _messages(history, control)
    max_tokens = _max_tokens(model, options, family, stream)
    prefilled = isinstance(history[-1], Message) and not _goes_on(history[-1])
    thinking = _thinking(options, family, max_tokens, prefilled or _may_start_thinking(messages))
    thinks = thinking.get("thinking", {}).get("type") in ("enabled", "adaptive")
    if prefilled:
        _check_prefill(messages, family, options, thinks)

    sent: dict[str, Any] = {"model": model.id, "max_tokens": max_tokens}
    if system := [_text(part.text, control if part.cache else None) for part in system_parts(context)]:
        sent["system"] = system
    if tools:
        sent["tools"] = tools
    sent |= _tool_choice(options, family, tools)
    sent["messages"] = messages
    sent |= thinking
    if options.output is not None:
        sent["output_config"] = {**sent.get("output_config", {}), "format": _output_format(options.output)}
    sent |= _sampling(options, family, thinks)
    if options.stop_sequences:
        sent["stop_sequences"] = _stop_sequences(options)
    if options.metadata:
        sent["metadata"] = dict(options.metadata)
    sent |= _container(history, model, options)
    if stream:
        sent["stream"] = True
    sent = place_breakpoints(merge_body(sent, options.extra_body), options.cache)
    check_breakpoints(sent)
    return sent


# ---- messages


def _goes_on(message: Message) -> bool:
    """Whether the service itself goes on with this last turn: it paused, or made a summary of what was before.

    Of a turn that was not accepted only the text is left, and that is a prefill.
    """
    match message.stop_reason:
        case "pause_turn":
            return message.complete
        case "compaction":
            last = message.content[-1]
            return isinstance(last, OpaqueBlock) and last.kind == "compaction"
        case _:
            return False


def _messages(history: tuple[HistoryMessage, ...], control: CacheControl) -> list[dict[str, Any]]:
    """The messages on the wire: roles alternate, and results stand first in what follows a call."""
    merged: list[dict[str, Any]] = []
    said = (block for message in history if isinstance(message, Message) for block in message.content)
    servers = server_ids(said).calls
    for message in history:
        match message:
            case Message():
                role = "assistant"
                blocks = [_without_lost_caller(_block(block), servers) for block in message.content]
            case ToolResultMessage():
                role, blocks = "user", [_result(result) for result in message.results]
            case UserMessage():
                role, blocks = "user", [_part(part) for part in parts_of(message.content)]
        if not isinstance(message, Message) and message.cache:
            blocks = _marked(blocks, control)
        if not blocks:
            continue
        if merged and merged[-1]["role"] == role:
            merged[-1]["content"] += blocks
        else:
            merged.append({"role": role, "content": blocks})
    return require_messages(merged)


def _without_lost_caller(block: dict[str, Any], servers: frozenset[str]) -> dict[str, Any]:
    """The block, without a caller that names a server-run call which is not in the message."""
    caller: Any = block.get("caller")
    if not isinstance(caller, dict) or "tool_id" not in caller:
        return block
    id: object = cast("dict[str, object]", caller)["tool_id"]
    lost = not isinstance(id, str) or id not in servers
    return {key: value for key, value in block.items() if key != "caller"} if lost else block


_NAMES = NameRule(alphabet="a-zA-Z0-9_-", max_length=64)


def _block(block: Block) -> dict[str, Any]:
    match block:
        case TextBlock():
            sent: dict[str, Any] = {"type": "text", "text": block.text}
            if block.citations:
                sent["citations"] = list(block.citations)
        case RefusalBlock():
            sent = {"type": "text", "text": block.text}
        case ThinkingBlock():
            sent = {"type": "thinking", "thinking": block.thinking, "signature": block.signature or ""}
        case RedactedThinkingBlock():
            sent = {"type": "redacted_thinking", "data": block.data}
        case ToolCall():
            sent = {"type": "tool_use", "id": block.id, "name": _NAMES.replayed(block.name), "input": block.arguments}
        case ServerToolBlock() | OpaqueBlock():
            if not isinstance(block.raw.get("type"), str):
                raise RequestError(f"a block of the kind {block.kind!r} has no type, without which it is refused")
            return dict(block.raw)
    # Deltas of a kind that was not known are kept under this name and are no field of the block.
    extra = {key: value for key, value in block.extra.items() if key != "unknown_deltas"}
    # In a turn written by hand it may hold any field, and none stands for one of ours.
    return sent | extra | sent


def _part(part: Content) -> dict[str, Any]:
    match part:
        case TextContent(text):
            return _text(text)
        case ImageContent():
            return {"type": "image", "source": _source(part)}
        case DocumentContent():
            sent: dict[str, Any] = {"type": "document", "source": _source(part)}
            return {**sent, "title": part.title} if part.title else sent


def _source(part: ImageContent | DocumentContent) -> dict[str, Any]:
    if part.url is not None:
        return {"type": "url", "url": part.url}
    if isinstance(part, DocumentContent):
        text = _plain_text(part)
        if text is not None:
            return {"type": "text", "media_type": "text/plain", "data": text}
    # Known under two names, of which one is taken.
    media_type = "image/jpeg" if part.media_type.lower() == "image/jpg" else part.media_type
    return {"type": "base64", "media_type": media_type, "data": part.data}


def _plain_text(part: DocumentContent) -> str | None:
    """The document where it is text, however it was given: in base64 only PDF is taken."""
    if part.data is None or not part.media_type.lower().startswith("text/"):
        return part.text
    return binascii.a2b_base64(part.data).decode(errors="replace")


def _result(result: ToolResult) -> dict[str, Any]:
    parts = result.content
    sent: dict[str, Any] = {"type": "tool_result", "tool_use_id": result.call_id}
    if len(parts) == 1 and isinstance(parts[0], TextContent):
        sent["content"] = parts[0].text
    elif parts:
        sent["content"] = [_part(part) for part in parts]
    return {**sent, "is_error": True} if result.is_error else sent


def _text(text: str, control: CacheControl | None = None) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "text", "text": text}
    return {**block, "cache_control": control} if control else block


def _marked(blocks: list[dict[str, Any]], control: CacheControl) -> list[dict[str, Any]]:
    """The blocks, with the caller's own cache breakpoint on the last."""
    return [*blocks[:-1], {**blocks[-1], "cache_control": control}] if blocks else blocks


def _check_prefill(messages: list[dict[str, Any]], family: AnthropicFamily, options: Options, thinks: bool) -> None:
    """A conversation that ends with the assistant is gone on with, if the model does that; its last text is trimmed."""
    if not family.prefill or thinks or options.output is not None:
        why = "with thinking" if thinks else "with structured output" if options.output else "by this model"
        raise RequestError(f"the conversation ends with the assistant: not taken {why}", hint="Append a user message")
    last = messages[-1]["content"][-1]
    if last["type"] == "text":
        last["text"] = last["text"].rstrip()


# ---- tools


# A set of tools has no name: of MCP, and those of the client with a date behind it.
_TOOLSET = re.compile(r".+_toolset(_\d{8})?")


def _is_native(tool: dict[str, Any]) -> bool:
    kind = tool.get("type")
    own_type = kind not in (None, "function", "custom") and "parameters" not in tool
    is_set = isinstance(kind, str) and _TOOLSET.fullmatch(kind) is not None
    return "input_schema" in tool or (own_type and ("name" in tool or is_set))


def _tools(context: Context, control: CacheControl) -> list[dict[str, Any]]:
    read = read_tools(context.tools, _is_native)
    tools = [tool if isinstance(tool, dict) else _tool(tool, control) for tool in read]
    for tool in tools:
        _check_tool(tool)
    return tools


_AT_THE_ROOT = ("anyOf", "oneOf", "allOf")


def _check_tool(tool: dict[str, Any]) -> None:
    """Raises RequestError for a client tool whose name or schema the API refuses, which would refuse all of them."""
    schema: object = tool.get("input_schema")
    if schema is None:
        return
    name = str(tool["name"])
    if not _NAMES.accepts(name):
        raise RequestError(f"tool {name!r}: a name is 1 to 64 of letters, digits, _ and -")
    if isinstance(schema, dict) and (found := [key for key in _AT_THE_ROOT if key in schema]):
        hint = "Make it the value of a property"
        raise RequestError(f"tool {name!r}: its schema has {found[0]!r} at the root, which is refused", hint=hint)


def _tool(tool: FunctionTool, control: CacheControl) -> dict[str, Any]:
    strict = anthropic_strict(tool.schema) if tool.strict else None
    sent: dict[str, Any] = {"name": tool.name}
    if tool.description:
        sent["description"] = tool.description
    sent["input_schema"] = strict or {"type": "object", **tool.schema}
    if strict is not None:
        sent["strict"] = True
    return {**sent, "cache_control": control} if tool.cache else sent


def _tool_choice(options: Options, family: AnthropicFamily, tools: list[dict[str, Any]]) -> dict[str, Any]:
    choice = options.tool_choice
    if not tools and choice in (None, "auto", "none"):
        return {}
    names = [tool["name"] for tool in tools if isinstance(tool.get("name"), str)]
    require_declared(choice, names, nameless=len(names) < len(tools))
    match choice:
        case None | "auto":
            sent: dict[str, Any] = {"type": "auto"}
        case "none":
            return {"tool_choice": {"type": "none"}}
        case "required":
            sent = {"type": "any"}
        case NamedTool(name):
            sent = {"type": "tool", "name": name}
    if sent["type"] in ("any", "tool") and family.forced == "never":
        raise RequestError("this model does not take a forced tool_choice", hint="Use 'auto' and say it in the prompt")
    if options.parallel_tool_calls is not None:
        sent["disable_parallel_tool_use"] = not options.parallel_tool_calls
    elif choice is None:
        return {}
    return {"tool_choice": sent}


# ---- container, limits


def _container(history: tuple[HistoryMessage, ...], model: Model, options: Options) -> dict[str, Any]:
    """The container in which the service's code waits for the rest of the turn: without its id a call is lost.

    Source: the provider's page on programmatic tool calling, read 2026-11-30. A turn that is over needs none. It is of
    the account, so that another model of the service goes on in it too; of another protocol it is none.
    """
    last = next((message for message in reversed(history) if not isinstance(message, ToolResultMessage)), None)
    if not isinstance(last, Message) or not (last.tool_calls or _goes_on(last)):
        return {}
    if last.protocol not in ("", model.protocol):
        return {}
    held: object = last.raw.get("container")
    id: object = cast("dict[str, object]", held).get("id") if isinstance(held, dict) else None
    if not isinstance(id, str):
        return {}
    # An object of the caller's is merged into ours.
    return {"container": {"id": id} if isinstance(options.extra_body.get("container"), dict) else id}


def _max_tokens(model: Model, options: Options, family: AnthropicFamily, stream: bool) -> int:
    limit = options.max_output_tokens if options.max_output_tokens is not None else model.max_output_tokens
    max_tokens = family.max_tokens if limit is None else limit
    if max_tokens < 0:
        raise RequestError(f"the output limit is negative: {max_tokens:,}")
    if max_tokens == 0 and stream:
        raise RequestError("an output limit of 0 fills the cache and is not taken with a stream")
    return max_tokens


def _stop_sequences(options: Options) -> list[str]:
    for number, sequence in enumerate(options.stop_sequences):
        if not sequence.strip():
            raise RequestError(f"stop_sequences[{number}] holds nothing but white space, which is refused")
    return list(options.stop_sequences)


# ---- thinking, sampling, output


def _thinking(options: Options, family: AnthropicFamily, max_tokens: int, may_start: bool) -> dict[str, Any]:
    """The fields `thinking` and `output_config` for the level that was asked for."""
    level = options.thinking
    if level is None:
        return {}
    forced = options.tool_choice == "required" or isinstance(options.tool_choice, NamedTool)
    off = level == "off" or (forced and family.forced == "not_thinking")
    if off or (family.adaptive == "no" and not may_start):
        if family.disabled and (family.manual or family.adaptive != "no"):
            return {"thinking": {"type": "disabled"}}
        # It thinks in any case: as little as it can.
        return {"output_config": {"effort": family.efforts[0]}} if family.efforts else {}
    effort = nearest(level, family.efforts)
    config = {"output_config": {"effort": effort}} if effort else {}
    display = {}
    if options.thinking_summary is not None:
        display = {"display": "summarized" if options.thinking_summary else "omitted"}
    match family.adaptive:
        case "always":
            return config
        case "ok":
            return {"thinking": {"type": "adaptive", **display}, **config}
        case "no" if family.manual:
            budget = anthropic_budget(level, max_tokens)
            return {"thinking": {"type": "enabled", "budget_tokens": budget, **display}, **config}
        case _:
            return config


def _may_start_thinking(messages: list[dict[str, Any]]) -> bool:
    """Whether the turn that goes on began with thinking, as it must where thinking has a budget.

    It waits for results, or was paused. It did not where it was begun by another model, or without thinking: then it
    goes on without. A turn that is still to begin may.
    """
    for number in reversed(range(len(messages))):
        blocks = messages[number]["content"]
        if messages[number]["role"] == "user" and any(block["type"] != "tool_result" for block in blocks):
            following = messages[number + 1 : number + 2]
            return not following or following[0]["content"][0]["type"] in ("thinking", "redacted_thinking")
    return True


def _sampling(options: Options, family: AnthropicFamily, thinks: bool) -> dict[str, Any]:
    version = merge_headers({"anthropic-version": VERSION}, options)["anthropic-version"]
    if family.sampling == "none" or version >= _WITHOUT_SAMPLING:
        return {}
    if thinks:
        return {"top_p": options.top_p} if options.top_p is not None and 0.95 <= options.top_p <= 1 else {}
    wanted = {"temperature": options.temperature, "top_p": options.top_p, "top_k": options.top_k}
    sent = {name: value for name, value in wanted.items() if value is not None}
    if family.sampling == "one" and "temperature" in sent:
        sent.pop("top_p", None)
    return sent


def _output_format(output: OutputSchema) -> dict[str, Any]:
    schema = anthropic_strict(output.schema) if output.strict else output.schema
    if schema is None:
        raise RequestError("the output schema has no strict form", hint="Close its objects, or set strict=False")
    return {"type": "json_schema", "schema": schema}
