"""What a model's name says about the requests it takes, as tables.

A provider refuses with status 400 what a model does not support, and the rules change with the
model, not with the protocol. One row is one family; a name that no row knows gets the rules that
every row of its maker would accept.

Sources: the providers' model and migration pages, and the catalogues of `vercel/ai` and
`pydantic/pydantic-ai`, read 2026-11-29.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

import msgspec

from ..context import ThinkingLevel
from ..errors import RequestError

__all__ = [
    "BUDGETS",
    "MIN_BUDGET",
    "LEVELS",
    "AnthropicFamily",
    "GeminiFamily",
    "OpenAIFamily",
    "anthropic_budget",
    "anthropic_family",
    "gemini_family",
    "nearest",
    "openai_family",
    "same_model",
]

Effort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]

LEVELS: tuple[ThinkingLevel, ...] = ("off", "minimal", "low", "medium", "high", "xhigh", "max")

# Tokens to think for, where a service takes a budget in place of a level.
BUDGETS: dict[ThinkingLevel, int] = {
    "minimal": 1_024,
    "low": 2_048,
    "medium": 8_192,
    "high": 16_384,
    "xhigh": 32_768,
    "max": 65_536,
}


MIN_BUDGET = 1_024  # of Anthropic's models


def anthropic_budget(level: ThinkingLevel, max_tokens: int) -> int:
    """Tokens to think for, at most half of the output, so that there is room for an answer.

    Raises RequestError where the output limit leaves none.
    """
    if max_tokens <= MIN_BUDGET:
        raise RequestError(f"thinking needs an output limit above {MIN_BUDGET:,} tokens, it is {max_tokens:,}")
    return max(MIN_BUDGET, min(BUDGETS[level], max_tokens // 2))


def nearest(level: ThinkingLevel, efforts: tuple[str, ...]) -> str | None:
    """Of `efforts` the highest that is not above `level`, else the lowest; None where there are none.

    "off" asks for the effort "none".
    """
    order = ("none", *LEVELS[1:])
    wanted = LEVELS.index(level)
    ranked = sorted((effort for effort in efforts if effort in order), key=order.index)
    below = [effort for effort in ranked if order.index(effort) <= wanted]
    # "none" switches reasoning off: whoever asks for some gets the least there is instead.
    if level != "off" and below == ["none"] and len(ranked) > 1:
        return ranked[1]
    return below[-1] if below else next(iter(ranked), None)


class AnthropicFamily(msgspec.Struct, frozen=True, kw_only=True):
    """Attributes:
    manual: takes `thinking.type` "enabled" with a budget.
    adaptive: how "adaptive" is taken: "no", "ok", or "always" (on by itself; the field is left out).
    disabled: takes "disabled".
    efforts: values of `output_config.effort`.
    sampling: "all", "one" (not temperature and top_p together) or "none".
    forced: when a tool may be forced: "always", "not_manual" (not with manual thinking), "not_thinking", "never".
    prefill: takes a conversation that ends with the assistant.
    signed: thinking goes back only with its signature; other vendors' servers want it back and may sign nothing.
    max_tokens: the output limit that is sent where nobody set one.
    """

    manual: bool = False
    adaptive: Literal["no", "ok", "always"] = "ok"
    disabled: bool = True
    efforts: tuple[str, ...] = ("low", "medium", "high", "xhigh", "max")
    sampling: Literal["all", "one", "none"] = "none"
    forced: Literal["always", "not_manual", "not_thinking", "never"] = "always"
    prefill: bool = False
    signed: bool = True
    max_tokens: int = 32_000


_OLDEST = AnthropicFamily(adaptive="no", efforts=(), sampling="all", prefill=True, max_tokens=4_096)
_MANUAL = AnthropicFamily(manual=True, adaptive="no", efforts=(), sampling="one", forced="not_thinking", prefill=True)
_BOTH = AnthropicFamily(manual=True, efforts=("low", "medium", "high", "max"), sampling="one", forced="not_manual")
_ADAPTIVE = AnthropicFamily()
_ALWAYS = AnthropicFamily(adaptive="always", disabled=False)
_NEWEST = AnthropicFamily(adaptive="always", disabled=False, forced="never")

_ANTHROPIC: dict[str, AnthropicFamily] = {
    "claude-2": _OLDEST,
    "claude-3": _OLDEST,
    "claude-3-5": msgspec.structs.replace(_OLDEST, max_tokens=8_192),
    "claude-3-7": msgspec.structs.replace(_MANUAL, sampling="all"),
    "opus-4": msgspec.structs.replace(_MANUAL, sampling="all"),
    "sonnet-4": msgspec.structs.replace(_MANUAL, sampling="all"),
    "opus-4-1": _MANUAL,
    "sonnet-4-5": _MANUAL,
    "haiku-4-5": _MANUAL,
    "opus-4-5": msgspec.structs.replace(_MANUAL, efforts=("low", "medium", "high")),
    "opus-4-6": _BOTH,
    "sonnet-4-6": _BOTH,
    "opus-4-7": _ADAPTIVE,
    "opus-4-8": _ADAPTIVE,
    "sonnet-5": _ADAPTIVE,
    "opus-5": _ADAPTIVE,
    "fable-5": _ALWAYS,
    "mythos-5": _ALWAYS,
    "mythos-preview": AnthropicFamily(manual=True, disabled=False, forced="never"),
    "fable-5-1": _NEWEST,
    "fable-5-2": _NEWEST,
    "mythos-5-1": _NEWEST,
    "mythos-5-2": _NEWEST,
    "opus-5-5": _NEWEST,
    "sonnet-5-5": AnthropicFamily(disabled=False, forced="never"),
    "haiku-5-5": _ADAPTIVE,
}

# Other vendors' endpoints of this protocol were written against the oldest thinking API and take
# every parameter of it.
_ANTHROPIC_COMPATIBLE = AnthropicFamily(
    manual=True, adaptive="no", efforts=(), sampling="all", prefill=True, signed=False, max_tokens=8_192
)

# A date is six digits or more; a version number has one or two.
_VERSION = r"\d{1,2}(?:-\d{1,2})?(?!\d)"
_CLAUDE = re.compile(rf"(opus|sonnet|haiku|fable|mythos)-(preview|{_VERSION})")
# How gateways turn the words ("claude-4.5-sonnet"), and Anthropic did before version 4.
_TURNED_CLAUDE = re.compile(rf"claude-({_VERSION})-(opus|sonnet|haiku|fable|mythos)")
_OLD_CLAUDE = re.compile(r"claude-([23](?:-\d)?)(?!\d)")


def anthropic_family(model_id: str, style: str | None = None) -> AnthropicFamily:
    """The rules of a model of Anthropic's protocol, wherever it runs ("us.anthropic.claude-opus-4-6-v1:0").

    `style` is `Model.thinking`: it decides for a model that is not Anthropic's own.
    """
    name = model_id.lower().replace(".", "-")
    if found := _OLD_CLAUDE.search(name):
        return _ANTHROPIC.get(f"claude-{found[1]}", _OLDEST)
    if found := _CLAUDE.search(_TURNED_CLAUDE.sub(r"claude-\2-\1", name)):
        key = f"{found[1]}-{found[2].removesuffix('-0')}"
        return _ANTHROPIC.get(key, _NEWEST)
    if "claude" in name or style == "adaptive":
        return _ADAPTIVE
    if style == "none":
        return msgspec.structs.replace(_ANTHROPIC_COMPATIBLE, manual=False)
    return _ANTHROPIC_COMPATIBLE


class OpenAIFamily(msgspec.Struct, frozen=True, kw_only=True):
    """Attributes:
    reasoning: it is a reasoning model: `max_completion_tokens`, role developer, no penalties.
    system: takes a system prompt, in whichever role; without, it is said as the user.
    efforts: values of the reasoning effort that it takes.
    sampling: when sampling parameters are taken: "all", "effort_none" or "none".
    stop: takes stop sequences.
    chat_tools_with_reasoning: Chat Completions takes function tools and reasoning together.
    cache: the prompt cache is steered by `prompt_cache_retention` ("retention"; "long" where that is always "24h"),
        or by `prompt_cache_options`.
    """

    reasoning: bool = False
    system: bool = True
    efforts: tuple[str, ...] = ()
    sampling: Literal["all", "effort_none", "none"] = "all"
    stop: bool = True
    chat_tools_with_reasoning: bool = True
    cache: Literal["retention", "long", "options"] = "retention"


_LOW_HIGH = ("low", "medium", "high")
_TO_XHIGH = (*_LOW_HIGH, "xhigh")
_TO_MAX = (*_TO_XHIGH, "max")


def _reasoning(*efforts: str, **rest: object) -> OpenAIFamily:
    sampling = "effort_none" if "none" in efforts else "none"
    return msgspec.convert({"reasoning": True, "efforts": efforts, "sampling": sampling, **rest}, OpenAIFamily)


# First match wins.
_OPENAI: tuple[tuple[re.Pattern[str], OpenAIFamily], ...] = tuple(
    (re.compile(pattern), family)
    for pattern, family in (
        (r"search-preview", OpenAIFamily(sampling="none")),
        (r"^gpt-5-chat", OpenAIFamily()),
        (r"^gpt-\d+\.\d+-chat", _reasoning("medium")),
        (r"^(o3|o4-mini)(?!\d)", _reasoning(*_LOW_HIGH, stop=False)),
        (r"^o1-(mini|preview)", _reasoning(*_LOW_HIGH, system=False)),
        (r"^o\d(?!\d)", _reasoning(*_LOW_HIGH)),
        (r"^gpt-5-pro", _reasoning("high")),
        (r"^gpt-5\.\d+.*-pro", _reasoning("medium", "high", "xhigh")),
        (r"^gpt-5\.1(?!\d)", _reasoning("none", *_LOW_HIGH)),
        (r"^gpt-5\.[2-5](?!\d)", _reasoning("none", *_TO_XHIGH)),
        (r"^gpt-5\.\d", _reasoning("none", *_TO_MAX, chat_tools_with_reasoning=False)),
        (r"^gpt-5", _reasoning("minimal", *_LOW_HIGH)),
        (r"^gpt-6(-astra|\.1-sol)", _reasoning(*_TO_MAX)),
        (r"^gpt-6", _reasoning("none", *_TO_MAX)),
    )
)


# By generation, whatever the variant.
_OPENAI_CACHE: tuple[tuple[re.Pattern[str], Literal["long", "options"]], ...] = (
    (re.compile(r"^gpt-5\.5(?!\d)"), "long"),
    (re.compile(r"^gpt-(5\.[6-9]|5\.\d\d|[6-9])"), "options"),
)

# The model within a gateway's or vendor's prefix and what was made of it: "openai.gpt-5", "ft:o4-mini:acme".
_OPENAI_NAME = re.compile(r"(?:^|[/.:])((?:gpt|o\d)[^/:]*)")


def openai_family(model_id: str, style: str | None = None) -> OpenAIFamily:
    """The rules of an OpenAI model, also fine-tuned or behind a prefix ("openai/gpt-5", "ft:gpt-5:acme").

    `style` is `Model.thinking`: "effort" makes an unknown name (a deployment) a reasoning model.
    """
    found = _OPENAI_NAME.search(model_id.lower())
    name = found[1] if found else model_id.lower()
    for pattern, family in _OPENAI:
        if pattern.search(name):
            cache = next((words for generation, words in _OPENAI_CACHE if generation.search(name)), family.cache)
            return msgspec.structs.replace(family, cache=cache)
    return _reasoning(*_LOW_HIGH) if style == "effort" else OpenAIFamily()


class GeminiFamily(msgspec.Struct, frozen=True, kw_only=True):
    """Attributes:
    thinking: "none", "budget" (`thinkingBudget`) or "level" (`thinkingLevel`).
    levels: the levels that it takes.
    min_budget, max_budget: bounds of a budget that is not 0, in tokens.
    can_disable: the budget may be 0.
    """

    thinking: Literal["none", "budget", "level"] = "level"
    levels: tuple[str, ...] = ("minimal", "low", "medium", "high")
    min_budget: int = 0
    max_budget: int = 24_576
    can_disable: bool = True


_GEMINI: tuple[tuple[re.Pattern[str], GeminiFamily], ...] = tuple(
    (re.compile(pattern), family)
    for pattern, family in (
        (r"gemini-(1|2\.0)(?!\d)", GeminiFamily(thinking="none")),
        (r"gemini-2\.5-pro", GeminiFamily(thinking="budget", min_budget=128, max_budget=32_768, can_disable=False)),
        (r"gemini-2\.5-flash-lite", GeminiFamily(thinking="budget", min_budget=512)),
        (r"gemini-2\.5", GeminiFamily(thinking="budget")),
        # The first Gemini 3 Pro knows two levels only.
        (r"gemini-3-pro", GeminiFamily(levels=("low", "high"))),
        (r"gemini-", GeminiFamily()),
    )
)


def gemini_family(model_id: str, style: str | None = None) -> GeminiFamily:
    """The rules of a Gemini model. `style` is `Model.thinking`: it decides for a name that is not Gemini's."""
    for pattern, family in _GEMINI:
        if pattern.search(model_id.lower()):
            return family
    return GeminiFamily(thinking="budget" if style == "budget" else "level" if style == "level" else "none")


