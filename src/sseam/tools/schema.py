"""Python type → JSON Schema that every provider takes: no references but those of a type that holds itself."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any, cast, get_args, get_origin

import msgspec

__all__ = ["admits_null", "drop_nulls", "pydantic_adapter", "type_schema"]

Schema = dict[str, Any]

# Keywords whose value is data, or a map from names to schemas: neither is itself a schema.
_DATA = frozenset(("const", "default", "enum", "example", "examples"))
_MAPS = frozenset(("$defs", "dependentSchemas", "patternProperties", "properties"))


def type_schema(tp: Any, adapter: Any = None) -> tuple[Schema, dict[str, Schema]]:
    """The schema of a type, and the definitions of recursive types that it still refers to.

    `adapter` is the type's `pydantic_adapter`. Raises TypeError for a type that has no JSON form.
    """
    if adapter is not None:
        schema: Schema = adapter.json_schema()
        definitions: dict[str, Schema] = schema.pop("$defs", {})
    else:
        (schema,), definitions = msgspec.json.schema_components([tp])
    recursive = {name for name in definitions if name in _reachable(definitions[name], definitions)}
    kept = _reachable(schema, definitions) & recursive
    return _inline(schema, definitions, recursive), {
        name: _inline(definitions[name], definitions, recursive) for name in sorted(kept)
    }


def _reachable(schema: object, definitions: dict[str, Schema]) -> set[str]:
    """Names of the definitions that a schema refers to, directly or through others."""
    found: set[str] = set()
    pending = [schema]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            mapping = cast("Schema", node)
            name = _reference(mapping)
            if name in definitions and name not in found:
                found.add(name)
                pending.append(definitions[name])
            pending.extend(mapping.values())
        elif isinstance(node, list):
            pending.extend(cast("list[object]", node))
    return found


def _reference(schema: Schema) -> str:
    reference = schema.get("$ref")
    return reference.removeprefix("#/$defs/") if isinstance(reference, str) else ""


def _inline(schema: Any, definitions: dict[str, Schema], recursive: set[str]) -> Any:
    if isinstance(schema, list):
        return [_inline(item, definitions, recursive) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    result: Schema = {}
    source = cast("Schema", schema)
    name = _reference(source)
    if name in definitions and name not in recursive:
        # What stands beside the reference (a description, a default) is nearer and wins.
        result = dict(_inline(definitions[name], definitions, recursive))
        source = {key: value for key, value in source.items() if key != "$ref"}
    for key, value in source.items():
        if key == "discriminator":
            continue  # OpenAPI's word, not JSON Schema's; it would point at definitions that are gone
        if key in _DATA:
            result[key] = value
        elif key in _MAPS:
            result[key] = {name: _inline(value[name], definitions, recursive) for name in value}
        else:
            result[key] = _inline(value, definitions, recursive)
    if "anyOf" in result:
        # msgspec puts the classes of a union into one of their own.
        result["anyOf"] = [inner for branch in result["anyOf"] for inner in _branches(branch)]
    return result


def _branches(schema: Schema) -> list[Schema]:
    return schema["anyOf"] if schema.keys() == {"anyOf"} else [schema]


def pydantic_adapter(tp: Any) -> Any:
    """A pydantic `TypeAdapter` where the annotation mentions something of pydantic's, else None.

    msgspec would overlook `Annotated[int, Field(ge=1)]` in silence, so that counts as well. pydantic
    is imported only then: whoever mentions it has it.
    """
    return import_module("pydantic").TypeAdapter(tp) if _mentions_pydantic(tp) else None


def _mentions_pydantic(tp: Any) -> bool:
    if get_origin(tp) is Annotated:
        packages = {type(mark).__module__.partition(".")[0] for mark in tp.__metadata__}
        return bool(packages & {"pydantic", "annotated_types"}) or _mentions_pydantic(tp.__origin__)
    if hasattr(tp, "__pydantic_core_schema__") or hasattr(tp, "__get_pydantic_core_schema__"):
        return True
    return any(_mentions_pydantic(arg) for arg in get_args(tp))


def admits_null(schema: Any, definitions: dict[str, Schema]) -> bool:
    """Whether a schema as `type_schema` makes it, or a hand-written plain one, lets null through."""
    if not isinstance(schema, dict):
        return bool(schema)
    schema = cast("Schema", schema)
    if (name := _reference(schema)) in definitions:
        return admits_null(definitions[name], definitions)
    if "enum" in schema:
        return None in schema["enum"]
    if "const" in schema:
        return schema["const"] is None
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return any(admits_null(branch, definitions) for branch in schema[union])
    kinds = schema.get("type", "null")
    return "null" in kinds if isinstance(kinds, list) else kinds == "null"


def drop_nulls(value: Any, schema: Any, definitions: dict[str, Schema]) -> Any:
    """`value` without the members that are null, optional, and not allowed to be null.

    A provider's strict form makes optional fields required and nullable: the model says null where
    it would have left the field out.
    """
    if not isinstance(schema, dict):
        return value
    schema = cast("Schema", schema)
    if (name := _reference(schema)) in definitions:
        return drop_nulls(value, definitions[name], definitions)
    for union in ("anyOf", "oneOf"):
        branches = [branch for branch in schema.get(union, ()) if branch != {"type": "null"}]
        if len(branches) == 1:
            return drop_nulls(value, branches[0], definitions)
    if isinstance(value, list):
        return [drop_nulls(item, schema.get("items"), definitions) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    properties, required = schema.get("properties", {}), schema.get("required", ())
    return {
        key: drop_nulls(item, properties.get(key), definitions)
        for key, item in cast("dict[str, Any]", value).items()
        if item is not None or key not in properties or key in required or admits_null(properties[key], definitions)
    }
