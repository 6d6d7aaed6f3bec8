"""What a stream amounts to: content blocks, usage, and the message that holds them.

All of it is plain frozen data that goes through JSON and comes back equal.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

__all__ = [
    "Block",
    "Deviation",
    "Message",
    "OpaqueBlock",
    "RedactedThinkingBlock",
    "RefusalBlock",
    "ServerToolBlock",
    "TextBlock",
    "ThinkingBlock",
    "Timing",
    "ToolCall",
    "Usage",
    "WithheldCall",
]


class _Block(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True):
    """Fields that every block has.

    Attributes:
        extra: the wire's fields of this block that are not modelled here (a caller, an item id,
            encrypted content …), unchanged, so that the block can be sent back as it came.
    """

    extra: dict[str, Any] = {}


class TextBlock(_Block, frozen=True, kw_only=True, tag="text"):
    """Visible text. `citations` are the provider's own objects, in order.

    `signature` is the provider's proof of origin (Gemini puts one on any part), or None.
    """

    text: str
    citations: tuple[dict[str, Any], ...] = ()
    signature: str | None = None


class ThinkingBlock(_Block, frozen=True, kw_only=True, tag="thinking"):
    """Reasoning text. `signature` is the proof that a replay needs; None where none came."""

    thinking: str
    signature: str | None = None


class RedactedThinkingBlock(_Block, frozen=True, kw_only=True, tag="redacted_thinking"):
    """Reasoning that the provider shows only encrypted; `data` goes back as it is."""

    data: str


class RefusalBlock(_Block, frozen=True, kw_only=True, tag="refusal"):
    """Text with which the model declines, where the provider keeps it apart (OpenAI)."""

    text: str


class ToolCall(_Block, frozen=True, kw_only=True, tag="tool_call"):
    """A whole, checked call that the client is to run.

    Attributes:
        id: unique in the message; made by rule where the wire has none.
        name: the tool's name.
        arguments: the arguments, always a JSON object. For a custom tool (`kind` "custom"), whose
            input is free text, `{"input": text}`.
        arguments_json: the argument text as it came, or the free text of a custom tool.
        signature: the provider's proof that must go back with this call (Gemini), or None.
        kind: "function" or "custom".
    """

    id: str
    name: str
    arguments: dict[str, Any]
    arguments_json: str
    signature: str | None = None
    kind: Literal["function", "custom"] = "function"


class ServerToolBlock(_Block, frozen=True, kw_only=True, tag="server_tool"):
    """A tool that the provider runs: its call or its result. Never a call for the client.

    `kind` is the wire's block type; `raw` is the whole block as it came.
    """

    kind: str
    raw: dict[str, Any]


class OpaqueBlock(_Block, frozen=True, kw_only=True, tag="opaque"):
    """A block of a kind that is not modelled. `kind` is the wire's type, `raw` the whole block.

    Attributes:
        deltas: deltas of the block that could not be folded into `raw`, as they came.
    """

    kind: str
    raw: dict[str, Any]
    deltas: tuple[dict[str, Any], ...] = ()


Block: TypeAlias = (
    TextBlock | ThinkingBlock | RedactedThinkingBlock | RefusalBlock | ToolCall | ServerToolBlock | OpaqueBlock
)


class WithheldCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool call that began and must not be run.

    Attributes:
        id: the call's id, "" where none came.
        name: the tool's name, "" where none came.
        arguments_json: the argument text so far, as it came. Never repaired.
        reason: "open" (it never ended), "invalid" (it ended and cannot be used) or "unreleased"
            (it ended and parses, but nothing proves that it is finished; see `sseam.release`).
        index: the block's index among the message's blocks.
    """

    id: str
    name: str
    arguments_json: str
    reason: Literal["open", "invalid", "unreleased"]
    index: int


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Token counts. None means not reported, which is not zero.

    Attributes:
        input_tokens: all input, cached included.
        output_tokens: all output, reasoning included.
        cache_read_tokens: the part of the input that was read from a cache.
        cache_write_tokens: the part of the input that was written to a cache.
        reasoning_tokens: the part of the output that was reasoning.
        total_tokens: the provider's total where it gives one, else the sum of input and output.
        raw: the provider's own object.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    total_tokens: int | None = None
    raw: dict[str, Any] = {}