# What of a name tells no model apart: who serves it, at what price or speed, in which wrapping, and from when it is.
_SERVED_BY = re.compile(r"^(?:[a-z]+(?:-[a-z]+)*\.)?(?:anthropic|openai)[.:]")
_SERVED_AS = re.compile(r":(?:free|nitro|floor|exacto|online|extended|thinking|beta)$|-v\d+:\d+$")
_BEDROCK_CLAUDE = re.compile(r"^(claude-.*\d)-v\d+$")
_SNAPSHOT = re.compile(r"[-@](\d{8}|\d{4}-\d{2}-\d{2}|\d{2}-\d{4}|00\d)$")
_NO_VARIANT = re.compile(r"-(?:latest|0)$")
_UNSETTLED = ("preview", "exp", "experimental")


def same_model(asked: str, reported: str) -> bool:
    """Whether a service that was asked for one name reports the other for the same model.

    Gateway prefixes, "latest", and a date that only one of them has do not count; an alias without a version
    ("gemini-flash-latest") fits every version of all its words and no others. In doubt they are two: reasoning that
    goes to another model is refused or misread, while that which stays out is only missed.
    """
    if asked == reported:
        return True
    (plain, date), (answer, of) = _plain(asked), _plain(reported)
    if date and of and date != of:
        return False
    if plain == answer:
        return True
    words = plain.split("-")
    if not asked.lower().endswith("-latest") or any(word.isdigit() for word in words):
        return False
    return words == [word for word in answer.split("-") if not word.isdigit() and word not in _UNSETTLED]


def _plain(name: str) -> tuple[str, str]:
    """The name without what tells no model apart, and the date that was in it."""
    name = _SERVED_BY.sub("", name.lower().rsplit("/", 1)[-1])
    name = _BEDROCK_CLAUDE.sub(r"\1", _SERVED_AS.sub("", name))
    found = _SNAPSHOT.search(name)
    name = _NO_VARIANT.sub("", _SNAPSHOT.sub("", name)).replace(".", "-")
    # Gateways turn the words of Anthropic's models.
    return _TURNED_CLAUDE.sub(r"claude-\2-\1", name), found[1].replace("-", "") if found else ""
