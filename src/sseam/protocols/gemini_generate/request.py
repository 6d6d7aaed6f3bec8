"""Context, model and options → the request of Gemini's generateContent.

Source: Google's API reference and its pages on function calling, thinking, thought signatures and
structured outputs, read 2026-11-29.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

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
    DECLARATIONS,
    FunctionTool,
    declarations,
    join_url,
    merge_body,
    merge_headers,
    output_limit,
    read_tools,
    require_declared,
    system_parts,
    text_of,
)
from ...request.families import BUDGETS, GeminiFamily, gemini_family, nearest
from ...request.names import NameRule
from ...request.schema_subset import for_gemini, takes_arguments
from ...tools import ToolResult
from ...transform import Target, repair
from .. import _gemini

__all__ = ["body", "headers", "target", "url"]


def target(model: Model) -> Target:
    """What a history is repaired for."""
    return Target(model=model, thinking="signed")


def url(model: Model, *, stream: bool = True) -> str:
    """The address that the body is posted to; events come only where `alt` asks for them.

    Raises RequestError for Cloud Code Assist, see `body`.
    """
    _require_known_form(model)
    method = "streamGenerateContent" if stream else "generateContent"
    address = join_url(model.base_url, f"/models/{quote(model.id, safe='/:@')}:{method}")
    return f"{address}{'&' if '?' in address else '?'}alt=sse" if stream else address


def headers(options: Options, credential: Mapping[str, str]) -> dict[str, str]:
    """The headers, with the one of `sseam.models.credential`."""
    return merge_headers({"content-type": "application/json", "accept": "text/event-stream", **credential}, options)


def body(model: Model, context: Context, options: Options, *, stream: bool = True) -> dict[str, Any]:
    """The JSON body, the same whether the answer is streamed or not: the address decides.

    Raises RequestError for a forced tool that is not there, for the name of a tool that the service does not take (that
    of a call is rewritten), for an output limit below 1, for a schema that is none or becomes too large, for a
    conversation that the model begins, for a call of another model in the open turn, unless `Options.skip_signatures`
    is set, and for Cloud Code Assist.
    """
    _require_known_form(model)
    family = gemini_family(model.id, model.thinking)
    history = repair(context.messages, target(model))
    sent: dict[str, Any] = {}
    if system := system_parts(context):
        sent["systemInstruction"] = {"parts": [{"text": part.text} for part in system]}
    contents = _contents(history, is_vertex(model))
    if "cachedContent" not in options.extra_body:  # its contents come first
        _require_user_first(contents)
    if family.thinking == "level":
        require_signatures(contents, options)
    sent["contents"] = contents
    sent |= _tool_fields(context, options, family, is_vertex(model))
    if config := _generation(options, family):
        sent["generationConfig"] = config
    if "cachedContent" in options.extra_body:  # it holds these already
        sent = {name: value for name, value in sent.items() if name not in _CACHED}
    return merge_body(sent, options.extra_body)


def _require_known_form(model: Model) -> None:
    """Raises RequestError for Cloud Code Assist, which has a path and an envelope of its own."""
    if model.dialect == "code-assist":
        raise RequestError("requests to Cloud Code Assist are not made; only its answers are read")


_CACHED = ("systemInstruction", "tools", "toolConfig")


def is_vertex(model: Model) -> bool:
    """Whether the model is served by Vertex AI, which takes no ids of calls."""
    return model.dialect == "vertex" or "aiplatform.googleapis.com" in model.base_url


# ---- contents


def _contents(history: Iterable[HistoryMessage], vertex: bool) -> list[dict[str, Any]]:
    contents: list[dict[str, Any]] = []
    ids: dict[str, str] = {}
    for message in history:
        match message:
            case Message():
                ids = {} if vertex else {call.id: call.id for call in message.tool_calls if "id" not in call.extra}
                parts = [_block(block, ids) for block in message.content]
                contents.append({"role": "model", "parts": parts})
            case ToolResultMessage():
                contents.append({"role": "user", "parts": [_result(result, ids) for result in message.results]})
            case UserMessage():
                contents.append({"role": "user", "parts": [_part(part) for part in parts_of(message.content)]})
    return contents


def _require_user_first(contents: list[dict[str, Any]]) -> None:
    """Raises RequestError where the service would refuse the order. What the model said is not dropped in silence."""
    if contents[0]["role"] != "user":
        raise RequestError("the conversation begins with the model: not taken", hint="Put a user message before it")


def _block(block: Block, ids: dict[str, str]) -> dict[str, Any]:
    """The part. A proof goes back on the very part on which it came."""
    match block:
        case TextBlock():
            sent: dict[str, Any] = {"text": block.text}
        case RefusalBlock():
            return {"text": block.text}
        case ThinkingBlock():
            sent = {"text": block.thinking, "thought": True}
        case ToolCall():
            # Without an id of its own the wire pairs call and result by their order.
            id = {"id": ids[block.id]} if block.id in ids else {}
            sent = {"functionCall": {**id, "name": _NAMES.replayed(block.name), "args": block.arguments}}
        case RedactedThinkingBlock():
            return {"text": "", "thought": True, "thoughtSignature": block.data}
        case ServerToolBlock() | OpaqueBlock():
            return dict(block.raw)
    if block.signature:
        sent["thoughtSignature"] = block.signature
    return {**sent, **{name: value for name, value in block.extra.items() if name != "id"}, **sent}


def _part(part: Content) -> dict[str, Any]:
    text = text_of(part)
    if text is not None:
        return {"text": text}
    assert isinstance(part, ImageContent | DocumentContent)
    if part.url is not None:
        kind = {"mimeType": part.media_type} if part.media_type else {}
        return {"fileData": {**kind, "fileUri": part.url}}
    return {"inlineData": {"mimeType": part.media_type, "data": part.data}}


def _result(result: ToolResult, ids: dict[str, str]) -> dict[str, Any]:
    texts = [text for part in result.content if (text := text_of(part)) is not None]
    attached = [_part(part) for part in result.content if text_of(part) is None]
    sent: dict[str, Any] = {"id": ids[result.call_id]} if result.call_id in ids else {}
    sent |= {
        "name": _NAMES.replayed(result.name),
        "response": {"error" if result.is_error else "output": "\n".join(texts)},
    }
    if attached:
        sent["parts"] = attached
    return {"functionResponse": sent}


def require_signatures(contents: list[dict[str, Any]], options: Options) -> None:
    """The first call of every step has its proof, as far as it is checked.

    Where it is asked for, the placeholder is put in, also in the turns that are over: what was sent once stays as it
    was. Where it is not, raises RequestError for a call without a proof in the open turn.
    """
    for content in reversed(contents):
        calls = [part for part in content["parts"] if "functionCall" in part]
        is_asked = content["role"] == "user" and any("functionResponse" not in part for part in content["parts"])
        if is_asked and not options.skip_signatures:
            return
        if not calls or "thoughtSignature" in calls[0]:
            continue
        if not options.skip_signatures:
            raise _gemini.unsigned(calls[0]["functionCall"]["name"], "skip_signatures=True sends a placeholder")
        calls[0]["thoughtSignature"] = _gemini.SKIP_SIGNATURE


# ---- tools


_FOREIGN = ("type", "name", "function", "custom", "input_schema", "inputSchema")


def _is_native(tool: dict[str, Any]) -> bool:
    """Google's tool object: a built-in is a key of it, and so are the declarations of functions."""
    return not any(key in tool for key in _FOREIGN)


