"""JSON Schemas brought into the form that a service takes. No schema is changed in place.

Each function gives a new schema, or None where the schema says something that the form cannot.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

__all__ = ["anthropic_strict", "for_gemini", "openai_strict"]

Schema: TypeAlias = dict[str, Any]

# Keywords whose value is a schema, a list of schemas, or schemas by name.
_ONE = ("items", "additionalProperties", "not", "contains", "if", "then", "else", "propertyNames")
_LIST = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED = ("properties", "$defs", "definitions", "patternProperties")


class _NotExpressible(Exception):
    """The schema cannot be brought into the form."""


def openai_strict(schema: Schema) -> Schema | None:
    """The schema in OpenAI's strict form: objects closed, every property required, optional ones nullable.

    None for free-form objects, `allOf`, `propertyNames`, look-around patterns and a root that is no object. Source: the
    provider's page on structured outputs, read 2026-11-29.
    """
    return _transformed(schema, _openai_node)


def _openai_node(node: Schema) -> Schema:
    node = _without_single_all_of(node)
    pattern = node.get("pattern")
    if any(
        key in node for key in ("allOf", "not", "if", "patternProperties", "propertyNames", "dependentRequired")
    ) or (isinstance(pattern, str) and any(mark in pattern for mark in ("(?=", "(?!", "(?<"))):
        raise _NotExpressible
    node.pop("default", None)
    if "oneOf" in node:
        node["anyOf"] = node.pop("oneOf")
    node = _close(node)
    if not _is_object(node):
        return node
    properties = cast("dict[str, Schema]", node["properties"])
    required: Any = node.get("required", ())
    closed = {name: value if name in required else _nullable(value) for name, value in properties.items()}
    return {**node, "properties": closed, "required": list(properties)}


def anthropic_strict(schema: Schema) -> Schema | None:
    """The schema in Anthropic's strict form: objects closed, bounds moved into the description.

    None for free-form objects, recursion, and a root that is no object. Source: the provider's page on structured
    outputs, read 2026-11-29.
    """
    if _is_recursive(schema):
        return None
    return _transformed(schema, _anthropic_node)


_BOUNDS = (
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
)


def _anthropic_node(node: Schema) -> Schema:
    node = _without_single_all_of(node)
    if any(key in node for key in ("not", "if", "patternProperties", "propertyNames", "dependentRequired")):
        raise _NotExpressible
    bounds = {key: node[key] for key in _BOUNDS if key in node and not (key == "minItems" and node[key] in (0, 1))}
    if bounds:
        said = ", ".join(f"{key}: {value}" for key, value in bounds.items())
        node = {key: value for key, value in node.items() if key not in bounds}
        node["description"] = f"{node.get('description', '')} ({said})".strip()
    if "oneOf" in node:
        node["anyOf"] = node.pop("oneOf")
    return _close(node)


# Source: the provider's page on structured outputs, read 2026-11-29.
_GEMINI_KEYS = frozenset(
    (
        "$id",
        "$defs",
        "$ref",
        "$anchor",
        "type",
        "format",
        "title",
        "description",
        "enum",
        "items",
        "prefixItems",
        "minItems",
        "maxItems",
        "minimum",
        "maximum",
        "anyOf",
        "oneOf",
        "properties",
        "additionalProperties",
        "required",
        "propertyOrdering",
    )
)


def for_gemini(schema: Schema) -> Schema:
    """The schema with only the keywords that Gemini's `parametersJsonSchema` knows; `const` as a one-value enum."""
    return _walk(schema, _gemini_node)


def _gemini_node(node: Schema) -> Schema:
    if "const" in node:
        node["enum"] = [node["const"]]
    if "$ref" in node:
        return {key: value for key, value in node.items() if key.startswith("$") and key in _GEMINI_KEYS}
    return {key: value for key, value in node.items() if key in _GEMINI_KEYS}


# ---- shared


