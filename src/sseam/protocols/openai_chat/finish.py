"""The end of a choice, judged once, when nothing of it can follow any more.

A finish reason is a claim. It is recorded when it comes, the worst of several, and held against the
content at `[DONE]` or the end of the input.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ... import fold, stop
from ...errors import OutputProtocolViolation, ProtocolError, SseamError, TruncatedStream
from ...fold import Kind
from ...message import TextBlock, ThinkingBlock
from .calls import end_calls, start_all
from .content import end_kept, end_prose
from .state import State, Step

__all__ = ["STOP_REASONS", "judge", "record"]

STOP_REASONS = {
    "stop": "end_turn",
    "eos": "end_turn",
    "eos_token": "end_turn",
    "end": "end_turn",
    "stop_sequence": "end_turn",  # servers that say so for any end of their own
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    "model_length": "max_tokens",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "context_window_exceeded",
    "content_filter": "content_filter",
    "sensitive": "content_filter",
    "error": "error",
    "network_error": "error",
    "insufficient_system_resource": "error",
    "abort": "aborted",
}

# The worst of several finish reasons counts; an unknown one is as bad as an error.
_SEVERITY = {
    "end_turn": 0,
    "tool_use": 1,
    "content_filter": 2,
    "max_tokens": 3,
    "context_window_exceeded": 3,
}

# How servers' parsers miss a call: its markup stays in the text.
_CALL_MARKS = (
    "<tool_call>",
    "</tool_call>",
    "<function=",
    "<|python_tag|>",
    "<｜DSML｜",
    "<|DSML|",
    "<‖DSML‖",
    "<｜tool▁calls▁begin｜>",
    "<|tool_calls_section_begin|>",
    "<|tool_call_begin|>",
    "<|channel|>",
    "<|call|>",
    "[TOOL_CALLS]",
)


def record(state: State, value: Any) -> State:
    """A finish reason came."""
    if value == "":
        return fold.note(state, "finish_blank")
    raw, known = str(value), state.wire.finish
    if raw == known:
        return fold.note(state, "finish_repeated")
    if known is not None:
        state = fold.note(state, "finish_conflict")
        if _severity(raw) <= _severity(known):
            return state
    own = msgspec.structs.replace(state.wire, finish=raw)
    return fold.set_stop(state, own, STOP_REASONS.get(raw, stop.UNKNOWN), raw)


def _severity(raw: str) -> int:
    return _SEVERITY.get(STOP_REASONS.get(raw, stop.UNKNOWN), 4)


def judge(state: State, *, marked: bool) -> Step:
    """The choice is over: `Done` or `Failed`.

    Args:
        marked: `[DONE]` came, which proves nothing by itself.
    """
    caused: fold.Events = ()
    reason = _reason(state)
    try:
        state, caused = start_all(state, cut=reason not in stop.ALWAYS_ACCEPTED)
        state, more = _close(state, reason, marked)
    except SseamError as error:
        state, more = fold.fail(state, error)
    return state, (*caused, *more)


def _reason(state: State) -> str | None:
    """The neutral stop reason, None where none came."""
    raw = state.wire.finish
    if raw is None:
        return None
    reason = STOP_REASONS.get(raw, stop.UNKNOWN)
    if reason == "end_turn":
        for part in fold.parts(state):
            if part.kind is Kind.REFUSAL:
                return "refusal"
    return reason


def _close(state: State, reason: str | None, marked: bool) -> Step:
    """Raises what `fold.finish` does, and `TruncatedStream` where no finish reason came."""
    raw = state.wire.finish or ""
    if reason is None:
        state, reason = _without_reason(state, marked), "end_turn"
    elif error := _unaccepted(state, reason, raw):
        raise error
    state, caused = end_prose(state)
    state, more = end_kept(state)
    caused += more
    state = _keep_logprobs(state)
    if reason not in stop.CUT_OFF and len(state.wire.calls):
        state, more = end_calls(state)
        caused += more
        fold.require_valid(state)
    if reason == "end_turn" and state.head.calls:
        state, reason = fold.note(state, "stop_with_calls"), "tool_use"
    elif reason == "end_turn":
        state = _check_answer(state)
    state, more = fold.finish(state, reason, raw)
    return state, (*caused, *more)


def _without_reason(state: State, marked: bool) -> State:
    """Only a dialect that never gives a reason may end without one, and only in text."""
    if marked and not len(state.wire.calls) and "finish_absent_ok" in state.head.settings.dialect.codes:
        return fold.note(state, "finish_absent_ok")
    if any(part.kind is Kind.TOOL for part in fold.open_parts(state)):
        raise fold.truncated(state, "finish_reason")
    if marked:
        raise TruncatedStream("the chunks did not provide a finish_reason", hint="[DONE] alone proves nothing")
    raise TruncatedStream("stream ended before finish_reason")


def _unaccepted(state: State, reason: str, raw: str) -> ProtocolError | None:
    """What is wrong with a reason that no content could make right."""
    if reason in stop.ALWAYS_ACCEPTED:
        return None
    return stop.check(reason, raw, 0, state.head.settings.accept)


def _check_answer(state: State) -> State:
    """An answer without calls: is it one, and is it only that?"""
    text, thinking, others = "", "", False
    for part in fold.parts(state):
        block = part.block
        if isinstance(block, TextBlock):
            text += block.text
        elif isinstance(block, ThinkingBlock):
            thinking += block.thinking
        else:
            others = True
    if not text and not others:
        state = fold.note(state, "answer_empty")
    if text.lstrip().startswith("<think>") or "</think>" in text:
        state = fold.note(state, "think_in_content")
    settings = state.head.settings
    mark = next((mark for mark in _CALL_MARKS if mark in text or mark in thinking), None) if settings.tools else None
    if mark is None:
        return state
    if settings.strict and "leaked_tool_text" not in settings.dialect.codes:
        raise OutputProtocolViolation(f"a tool call was written as text: it holds {mark!r}", format=mark)
    return fold.note(state, "leaked_tool_text")


def _keep_logprobs(state: State) -> State:
    content, refusal = state.wire.logprobs
    if not len(content) and not len(refusal):
        return state
    found = {name: list(items) for name, items in (("content", content), ("refusal", refusal)) if len(items)}
    return fold.set_head(state, raw={**state.head.raw, "logprobs": found})
