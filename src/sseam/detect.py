"""Which protocol a response speaks, told from its first bytes."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["detect"]

_NOTHING = re.compile(rb"(?:[ \t]*\r?\n|:[^\n]*\n)*")  # blank lines and comments, of which there may be any number
_ENOUGH = 1 << 16

# Looked for in this order in the start of the response, in the first payload that shows any.
_MARKS: tuple[tuple[str, re.Pattern[bytes]], ...] = (
    (
        "openai-responses",
        re.compile(
            rb'"type"\s*:\s*"response\.[a-z_.]+"|^event:\s*response\.[a-z_]|"object"\s*:\s*"response"'
            rb'|"type"\s*:\s*"error"[^{}]*"(sequence_number|param)"|"(sequence_number|param)"[^{}]*"type"\s*:\s*"error"'
            rb'|"type"\s*:\s*"error"\s*,\s*"error"\s*:\s*\{[^{}]*"param"',
            re.MULTILINE,
        ),
    ),
    (
        "anthropic-messages",
        re.compile(
            rb'"type"\s*:\s*"(message_start|content_block_(start|delta|stop)|message_delta|message_stop|message)"'
            rb'|"type"\s*:\s*"error"\s*,\s*"error"\s*:\s*\{'
        ),
    ),
    (
        "gemini-interactions",
        re.compile(
            rb'"event_type"\s*:\s*"|^event:\s*(interaction|step)\.|"object"\s*:\s*"interaction"'
            rb'|"error"\s*:\s*\{\s*"code"\s*:\s*"(invalid_request|failed_precondition|parameter_unknown|authentication'
            rb"|payment_required|permission_denied|not_found|model_not_found|already_exists|aborted|out_of_range"
            rb"|rate_limit_exceeded|too_many_requests|quota_exceeded|cancelled|api_error|unimplemented"
            rb'|service_unavailable|deadline_exceeded|gateway_timeout)"\s*,\s*"message"\s*:\s*"[^"]*"\s*\}',
            re.MULTILINE,
        ),
    ),
    (
        "gemini-generate",
        re.compile(
            # A gateway's chunk of another protocol may hold a usageMetadata deep inside.
            rb'"candidates"\s*:\s*\[|^(?:data:)?[ \t\[]*\{\s*"(?:usageMetadata|promptFeedback)"\s*:\s*\{'
            rb'|"error"\s*:\s*\{[^{}]*"status"\s*:\s*"[A-Z]+(_[A-Z]+)*"',
            re.MULTILINE,
        ),
    ),
    (
        "openai-chat",
        # The last one: its servers give errors in every shape that no other protocol has.
        re.compile(
            rb'"object"\s*:\s*"(chat\.completion|error\b)|"choices"\s*:\s*(\[|null)|"prompt_tokens"\s*:|"error"\s*:\s*["{]'
            rb'|^(?:data:)?[ \t]*\{\s*"(detail|message|code)"\s*:|"success"\s*:\s*false\s*,\s*"errors"\s*:',
            re.MULTILINE,
        ),
    ),
)


def detect(first_bytes: bytes) -> str | None:
    """The name of the protocol, or None where the bytes do not say.

    `first_bytes` is the start of the body, as much as is there; a few hundred bytes do.

    Raises:
        TypeError: what is no bytes.
    """
    given: Any = first_bytes
    if not isinstance(given, bytes | bytearray | memoryview):
        hint = ". Of a file: path.read_bytes()" if isinstance(given, str) or hasattr(given, "__fspath__") else ""
        raise TypeError(f"expected the first bytes of a response, got {type(given).__name__}{hint}")
    nothing = _NOTHING.match(first_bytes)
    start = first_bytes[nothing.end() if nothing else 0 :][:_ENOUGH]
    for protocol, mark in _MARKS:
        if mark.search(start):
            return protocol
    return None
