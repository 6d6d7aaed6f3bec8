"""Text, reasoning and refusal of a choice as blocks, which the wire does not mark.

A block lasts until something else begins. What comes whole (an image, an executed tool) is kept as
it came.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec

from ... import events, fold
from ..._persistent import Vector
from ...fold import Kind
from . import wire
from .state import Kept, State, Step, Wire, set_own

__all__ = ["add_delta", "end_kept", "end_prose", "items"]

_WIRE_NAMES = {Kind.TEXT: "content", Kind.THINKING: "reasoning", Kind.REFUSAL: "refusal"}
_DELTAS = {Kind.TEXT: events.TextDelta, Kind.THINKING: events.ThinkingDelta, Kind.REFUSAL: events.RefusalDelta}


def add_delta(state: State, delta: wire.Delta) -> Step:
    """Everything of a delta but its calls and `extra_content`, in the order in which a model makes it."""
    caused: fold.Events = ()
    if delta.reasoning_content or delta.reasoning or delta.reasoning_details or _has_rare_reasoning(delta):
        state, caused = _add_reasoning(state, delta)
    if isinstance(delta.content, str):
        if delta.content:
            state, more = _add(state, Kind.TEXT, delta.content)
            caused += more
    elif parts := items(delta.content):
        state, more = _add_parts(state, parts)
        caused += more
    if isinstance(delta.refusal, str) and delta.refusal:
        state, more = _add(state, Kind.REFUSAL, delta.refusal)
        caused += more
    if delta.annotations or delta.images or delta.audio or delta.executed_tools:
        state, more = _add_rare(state, delta)
        caused += more
    return state, caused


def _has_rare_reasoning(delta: wire.Delta) -> bool:
    return bool(delta.reasoning_text or delta.reasoning_opaque)


# ---- prose


def _add(state: State, kind: Kind, text: str) -> Step:
    state, caused = _open(state, kind)
    state, more = fold.append(state, text)
    return state, (*caused, *more)


def _open(state: State, kind: Kind) -> Step:
    """The open block of a kind, in focus."""
    if state.wire.prose is not None:
        state = fold.focus(state, state.wire.prose)
        if state.focus.delta is _DELTAS[kind]:
            return state, ()
    state, caused = end_prose(state)
    own = _with_prose(state.wire, state.head.started)
    name = _WIRE_NAMES[kind]
    state, more = fold.start(state, own, kind, key=name, name=name, fields={"extra": {}})
    return state, (*caused, *more)


def _with_prose(own: Wire, index: int | None) -> Wire:
    return Wire(own.calls, index, own.kept, own.finish, own.roles, own.logprobs, own.stream)


def end_prose(state: State) -> Step:
    """The open block of text, reasoning or refusal ends, if there is one."""
    if state.wire.prose is None:
        return state, ()
    state = fold.focus(fold.set_wire(state, _with_prose(state.wire, None)), state.wire.prose)
    details = state.focus.fields.get("details")
    if details is not None:
        extra = {**state.focus.fields["extra"], "reasoning_details": _joined(details)}
        state = fold.update(state, extra=extra)
    return fold.end(state)


# ---- reasoning


def _add_reasoning(state: State, delta: wire.Delta) -> Step:
    """Several fields may hold the same reasoning: the first that has any counts."""
    named = (delta.reasoning_content, delta.reasoning, delta.reasoning_text)
    texts = [text for text in named if isinstance(text, str) and text]
    details = _objects(delta.reasoning_details)
    if len(texts) > 1:
        state = fold.note(state, "reasoning_twice")
    text = texts[0] if texts else "".join(_detail_text(item) for item in details)
    caused: fold.Events = ()
    if text:
        state, caused = _add(state, Kind.THINKING, text)
    if details or delta.reasoning_opaque:
        state, more = _open(state, Kind.THINKING)
        caused += more
    if details:
        kept: Vector[Any] = state.focus.fields.get("details", Vector())
        for item in details:
            kept = kept.append(item)
        state = fold.update(state, details=kept)
    if delta.reasoning_opaque:
        extra = state.focus.fields["extra"]
        state = fold.update(state, extra={**extra, "reasoning_opaque": delta.reasoning_opaque})
    return state, caused


def _detail_text(item: dict[str, Any]) -> str:
    text = item.get("text") or item.get("summary")
    return text if isinstance(text, str) else ""


def _joined(details: Vector[Any]) -> list[dict[str, Any]]:
    """The items as they must go back: consecutive text of one item joined, all others as they came."""
    joined: list[dict[str, Any]] = []
    texts: list[str] = []
    for item in details:
        key = "text" if "text" in item else "summary"
        last = joined[-1] if joined else None
        if last is not None and texts and _continues(last, item, key):
            texts.append(item.get(key) or "")
            last.update({field: value for field, value in item.items() if value is not None and field != key})
            continue
        if last is not None and texts:
            _finish_text(last, texts)
        joined.append(dict(item))
        texts = [item[key] or ""] if isinstance(item.get(key, 0), str | None) else []
    if joined and texts:
        _finish_text(joined[-1], texts)
    return joined


# Fields that tell one item from the next where they differ; an item may come without them first.
_NAMING = ("id", "format", "signature")


def _continues(last: dict[str, Any], item: dict[str, Any], key: str) -> bool:
    if item.get("type") == "reasoning.encrypted" or not isinstance(item.get(key, ""), str | None):
        return False
    if any(last.get(field) != item.get(field) for field in ("type", "index")):
        return False
    if last.get("signature") and item.get(key) and not item.get("signature"):
        return False  # a signature is for the text before it, and text behind it is another item's
    return not any(last.get(field) and item.get(field) and last[field] != item[field] for field in _NAMING)


def _finish_text(item: dict[str, Any], texts: list[str]) -> None:
    item["text" if "text" in item else "summary"] = "".join(texts)
    texts.clear()


# ---- a content of parts


def _add_parts(state: State, parts: list[Any]) -> Step:
    state = fold.note(state, "content_list")
    caused: list[events.Event] = []
    for part in parts:
        state, more = _add_part(state, part)
        caused += more
    return state, tuple(caused)


def _add_part(state: State, part: Any) -> Step:
    if not isinstance(part, dict):
        return _add(state, Kind.TEXT, part) if isinstance(part, str) and part else (state, ())
    raw = cast("dict[str, Any]", part)
    match raw.get("type"):
        case "text":
            text = raw.get("text")
            return _add(state, Kind.TEXT, text) if isinstance(text, str) and text else (state, ())
        case "thinking":
            state, caused = _open(state, Kind.THINKING)
            text = "".join(_detail_text(piece) for piece in _pieces(raw.get("thinking")))
            more: fold.Events = ()
            if text:
                state, more = fold.append(state, text)
            signature = raw.get("signature")
            if isinstance(signature, str) and signature:
                state = fold.update(state, signature=signature)
            return state, (*caused, *more)
        case kind:
            return _add_whole(state, Kind.OPAQUE, str(kind), raw)


def _pieces(thinking: Any) -> list[dict[str, Any]]:
    if isinstance(thinking, str):
        return [{"text": thinking}]
    return _objects(thinking)


def items(value: Any) -> list[Any]:
    """The items of a list; of anything else, none."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def _objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in items(value) if isinstance(item, dict)]


