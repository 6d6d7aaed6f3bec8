"""History → history that a given service accepts: repair, and hand-over between providers.

A stored conversation may end in the middle of a tool call, hold a turn that failed, or come from
another provider. Each rule here takes the messages and the target and gives messages; `RULES` is
their order. All are pure, and what they do to a message does not depend on the messages after it
but for the results of its calls, and for whether a service still goes on with the last turn: a history
that grows keeps the bytes it had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sized
from fnmatch import fnmatchcase
from typing import TypeAlias, TypeVar

import msgspec

from .content import Content, DocumentContent, ImageContent, TextContent
from .context import HistoryMessage, ToolResultMessage, UserMessage, parts_of
from .errors import RequestError
from .handover import cut_at_fallback, hand_over, item_id, paired_server_tools, server_ids, without
from .message import (
    Block,
    Message,
    RedactedThinkingBlock,
    RefusalBlock,
    TextBlock,
    ThinkingBlock,
)
from .request import result_text, text_of
from .request.calls import answer_calls, translate_ids, wire_ids
from .target import Messages, Target, map_assistant, with_content
from .tools import ToolResult

__all__ = [
    "RULES",
    "Target",
    "close_server_tools",
    "describe_attachments",
    "describe_error_attachments",
    "described_result",
    "drop_blank_text",
    "drop_empty_messages",
    "drop_lone_reasoning",
    "keep_safe_turns",
    "original_ids",
    "placeholder",
    "repair",
    "require_messages",
]


def repair(messages: Iterable[HistoryMessage], target: Target) -> Messages:
    """The messages with every rule applied, in the order of `RULES`.

    Raises RequestError for ids that cannot be told apart, and where nothing is left to send.
    """
    result = tuple(messages)
    for rule in RULES:
        result = rule(result, target)
    return require_messages(result)


_Sent = TypeVar("_Sent", bound=Sized)


def require_messages(messages: _Sent) -> _Sent:
    """The messages. Raises RequestError where there are none: every service wants one."""
    if not len(messages):
        raise RequestError("the conversation holds no message to send")
    return messages


# ---- turns that did not end well


def keep_safe_turns(messages: Messages, _target: Target) -> Messages:
    """An aborted or failed turn contributes its text and nothing else; a refused one nothing.

    Its calls go, and `answer_calls` then drops their results with them. Its reasoning goes: a cut
    block has no proof, or one for more than is there.
    """
    return map_assistant(messages, _safe)


def _safe(message: Message) -> Message:
    if message.stop_reason in ("refusal", "content_filter"):
        return msgspec.structs.replace(message, content=())
    if message.complete:
        return message
    return with_content(
        message, (TextBlock(text=block.text) for block in message.content if isinstance(block, TextBlock))
    )


# ---- content that is refused


def drop_blank_text(messages: Messages, target: Target) -> Messages:
    """Empty text goes, and text of white space where the target refuses it.

    Empty text that carries a proof of origin stays: the proof has no other place. So does an empty part of an item
    that the service knows by its id: the reasoning before it must be followed by that item.
    """

    def blank(text: str) -> bool:
        return not (text.strip() if target.blank_text else text)

    def goes(block: Block) -> bool:
        if not isinstance(block, TextBlock | RefusalBlock) or not blank(block.text):
            return False
        return not (isinstance(block, TextBlock) and block.signature) and not (target.paired and item_id(block))

    def said(part: Content) -> Content | None:
        text = None if isinstance(part, ImageContent) else part.text
        return None if text is not None and blank(text) else part

    def cleaned(message: HistoryMessage) -> HistoryMessage:
        if isinstance(message, Message):
            return with_content(message, without(message.content, goes, target.paired))
        return _map_parts(message, said)

    return tuple(cleaned(message) for message in messages)


def drop_lone_reasoning(messages: Messages, target: Target) -> Messages:
    """Reasoning at the end of a turn, whose outcome was cut off or dropped, goes where it is refused.

    OpenAI Responses refuses a reasoning item without the item it led to, Anthropic a turn that ends in thinking.
    """

    def ended(message: Message) -> Message:
        kept = list(message.content)
        while kept and isinstance(kept[-1], ThinkingBlock | RedactedThinkingBlock):
            kept.pop()
        return with_content(message, kept)

    return map_assistant(messages, ended) if target.needs_outcome else messages


def close_server_tools(messages: Messages, _target: Target) -> Messages:
    """Calls that the service runs go where their result never came, and results whose call is not there.

    In the last turn of all, also where nothing but results follows it, a call without result stays: the service goes
    on with it. Behind anything else it is refused (Anthropic: "Stop reasons and fallback", read 2026-11-29).
    """
    ids = server_ids(block for message in messages if isinstance(message, Message) for block in message.content)
    said_in = (
        number
        for number, message in enumerate(messages)
        if not isinstance(message, ToolResultMessage) and message.content
    )
    last = max(said_in, default=-1)
    closed: list[HistoryMessage] = []
    for number, message in enumerate(messages):
        if isinstance(message, Message):
            goes_on = number == last and message.stop_reason in ("pause_turn", "tool_use")
            message = with_content(message, paired_server_tools(message.content, ids, goes_on))
        closed.append(message)
    return tuple(closed)


# ---- attachments


def describe_attachments(messages: Messages, target: Target) -> Messages:
    """An image or document that the model or its service does not take becomes a text that says what was there."""
    takes = target.model.input

    def readable(part: Content) -> Content:
        match part:
            case ImageContent() if "image" not in takes:
                return placeholder(part, "this model takes no images")
            case DocumentContent() if "document" not in takes and part.text is None:
                return placeholder(part, "this model takes no documents")
            case ImageContent(data=str()) if not _is_among(part.media_type, target.image_types):
                return placeholder(part, f"an image of type {part.media_type} is not taken")
            case DocumentContent(data=str()) if not _is_among(part.media_type, target.document_types):
                return placeholder(part, f"a document of type {part.media_type} is not taken")
            case _:
                return part

    return tuple(message if isinstance(message, Message) else _map_parts(message, readable) for message in messages)


def _is_among(media_type: str, types: tuple[str, ...]) -> bool:
    return not types or any(fnmatchcase(media_type.partition(";")[0].strip().lower(), type) for type in types)


def placeholder(part: ImageContent | DocumentContent, reason: str) -> TextContent:
    """A JSON text that says what stood here, and why it is left out."""
    kind, title = ("image", None) if isinstance(part, ImageContent) else ("document", part.title)
    data = part.data
    size = len(data) * 3 // 4 - data[-2:].count("=") if data is not None else None
    facts = {"omitted": kind, "title": title, "media_type": part.media_type or None, "url": part.url, "bytes": size}
    known = {name: value for name, value in facts.items() if value is not None}
    return TextContent(msgspec.json.encode({**known, "reason": reason}).decode())


_NOTHING_SAID = "The tool failed without a message."


def describe_error_attachments(messages: Messages, target: Target) -> Messages:
    """Where a result that is an error takes text alone, what is attached to it becomes a text that says what was there.

    It cannot follow in a message of the user: behind that the turn would be over, and a service that waits for the
    result in the middle of it would not go on.
    """
    if not target.error_text:
        return messages

    def told(message: HistoryMessage) -> HistoryMessage:
        if not isinstance(message, ToolResultMessage):
            return message
        return msgspec.structs.replace(message, results=tuple(map(_text_alone, message.results)))

    return tuple(map(told, messages))


def _text_alone(result: ToolResult) -> ToolResult:
    if not result.is_error:
        return result
    described = described_result(result, "a result that is an error is text")
    text = result_text(msgspec.structs.replace(described, is_error=False)) or _NOTHING_SAID
    return msgspec.structs.replace(result, content=(TextContent(text),))


def described_result(result: ToolResult, reason: str) -> ToolResult:
    """The result, whatever in it is no text described by a `placeholder`."""

    def described(part: Content) -> Content:
        if isinstance(part, TextContent) or text_of(part) is not None:
            return part
        return placeholder(part, reason)

    return msgspec.structs.replace(result, content=tuple(map(described, result.content)))


# ---- calls, ids, messages


def _answer_calls(messages: Messages, _target: Target) -> Messages:
    return answer_calls(messages)


def _translate_ids(messages: Messages, target: Target) -> Messages:
    return translate_ids(messages, target.ids)


def drop_empty_messages(messages: Messages, _target: Target) -> Messages:
    """A message with nothing in it goes; an empty result stays, since its call needs one."""
    return tuple(message for message in messages if isinstance(message, ToolResultMessage) or message.content)


Rule: TypeAlias = Callable[[Messages, Target], Messages]

RULES: tuple[Rule, ...] = (
    keep_safe_turns,
    cut_at_fallback,
    hand_over,
    drop_blank_text,
    describe_attachments,
    _answer_calls,
    describe_error_attachments,
    close_server_tools,
    drop_lone_reasoning,
    _translate_ids,
    drop_empty_messages,
)


def original_ids(messages: Iterable[HistoryMessage], target: Target) -> dict[str, str]:
    """The way back: every id of a call as it is sent, and the id that it stands for in the history."""
    prepared = tuple(messages)
    for rule in RULES[: RULES.index(_translate_ids)]:
        prepared = rule(prepared, target)
    return {sent: id for ids in wire_ids(prepared, target.ids).values() for id, sent in ids.items()}


# ---- helpers


def _map_parts(
    message: UserMessage | ToolResultMessage, change: Callable[[Content], Content | None]
) -> UserMessage | ToolResultMessage:
    """The message with every part of its content changed, or left out where `change` gives None."""

    def changed(content: str | tuple[Content, ...]) -> tuple[Content, ...]:
        return tuple(part for part in map(change, parts_of(content)) if part is not None)

    if isinstance(message, ToolResultMessage):
        results = (msgspec.structs.replace(result, content=changed(result.content)) for result in message.results)
        return msgspec.structs.replace(message, results=tuple(results))
    content = changed(message.content)
    return message if content == parts_of(message.content) else msgspec.structs.replace(message, content=content)
