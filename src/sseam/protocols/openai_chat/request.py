"""Context, model and options → the request of Chat Completions, in the form that a server wants.

Source: OpenAI's API reference and the table in `request_dialects` (read 2026-11-29).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import msgspec

from ..._encode import encode
from ...content import Content, DocumentContent, ImageContent
from ...context import (
    Context,
    HistoryMessage,
    Model,
    NamedTool,
    Options,
    SystemPart,
    ToolResultMessage,
    UserMessage,
)
from ...errors import RequestError
from ...message import Message, RefusalBlock, TextBlock, ToolCall
from ...request import (
    FunctionTool,
    data_url,
    join_url,
    merge_body,
    merge_headers,
    output_limit,
    read_tools,
    require_declared,
    result_text,
    system_parts,
    text_of,
)
from ...request.families import OpenAIFamily, openai_family
from ...request.names import NameRule
from ...request.schema_subset import openai_strict
from ...request.schema_walk import require_object
from ...tools import ToolResult
from ...transform import Target, placeholder, repair, require_messages
from .._openai import cache_fields, is_forced, output_format, sampling_fields
from .reasoning import prove_calls, replayed_reasoning, switch_reasoning
from .request_dialects import RequestDialect
from .request_models import request_dialect

__all__ = ["body", "headers", "target", "url"]


def target(model: Model) -> Target:
    """What a history is repaired for."""
    dialect = request_dialect(model)
    return Target(model=model, ids=dialect.ids, thinking="plain" if dialect.replay else "none")


def url(model: Model, *, stream: bool = True) -> str:
    """The address that the body is posted to."""
    return join_url(model.base_url, request_dialect(model).path)


def headers(options: Options, credential: Mapping[str, str]) -> dict[str, str]:
    """The headers, with the one of `sseam.models.credential`."""
    return merge_headers({"content-type": "application/json", "accept": "text/event-stream", **credential}, options)


def body(model: Model, context: Context, options: Options, *, stream: bool = True) -> dict[str, Any]:
    """The JSON body.

    Raises RequestError for what the server would refuse, or leave undone, and what cannot be left out: a forced tool
    that it does not know, tools where it takes none, more stop sequences than it takes, structured output where it
    has none.
    """
    dialect = request_dialect(model)
    family = openai_family(model.id, model.thinking) if dialect.maker else OpenAIFamily()
    tools = _tool_fields(_tools(context, dialect), options, dialect)
    has_tools = "tools" in tools
    output = _output(options, dialect, has_tools)
    history = repair(context.messages, target(model))
    if dialect.proofs:
        history = prove_calls(history, options)
    sent: dict[str, Any] = {"model": model.id}
    sent["messages"] = [*_system(context, options, dialect, family), *_messages(history, dialect)]
    sent |= tools
    reasoning = switch_reasoning(options, dialect, family, forced=is_forced(options), tools=has_tools)
    sent |= reasoning
    if (limit := output_limit(options)) is not None:
        sent[dialect.limit] = limit
    sent |= _sampling(options, dialect, family, reasoning)
    sent |= _stop(options, dialect, family)
    sent |= output
    sent |= _maker_fields(options, dialect, family)
    if stream:
        sent["stream"] = True
        if dialect.ask_usage:
            sent["stream_options"] = {"include_usage": True}
    return merge_body(sent, options.extra_body)


# ---- messages


def _system(context: Context, options: Options, dialect: RequestDialect, family: OpenAIFamily) -> list[dict[str, Any]]:
    parts: tuple[SystemPart, ...] = system_parts(context)
    texts = [*(part.text for part in parts), *_output_prompt(options, dialect)]
    if not texts:
        return []
    role = "developer" if dialect.developer and family.reasoning else "system"
    return [{"role": role if family.system else "user", "content": "\n\n".join(texts)}]


def _messages(history: Iterable[HistoryMessage], dialect: RequestDialect) -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = []
    for message in history:
        match message:
            case Message():
                said = _assistant(message, dialect)
                if said is not None:
                    sent.append(said)
            case ToolResultMessage():
                if dialect.tools:
                    sent += (_result(result, dialect) for result in message.results)
                # The results stand directly behind their calls; what they show besides text comes after them.
                if attached := [part for result in message.results for part in _attachments(result, dialect)]:
                    sent.append({"role": "user", "content": attached})
            case UserMessage():
                sent.append({"role": "user", "content": _content(message.content, dialect)})
    require_messages(sent)
    return _alternating(sent) if dialect.alternate else sent


def _assistant(message: Message, dialect: RequestDialect) -> dict[str, Any] | None:
    """The turn; None for one of nothing that this protocol has words for: reasoning alone is no turn."""
    text = "".join(block.text for block in message.content if isinstance(block, TextBlock))
    refusal = "".join(block.text for block in message.content if isinstance(block, RefusalBlock))
    if not dialect.maker:
        text, refusal = text + refusal, ""
    calls = message.tool_calls if dialect.tools else ()
    if not (text or refusal or calls):
        return None
    sent: dict[str, Any] = {"role": "assistant", "content": text or (None if dialect.null_content else "")}
    if refusal:
        sent["refusal"] = refusal
    sent |= replayed_reasoning(message, dialect)
    if calls:
        sent["tool_calls"] = [_call(call, dialect) for call in calls]
    return sent


def _call(call: ToolCall, dialect: RequestDialect) -> dict[str, Any]:
    sent: dict[str, Any] = {"id": call.id}
    name = _NAMES.replayed(call.name) if dialect.maker else call.name
    if call.kind == "custom" and dialect.maker:
        return {**sent, "type": "custom", "custom": {"name": name, "input": call.arguments_json}}
    arguments = (
        msgspec.json.encode(call.arguments).decode() if call.kind == "custom" else call.arguments_json.strip() or "{}"
    )
    sent |= {"type": "function", "function": {"name": name, "arguments": arguments}}
    if dialect.replay == "extra_content" and call.extra.get("extra_content") is not None:
        sent["extra_content"] = call.extra["extra_content"]
    return sent


# OpenAI's rule for the name of a tool.
_NAMES = NameRule(alphabet="a-zA-Z0-9_-", max_length=64)


def _result(result: ToolResult, dialect: RequestDialect) -> dict[str, Any]:
    sent: dict[str, Any] = {"role": "tool", "tool_call_id": result.call_id, "content": result_text(result)}
    return {**sent, "name": result.name} if dialect.tool_name else sent


def _attachments(result: ToolResult, dialect: RequestDialect) -> list[dict[str, Any]]:
    """What of a result the user must show: all but its text, and that, too, where no message is a tool's."""
    parts = [_part(part, dialect) for part in result.content if text_of(part) is None]
    of = f"{result.name} ({result.call_id})"
    if not dialect.tools:
        return [{"type": "text", "text": f"Result of {of}:\n{result_text(result)}"}, *parts]
    return [{"type": "text", "text": f"Attached to the result of {of}:"}, *parts] if parts else []


