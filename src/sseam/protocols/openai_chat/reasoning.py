"""Reasoning in requests to Chat Completions servers: how it is switched, and how it goes back.

Every server has its own words for both; `request_dialects` says which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import msgspec

from ...context import HistoryMessage, Options, ThinkingLevel, UserMessage
from ...decoding import mapping
from ...errors import RequestError
from ...message import Message, RefusalBlock, TextBlock, ThinkingBlock, ToolCall
from ...request.families import BUDGETS, OpenAIFamily, anthropic_budget, nearest
from .._gemini import SKIP_SIGNATURE, unsigned
from .request_dialects import RequestDialect, Switch

__all__ = ["prove_calls", "replayed_reasoning", "switch_reasoning"]


def switch_reasoning(
    options: Options, dialect: RequestDialect, family: OpenAIFamily, *, forced: bool, tools: bool
) -> dict[str, Any]:
    """The fields that ask for the caller's level, in the dialect's words; none where no level is set.

    `forced`: a tool must be called. `tools`: the request has tools.
    Raises RequestError for reasoning beside tools on a model that takes only one of them here.
    """
    level = options.thinking
    if forced and not dialect.choice_with_thinking and (level is not None or dialect.thinks):
        level = "off"
    if not family.chat_tools_with_reasoning and tools:
        if level not in (None, "off"):
            raise RequestError(
                "on Chat Completions this model takes no tools together with reasoning",
                hint="Use the Responses API, or thinking='off'",
            )
        return {"reasoning_effort": "none"}
    if level is None:
        return {}
    # Chat Completions refuses "max" for every model of OpenAI's own.
    efforts = tuple(effort for effort in family.efforts if effort != "max") if dialect.maker else dialect.efforts
    if dialect.switch == "thinking_budget":
        return _thinking_budget(level, options.max_output_tokens, dialect)
    return _SWITCHES[dialect.switch](level, efforts, dialect)


_Fields = dict[str, Any]


def _no_switch(_level: ThinkingLevel, _efforts: tuple[str, ...], _dialect: RequestDialect) -> _Fields:
    return {}


def _effort(level: ThinkingLevel, efforts: tuple[str, ...], _dialect: RequestDialect) -> _Fields:
    effort = nearest(level, efforts)
    return {"reasoning_effort": effort} if effort else {}


def _thinking_type(level: ThinkingLevel, efforts: tuple[str, ...], dialect: RequestDialect) -> _Fields:
    if level == "off":
        return {"thinking": {"type": "disabled"}}
    return {"thinking": {"type": "enabled", **dialect.switch_on}, **_effort(level, efforts, dialect)}


def _thinking_budget(level: ThinkingLevel, max_tokens: int | None, dialect: RequestDialect) -> _Fields:
    if level == "off":
        return _thinking_off(level, (), dialect)
    budget = BUDGETS[level] if max_tokens is None else anthropic_budget(level, max_tokens)
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def _thinking_off(level: ThinkingLevel, _efforts: tuple[str, ...], dialect: RequestDialect) -> _Fields:
    return {"thinking": {"type": "disabled"}} if level == "off" and dialect.can_disable else {}


def _enable_thinking(level: ThinkingLevel, _efforts: tuple[str, ...], dialect: RequestDialect) -> _Fields:
    if level == "off":
        return {"enable_thinking": False}
    return {"enable_thinking": True, "thinking_budget": BUDGETS[level], **dialect.switch_on}


def _reasoning_object(level: ThinkingLevel, efforts: tuple[str, ...], _dialect: RequestDialect) -> _Fields:
    return {"reasoning": {"enabled": False} if level == "off" else {"effort": nearest(level, efforts)}}


def _reasoning_enabled(level: ThinkingLevel, efforts: tuple[str, ...], dialect: RequestDialect) -> _Fields:
    if level == "off":
        return {"reasoning": {"enabled": False}}
    return {"reasoning": {"enabled": True}, **_effort(level, efforts, dialect)}


def _reasoning_split(level: ThinkingLevel, _efforts: tuple[str, ...], _dialect: RequestDialect) -> _Fields:
    # It always thinks; this moves the thinking out of the answer.
    return {} if level == "off" else {"reasoning_split": True}


def _template(level: ThinkingLevel, _efforts: tuple[str, ...], _dialect: RequestDialect) -> _Fields:
    return {"chat_template_kwargs": {"enable_thinking": level != "off"}}


def _template_args(level: ThinkingLevel, _efforts: tuple[str, ...], _dialect: RequestDialect) -> _Fields:
    return {"chat_template_args": {"enable_thinking": level != "off"}}


_SWITCHES: dict[Switch, Callable[[ThinkingLevel, tuple[str, ...], RequestDialect], _Fields]] = {
    "none": _no_switch,
    "effort": _effort,
    "thinking_type": _thinking_type,
    "thinking_off": _thinking_off,
    "enable_thinking": _enable_thinking,
    "reasoning_object": _reasoning_object,
    "reasoning_enabled": _reasoning_enabled,
    "reasoning_split": _reasoning_split,
    "template": _template,
    "template_args": _template_args,
}


# ---- the way back


def replayed_reasoning(message: Message, dialect: RequestDialect) -> dict[str, Any]:
    """The fields of an assistant turn that carry its reasoning; for parts of the content, the whole `content`."""
    blocks = [block for block in message.content if isinstance(block, ThinkingBlock)]
    text = "".join(block.thinking for block in blocks)
    field = dialect.replay
    if field is None or (dialect.replay_with_calls and not message.tool_calls):
        return {}
    if field == "thinking_parts":
        return {"content": _parts(message)} if blocks else {}
    if field == "reasoning_details":
        details = [item for block in blocks for item in _listed(block.extra.get(field))]
        return {field: details} if details else {}
    if field == "extra_content":
        return {}
    sent: dict[str, Any] = {field: text} if text or dialect.replay_blank else {}
    if field == "reasoning_text":  # Copilot's, with a proof of the text beside it
        proofs = [block.extra["reasoning_opaque"] for block in blocks if block.extra.get("reasoning_opaque")]
        sent |= {"reasoning_opaque": proofs[-1]} if proofs else {}
    return sent


def _listed(value: Any) -> list[Any]:
    """The items of a list; a block that was made by hand may hold anything."""
    return [*cast("list[Any]", value)] if isinstance(value, list | tuple) else []


def _parts(message: Message) -> list[dict[str, Any]]:
    """Reasoning and text in the order in which they came."""
    parts: list[dict[str, Any]] = []
    for block in message.content:
        match block:
            case ThinkingBlock(thinking=thinking, signature=signature):
                part = {"type": "thinking", "thinking": [{"type": "text", "text": thinking}], "closed": True}
                parts.append({**part, "signature": signature} if signature else part)
            case TextBlock(text=text) | RefusalBlock(text=text) if text:
                parts.append({"type": "text", "text": text})
            case _:
                pass
    return parts


def prove_calls(history: Sequence[HistoryMessage], options: Options) -> list[HistoryMessage]:
    """The history in which the first call of every step has Google's thought signature, as far as it is checked.

    Where it is asked for, the placeholder is put in, also in the turns that are over: what was sent once stays as it
    was. Where it is not, raises RequestError for a call without a signature in the open turn.
    """
    proven = list(history)
    for place in range(len(proven) - 1, -1, -1):
        message = proven[place]
        if isinstance(message, UserMessage) and not options.skip_signatures:
            break
        if isinstance(message, Message) and message.tool_calls and not _is_signed(message.tool_calls[0]):
            first = message.tool_calls[0]
            if not options.skip_signatures:
                raise unsigned(first.name, "skip_signatures=True sends a placeholder")
            extra = {**first.extra, "extra_content": {"google": {"thought_signature": SKIP_SIGNATURE}}}
            signed = msgspec.structs.replace(first, extra=extra)
            content = tuple(signed if block is first else block for block in message.content)
            proven[place] = msgspec.structs.replace(message, content=content)
    return proven


def _is_signed(call: ToolCall) -> bool:
    return bool(mapping(mapping(call.extra.get("extra_content")).get("google")).get("thought_signature"))