class Timing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How long a call took, in seconds from its first attempt on. None where it never came to that.

    Attributes:
        first_event: until the first neutral event.
        first_text: until the first visible text.
        duration: until the end, waits between attempts included.
    """

    first_event: float | None = None
    first_text: float | None = None
    duration: float


class Deviation(msgspec.Struct, frozen=True, kw_only=True):
    """A way in which the stream departed from the protocol and was tolerated.

    Attributes:
        code: its name; the protocol's table (`DEVIATIONS`) says what it means.
        grade: "harmless", "soft" (refused under `strict` unless the dialect is known for it) or
            "gated" (allowed only by a dialect).
        count: how often it was seen.
    """

    code: str
    grade: Literal["harmless", "soft", "gated"]
    count: int


class Message(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, eq=False, tag_field="role", tag="assistant"
):
    """A model's answer, or what there is of it. Its role tells it from the other messages of a history.

    Two messages are equal when they say the same: how long they took does not count.

    Attributes:
        id: the provider's id, "" where it gives none.
        model: the model that answered, as the stream names it.
        protocol: name of the protocol it was read with.
        content: the blocks in the order in which they started. Tool calls here are released.
        withheld: calls that began and are not to be run.
        stop_reason: the neutral value, see `sseam.stop`; None where none came.
        raw_stop_reason: the provider's word for it.
        usage: token counts.
        deviations: tolerated departures from the protocol.
        complete: the protocol's own end was seen, every check passed, and the stop reason is one
            that the caller accepts. A partial message is never complete.
        raw: the provider's message-level fields that are not modelled, as they came.
        alternatives: further choices of the same request (OpenAI `n`, Gemini candidates).
        timing: how long it took, where a client made the call.
    """

    id: str = ""
    model: str = ""
    protocol: str = ""
    content: tuple[Block, ...] = ()
    withheld: tuple[WithheldCall, ...] = ()
    stop_reason: str | None = None
    raw_stop_reason: str | None = None
    usage: Usage = Usage()
    deviations: tuple[Deviation, ...] = ()
    complete: bool = False
    raw: dict[str, Any] = {}
    alternatives: tuple[Message, ...] = ()
    timing: Timing | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Message):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__struct_fields__ if name != "timing")

    def __ne__(self, other: object) -> bool:
        return not self == other  # a struct has a __ne__ of its own, which knows nothing of this __eq__

    def __hash__(self) -> int:
        return hash((self.id, self.model, self.raw_stop_reason))

    @property
    def text(self) -> str:
        """All visible text, blocks joined with nothing between."""
        return "".join(block.text for block in self.content if isinstance(block, TextBlock))

    @property
    def thinking(self) -> str:
        """All reasoning text, blocks joined with nothing between."""
        return "".join(block.thinking for block in self.content if isinstance(block, ThinkingBlock))

    @property
    def refusal(self) -> str:
        """The text with which the model declined, "" where it did not."""
        return "".join(block.text for block in self.content if isinstance(block, RefusalBlock))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls that may be run, in the order of their blocks."""
        return tuple(block for block in self.content if isinstance(block, ToolCall))

    def to_json(self) -> bytes:
        """This message as JSON; `Message.from_json` gives an equal one back."""
        return msgspec.json.encode(self)

    @classmethod
    def from_json(cls, data: bytes | str) -> Message:
        """The message that `to_json` wrote. Raises `msgspec.ValidationError` for anything else."""
        return _DECODER.decode(data)


_DECODER = msgspec.json.Decoder(Message)
