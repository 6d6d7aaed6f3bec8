"""Function → name, description, schema: what is read, and what cannot be a tool."""

from __future__ import annotations

import datetime
import enum
import functools
from collections.abc import Callable, Mapping  # noqa: F401, the table names it
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Optional, TypedDict  # noqa: F401, as above

import msgspec
import pydantic
import pytest

from sseam.declared import declare
from sseam.tools import Tool, ToolContext, tool
from sseam.tools.signature import read_docstring

if TYPE_CHECKING:
    from decimal import Decimal


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: int = 3


class Range(TypedDict, total=False):
    low: int


class Pair(NamedTuple):
    left: int
    right: str = "r"


class Cat(msgspec.Struct, tag="cat"):
    lives: int


class Dog(msgspec.Struct, tag="dog"):
    age: int


class Node(msgspec.Struct):
    value: int
    next: Optional[Node] = None  # noqa: UP045


class Holder(msgspec.Struct):
    """Holds a node."""

    node: Node


class City(pydantic.BaseModel):
    name: str


class Tree(pydantic.BaseModel):
    children: list[Tree] = []


class Odd:
    pass


POINT = {
    "title": "Point",
    "type": "object",
    "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 3}},
    "required": ["x"],
}
CITY = {
    "title": "City",
    "type": "object",
    "properties": {"name": {"title": "Name", "type": "string"}},
    "required": ["name"],
}

