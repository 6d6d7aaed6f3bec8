"""Function → what a tool needs to know of it: its parameters, their types, and what the docstring says."""

from __future__ import annotations

import functools
import inspect
import re
import types
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec

from .exchange import ToolContext

__all__ = ["Docstring", "Parameter", "Signature", "context_parameter", "read_docstring", "read_signature"]


class Parameter(NamedTuple):
    """One argument of a tool. `default` is `msgspec.NODEFAULT` where there is none."""

    name: str
    type: Any
    default: Any
    description: str


class Signature(NamedTuple):
    """A tool's function: `context` names the parameter that takes the `ToolContext`, if there is one."""

    name: str
    description: str
    parameters: tuple[Parameter, ...]
    context: str | None


def read_signature(function: Callable[..., Any]) -> Signature:
    """What a function says of itself. Raises TypeError where it cannot be a tool, and says why."""
    target, bound = _unwrap(function)
    name = getattr(target, "__name__", type(target).__name__)
    doc = read_docstring(target.__doc__ or "")
    hints = _hints(function, name)
    parameters: list[Parameter] = []
    context: str | None = None
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in bound:
            continue
        if parameter.kind not in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY):
            raise TypeError(
                f"tool {name}: parameter {parameter} is {parameter.kind.description}; a call names each one"
            )
        if parameter.annotation is parameter.empty:
            raise TypeError(f"tool {name}: parameter {parameter.name!r} has no annotation")
        tp = hints[parameter.name]
        if _is_context(tp):
            context = parameter.name
            continue
        default: Any = msgspec.NODEFAULT if parameter.default is parameter.empty else parameter.default
        parameters.append(Parameter(parameter.name, tp, default, _describe(tp, parameter.name, doc)))
    return Signature(name, doc.description, tuple(parameters), context)


def context_parameter(function: Callable[..., Any]) -> str | None:
    """The name of the parameter that is annotated `ToolContext`, in a function of any other shape."""
    try:
        hints = _hints(function, getattr(function, "__name__", type(function).__name__))
    except ValueError:
        return None  # a built-in function without a signature
    return next((name for name, tp in hints.items() if _is_context(tp)), None)


def _is_context(tp: Any) -> bool:
    """Whether an annotation asks for the `ToolContext`, or for one or None."""
    if get_origin(tp) in (Union, types.UnionType):
        return ToolContext in get_args(tp)
    return tp is ToolContext


def _unwrap(function: Callable[..., Any]) -> tuple[Callable[..., Any], frozenset[str]]:
    """The function behind partials, and the names that they fill: those are the caller's, not the model's."""
    bound: set[str] = set()
    while isinstance(function, functools.partial):
        bound.update(function.keywords)
        function = function.func
    return function, frozenset(bound)


def _hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    """The annotations of the parameters, strings (PEP 563) evaluated; the return annotation is left alone."""
    target: Any = inspect.unwrap(_unwrap(function)[0])
    if not hasattr(target, "__globals__"):
        target = type(target).__call__

    def holder() -> None: ...

    try:
        parameters = inspect.signature(function).parameters.values()
        holder.__annotations__ = {p.name: p.annotation for p in parameters if p.annotation is not p.empty}
        return get_type_hints(holder, globalns=getattr(target, "__globals__", {}), include_extras=True)
    except NameError as error:
        raise TypeError(
            f"tool {name}: an annotation cannot be resolved ({error}); import or define the type at module level"
        ) from None


def _describe(tp: Any, name: str, doc: Docstring) -> str:
    """A description that is not already part of the type: a text in `Annotated`, or the docstring's."""
    marks = tp.__metadata__ if get_origin(tp) is Annotated else ()
    if any(getattr(mark, "description", None) for mark in marks):
        return ""
    return next((mark for mark in marks if isinstance(mark, str)), doc.parameters.get(name, ""))


class Docstring(NamedTuple):
    """`description`: the paragraphs before the first section. `parameters`: descriptions by name."""

    description: str
    parameters: dict[str, str]


# Own code and not docstring-parser: what the model sees must not depend on an optional package.
_GOOGLE_HEAD = re.compile(
    r"(args|arguments|parameters|params|keyword args|keyword arguments|other parameters|returns?|yields?|raises|"
    r"examples?|notes?|warnings?|see also|references|attributes|todo):\s*",
    re.IGNORECASE,
)
_GOOGLE_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\(.*?\))?\s*:(?:\s+|$)(.*)")
_NUMPY_RULE = re.compile(r"-{3,}\s*")
_NUMPY_ENTRY = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?")
_REST_FIELD = re.compile(r":(\w+)(?:\s+([^:]*?))?:(?:\s+|$)(.*)")
_REST_PARAMETER = frozenset(("param", "parameter", "arg", "argument", "key", "keyword"))
_PARAMETER_HEADS = frozenset(
    (
        "args",
        "arguments",
        "parameters",
        "params",
        "keyword args",
        "keyword arguments",
        "other parameters",
    )
)


def read_docstring(text: str) -> Docstring:
    """The description and the parameters of a docstring in Google, NumPy or reST style."""
    first = text.partition("\n")[0]
    # cleandoc takes no account of the first line's depth; a section that begins there needs it.
    lines = inspect.cleandoc(f"\n{text}" if _GOOGLE_HEAD.fullmatch(first) else text).splitlines()
    parameters: dict[str, str] = {}
    description: list[str] = []
    add = description.append
    skip = False
    for number, line in enumerate(lines):
        if skip:
            skip = False
            continue
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if line and _NUMPY_RULE.fullmatch(following):
            skip = True
            add = _section(line, parameters, _NUMPY_ENTRY, indented=False)
        elif _GOOGLE_HEAD.fullmatch(line):
            add = _section(line.rstrip().rstrip(":"), parameters, _GOOGLE_ENTRY, indented=True)
        elif field := _REST_FIELD.fullmatch(line):
            add = _rest(field, parameters)
        else:
            add(line)
    return Docstring("\n".join(description).strip(), {name: text for name, text in parameters.items() if text})


def _drop(line: str) -> None:
    del line


def _section(head: str, parameters: dict[str, str], entry: re.Pattern[str], *, indented: bool) -> Callable[[str], None]:
    """Takes the lines of a section: an entry at the section's own depth, what is deeper continues it."""
    if head.strip().lower() not in _PARAMETER_HEADS:
        return _drop
    depth: int | None = None if indented else 0
    names: list[str] = []

    def add(line: str) -> None:
        nonlocal depth, names
        text = line.strip()
        if not text:
            return
        indent = len(line) - len(line.lstrip())
        if indented and not indent:
            names = []  # a paragraph that no longer belongs to the section
            return
        depth = indent if depth is None else depth
        found = entry.fullmatch(text) if indent <= depth else None
        if found is not None:
            names = [name.strip().lstrip("*") for name in found[1].split(",")]
            text = found[2] if found.re.groups > 1 else ""
        for name in names:
            parameters[name] = f"{parameters.get(name, '')} {text}".strip()

    return add


def _rest(field: re.Match[str], parameters: dict[str, str]) -> Callable[[str], None]:
    if field[1] not in _REST_PARAMETER or not field[2]:
        return _drop
    name = field[2].split()[-1].lstrip("*")
    parameters[name] = field[3].strip()

    def add(line: str) -> None:
        if line[:1].isspace():
            parameters[name] = f"{parameters[name]} {line.strip()}".strip()

    return add
