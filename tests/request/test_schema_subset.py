from __future__ import annotations

import copy
import re

import pytest

from sseam.errors import RequestError
from sseam.request.schema_subset import anthropic_strict, for_gemini, openai_strict, takes_arguments

TEXT = {"type": "string"}


def obj(required=None, **properties):
    schema = {"type": "object", "properties": properties}
    return schema if required is None else {**schema, "required": required}


def closed(*, required=None, **properties):
    return {
        "type": "object",
        "properties": properties,
        "required": required or list(properties),
        "additionalProperties": False,
    }


OPENAI = [
    ({"properties": {}}, closed()),
    ({"type": "object", "additionalProperties": False}, closed()),
    (obj(["a"], a=TEXT), closed(a=TEXT)),
    (obj(a=TEXT), closed(a={"type": ["string", "null"]})),
    (obj(a={"type": ["string", "null"]}), closed(a={"type": ["string", "null"]})),
    (
        obj(a={"enum": ["x"], "type": "string"}),
        closed(a={"anyOf": [{"enum": ["x"], "type": "string"}, {"type": "null"}]}),
    ),
    (obj(a={"$ref": "#/$defs/T"}), closed(a={"anyOf": [{"$ref": "#/$defs/T"}, {"type": "null"}]})),
    (obj(a={"anyOf": [TEXT, {"type": "null"}]}), closed(a={"anyOf": [TEXT, {"type": "null"}]})),
    (obj(a={"anyOf": [TEXT, {"type": "integer"}]}), closed(a={"anyOf": [TEXT, {"type": "integer"}, {"type": "null"}]})),
    (obj(["a"], a={"type": "integer", "default": 1}), closed(a={"type": "integer"})),
    (obj(["a"], a={"oneOf": [TEXT, {"type": "null"}]}), closed(a={"anyOf": [TEXT, {"type": "null"}]})),
    (
        obj(["a"], a={"allOf": [{"$ref": "#/$defs/T"}], "description": "d"}),
        closed(a={"anyOf": [{"$ref": "#/$defs/T"}], "description": "d"}),
    ),
    # Nothing may stand beside a reference, whether it leads back to its own schema or not.
    (
        obj(a={"$ref": "#/$defs/T", "description": "d", "default": None}),
        closed(a={"anyOf": [{"$ref": "#/$defs/T"}, {"type": "null"}], "description": "d"}),
    ),
    (
        {**obj(["a"], a=TEXT), "$defs": {"T": obj(t={"$ref": "#/$defs/T", "title": "T"})}},
        {
            **closed(a=TEXT),
            "$defs": {"T": closed(t={"anyOf": [{"$ref": "#/$defs/T"}, {"type": "null"}], "title": "T"})},
        },
    ),
    (
        obj(a={"anyOf": [TEXT, {"type": "integer"}], "description": "d"}),
        closed(a={"anyOf": [TEXT, {"type": "integer"}, {"type": "null"}], "description": "d"}),
    ),
    (
        obj(["a"], a={"type": ["object", "null"], "properties": {"b": TEXT}, "required": ["b"]}),
        closed(a={**closed(b=TEXT), "type": ["object", "null"]}),
    ),
    (
        obj(["a"], a={"allOf": [obj(["b"], b=TEXT)], "properties": {"c": TEXT}, "required": ["c"]}),
        closed(a=closed(b=TEXT, c=TEXT)),
    ),
    (
        obj(["a"], a={"type": "array", "items": obj(b=TEXT)}),
        closed(a={"type": "array", "items": closed(b={"type": ["string", "null"]})}),
    ),
    (obj(["a"], a={"properties": {"b": TEXT}, "required": ["b"]}), closed(a=closed(b=TEXT))),
    ({**obj(["a"], a=TEXT), "$defs": {"T": obj(["b"], b=TEXT)}}, {**closed(a=TEXT), "$defs": {"T": closed(b=TEXT)}}),
]


@pytest.mark.parametrize(("schema", "strict"), OPENAI)
def test_b247_openai_strict_form(schema, strict):
    before = copy.deepcopy(schema)
    assert openai_strict(schema) == strict
    assert schema == before  # never changed in place
    assert openai_strict(strict) == strict


