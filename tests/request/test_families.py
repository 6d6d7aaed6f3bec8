from __future__ import annotations

import pytest

from sseam.request.families import LEVELS, anthropic_family, gemini_family, nearest, openai_family, same_model


@pytest.mark.parametrize(
    ("efforts", "sent"),
    [
        ((), [None] * 7),
        (("low", "medium", "high"), ["low", "low", "low", "medium", "high", "high", "high"]),
        (("none", "low", "high", "max"), ["none", "low", "low", "low", "high", "high", "max"]),
        (("minimal", "low", "medium", "high"), ["minimal", "minimal", "low", "medium", "high", "high", "high"]),
        (("none",), ["none"] * 7),
        (("medium",), ["medium"] * 7),
    ],
)
def test_every_level_finds_its_effort(efforts, sent):
    assert [nearest(level, efforts) for level in LEVELS] == sent


@pytest.mark.parametrize(
    ("id", "facts"),
    # manual, adaptive, disabled, sampling, forced, prefill
    [
        ("claude-3-opus-20240229", (False, "no", True, "all", "always", True)),
        ("claude-3-7-sonnet-latest", (True, "no", True, "all", "not_thinking", True)),
        ("claude-sonnet-4-5-20250929", (True, "no", True, "one", "not_thinking", True)),
        ("claude-haiku-4-5", (True, "no", True, "one", "not_thinking", True)),
        ("claude-opus-4-5", (True, "no", True, "one", "not_thinking", True)),
        ("anthropic/claude-opus-4.6", (True, "ok", True, "one", "not_manual", False)),
        ("us.anthropic.claude-sonnet-4-6-v1:0", (True, "ok", True, "one", "not_manual", False)),
        ("claude-opus-4-8", (False, "ok", True, "none", "always", False)),
        ("claude-opus-5", (False, "ok", True, "none", "always", False)),
        ("claude-fable-5", (False, "always", False, "none", "always", False)),
        ("claude-mythos-preview", (True, "ok", False, "none", "never", False)),
        ("claude-opus-5-5", (False, "always", False, "none", "never", False)),
        ("claude-sonnet-5-5", (False, "ok", False, "none", "never", False)),
        ("claude-haiku-5-5", (False, "ok", True, "none", "always", False)),
        ("claude-opus-9", (False, "always", False, "none", "never", False)),
        ("kimi-k2", (True, "no", True, "all", "always", True)),
        # As gateways turn the words.
        ("anthropic/claude-4.5-sonnet", (True, "no", True, "one", "not_thinking", True)),
        ("anthropic/claude-4-sonnet", (True, "no", True, "all", "not_thinking", True)),
        ("claude-4.6-opus-20260101", (True, "ok", True, "one", "not_manual", False)),
        ("claude-5-sonnet", (False, "ok", True, "none", "always", False)),
    ],
)
def test_anthropic_families(id, facts):
    family = anthropic_family(id)
    assert (family.manual, family.adaptive, family.disabled, family.sampling, family.forced, family.prefill) == facts


def test_the_style_decides_for_names_of_nobody():
    assert anthropic_family("deployment", "adaptive").adaptive == "ok"
    assert not anthropic_family("deployment", "none").manual
    assert openai_family("deployment", "effort").reasoning
    assert gemini_family("deployment", "budget").thinking == "budget"


@pytest.mark.parametrize(
    ("id", "reasoning", "efforts", "sampling"),
    [
        ("gpt-4o", False, "", "all"),
        ("gpt-4o-search-preview", False, "", "none"),
        ("gpt-5-chat-latest", False, "", "all"),
        ("gpt-5.1-chat-latest", True, "medium", "none"),
        ("o3-mini", True, "low medium high", "none"),
        ("openai/gpt-5-mini", True, "minimal low medium high", "none"),
        ("gpt-5-pro", True, "high", "none"),
        ("gpt-5.1", True, "none low medium high", "effort_none"),
        ("gpt-5.4-2026-01-01", True, "none low medium high xhigh", "effort_none"),
        ("gpt-5.2-pro", True, "medium high xhigh", "none"),
        ("gpt-5.6", True, "none low medium high xhigh max", "effort_none"),
        ("gpt-6-astra", True, "low medium high xhigh max", "none"),
        ("gpt-6.1-terra", True, "none low medium high xhigh max", "effort_none"),
        ("ft:o4-mini-2025-04-16:acme::x", True, "low medium high", "none"),
        ("ft:gpt-5:acme:my-pro", True, "minimal low medium high", "none"),
        ("openai.gpt-5.6-luna", True, "none low medium high xhigh max", "effort_none"),
        ("us.openai.gpt-5.1", True, "none low medium high", "effort_none"),
        ("openai:gpt-5", True, "minimal low medium high", "none"),
        ("o365-assistant", False, "", "all"),
    ],
)
def test_openai_families(id, reasoning, efforts, sampling):
    family = openai_family(id)
    assert (family.reasoning, " ".join(family.efforts), family.sampling) == (reasoning, efforts, sampling)


