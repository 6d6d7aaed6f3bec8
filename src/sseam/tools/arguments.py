"""Argument text → arguments of the declared types, or every place at fault.

msgspec decodes the text straight into the types and stops at the first fault. Only then is the
value walked beside its type, so that the model hears of all faults at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, NamedTuple, cast

import msgspec

from ..errors import SseamError
from . import hints

__all__ = ["Problem", "SchemaReader", "ToolArgumentsError", "TypedReader"]

_SHOWN = 20
_NOTHING = "nothing"


class Problem(NamedTuple):
    """One place at fault: a path from "$", what belongs there, what stands there ("nothing": it is missing)."""

    path: str
    expected: str
    got: str

    def __str__(self) -> str:
        return f"{self.path}: expected {self.expected}, got {self.got}"


class ToolArgumentsError(SseamError, ValueError):
    """Arguments that do not fit the tool. The text is for the model: it goes back as an error result.

    Attributes:
        name: the tool's name.
        problems: every place at fault; the text shows the first twenty.
    """

    kind = "tool arguments error"

    def __init__(self, name: str, problems: Sequence[Problem], **common: Any) -> None:
        lines = [f"invalid arguments for tool {name}:", *(f"- {problem}" for problem in problems[:_SHOWN])]
        if len(problems) > _SHOWN:
            lines.append(f"- and {len(problems) - _SHOWN} more")
        super().__init__("\n".join(lines), **common)
        self.name = name
        self.problems = list(problems)


class Field(NamedTuple):
    """A parameter to read.

    `default` is `msgspec.NODEFAULT` where there is none; `adapter` a pydantic `TypeAdapter`, or None
    where msgspec reads the type.
    """

    name: str
    type: Any
    default: Any
    adapter: Any

    @property
    def required(self) -> bool:
        return self.default is msgspec.NODEFAULT


class TypedReader:
    """Reads arguments into the types of a function's parameters, in their order, defaults filled in."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self._fields = {field.name: field for field in fields}
        columns: list[Any] = []
        for field in fields:
            column = (field.name, field.type if field.adapter is None else msgspec.Raw)
            # UNSET and not the default itself, which need not suit msgspec (a list, any object).
            columns.append(column if field.required else (*column, msgspec.UNSET))
        struct = msgspec.defstruct("Arguments", columns, kw_only=True, forbid_unknown_fields=True)
        self._decoder = msgspec.json.Decoder(struct)

    def read(self, text: str, value: dict[str, Any]) -> dict[str, Any] | list[Problem]:
        """The arguments that `text` spells, or what is wrong with it. `value` is the same as plain JSON values."""
        try:
            decoded = self._decoder.decode(text)
            return {name: _finish(field, getattr(decoded, name)) for name, field in self._fields.items()}
        # Besides ValidationError there is whatever a type's own __post_init__ or validator raises.
        except Exception as error:
            return list(self._problems(value)) or [_problem(error, value, "$")]

    def _problems(self, value: dict[str, Any]) -> Iterator[Problem]:
        for name, field in self._fields.items():
            if name not in value:
                if field.required:
                    expected = hints.word(field.type) if field.adapter is None else "a value"
                    yield Problem(_join("$", name), expected, _NOTHING)
            elif field.adapter is None:
                yield from _faults(value[name], field.type, _join("$", name))
            else:
                yield from _pydantic_faults(value[name], field.adapter, _join("$", name))
        yield from _unknown(value, self._fields, "$")


def _finish(field: Field, got: Any) -> Any:
    if got is msgspec.UNSET:
        return field.default
    return got if field.adapter is None else field.adapter.validate_json(bytes(got))


