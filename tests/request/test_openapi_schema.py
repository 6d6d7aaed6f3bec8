from __future__ import annotations

import copy

import pytest

from sseam.errors import RequestError
from sseam.request.openapi_schema import plain_schema

TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "plain"),
    [
        ({"type": "OBJECT", "properties": {"A": {"type": "STRING"}}}, {"type": "object", "properties": {"A": TEXT}}),
        ({"type": "STRING", "format": "date-time", "title": "T"}, {**TEXT, "format": "date-time", "title": "T"}),
        ({"type": "STRING", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": "STRING", "nullable": False}, TEXT),
        ({"type": "STRING", "enum": ["A"], "nullable": True}, {"type": ["string", "null"], "enum": ["A", None]}),
        (
            {"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}], "nullable": True},
            {"anyOf": [TEXT, {"type": "integer"}, {"type": "null"}]},
        ),
        (
            {"type": "ARRAY", "items": {"type": "STRING"}, "minItems": "1"},
            {"type": "array", "items": TEXT, "minItems": 1},
        ),
        (
            {"type": "ARRAY", "max_items": 2, "items": {"any_of": [{"type": "STRING"}]}},
            {"type": "array", "maxItems": 2, "items": {"anyOf": [TEXT]}},
        ),
        # A property may be named like a keyword.
        (
            {"type": "OBJECT", "properties": {"any_of": {"type": "STRING"}, "nullable": {"type": "BOOLEAN"}}},
            {"type": "object", "properties": {"any_of": TEXT, "nullable": {"type": "boolean"}}},
        ),
        ({"type": ["STRING", "null"]}, {"type": ["string", "null"]}),
        # Plain JSON Schema stays what it is.
        (
            {"type": "object", "properties": {"a": {"$ref": "#/$defs/T"}}, "$defs": {"T": TEXT}},
            {"type": "object", "properties": {"a": {"$ref": "#/$defs/T"}}, "$defs": {"T": TEXT}},
        ),
    ],
)
def test_a_schema_of_geminis_own_form_is_read(schema, plain):
    before = copy.deepcopy(schema)
    assert plain_schema(schema) == plain
    assert schema == before


def test_a_schema_that_holds_itself_is_refused():
    schema = {"type": "OBJECT", "properties": {}}
    schema["properties"]["a"] = schema
    with pytest.raises(RequestError, match="holds itself"):
        plain_schema(schema)
