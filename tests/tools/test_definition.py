"""Tools: arguments against signature or schema, the call itself, and results."""

from __future__ import annotations

import asyncio
import builtins
import datetime
import enum
import importlib
import pickle
import threading
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, Required, TypedDict, TypeVar

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sseam.content import DocumentContent, ImageContent, TextContent
from sseam.errors import InvalidToolCall, SseamError
from sseam.message import ToolCall
from sseam.tools import Problem, Tool, ToolArgumentsError, ToolContext, ToolError, ToolResult, tool

T = TypeVar("T")


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: int = 3
    norm: float = field(init=False, default=0.0)


class Entry(TypedDict, total=False):
    key: Required[str]
    value: int


class Pair(NamedTuple):
    left: int
    right: str = "r"


class Cat(msgspec.Struct, tag="cat", forbid_unknown_fields=True):
    lives: int


class Dog(msgspec.Struct, tag="dog"):
    ages: list[int] = []


class Row(msgspec.Struct, array_like=True):
    a: int
    b: int


class Box(msgspec.Struct, Generic[T]):
    item: T


@dataclass
class Crate(Generic[T]):
    item: T


class Labelled(NamedTuple, Generic[T]):
    item: T


class Renamed(msgspec.Struct, rename="camel"):
    first_name: str


class Checked(msgspec.Struct):
    low: int

    def __post_init__(self) -> None:
        if self.low < 0:
            raise ValueError("low is `negative`")
        if self.low > 9:
            raise KeyError(self.low)


class City(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    name: str
    ids: list[int] = []
    size: int | list[int] = 0

    @pydantic.field_validator("name")
    @classmethod
    def _known(cls, name: str) -> str:
        if name == "boom":
            raise RuntimeError
        return name


UserId = NewType("UserId", int)


def one(annotation: Any, default: Any = ..., **traits: Any) -> Tool:
    """A tool whose one argument `v` has this type."""

    def sample(v: Any) -> Any:
        return v

    sample.__annotations__["v"] = annotation
    sample.__defaults__ = None if default is ... else (default,)
    return Tool.from_function(sample, **traits)


def problems(made: Tool, text: str) -> list[str]:
    with pytest.raises(ToolArgumentsError) as caught:
        made.arguments(text)
    assert all(isinstance(problem, Problem) for problem in caught.value.problems)
    return [str(problem) for problem in caught.value.problems]


GOOD: list[tuple[Any, str, Any]] = [
    (int, "1", 1),
    (float, "1", 1.0),
    (list[int] | None, "null", None),
    (tuple[int, ...], "[1, 2]", (1, 2)),
    (set[int], "[1, 1]", {1}),
    (dict[int, str], '{"1": "a"}', {1: "a"}),
    (Color, '"red"', Color.RED),
    (Point, '{"x": 1}', Point(1)),
    (Pair, "[1]", Pair(1)),
    (Cat | Dog, '{"type": "dog", "ages": [1]}', Dog([1])),
    (Box[int], '{"item": 1}', Box(1)),
    (Renamed, '{"firstName": "a"}', Renamed("a")),
    (datetime.datetime, '"2026-01-02T03:04:05Z"', datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)),
    (City, '{"name": "Rome"}', City(name="Rome")),
    (list[City], '[{"name": "Rome"}]', [City(name="Rome")]),
    (Annotated[int, pydantic.Field(ge=1)], "1", 1),
]


@pytest.mark.parametrize(("annotation", "text", "expected"), GOOD)
def test_arguments_are_decoded_into_their_types(annotation: Any, text: str, expected: Any) -> None:
    got = one(annotation).arguments(f'{{"v": {text}}}')
    assert got == {"v": expected}
    assert type(got["v"]) is type(expected)


