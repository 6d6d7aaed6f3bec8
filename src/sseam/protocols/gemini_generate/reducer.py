"""Gemini generateContent: chunk by chunk to neutral events.

A chunk is a piece of the answer, not an event with a name: every field may come in any of them, blocks
have no bounds of their own, and nothing marks the end. So what a part does depends on the part before
it, the worst stop reason counts, and it is judged when the input is over. Edge cases are decided as in
Google's "Thought signatures", "Function calling" and "Streaming" pages (read 2026-11-29).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, cast

import msgspec
from msgspec import Raw

from ... import fold, stop
from ...dialect import Dialect
from ...errors import ProtocolError, SseamError, StopReasonError, TruncatedStream
from ...events import TextDelta, ThinkingDelta
from ...fold import Kind, append
from ...message import TextBlock
from .. import _gemini
from . import wire
from .dialects import DEVIATIONS, DIALECTS
from .parts import State, Step, Wire, end_prose, on_part, piece, says
from .wire import Chunk

__all__ = ["NAME", "STOP_REASONS", "TITLE", "State", "finish", "initial", "reduce"]

NAME = "gemini-generate"
TITLE = "Gemini"

# STOP also ends a turn with calls: then it becomes "tool_use".
STOP_REASONS = {
    "STOP": "end_turn",
    "MAX_TOKENS": "max_tokens",
    "CONTINUATION": "pause_turn",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "SPII": "content_filter",
    "IMAGE_SAFETY": "content_filter",
    "IMAGE_PROHIBITED_CONTENT": "content_filter",
    "IMAGE_RECITATION": "content_filter",
    "MODEL_ARMOR": "content_filter",
    "ESCALATION": "content_filter",
    "MALFORMED_FUNCTION_CALL": "error",
    "UNEXPECTED_TOOL_CALL": "error",
    "TOO_MANY_TOOL_CALLS": "error",
    "MISSING_THOUGHT_SIGNATURE": "error",
    "MALFORMED_RESPONSE": "error",
    "NO_IMAGE": "error",
    "IMAGE_OTHER": "error",
    "LANGUAGE": "error",
    "OTHER": "error",
    "PUP_LIMITED_DISABLED": "error",
}

# Why a prompt was not answered at all.
BLOCK_REASONS = {
    "SAFETY": "content_filter",
    "OTHER": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "IMAGE_SAFETY": "content_filter",
    "MODEL_ARMOR": "content_filter",
    "JAILBREAK": "content_filter",
}

# Whatever was open then is not finished, and no fault of the stream.
BROKEN_OFF = frozenset({"error", "pause_turn"})

# Values that mean the same as none.
UNSPECIFIED = frozenset({"", "FINISH_REASON_UNSPECIFIED", "BLOCKED_REASON_UNSPECIFIED"})

_USAGE = _gemini.UsageNames(
    input="promptTokenCount",
    tool="toolUsePromptTokenCount",
    cached="cachedContentTokenCount",
    output="candidatesTokenCount",
    thoughts="thoughtsTokenCount",
    total="totalTokenCount",
)


def initial(
    *,
    dialect: str | Dialect | None = None,
    strict: bool = False,
    tools: Iterable[object] = (),
    accept: Collection[str] = (),
) -> State:
    """The state before the first event. See `sseam.Parser` for the arguments."""
    settings = fold.settings(
        NAME, TITLE, DEVIATIONS, DIALECTS, dialect=dialect, strict=strict, tools=tools, accept=accept
    )
    return fold.initial(settings, Wire())


def reduce(state: State, event: wire.Event) -> Step:
    """The next state, and the neutral events that `event` caused.

    A fault gives one last `Failed` event. After the terminal event nothing more comes.
    """
    # Nearly every chunk is one more piece for the block in focus, and counts at most.
    if (
        type(event) is Chunk
        and (candidates := event.candidates) is not None
        and len(candidates) == 1
        and (not event.response_id or event.response_id == state.head.id)
    ):
        candidate = candidates[0]
        content = candidate.content
        if (
            content is not None
            and (parts := content.parts) is not None
            and len(parts) == 1
            and candidate.finish_reason is None
            and not candidate.index
        ):
            part = parts[0]
            if (call := part.function_call) is not None:
                text = piece(state, call)
            elif part.thought_signature is None and state.focus.delta is (ThinkingDelta if part.thought else TextDelta):
                text = part.text
            else:
                text = None
            if text:
                step = append(state, text)
                return step if event.usage_metadata == state.wire.usage else _counted(*step, event.usage_metadata)
    if state.head.result is not None:
        return state, ()
    try:
        return _TABLE[type(event)](state, event)
    except SseamError as error:
        return fold.fail(state, error)


def _counted(state: State, caused: fold.Events, usage: Raw) -> Step:
    try:
        state, more = _on_usage(state, usage)
    except SseamError as error:
        state, more = fold.fail(state, error)
    return state, (*caused, *more)


def finish(state: State) -> Step:
    """The input ended: the worst stop reason that came is judged. Without one, that is a fault."""
    if state.head.result is not None:
        return state, ()
    caused: fold.Events = ()
    try:
        state = _finish_others(state)
        reason, raw = _end_reason(state)
        state, caused = end_prose(state)
        if reason == "end_turn" and _is_empty(state):
            state = fold.note(state, "empty_answer")
        state, more = fold.finish(fold.set_stop(state, state.wire, reason, raw), reason, raw, cut=reason in BROKEN_OFF)
    except StopReasonError as error:
        reason, raw = error.stop_reason or stop.UNKNOWN, error.raw_stop_reason or ""
        state, more = fold.fail(fold.set_stop(state, state.wire, reason, raw), _explained(state, error))
    except SseamError as error:
        state, more = fold.fail(state, error)
    return state, (*caused, *more)


def _end_reason(state: State) -> tuple[str, str]:
    """The neutral stop reason and the wire's word for it."""
    head = state.head
    if (blocked := state.wire.blocked) is not None:
        return BLOCK_REASONS.get(blocked, stop.UNKNOWN), blocked
    if not head.begun:
        raise TruncatedStream("empty event stream", hint="Expected a chunk with candidates")
    if head.reason is None or head.raw_reason is None:
        fold.require_valid(state)
        raise fold.truncated(end_prose(state)[0], "a finishReason")
    return "tool_use" if head.reason == "end_turn" and head.calls else head.reason, head.raw_reason


