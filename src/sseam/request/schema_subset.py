"""JSON Schemas brought into the form that a service takes. No schema is changed in place.

The strict forms are None where the schema says something that the form cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

from ..decoding import mapping
from .schema_all_of import constrains, joined, without_all_of
from .schema_walk import LISTED, NAMED, SINGLE, Schema, require_tree, walk

__all__ = ["anthropic_strict", "for_gemini", "openai_strict", "takes_arguments"]


class _NotExpressible(Exception):
    """The schema cannot be brought into the form."""


_CONDITIONS = ("not", "if", "then", "else", "patternProperties", "propertyNames", "dependentRequired")
_NOT_OPENAI = (*_CONDITIONS, "allOf", "dependentSchemas", "unevaluatedProperties", "prefixItems", "contains")


def openai_strict(schema: Schema) -> Schema | None:
    """The schema in OpenAI's strict form: objects closed, every property required, optional ones nullable.

    None for free-form objects, alternatives beside properties, `allOf`, `propertyNames`, look-around patterns, a root
    that is no object, and a schema that is malformed. Raises RequestError for one that holds itself.
    Source: the provider's page on structured outputs, read 2026-11-30.
    """
    return _transformed(schema, _openai_node)


def _openai_node(node: Schema) -> Schema:
    node = _without_one_of(_without_single_all_of(node))
    pattern = node.get("pattern")
    if isinstance(pattern, str) and any(mark in pattern for mark in ("(?=", "(?!", "(?<")):
        raise _NotExpressible
    _refuse(node, _NOT_OPENAI)
    node.pop("default", None)
    node = _close(_beside_reference(node))
    if "properties" not in node:
        return node
    properties = cast("dict[str, Schema]", node["properties"])
    required: Any = node.get("required", ())
    closed = {name: value if name in required else _nullable(value) for name, value in properties.items()}
    return {**node, "properties": closed, "required": list(properties)}


def _beside_reference(node: Schema) -> Schema:
    """The node with nothing beside a reference, which moves into an `anyOf` where something describes it.

    OpenAI answers "$ref cannot have keywords {'description'}" (pydantic/pydantic-ai#1488).
    """
    siblings = {key: value for key, value in node.items() if key != "$ref"}
    if "$ref" not in node or not siblings:
        return node
    if constrains(siblings):
        raise _NotExpressible
    return {"anyOf": [{"$ref": node["$ref"]}], **siblings}


def anthropic_strict(schema: Schema) -> Schema | None:
    """The schema in Anthropic's strict form: objects closed, bounds moved into the description.

    None for free-form objects, alternatives beside properties, recursion, a root that is no object, and a schema that
    is malformed. Raises RequestError for one that holds itself.
    Source: the provider's page on structured outputs, read 2026-11-30.
    """
    strict = _transformed(schema, _anthropic_node)
    return None if strict is None or _is_recursive(strict) else strict


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
    node = _without_one_of(_without_single_all_of(node))
    _refuse(node, _CONDITIONS)
    # Every part was closed by itself, so none takes the properties of another.
    if any(_is_object(part) or "$ref" in part for part in node.get("allOf", ())):
        raise _NotExpressible
    bounds = {key: node[key] for key in _BOUNDS if key in node and not (key == "minItems" and node[key] in (0, 1))}
    if bounds:
        said = ", ".join(f"{key}: {value}" for key, value in bounds.items())
        node = {key: value for key, value in node.items() if key not in bounds}
        node["description"] = f"{node.get('description') or ''} ({said})".strip()
    return _close(node)


# ---- what the strict forms share


def _transformed(schema: Schema, change: Callable[[Schema], Schema]) -> Schema | None:
    require_tree(schema)
    if not _is_object(schema) or "null" in _types(schema):
        return None

    def checked(node: Schema) -> Schema:
        _require_shapes(node)
        return change(node)

    try:
        return walk(schema if "type" in schema else {"type": "object", **schema}, checked)
    except _NotExpressible:
        return None


def _require_shapes(node: Schema) -> None:
    """Every keyword has a value of its type, and every schema is an object: true would be anything at all.

    `additionalProperties` is `_close`'s to judge.
    """
    schemas: list[Any] = [node[key] for key in SINGLE if key in node and key != "additionalProperties"]
    for key in (key for key in LISTED if key in node):
        schemas += cast("list[Any]", node[key]) if isinstance(node[key], list) else [None]
    for key in (key for key in NAMED if key in node):
        schemas += cast("Schema", node[key]).values() if isinstance(node[key], dict) else [None]
    if not all(isinstance(schema, dict) for schema in schemas):
        raise _NotExpressible
    required = node.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in cast("list[Any]", required)):
        raise _NotExpressible
    if "type" in node and not _types(node):
        raise _NotExpressible


def _refuse(node: Schema, keywords: Iterable[str]) -> None:
    if any(key in node for key in keywords):
        raise _NotExpressible


def _types(node: Schema) -> tuple[str, ...]:
    kind = node.get("type")
    kinds: list[Any] = cast("list[Any]", kind) if isinstance(kind, list) else [kind]
    return tuple(name for name in kinds if isinstance(name, str))


def _is_object(node: Schema) -> bool:
    return "object" in _types(node) or "properties" in node


_SAYS_SOMETHING = ("type", "properties", "anyOf", "allOf", "$ref", "enum", "const")
_ALTERNATIVES = ("anyOf", "allOf", "$ref")


def _close(node: Schema) -> Schema:
    """The node, which is no object or one that takes only what it declares.

    Closing an object that takes other properties as well would forbid what its author allowed: those that
    `additionalProperties` or an alternative beside them gives, and all of them where none is declared.
    """
    if not any(key in node for key in _SAYS_SOMETHING) or ("array" in _types(node) and "items" not in node):
        raise _NotExpressible
    if not _is_object(node):
        return node
    _refuse(node, _ALTERNATIVES)
    properties: Any = node.get("properties", {})
    closed = node.get("additionalProperties", "properties" not in node)
    if closed is not False or not set(node.get("required", ())) <= set(properties):
        raise _NotExpressible
    return {**node, "type": node.get("type", "object"), "properties": properties, "additionalProperties": False}


def _without_one_of(node: Schema) -> Schema:
    """The strict forms know only `anyOf`."""
    if "oneOf" not in node:
        return node
    _refuse(node, ("anyOf",))
    return {"anyOf" if key == "oneOf" else key: value for key, value in node.items()}


def _without_single_all_of(node: Schema) -> Schema:
    """pydantic wraps a reference in an `allOf` of one, to give it a description.

    What both say of one property would be an `allOf` that was never looked at.
    """
    parts = node.get("allOf", ())
    if len(parts) != 1:
        return node
    part, rest = parts[0], {key: value for key, value in node.items() if key != "allOf"}
    for key in NAMED:
        if any(name in rest.get(key, ()) and rest[key][name] != said for name, said in part.get(key, {}).items()):
            raise _NotExpressible
    return joined(part, rest)


def _nullable(node: Schema) -> Schema:
    kind = node.get("type")
    if isinstance(kind, str) and "enum" not in node and "const" not in node:
        return node if kind == "null" else {**node, "type": [kind, "null"]}
    if isinstance(kind, list) and "null" in kind:
        return node
    if "anyOf" in node and not constrains({key: value for key, value in node.items() if key != "anyOf"}):
        options = cast("list[Schema]", node["anyOf"])
        return node if {"type": "null"} in options else {**node, "anyOf": [*options, {"type": "null"}]}
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


# ---- Gemini

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
    """The schema with only the keywords that Gemini's `parametersJsonSchema` knows.

    `const` becomes an enum of one value, `definitions` become `$defs`, and the parts of an `allOf` one schema: what
    all of them say, and where they contradict each other what the last says. Beside a reference nothing stays.
    Raises RequestError for a schema that holds itself, and for one that without `allOf` is too large.
    """
    require_tree(schema)
    return walk(without_all_of(schema), _gemini_node)


def _gemini_node(node: Schema) -> Schema:
    if "const" in node:
        node["enum"] = [node["const"]]
    if isinstance(definitions := node.get("definitions"), dict):
        node["$defs"] = {**cast("Schema", definitions), **mapping(node.get("$defs"))}
    if "$ref" in node:
        kept = {key: value for key, value in node.items() if key.startswith("$") and key in _GEMINI_KEYS}
        return {**kept, "$ref": _gemini_reference(node["$ref"])}
    return {key: value for key, value in node.items() if key in _GEMINI_KEYS}


def _gemini_reference(reference: Any) -> Any:
    """The reference with `$defs` for every keyword `definitions` in it; a property may have that name too."""
    if not isinstance(reference, str):
        return reference
    steps, is_name = reference.split("/"), False
    for number, step in enumerate(steps):
        if step == "definitions" and not is_name:
            steps[number] = "$defs"
        is_name = not is_name and step in (*NAMED, *LISTED)
    return "/".join(steps)


_ARGUMENTS = ("properties", "patternProperties", "anyOf", "oneOf", "allOf", "$ref", "if", "required")


def takes_arguments(schema: Schema) -> bool:
    """Whether a tool of this schema has arguments: one that says no more than "object" has none."""
    return any(schema.get(key) for key in _ARGUMENTS) or schema.get("additionalProperties", False) is not False
