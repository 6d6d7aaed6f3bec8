"""What servers of the Interactions API do otherwise than Google's, as data.

Source: the wire reference's table of edge cases (read 2026-11-29).
"""

from __future__ import annotations

from ...dialect import Dialect, Grade

__all__ = ["DEVIATIONS", "DIALECTS"]

DEVIATIONS: dict[str, Grade] = {
    "empty_frame": "harmless",  # a relay's keep-alive
    "unknown_event": "harmless",  # new event types are to be expected
    "unknown_step": "harmless",
    "unknown_delta": "harmless",
    "created_repeated": "harmless",  # the same interaction.created again
    "step_unstopped": "soft",  # text or thoughts without step.stop, then interaction.completed
    "interleaved_steps": "soft",
    "index_gap": "soft",
    "input_given_twice": "soft",  # at the step's start and by deltas that say otherwise
    "unterminated_tail": "soft",  # a recording that lost its last blank line
}

DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect
    for dialect in (
        Dialect(name="gemini"),
        Dialect(name="vertex"),
        Dialect(name="recording", codes=frozenset({"unterminated_tail"})),
    )
}