def _is_empty(state: State) -> bool:
    """Whether there is no text, call or other content: nothing, or thoughts alone."""
    contents = (part for part in fold.parts(state) if part.kind is not Kind.THINKING)
    return all(isinstance(part.block, TextBlock) and not part.block.text for part in contents)


def _explained(state: State, error: StopReasonError) -> StopReasonError:
    """The error with what the provider said about the reason."""
    feedback = state.head.raw.get("promptFeedback")
    said = state.head.raw.get("finishMessage") or (
        cast("dict[str, Any]", feedback).get("blockReasonMessage") if isinstance(feedback, dict) else None
    )
    if isinstance(said, str) and said:
        error.hint = f"The provider says: {said}. {error.hint}"
    return error


def _finish_others(state: State) -> State:
    """The state with the messages of the further candidates, which must have ended too."""
    messages: list[Any] = []
    for index, other in sorted(state.wire.others.items()):
        if other.head.raw_reason is None and other.head.result is None and state.head.raw_reason is not None:
            raise TruncatedStream(f"stream ended before a finishReason of candidate {index}")
        messages.append(fold.partial(finish(other)[0]))
    return fold.set_head(state, alternatives=tuple(messages)) if messages else state


# ---- chunks


def _on_chunk(state: State, event: wire.Chunk) -> Step:
    rest: dict[str, Any] = {}
    if isinstance(event, wire.FullChunk):
        rest = event.rest
        for code in event.deviations:
            state = fold.note(state, code)
    state, caused = _identify(state, event)
    _judge(state, event)
    if rest:
        state = _keep(state, rest)
        state = _note_block(state, rest.get("promptFeedback"))
    for candidate in event.candidates or ():
        if candidate.index:
            state = _on_other(state, candidate.index, candidate)
        else:
            state, more = _on_candidate(state, candidate)
            caused += more
    state, more = _on_usage(state, event.usage_metadata)
    return state, (*caused, *more)


def _identify(state: State, event: wire.Chunk) -> Step:
    """The message begins with the first chunk; a later one may say what that left out."""
    id, model = _gemini.given(event.response_id), event.model_version or ""
    head = state.head
    if id and head.id and id != head.id:
        raise ProtocolError(f"second response {id!r} spliced into the stream of {head.id!r}")
    if not head.begun:
        raw = {"createTime": event.create_time} if event.create_time else {}
        return fold.begin(state, state.wire, id=id, model=model, raw=raw)
    if (id and not head.id) or (model and not head.model):
        state = fold.set_head(state, id=head.id or id, model=head.model or model)
    return state, ()


def _judge(state: State, event: wire.Chunk) -> None:
    """A call that ended unusable is a fault, unless this chunk or one before says that the answer was cut."""
    if state.head.fault is not None:
        reasons = [candidate.finish_reason for candidate in event.candidates or () if not candidate.index]
        known = [STOP_REASONS.get(reason) for reason in (*reasons, state.head.raw_reason) if reason]
        if not any(reason in stop.CUT_OFF for reason in known):
            fold.require_valid(state)


def _keep(state: State, fields: dict[str, Any]) -> State:
    """The state with fields of the message that are not modelled. Of an object later fields replace earlier ones."""
    raw = dict(state.head.raw)
    for name, value in fields.items():
        known = raw.get(name)
        if isinstance(known, dict) and isinstance(value, dict):
            raw[name] = {**cast("dict[str, Any]", known), **cast("dict[str, Any]", value)}
        elif value is not None:
            raw[name] = value
    return fold.set_head(state, raw=raw)