# annotation (as text: all of this module is under PEP 563) → schema
TYPES: list[tuple[Any, dict[str, Any]]] = [
    ("int", {"type": "integer"}),
    ("float", {"type": "number"}),
    ("bool", {"type": "boolean"}),
    ("str", {"type": "string"}),
    ("None", {"type": "null"}),
    ("Any", {}),
    ("int | None", {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
    ("int | str", {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
    ("list[int]", {"type": "array", "items": {"type": "integer"}}),
    ("set[str]", {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
    ("Mapping[str, int]", {"type": "object", "additionalProperties": {"type": "integer"}}),
    ("Literal['a', 'b']", {"enum": ["a", "b"]}),
    ("datetime.date", {"type": "string", "format": "date"}),
    ("Color", {"title": "Color", "enum": ["blue", "red"]}),
    ("Point", POINT),
    ("list[Point]", {"type": "array", "items": POINT}),
    ("Range", {"title": "Range", "type": "object", "properties": {"low": {"type": "integer"}}, "required": []}),
    (
        "Pair",
        {
            "title": "Pair",
            "type": "array",
            "prefixItems": [{"type": "integer"}, {"type": "string", "default": "r"}],
            "minItems": 1,
            "maxItems": 2,
        },
    ),
    (
        "Cat | Dog | None",
        {
            "anyOf": [
                {
                    "title": name,
                    "type": "object",
                    "properties": {"type": {"enum": [name.lower()]}, field: {"type": "integer"}},
                    "required": ["type", field],
                }
                for name, field in (("Cat", "lives"), ("Dog", "age"))
            ]
            + [{"type": "null"}]
        },
    ),
    (
        "Annotated[int, msgspec.Meta(ge=1, description='count')]",
        {"type": "integer", "minimum": 1, "description": "count"},
    ),
    ("Annotated[int, 'a number']", {"type": "integer", "description": "a number"}),
    ("Annotated[Point, 'where']", {**POINT, "description": "where"}),
    ("City", CITY),
    ("list[City] | None", {"anyOf": [{"type": "array", "items": CITY}, {"type": "null"}]}),
    ("Annotated[int, pydantic.Field(ge=1, description='n')]", {"type": "integer", "minimum": 1, "description": "n"}),
]


def taking(annotation: Any, default: Any = ...) -> Callable[..., Any]:
    """A function with one parameter `value` of this annotation."""

    def sample(value: Any) -> None: ...

    sample.__annotations__["value"] = annotation
    sample.__defaults__ = None if default is ... else (default,)
    return sample


@pytest.mark.parametrize(("annotation", "expected"), TYPES, ids=[str(row[0]) for row in TYPES])
def test_the_schema_of_a_type(annotation: str, expected: dict[str, Any]) -> None:
    assert Tool.from_function(taking(annotation)).schema == {
        "type": "object",
        "properties": {"value": expected},
        "required": ["value"],
        "additionalProperties": False,
    }


DEFAULTS: list[tuple[str, Any, dict[str, Any]]] = [
    ("int", 3, {"type": "integer", "default": 3}),
    ("int | None", None, {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None}),
    ("int", None, {"type": "integer"}),
    ("float", float("nan"), {"type": "number"}),
    ("list[int]", [1], {"type": "array", "items": {"type": "integer"}, "default": [1]}),
    ("Color", Color.RED, {"title": "Color", "enum": ["blue", "red"], "default": "red"}),
    ("int", Odd(), {"type": "integer"}),
    ("City", City(name="Rome"), {**CITY, "default": {"name": "Rome"}}),
]


@pytest.mark.parametrize(("annotation", "default", "expected"), DEFAULTS)
def test_a_default_is_shown_where_it_is_json_and_always_kept(
    annotation: str, default: Any, expected: dict[str, Any]
) -> None:
    made = Tool.from_function(taking(annotation, default))
    assert made.schema["properties"] == {"value": expected}
    assert made.schema["required"] == []
    assert made.arguments("{}")["value"] is default


def test_a_recursive_type_stays_a_reference() -> None:
    def walk(node: Node, holder: Holder, tree: Tree) -> None: ...

    schema = Tool.from_function(walk).schema
    assert schema["properties"] == {
        "node": {"$ref": "#/$defs/Node"},
        "holder": {
            "title": "Holder",
            "description": "Holds a node.",
            "type": "object",
            "properties": {"node": {"$ref": "#/$defs/Node"}},
            "required": ["node"],
        },
        "tree": {"$ref": "#/$defs/Tree"},
    }
    assert list(schema["$defs"]) == ["Node", "Tree"]


def test_two_recursive_types_of_one_name_are_refused() -> None:
    other = pydantic.create_model("Node", next=(Optional["Node"], None))

    def walk(a: Any, b: Any) -> None: ...

    walk.__annotations__.update(a=Node, b=other)
    with pytest.raises(TypeError, match="tool walk: two recursive types are named 'Node'"):
        Tool.from_function(walk)


def test_name_description_and_traits() -> None:
    @tool
    def plain(x: int) -> int:
        """Does it.

        Really.

        Args:
            x: the number
        """
        return x

    @tool(name="other", description="Else.", eager=True, exclusive=True, timeout=2.5, strict=True)
    async def fancy(x: int) -> int:
        """Does it."""
        return x

    assert (plain.name, plain.description, plain.eager, plain.is_async) == (
        "plain",
        "Does it.\n\nReally.",
        False,
        False,
    )
    assert plain.schema["properties"]["x"]["description"] == "the number"
    assert (fancy.name, fancy.description, fancy.eager, fancy.is_async) == ("other", "Else.", True, True)
    assert (fancy.exclusive, fancy.timeout, fancy.strict) == (True, 2.5, True)
    assert declare([plain, fancy])["plain"].required == ("x",)


def test_the_context_is_no_argument() -> None:
    def a(x: int, context: ToolContext) -> None: ...
    def b(context: ToolContext | None = None, *, x: int) -> None: ...

    for function in (a, b):
        assert list(Tool.from_function(function).schema["properties"]) == ["x"]


def test_what_a_partial_fills_in_is_no_argument() -> None:
    def search(index: Odd, query: str, limit: int) -> None: ...

    made = Tool.from_function(functools.partial(functools.partial(search, Odd()), limit=3))
    assert made.name == "search"
    assert list(made.schema["properties"]) == ["query"]


class Service:
    def find(self, query: str) -> str:
        """Finds."""
        return query

    async def __call__(self, query: str) -> str:
        return query


def test_bound_methods_callables_and_decorated_functions() -> None:
    @functools.wraps(Service.find)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return Service.find(*args, **kwargs)

    found = Tool.from_function(Service().find)
    assert (found.name, found.description, list(found.schema["properties"])) == ("find", "Finds.", ["query"])
    called = Tool.from_function(Service(), description="")
    assert (called.name, called.is_async, list(called.schema["properties"])) == ("Service", True, ["query"])
    assert Tool.from_function(functools.partial(wrapped, Service())).name == "find"


def test_a_return_annotation_need_not_be_importable() -> None:
    def price(x: int) -> Decimal: ...  # imported for type checkers only

    assert Tool.from_function(price).schema["required"] == ["x"]


def _star(*values: int) -> None: ...
def _stars(**values: int) -> None: ...
def _positional(value: int, /) -> None: ...
def _bare(value) -> None: ...  # type: ignore[no-untyped-def]
def _unresolved(value: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821
def _odd(value: Odd) -> None: ...
def _untagged(value: Point | Holder) -> None: ...
def _function(value: Callable[[], int]) -> None: ...
def _model_with_odd(value: list[City | Odd]) -> None: ...
def _generator(value: int) -> Any:
    yield value


async def _agenerator(value: int) -> Any:
    yield value


REFUSED: list[tuple[Callable[..., Any], str]] = [
    (_star, r"tool _star: parameter \*values: 'int' is variadic positional"),
    (_stars, r"tool _stars: parameter \*\*values: 'int' is variadic keyword"),
    (_positional, r"tool _positional: parameter value: 'int' is positional-only"),
    (_bare, r"tool _bare: parameter 'value' has no annotation"),
    (_unresolved, r"tool _unresolved: an annotation cannot be resolved \(name 'Nowhere' is not defined\)"),
    (_odd, r"tool _odd: parameter 'value' has no JSON form: .*Odd"),
    (_untagged, r"tool _untagged: parameter 'value' has no JSON form"),
    (_function, r"tool _function: parameter 'value' has no JSON form"),
    (_model_with_odd, r"tool _model_with_odd: parameter 'value' has no JSON form"),
    (_generator, "a generator cannot be a tool"),
    (_agenerator, "a generator cannot be a tool"),
    (dict.fromkeys, "no signature|positional-only"),
    (Service.find, "parameter 'self' has no annotation"),
]


@pytest.mark.parametrize(("function", "text"), REFUSED, ids=[row[0].__name__ for row in REFUSED])
def test_what_cannot_be_a_tool_is_refused_when_it_is_defined(function: Callable[..., Any], text: str) -> None:
    with pytest.raises(TypeError, match=text):
        Tool.from_function(function)


GOOGLE = """First line.

Second paragraph: with a colon.

    indented: text

Args:
    city (str, optional): The city
        in which it is.

        And more.
    unit: "C" or "F".
    **rest: ignored
    note without a colon
Not an entry.
    stray

Returns:
    city: never mind

Raises:
    ValueError: if so
"""
NUMPY = """First line.

Second.

Parameters
----------
city : str, optional
    The city
    in which it is.
low, high
    Bounds.
*args
    x

Returns
-------
city
    never mind
"""
REST = """First line.

:param str city: The city
    in which it is.
:type city: str
:param unit:
    "C" or "F".
Stray.
:parameter empty:
:returns: never
    mind
:raises ValueError: if so
:param: nothing
"""

DOCSTRINGS: list[tuple[str, str, dict[str, str]]] = [
    ("", "", {}),
    ("  One line. ", "One line.", {}),
    (
        GOOGLE,
        "First line.\n\nSecond paragraph: with a colon.\n\n    indented: text",
        {"city": "The city in which it is. And more.", "unit": '"C" or "F".', "rest": "ignored note without a colon"},
    ),
    (
        NUMPY,
        "First line.\n\nSecond.",
        {"city": "The city in which it is.", "low": "Bounds.", "high": "Bounds.", "args": "x"},
    ),
    (REST, "First line.", {"city": "The city in which it is.", "unit": '"C" or "F".'}),
    ("Args:\n    x: only", "", {"x": "only"}),
    ("Text.\n\nArguments:\n\n    x: a: b", "Text.", {"x": "a: b"}),
    ("Text.\n\nReturns:\n    x: y", "Text.", {}),
    ("Note: this stays.\nArgs are not a section.", "Note: this stays.\nArgs are not a section.", {}),
]


@pytest.mark.parametrize(("text", "description", "parameters"), DOCSTRINGS)
def test_docstrings(text: str, description: str, parameters: dict[str, str]) -> None:
    assert read_docstring(text) == (description, parameters)


def test_types_that_come_by_other_names() -> None:
    """A date from the standard library, through a module alias."""
    made = Tool.from_function(taking("datetime.date"))
    assert made.arguments('{"value": "2026-01-02"}') == {"value": datetime.date(2026, 1, 2)}