class SchemaReader:
    """Reads arguments that a JSON Schema describes; they stay plain JSON values."""

    def __init__(self, schema: dict[str, Any]) -> None:
        """Raises ImportError without jsonschema, ValueError for a schema that is none."""
        try:
            library = import_module("jsonschema")
            registry = import_module("referencing").Registry()
        except ImportError as error:
            raise ImportError(
                "arguments of a tool with a raw schema are checked by jsonschema: "
                "install sseam[schema], or pass validate=False to leave them unchecked"
            ) from error
        validator = library.validators.validator_for(schema, default=library.Draft202012Validator)
        try:
            validator.check_schema(schema)
        except library.exceptions.SchemaError as error:
            raise ValueError(f"not a valid JSON Schema: {error.message} at {error.json_path}") from None
        # A registry of its own: jsonschema would fetch a remote reference over the network.
        self._validator: Any = validator(schema, registry=registry)

    def read(self, text: str, value: dict[str, Any]) -> dict[str, Any] | list[Problem]:
        """`value`, or what is wrong with it; `text` is the same as JSON."""
        del text
        try:
            # One error is reported per missing property and per branch: the same place may come twice.
            return list(dict.fromkeys(_schema_faults(self._validator.iter_errors(value), "$"))) or value
        except Exception as error:  # a reference that leads nowhere, a pattern that is no regex
            return [_problem(error, value, "$")]


class PlainReader:
    """Takes any JSON object."""

    def read(self, text: str, value: dict[str, Any]) -> dict[str, Any]:
        """`value`; `text` is the same as JSON."""
        del text
        return value


def _join(path: str, key: str | int) -> str:
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if key.isidentifier() else f"{path}[{_show(key)}]"


def _show(value: object) -> str:
    """A value as JSON, its beginning where it is long."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 80 else f"{text[:60]} … ({len(text):,} characters)"


def _faults(value: Any, tp: Any, path: str) -> list[Problem]:
    """Every fault of a value beside its type: those of its parts, or else its own."""
    own = _own_fault(value, tp, path)
    parts = list(_part_faults(value, tp, path)) if own else []
    # An array may be of the wrong length besides; an object's own fault is one of its fields'.
    both = isinstance(value, list) and own and own[0].path == path
    return own + parts if both or not parts else parts


def _own_fault(value: Any, tp: Any, path: str) -> list[Problem]:
    try:
        msgspec.convert(value, tp, str_keys=True)
    except Exception as error:
        return [_problem(error, value, path, hints.choices(tp))]
    return []


def _part_faults(value: Any, tp: Any, path: str) -> Iterator[Problem]:
    if isinstance(value, dict):
        value = cast("dict[str, Any]", value)
        if (shape := hints.fields(tp, value)) is not None:
            yield from _field_faults(value, shape, path)
        elif (entries := hints.mapping(tp)) is not None:
            for key, item in value.items():
                # The item beside it is replaced by one that fits, so that a fault is the key's.
                yield from _own_fault({key: None}, dict[entries[0], None], _join(path, key))
                yield from _faults(item, entries[1], _join(path, key))
    elif isinstance(value, list):
        items = cast("list[Any]", value)
        for number, (item, part) in enumerate(zip(items, hints.items(tp, len(items)), strict=False)):
            yield from _faults(item, part, _join(path, number))


def _field_faults(value: dict[str, Any], shape: hints.Shape, path: str) -> Iterator[Problem]:
    for name, (tp, required) in shape.fields.items():
        if name in value:
            yield from _faults(value[name], tp, _join(path, name))
        elif required:
            yield Problem(_join(path, name), hints.word(tp), _NOTHING)
    if shape.closed:
        yield from _unknown(value, shape.fields, path)


def _unknown(value: dict[str, Any], known: Any, path: str) -> Iterator[Problem]:
    names = ", ".join(known) or "none"
    for key in value:
        if key not in known:
            yield Problem(_join(path, key), f"no field of this name (known: {names})", hints.json_word(value[key]))


_PLACE = re.compile(r"(.*?)(?: - at (?:`key` in )?`\$(.*)`)?", re.DOTALL)
_EXPECTED = re.compile(r"Expected (.*?)(?:, got (.*))?", re.DOTALL)
_INVALID = re.compile(r"Invalid (UUID|RFC3339 .*|ISO8601 .*|base64 .*|decimal .*)")


def _problem(error: Exception, value: Any, path: str, choices: Sequence[Any] = ()) -> Problem:
    """msgspec's message for a value at `path` as a problem."""
    if not isinstance(error, msgspec.ValidationError):
        return Problem(path, "a value that its type accepts", f"{_show(value)} ({type(error).__name__})")
    found = _PLACE.fullmatch(str(error))
    message, place = (found[1], found[2] or "") if found else (str(error), "")
    if expected := _EXPECTED.fullmatch(message.replace("`", "")):
        return Problem(path + place, expected[1], expected[2] or _show(value))
    if invalid := _INVALID.fullmatch(message):
        return Problem(path + place, invalid[1], _show(value))
    if choices and message.startswith("Invalid enum value"):
        return Problem(path + place, f"one of {', '.join(map(_show, choices))}", _show(value))
    return Problem(path + place, f"a valid value ({message.replace('`', '')})", _show(value))


