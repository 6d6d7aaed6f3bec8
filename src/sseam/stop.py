"""What a stop reason is worth: a claim that is checked against the content.

Every protocol maps its wire values to the neutral ones below, one table each (`STOP_REASONS`), and
keeps the raw word beside them. A value that no table knows becomes `UNKNOWN`.
"""

from __future__ import annotations

from collections.abc import Collection

from .errors import ProtocolError, StopReasonError

__all__ = ["ALWAYS_ACCEPTED", "CUT_OFF", "NEUTRAL", "UNKNOWN", "check"]

UNKNOWN = "unknown"

NEUTRAL = frozenset(
    {
        "end_turn",
        "tool_use",
        "max_tokens",
        "stop_sequence",
        "pause_turn",
        "refusal",
        "content_filter",
        "context_window_exceeded",
        "compaction",
        "error",
        "aborted",
        UNKNOWN,
    }
)

ALWAYS_ACCEPTED = frozenset({"end_turn", "tool_use"})

# The model was stopped in mid-output: what it was writing is not finished, closed or not.
CUT_OFF = frozenset({"max_tokens", "context_window_exceeded", "refusal", "content_filter", "aborted"})

_ADVICE = {
    "max_tokens": "Raise the output limit and ask again",
    "context_window_exceeded": "Shorten the input and ask again",
    "pause_turn": "Send the content back unchanged to go on",
    "refusal": "The model declined; the text so far is not an answer",
    "content_filter": "A filter stopped the output; the text so far is not an answer",
    "compaction": "Append the compaction block to the history to go on",
}


def check(reason: str, raw: str, calls: int, accept: Collection[str]) -> ProtocolError | None:
    """What is wrong with ending for `reason`, or None when the end holds.

    Args:
        reason: the neutral stop reason; raw: the wire's word for it.
        calls: how many whole client tool calls the message holds.
        accept: the further reasons that the caller takes as an end.
    """
    if reason == "tool_use" and not calls:
        return _contradiction(reason, raw, "the message holds no whole tool call")
    if reason in ("end_turn", "stop_sequence") and calls:
        return _contradiction(reason, raw, f"the message holds {calls} tool call(s), which ask for an answer")
    if reason in ALWAYS_ACCEPTED or reason in accept:
        return None
    found = f"unknown stop_reason {raw!r}" if reason == UNKNOWN else f"stop_reason {raw!r} is not accepted"
    advice = _ADVICE.get(reason, "See what the provider means by it")
    return StopReasonError(
        found,
        stop_reason=reason,
        raw_stop_reason=raw,
        hint=f"{advice}, or list {reason!r} in accept to take the message as it is",
    )


def _contradiction(reason: str, raw: str, found: str) -> StopReasonError:
    return StopReasonError(f"stop_reason {raw!r} but {found}", stop_reason=reason, raw_stop_reason=raw)
