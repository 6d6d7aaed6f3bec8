"""What every protocol's request needs: address, headers, tools, and the caller's own additions.

Pure functions over plain data; the bodies themselves are built in `protocols/<name>/request.py`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast
from urllib.parse import urlsplit, urlunsplit

import msgspec

from ..content import Content, DocumentContent, ImageContent, TextContent
from ..context import Context, NamedTool, Options, SystemPart
from ..errors import RequestError
from ..tools import ToolResult
from .openapi_schema import plain_schema
from .schema_subset import takes_arguments

__all__ = [
    "DECLARATIONS",
    "FunctionTool",
    "data_url",
    "declarations",
    "join_url",
    "merge_body",
    "merge_headers",
    "output_limit",
    "read_tools",
    "require_declared",
    "result_text",
    "system_parts",
    "text_of",
]


def join_url(base_url: str, path: str) -> str:
    """`base_url` with `path` behind its own path; a query that the base has stays at the end."""
    base = urlsplit(base_url)
    return urlunsplit(base._replace(path=base.path.rstrip("/") + path))


def merge_headers(own: Mapping[str, str], options: Options) -> dict[str, str]:
    """The headers in lower case, the caller's over our own."""
    return {name.lower(): value for name, value in (*own.items(), *options.extra_headers.items())}


