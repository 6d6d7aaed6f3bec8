"""The names of OpenTelemetry's conventions for generative AI, and a span for each call.

The one place that knows them. Source: OpenTelemetry semantic conventions for generative AI, "Spans" and
the attribute registry (read 2026-11-29).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from .context import Model, Options
from .errors import ApiError, SseamError
from .message import Message

__all__ = ["request_attributes", "response_attributes", "span_recorder"]

# Our field → its name there.
_OPTIONS = {
    "max_output_tokens": "gen_ai.request.max_tokens",
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "top_k": "gen_ai.request.top_k",
    "seed": "gen_ai.request.seed",
    "stop_sequences": "gen_ai.request.stop_sequences",
}
_MESSAGE = {"id": "gen_ai.response.id", "model": "gen_ai.response.model"}
_USAGE = {
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "cache_read_tokens": "gen_ai.usage.cache_read.input_tokens",
    "cache_write_tokens": "gen_ai.usage.cache_creation.input_tokens",
    "reasoning_tokens": "gen_ai.usage.reasoning.output_tokens",
}
_TIMING = {"first_event": "gen_ai.response.time_to_first_chunk"}

# A reason that has no word there keeps ours.
_FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_call",
    "max_tokens": "length",
    "context_window_exceeded": "length",
    "refusal": "content_filter",
    "content_filter": "content_filter",
    "error": "error",
}

# Dialect or protocol → the provider's name there; a dialect that is not here keeps its own.
_PROVIDERS = {
    "anthropic-messages": "anthropic",
    "openai-chat": "openai",
    "openai-responses": "openai",
    "gemini-generate": "gcp.gemini",
    "gemini-interactions": "gcp.gemini",
    "gemini-compat": "gcp.gemini",
    "anthropic-compat": "anthropic",
    "azure-openai": "azure.ai.openai",
    "azure-foundry": "azure.ai.inference",
    "mistral": "mistral_ai",
    "moonshot": "moonshot_ai",
    "xai": "x_ai",
}


def request_attributes(model: Model, options: Options) -> dict[str, Any]:
    """What a span says of the request: values that were set, and nothing of what was said."""
    address = urlsplit(model.base_url)
    try:
        port = address.port
    except ValueError:  # it is none, which the call will show
        port = None
    asked = {name: getattr(options, field) for field, name in _OPTIONS.items()}
    provider = model.dialect or model.protocol
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": _PROVIDERS.get(provider, provider),
        "gen_ai.request.model": model.id,
        "server.address": address.hostname or "",
        **({"server.port": port} if port else {}),
        **{name: value for name, value in asked.items() if value not in (None, ())},
    }


def response_attributes(message: Message, error: SseamError | None = None) -> dict[str, Any]:
    """What a span says of the answer, or of what there is of it: counts and times that are known."""
    known: dict[str, Any] = {name: getattr(message, field) or None for field, name in _MESSAGE.items()}
    known |= {name: getattr(message.usage, field) for field, name in _USAGE.items()}
    if message.timing is not None:
        known |= {name: getattr(message.timing, field) for field, name in _TIMING.items()}
    if message.stop_reason is not None:
        known["gen_ai.response.finish_reasons"] = [_FINISH_REASONS.get(message.stop_reason, message.stop_reason)]
    if error is not None:
        known["error.type"] = (error.type if isinstance(error, ApiError) else None) or type(error).__name__
    return {name: value for name, value in known.items() if value is not None}


def span_recorder(model: Model, options: Options) -> Callable[[Message, SseamError | None], None] | None:
    """What makes the span of a call once it has ended, below the span that is current now.

    None where `opentelemetry-api` is not installed.
    """
    try:
        from opentelemetry import context, trace
    except ImportError:
        return None
    parent = context.get_current()

    def record(message: Message, error: SseamError | None) -> None:
        if message.timing is None:
            return  # nothing was sent
        end = time.time_ns()
        span = trace.get_tracer("sseam").start_span(
            f"chat {model.id}",
            context=parent,
            kind=trace.SpanKind.CLIENT,
            attributes={**request_attributes(model, options), **response_attributes(message, error)},
            start_time=end - int(message.timing.duration * 1e9),
        )
        if error is not None:
            span.set_status(trace.StatusCode.ERROR, str(error))
        span.end(end)

    return record
