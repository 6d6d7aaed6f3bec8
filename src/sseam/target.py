"""What a history is brought into shape for, and the steps that the rules of `transform` and `handover` share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, TypeAlias

import msgspec

from .context import HistoryMessage, Model
from .message import Block, Message
from .request.calls import IdRule

__all__ = ["Messages", "Target", "map_assistant", "with_content"]

Messages: TypeAlias = tuple[HistoryMessage, ...]


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """What a history is brought into shape for.

    Attributes:
        model: the model that will read it.
        ids: the ids that its service takes.
        thinking: what becomes of reasoning. "signed": only the model's own, with its proof, goes back. "own": the
            model's own, with or without one. "plain": the service has a field of plain text for it, so another model's
            goes back too. "none": it stays out.
        needs_outcome: reasoning at the end of a turn is refused: what it led to must follow it.
        paired: a reasoning item and the item that it led to are sent together or not at all, and items have ids that
            the service knows them by.
        blank_text: text of nothing but white space is refused.
        error_text: a result that is an error takes text alone.
        image_types, document_types: media types that are taken by value, "text/*" for all of a kind; empty: any.
    """

    model: Model
    ids: IdRule = IdRule()
    thinking: Literal["signed", "own", "plain", "none"] = "none"
    needs_outcome: bool = False
    paired: bool = False
    blank_text: bool = False
    error_text: bool = False
    image_types: tuple[str, ...] = ()
    document_types: tuple[str, ...] = ()


def with_content(message: Message, content: Iterable[Block]) -> Message:
    """The message with this content; itself where that is what it has."""
    blocks = tuple(content)
    return message if blocks == message.content else msgspec.structs.replace(message, content=blocks)


def map_assistant(messages: Messages, change: Callable[[Message], Message]) -> Messages:
    """The messages, those of the assistant changed."""
    return tuple(change(message) if isinstance(message, Message) else message for message in messages)
