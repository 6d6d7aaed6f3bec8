"""Which protocol a response speaks, told from its first bytes."""

from __future__ import annotations

import re

__all__ = ["detect"]

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
)


def detect(first_bytes: bytes) -> str | None:
    """The name of the protocol, or None where the bytes do not say.

    `first_bytes` is the start of the body, as much as is there; a few hundred bytes do.
    """
    for protocol, mark in _MARKS:
        if mark.search(first_bytes):
            return protocol
    return None
