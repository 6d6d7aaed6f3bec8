"""JSON Schemas of the request bodies, written from the providers' API references, and the check of a body by them."""

from __future__ import annotations

import functools
import importlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema

from sseam.protocols import NAMES

__all__ = ["valid", "watch"]

Body = dict[str, Any]

watching = False
"""Whether what is wrong with any body that is made is raised."""


@functools.cache
def _validator(protocol: str) -> jsonschema.Draft202012Validator:
    schema = json.loads((Path(__file__).parent / f"{protocol}.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def valid(protocol: str, body: Body, dialect: str | None = None) -> Body:
    """The body as JSON would give it back, once the schema of the protocol, and the dialect's own, have accepted it."""
    text = json.dumps(body)
    _check(protocol, text)
    if (Path(__file__).parent / f"{protocol}.{dialect}.json").exists():
        _check(f"{protocol}.{dialect}", text)
    return json.loads(text)


@functools.lru_cache(maxsize=1_000)
def _check(schema: str, text: str) -> None:
    """Raises what is wrong; many tests make the same body."""
    body = json.loads(text)
    _validator(schema).validate(body)
    if schema == "anthropic-messages":
        _check_places(body)


def _check_places(body: Body) -> None:
    """What no schema says of Anthropic's messages: how often, and what comes first."""
    marked = [block for block in _objects(body) if "cache_control" in block]
    assert len(marked) <= 4, f"a maximum of 4 blocks with cache_control, found {len(marked)}"
    for message in body["messages"]:
        kinds = [block["type"] == "tool_result" for block in message["content"]]
        assert kinds == sorted(kinds, reverse=True), "a tool_result stands behind another block"


def _objects(value: Any) -> Iterator[Body]:
    """Every object in a JSON value."""
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _objects(inner)
    if isinstance(value, dict):
        yield value


def watch() -> None:
    """From now on every body that any test makes is held against the schema of its protocol, while `watching`."""
    for protocol, name in NAMES.items():
        module = importlib.import_module(f"sseam.protocols.{name}.request")
        module.body = _watched(protocol, module.body)  # type: ignore[attr-defined]


def _watched(protocol: str, make: Callable[..., Body]) -> Callable[..., Body]:
    @functools.wraps(make)
    def body(model: Any, *args: Any, **options: Any) -> Body:
        made = make(model, *args, **options)
        if watching and _is_json(made):
            valid(protocol, made, model.dialect)
        return made

    return body


def _is_json(body: Body) -> bool:
    """What has no JSON form is refused later, by whoever sends it."""
    try:
        json.dumps(body)
    except (TypeError, ValueError, RecursionError):
        return False
    return True