def _content(content: str | tuple[Content, ...], dialect: RequestDialect) -> str | list[dict[str, Any]]:
    if isinstance(content, str):
        return content
    if len(content) == 1 and (text := text_of(content[0])) is not None:
        return text
    return [_part(part, dialect) for part in content]


def _part(part: Content, dialect: RequestDialect) -> dict[str, Any]:
    text = text_of(part)
    if text is not None:
        return {"type": "text", "text": text}
    if isinstance(part, ImageContent):
        if part.url is not None and not dialect.image_urls:
            return {"type": "text", "text": placeholder(part, "the server takes no images by address").text}
        return {"type": "image_url", "image_url": {"url": data_url(part)}}
    assert isinstance(part, DocumentContent)
    if part.data is None or not dialect.files:
        return {"type": "text", "text": placeholder(part, "the server takes no documents of this kind").text}
    return {"type": "file", "file": {"filename": part.title or "document", "file_data": data_url(part)}}


def _alternating(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages with neighbours of one role made one, as far as they are nothing but content."""
    merged: list[dict[str, Any]] = []
    for message in messages:
        if merged and merged[-1]["role"] == message["role"] and merged[-1].keys() == message.keys() == _SAID:
            before, after = _as_parts(merged[-1]["content"]), _as_parts(message["content"])
            merged[-1] = {**merged[-1], "content": [*before, *after]}
        else:
            merged.append(message)
    return merged


_SAID = {"role", "content"}


def _as_parts(content: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


# ---- tools


def _is_native(tool: dict[str, Any], dialect: RequestDialect) -> bool:
    """A tool that the service runs itself, or a custom one, whose grammar has no other form. All others are read."""
    kind = tool.get("type", "function")
    if not isinstance(kind, str) or kind == "function":
        return False
    if kind == "custom":
        return dialect.maker and isinstance(tool.get("custom"), dict)
    return isinstance(tool.get("function"), dict) or isinstance(tool.get(kind), dict)


def _tools(context: Context, dialect: RequestDialect) -> list[dict[str, Any]]:
    read = read_tools(context.tools, lambda tool: _is_native(tool, dialect))
    if read and not dialect.tools:
        raise RequestError(f"{dialect.name} takes no tools")
    tools = [tool if isinstance(tool, dict) else _tool(tool, dialect) for tool in read]
    for _, name in map(_named, tools if dialect.maker else ()):
        if name is not None and not _NAMES.accepts(name):
            raise RequestError(
                f"the tool {name!r} cannot be declared: "
                f"a name is of 1 to {_NAMES.max_length} letters, digits, '_' and '-'"
            )
    return tools


def _tool(tool: FunctionTool, dialect: RequestDialect) -> dict[str, Any]:
    if tool.free_text and dialect.maker:
        known = {"name": tool.name, "description": tool.description}
        return {"type": "custom", "custom": {key: value for key, value in known.items() if value}}
    strict = openai_strict(tool.schema) if tool.strict and dialect.strict else None
    function: dict[str, Any] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = strict or tool.schema
    if strict is not None:
        function["strict"] = True
    elif tool.strict is False and dialect.strict:
        function["strict"] = False
    return {"type": "function", "function": function}


def _tool_fields(tools: list[dict[str, Any]], options: Options, dialect: RequestDialect) -> dict[str, Any]:
    choice = options.tool_choice
    if isinstance(choice, NamedTool) or not tools:
        require_declared(choice, (name for _, name in map(_named, tools) if name is not None))
    if not tools or (choice == "none" and "none" not in dialect.choices):
        return {}
    sent: dict[str, Any] = {"tools": tools}
    match choice:
        case NamedTool(name) if "named" in dialect.choices:
            kind = next(kind for kind, known in map(_named, tools) if known == name)
            sent["tool_choice"] = {"type": kind, kind: {"name": name}}
        case NamedTool(name) if "required" in dialect.choices:
            # Where no tool can be named, the one that is meant is the only one there.
            sent = {"tools": [tool for tool in tools if _named(tool)[1] == name], "tool_choice": dialect.required}
        case "required" if "required" in dialect.choices:
            sent["tool_choice"] = dialect.required
        case NamedTool() | "required":
            raise RequestError(f"{dialect.name or 'this server'} cannot be made to call a tool", hint="Use 'auto'")
        case None:
            pass
        case _ if choice in dialect.choices:
            sent["tool_choice"] = choice
        case _:  # "auto", which is what happens without a word
            pass
    if options.parallel_tool_calls is not None and dialect.parallel:
        sent[dialect.parallel] = options.parallel_tool_calls
    return sent


def _named(tool: dict[str, Any]) -> tuple[str, str | None]:
    """The form in which a tool gives its name, and the name; None for one that has none."""
    for kind in ("function", "custom"):
        inner: Any = tool.get(kind)
        if isinstance(inner, dict):
            return kind, cast("dict[str, Any]", inner).get("name")
    return "function", None


# ---- sampling, output, the maker's own fields


def _sampling(
    options: Options, dialect: RequestDialect, family: OpenAIFamily, reasoning: dict[str, Any]
) -> dict[str, Any]:
    sent = sampling_fields(options, family, reasoning.get("reasoning_effort"))
    thinks = reasoning.get("thinking", {}).get("type") == "enabled"
    if dialect.sampling == "none" or (thinks and not dialect.sampling_with_thinking):
        sent = {}
    elif dialect.sampling == "one" and "temperature" in sent:
        sent.pop("top_p", None)
    if dialect.top_k:
        sent["top_k"] = options.top_k
    if dialect.seed:
        sent[dialect.seed] = options.seed
    return {name: value for name, value in sent.items() if value is not None}


def _stop(options: Options, dialect: RequestDialect, family: OpenAIFamily) -> dict[str, Any]:
    given = options.stop_sequences
    if not (given and dialect.stop and family.stop):
        return {}
    if 0 < dialect.max_stops < len(given):
        raise RequestError(f"{dialect.name} takes at most {dialect.max_stops} stop sequences, there are {len(given)}")
    return {"stop": list(given)}


def _output(options: Options, dialect: RequestDialect, tools: bool) -> dict[str, Any]:
    if options.output is None:
        return {}
    if not dialect.formats:
        raise RequestError(f"{dialect.name} has no structured output", hint="Ask for the JSON in the prompt")
    if tools and not dialect.format_with_tools:
        raise RequestError(f"{dialect.name} takes no structured output in a request with tools")
    if "json_schema" not in dialect.formats:
        return {"response_format": {"type": "json_object"}}
    return {"response_format": {"type": "json_schema", "json_schema": output_format(options)}}


def _output_prompt(options: Options, dialect: RequestDialect) -> list[str]:
    """What the system prompt says of the answer's shape, where JSON can be asked for and its schema cannot."""
    if options.output is None or "json_schema" in dialect.formats:
        return []
    require_object(options.output.schema)
    schema = encode(options.output.schema, "the schema of the output").decode()
    about = f" It is: {options.output.description}" if options.output.description else ""
    return [f"Answer with one JSON object and nothing else.{about} Its JSON schema:\n{schema}"]


def _maker_fields(options: Options, dialect: RequestDialect, family: OpenAIFamily) -> dict[str, Any]:
    if not dialect.maker:
        return {}
    sent = cache_fields(options, family)
    return {**sent, "metadata": dict(options.metadata)} if options.metadata else sent