def merge_body(body: dict[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """The body with the caller's fields: objects merged key by key, everything else replaced.

    Neither argument is changed, nor shared with the result where both had a part in it. Raises RequestError for a
    value that cannot be copied.
    """
    merged = dict(body)
    for key, value in extra.items():
        known = merged.get(key)
        if isinstance(known, dict) and isinstance(value, dict):
            merged[key] = merge_body(cast("dict[str, Any]", known), cast("dict[str, Any]", value))
        else:
            try:
                merged[key] = copy.deepcopy(value)
            except Exception as error:  # whatever the copy of a foreign object raises
                kind = type(error).__name__
                raise RequestError(f"extra_body: {key!r} cannot be copied, so it is no plain JSON ({kind})") from error
    return merged


def output_limit(options: Options) -> int | None:
    """The limit of the output in tokens, None where the caller sets none. Raises RequestError for less than 1."""
    if options.max_output_tokens is not None and options.max_output_tokens < 1:
        raise RequestError(f"the output limit is {options.max_output_tokens:,}, it must be 1 or more")
    return options.max_output_tokens


# ---- text and attachments


def system_parts(context: Context) -> tuple[SystemPart, ...]:
    """The parts of the system prompt that hold text, may be empty."""
    parts = (SystemPart(context.system),) if isinstance(context.system, str) else context.system
    return tuple(part for part in parts if part.text.strip())


def text_of(part: Content) -> str | None:
    """The part as text, None where it is none: plain text, and documents given as text with their title."""
    match part:
        case TextContent(text):
            return text
        case DocumentContent(text=str(text), title=title):
            return f"{title}\n\n{text}" if title else text
        case _:
            return None


def data_url(part: ImageContent | DocumentContent) -> str:
    """The attachment as an address: its own, or its bytes as a data URL."""
    return part.url if part.url is not None else f"data:{part.media_type};base64,{part.data}"


def result_text(result: ToolResult) -> str:
    """A tool's result as one text, for services whose results are text and know no failure.

    Parts that are no text are only named; the caller sends them elsewhere.
    """
    texts = (text_of(part) for part in result.content)
    text = "\n".join("(attached below)" if text is None else text for text in texts)
    return f"Error: {text}" if result.is_error else text


# ---- tools


class FunctionTool(msgspec.Struct, frozen=True, kw_only=True):
    """A client tool as the model sees it, whatever form it came in.

    Attributes:
        name, description: for the model.
        schema: JSON Schema of the arguments: the caller's own object, not to be changed.
        strict: ask for arguments that fit the schema; None: not said.
        free_text: the tool's input is free text (OpenAI's custom tools), and `schema` stands for it where a
            service has no such tools.
        cache: a cache breakpoint behind it.
    """

    name: str
    description: str | None
    schema: dict[str, Any]
    strict: bool | None = None
    free_text: bool = False
    cache: bool = False


_NO_ARGUMENTS: dict[str, Any] = {"type": "object", "properties": {}}
# A custom tool's call has its text under this key, see `sseam.message.ToolCall`.
_FREE_TEXT: dict[str, Any] = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
_SCHEMA_KEYS = ("input_schema", "inputSchema", "parameters", "parametersJsonSchema", "parameters_json_schema")
# Gemini takes both spellings.
DECLARATIONS = ("functionDeclarations", "function_declarations")


def read_tools(
    tools: Iterable[Any], is_native: Callable[[dict[str, Any]], bool]
) -> list[FunctionTool | dict[str, Any]]:
    """The tools in order: a dict in the service's own form unchanged, everything else read.

    Raises RequestError for a tool in no known form, for a built-in tool of another provider, and for two tools of
    one name.
    """
    read: list[FunctionTool | dict[str, Any]] = []
    for number, tool in enumerate(tools):
        path = f"tools[{number}]"
        if not isinstance(tool, dict):
            read.append(_from_object(tool, path))
            continue
        entry = cast("dict[str, Any]", tool)
        if is_native(entry):
            for name in _own_names(entry):
                if not isinstance(name, str):
                    raise RequestError(f"{path}: a tool's name is a text, got {type(name).__name__}")
            read.append(entry)
        elif any(key in entry for key in DECLARATIONS):
            read += _from_declarations(entry, path)
        else:
            read.append(_from_dict(entry, path))
    _require_distinct(read)
    return read


def declarations(entry: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The functions that a tool object of Gemini's declares, may be empty. Raises RequestError for what is no list."""
    found: list[dict[str, Any]] = []
    for key in DECLARATIONS:
        given: Any = entry.get(key) or []
        for declaration in cast("list[Any]", given) if isinstance(given, list | tuple) else [given]:
            if not isinstance(declaration, dict):
                raise RequestError(f"{key} is a list of objects, got {type(declaration).__name__}")
            found.append(cast("dict[str, Any]", declaration))
    return found


def _from_declarations(entry: dict[str, Any], path: str) -> Iterator[FunctionTool]:
    """The functions of a tool object of Gemini's, whose `parameters` are in a form of its own."""
    if built_in := [key for key in entry if key not in DECLARATIONS]:
        raise RequestError(f"{path}: a tool that this service does not know: {built_in!r}")
    for declaration in declarations(entry):
        tool = _from_dict(declaration, path)
        own = declaration.get("parameters") is not None
        yield msgspec.structs.replace(tool, schema=_arguments(plain_schema(tool.schema))) if own else tool


def _from_object(tool: Any, path: str) -> FunctionTool:
    if not hasattr(tool, "name") or not hasattr(tool, "schema"):
        raise RequestError(f"{path}: expected a Tool or a dict, got {type(tool).__name__}")
    return FunctionTool(
        name=tool.name,
        description=getattr(tool, "description", None) or None,
        schema=_arguments(tool.schema or {}),
        strict=getattr(tool, "strict", None),
        cache=bool(getattr(tool, "cache", False)),
    )


def _from_dict(entry: dict[str, Any], path: str) -> FunctionTool:
    inner = next((entry[key] for key in ("function", "custom") if isinstance(entry.get(key), dict)), entry)
    schema = next((inner[key] for key in _SCHEMA_KEYS if inner.get(key) is not None), None)
    free_text = schema is None and entry.get("type") == "custom"
    known = entry.get("type") in (None, "function", "custom")
    if not isinstance(inner.get("name"), str) or not (schema is not None or known):
        raise RequestError(f"{path}: a tool that this service does not know: {entry.get('type') or sorted(entry)!r}")
    if not isinstance(schema, dict | None):
        raise RequestError(f"{path}: the schema of {inner['name']!r} is an object, got {type(schema).__name__}")
    return FunctionTool(
        name=inner["name"],
        description=inner.get("description"),
        schema=_FREE_TEXT if free_text else _arguments(cast("dict[str, Any]", schema or {})),
        strict=inner.get("strict"),
        free_text=free_text,
        cache="cache_control" in entry,
    )


def _arguments(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema. One that says no more than "object" declares no argument, and services want that said."""
    kind = schema.get("type", "object")
    return schema if kind != "object" or takes_arguments(schema) else {**schema, **_NO_ARGUMENTS}


def _require_distinct(tools: list[FunctionTool | dict[str, Any]]) -> None:
    seen: set[str] = set()
    for tool in tools:
        for name in (tool.name,) if isinstance(tool, FunctionTool) else _own_names(tool):
            if name in seen:
                raise RequestError(f"two tools have the name {name!r}")
            seen.add(name)


def _own_names(entry: dict[str, Any]) -> Iterator[Any]:
    """The names that a tool in the service's own form gives: none for most built-in tools, several for Gemini's."""
    inner = [entry.get(key) for key in ("function", "custom")]
    for part in (entry, *inner, *declarations(entry)):
        if isinstance(part, dict) and "name" in part:
            yield cast("dict[str, Any]", part)["name"]
    if "input_schema" in entry and "name" not in entry:
        yield None


def require_declared(choice: object, names: Iterable[str], *, nameless: bool = False) -> None:
    """Raises RequestError where the tool that must be called is not among `names`.

    `nameless`: there are other tools, which have no name and can be called all the same.
    """
    declared = sorted(names)
    if isinstance(choice, NamedTool) and choice.name not in declared:
        raise RequestError(f"tool_choice names {choice.name!r}, which is not among the tools {declared}")
    if choice == "required" and not declared and not nameless:
        raise RequestError("tool_choice is 'required', but there are no tools to choose from")
