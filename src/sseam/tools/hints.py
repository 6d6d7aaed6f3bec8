"""Questions about a Python type that msgspec reads: its fields, its items, its name to the model."""

from __future__ import annotations

import dataclasses
import enum
import re
import types
from collections.abc import Collection, Mapping, MutableSequence, MutableSet, Sequence, Set
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    NewType,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import msgspec

__all__ = ["Shape", "choices", "fields", "items", "json_word", "mapping", "word"]


_ARRAYS = frozenset((list, set, frozenset, Collection, Sequence, MutableSequence, Set, MutableSet))


class Shape(NamedTuple):
    """The fields of an object: name on the wire → (type, must be there).

    `closed`: no others are allowed. `tag`: the field that tells the class, and its value.
    """

    fields: dict[str, tuple[Any, bool]]
    closed: bool = False
    tag: tuple[str, str | int] | None = None


def fields(tp: Any, value: dict[str, Any]) -> Shape | None:
    """The fields that `value` must have to be a `tp`; None where no one class says so."""
    shapes = [shape for member in _members(tp) if (shape := _shape(member)) is not None]
    if len(shapes) > 1:
        shapes = [shape for shape in shapes if shape.tag is not None and value.get(shape.tag[0]) == shape.tag[1]]
    return shapes[0] if len(shapes) == 1 else None


def mapping(tp: Any) -> tuple[Any, Any] | None:
    """The key and value types of a `tp` that is a mapping; None for any other."""
    found = [get_args(member) for member in _members(tp) if _is_mapping(get_origin(member))]
    return cast("tuple[Any, Any]", found[0]) if len(found) == 1 else None


def items(tp: Any, count: int) -> list[Any]:
    """The type of each of the `count` items of a `tp` that is an array; empty where it is none."""
    found = [parts for member in _members(tp) if (parts := _items(member, count)) is not None]
    return found[0] if len(found) == 1 else []


def choices(tp: Any) -> list[Any]:
    """The values of the enums and literals in a type."""
    found: list[Any] = []
    for member in _members(tp):
        if isinstance(member, type) and issubclass(member, enum.Enum):
            found.extend(choice.value for choice in member)
        elif get_origin(member) is Literal:
            found.extend(get_args(member))
    return found


class _Nothing:
    pass


def word(tp: Any) -> str:
    """What msgspec calls a type in its messages: "int", "array", "str | null" …; "a value" for any."""
    try:
        msgspec.convert(_Nothing(), tp)
    except Exception as error:
        if found := re.match("Expected `([^`]*)`", str(error)):
            return found[1]
    return "a value"


_JSON_WORDS: dict[type[Any], str] = {dict: "object", list: "array", type(None): "null"}


def json_word(value: object) -> str:
    """What a JSON value is, in the same words."""
    return _JSON_WORDS.get(type(value), type(value).__name__)


def _members(tp: Any) -> list[Any]:
    """The members of a union, or the type itself, without what is only wrapped around them."""
    while True:
        origin = get_origin(tp)
        if origin is Annotated:
            tp = tp.__origin__
        elif isinstance(tp, NewType):
            tp = tp.__supertype__
        elif type(tp).__name__ == "TypeAliasType":  # Python 3.12
            tp = tp.__value__
        elif origin in (Union, types.UnionType):
            return [member for arg in get_args(tp) for member in _members(arg)]
        else:
            return [tp]


def _is_mapping(origin: Any) -> bool:
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _items(tp: Any, count: int) -> list[Any] | None:
    args = get_args(tp)
    origin: Any = get_origin(tp)
    if origin is tuple:
        return [args[0]] * count if args[-1:] == (...,) else list(args)
    if hasattr(tp, "_fields") and hasattr(tp, "__annotations__"):  # NamedTuple
        return list(get_type_hints(tp, include_extras=True).values())
    return [args[0]] * count if origin in _ARRAYS else None


def _shape(tp: Any) -> Shape | None:
    origin: Any = get_origin(tp) or tp
    if not isinstance(origin, type):
        return None
    if issubclass(origin, msgspec.Struct):
        config = origin.__struct_config__
        if config.array_like:
            return None
        known = {field.encode_name: (field.type, field.required) for field in msgspec.structs.fields(tp)}
        if config.tag_field is None or config.tag is None:
            return Shape(known, config.forbid_unknown_fields)
        # Not required: a tag may be left out where only one class is possible.
        known = {config.tag_field: (cast("Any", Literal)[config.tag], False), **known}
        return Shape(known, config.forbid_unknown_fields, (config.tag_field, config.tag))
    if tp is not origin:
        return None  # a generic of another kind: its fields are type variables
    if dataclasses.is_dataclass(tp):
        hints = get_type_hints(tp, include_extras=True)
        required = {
            field.name: field.default is field.default_factory for field in dataclasses.fields(tp) if field.init
        }
        return Shape({name: (hints[name], needed) for name, needed in required.items()})
    if is_typeddict(tp):
        hints = get_type_hints(tp, include_extras=True)
        keys: frozenset[str] = tp.__required_keys__
        return Shape({name: _marked(hint, name in keys) for name, hint in hints.items()})
    return None


def _marked(hint: Any, required: bool) -> tuple[Any, bool]:
    """A TypedDict's hint without `Required`, `NotRequired`, `ReadOnly`, and whether the key must be there.

    The class's own `__required_keys__` overlooks these marks where annotations are strings.
    """
    while (mark := getattr(get_origin(hint), "_name", "")) in ("Required", "NotRequired", "ReadOnly"):
        hint = get_args(hint)[0]
        required = required if mark == "ReadOnly" else mark == "Required"
    return hint, required