# ---- what is kept as it came


def _add_rare(state: State, delta: wire.Delta) -> Step:
    caused: list[events.Event] = []
    annotations = _objects(delta.annotations)
    if annotations:
        state, more = _open(state, Kind.TEXT)
        caused += more
        kept: Vector[Any] = state.focus.fields.get("citations", Vector())
        for annotation in annotations:
            kept = kept.append(annotation)
        state = fold.update(state, citations=kept)
    for image in _objects(delta.images):
        state, more = _add_whole(state, Kind.OPAQUE, "image", image)
        caused += more
    for tool in _objects(delta.executed_tools):
        key = f"executed_tool {tool.get('index', 0)}"
        state, more = _add_kept(state, Kind.SERVER, key, "executed_tool", tool)
        caused += more
    for audio in _objects([delta.audio]):
        state, more = _add_kept(state, Kind.OPAQUE, "audio", "audio", audio)
        caused += more
    return state, tuple(caused)


def _add_whole(state: State, kind: Kind, name: str, raw: dict[str, Any]) -> Step:
    state, caused = end_prose(state)
    state, more = fold.start(state, state.wire, kind, key=name, name=name, fields={"raw": raw})
    state, last = fold.end(state)
    return state, (*caused, *more, *last)


def _add_kept(state: State, kind: Kind, key: str, name: str, raw: dict[str, Any]) -> Step:
    """A block of which each delta gives further fields. It ends with the choice."""
    known = state.wire.kept.places.get(key)
    caused: fold.Events = ()
    if known is None:
        state, caused = end_prose(state)
        own = msgspec.structs.replace(state.wire, kept=state.wire.kept.add(key, state.head.started))
        fields: dict[str, Any] = {"raw": raw, "pieces": Vector()}
        state, more = fold.start(state, own, kind, key=key, name=name, fields=fields)
        caused += more
    else:
        state = fold.focus(state, known)
    return fold.update(state, pieces=state.focus.fields["pieces"].append(raw)), caused


_GROWING = ("data", "transcript")  # of audio


def end_kept(state: State) -> Step:
    """The blocks that last as long as the choice end."""
    caused: list[events.Event] = []
    if not len(state.wire.kept.blocks):
        return state, ()
    for index in state.wire.kept.blocks:
        state = fold.focus(state, index)
        pieces: Vector[dict[str, Any]] = state.focus.fields["pieces"]
        raw: dict[str, Any] = {}
        for piece in pieces:
            raw.update({name: value for name, value in piece.items() if value is not None})
        if state.focus.wire == "audio":
            for name in _GROWING:
                texts = [piece[name] for piece in pieces if isinstance(piece.get(name), str)]
                if texts:
                    raw[name] = "".join(texts)
        state = fold.update(state, raw=raw)
        state, more = fold.end(state)
        caused += more
    return set_own(state, kept=Kept()), tuple(caused)
