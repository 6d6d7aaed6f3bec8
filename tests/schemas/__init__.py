"""JSON Schemas of the request bodies, written from the providers' API references, and the check of a body by them."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import jsonschema


@functools.cache
def _validator(protocol: str) -> jsonschema.Draft202012Validator:
    schema = json.loads((Path(__file__).parent / f"{protocol}.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def valid(protocol: str, body: dict[str, Any]) -> dict[str, Any]:
    """The body as JSON would give it back, once the schema of the protocol has accepted it."""
    wire = json.loads(json.dumps(body))
    _validator(protocol).validate(wire)
    return wire
