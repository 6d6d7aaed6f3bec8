"""Gemini's own `Schema`, a subset of OpenAPI's, read as plain JSON Schema."""

from __future__ import annotations

from typing import Any, cast

from .schema_walk import Schema, map_inner, require_tree

__all__ = ["plain_schema"]

# The service takes both spellings, and its Python SDK writes this one.
_CAMEL = {
    "additional_properties": "additionalProperties",
    "any_of": "anyOf",
    "max_items": "maxItems",
    "max_length": "maxLength",
    "max_properties": "maxProperties",
    "min_items": "minItems",
    "min_length": "minLength",
    "min_properties": "minProperties",
    "property_ordering": "propertyOrdering",
}
# 64-bit integers, which this service writes as texts.
_COUNTS = ("maxItems", "maxLength", "maxProperties", "minItems", "minLength", "minProperties")


def plain_schema(schema: Schema) -> Schema:
    """The schema of a declaration's `parameters` as JSON Schema: types in lower case, `nullable` as the type null.

    Plain JSON Schema comes back equal. Every other keyword stays. Raises RequestError for a schema that holds itself.
    Source: the provider's reference of `Schema`, read 2026-11-30.
    """
    require_tree(schema)
    return _plain(schema)


def _plain(schema: Schema) -> Schema:
    node = map_inner({_CAMEL.get(key, key): value for key, value in schema.items()}, _plain)
    for key in _COUNTS:
        if isinstance(node.get(key), str) and node[key].isdecimal():
            node[key] = int(node[key])
    kind: Any = node.get("type")
    if isinstance(kind, str):
        node["type"] = kind.lower()
    elif isinstance(kind, list):
        node["type"] = [name.lower() if isinstance(name, str) else name for name in cast("list[Any]", kind)]
    return _with_null(node) if node.pop("nullable", None) is True else node


def _with_null(node: Schema) -> Schema:
    if isinstance(node.get("type"), str) and node["type"] != "null":
        node["type"] = [node["type"], "null"]
    if isinstance(node.get("enum"), list) and None not in node["enum"]:
        node["enum"] = [*node["enum"], None]
    if isinstance(node.get("anyOf"), list) and {"type": "null"} not in node["anyOf"]:
        node["anyOf"] = [*node["anyOf"], {"type": "null"}]
    return node
