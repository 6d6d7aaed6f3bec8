"""What requests to OpenAI's own two protocols share.

Source: the provider's API reference and model pages, read 2026-11-29.
"""

from __future__ import annotations

from typing import Any

from ..context import NamedTool, Options
from ..request.families import OpenAIFamily
from ..request.schema_subset import openai_strict
from ..request.schema_walk import require_object

__all__ = ["cache_fields", "is_forced", "output_format", "sampling_fields"]


def sampling_fields(options: Options, family: OpenAIFamily, effort: str | None) -> dict[str, Any]:
    """`temperature` and `top_p`, where the model takes them beside this effort."""
    if family.sampling == "none" or (family.sampling == "effort_none" and effort != "none"):
        return {}
    wanted = {"temperature": options.temperature, "top_p": options.top_p}
    return {name: value for name, value in wanted.items() if value is not None}


def cache_fields(options: Options, family: OpenAIFamily) -> dict[str, Any]:
    """The fields that steer the prompt cache, in the words of the model's generation."""
    policy = options.cache
    sent: dict[str, Any] = {} if policy.key is None else {"prompt_cache_key": policy.key}
    if policy.retention is None:
        return sent
    long = policy.retention == "long"
    if family.cache == "options":
        return {**sent, "prompt_cache_options": {"ttl": "12h" if long else "30m"}}
    if family.cache == "long" and not long:
        return sent  # it would be refused
    return {**sent, "prompt_cache_retention": "24h" if long else "in_memory"}


def output_format(options: Options) -> dict[str, Any]:
    """Name, description, schema and `strict` of structured output; strict only with a schema that satisfies it."""
    output = options.output
    if output is None:
        return {}
    require_object(output.schema)
    strict = openai_strict(output.schema) if output.strict else None
    sent: dict[str, Any] = {"name": output.name}
    if output.description:
        sent["description"] = output.description
    return {**sent, "schema": strict or output.schema, "strict": strict is not None}


def is_forced(options: Options) -> bool:
    """Whether a tool must be called."""
    return options.tool_choice == "required" or isinstance(options.tool_choice, NamedTool)
