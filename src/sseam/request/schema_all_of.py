"""JSON Schemas without `allOf`: its parts as one schema. No schema is changed in place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from ..decoding import mapping
from ..errors import RequestError
from .schema_walk import NAMED, Schema, map_inner

__all__ = ["constrains", "joined", "without_all_of"]

_ANNOTATIONS = frozenset(
    (
        "$schema",
        "$id",
        "$comment",
        "$defs",
        "definitions",
        "title",
        "description",
        "default",
        "deprecated",
        "example",
        "examples",
        "readOnly",
        "writeOnly",
    )
)
_DEFINITIONS = ("$defs", "definitions")


def constrains(schema: Schema) -> bool:
    """Whether some value does not fit the schema, as far as its keywords tell: the others only describe."""
    return any(key not in _ANNOTATIONS for key in schema)


def joined(one: Schema, other: Schema) -> Schema:
    """What both say; where they contradict each other, what the `other` says.

    A property that both have is an `allOf` of the two.
    """
    both = {**one, **other}
    for key in one.keys() & other.keys():
        first, second = one[key], other[key]
        if key in NAMED and isinstance(first, dict) and isinstance(second, dict):
            both[key] = _joined_by_name(cast("dict[str, Any]", first), cast("dict[str, Any]", second))
        elif key in ("required", "allOf") and isinstance(first, list) and isinstance(second, list):
            both[key] = first + [entry for entry in cast("list[Any]", second) if entry not in first]
    return both


def _joined_by_name(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    twice = {name: _both(one[name], other[name]) for name in one if name in other and one[name] != other[name]}
    return {**one, **other, **twice}


def _both(one: Any, other: Any) -> Schema:
    """The two as an `allOf`, which is no deeper for the many that were joined before."""
    parts = mapping(one).get("allOf") if mapping(one).keys() == {"allOf"} else None
    return {"allOf": [*(cast("list[Any]", parts) if isinstance(parts, list) else [one]), other]}


def without_all_of(schema: Schema) -> Schema:
    """The schema with the parts of every `allOf` merged; a part that is a reference gives what it stands for.

    What was looked up may have more such nodes in it. Each of these becomes a definition of its own in `$defs`, once,
    so a schema that uses itself has an end and no definition is written out in every place that leads to it.
    Raises RequestError where the result would be much larger than the schema.
    """
    return _Merger(schema).whole()


# How much may be looked up, in characters: so many times the schema, and this much however small it is.
_GROWTH, _FLOOR = 16, 100_000


class _Merger:
    def __init__(self, root: Schema) -> None:
        self.root = root
        self.names: dict[frozenset[str], str] = {}  # of the definitions that were made, by their parts
        self.waiting: list[tuple[str, Schema]] = []
        self.taken = {name for key in _DEFINITIONS for name in mapping(root.get(key))}
        self.left = _FLOOR + _GROWTH * len(repr(root))

    def whole(self) -> Schema:
        own = {key: self.root[key] for key in _DEFINITIONS if key in self.root}
        rest = {key: value for key, value in self.root.items() if key not in own}
        # A definition is no part of what the root's own references stand for.
        merged = {**self._written(rest), **map_inner(own, self._written)}
        made: Schema = {}
        while self.waiting:
            name, node = self.waiting.pop()
            made[name] = map_inner(node, self._copied)
        return {**merged, "$defs": {**mapping(merged.get("$defs")), **made}} if made else merged

    def _written(self, schema: Schema) -> Schema:
        """A node that the schema has in this place."""
        node, looked_up = self._merged(schema)
        return map_inner(node, self._copied if looked_up else self._written)

    def _copied(self, schema: Schema) -> Schema:
        """A node of what was looked up, which other places may have in them too."""
        if not isinstance(schema.get("allOf"), list):
            return map_inner(schema, self._copied)
        # Without order and repetition: what joins itself again and again comes to an end, since its parts are few.
        made_of = frozenset(map(repr, _flat(schema)))
        if made_of not in self.names:
            node, looked_up = self._merged(schema)
            if not looked_up:
                return map_inner(node, self._copied)
            self.names[made_of] = self._new_name()
            self.waiting.append((self.names[made_of], node))
        return {"$ref": f"#/$defs/{self.names[made_of]}"}

    def _new_name(self) -> str:
        number = len(self.names) + 1
        while f"merged_{number}" in self.taken:
            number += 1
        self.taken.add(f"merged_{number}")
        return f"merged_{number}"

    def _merged(self, schema: Schema) -> tuple[Schema, set[str]]:
        """The node without an `allOf` of its own, and the references that were looked up for it."""
        node, looked_up = schema, set[str]()
        while isinstance(node.get("allOf"), list):
            rest = {key: value for key, value in node.items() if key != "allOf"}
            given = cast("list[Any]", node["allOf"])
            parts = [*(cast("Schema", part) for part in given if isinstance(part, dict)), rest]
            alone = sum(map(constrains, parts)) == 1
            node = {}
            for part in parts:
                node = joined(node, part if alone else self._looked_up(part, looked_up))
        if looked_up:
            self.left -= len(repr(node))
            if self.left < 0:
                raise RequestError(
                    "a schema becomes too large without its allOf",
                    hint="Gemini knows no allOf: use references without other parts beside them, or fewer of them",
                )
        return node, looked_up

    def _looked_up(self, part: Schema, looked_up: set[str]) -> Schema:
        """The part with what its reference stands for, which is said once: the names of these go to `looked_up`."""
        while isinstance(reference := part.get("$ref"), str):
            target = {} if reference in looked_up else _target(reference, self.root)
            if target is None:
                break
            looked_up.add(reference)
            part = {**target, **{key: value for key, value in part.items() if key != "$ref"}}
        return part


def _flat(schema: Schema) -> Iterator[Schema]:
    """The parts of an `allOf`, those in its parts among them; what a node says beside it is one, too."""
    if not isinstance(schema.get("allOf"), list):
        yield schema
        return
    for part in cast("list[Any]", schema["allOf"]):
        if isinstance(part, dict):
            yield from _flat(cast("Schema", part))
    if rest := {key: value for key, value in schema.items() if key != "allOf"}:
        yield rest


def _target(reference: str, root: Schema) -> Schema | None:
    start, *steps = reference.split("/")
    found: Any = root if start == "#" else None
    for step in steps:
        name = step.replace("~1", "/").replace("~0", "~")
        found = cast("Schema", found).get(name) if isinstance(found, dict) else None
    if not isinstance(found, dict):
        return None
    return {key: value for key, value in cast("Schema", found).items() if key not in _DEFINITIONS}
