"""The schemas refuse the bodies that the services refuse, and take what their references name."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from schemas import valid

MESSAGES = {
    "model": "m",
    "max_tokens": 5,
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "x"}]},
    ],
}
CHAT = {
    "model": "m",
    "messages": [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": "x"},
    ],
}
RESPONSES = {
    "model": "m",
    "input": [
        {"role": "user", "content": "hi"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"},
        {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "x"},
    ],
}
GENERATE = {
    "contents": [
        {"role": "user", "parts": [{"text": "hi"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}]},
    ]
}
BODIES: dict[str, dict[str, Any]] = {
    "anthropic-messages": MESSAGES,
    "openai-chat": CHAT,
    "openai-responses": RESPONSES,
    "gemini-generate": GENERATE,
}


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """The value with `new` at the path; the last step may name a new field."""
    if not path:
        return new
    step, *rest = path
    copy = value.copy()
    copy[step] = changed(value[step] if rest else None, tuple(rest), new)
    return copy


MARKED = {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "x"}
THOUGHT = {"type": "thinking", "thinking": "x", "signature": "s", "cache_control": {"type": "ephemeral"}}
MESSAGES_USER = ("messages", 0, "content")
MESSAGES_CALL = ("messages", 1, "content", 0)
CHAT_CALL = ("messages", 1, "tool_calls", 0)
REFUSED: list[tuple[str, tuple[Any, ...], Any]] = [
    ("anthropic-messages", (*MESSAGES_USER, 0, "text"), " \n"),
    ("anthropic-messages", MESSAGES_USER, []),
    ("anthropic-messages", MESSAGES_USER, [MARKED] * 5),
    ("anthropic-messages", (*MESSAGES_CALL, "id"), "a.b"),
    ("anthropic-messages", (*MESSAGES_CALL, "input"), []),
    ("anthropic-messages", MESSAGES_CALL, THOUGHT),
    ("anthropic-messages", ("messages", 2, "content"), [{"type": "text", "text": "a"}, RESULT]),
    ("anthropic-messages", ("temperature",), 2),
    ("anthropic-messages", ("frobnicate",), 1),
    ("openai-chat", (*CHAT_CALL, "id"), "x" * 41),
    ("openai-chat", ("messages", 2, "tool_call_id"), "x" * 41),
    ("openai-chat", (*CHAT_CALL, "function", "arguments"), {}),
    ("openai-chat", ("messages", 1, "tool_calls"), []),
    ("openai-chat", ("messages", 1), {"role": "assistant", "content": None}),
    ("openai-chat", ("tool_choice",), "required"),
    ("openai-chat", ("stop",), list("abcde")),
    ("openai-chat", ("frobnicate",), 1),
    ("openai-responses", ("input", 2, "id"), "zz"),
    ("openai-responses", ("input", 2, "id"), "fc_" + "x" * 65),
    ("openai-responses", ("input", 1, "id"), "fc_1"),
    ("openai-responses", ("input", 2, "call_id"), "x" * 65),
    ("openai-responses", ("service_tier",), "fastest"),
    ("openai-responses", ("frobnicate",), 1),
    ("gemini-generate", ("contents", 1, "role"), "assistant"),
    ("gemini-generate", ("contents", 0, "parts"), []),
    ("gemini-generate", ("frobnicate",), 1),
]


@pytest.mark.parametrize(("protocol", "path", "new"), REFUSED)
def test_what_a_service_refuses_is_refused(protocol: str, path: tuple[Any, ...], new: Any) -> None:
    valid(protocol, BODIES[protocol], "openai")
    with pytest.raises((jsonschema.ValidationError, AssertionError)):
        valid(protocol, changed(BODIES[protocol], path, new), "openai")


def test_the_length_of_an_id_is_openais_own_rule() -> None:
    body = changed(changed(CHAT, (*CHAT_CALL, "id"), "x" * 41), ("messages", 2, "tool_call_id"), "x" * 41)
    valid("openai-chat", body, "groq")
    valid("openai-chat", body)


@pytest.mark.parametrize(
    "more",
    [
        {"background": True, "store": True},
        {"service_tier": "flex"},
        {"safety_identifier": "u"},
        {"max_tool_calls": 3},
        {"truncation": "auto"},
    ],
)
def test_what_the_reference_of_responses_names_is_taken(more: dict[str, Any]) -> None:
    valid("openai-responses", {**RESPONSES, **more})


def test_what_is_not_kept_needs_more_with_it() -> None:
    bare = changed(RESPONSES, ("input", 1), {"type": "reasoning", "id": "rs_1", "summary": []})
    valid("openai-responses", bare)
    for refused in ({**bare, "store": False}, {**RESPONSES, "store": False, "background": True}):
        with pytest.raises(jsonschema.ValidationError):
            valid("openai-responses", refused)


def test_every_body_that_a_test_makes_is_looked_at() -> None:
    from sseam import models
    from sseam.context import Context, Options, UserMessage
    from sseam.protocols.openai_chat import request

    with pytest.raises(jsonschema.ValidationError):
        request.body(models.openai("gpt-4o"), Context(messages=(UserMessage("x"),)), Options(extra_body={"frob": 1}))


@pytest.mark.unusual_body
def test_unless_it_says_that_they_are_unusual() -> None:
    from sseam import models
    from sseam.context import Context, Options, UserMessage
    from sseam.protocols.openai_chat import request

    request.body(models.openai("gpt-4o"), Context(messages=(UserMessage("x"),)), Options(extra_body={"frob": 1}))
