"""The chunks of a `streamGenerateContent` answer, named as on the wire (there in camel case).

Source: Google's API reference for generateContent and the types of its SDK (read 2026-11-29). Every
chunk is one whole GenerateContentResponse; all of its fields are optional.
"""

from __future__ import annotations

import json
from json.encoder import encode_basestring_ascii as quoted
from math import isinf
from typing import Any, TypeAlias, TypeVar, cast

import msgspec
from msgspec import Raw

from ...decoding import TwiceGiven, loads, require_utf8
from ...errors import ProtocolError, excerpt
from ...jsonarray import END
from ...sse import Frame

__all__ = [
    "ArrayEnd",
    "Candidate",
    "Chunk",
    "Content",
    "DoneMarker",
    "Empty",
    "Error",
    "Event",
    "FullCandidate",
    "FullChunk",
    "FullPart",
    "FunctionCall",
    "Part",
    "PartialArg",
    "Unknown",
    "decode",
    "read_response",
]

T = TypeVar("T")


class _Plain(msgspec.Struct, frozen=True, gc=False, rename="camel", forbid_unknown_fields=True):
    """What nearly every chunk is made of. Whatever has another field is read again, as a `Full…`."""


class PartialArg(_Plain, frozen=True, gc=False):
    """A value, or a piece of one, for the place `json_path` in the arguments."""

    json_path: str | None = None
    string_value: str | None = None
    number_value: int | float | None = None
    bool_value: bool | None = None
    null_value: str | None = None
    will_continue: bool | None = None


class FunctionCall(_Plain, frozen=True, gc=False):
    """A call, whole or a step of one. `args` is kept as text: it may repeat a key, or be no object."""

    id: str | None = None
    name: str | None = None
    args: Raw = Raw()
    partial_args: tuple[PartialArg, ...] | None = None
    will_continue: bool | None = None


class Part(_Plain, frozen=True, gc=False):
    """A piece of content. The signature belongs to the part on which it stands."""

    text: str | None = None
    thought: bool | None = None
    thought_signature: str | None = None
    function_call: FunctionCall | None = None


class FullPart(Part, frozen=True, gc=False):
    """A part with other fields: `raw` is all of it, `rest` what no field here has."""

    raw: dict[str, Any] = {}
    rest: dict[str, Any] = {}


class Content(_Plain, frozen=True, gc=False):
    parts: tuple[Part, ...] | None = None
    role: str | None = None


class Candidate(_Plain, frozen=True, gc=False):
    content: Content | None = None
    index: int | None = None
    finish_reason: str | None = None
    finish_message: str | None = None


class FullCandidate(Candidate, frozen=True, gc=False):
    """A candidate with other fields, which are in `rest`."""

    rest: dict[str, Any] = {}


class Chunk(_Plain, frozen=True, gc=False):
    """`usage_metadata` is kept as text, to see whether it changed."""

    candidates: tuple[Candidate, ...] | None = None
    usage_metadata: Raw = Raw()
    model_version: str | None = None
    response_id: str | None = None
    create_time: str | None = None


class FullChunk(Chunk, frozen=True, gc=False):
    """A chunk that is not plain: of `deviations` it shows each, `rest` has its other fields."""

    rest: dict[str, Any] = {}
    deviations: tuple[str, ...] = ()


class Error(msgspec.Struct, frozen=True, gc=False):
    """`error` is the provider's object, or whatever stands in its place."""

    error: Any


class Unknown(msgspec.Struct, frozen=True, gc=False):
    """An object that is neither a chunk nor an error."""

    raw: dict[str, Any]


class Empty(msgspec.Struct, frozen=True, gc=False):
    """An event without data: a keep-alive of a relay."""


class DoneMarker(msgspec.Struct, frozen=True, gc=False):
    """`[DONE]`, which translating proxies put behind the last chunk."""


class ArrayEnd(msgspec.Struct, frozen=True, gc=False):
    """The closing bracket of the array form."""


Event: TypeAlias = Chunk | Error | Unknown | Empty | DoneMarker | ArrayEnd

_DECODER = msgspec.json.Decoder(Chunk)


def decode(frame: Frame) -> Event:
    """The event in a frame.

    Raises:
        ProtocolError: data that is not JSON, not UTF-8 or not an object, a known field of a wrong
            shape, or an event of another protocol.
    """
    data = frame.data
    try:
        event: Event = _DECODER.decode(data)
    except (msgspec.DecodeError, RecursionError):
        event = _decode_unusual(frame)
    if not data.isascii():
        require_utf8(data)
    return event


def _decode_unusual(frame: Frame) -> Event:
    """What the decoder refuses: markers, chunks that are not plain, and faults, told by what they are."""
    data = frame.data
    if frame.event == END:
        return ArrayEnd()
    if not data.strip():
        return Empty()
    if data.strip() == b"[DONE]":
        return DoneMarker()
    return _read(loads(data), data)


def read_response(body: Any) -> list[Event]:
    """A non-streaming body, or a whole array, as events. Raises `ProtocolError` as `decode` does."""
    if isinstance(body, list):
        return [event for element in cast("list[Any]", body) for event in read_response(element)]
    try:
        data = _spell(body).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ProtocolError("the body is not JSON", hint=str(error)) from None
    return [_read(body, data)]