# type, JSON of the argument, every problem, each without "$.v" in front
FAULTS: list[tuple[Any, str, list[str]]] = [
    (int, '"x"', [": expected int, got str"]),
    (int, "1.5", [": expected int, got float"]),
    (int | None, '"x"', [": expected int | null, got str"]),
    (Annotated[int, msgspec.Meta(ge=1)], "0", [": expected int >= 1, got 0"]),
    (Annotated[str, msgspec.Meta(pattern="^a")], '"b"', [""": expected str matching regex '^a', got "b\""""]),
    (UserId, '"x"', [": expected int, got str"]),
    (list[int], '[1, "x", 2, null]', ["[1]: expected int, got str", "[3]: expected int, got null"]),
    (
        list[list[int]] | None,
        '[["x"], [1], [true]]',
        ["[0][0]: expected int, got str", "[2][0]: expected int, got bool"],
    ),
    (set[int], '["x", "y"]', ["[0]: expected int, got str", "[1]: expected int, got str"]),
    (tuple[int, ...], '[1, "x"]', ["[1]: expected int, got str"]),
    (tuple[int, str], '["x", 1]', ["[0]: expected int, got str", "[1]: expected str, got int"]),
    (tuple[int, str], '["x"]', [": expected array of length 2, got 1", "[0]: expected int, got str"]),
    (list, "1", [": expected array, got int"]),
    (list[int], "{}", [": expected array, got object"]),
    (
        Annotated[list[int], msgspec.Meta(min_length=3)],
        '["x"]',
        [': expected array of length >= 3, got ["x"]', "[0]: expected int, got str"],
    ),
    (dict[str, int], '{"a": "x", "b c": "y"}', [".a: expected int, got str", '["b c"]: expected int, got str']),
    (dict[int, int], '{"a": 1, "2": "x"}', [".a: expected int, got str", '["2"]: expected int, got str']),
    (Color, '"pink"', [': expected one of "red", "blue", got "pink"']),
    (Literal["a", "b"] | None, '"c"', [': expected one of "a", "b", got "c"']),
    (list[Color], '["red", "x", 1]', ['[1]: expected one of "red", "blue", got "x"', "[2]: expected str, got int"]),
    (Point, '{"y": "a"}', [".x: expected int, got nothing", ".y: expected int, got str"]),
    (Entry, '{"value": "x"}', [".key: expected str, got nothing", ".value: expected int, got str"]),
    (Pair, '["x", 1]', ["[0]: expected int, got str", "[1]: expected str, got int"]),
    (
        Cat,
        '{"lives": "x", "more": 1}',
        [".lives: expected int, got str", ".more: expected no field of this name (known: type, lives), got int"],
    ),
    (Cat, '{"type": "dog", "lives": 1}', ['.type: expected one of "cat", got "dog"']),
    (
        Cat | Dog,
        '{"type": "dog", "ages": ["a", 1, "b"]}',
        [".ages[0]: expected int, got str", ".ages[2]: expected int, got str"],
    ),
    (Cat | Dog, '{"type": "cow"}', ['.type: expected a valid value (Invalid value \'cow\'), got {"type":"cow"}']),
    (Cat | Dog, '{"lives": 1}', [': expected a valid value (Object missing required field type), got {"lives":1}']),
    (Row, '["x", "y"]', ["[0]: expected int, got str"]),
    (Box[int], '{"item": "x"}', [".item: expected int, got str"]),
    (Crate[int], '{"item": "x"}', [".item: expected int, got str"]),
    (Crate[int], '["x"]', [": expected object, got array"]),
    (Labelled[int], '["x"]', ["[0]: expected int, got str"]),
    (Sequence[int], '["x"]', ["[0]: expected int, got str"]),
    (Renamed, '{"firstName": 1}', [".firstName: expected str, got int"]),
    (
        list[Checked],
        '[{"low": -1}, {"low": "x"}]',
        ['[0]: expected a valid value (low is negative), got {"low":-1}', "[1].low: expected int, got str"],
    ),
    (Checked, '{"low": 10}', [': expected a value that its type accepts, got {"low":10} (KeyError)']),
    (uuid.UUID, '"x"', [': expected UUID, got "x"']),
    (datetime.date, '"x"', [': expected RFC3339 encoded date, got "x"']),
    (bytes, '"@"', [': expected base64 encoded string, got "@"']),
    (
        City,
        '{"ids": [1, "x"], "more": 1}',
        [
            ".name: expected a value, got nothing",
            '.ids[1]: expected a valid integer, unable to parse string as an integer, got "x"',
            ".more: expected no field of this name, got int",
        ],
    ),
    (
        City,
        '{"name": "a", "size": [null]}',
        [".size: expected a valid integer, got [null]", ".size[0]: expected a valid integer, got null"],
    ),
    (City, "1", [": expected an object, got 1"]),
    (list[City], '[{"name": "a"}, {"name": 1}]', ["[1].name: expected a valid string, got 1"]),
    (City, '{"name": "boom"}', [': expected a value that its type accepts, got {"name":"boom"} (RuntimeError)']),
]