def _note_block(state: State, feedback: Any) -> State:
    reason = cast("dict[str, Any]", feedback).get("blockReason") if isinstance(feedback, dict) else None
    if not isinstance(reason, str) or reason in UNSPECIFIED:
        return state
    own = msgspec.structs.replace(state.wire, blocked=reason)
    return fold.set_stop(state, own, BLOCK_REASONS.get(reason, stop.UNKNOWN), reason)


def _on_other(state: State, index: int, candidate: wire.Candidate) -> State:
    """A further candidate is a message of its own. Nothing of it is told before the end."""
    head = state.head
    others = state.wire.others
    other = (
        others.get(index) or fold.begin(fold.initial(head.settings, Wire()), Wire(), id=head.id, model=head.model)[0]
    )
    if other.head.result is None:
        try:
            other, _ = _on_candidate(other, candidate)
        except SseamError as error:
            other, _ = fold.fail(other, error)
    return fold.set_wire(state, msgspec.structs.replace(state.wire, others={**others, index: other}))


def _on_candidate(state: State, candidate: wire.Candidate) -> Step:
    caused: fold.Events = ()
    parts = (candidate.content and candidate.content.parts) or ()
    if state.head.raw_reason is not None and any(says(part) for part in parts):
        state = fold.note(state, "parts_after_finish")
    for part in parts:
        state, more = on_part(state, part)
        caused += more
    if isinstance(candidate, wire.FullCandidate):
        state = _keep(state, candidate.rest)
    if candidate.finish_message is not None:
        state = _keep(state, {"finishMessage": candidate.finish_message})
    raw = candidate.finish_reason
    if raw is not None and raw not in UNSPECIFIED and state.wire.blocked is None:
        state = _record(state, raw)
    return state, caused


def _record(state: State, raw: str) -> State:
    """A finish reason came. Of several the worst counts."""
    known = state.head.raw_reason
    if known is not None and known != raw:
        state = fold.note(state, "finish_conflict")
        if _severity(raw) <= _severity(known):
            return state
    return fold.set_stop(state, state.wire, STOP_REASONS.get(raw, stop.UNKNOWN), raw)


# An unknown reason is as bad as an error.
_SEVERITY = {"end_turn": 0, "content_filter": 1, "max_tokens": 2}


def _severity(raw: str) -> int:
    return _SEVERITY.get(STOP_REASONS.get(raw, stop.UNKNOWN), 3)


def _on_usage(state: State, given: Raw) -> Step:
    """A snapshot: what it has replaces what came before.

    A field that it lacks keeps its last value, as thoughts and cached tokens are dropped by some
    servers, but not the count of the candidates, which is left out where it is 0.
    """
    own = state.wire
    if given == own.usage:
        return state, ()
    text = bytes(given)
    fields = _decode_usage(text) if text else None
    if fields is None:
        return fold.set_wire(state, msgspec.structs.replace(own, usage=given)), ()
    if not isinstance(fields, dict):
        raise ProtocolError("usageMetadata is not an object")
    fields = cast("dict[str, Any]", fields)
    counts = {**own.counts, **fields}
    for name, value in fields.items():
        if value is None and name in own.counts:
            counts[name] = own.counts[name]
    if _COUNTS.isdisjoint(fields):  # Vertex sends its traffic type with every chunk, and counts with the last
        return fold.set_wire(state, msgspec.structs.replace(own, usage=given, counts=counts)), ()
    for name in _OF_CANDIDATES:
        if name not in fields:
            counts.pop(name, None)
    own = msgspec.structs.replace(own, usage=given, counts=counts)
    return fold.set_usage(state, own, _gemini.read_usage(counts, _USAGE))


def _decode_usage(text: bytes) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ProtocolError("usageMetadata cannot be read", hint=str(error)) from None


_COUNTS = frozenset(getattr(_USAGE, name) for name in _USAGE.__struct_fields__)
_OF_CANDIDATES = ("candidatesTokenCount", "candidatesTokensDetails")


def _on_error(state: State, event: wire.Error) -> Step:
    raise _gemini.api_error(event.error, delivered=state.head.started > 0)


def _on_unknown(state: State, event: wire.Unknown) -> Step:
    return fold.note(state, "unknown_event"), ()


def _on_empty(state: State, event: wire.Empty) -> Step:
    return fold.note(state, "empty_frame"), ()


def _on_done_marker(state: State, event: wire.DoneMarker) -> Step:
    # It is not part of the protocol and proves nothing: the end of the input is the end.
    return fold.note(state, "done_marker"), ()


def _on_array_end(state: State, event: wire.ArrayEnd) -> Step:
    return state, ()  # the framer knows that it came; what stands behind it is seen at the end of the input


# ---- the table

_TABLE: dict[type[Any], Callable[[State, Any], Step]] = {
    wire.Chunk: _on_chunk,
    wire.FullChunk: _on_chunk,
    wire.Error: _on_error,
    wire.Unknown: _on_unknown,
    wire.Empty: _on_empty,
    wire.DoneMarker: _on_done_marker,
    wire.ArrayEnd: _on_array_end,
}
