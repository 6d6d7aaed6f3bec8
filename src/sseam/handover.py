"""What of a turn goes to the model that reads it: all of its own, and of another's what it can read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

import msgspec

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
from .request.families import same_model
from .target import Messages, Target, map_assistant, with_content

__all__ = ["cut_at_fallback", "hand_over", "item_id", "paired_server_tools", "server_ids", "without"]


# ---- a model that declined, and one that answered in its place

# Source: the provider's page on server-side fallback. `connector_text` has no type in the SDKs.
_BEFORE_FALLBACK = ("connector_text",)


def cut_at_fallback(messages: Messages, _target: Target) -> Messages:
    """Before an Anthropic `fallback` block only what the answering model can read stays.

    Reasoning, client calls and unpaired server calls of the model that declined go.
    """
    return map_assistant(messages, _after_fallback)


def _after_fallback(message: Message) -> Message:
    places = [at for at, block in enumerate(message.content) if _is_fallback(block)]
    if not places:
        return message
    before, after = message.content[: places[-1]], message.content[places[-1] :]
    kept = (block for block in paired_server_tools(before) if not _bound_to_declined(block))
    return with_content(message, (*kept, *after))


def _is_fallback(block: Block) -> bool:
    return isinstance(block, OpaqueBlock) and block.kind == "fallback"


def _bound_to_declined(block: Block) -> bool:
    return isinstance(block, ThinkingBlock | RedactedThinkingBlock | ToolCall) or (
        isinstance(block, OpaqueBlock) and block.kind in _BEFORE_FALLBACK
    )


class ServerIds(msgspec.Struct, frozen=True):
    """The ids of calls that a service ran itself, and those that results answer."""

    calls: frozenset[str]
    results: frozenset[str]


def server_ids(blocks: Iterable[Block]) -> ServerIds:
    """What these blocks hold of either half."""
    raws = [block.raw for block in blocks if isinstance(block, ServerToolBlock)]

    def held(field: str) -> frozenset[str]:
        return frozenset(raw[field] for raw in raws if isinstance(raw.get(field), str))

    return ServerIds(held("id"), held("tool_use_id"))


def paired_server_tools(
    content: Iterable[Block], among: ServerIds | None = None, open_turn: bool = False
) -> tuple[Block, ...]:
    """The blocks without server-run calls that lack their result, and results that lack their call.

    The other half is looked for `among` these ids, else in the blocks: a paused turn goes on in the next
    message. In an `open_turn` calls without result stay: the provider goes on with them.
    """
    blocks = tuple(content)
    ids = server_ids(blocks) if among is None else among

    def stays(block: Block) -> bool:
        if not isinstance(block, ServerToolBlock):
            return True
        if "tool_use_id" in block.raw:
            return _is_among(block.raw["tool_use_id"], ids.calls)
        return open_turn or not block.kind.endswith("tool_use") or _is_among(block.raw.get("id"), ids.results)

    return tuple(block for block in blocks if stays(block))


def _is_among(id: object, ids: frozenset[str]) -> bool:
    # What came as an id may be no text, and then stands for nothing.
    return isinstance(id, str) and id in ids


# ---- hand-over

# Fields of `extra` that only the model and account which minted them can read.
_MINTED = frozenset({"id", "encrypted_content", "extra_content", "reasoning_opaque", "reasoning_details"})


def hand_over(messages: Messages, target: Target) -> Messages:
    """Only what the target can read goes to it.

    A foreign model's reasoning goes out, or as plain text where there is a field for that: never as
    text of the answer, which the model would imitate. The same for the target's own reasoning
    without its proof. Proofs, item ids and server-tool blocks of others go out.
    """

    def readable(message: Message) -> Message:
        if not _is_native(message, target):
            same_protocol = message.protocol == target.model.protocol
            blocks = (_foreign_block(block, target, same_protocol) for block in message.content)
            return with_content(message, _present(blocks))
        kept = tuple(_present(_own_block(block, target) for block in message.content))
        if target.paired and sum(map(_is_reasoning, kept)) < sum(map(_is_reasoning, message.content)):
            return with_content(message, _present(map(_as_new, kept)))
        return with_content(message, kept)

    return map_assistant(messages, readable)


def _present(blocks: Iterable[Block | None]) -> Iterator[Block]:
    return (block for block in blocks if block is not None)


def _is_reasoning(block: Block) -> bool:
    return isinstance(block, ThinkingBlock | RedactedThinkingBlock)


def without(content: Iterable[Block], drop: Callable[[Block], bool], paired: bool) -> Iterator[Block]:
    """The blocks without those to `drop`; where reasoning is `paired`, without what led to them too.

    What else that reasoning led to, up to the next, then goes as of new items.
    """
    reasoning: list[Block] = []
    lost = False
    for block in content:
        if paired and _is_reasoning(block):
            reasoning.append(block)
            lost = False
            continue
        # As new, an empty text may be one to drop.
        kept = None if drop(block) else _as_new(block) if lost else block
        if kept is not None and not drop(kept):
            yield from reasoning
            yield kept
        else:
            lost = lost or bool(reasoning)
        reasoning = []
    yield from reasoning


def _is_native(message: Message, target: Target) -> bool:
    model = target.model
    if message.protocol not in ("", model.protocol):
        return False
    own = (model.id, *model.reported_as)
    return not message.model or any(same_model(name, asked) for name in own for asked in _asked_models(message))


def _asked_models(message: Message) -> Iterator[str]:
    """The model that answered, and those that were asked before it and read such a turn again as theirs.

    Source: the provider's page on server-side fallback: only what stands before the block is not to be replayed.
    """
    yield message.model
    for block in message.content:
        if isinstance(block, OpaqueBlock) and _is_fallback(block):
            declined: object = block.raw.get("from")
            name: object = cast("dict[str, Any]", declined).get("model") if isinstance(declined, dict) else None
            if isinstance(name, str):
                yield name


def _own_block(block: Block, target: Target) -> Block | None:
    # Parts of it could not be folded in, so it is not what came. The text of an answer is worth something without.
    if block.extra.get("unknown_deltas") and not isinstance(block, TextBlock | RefusalBlock):
        return None
    match block:
        case ThinkingBlock() if target.thinking == "none" or (
            target.thinking == "signed" and not _has_proof(block, target)
        ):
            return None
        case RedactedThinkingBlock() if target.thinking in ("none", "plain") or (
            target.paired and item_id(block) is None
        ):
            return None
        case OpaqueBlock() if block.deltas or (target.paired and block.extra and item_id(block) is None):
            return None  # a part that is not known goes nowhere without its message
        case _:
            return _with_id(block, item_id(block)) if target.paired else block


def _has_proof(block: ThinkingBlock, target: Target) -> bool:
    if target.paired:
        return item_id(block) is not None and bool(block.extra.get("encrypted_content"))
    return bool(block.signature)


def _foreign_block(block: Block, target: Target, same_protocol: bool) -> Block | None:
    match block:
        case TextBlock():
            return TextBlock(text=block.text, citations=block.citations if same_protocol else ())
        case RefusalBlock():
            return RefusalBlock(text=block.text) if same_protocol else TextBlock(text=block.text)
        case ThinkingBlock():
            return ThinkingBlock(thinking=block.thinking) if target.thinking == "plain" and block.thinking else None
        case RedactedThinkingBlock():
            return None
        case ToolCall():
            return _foreign_call(block, same_protocol)
        case ServerToolBlock() | OpaqueBlock():
            if not same_protocol or (isinstance(block, OpaqueBlock) and block.deltas):
                return None
            if not target.paired:
                return block
            # Whoever else reads what is encrypted refuses it.
            return None if block.raw.get("encrypted_content") else _as_new(block)


def _foreign_call(call: ToolCall, same_protocol: bool) -> ToolCall:
    # A field that is None says what the wire did not have, which stays true.
    extra = {key: value for key, value in call.extra.items() if same_protocol and (key not in _MINTED or value is None)}
    if "type" in extra and (id := item_id(call)):
        extra["id"] = _minted(id)
    return msgspec.structs.replace(call, signature=None, extra=extra)


# ---- items: OpenAI Responses knows what it gave by an id


def item_id(block: Block) -> str | None:
    """The id of the item that the block came in; None where it has none, or one of nothing but white space."""
    id: object = _fields(block).get("id")
    return id if isinstance(id, str) and id.strip() else None


def _fields(block: Block) -> dict[str, Any]:
    match block:
        case ServerToolBlock():
            return block.raw
        case OpaqueBlock() if not block.extra:  # a part of a message has the fields of its item there
            return block.raw
        case _:
            return block.extra


def _with_id(block: Block, id: str | None) -> Block:
    fields = _fields(block)
    if "id" not in fields or (id is not None and fields["id"] == id):
        return block
    changed = {name: id if name == "id" else value for name, value in fields.items() if name != "id" or id is not None}
    return msgspec.structs.replace(block, **{"raw" if fields is not block.extra else "extra": changed})


# The client's answer names it.
_NAMED_BY_OTHERS = "mcp_approval_request"


def _as_new(block: Block) -> Block | None:
    """The block as of an item that the service has not seen: by its id it would miss the reasoning that led to it.

    Messages and calls of functions go without id. Other items must have one (API reference, "Create a response",
    read 2026-11-30): they get one made from the old. A part that is not known goes nowhere without its message.
    """
    match block:
        case TextBlock() | RefusalBlock():
            return _with_id(block, None)
        case ToolCall() if "type" not in block.extra:
            return _with_id(block, None)
        case OpaqueBlock() if block.extra:
            return None
        case ToolCall() | ServerToolBlock() | OpaqueBlock():
            fields, id = _fields(block), item_id(block)
            if id is None or fields.get("encrypted_content") or fields.get("type") == _NAMED_BY_OTHERS:
                return _with_id(block, id)
            return _with_id(block, _minted(id))
        case _:
            return block


def _minted(id: str) -> str:
    """An id of the same kind, the same at every time, that stands for nothing that is known."""
    prefix, separator, _ = id.partition("_")
    digest = hashlib.sha256(id.encode()).hexdigest()[:32]
    return f"{prefix}_{digest}" if separator and prefix.isalnum() and len(prefix) < 16 else digest