@pytest.mark.parametrize(("annotation", "text", "expected"), FAULTS, ids=[f"{row[0]}-{row[1]}" for row in FAULTS])
def test_every_path_at_fault_is_listed(annotation: Any, text: str, expected: list[str]) -> None:
    assert problems(one(annotation), f'{{"v": {text}}}') == [f"$.v{problem}" for problem in expected]


@tool
def weather(ids: list[int], city: City, unit: Literal["C", "F"] = "C") -> str:
    return f"{ids} {city.name} {unit}"


WHOLE: list[tuple[str, list[str]]] = [
    ("", ["$.ids: expected array, got nothing", "$.city: expected a value, got nothing"]),
    (
        '{"city": {"name": 1}, "unit": "K", "ids": ["a"], "days": 1}',
        [
            "$.ids[0]: expected int, got str",
            "$.city.name: expected a valid string, got 1",
            '$.unit: expected one of "C", "F", got "K"',
            "$.days: expected no field of this name (known: ids, city, unit), got int",
        ],
    ),
    ("[]", ["$: expected one JSON object, got a fault: it is a list, expected an object"]),
    ('{"ids": [1', ["$: expected one JSON object, got a fault: it ends inside its JSON, after 10 characters"]),
    ('{"ids": 1, "ids": 2}', ["$: expected one JSON object, got a fault: the key 'ids' stands twice in one object"]),
]


@pytest.mark.parametrize(("text", "expected"), WHOLE)
def test_faults_of_the_whole(text: str, expected: list[str]) -> None:
    assert problems(weather, text) == expected


def test_the_error_reads_as_a_text_for_the_model() -> None:
    with pytest.raises(ToolArgumentsError) as caught:
        weather.arguments('{"ids": [1, "x"], "city": {"name": "Rome"}}')
    error = caught.value
    assert isinstance(error, SseamError)
    assert isinstance(error, ValueError)
    assert str(error) == "invalid arguments for tool weather:\n- $.ids[1]: expected int, got str"
    assert error.problems == [("$.ids[1]", "int", "str")]
    assert pickle.loads(pickle.dumps(error)) == error


