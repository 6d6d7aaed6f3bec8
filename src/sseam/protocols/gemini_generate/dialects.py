"""What servers of generateContent do otherwise than the Gemini API, as data.

Source: the wire reference's table of edge cases (read 2026-11-29).
"""

from __future__ import annotations

from ...dialect import Dialect, Grade

__all__ = ["DEVIATIONS", "DIALECTS"]

DEVIATIONS: dict[str, Grade] = {
    "empty_frame": "harmless",  # a relay's keep-alive
    "unknown_event": "harmless",  # an object that is no chunk
    "wrapped": "harmless",  # {"response": chunk}, as Cloud Code Assist sends it
    "done_marker": "harmless",  # [DONE], which translating proxies add
    "unknown_part": "harmless",  # a part of a kind that is not known yet
    "call_repeated": "harmless",  # the same call with the same id again
    "call_end_repeated": "harmless",  # an end marker for a streamed call that has ended
    "empty_answer": "harmless",  # STOP without text or call; asking again is customary
    "parts_after_finish": "soft",  # older models and proxies send STOP early, or with every chunk
    "finish_conflict": "soft",  # another finishReason than before; the worse one counts
    "stray_text": "soft",  # text that is neither an event nor JSON: a proxy's page behind the answer
    "unterminated_tail": "soft",  # a recording that lost its last blank line
}

DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect
    for dialect in (
        Dialect(name="gemini"),
        Dialect(name="vertex"),
        Dialect(name="code-assist", codes=frozenset({"wrapped"})),
        Dialect(name="gemini-1", codes=frozenset({"parts_after_finish", "finish_conflict"})),
        Dialect(
            name="gateway", codes=frozenset({"parts_after_finish", "finish_conflict", "done_marker", "empty_frame"})
        ),
        Dialect(name="recording", codes=frozenset({"unterminated_tail"})),
    )
}