ALTERNATIVES = [obj(["a"], a=TEXT), obj(["b"], b=TEXT)]
NOT_STRICT = [
    {},
    {"type": "object"},
    {"type": "object", "description": "d"},
    {"type": "array", "items": TEXT},
    # Closed beside its alternatives, an object would take the properties of none.
    {"type": "object", "anyOf": ALTERNATIVES},
    {**obj(k=TEXT), "anyOf": ALTERNATIVES},
    {**obj(k=TEXT), "oneOf": ALTERNATIVES},
    {**obj(k=TEXT), "allOf": ALTERNATIVES},
    obj(x={"allOf": ALTERNATIVES}),
    obj(x={**obj(k=TEXT), "anyOf": ALTERNATIVES}),
    obj(x={"anyOf": ALTERNATIVES, "oneOf": ALTERNATIVES}),
    # What is joined is an `allOf` again, which has not been looked at.
    {**closed(a=TEXT), "allOf": [{"properties": {"a": {**TEXT, "description": "x"}}}]},
    obj(["p"], p={**obj(a={"minLength": 1}), "allOf": [obj(["a"], a=TEXT)]}),
    {**obj(["a"], a=TEXT), "$ref": "#/$defs/T"},
    obj(["ghost"], a=TEXT),
    obj(a={"type": ["object", "null"]}),
    obj(a={"type": "array"}),
    obj(a={"type": ["array", "null"]}),
    obj(a={"type": "array", "items": True}),
    obj(a={"type": "array", "items": [TEXT]}),
    # Malformed.
    {"type": "object", "properties": None},
    {"type": "object", "properties": [TEXT]},
    {"type": "object", "properties": {}, "$defs": None},
    {**obj(a=TEXT), "required": None},
    {**obj(a=TEXT), "required": [1]},
    {**obj(a=TEXT), "allOf": [True]},
    obj(a={"anyOf": None}),
    obj(a={"type": None}),
    obj(a="string"),
    obj(a=True),
    {"type": "object", "additionalProperties": True},
    {"type": "object", "additionalProperties": TEXT},
    {**obj(a=TEXT), "additionalProperties": True},
    obj(a={"type": "object"}),
    obj(a={"type": "object", "additionalProperties": TEXT}),
    obj(a={}),
    obj(a={"not": TEXT}),
    {**obj(a=TEXT), "propertyNames": {"pattern": "x"}},
]


@pytest.mark.parametrize(
    "schema",
    [
        *NOT_STRICT,
        obj(a={"type": "string", "pattern": "(?=x)"}),
        obj(a={"allOf": [TEXT, TEXT]}),
        obj(a={"$ref": "#/$defs/T", "properties": {"b": TEXT}}),
    ],
)
def test_b247_what_openai_cannot_be_strict_about(schema):
    before = copy.deepcopy(schema)
    assert openai_strict(schema) is None
    assert schema == before


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        ({"properties": {}}, {"type": "object", "properties": {}, "additionalProperties": False}),
        (obj(["a"], a=TEXT, b=TEXT), {**obj(["a"], a=TEXT, b=TEXT), "additionalProperties": False}),
        (
            obj(a={"type": "integer", "minimum": 1, "maximum": 5, "description": "d"}),
            {**obj(a={"type": "integer", "description": "d (minimum: 1, maximum: 5)"}), "additionalProperties": False},
        ),
        (
            obj(a={"type": "array", "items": TEXT, "minItems": 1}),
            {**obj(a={"type": "array", "items": TEXT, "minItems": 1}), "additionalProperties": False},
        ),
        (
            obj(a={"type": "array", "items": TEXT, "minItems": 2}),
            {**obj(a={"type": "array", "items": TEXT, "description": "(minItems: 2)"}), "additionalProperties": False},
        ),
        (
            {**obj(a={"$ref": "#/$defs/T"}, b={"$ref": "#/$defs/T"}), "$defs": {"T": TEXT}},
            {
                **obj(a={"$ref": "#/$defs/T"}, b={"$ref": "#/$defs/T"}),
                "$defs": {"T": TEXT},
                "additionalProperties": False,
            },
        ),
    ],
)
def test_b247_anthropic_strict_form(schema, strict):
    before = copy.deepcopy(schema)
    assert anthropic_strict(schema) == strict
    assert schema == before


@pytest.mark.parametrize(
    "schema",
    [
        *NOT_STRICT,
        {**obj(a={"$ref": "#/$defs/T"}), "$defs": {"T": obj(t={"$ref": "#/$defs/T"})}},
        {
            **obj(a={"$ref": "#/$defs/T"}),
            "$defs": {"T": obj(u={"$ref": "#/$defs/U"}), "U": obj(t={"$ref": "#/$defs/T"})},
        },
        obj(a={"$ref": "#"}),
    ],
)
def test_b247_what_anthropic_cannot_be_strict_about(schema):
    assert anthropic_strict(schema) is None


