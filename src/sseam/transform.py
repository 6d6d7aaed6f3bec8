"""History → history that a given service accepts: repair, and hand-over between providers.

A stored conversation may end in the middle of a tool call, hold a turn that failed, or come from
another provider. Each rule here takes the messages and the target and gives messages; `RULES` is
their order. All are pure, and what they do to a message does not depend on the messages after it
but for the results of its calls: a history that grows keeps the bytes it had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Literal, TypeAlias, TypeGuard, TypeVar

import msgspec

from .content import Content, DocumentContent, ImageContent, TextContent
from .context import HistoryMessage, Model, ToolResultMessage, UserMessage, parts_of
from .errors import RequestError
from .message import (
    Block,
    Message,
    OpaqueBlock,
    RedactedThinkingBlock,
    RefusalBlock,
    ServerToolBlock,
    TextBlock,
    ThinkingBlock,
    ToolCall,
)
from .request.calls import IdRule, answer_calls, translate_ids, wire_ids
from .request.families import same_model

__all__ = [
    "RULES",
    "Target",
    "cut_at_fallback",
    "describe_attachments",
    "drop_blank_text",
    "drop_empty_messages",
    "drop_lone_reasoning",
    "hand_over",
    "keep_safe_turns",
    "original_ids",
    "paired_server_tools",
    "repair",
    "require_messages",
]

Messages: TypeAlias = tuple[HistoryMessage, ...]


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """What a history is brought into shape for.

    Attributes:
        model: the model that will read it.
        ids: the ids that its service takes.
        thinking: what becomes of reasoning. "signed": only the model's own, with its proof, goes back. "own": the
            model's own, with or without one. "plain": the service has a field of plain text for it, so another model's
            goes back too. "none": it stays out.
        paired: a reasoning item and the item that it led to are sent together or not at all.
        blank_text: text of nothing but white space is refused.
    """

    model: Model
    ids: IdRule = IdRule()
    thinking: Literal["signed", "own", "plain", "none"] = "none"
    paired: bool = False
    blank_text: bool = False


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
    return _map_assistant(messages, _safe)


def _safe(message: Message) -> Message:
    if message.stop_reason in ("refusal", "content_filter"):
        return msgspec.structs.replace(message, content=())
    if message.complete:
        return message
    return _with(message, (TextBlock(text=block.text) for block in message.content if isinstance(block, TextBlock)))


# Source: the provider's page on server-side fallback. `connector_text` has no type in the SDKs.
_BEFORE_FALLBACK = ("connector_text",)


def cut_at_fallback(messages: Messages, _target: Target) -> Messages:
    """Before an Anthropic `fallback` block only what the answering model can read stays.

    Reasoning, client calls and unpaired server calls of the model that declined go.
    """
    return _map_assistant(messages, _after_fallback)


def _after_fallback(message: Message) -> Message:
    places = [
        at for at, block in enumerate(message.content) if isinstance(block, OpaqueBlock) and block.kind == "fallback"
    ]
    if not places:
        return message
    before, after = message.content[: places[-1]], message.content[places[-1] :]
    kept = (block for block in paired_server_tools(before) if not _bound_to_declined(block))
    return _with(message, (*kept, *after))


def _bound_to_declined(block: Block) -> bool:
    return isinstance(block, ThinkingBlock | RedactedThinkingBlock | ToolCall) or (
        isinstance(block, OpaqueBlock) and block.kind in _BEFORE_FALLBACK
    )


# ---- hand-over to another model

# Fields of `extra` that only the model and account which minted them can read.
_MINTED = frozenset({"id", "encrypted_content", "extra_content", "reasoning_opaque", "reasoning_details"})


def hand_over(messages: Messages, target: Target) -> Messages:
    """Only what the target can read goes to it.

    A foreign model's reasoning goes out, or as plain text where there is a field for that: never as
    text of the answer, which the model would imitate. The same for the target's own reasoning
    without its proof. Proofs, item ids and server-tool blocks of others go out.
    """

    def own(message: Message) -> Message:
        if not _is_native(message, target):
            same_protocol = message.protocol == target.model.protocol
            return _with(message, _present(_foreign_block(block, target, same_protocol) for block in message.content))
        kept = tuple(_present(_own_block(block, target) for block in message.content))
        lost_reasoning = any(isinstance(block, ThinkingBlock) and block not in kept for block in message.content)
        return _with(message, map(_without_item_id, kept) if target.paired and lost_reasoning else kept)

    return _map_assistant(messages, own)


def _present(blocks: Iterable[Block | None]) -> Iterator[Block]:
    return (block for block in blocks if block is not None)


def _without_item_id(block: Block) -> Block:
    """The block as new: under its id the service would miss the reasoning that led to it."""
    if not isinstance(block, TextBlock | RefusalBlock | ToolCall) or "id" not in block.extra:
        return block
    extra = {name: value for name, value in block.extra.items() if name != "id"}
    return msgspec.structs.replace(block, extra=extra)


def _is_native(message: Message, target: Target) -> bool:
    model = target.model
    if message.protocol not in ("", model.protocol):
        return False
    return not message.model or any(same_model(name, message.model) for name in (model.id, *model.reported_as))


def _own_block(block: Block, target: Target) -> Block | None:
    match block:
        case ThinkingBlock() if target.thinking == "none" or (
            target.thinking == "signed" and not _has_proof(block, target)
        ):
            return None
        case RedactedThinkingBlock() if target.thinking in ("none", "plain"):
            return None
        case OpaqueBlock() if block.deltas:  # parts of it could not be folded in, so it is not what came
            return None
        case _:
            return block


def _has_proof(block: ThinkingBlock, target: Target) -> bool:
    if target.paired:
        return bool(block.extra.get("id") and block.extra.get("encrypted_content"))
    return bool(block.signature)


def _foreign_block(block: Block, target: Target, same_protocol: bool) -> Block | None:
    match block:
        case TextBlock():
            return TextBlock(text=block.text, citations=block.citations if same_protocol else ())
        case RefusalBlock():
            return block if same_protocol else TextBlock(text=block.text)
        case ThinkingBlock():
            return ThinkingBlock(thinking=block.thinking) if target.thinking == "plain" and block.thinking else None
        case RedactedThinkingBlock():
            return None
        case ToolCall():
            # A field that is None says what the wire did not have, which stays true.
            extra = {
                key: value
                for key, value in block.extra.items()
                if same_protocol and (key not in _MINTED or value is None)
            }
            return msgspec.structs.replace(block, signature=None, extra=extra)
        case ServerToolBlock():
            return block if same_protocol else None
        case OpaqueBlock():
            return block if same_protocol and not block.deltas else None


def drop_blank_text(messages: Messages, target: Target) -> Messages:
    """Empty text goes, and text of white space where the target refuses it.

    Empty text that carries a proof of origin stays: the proof has no other place.
    """

    def blank(text: str) -> bool:
        return not (text.strip() if target.blank_text else text)

    def cleaned(message: HistoryMessage) -> HistoryMessage:
        if isinstance(message, Message):
            return _with(
                message, _without(message.content, lambda block: _is_text(block) and blank(block.text), target.paired)
            )
        return _map_parts(message, lambda part: None if isinstance(part, TextContent) and blank(part.text) else part)

    return tuple(cleaned(message) for message in messages)


def _is_text(block: Block) -> TypeGuard[TextBlock]:
    return isinstance(block, TextBlock) and not block.signature


def _without(content: tuple[Block, ...], drop: Callable[[Block], bool], paired: bool) -> Iterator[Block]:
    """The blocks without those to `drop`; where reasoning is `paired`, without what led to them too."""
    reasoning: list[Block] = []
    for block in content:
        if paired and isinstance(block, ThinkingBlock | RedactedThinkingBlock):
            reasoning.append(block)
            continue
        if not drop(block):
            yield from reasoning
            yield block
        reasoning = []
    yield from reasoning


def drop_lone_reasoning(messages: Messages, target: Target) -> Messages:
    """Reasoning at the end of a turn, whose outcome was cut off or dropped, goes where it needs a proof.

    OpenAI Responses refuses a reasoning item without the item it led to, Anthropic a turn that ends in thinking.
    """

    def ended(message: Message) -> Message:
        kept = list(message.content)
        while kept and isinstance(kept[-1], ThinkingBlock | RedactedThinkingBlock):
            kept.pop()
        return _with(message, kept)

    return _map_assistant(messages, ended) if target.thinking == "signed" else messages


def describe_attachments(messages: Messages, target: Target) -> Messages:
    """An image or document that the model does not take becomes a text that says what was there."""
    takes = target.model.input

    def readable(part: Content) -> Content:
        if isinstance(part, ImageContent) and "image" not in takes:
            return _placeholder("image", part.media_type, part.data, part.url)
        if isinstance(part, DocumentContent) and "document" not in takes and part.text is None:
            return _placeholder("document", part.media_type, part.data, part.url, part.title)
        return part

    return tuple(message if isinstance(message, Message) else _map_parts(message, readable) for message in messages)


def _placeholder(
    kind: str, media_type: str, data: str | None, url: str | None, title: str | None = None
) -> TextContent:
    size = len(data) * 3 // 4 - data[-2:].count("=") if data is not None else None
    facts = {"omitted": kind, "title": title, "media_type": media_type or None, "url": url, "bytes": size}
    known = {name: value for name, value in facts.items() if value is not None}
    return TextContent(msgspec.json.encode({**known, "reason": f"this model takes no {kind}s"}).decode())


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
    drop_lone_reasoning,
    describe_attachments,
    _answer_calls,
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


def paired_server_tools(
    content: Iterable[Block], among: Iterable[Block] | None = None, open_turn: bool = False
) -> tuple[Block, ...]:
    """The blocks without server-run calls that lack their result, and results that lack their call.

    `among` are the blocks in which the other half is looked for: a paused turn goes on in the next
    message. In an `open_turn` calls without result stay: the provider goes on with them.
    """
    blocks = tuple(content)
    raws = [block.raw for block in (blocks if among is None else among) if isinstance(block, ServerToolBlock)]
    calls = {raw.get("id") for raw in raws}
    results = {raw.get("tool_use_id") for raw in raws}

    def stays(block: Block) -> bool:
        if not isinstance(block, ServerToolBlock):
            return True
        if "tool_use_id" in block.raw:
            return block.raw["tool_use_id"] in calls
        return open_turn or not block.kind.endswith("tool_use") or block.raw.get("id") in results

    return tuple(block for block in blocks if stays(block))


def _with(message: Message, content: Iterable[Block]) -> Message:
    """The message with this content; itself where that is what it has."""
    blocks = tuple(content)
    return message if blocks == message.content else msgspec.structs.replace(message, content=blocks)


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


def _map_assistant(messages: Messages, change: Callable[[Message], Message]) -> Messages:
    return tuple(change(message) if isinstance(message, Message) else message for message in messages)