def test_a_long_list_of_problems_is_shown_in_part_and_kept_whole() -> None:
    with pytest.raises(ToolArgumentsError) as caught:
        one(list[int]).arguments(f'{{"v": {["x"] * 100}}}'.replace("'", '"'))
    assert len(caught.value.problems) == 100
    assert str(caught.value).splitlines()[-2:] == ["- $.v[19]: expected int, got str", "- and 80 more"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
ANY_TYPE = st.sampled_from([row[0] for row in FAULTS])


def outcome(made: Tool, text: str) -> dict[str, Any] | list[Problem]:
    try:
        return made.arguments(text)
    except ToolArgumentsError as caught:
        return caught.problems


@given(annotation=ANY_TYPE, value=JSON)
def test_any_json_is_arguments_or_one_error_with_problems(annotation: Any, value: Any) -> None:
    got = outcome(one(annotation), msgspec.json.encode({"v": value}).decode())
    if isinstance(got, dict):
        assert got.keys() == {"v"}
    else:
        assert got
        assert all(problem.path.startswith("$.v") for problem in got)


@given(text=st.text())
def test_any_text_is_arguments_or_one_error(text: str) -> None:
    got = outcome(one(int, 3), text)
    assert got == {"v": 3} or (isinstance(got, list) and got)


def test_deep_nesting_is_a_fault_and_no_crash() -> None:
    assert problems(one(Any), f'{{"v": {"[" * 100_000}{"]" * 100_000}}}')[0].startswith("$: expected one JSON object")


def test_a_default_that_is_no_json_is_kept_and_not_copied() -> None:
    default = [Point(1)]
    assert one(list[Point], default).arguments("")["v"] is default


RAW = {
    "type": "object",
    "properties": {
        "n": {"type": "integer", "minimum": 1},
        "opt": {"anyOf": [{"$ref": "#/$defs/part"}, {"type": "null"}]},
        "color": {"enum": ["red", "blue"]},
        "any": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": ["integer", "boolean"]}}]},
        "both": {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        "none": False,
        "file-name": {"type": "string", "pattern": "^[a-z]+$"},
    },
    "patternProperties": {"^x-": {"type": "string"}},
    "required": ["n", "file-name"],
    "additionalProperties": False,
    "$defs": {"part": {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}},
}

RAW_FAULTS: list[tuple[str, list[str]]] = [
    ('"file-name": "a", "n": 0', ["$.n: expected minimum 1, got 0"]),
    ("", ["$.n: expected a value, got nothing", '$["file-name"]: expected a value, got nothing']),
    (
        '"file-name": "A", "n": "x"',
        ['$["file-name"]: expected pattern "^[a-z]+$", got "A"', "$.n: expected int, got str"],
    ),
    (
        '"n": 1, "file-name": "a", "more": [], "x-y": "a"',
        ["$.more: expected no field of this name (known: n, opt, color, any, both, none, file-name), got array"],
    ),
    ('"n": 1, "file-name": "a", "x-y": 1', ['$["x-y"]: expected str, got int']),
    ('"n": 1, "file-name": "a", "opt": {"q": 1}', ["$.opt.q: expected str, got int"]),
    ('"n": 1, "file-name": "a", "opt": {}', ["$.opt.q: expected a value, got nothing"]),
    ('"n": 1, "file-name": "a", "color": "pink"', ['$.color: expected one of "red", "blue", got "pink"']),
    ('"n": 1, "file-name": "a", "any": [1, "x"]', ["$.any[1]: expected int | bool, got str"]),
    ('"n": 1, "file-name": "a", "any": null', ["$.any: expected a value that its schema accepts, got null"]),
    ('"n": 1, "file-name": "a", "both": {}', ["$.both: expected a value that its schema accepts, got {}"]),
    ('"n": 1, "file-name": "a", "none": 1', ["$: expected a value that its schema accepts, got 1"]),
]


@pytest.mark.parametrize(("members", "expected"), RAW_FAULTS)
def test_a_raw_schema_is_validated_and_every_path_listed(members: str, expected: list[str]) -> None:
    assert sorted(problems(Tool(name="raw", schema=RAW), f"{{{members}}}")) == sorted(expected)


def test_arguments_that_fit_a_raw_schema_stay_plain() -> None:
    value = {"n": 1, "file-name": "a", "opt": {"q": "x"}, "any": "text"}
    assert Tool(name="raw", schema=RAW).arguments(msgspec.json.encode(value).decode()) == value
    assert Tool(name="raw", schema=RAW, validate=False).arguments('{"n": "x"}') == {"n": "x"}
    assert problems(Tool(name="raw", schema=RAW, validate=False), "[]")


BAD_TOOLS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"name": "", "schema": {}}, ValueError, "tool '': a name is 1 to 128"),
    ({"name": "two words", "schema": {}}, ValueError, "a name is 1 to 128"),
    ({"name": "a", "schema": {"type": "array"}}, ValueError, "tool a: the schema's type must be 'object', got 'array'"),
    ({"name": "a", "schema": {"properties": 1}}, ValueError, r"tool a: not a valid JSON Schema: .* at \$.properties"),
    ({"name": "a", "schema": {}, "timeout": 0}, ValueError, "tool a: timeout must be more than 0 seconds, got 0"),
    ({"name": "a", "schema": {}, "timeout": float("nan")}, ValueError, "got nan"),
]


@pytest.mark.parametrize(("fields", "kind", "text"), BAD_TOOLS)
def test_a_tool_that_cannot_work_is_refused_when_it_is_made(
    fields: dict[str, Any], kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind, match=text):
        Tool(**fields)


def test_a_reference_that_leads_nowhere_is_an_error_and_never_fetched() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "http://localhost:9/schema"}}}
    (problem,) = problems(Tool(name="raw", schema=schema), '{"a": 1}')
    assert problem.startswith("$: expected a value that its type accepts, got")


def test_without_jsonschema_a_raw_schema_is_refused_unless_unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr("sseam.tools.arguments.import_module", missing)
    with pytest.raises(ImportError, match=r"tool raw: .*install sseam\[schema\], or pass validate=False"):
        Tool(name="raw", schema=RAW)
    assert Tool(name="raw", schema=RAW, validate=False).name == "raw"


