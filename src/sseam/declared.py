"""The tools that a request declares, in whatever form the caller has them, by name.

The stream is checked against this: is the tool that a call names declared, and does it have
arguments that must be there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

import msgspec

__all__ = ["DeclaredTool", "declare"]

# Anthropic; MCP; OpenAI and Gemini; Gemini's plain JSON Schema on the wire and in its SDK.
_SCHEMA_KEYS = ("input_schema", "inputSchema", "parameters", "parametersJsonSchema", "parameters_json_schema")

# Gemini writes a tool that it runs itself as a key of the tool object, not as a `type`; its SDK
# spells the same keys in snake case.
_GEMINI_BUILT_INS = frozenset(
    (
        "codeexecution",
        "computeruse",
        "enterprisewebsearch",
        "filesearch",
        "googlemaps",
        "googlesearch",
        "googlesearchretrieval",
        "mcpservers",
        "retrieval",
        "urlcontext",
    )
)


class DeclaredTool(msgspec.Struct, frozen=True):
    """One declared tool.

    Attributes:
        name: the name a call uses; for a tool that the provider runs and that has no name, its type.
        schema: JSON Schema of the arguments, the caller's own object; None where there is none (a
            bare name, a built-in tool, a custom tool whose input is free text).
        required: names of the arguments that must be there.
    """

    name: str
    schema: dict[str, Any] | None = None
    required: tuple[str, ...] = ()


def declare(tools: Iterable[object]) -> dict[str, DeclaredTool]:
    """The declared tools by name, in their order.

    An entry is an object with `name` and `schema` (a `sseam.Tool`), a bare name, or a dict in the
    form of Anthropic, OpenAI Chat, OpenAI Responses, Gemini or MCP, built-in tools included.

    Raises:
        TypeError: `tools` is no list, or an entry has none of these forms; says which and why.
        ValueError: two different tools have the same name.
    """
    if isinstance(tools, str | bytes | dict):
        raise TypeError("tools: expected a list of tools, got a single one")
    declared: dict[str, DeclaredTool] = {}
    for number, entry in enumerate(tools):
        for tool in _read(entry, f"tools[{number}]"):
            if declared.setdefault(tool.name, tool) != tool:
                raise ValueError(f"tools[{number}]: there is already another tool named {tool.name!r}")
    return declared


def _read(entry: object, path: str) -> Iterator[DeclaredTool]:
    if isinstance(entry, str):
        yield _tool(entry, None, path)
    elif isinstance(entry, dict):
        yield from _read_dict(cast("dict[str, Any]", entry), path)
    elif hasattr(entry, "name") and hasattr(entry, "schema"):
        yield _tool(cast("Any", entry).name, cast("Any", entry).schema, path)
    else:
        raise TypeError(f"{path}: expected a Tool, a dict or a name, got {type(entry).__name__}")


def _read_dict(entry: dict[str, Any], path: str) -> Iterator[DeclaredTool]:
    gemini = {key: value for key, value in entry.items() if _is_gemini(key)}
    if gemini:
        for key, value in gemini.items():
            if _plain(key) == "functiondeclarations":
                yield from _read_list(value, f"{path}.{key}")
            else:
                yield DeclaredTool(key)
    elif entry.get("type") == "namespace":
        yield from _read_list(entry.get("tools"), f"{path}.tools")
    else:
        yield _read_one(entry, path)


def _is_gemini(key: str) -> bool:
    plain = _plain(key)
    return plain == "functiondeclarations" or plain in _GEMINI_BUILT_INS


def _plain(key: object) -> str:
    return str(key).replace("_", "").lower()


def _read_list(entries: object, path: str) -> Iterator[DeclaredTool]:
    if not isinstance(entries, list | tuple):
        raise TypeError(f"{path}: expected a list of tools, got {type(entries).__name__}")
    for number, entry in enumerate(cast("list[object]", entries)):
        yield from _read(entry, f"{path}[{number}]")


def _read_one(entry: dict[str, Any], path: str) -> DeclaredTool:
    kind = entry.get("type")
    for nested in ("function", "custom"):
        if isinstance(entry.get(nested), dict):
            entry, path = entry[nested], f"{path}.{nested}"
            break
    name = entry.get("name")
    if name is None and kind not in ("function", "custom"):
        name = kind
    if name is None:
        raise TypeError(f"{path}: no tool's form: neither a name nor a built-in type among {sorted(map(str, entry))}")
    return _tool(name, next((entry[key] for key in _SCHEMA_KEYS if key in entry), None), path)


def _tool(name: object, schema: object, path: str) -> DeclaredTool:
    if not isinstance(name, str) or not name:
        raise TypeError(f"{path}: a tool's name must be a string that is not empty, got {name!r}")
    if schema is None:
        return DeclaredTool(name)
    if not isinstance(schema, dict):
        raise TypeError(f"{path}: the schema of tool {name!r} must be a dict, got {type(schema).__name__}")
    schema = cast("dict[str, Any]", schema)
    required: Any = schema.get("required", ())
    if not isinstance(required, list | tuple) or any(not isinstance(key, str) for key in cast("list[Any]", required)):
        raise TypeError(f"{path}: `required` of tool {name!r} must be a list of names, got {required!r}")
    return DeclaredTool(name, schema, tuple(cast("list[str]", required)))
