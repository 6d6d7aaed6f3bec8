"""What servers of the Responses protocol do otherwise than OpenAI, as data.

Source: the wire reference's tables of edge cases and of servers (read 2026-11-29).
"""

from __future__ import annotations

from ...dialect import Dialect, Grade

__all__ = ["DEVIATIONS", "DIALECTS"]

DEVIATIONS: dict[str, Grade] = {
    "event_name_mismatch": "harmless",  # the payload's type counts
    "empty_frame": "harmless",
    "done_marker": "harmless",  # [DONE] of OpenRouter and older litellm
    "unknown_event": "harmless",  # types are added without notice
    "unknown_item": "harmless",
    "unknown_part": "harmless",
    "audio_dropped": "harmless",  # audio events belong to no item
    "created_missing": "harmless",  # the first event is another one
    "created_repeated": "harmless",  # before any content, and of the same response
    "resumed_midway": "harmless",  # the stream was entered in the middle of its content
    "null_item": "harmless",
    "item_repeated": "harmless",  # announced or finished twice, saying the same
    "item_id_changed": "harmless",  # Copilot gives every event another id
    "response_id_changed": "harmless",
    "item_done_missing": "harmless",  # only the final response has the item whole (MCP listings at OpenAI)
    "output_missing": "harmless",  # the final response does not list the output
    "deltas_missing": "harmless",  # LM Studio and Codex send some texts only when they are whole
    "server_custom_tool": "harmless",  # xAI shows the tools that it runs as custom tools
    "sequence_unreliable": "harmless",  # litellm numbered every event 1
    "sequence_missing": "harmless",  # an event without a number among numbered ones
    "sequence_repeated": "harmless",  # resuming may overlap
    "sequence_reordered": "soft",
    "sequence_gap": "soft",
    "deltas_incomplete": "soft",  # the finished text goes on after its last delta
    "reasoning_mismatch": "soft",  # reasoning that differs from its deltas; these stand
    "server_text_mismatch": "soft",  # the same of a tool that the provider runs; the item stands
    "item_done_lost": "soft",  # a text was finished, its item never
    "part_missing": "soft",  # the finished item lacks a part that was streamed
    "output_differs": "soft",  # the final response lacks an item that was streamed
    "call_id_changed": "soft",  # vLLM; the first one stands
    "arguments_as_object": "soft",
    "content_index_shifted": "harmless",  # Bedrock counts the reasoning among the message's parts
    "content_index_rises": "soft",  # old vLLM counted it up with every delta
    "status_contradicts": "soft",  # the status is not the event's
    "unterminated_tail": "soft",  # a recording that lost its last blank line
}

DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect
    for dialect in (
        Dialect(name="openai"),
        Dialect(name="azure"),
        Dialect(name="bedrock-mantle"),
        Dialect(name="codex", codes=frozenset({"output_missing", "deltas_missing"})),
        Dialect(name="copilot", codes=frozenset({"item_id_changed", "response_id_changed"})),
        Dialect(name="deepseek"),
        Dialect(name="litellm", codes=frozenset({"sequence_unreliable", "done_marker", "status_contradicts"})),
        Dialect(name="lmstudio", codes=frozenset({"deltas_missing"})),
        Dialect(name="ollama"),
        Dialect(name="openrouter", codes=frozenset({"done_marker", "item_id_changed"})),
        Dialect(name="perplexity"),
        Dialect(name="recording", codes=frozenset({"unterminated_tail", "sequence_gap"})),
        Dialect(name="sglang", codes=frozenset({"item_done_missing", "item_done_lost"})),
        Dialect(
            name="vllm",
            codes=frozenset({"item_done_lost", "output_missing", "call_id_changed", "content_index_rises"}),
        ),
        Dialect(name="xai", codes=frozenset({"server_custom_tool"})),
    )
}
