"""Token counts of a chunk, wherever and however a server gives them."""

from __future__ import annotations

from typing import Any, cast

from ...message import Usage
from . import wire

__all__ = ["has_text_numbers", "read_usage", "usage_of"]


def usage_of(chunk: wire.Chunk) -> tuple[int, str | None, dict[str, Any]] | None:
    """How good the place is (3 best), the deviation that it is, and the counts; None where there are none."""
    if counts := _counts(chunk.usage):
        return 3, None, counts
    if chunk.choices and (counts := _counts(chunk.choices[0].usage)):
        return 2, "usage_in_choice", counts
    if counts := _counts(_counts(chunk.x_groq).get("usage")):
        return 1, "usage_vendor", counts
    return None


def _counts(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def read_usage(raw: dict[str, Any]) -> Usage:
    """The counts. What is no number is not reported: a good answer never fails because of them."""
    given, output, total = _count(raw, "prompt_tokens"), _count(raw, "completion_tokens"), _count(raw, "total_tokens")
    prompt = _object(raw, "prompt_tokens_details", "prompt_token_details")
    completion = _object(raw, "completion_tokens_details", "completion_token_details")
    reasoning = _first(_count(completion, "reasoning_tokens"), _count(raw, "reasoning_tokens"))
    if reasoning and total is not None and given is not None and output is not None:
        # Some servers count reasoning beside the output; only the total says so.
        if total == given + output + reasoning:
            output += reasoning
    if total is None and given is not None and output is not None:
        total = given + output
    return Usage(
        input_tokens=given,
        output_tokens=output,
        cache_read_tokens=_first(
            _count(prompt, "cached_tokens"), _count(raw, "prompt_cache_hit_tokens"), _count(raw, "cached_tokens")
        ),
        cache_write_tokens=_count(prompt, "cache_write_tokens"),
        reasoning_tokens=reasoning,
        total_tokens=total,
        raw=raw,
    )


def has_text_numbers(raw: dict[str, Any]) -> bool:
    """Whether a count came as text."""
    for name, count in raw.items():
        if name.endswith("_tokens") and isinstance(count, str):
            return True
        if isinstance(count, dict) and has_text_numbers(cast("dict[str, Any]", count)):
            return True
    return False


def _object(raw: dict[str, Any], *names: str) -> dict[str, Any]:
    for name in names:
        if found := _counts(raw.get(name)):
            return found
    return {}


def _first(*counts: int | None) -> int | None:
    for count in counts:
        if count is not None:
            return count
    return None


def _count(raw: dict[str, Any], key: str) -> int | None:
    value = raw.get(key)
    if value is None:
        return None
    if isinstance(value, str):
        try:
            value = float(value) if len(value) < 20 else None
        except ValueError:
            return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