def _spell(value: Any) -> str:
    """The text of a decoded value. What arguments must not hold stays in it: a key twice, a number too large."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        members = [f"{quoted(key)}: {_spell(field)}" for key, field in fields.items()]
        if isinstance(fields, TwiceGiven):
            members.append(f"{quoted(fields.key)}: {_spell(fields[fields.key])}")
        return "{" + ", ".join(members) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_spell, cast("list[Any]", value))) + "]"
    if isinstance(value, float) and isinf(value):
        return "1e999" if value > 0 else "-1e999"
    return json.dumps(value, allow_nan=False)


_CHUNK_FIELDS = frozenset({"candidates", "usageMetadata", "promptFeedback", "modelVersion", "responseId", "createTime"})


def _read(value: Any, data: bytes) -> Event:
    """The event that `value` is, which `data` spells."""
    if not isinstance(value, dict):
        raise ProtocolError("data is JSON but not an object", hint=excerpt(data))
    raw = cast("dict[str, Any]", value)
    if raw.get("error") is not None or ("error" in raw and not raw.keys() & _CHUNK_FIELDS):
        return Error(raw["error"])
    if "candidates" not in raw and isinstance(raw.get("response"), dict):  # Cloud Code Assist wraps its chunks
        inner = msgspec.json.decode(data, type=dict[str, Raw])["response"]
        event = _read(raw["response"], bytes(inner))
        if isinstance(event, Chunk):
            shown = event.deviations if isinstance(event, FullChunk) else ()
            return FullChunk(**_fields(event), deviations=("wrapped", *shown))
        return event
    if "choices" in raw or str(raw.get("object", "")).startswith("chat.completion"):
        raise ProtocolError(
            "data is a chunk of OpenAI Chat Completions",
            hint="The OpenAI-compatible endpoint is read with the protocol openai-chat",
        )
    if raw and not raw.keys() & _CHUNK_FIELDS:
        return Unknown(raw)
    return _full_chunk(raw, data)


# The same fields as above, with what may have other fields left as text.


class _Loose(msgspec.Struct, rename="camel"):
    pass


class _LooseChunk(_Loose):
    candidates: list[Raw] | None = None
    usage_metadata: Raw = Raw()
    model_version: str | None = None
    response_id: str | None = None
    create_time: str | None = None


class _LooseCandidate(_Loose):
    content: Raw = Raw()
    index: int | None = None
    finish_reason: str | None = None
    finish_message: str | None = None


class _LooseContent(_Loose):
    parts: list[Raw] | None = None
    role: str | None = None


class _LoosePart(_Loose):
    text: str | None = None
    thought: bool | None = None
    thought_signature: str | None = None
    function_call: Raw = Raw()


# For each: its decoder, and its names on the wire.
_READERS: dict[type[Any], tuple[msgspec.json.Decoder[Any], frozenset[str]]] = {
    kind: (msgspec.json.Decoder(kind), frozenset(field.encode_name for field in msgspec.structs.fields(kind)))
    for kind in (_LooseChunk, _LooseCandidate, _LooseContent, _LoosePart, FunctionCall)
}


def _full_chunk(value: dict[str, Any], data: bytes) -> FullChunk:
    chunk, rest = _split(value, data, _LooseChunk, "chunk")
    fields = _fields(chunk)
    candidates = fields.pop("candidates")
    if candidates is not None:
        candidates = tuple(map(_full_candidate, value["candidates"], candidates))
    return FullChunk(candidates=candidates, **fields, rest=rest)


def _full_candidate(value: Any, data: Raw) -> Candidate:
    candidate, rest = _split(value, bytes(data), _LooseCandidate, "candidate")
    fields = _fields(candidate)
    text = bytes(fields.pop("content"))
    if _is_null(text):
        return FullCandidate(**fields, rest=rest)
    content, _ = _split(value["content"], text, _LooseContent, "content")
    parts = tuple(map(_full_part, value["content"].get("parts") or (), content.parts or ()))
    return FullCandidate(content=Content(parts, content.role), **fields, rest=rest)


def _full_part(value: Any, data: Raw) -> Part:
    part, rest = _split(value, bytes(data), _LoosePart, "part")
    fields = _fields(part)
    text = bytes(fields.pop("function_call"))
    if not _is_null(text):
        call: Any = value["functionCall"]
        more = _rest(cast("dict[str, Any]", call), FunctionCall) if isinstance(call, dict) else {}
        if more:  # the struct refuses these
            rest = {**rest, "functionCall": more}
            given = msgspec.json.decode(text, type=dict[str, Raw])
            text = msgspec.json.encode({name: raw for name, raw in given.items() if name not in more})
        fields["function_call"], _ = _split({}, text, FunctionCall, "functionCall")
    return FullPart(**fields, raw=value, rest=rest) if rest else Part(**fields)


def _is_null(data: bytes) -> bool:
    return data in (b"", b"null")


def _fields(struct: msgspec.Struct) -> dict[str, Any]:
    return {name: getattr(struct, name) for name in struct.__struct_fields__ if name != "deviations"}


def _split(value: Any, data: bytes, kind: type[T], what: str) -> tuple[T, dict[str, Any]]:
    """`value`, which `data` spells, as `kind`, and the fields that `kind` does not have."""
    try:
        struct = _READERS[kind][0].decode(data)
    except msgspec.DecodeError as error:
        raise ProtocolError(f"{what} has the wrong shape: {error}") from None
    return struct, _rest(value, kind)


def _rest(value: dict[str, Any], kind: type[Any]) -> dict[str, Any]:
    names = _READERS[kind][1]
    return {name: field for name, field in value.items() if name not in names}
