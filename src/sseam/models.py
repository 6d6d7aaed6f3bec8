"""Models by provider, and the keys they are reached with.

::

    model = sseam.models.anthropic("claude-opus-5")
    model = sseam.models.compatible("qwen3", base_url="http://localhost:11434/v1")

A model is data and holds no key, only the names of the environment variables that hold one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from .context import KeySource, Model
from .errors import RequestError
from .protocols.openai_chat.dialects import has_host, host_of, server_at
from .protocols.openai_chat.request_dialects import DIALECTS
from .request.families import anthropic_family

__all__ = [
    "anthropic",
    "compatible",
    "credential",
    "gemini",
    "gemini_interactions",
    "openai",
    "openai_responses",
]

_ANTHROPIC_KEYS = (KeySource("ANTHROPIC_API_KEY", "x-api-key"), KeySource("ANTHROPIC_AUTH_TOKEN"))
_GEMINI_KEYS = (KeySource("GEMINI_API_KEY", "x-goog-api-key"), KeySource("GOOGLE_API_KEY", "x-goog-api-key"))
_ANTHROPIC_URL = "https://api.anthropic.com"
_GEMINI_URL = "https://generativelanguage.googleapis.com/v1beta"
_OPENAI_URL = "https://api.openai.com/v1"

# The maker of a protocol takes its key in another header there than where it speaks Chat Completions.
_MAKERS: dict[str, tuple[str, tuple[KeySource, ...]]] = {
    "anthropic-messages": (_ANTHROPIC_URL, _ANTHROPIC_KEYS),
    "gemini-generate": (_GEMINI_URL, _GEMINI_KEYS),
    "gemini-interactions": (_GEMINI_URL, _GEMINI_KEYS),
}


def anthropic(id: str, **fields: Any) -> Model:
    """A model of Anthropic's Messages API. `fields` set or replace those of `Model`."""
    limit = anthropic_family(id).max_tokens
    return _model(
        fields,
        id=id,
        protocol="anthropic-messages",
        base_url=_ANTHROPIC_URL,
        max_output_tokens=limit,
        keys=_ANTHROPIC_KEYS,
    )


def openai(id: str, **fields: Any) -> Model:
    """A model of OpenAI's Chat Completions. `fields` set or replace those of `Model`."""
    return _model(
        fields,
        id=id,
        protocol="openai-chat",
        base_url=_OPENAI_URL,
        dialect="openai",
        keys=DIALECTS["openai"].keys,
    )


def openai_responses(id: str, **fields: Any) -> Model:
    """A model of OpenAI's Responses API. `fields` set or replace those of `Model`."""
    keys = DIALECTS["openai"].keys
    return _model(fields, id=id, protocol="openai-responses", base_url=_OPENAI_URL, keys=keys)


def gemini(id: str, **fields: Any) -> Model:
    """A model of Google's generateContent. `fields` set or replace those of `Model`."""
    return _model(fields, id=_gemini_id(id), protocol="gemini-generate", base_url=_GEMINI_URL, keys=_GEMINI_KEYS)


def gemini_interactions(id: str, **fields: Any) -> Model:
    """A model of Google's Interactions API. `fields` set or replace those of `Model`."""
    return _model(fields, id=_gemini_id(id), protocol="gemini-interactions", base_url=_GEMINI_URL, keys=_GEMINI_KEYS)


def _gemini_id(id: str) -> str:
    """The name without the "models/" that Google's own list of models puts before it, and the path has anyway."""
    return id.removeprefix("models/")


def compatible(id: str, *, base_url: str, key_variable: str | None = None, **fields: Any) -> Model:
    """A model behind another server of one of the protocols, Chat Completions unless `protocol` says otherwise.

    The dialect is found by the base URL where `dialect` does not name it. A server that is not known gets no key, since
    a key is for the service it was made for, also where it speaks as that service does: `key_variable` names the
    environment variable that holds its own.
    """
    protocol = fields.get("protocol", "openai-chat")
    host = server_at(base_url)
    dialect = fields.get("dialect") or (host if protocol == "openai-chat" else None)
    known = DIALECTS.get(dialect or "") or DIALECTS.get(host or "")
    keys = _maker_keys(protocol, base_url) or (known.keys if known else ())
    if key_variable:
        keys = (KeySource(key_variable, keys[0].header) if keys else KeySource(key_variable),)
    elif dialect != host and has_host(dialect or ""):
        keys = ()
    return _model(
        fields,
        id=id,
        protocol=protocol,
        base_url=base_url.rstrip("/"),
        dialect=dialect,
        keys=keys,
        key_optional=known.key_optional if known and not key_variable else False,
    )


def _maker_keys(protocol: str, base_url: str) -> tuple[KeySource, ...]:
    """The keys of the protocol's maker where the address is the maker's, else none."""
    url, keys = _MAKERS.get(protocol, ("", ()))
    return keys if url and host_of(base_url) == host_of(url) else ()


def _model(fields: dict[str, Any], **defaults: Any) -> Model:
    return Model(**{**defaults, **fields})


def credential(model: Model, key: str | None = None, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The header that carries the model's key, for one request; empty where none is needed.

    `key` is the caller's own; without it the model's environment variables are looked at now.

    Raises RequestError where a key is needed and none is set, or where it cannot stand in a header. The text
    names the variable and never the key.
    """
    source, found = _find(model, key, os.environ if environ is None else environ)
    if source is None:
        if model.keys and not model.key_optional:
            variables = " or ".join(source.variable for source in model.keys)
            raise RequestError(f"no key for {model.id!r}: the environment variable {variables} is not set")
        return {}
    # An HTTP library would quote a value that it refuses.
    found = found.strip()
    if not found.isascii() or not found.isprintable() or not found:
        raise RequestError(f"the key for {model.id!r} holds characters that a header cannot carry")
    return {source.header: f"Bearer {found}" if source.header == "authorization" else found}


def _find(model: Model, key: str | None, environ: Mapping[str, str]) -> tuple[KeySource | None, str]:
    if key is not None:
        return (model.keys[0] if model.keys else KeySource("")), key
    for source in model.keys:
        if environ.get(source.variable, "").strip():
            return source, environ[source.variable]
    return None, ""
