"""Which row a model follows, and what of it the model itself wants otherwise."""

from __future__ import annotations

import msgspec
import pytest

from sseam.context import Model
from sseam.errors import RequestError
from sseam.protocols.openai_chat.request_dialects import DIALECTS, UNKNOWN
from sseam.protocols.openai_chat.request_models import request_dialect


def row(dialect, id="m", base_url="http://h/v1", **fields):
    return request_dialect(Model(id=id, protocol="openai-chat", base_url=base_url, dialect=dialect, **fields))


def changed(dialect, id):
    """What a model has otherwise than its row."""
    own, model = DIALECTS[dialect], row(dialect, id)
    return {name: getattr(model, name) for name in own.__struct_fields__ if getattr(model, name) != getattr(own, name)}


def test_a_dialect_that_is_named_counts_then_the_address():
    assert row("groq", base_url="https://api.openai.com/v1") is DIALECTS["groq"]
    assert row(None, base_url="https://api.openai.com/v1") is DIALECTS["openai"]
    assert row(None, base_url="https://api.deepseek.com") is DIALECTS["deepseek"]
    assert row(None) is UNKNOWN
    assert row("recording") is UNKNOWN  # a dialect of what is read


@pytest.mark.parametrize(
    ("name", "hint"),
    [("Deepseek", "'deepseek'"), ("open-ai", "'openai'"), ("lm-studio", "'lmstudio'"), ("", "There are openai, ")],
)
def test_a_dialect_that_there_is_not_is_told_with_those_that_are_like_it(name, hint):
    with pytest.raises(RequestError, match=f"no dialect '{name}'") as caught:
        row(name)
    assert hint in str(caught.value)


@pytest.mark.parametrize(
    ("dialect", "id", "changes"),
    [
        ("moonshot", "kimi-k2-0905-preview", {}),
        ("moonshot", "kimi-k2-thinking", {"sampling": "none"}),
        ("moonshot", "kimi-k2.5", {"sampling": "none"}),
        ("moonshot", "kimi-k2.6", {"sampling": "none", "choices": ("none", "auto")}),
        ("moonshot", "kimi-k2.7-code", {"sampling": "none", "choices": ("none", "auto")}),
        ("xai", "grok-3", {}),
        ("xai", "grok-3-mini", {"stop": False}),
        ("xai", "grok-4", {"stop": False}),
        ("xai", "grok-4.20-reasoning", {"stop": False, "switch": "none"}),
        ("xai", "grok-4.20-non-reasoning", {"switch": "none"}),
        ("gemini-compat", "models/gemini-2.5-flash", {}),
        ("gemini-compat", "gemini-2.5-pro", {"efforts": ("minimal", "low", "medium", "high")}),
        ("gemini-compat", "gemini-3-flash-preview", {"efforts": ("minimal", "low", "medium", "high"), "proofs": True}),
        ("gemini-compat", "gemini-3-pro-preview", {"efforts": ("low", "high"), "proofs": True}),
        ("gemini-compat", "gemini-2.0-flash", {"switch": "none"}),
        ("anthropic-compat", "claude-3-7-sonnet", {}),
        ("anthropic-compat", "claude-sonnet-4-5", {"sampling": "one"}),
        ("anthropic-compat", "claude-opus-4-8", {"sampling": "none", "switch": "thinking_off"}),
        (
            "anthropic-compat",
            "claude-opus-5-5",
            {"sampling": "none", "switch": "thinking_off", "can_disable": False, "choices": ("none", "auto")},
        ),
    ],
)
def test_what_a_model_wants_otherwise_than_its_row(dialect, id, changes):
    assert changed(dialect, id) == changes


def test_the_style_decides_where_the_row_knows_no_switch():
    effort = row(None, thinking="effort")
    assert effort == msgspec.structs.replace(UNKNOWN, switch="effort", efforts=("low", "medium", "high"))
    assert row("writer", thinking="effort").switch == "effort"
    assert row("vllm", thinking="effort") is DIALECTS["vllm"]
