"""Values for places in an object, to the text of the object."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sseam.protocols.gemini_generate.partial_args import BadEntry, Writer, close, write
from sseam.protocols.gemini_generate.wire import PartialArg


def text(path: str, value: str, *, more: bool = False) -> PartialArg:
    return PartialArg(path, string_value=value, will_continue=more or None)


def number(path: str, value: float = 1) -> PartialArg:
    return PartialArg(path, number_value=value)


def bare(path: str, **fields: Any) -> PartialArg:
    return PartialArg(path, **fields)


def written(entries: list[PartialArg]) -> str:
    writer, pieces = Writer(), []
    for entry in entries:
        writer, piece = write(writer, entry)
        pieces.append(piece)
    return "".join(pieces) + close(writer)


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([], ""),
        ([number("$.a")], '{"a":1}'),
        ([number("$.a", 1.5), number("$.b", 12345678901234567890)], '{"a":1.5,"b":12345678901234567890}'),
        ([bare("$.a", bool_value=False), bare("$.b", null_value="NULL_VALUE")], '{"a":false,"b":null}'),
        ([text("$.a", 'x"\n'), text("$.b", "")], '{"a":"x\\"\\n","b":""}'),
        ([text("$.a", "x", more=True), text("$.a", "y", more=True), text("$.a", "")], '{"a":"xy"}'),
        ([text("$.a", "x", more=True), text("$.a", "z")], '{"a":"xz"}'),
        ([text("$.a", "x", more=True)], '{"a":"x'),
        ([number("$.a.b"), number("$.a.c"), number("$.d")], '{"a":{"b":1,"c":1},"d":1}'),
        ([number("$.a[0]"), number("$.a[1]")], '{"a":[1,1]}'),
        ([number("$.a[0].b"), number("$.a[1].b"), number("$.a[1].c")], '{"a":[{"b":1},{"b":1,"c":1}]}'),
        ([number("$.a[0][0]"), number("$.a[0][1]"), number("$.a[1][0]")], '{"a":[[1,1],[1]]}'),
        ([bare("$.a[]"), bare("$.b")], '{"a":[],"b":{}}'),
        ([bare("$.a.b[]"), bare("$.a.c.d")], '{"a":{"b":[],"c":{"d":{}}}}'),
        ([number("$.a[0]"), bare("$.a[]"), number("$.b")], '{"a":[1],"b":1}'),
        ([number("$.a.b"), bare("$.a"), number("$.c")], '{"a":{"b":1},"c":1}'),
        ([number("$.a.b.c"), bare("$.a"), number("$.d")], '{"a":{"b":{"c":1}},"d":1}'),
        ([number("$.a"), bare("$.a")], '{"a":1}'),
        ([number("$.a"), bare("$")], '{"a":1}'),
        ([bare("$.a", will_continue=True), number("$.a")], '{"a":1}'),
        ([number("$.a b"), number("$.ü-1_x$")], '{"a b":1,"ü-1_x$":1}'),
    ],
)
def test_entries_to_text(entries: list[PartialArg], expected: str) -> None:
    assert written(entries) == expected


@pytest.mark.parametrize(
    ("entries", "told"),
    [
        ([PartialArg(None, number_value=1)], "no jsonPath"),
        ([number("a")], "does not begin with"),
        ([number("$a")], "unknown syntax at character 1"),
        ([number("$.")], "unknown syntax"),
        ([number("$.a..b")], "unknown syntax"),
        ([number("$['a']")], "unknown syntax"),
        ([number('$."a.b"')], "unknown syntax"),
        ([number("$.a[*]")], "unknown syntax"),
        ([number("$.a[-1]")], "unknown syntax"),
        ([number("$.a[1234567890]")], "unknown syntax"),
        ([number("$.a[0]x")], "unknown syntax"),
        ([number("$")], "cannot have a value"),
        ([number("$.a[]")], "cannot have a value"),
        ([PartialArg("$.a", string_value="x", number_value=1)], "2 values"),
        ([number("$.a[1]")], "gap in an array of 0"),
        ([number("$.a[0]"), number("$.a[2]")], "gap in an array of 1"),
        ([number("$[0]")], "an object for an array"),
        ([number("$.a[0]"), number("$.a.b")], "an object for an array"),
        ([number("$.a.b"), number("$.a[0]")], "an object for an array"),
        ([number("$.a"), number("$.a")], "written already"),
        ([number("$.a"), number("$.a.b")], "written already"),
        ([number("$.a[0]"), number("$.a[0]")], "written already"),
        ([number("$.a.b"), number("$.c"), number("$.a.d")], "written already"),
        ([number("$.a[0].b"), number("$.a[1].b"), number("$.a[0].c")], "written already"),
        ([number("$.a.b"), bare("$.a"), number("$.a.c")], "written already"),
        ([number("$.a.b"), number("$.c"), bare("$.a.d[]")], "written already"),
        ([text("$.a", "x", more=True), text("$.b", "y")], r"'\$.a' has not ended"),
        ([text("$.a", "x", more=True), number("$.a")], "has not ended"),
        ([text("$.a", "x", more=True), bare("$.a")], "has not ended"),
    ],
)
def test_an_entry_that_cannot_be(entries: list[PartialArg], told: str) -> None:
    with pytest.raises(BadEntry, match=told):
        written(entries)


def test_a_writer_can_be_left_twice() -> None:
    writer, _ = write(Writer(), number("$.a"))
    one, first = write(writer, number("$.b"))
    two, second = write(writer, number("$.c"))
    assert (first, second) == (',"b":1', ',"c":1')
    assert write(one, number("$.c"))[1] == ',"c":1'
    assert write(two, number("$.b"))[1] == ',"b":1'


KEYS = st.text("abcü _-$0", min_size=1, max_size=3).filter(lambda key: not key[0].isspace())
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=10,
)


@given(value=st.dictionaries(KEYS, VALUES, max_size=4), data=st.data())
def test_any_object_in_the_order_of_its_text(value: dict[str, Any], data: st.DataObject) -> None:
    entries = list(_entries("$", value, data)) if value else []
    assert json.loads(written(entries) or "{}") == value


def _entries(path: str, value: Any, data: st.DataObject) -> Iterator[PartialArg]:
    match value:
        case {}:
            for key, part in value.items():
                yield from _entries(f"{path}.{key}", part, data)
            if not value or (path != "$" and data.draw(st.booleans())):
                yield bare(path)
        case []:
            yield bare(f"{path}[]")
        case [*parts]:
            for index, part in enumerate(parts):
                yield from _entries(f"{path}[{index}]", part, data)
            if data.draw(st.booleans()):
                yield bare(f"{path}[]")
        case bool():
            yield bare(path, bool_value=value)
        case None:
            yield bare(path, null_value="NULL_VALUE")
        case str():
            cut = data.draw(st.integers(0, len(value)))
            yield text(path, value[:cut], more=True)
            yield text(path, value[cut:])
        case _:
            yield bare(path, number_value=value)