def _tool_fields(context: Context, options: Options, family: GeminiFamily, vertex: bool) -> dict[str, Any]:
    read = read_tools(context.tools, _is_native)
    own = [tool for tool in read if isinstance(tool, dict)]
    declared = [_declaration(tool) for tool in read if isinstance(tool, FunctionTool)]
    built_in = [key for tool in own for key in tool if key not in DECLARATIONS]
    functions = [*declared, *(entry for tool in own for entry in declarations(tool))]
    names = [function["name"] for function in functions if "name" in function]
    require_declared(options.tool_choice, names)
    for name in names:
        _require_name(name)
    tools = [{"functionDeclarations": declared}, *own] if declared else own
    if not tools:
        return {}
    sent: dict[str, Any] = {"tools": tools}
    config: dict[str, Any] = {}
    if functions and options.tool_choice is not None:
        config["functionCallingConfig"] = _calling(options)
    if functions and built_in and family.thinking == "level" and not vertex:
        config["includeServerSideToolInvocations"] = True
    return {**sent, "toolConfig": config} if config else sent


def _declaration(tool: FunctionTool) -> dict[str, Any]:
    sent: dict[str, Any] = {"name": tool.name}
    if tool.description:
        sent["description"] = tool.description
    # Older models refuse an object without properties.
    return {**sent, "parametersJsonSchema": for_gemini(tool.schema)} if takes_arguments(tool.schema) else sent


# Source: the provider's reference of `FunctionDeclaration`, read 2026-11-30.
_NAMES = NameRule(first="A-Za-z_", alphabet="A-Za-z0-9_.:-", max_length=128)


def _require_name(name: str) -> None:
    """Raises RequestError for the name of a tool that the service does not take."""
    if not _NAMES.accepts(name):
        raise RequestError(
            f"Gemini takes no tool of the name {name!r}",
            hint="A letter or an underscore, then at most 127 letters, digits and _ . : -",
        )


def _calling(options: Options) -> dict[str, Any]:
    match options.tool_choice:
        case NamedTool(name):
            return {"mode": "ANY", "allowedFunctionNames": [name]}
        case "required":
            return {"mode": "ANY"}
        case "none":
            return {"mode": "NONE"}
        case _:
            return {"mode": "AUTO"}


# ---- generation


def _generation(options: Options, family: GeminiFamily) -> dict[str, Any]:
    wanted: dict[str, Any] = {
        "maxOutputTokens": output_limit(options),
        "temperature": options.temperature,
        "topP": options.top_p,
        "topK": options.top_k,
        "seed": options.seed,
        "stopSequences": list(options.stop_sequences) or None,
        "thinkingConfig": _thinking(options, family) or None,
    }
    if options.output is not None:
        wanted["responseMimeType"] = "application/json"
        wanted["responseJsonSchema"] = for_gemini(options.output.schema)
    return {name: value for name, value in wanted.items() if value is not None}


def _thinking(options: Options, family: GeminiFamily) -> dict[str, Any]:
    """`thinkingConfig`; thoughts are hidden unless asked for."""
    level = options.thinking
    if family.thinking == "none":
        return {}
    shown = options.thinking_summary if options.thinking_summary is not None else level not in (None, "off")
    sent: dict[str, Any] = {"includeThoughts": shown} if shown or options.thinking_summary is not None else {}
    if level is None:
        return sent
    if family.thinking == "level":
        lowest = nearest(level, family.levels)
        return {**sent, "thinkingLevel": lowest.upper()} if lowest else sent
    budget = 0 if level == "off" else max(family.min_budget, min(BUDGETS[level], family.max_budget))
    return {**sent, "thinkingBudget": budget or (0 if family.can_disable else family.min_budget)}