@pytest.mark.parametrize(
    ("schema", "reduced"),
    [
        (obj(a={"const": "x"}), obj(a={"enum": ["x"]})),
        ({"$schema": "s", **obj(a={**TEXT, "minLength": 1, "pattern": "x"})}, obj(a=TEXT)),
        (obj(a={"$ref": "#/$defs/T", "description": "d"}), obj(a={"$ref": "#/$defs/T"})),
        (
            obj(a={"type": "object", "additionalProperties": {**TEXT, "pattern": "x"}}),
            obj(a={"type": "object", "additionalProperties": TEXT}),
        ),
        # A property may be named like a keyword that is not known.
        (obj(pattern=TEXT), obj(pattern=TEXT)),
        # Older drafts' word for `$defs`, which a property may have for its name.
        (
            {**obj(a={"$ref": "#/definitions/T"}), "definitions": {"T": obj(b={"$ref": "#/definitions/T"})}},
            {**obj(a={"$ref": "#/$defs/T"}), "$defs": {"T": obj(b={"$ref": "#/$defs/T"})}},
        ),
        (
            {"definitions": {"T": TEXT}, "$defs": {"U": TEXT}, "$ref": "#/definitions/T"},
            {"$defs": {"T": TEXT, "U": TEXT}, "$ref": "#/$defs/T"},
        ),
        ({"definitions": {"T": TEXT}, "$defs": None, "allOf": 5}, {"$defs": {"T": TEXT}}),
        (
            {"properties": None, "required": None, "items": [TEXT]},
            {"properties": None, "required": None, "items": [TEXT]},
        ),
        (
            obj(definitions=obj(b=TEXT), c={"$ref": "#/properties/definitions/properties/b"}),
            obj(definitions=obj(b=TEXT), c={"$ref": "#/properties/definitions/properties/b"}),
        ),
    ],
)
def test_gemini_form(schema, reduced):
    before = copy.deepcopy(schema)
    assert for_gemini(schema) == reduced
    assert schema == before


T = obj(["x"], x=TEXT)
BY_T = {"$ref": "#/$defs/T"}


@pytest.mark.parametrize(
    ("schema", "reduced"),
    [
        ({"allOf": [BY_T], "description": "d"}, BY_T),
        ({"allOf": [{**TEXT, "pattern": "p"}], "description": "d"}, {**TEXT, "description": "d"}),
        ({"allOf": [T, {"required": ["y"], "description": "d"}]}, {**obj(["x", "y"], x=TEXT), "description": "d"}),
        # A reference among others gives what it stands for.
        ({"allOf": [BY_T, obj(["y"], y=TEXT)]}, obj(["x", "y"], x=TEXT, y=TEXT)),
        ({"allOf": [BY_T], "properties": {"y": TEXT}}, obj(["x"], x=TEXT, y=TEXT)),
        ({"allOf": [{"allOf": [BY_T, obj(y=TEXT)]}, BY_T, obj(z=TEXT)]}, obj(["x"], x=TEXT, y=TEXT, z=TEXT)),
        (
            {"allOf": [obj(p={**TEXT, "title": "t"}), obj(p={"description": "d"})]},
            obj(p={**TEXT, "title": "t", "description": "d"}),
        ),
        ({"allOf": [True, TEXT]}, TEXT),
        ({"allOf": [{"$ref": "#/$defs/lost"}, {"title": "t"}]}, {"$ref": "#/$defs/lost"}),
        ({"anyOf": [{"allOf": [BY_T, obj(y=TEXT)]}]}, {"anyOf": [obj(["x"], x=TEXT, y=TEXT)]}),
    ],
)
def test_gemini_has_no_all_of(schema, reduced):
    whole = {**obj(a=schema), "$defs": {"T": T}}
    before = copy.deepcopy(whole)
    assert for_gemini(whole) == {**obj(a=reduced), "$defs": {"T": T}}
    assert whole == before


def test_gemini_a_schema_that_uses_itself_has_an_end():
    node = obj(next={"allOf": [{"$ref": "#/$defs/Node"}, obj(y=TEXT)]})
    again = obj(next={"$ref": "#/$defs/merged_1"}, y=TEXT)
    assert for_gemini({**obj(a={"$ref": "#/$defs/Node"}), "$defs": {"Node": node}})["$defs"] == {
        "Node": obj(next=again),
        "merged_1": again,
    }
    itself = {"allOf": [{"$ref": "#/$defs/A"}, TEXT]}
    assert for_gemini({**itself, "$defs": {"A": itself}}) == {**TEXT, "$defs": {"A": TEXT}}


def test_gemini_what_is_merged_has_a_name_of_its_own():
    node = obj(next={"allOf": [{"$ref": "#/definitions/merged_1"}, obj(y=TEXT)]})
    reduced = for_gemini({**obj(a={"$ref": "#/definitions/merged_1"}), "definitions": {"merged_1": node}})
    assert reduced["$defs"].keys() == {"merged_1", "merged_2"}
    assert reduced["$defs"]["merged_2"] == obj(next={"$ref": "#/$defs/merged_2"}, y=TEXT)