def test_optional_packages_are_not_imported_unless_used(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.import_module

    def guarded(name: str) -> Any:
        assert name not in ("pydantic", "jsonschema", "referencing")
        return real(name)

    monkeypatch.setattr("sseam.tools.arguments.import_module", guarded)
    monkeypatch.setattr("sseam.tools.schema.import_module", guarded)
    assert one(list[Point]).arguments('{"v": [{"x": 1}]}') == {"v": [Point(1)]}


class Deep(msgspec.Struct):
    size: int = 1
    note: str | None = None
    next: Deep | None = None


# schema or type, strict, arguments, what is left of them (None: refused)
NULLS: list[tuple[Any, bool | None, str, Any]] = [
    (int, True, "null", 3),
    (int, None, "null", None),
    (int, False, "null", None),
    (list[int], True, "[null]", None),
    (Deep, True, '{"size": null, "note": null, "next": {"size": null}}', Deep(next=Deep())),
    (list[Deep] | None, True, '[{"size": null}, {"size": 2}]', [Deep(), Deep(2)]),
    (tuple[int, Deep], True, "[null, {}]", None),
    (Literal["a"], True, "null", 3),
]


@pytest.mark.parametrize(("annotation", "strict", "text", "expected"), NULLS)
def test_b247_under_strict_a_null_for_an_optional_field_counts_as_absent(
    annotation: Any, strict: bool | None, text: str, expected: Any
) -> None:
    made = one(annotation, 3, strict=strict)
    if expected is None:
        assert problems(made, f'{{"v": {text}}}')
    else:
        assert made.arguments(f'{{"v": {text}}}') == {"v": expected}


STRICT_RAW: list[tuple[dict[str, Any], bool]] = [
    ({"type": "integer"}, True),
    ({"type": ["integer", "string"]}, True),
    ({"const": 1}, True),
    ({"$ref": "#/$defs/n"}, True),
    ({"allOf": [{"type": "integer"}]}, False),
    ({"oneOf": [{"type": "integer"}, {"type": "string"}]}, True),
]


@pytest.mark.parametrize(("schema", "dropped"), STRICT_RAW)
def test_b247_the_same_for_raw_schemas(schema: dict[str, Any], dropped: bool) -> None:
    whole = {"properties": {"a": schema, "b": {"type": ["null"]}, "c": True}, "$defs": {"n": {"type": "integer"}}}
    made = Tool(name="raw", schema=whole, strict=True)
    text = '{"a": null, "b": null, "c": null}'
    if dropped:
        assert made.arguments(text) == {"b": None, "c": None}
    else:
        assert problems(made, text)


def context(**fields: Any) -> ToolContext:
    return ToolContext(call_id="c1", name="t", **fields)


def test_invoke_calls_the_function_with_its_arguments_and_context() -> None:
    seen: list[object] = []

    async def slow(x: int, ctx: ToolContext, y: int = 2) -> int:
        ctx.progress(0.5)
        return x + y + len(ctx.call_id)

    made = Tool.from_function(slow)
    assert made.is_async
    assert asyncio.run(made.invoke(made.arguments('{"x": 1}'), context(progress=seen.append))) == 5
    assert seen == [0.5]
    plain = Tool(name="raw", schema={}, run=lambda arguments: arguments)
    assert not plain.is_async
    assert plain.invoke(plain.arguments('{"file-name": 1}'), context()) == {"file-name": 1}

    def with_context(arguments: dict[str, Any], context: ToolContext) -> str:
        context.progress("not watched")
        return context.name + arguments["a"]

    assert Tool(name="raw", schema={}, run=with_context).invoke({"a": "x"}, context()) == "tx"
    assert weather.run is not None
    assert weather.run([1], City(name="Rome")) == "[1] Rome C"


def test_raw_tools_without_function_or_readable_signature() -> None:
    declared = Tool(name="raw", schema={})
    assert not declared.is_async
    with pytest.raises(TypeError, match="tool raw has no function to run"):
        declared.invoke({}, context())
    assert Tool(name="raw", schema={}, run=builtins.dict).invoke({"a": 1}, context()) == {"a": 1}


def test_the_context_tells_of_cancellation() -> None:
    event = threading.Event()
    made = context(cancellation=event)
    assert not made.cancelled
    event.set()
    assert made.cancelled
    assert not context().cancelled


CALL = ToolCall(id="c1", name="t", arguments={}, arguments_json="{}")
IMAGE = ImageContent(media_type="image/png", data="aGk=")
PDF = DocumentContent(media_type="application/pdf", data="aGk=")


def result(*content: Any, **fields: Any) -> ToolResult:
    return ToolResult(call_id="c1", name="t", content=content, **fields)


def error(text: str) -> ToolResult:
    return result(TextContent(text), is_error=True)


class Opaque:
    pass


CYCLE: list[Any] = []
CYCLE.append(CYCLE)

VALUES: list[tuple[Any, ToolResult]] = [
    ("hé", result(TextContent("hé"))),
    ("", result(TextContent(""))),
    ("a\udce9b", result(TextContent("a�b"))),
    (IMAGE, result(IMAGE)),
    (PDF, result(PDF)),
    (["see", IMAGE, PDF], result(TextContent("see"), IMAGE, PDF)),
    ((IMAGE,), result(IMAGE)),
    (["a", "b"], result(TextContent('["a","b"]'), data=["a", "b"])),
    (
        [IMAGE, 1],
        result(
            TextContent('[{"type":"image","media_type":"image/png","data":"aGk="},1]'),
            data=[{"type": "image", "media_type": "image/png", "data": "aGk="}, 1],
        ),
    ),
    ([], result(TextContent("[]"), data=[])),
    (None, result(TextContent("null"))),
    (True, result(TextContent("true"), data=True)),
    ({1: (2, {3})}, result(TextContent('{"1":[2,[3]]}'), data={"1": [2, [3]]})),
    (Point(1), result(TextContent('{"x":1,"y":3}'), data={"x": 1, "y": 3})),
    (Cat(9), result(TextContent('{"type":"cat","lives":9}'), data={"type": "cat", "lives": 9})),
    (
        {"c": City(name="Rome")},
        result(
            TextContent('{"c":{"name":"Rome","ids":[],"size":0}}'), data={"c": {"name": "Rome", "ids": [], "size": 0}}
        ),
    ),
    (float("nan"), result(TextContent("null"))),
    (ToolResult(call_id="x", name="y", content=(IMAGE,), is_error=True), result(IMAGE, is_error=True)),
    (b"hi", error("tool t returned bytes, which are no text")),
    (Opaque(), error("tool t returned Opaque, which has no JSON form (TypeError)")),
    (CYCLE, error("tool t returned list, which has no JSON form (RecursionError)")),
    ({"a": "\ud800"}, error("tool t returned dict, which has no JSON form (UnicodeEncodeError)")),
]


@pytest.mark.parametrize(("value", "expected"), VALUES, ids=[type(row[0]).__name__ for row in VALUES])
def test_a_value_becomes_a_result_that_goes_through_json(value: Any, expected: ToolResult) -> None:
    got = ToolResult.from_value(CALL, value)
    assert got == expected
    assert msgspec.json.decode(msgspec.json.encode(got), type=ToolResult) == got


def test_the_text_of_a_result() -> None:
    assert ToolResult.from_value(CALL, ["a", IMAGE, "b"]).text == "ab"


class NotFound(ToolError):
    pass


EXCEPTIONS: list[tuple[Callable[[], BaseException], str]] = [
    (lambda: ToolError("no such file"), "ToolError: no such file"),
    (lambda: NotFound("a.txt"), "NotFound: a.txt"),
    (
        lambda: ToolArgumentsError("t", [Problem("$.a", "int", "str")]),
        "invalid arguments for tool t:\n- $.a: expected int, got str",
    ),
    (lambda: OSError("secret path"), "tool t failed: OSError"),
    (lambda: ExceptionGroup("secret", [ValueError("secret")]), "tool t failed: ExceptionGroup"),
]


@pytest.mark.parametrize(("make", "text"), EXCEPTIONS)
def test_an_exception_becomes_an_error_with_a_safe_text(make: Callable[[], BaseException], text: str) -> None:
    assert ToolResult.from_exception(CALL, make()) == error(text)


def test_errors_are_exposed_on_request_with_their_traceback() -> None:
    try:
        raise OSError("secret path")
    except OSError as caught:
        text = ToolResult.from_exception(CALL, caught, expose_errors=True).text
    assert text.startswith("tool t failed: OSError\nTraceback")
    assert text.rstrip().endswith("OSError: secret path")


def test_a_call_that_cannot_be_used_has_a_result_as_well() -> None:
    fault = InvalidToolCall("bad", id="c1", name="t")
    assert ToolResult.error(fault, "bad") == error("bad")