@pytest.mark.parametrize(
    ("id", "cache"),
    [
        ("gpt-4o", "retention"),
        ("gpt-5.1", "retention"),
        ("gpt-5.5", "long"),
        ("gpt-5.5-pro", "long"),
        ("gpt-5.6", "options"),
        ("gpt-5.6-pro", "options"),
        ("gpt-5.6-chat-latest", "options"),
        ("gpt-6-astra", "options"),
    ],
)
def test_the_prompt_cache_goes_by_the_generation(id, cache):
    assert openai_family(id).cache == cache


def test_the_first_reasoning_models_take_no_system_prompt():
    assert [openai_family(id).system for id in ("o1-mini", "o1-preview-2024-09-12", "o1", "gpt-4o")] == [
        False,
        False,
        True,
        True,
    ]


@pytest.mark.parametrize(
    ("id", "thinking"),
    [
        ("gemini-1.5-pro", "none"),
        ("gemini-2.0-flash", "none"),
        ("gemini-2.5-pro", "budget"),
        ("gemini-3-pro-preview", "level"),
        ("gemma-3", "none"),
    ],
)
def test_gemini_families(id, thinking):
    assert gemini_family(id).thinking == thinking


@pytest.mark.parametrize(
    ("asked", "reported", "same"),
    [
        ("claude-sonnet-4-5", "claude-sonnet-4-5-20250929", True),
        ("claude-opus-4-0", "claude-opus-4-20250514", True),
        ("claude-opus-4", "claude-opus-4-5", False),
        ("claude-3-7-sonnet-latest", "claude-3-7-sonnet-20250219", True),
        ("us.anthropic.claude-opus-4-6-v1:0", "claude-opus-4-6", True),
        ("us-gov.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5-20250929", True),
        ("global.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5-20250929", True),
        ("anthropic/claude-sonnet-4.5", "anthropic/claude-4.5-sonnet-20250929", True),
        ("gpt-5", "gpt-5-2025-08-07", True),
        ("gpt-5", "gpt-5-mini", False),
        ("gemini-flash-latest", "gemini-3-flash-preview", True),
        ("gemini-flash-latest", "gemini-3-pro", False),
        ("gemini-flash-latest", "gemini-2.5-flash-lite", False),
        ("gemini-flash-latest", "gemini-2.5-flash-preview-09-2025", True),
        ("mistral-large-latest", "mistral-large-2411", True),
        ("gemini-2.5-flash", "gemini-2.5-flash-001", True),
        ("gemini-2.5-flash-002", "gemini-2.5-flash-001", False),
        ("gpt-4o-2024-05-13", "gpt-4o-2024-11-20", False),
        ("deepseek/deepseek-r1:free", "deepseek/deepseek-r1", True),
        ("qwen3:8b", "qwen3:14b", False),
        ("deepseek-v3", "deepseek-v2", False),
        ("anthropic.claude-opus-4-6-v1", "claude-opus-4-6", True),
        ("openai.gpt-5.6-luna", "gpt-5.6-luna", True),
        # The order of words and numbers says which model it is.
        ("gpt-5.4", "gpt-4.5", False),
        ("a-b", "b-a", False),
        ("claude-3-5-sonnet", "claude-5-3-sonnet", False),
    ],
)
def test_the_name_that_a_service_reports(asked, reported, same):
    assert same_model(asked, reported) is same