def _pydantic_faults(value: Any, adapter: Any, path: str) -> Iterator[Problem]:
    try:
        adapter.validate_json(msgspec.json.encode(value))
    except import_module("pydantic").ValidationError as error:
        for fault in error.errors(include_url=False, include_context=False):
            yield _pydantic_problem(fault, value, path)
    except Exception as error:
        yield _problem(error, value, path)


def _pydantic_problem(fault: dict[str, Any], whole: Any, path: str) -> Problem:
    kind = fault["type"]
    value: Any = whole
    for number, part in enumerate(fault["loc"], 1):
        if _has_part(value, part):
            value, path = value[part], _join(path, part)
        elif kind == "missing" and number == len(fault["loc"]):
            path = _join(path, part)
        # else: a label of pydantic's own (the branch of a union, "[key]"), no step in the value
    if kind == "missing":
        return Problem(path, "a value", _NOTHING)
    if kind == "extra_forbidden":
        return Problem(path, "no field of this name", hints.json_word(value))
    return Problem(path, fault["msg"].removeprefix("Input should be "), _show(value))


def _has_part(value: Any, part: str | int) -> bool:
    return part in value if isinstance(value, dict) else isinstance(value, list) and isinstance(part, int)


# One vocabulary for all tools: the words that msgspec uses.
_KIND_WORDS = {"integer": "int", "string": "str", "boolean": "bool"}


def _schema_faults(errors: Any, base: str) -> Iterator[Problem]:
    for error in errors:
        path = base
        for part in error.relative_path:
            path = _join(path, part)
        rule, limit, value = error.validator, error.validator_value, error.instance
        branches = _fitting_branches(error)
        if len(branches) == 1:
            yield from _schema_faults(branches[0], path)
        elif rule == "required":
            yield from (Problem(_join(path, key), "a value", _NOTHING) for key in limit if key not in value)
        elif rule == "additionalProperties" and limit is False:
            known = error.schema.get("properties", {})
            patterns = cast("dict[str, Any]", error.schema.get("patternProperties", {}))
            extra = {key: item for key, item in value.items() if not any(re.search(p, key) for p in patterns)}
            yield from _unknown(extra, known, path)
        elif rule == "type":
            kinds = cast("list[str]", limit if isinstance(limit, list) else [limit])
            yield Problem(path, " | ".join(_KIND_WORDS.get(kind, kind) for kind in kinds), hints.json_word(value))
        elif rule == "enum":
            yield Problem(path, f"one of {', '.join(map(_show, limit))}", _show(value))
        elif rule in ("anyOf", "oneOf", "allOf", "not", "if") or rule is None:
            yield Problem(path, "a value that its schema accepts", _show(value))
        else:
            yield Problem(path, f"{rule} {_show(limit)}", _show(value))


def _fitting_branches(error: Any) -> list[list[Any]]:
    """The errors of each branch of a union that the value is of the right kind for."""
    if error.validator not in ("anyOf", "oneOf"):
        return []
    branches: dict[int, list[Any]] = {}
    for inner in error.context:
        branches.setdefault(inner.relative_schema_path[0], []).append(inner)
    return [
        inners
        for inners in branches.values()
        if not any(inner.validator in ("type", "const", "enum") and not inner.relative_path for inner in inners)
    ]
