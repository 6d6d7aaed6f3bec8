"""A JSON Schema as a tree of schemas: the way through it. No schema is changed in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

from ..errors import RequestError

__all__ = ["LISTED", "NAMED", "SINGLE", "Schema", "map_inner", "require_object", "require_tree", "walk"]

Schema: TypeAlias = dict[str, Any]

# Keywords whose value is a schema, a list of schemas, or schemas by name.
SINGLE = ("items", "additionalProperties", "not", "contains", "if", "then", "else", "propertyNames")
LISTED = ("anyOf", "oneOf", "allOf", "prefixItems")
NAMED = ("properties", "$defs", "definitions", "patternProperties")

# Levels of JSON, about two a level of the schema. OpenAI takes ten levels of objects, Gemini refuses "very deep" ones.
MAX_DEPTH = 128


def require_tree(schema: Schema) -> None:
    """Raises RequestError for a schema of more than `MAX_DEPTH` levels, one that holds itself, and what is none."""
    require_object(schema)
    level: dict[int, Any] = {id(schema): schema}
    for _ in range(MAX_DEPTH):
        level = {id(value): value for outer in level.values() for value in _containers(outer)}
        if not level:
            return
    raise RequestError(f"a schema has more than {MAX_DEPTH} levels, or holds itself")


def require_object(schema: Any) -> None:
    """Raises RequestError for what is no schema at all, such as the text of one."""
    if not isinstance(schema, dict):
        raise RequestError(f"a schema is an object, got {type(schema).__name__}")


def _containers(value: Any) -> list[Any]:
    values: Any = cast("Schema", value).values() if isinstance(value, dict) else value
    return [entry for entry in values if isinstance(entry, dict | list | tuple)]


def walk(schema: Schema, change: Callable[[Schema], Schema]) -> Schema:
    """A new schema with `change` applied to every schema in it, the inner ones first. `change` owns what it gets."""
    return change(map_inner(schema, lambda inner: walk(inner, change)))


def map_inner(schema: Schema, change: Callable[[Schema], Schema]) -> Schema:
    """A new schema with `change` applied to the schemas directly in it, however deep these are themselves.

    What is no schema stays as it is: true and false, `items` as a list (older drafts), a keyword of a wrong type.
    """

    def changed(value: Any) -> Any:
        return change(cast("Schema", value)) if isinstance(value, dict) else value

    node = dict(schema)
    for key in SINGLE:
        if key in node:
            node[key] = changed(node[key])
    for key in LISTED:
        if isinstance(node.get(key), list):
            node[key] = [changed(entry) for entry in node[key]]
    for key in NAMED:
        if isinstance(node.get(key), dict):
            node[key] = {name: changed(entry) for name, entry in node[key].items()}
    return node
