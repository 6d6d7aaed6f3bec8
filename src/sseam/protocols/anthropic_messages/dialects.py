"""What servers of the Messages protocol do otherwise than Anthropic, as data.

Source: the wire reference's tables of edge cases and of compatible endpoints (read 2026-11-29).
"""

from __future__ import annotations

from ...dialect import Dialect, Grade

__all__ = ["DEVIATIONS", "DIALECTS"]

DEVIATIONS: dict[str, Grade] = {
    "event_name_missing": "harmless",  # proxies drop the `event:` line
    "event_name_mismatch": "harmless",  # the payload's type counts
    "empty_frame": "harmless",  # a relay flushed an event name without data
    "unknown_event": "harmless",  # new event types are announced as normal
    "unknown_block": "harmless",
    "unknown_delta": "harmless",
    "start_repeated": "harmless",  # the same message_start again
    "done_marker": "harmless",  # [DONE] of older vLLM and routers
    "interleaved_blocks": "soft",  # llama.cpp opens blocks side by side
    "index_gap": "soft",
    "input_given_twice": "soft",  # at the block's start and by deltas that say otherwise
    "unterminated_tail": "soft",  # a recording that lost its last blank line
    "stop_with_calls": "gated",  # end_turn beside a whole call, read as tool_use
    "stop_missing": "gated",  # no message_stop after a stop reason, every block closed
}

DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect
    for dialect in (
        Dialect(name="anthropic"),
        Dialect(name="bifrost", codes=frozenset({"stop_with_calls"})),
        Dialect(name="litellm", codes=frozenset({"stop_with_calls"})),
        Dialect(name="llama.cpp", codes=frozenset({"interleaved_blocks", "index_gap"})),
        Dialect(name="vllm", codes=frozenset({"interleaved_blocks", "done_marker"})),
        Dialect(name="recording", codes=frozenset({"unterminated_tail"})),
        Dialect(name="gateway", codes=frozenset({"stop_missing", "stop_with_calls", "event_name_missing"})),
    )
}