NEEDS_ID = {"required": ["id"]}


def mutual(count):
    """Definitions of which each refers to every other."""
    names = [f"N{number}" for number in range(count)]
    parts = {name: {"allOf": [{"$ref": f"#/$defs/{name}"}, NEEDS_ID]} for name in names}
    definitions = {
        name: obj(**{key: part for key, part in parts.items() if key != name}, id=TEXT) for name, part in parts.items()
    }
    return {**obj(root={"$ref": "#/$defs/N0"}), "$defs": definitions}


def chain(length):
    """Definitions of which each refers to the next in two properties."""
    parts = [{"allOf": [{"$ref": f"#/$defs/D{number + 1}"}, NEEDS_ID]} for number in range(length)]
    definitions = {f"D{number}": obj(left=part, right=part) for number, part in enumerate(parts)}
    return {**obj(x={"$ref": "#/$defs/D0"}), "$defs": {**definitions, f"D{length}": obj(id=TEXT)}}


def shared_property(count):
    """Definitions with one property in common, all of them in one `allOf`."""
    definitions = {f"D{number}": obj(p={**TEXT, "title": str(number)}) for number in range(count)}
    return {**obj(x={"allOf": [{"$ref": f"#/$defs/{name}"} for name in definitions]}), "$defs": definitions}


def entangled(count):
    """Definitions with properties in common, each of which is two of the definitions at once."""
    pairs = [[{"$ref": f"#/$defs/N{(number + step) % count}"} for step in (0, 1)] for number in range(count)]
    definitions = {
        f"N{number}": obj(p={"allOf": pair}, q={"allOf": pairs[(number + 1) % count]})
        for number, pair in enumerate(pairs)
    }
    return {**obj(x={"$ref": "#/$defs/N0"}), "$defs": definitions}


@pytest.mark.parametrize("schema", [mutual(12), chain(14), chain(600), shared_property(600), entangled(8)])
def test_gemini_no_definition_is_written_out_wherever_it_is_used(schema):
    reduced = for_gemini(schema)
    assert len(repr(reduced)) < 10 * len(repr(schema))
    assert "allOf" not in repr(reduced)
    names = set(re.findall(r"#/\$defs/(\w+)", repr(reduced)))
    assert names <= reduced["$defs"].keys()


def test_gemini_a_schema_that_becomes_too_large_is_refused():
    large = obj(**{f"property_{number}": TEXT for number in range(500)})
    uses = {f"p{number}": {"allOf": [{"$ref": "#/$defs/T"}, {"required": [f"r{number}"]}]} for number in range(100)}
    with pytest.raises(RequestError, match="too large without its allOf"):
        for_gemini({**obj(**uses), "$defs": {"T": large}})


def cyclic():
    schema = obj(a=TEXT)
    schema["properties"]["self"] = schema
    return schema


def cyclic_value():
    enum = []
    enum.append(enum)
    return obj(a={"enum": enum})


def deep(levels):
    schema = TEXT
    for _ in range(levels):
        schema = obj(["a"], a=schema)
    return schema


@pytest.mark.parametrize("reduce", [openai_strict, anthropic_strict, for_gemini])
@pytest.mark.parametrize("schema", [cyclic(), cyclic_value(), deep(3_000)], ids=["cyclic", "cyclic value", "deep"])
def test_a_schema_without_an_end_is_refused(reduce, schema):
    with pytest.raises(RequestError, match="more than 128 levels, or holds itself"):
        reduce(schema)


@pytest.mark.parametrize("reduce", [openai_strict, anthropic_strict, for_gemini])
@pytest.mark.parametrize(("schema", "kind"), [('{"type":"object"}', "str"), (None, "NoneType"), ([], "list")])
def test_what_is_no_schema_is_refused(reduce, schema, kind):
    with pytest.raises(RequestError, match=f"a schema is an object, got {kind}"):
        reduce(schema)


@pytest.mark.parametrize("reduce", [openai_strict, anthropic_strict, for_gemini])
def test_a_schema_of_many_levels_is_taken(reduce):
    assert reduce(deep(60))


@pytest.mark.parametrize(
    ("schema", "takes"),
    [
        ({}, False),
        ({"type": "object", "title": "t", "properties": {}, "required": []}, False),
        ({"type": "object", "additionalProperties": False}, False),
        ({"type": "object", "additionalProperties": {}}, True),
        ({"type": "object", "additionalProperties": TEXT}, True),
        ({"$ref": "#/$defs/T", "$defs": {}}, True),
        ({"type": "object", "anyOf": [obj(a=TEXT)]}, True),
        (obj(a=TEXT), True),
    ],
)
def test_which_tools_have_arguments(schema, takes):
    assert takes_arguments(schema) is takes
