"""Tools: what the model may call, and the check of what it calls them with.

The parser has seen to it that a call's arguments are one whole JSON object. Here the fields are
checked: the text is decoded straight into the types of the function's signature, or validated by the
raw schema, and an error lists every path at fault. It is meant to go back to the model as an error
result (`ToolResult.from_exception`), not to end the run.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable
from typing import Any, Protocol, TypedDict, Unpack, overload

import msgspec

from .. import toolargs
from .arguments import Field, PlainReader, Problem, SchemaReader, ToolArgumentsError, TypedReader
from .exchange import ToolContext
from .schema import admits_null, drop_nulls, pydantic_adapter, type_schema
from .signature import Parameter, Signature, context_parameter, read_signature

__all__ = ["Tool", "tool"]

# What the providers allow together: Gemini takes dots, colons and 128 characters, the others less.
_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,128}")


class _Reader(Protocol):
    def read(self, text: str, value: dict[str, Any]) -> dict[str, Any] | list[Problem]: ...


class _Traits(TypedDict, total=False):
    eager: bool
    exclusive: bool
    timeout: float | None
    strict: bool | None


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Tool:
    """A tool, made from a JSON Schema as here, or from a function with `Tool.from_function` or `@tool`.

    Raises ValueError for a name, schema or timeout that cannot be used, and ImportError where a raw
    schema is to be validated and jsonschema (extra "schema") is missing.

    Attributes:
        name: what the model calls it by.
        description: what it does, for the model.
        schema: JSON Schema of the arguments, an object; never changed.
        run: the function, sync or async; None for a tool that is only declared. With a raw schema it
            gets the arguments as one dict, and the context where a parameter is annotated `ToolContext`.
        eager: it may start as soon as its call is released, while the stream still runs: only for
            tools that do no harm when the turn fails afterwards.
        exclusive: it runs alone, never beside another tool.
        timeout: seconds a call may take; None for no limit of its own.
        strict: ask the provider to hold the model to the schema; None leaves it to the dialect.
            In that form a model says null for what it leaves out, so a null that an optional
            field does not allow counts as absent.
        validate: check arguments against a raw schema; without, any JSON object passes.
    """

    name: str
    description: str = ""
    schema: dict[str, Any] = dataclasses.field(repr=False)
    run: Callable[..., Any] | None = dataclasses.field(default=None, repr=False)
    eager: bool = False
    exclusive: bool = False
    timeout: float | None = None
    strict: bool | None = None
    validate: bool = True
    _typed: TypedReader | None = dataclasses.field(default=None, repr=False)
    _reader: _Reader = dataclasses.field(init=False, repr=False)
    _context: str | None = dataclasses.field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"tool {self.name!r}: a name is 1 to 128 of letters, digits, and _ . : -")
        if self.timeout is not None and not self.timeout > 0:
            raise ValueError(f"tool {self.name}: timeout must be more than 0 seconds, got {self.timeout}")
        if self.schema.get("type", "object") != "object":
            raise ValueError(f"tool {self.name}: the schema's type must be 'object', got {self.schema['type']!r}")
        object.__setattr__(self, "_reader", self._typed or self._raw_reader())
        object.__setattr__(self, "_context", self.run and context_parameter(self.run))
        if self.run is not None and _is_generator(self.run):
            raise TypeError(f"tool {self.name}: a generator cannot be a tool; return the whole result")

    def _raw_reader(self) -> _Reader:
        if not self.validate:
            return PlainReader()
        try:
            return SchemaReader(self.schema)
        except (ImportError, ValueError) as error:
            raise type(error)(f"tool {self.name}: {error}") from error.__cause__

    @classmethod
    def from_function(
        cls,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        **traits: Unpack[_Traits],
    ) -> Tool:
        """The tool that a typed function describes; `traits` are `eager`, `exclusive`, `timeout`, `strict`.

        Name, description and the descriptions of parameters come from the function and its docstring
        (Google, NumPy or reST style), where not given or part of the annotation (`Annotated` with a
        text or `msgspec.Meta`). A parameter annotated `ToolContext` is left out of the schema. One
        whose annotation mentions pydantic is validated by pydantic.

        Raises TypeError for a function that cannot be a tool: a parameter without annotation, `*args`,
        `**kwargs` or positional-only, or of a type that has no JSON form.
        """
        signature = read_signature(function)
        tool_name = signature.name if name is None else name
        schema, reader = _from_signature(tool_name, signature)
        return cls(
            name=tool_name,
            description=signature.description if description is None else description,
            schema=schema,
            run=function,
            _typed=reader,
            **traits,
        )

    @property
    def is_async(self) -> bool:
        """Whether the function is a coroutine function. If not, it may block and belongs in a thread.

        A function of the other kind may still return an awaitable (behind a decorator): ask the value.
        """
        return inspect.iscoroutinefunction(self.run) or inspect.iscoroutinefunction(type(self.run).__call__)

    def arguments(self, arguments_json: str) -> dict[str, Any]:
        """The checked arguments by name, defaults filled in, ready for `invoke`. Blank text means none.

        Typed from the signature, plain JSON values for a raw schema. The arguments of a custom tool's
        call (`ToolCall.kind` "custom") are no JSON: give it those of `ToolCall.arguments` as JSON.

        Raises ToolArgumentsError, and nothing else, with every path at fault.
        """
        text = arguments_json if arguments_json.strip() else "{}"
        value = toolargs.parse(text)
        if isinstance(value, toolargs.BadArguments):
            raise ToolArgumentsError(self.name, [Problem("$", "one JSON object", f"a fault: {value.detail}")])
        found = self._reader.read(text, value)
        if isinstance(found, list) and self.strict:
            pruned: dict[str, Any] = drop_nulls(value, self.schema, self.schema.get("$defs", {}))
            if pruned != value:
                found = self._reader.read(msgspec.json.encode(pruned).decode(), pruned)
        if isinstance(found, list):
            raise ToolArgumentsError(self.name, found)
        return found

    def invoke(self, arguments: dict[str, Any], context: ToolContext) -> Any:
        """Calls the function with what `arguments` gave: its value, or an awaitable.

        Raises what the function raises, and TypeError for a tool that is only declared.
        """
        if self.run is None:
            raise TypeError(f"tool {self.name} has no function to run")
        extra = {self._context: context} if self._context else {}
        return self.run(**arguments, **extra) if self._typed else self.run(arguments, **extra)


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *, name: str | None = None, description: str | None = None, **traits: Unpack[_Traits]
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    **traits: Unpack[_Traits],
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """`Tool.from_function` as a decorator: `@tool`, or `@tool(eager=True)` with its options.

    The name then stands for the `Tool`; the function is its `run`.
    """

    def make(function: Callable[..., Any]) -> Tool:
        return Tool.from_function(function, name=name, description=description, **traits)

    return make if function is None else make(function)


def _is_generator(run: Callable[..., Any]) -> bool:
    return inspect.isgeneratorfunction(run) or inspect.isasyncgenfunction(run)


def _from_signature(name: str, signature: Signature) -> tuple[dict[str, Any], TypedReader]:
    """The schema of a function's arguments, and their reader."""
    properties: dict[str, Any] = {}
    definitions: dict[str, Any] = {}
    fields: list[Field] = []
    for parameter in signature.parameters:
        try:
            adapter = pydantic_adapter(parameter.type)
            properties[parameter.name], recursive = _property(parameter, adapter)
            # Made here as well as together below, so that a fault can name its parameter.
            TypedReader([field := Field(parameter.name, parameter.type, parameter.default, adapter)])
        except Exception as error:
            reason = str(error).strip().splitlines()[-1]
            raise TypeError(f"tool {name}: parameter {parameter.name!r} has no JSON form: {reason}") from error
        fields.append(field)
        for key, definition in recursive.items():
            if definitions.setdefault(key, definition) != definition:
                raise TypeError(f"tool {name}: two recursive types are named {key!r}")
    schema: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "required": [field.name for field in fields if field.required],
        "additionalProperties": False,
    }
    if definitions:
        schema["$defs"] = definitions
    return schema, TypedReader(fields)


def _property(parameter: Parameter, adapter: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    schema, recursive = type_schema(parameter.type, adapter)
    if parameter.description:
        schema["description"] = parameter.description
    if parameter.default is not msgspec.NODEFAULT:
        encode = msgspec.json.encode if adapter is None else adapter.dump_json
        try:
            default = msgspec.json.decode(encode(parameter.default))
        except Exception:
            return schema, recursive  # a sentinel or the like: optional, its value is no concern of the model's
        if default is not None or admits_null(schema, recursive):
            schema["default"] = default
    return schema, recursive