def _transformed(schema: Schema, change: Callable[[Schema], Schema]) -> Schema | None:
    if not _is_object(schema) and schema != {}:
        return None
    # A root that says no more than "object" is the schema of a tool without arguments.
    root: Schema = schema if "additionalProperties" in schema else {"properties": {}, **schema}
    try:
        return _walk({"type": "object", **root}, change)
    except _NotExpressible:
        return None


def _walk(schema: Schema, change: Callable[[Schema], Schema]) -> Schema:
    """A new schema with `change` applied to every schema in it, the inner ones first."""
    node = dict(schema)
    for key in _ONE:
        if key in node:
            node[key] = _inner(node[key], change)
    for key in _LIST:
        if isinstance(node.get(key), list):
            node[key] = [_inner(entry, change) for entry in node[key]]
    for key in _NAMED:
        if isinstance(node.get(key), dict):
            node[key] = {name: _inner(entry, change) for name, entry in node[key].items()}
    return change(node)


def _inner(value: Any, change: Callable[[Schema], Schema]) -> Any:
    # true and false are schemas too, and `items` was a list in older drafts.
    return _walk(cast("Schema", value), change) if isinstance(value, dict) else value


def _is_object(node: Schema) -> bool:
    return node.get("type") == "object" or "properties" in node


_SAYS_SOMETHING = ("type", "properties", "anyOf", "oneOf", "allOf", "$ref", "enum", "const")


def _close(node: Schema) -> Schema:
    """The node, which is no object or one that takes only what it declares.

    Closing an object that takes other properties as well would forbid what its author allowed.
    """
    if not any(key in node for key in _SAYS_SOMETHING):
        raise _NotExpressible
    if not _is_object(node):
        return node
    if "properties" not in node or node.get("additionalProperties", False) is not False:
        raise _NotExpressible
    return {**node, "type": node.get("type", "object"), "additionalProperties": False}


def _without_single_all_of(node: Schema) -> Schema:
    """pydantic wraps a reference in an `allOf` of one, to give it a description."""
    parts = node.get("allOf")
    if not isinstance(parts, list) or len(cast("list[Any]", parts)) != 1:
        return node
    rest = {key: value for key, value in node.items() if key != "allOf"}
    return {**cast("list[Schema]", parts)[0], **rest}


def _nullable(node: Schema) -> Schema:
    kind = node.get("type")
    if isinstance(kind, str) and "enum" not in node and "const" not in node:
        return node if kind == "null" else {**node, "type": [kind, "null"]}
    if isinstance(kind, list) and "null" in kind:
        return node
    if isinstance(node.get("anyOf"), list) and len(node) == 1:
        options = cast("list[Schema]", node["anyOf"])
        return node if {"type": "null"} in options else {"anyOf": [*options, {"type": "null"}]}
    return {"anyOf": [node, {"type": "null"}]}


def _is_recursive(schema: Schema) -> bool:
    """Whether a definition leads back to itself, or a reference to the root."""
    named = {
        f"#/{key}/{name}": definition
        for key in ("$defs", "definitions")
        for name, definition in cast("dict[str, Any]", schema.get(key, {})).items()
    }
    uses = {name: _references(definition) for name, definition in named.items()}
    if "#" in _references(schema):
        return True
    for name in uses:
        reached, waiting = set[str](), list(uses[name])
        while waiting:
            following = waiting.pop()
            if following not in reached:
                reached.add(following)
                waiting += uses.get(following, ())
        if name in reached:
            return True
    return False


def _references(value: object) -> set[str]:
    found: set[str] = set()
    waiting: list[Any] = [value]
    while waiting:
        entry = waiting.pop()
        if isinstance(entry, dict):
            entry = cast("dict[str, Any]", entry)
            if isinstance(entry.get("$ref"), str):
                found.add(entry["$ref"])
            waiting += entry.values()
        elif isinstance(entry, list):
            waiting += cast("list[Any]", entry)
    return found
