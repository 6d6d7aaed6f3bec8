from __future__ import annotations

import copy

import pytest

from sseam.request.schema_subset import anthropic_strict, for_gemini, openai_strict

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
    ({}, closed()),
    ({"type": "object"}, closed()),
    ({"properties": {}}, closed()),
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
        closed(a={"$ref": "#/$defs/T", "description": "d"}),
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


NOT_STRICT = [
    {"type": "array", "items": TEXT},
    {"type": "object", "additionalProperties": True},
    {"type": "object", "additionalProperties": TEXT},
    {**obj(a=TEXT), "additionalProperties": True},
    obj(a={"type": "object"}),
    obj(a={"type": "object", "additionalProperties": TEXT}),
    obj(a={}),
    obj(a={"allOf": [TEXT, TEXT]}),
    obj(a={"not": TEXT}),
    {**obj(a=TEXT), "propertyNames": {"pattern": "x"}},
]


@pytest.mark.parametrize("schema", [*NOT_STRICT, obj(a={"type": "string", "pattern": "(?=x)"})])
def test_b247_what_openai_cannot_be_strict_about(schema):
    before = copy.deepcopy(schema)
    assert openai_strict(schema) is None
    assert schema == before


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        ({}, {"type": "object", "properties": {}, "additionalProperties": False}),
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
        *(schema for schema in NOT_STRICT if "allOf" not in str(schema)),
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
    ],
)
def test_gemini_form(schema, reduced):
    before = copy.deepcopy(schema)
    assert for_gemini(schema) == reduced
    assert schema == before
