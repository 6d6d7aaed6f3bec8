"""Chat Completions: chunk by chunk to neutral events.

A chunk has no type and a choice no stages, so that the table is short: a chunk may add to its choices
until the end, a finish reason is recorded when it comes, and everything is judged at `[DONE]` or the
end of the input. Edge cases are decided as in the table of deviations in `dialects`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeAlias, cast

import msgspec
from msgspec import UNSET

from ... import fold
from ...dialect import Dialect
from ...errors import SseamError, TruncatedStream
from ...events import TextDelta, ThinkingDelta
from ...fold import append
from .._openai_errors import api_error
from . import wire
from .calls import add_entries, add_extra, add_legacy
from .content import add_delta, items
from .dialects import DEVIATIONS, DIALECTS
from .finish import STOP_REASONS, judge, record
from .scanner import scan as scan_text
from .state import State, Step, Stream, Wire, set_own
from .usage import has_text_numbers, read_usage, usage_of
from .wire import PlainChunk

__all__ = ["NAME", "STOP_REASONS", "TITLE", "State", "finish", "initial", "reduce"]

NAME = "openai-chat"
TITLE = "OpenAI Chat"


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
    # Nearly every event adds to the block touched last, and says nothing else.
    if type(event) is PlainChunk:
        delta = event.choices[0].delta
        text = delta.content
        if text is not None:
            if (
                state.focus.delta is TextDelta  # None after a finish reason and after the end
                and delta.tool_calls is delta.reasoning_content is delta.reasoning is None
                and (delta.role is None or state.wire.roles > 1)
            ):
                return append(state, text)
        elif delta.role is None or state.wire.roles > 1:
            step = _add_reasoning(state, delta) if delta.tool_calls is None else _add_arguments(state, delta)
            if step is not None:
                return step
    if state.head.result is not None:
        return state, ()
    try:
        return _TABLE[type(event)](state, event)
    except SseamError as error:
        return _fail(state, error)


def _add_reasoning(state: State, delta: wire.PlainDelta) -> Step | None:
    """The step for reasoning that goes on with the block in focus; None where it may be more."""
    text = delta.reasoning_content
    if text is None:
        text = delta.reasoning
    elif delta.reasoning is not None:
        return None
    return append(state, text) if text and state.focus.delta is ThinkingDelta else None


def _add_arguments(state: State, delta: wire.PlainDelta) -> Step | None:
    """The same for one fragment with nothing but an index, of a call that stays open."""
    own = state.wire
    calls, entries = own.calls, delta.tool_calls
    call = calls.focus
    if (
        call is None
        or calls.direct is None
        or entries is None
        or len(entries) != 1
        or not (delta.reasoning_content is delta.reasoning is None)
        or call.block != state.focus.index
    ):
        return None
    entry = entries[0]
    function = entry.function
    if (
        entry.index != calls.direct
        or function is None
        or not (entry.id is entry.type is function.name is UNSET)
        or entry.extra_content is not None
    ):
        return None
    text = function.arguments
    if type(text) is not str or not text:
        return None
    scan = call.scan
    if not scan.in_string or scan.escaped or '"' in text or "\\" in text:
        scan, _ = scan_text(scan, text)
        if scan.closed:
            return None
        if scan != call.scan:
            calls = calls.refocus(call.scanned(scan))
            own = Wire(calls, own.prose, own.kept, own.finish, own.roles, own.logprobs, own.stream)
            state = fold.set_wire(state, own)
    return append(state, text)


def finish(state: State) -> Step:
    """The input ended. Without a finish reason before, that is a fault."""
    if state.head.result is not None:
        return state, ()
    try:
        if not state.head.begun:
            raise TruncatedStream("empty event stream", hint="Expected a chunk with choices")
        if state.wire.finish is not None:
            state = fold.note(state, "done_missing")
        return _judge(state, marked=False)
    except SseamError as error:
        return _fail(state, error)


# ---- the end


def _on_done(state: State, event: wire.DoneMarker) -> Step:
    if event.variant:
        state = fold.note(state, "done_variant")
    if not state.head.begun:
        raise TruncatedStream("empty event stream", hint="Expected a chunk with choices before [DONE]")
    return _judge(state, marked=True)


def _judge(state: State, *, marked: bool) -> Step:
    """Every choice by itself: what is wrong with one does not spoil another."""
    stream = state.wire.stream
    for index, other in stream.others:
        if not fold.is_over(other):
            stream = stream.put(index, judge(other, marked=marked)[0])
    return judge(_with_alternatives(set_own(state, stream=stream)), marked=marked)


def _with_alternatives(state: State) -> State:
    others = state.wire.stream.others
    if not len(others):
        return state
    ordered = sorted(others, key=lambda choice: choice[0])
    return fold.set_head(state, alternatives=tuple(fold.partial(other) for _, other in ordered))


def _fail(state: State, error: SseamError) -> Step:
    return fold.fail(_with_alternatives(state), error)


def _on_error(state: State, event: wire.Error) -> Step:
    payload = event.payload
    counts = cast("dict[str, Any]", payload).get("usage") if isinstance(payload, dict) else None
    caused: fold.Events = ()
    if isinstance(counts, dict) and counts and state.head.begun:
        state, caused = fold.set_usage(state, state.wire, read_usage(cast("dict[str, Any]", counts)))
    state, failed = _fail(state, api_error(payload, delivered=state.head.started > 0))
    return state, (*caused, *failed)


def _on_empty(state: State, event: wire.Empty) -> Step:
    return fold.note(state, "empty_frame"), ()


# ---- chunks


def _on_plain_chunk(state: State, event: wire.PlainChunk) -> Step:
    return _on_full_chunk(state, wire.full(event))


def _on_full_chunk(state: State, event: wire.FullChunk) -> Step:
    chunk = event.chunk
    state, begun = _read_envelope(state, event)
    caused = [*begun]
    choices = chunk.choices
    if choices is UNSET:
        state = fold.note(state, "choices_absent")
    elif choices is None:
        state = fold.note(state, "choices_null")
    else:
        for place, choice in enumerate(choices):
            state, more = _on_choice(state, choice, _beside(event.raw, place), event.response)
            caused += more
    state, more = _read_usage(state, event)
    return state, (*caused, *more)


def _on_choice(state: State, choice: wire.Choice, beside: dict[str, Any], response: bool) -> Step:
    index = choice.index if isinstance(choice.index, int) else 0
    if index == 0:
        return _add_choice(state, choice, beside, response)
    if "choices_joined" in state.head.settings.dialect.codes:
        return _add_choice(_once(state, "choices_joined"), choice, beside, response)
    stream = state.wire.stream
    known = stream.places.get(index)
    if known is not None:
        _, other = stream.others[known]
    else:
        head = state.head
        other, _ = fold.begin(fold.initial(head.settings, Wire()), Wire(), id=head.id, model=head.model)
    if not fold.is_over(other):
        try:
            other, _ = _add_choice(other, choice, beside, response)
        except SseamError as error:
            other, _ = fold.fail(other, error)
    return set_own(state, stream=stream.put(index, other)), ()


def _add_choice(state: State, choice: wire.Choice, beside: dict[str, Any], response: bool) -> Step:
    """What a chunk adds to one choice."""
    if beside:
        kept = {**state.head.raw.get("choice", {}), **beside}
        state = fold.set_head(state, raw={**state.head.raw, "choice": kept})
    delta = choice.delta
    if choice.message is not None:
        if delta is None and not state.head.started:
            delta = choice.message  # all of it in one chunk
        else:
            state = _once(state, "message_snapshot")
    caused: fold.Events = ()
    if delta is None:
        state = _once(state, "delta_absent")
    elif delta != _NO_DELTA:
        state, caused = _add_content(state, delta)
    if choice.logprobs is not None:
        state = _add_logprobs(state, choice.logprobs)
    if choice.finish_reason is not None:
        state = record(state, choice.finish_reason)
    return state, caused


_NO_DELTA = wire.Delta()


def _add_content(state: State, delta: wire.Delta) -> Step:
    own = state.wire
    if delta.role is not None and own.roles < 2:
        if own.roles == 1:
            state = fold.note(state, "role_repeated")
        state = set_own(state, roles=own.roles + 1)
    state, caused = add_delta(state, delta)
    if delta.tool_calls:
        state, more = add_entries(state, delta.tool_calls)
        caused += more
    if delta.function_call is not None:
        state, more = add_legacy(state, delta.function_call)
        caused += more
    if delta.extra_content is not None:
        state = add_extra(state, delta.extra_content)
    if own.finish is not None and caused:
        state = _once(state, "delta_after_finish")
    return state, caused


def _add_logprobs(state: State, value: Any) -> State:
    if not isinstance(value, dict):
        return state
    raw = cast("dict[str, Any]", value)
    content, refusal = state.wire.logprobs
    for token in items(raw.get("content")):
        content = content.append(token)
    for token in items(raw.get("refusal")):
        refusal = refusal.append(token)
    return set_own(state, logprobs=(content, refusal))


# ---- what stands around the choices


def _read_envelope(state: State, event: wire.FullChunk) -> Step:
    """Id, model and what has no struct; the message begins with the first chunk that has content or counts."""
    chunk, raw = event.chunk, event.raw
    own, head = state.wire, state.head
    stream = own.stream
    if chunk.id != stream.chunk_id:
        if stream.chunk_id is UNSET:
            if chunk.choices == () and chunk.usage is None:
                state = fold.note(state, "first_choices_empty")
        elif chunk.id and stream.chunk_id:
            state = _once(state, "chunk_id_changes")
        own = msgspec.structs.replace(own, stream=Stream(chunk.id, stream.usage_rank, stream.places, stream.others))
        state = fold.set_wire(state, own)
    rest: dict[str, Any] = {}
    if raw is not None:
        if _is_blank(raw):
            state = _once(state, "envelope_blank")
        known = head.raw
        rest = {
            key: value
            for key, value in raw.items()
            if value is not None and key not in _READ and known.get(key) != value
        }
    id, model = head.id or _word(chunk.id), head.model or _word(chunk.model)
    if not head.begun and (chunk.choices or chunk.usage):
        return fold.begin(state, own, id=id, model=model, raw={**head.raw, **rest})
    if rest or id != head.id or model != head.model:
        state = fold.set_head(state, id=id, model=model, raw={**head.raw, **rest})
    return state, ()


def _word(value: Any) -> str:
    return str(value) if isinstance(value, str | int) else ""


# Modelled, or padding against the guessing of lengths.
_READ = frozenset({"id", "object", "model", "choices", "usage", "error", "obfuscation", "p"})
_READ_OF_CHOICE = frozenset({"index", "delta", "finish_reason", "logprobs", "usage", "message"})
_READ_OF_DELTA = frozenset(field.encode_name for field in msgspec.structs.fields(wire.Delta))
_MILLISECONDS = 100_000_000_000  # as seconds, the year 5138


def _is_blank(raw: dict[str, Any]) -> bool:
    created = raw.get("created")
    if type(created) is not int or not 0 < created < _MILLISECONDS:
        return True
    return not (raw.get("id") and raw.get("model") and raw.get("object"))


def _beside(raw: dict[str, Any] | None, place: int) -> dict[str, Any]:
    """Fields of a choice and its delta that have no struct."""
    if raw is None:
        return {}
    choice: dict[str, Any] = raw["choices"][place]
    delta: dict[str, Any] = choice.get("delta") or choice.get("message") or {}
    if choice.keys() <= _READ_OF_CHOICE and delta.keys() <= _READ_OF_DELTA:
        return {}
    rest = {key: value for key, value in choice.items() if key not in _READ_OF_CHOICE and value is not None}
    return rest | {key: value for key, value in delta.items() if key not in _READ_OF_DELTA and value is not None}


def _read_usage(state: State, event: wire.FullChunk) -> Step:
    """Counts replace earlier ones from no better place. They are never added."""
    found = usage_of(event.chunk)
    stream = state.wire.stream
    if found is None or found[0] < stream.usage_rank:
        return state, ()
    rank, code, raw = found
    if code is not None:
        state = _once(state, code)
    elif event.chunk.choices and not event.response:
        state = _once(state, "usage_every_chunk" if state.wire.finish is None else "usage_on_finish")
    if has_text_numbers(raw):
        state = _once(state, "number_as_text")
    own = state.wire
    if rank != stream.usage_rank:
        own = msgspec.structs.replace(own, stream=Stream(stream.chunk_id, rank, stream.places, stream.others))
    return fold.set_usage(state, own, read_usage(raw))


def _once(state: State, code: str) -> State:
    """Count a deviation that a stream or choice has, and not each of its chunks."""
    return state if code in state.head.deviations else fold.note(state, code)


# ---- the table

Arm: TypeAlias = Callable[[State, Any], Step]

_TABLE: dict[type[Any], Arm] = {
    wire.PlainChunk: _on_plain_chunk,
    wire.FullChunk: _on_full_chunk,
    wire.Error: _on_error,
    wire.DoneMarker: _on_done,
    wire.Empty: _on_empty,
}
