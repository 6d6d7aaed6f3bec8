"""What a request is made of: the conversation, the model, the options. Plain frozen data.

Everything here goes through JSON and comes back equal, so a conversation can be stored and
continued, with another provider too. Nothing here knows a wire format.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias, cast, get_args

import msgspec

from ._encode import encode
from ._mask import mask, secrets_in
from .content import Content, TextContent
from .message import Block, Message, TextBlock
from .tools import ToolResult

__all__ = [
    "CachePolicy",
    "Context",
    "HistoryMessage",
    "KeySource",
    "Model",
    "NamedTool",
    "Options",
    "OutputSchema",
    "SystemPart",
    "ThinkingLevel",
    "ToolResultMessage",
    "UserMessage",
    "assistant",
    "parts_of",
]

ThinkingLevel: TypeAlias = Literal["off", "minimal", "low", "medium", "high", "xhigh", "max"]


class UserMessage(msgspec.Struct, frozen=True, tag_field="role", tag="user", omit_defaults=True):
    """What the user says.

    Attributes:
        content: text, or parts in order.
        cache: put a cache breakpoint at the end of this message, where the provider has them.
    """

    content: str | tuple[Content, ...]
    cache: bool = False


class ToolResultMessage(msgspec.Struct, frozen=True, tag_field="role", tag="tool", omit_defaults=True):
    """The results of the calls of one turn.

    Attributes:
        results: one a call.
        cache: put a cache breakpoint at the end of this message, where the provider has them.
    """

    results: tuple[ToolResult, ...]
    cache: bool = False


def parts_of(content: str | tuple[Content, ...]) -> tuple[Content, ...]:
    """The content as parts; empty text has none."""
    if isinstance(content, str):
        return (TextContent(content),) if content else ()
    return content


HistoryMessage: TypeAlias = UserMessage | Message | ToolResultMessage


def assistant(*content: str | Block) -> Message:
    """An assistant's turn written by hand: complete, of no protocol and no model.

    Raises `TypeError` for what is neither text nor a block.
    """
    blocks = tuple(TextBlock(text=part) if isinstance(part, str) else part for part in content)
    for block in blocks:
        if type(block) not in get_args(Block):
            raise TypeError(f"expected texts and blocks, got {type(block).__name__}")
    return Message(content=blocks, complete=True)


class SystemPart(msgspec.Struct, frozen=True, omit_defaults=True):
    """A part of the system prompt.

    Attributes:
        text: the text.
        cache: put a cache breakpoint at its end, where the provider has them.
    """

    text: str
    cache: bool = False


class Context(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A conversation as it is sent.

    Attributes:
        system: the system prompt, or its parts in order.
        messages: the history, oldest first.
        tools: what the model may call: `sseam.Tool` objects, or dicts in any provider's form. Built-in tools of
            a provider are dicts of its own form.
    """

    system: str | tuple[SystemPart, ...] = ""
    messages: tuple[HistoryMessage, ...] = ()
    tools: tuple[Any, ...] = ()

    def to_json(self) -> bytes:
        """This context as JSON. Tool objects are written as what the model sees of them, without their function.

        Raises `RequestError` for what has no JSON form; it names the place.
        """
        tools = tuple(_tool_data(tool) for tool in self.tools)
        return encode(msgspec.structs.replace(self, tools=tools), "the context")

    @classmethod
    def from_json(cls, data: bytes | str) -> Context:
        """The context that `to_json` wrote. Raises `msgspec.ValidationError` for anything else."""
        return _DECODER.decode(data)


def _tool_data(tool: object) -> dict[str, Any]:
    if isinstance(tool, dict):
        return cast("dict[str, Any]", tool)
    # In a form that is no provider's own (MCP's): each request then reads it as it reads the tool itself.
    source = cast("Any", tool)
    data = {"name": source.name, "description": getattr(source, "description", None), "inputSchema": source.schema}
    if getattr(source, "strict", None) is not None:
        data["strict"] = source.strict
    if getattr(source, "cache", False):
        data["cache_control"] = {"type": "ephemeral"}
    return data


class NamedTool(msgspec.Struct, frozen=True):
    """The model must call this tool."""

    name: str


class OutputSchema(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer must be JSON of this shape.

    Attributes:
        schema: JSON Schema of the answer; never changed in place.
        name: a name for it, where the provider wants one.
        description: what it is, for the model to see.
        strict: ask for a guarantee. It is asked for only with a schema that can be brought into the
            provider's strict form.
    """

    schema: dict[str, Any]
    name: str = "output"
    description: str | None = None
    strict: bool = True


class CachePolicy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the provider's prompt cache is used.

    Attributes:
        breakpoints: place them by themselves, where the provider has them. The caller's own are kept
            either way.
        retention: "short" or "long", in the provider's own terms (Anthropic: 5 minutes or 1 hour);
            None: the provider's default, and nothing is sent.
        key: routes requests that share a prefix to one cache, where the provider takes a key.
    """

    breakpoints: bool = True
    retention: Literal["short", "long"] | None = None
    key: str | None = None


class Options(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What else the caller asks for. None means not set: nothing is sent for it.

    An option that the model would refuse (sampling on a reasoning model) or that the protocol does
    not have is left out. What cannot be left out without breaking a promise is a `RequestError`.

    Attributes:
        max_output_tokens: limit of the output, reasoning included; not negative.
        temperature, top_p, top_k, seed: sampling.
        stop_sequences: the output ends before the first of these.
        tool_choice: "auto", "none", "required" (some call must be made) or a `NamedTool`.
        parallel_tool_calls: whether several calls in one turn are allowed.
        thinking: how much the model should reason. A level that the model does not have becomes the
            nearest one below it that it has, else the lowest one.
        thinking_summary: whether readable reasoning should come; None: the provider's default, but
            where reasoning is hidden unless asked for (Gemini), it is asked for with a level.
        output: structured output.
        cache: the prompt cache.
        skip_signatures: a call that another model made goes to Gemini 3 with the documented placeholder in place of the
            proof that it wants for the calls of the open turn (in every turn, so that what was sent stays the same), on
            Interactions, which has none, without; else such a call in the open turn is a `RequestError`.
        metadata: the provider's own metadata of the request (Anthropic: `user_id`).
        extra_body: merged into the body last, objects merged key by key, everything else replaced.
        extra_headers: set last; a header of the same name is replaced, whatever its case.
    """

    max_output_tokens: Annotated[int, msgspec.Meta(ge=0)] | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    stop_sequences: tuple[str, ...] = ()
    tool_choice: Literal["auto", "none", "required"] | NamedTool | None = None
    parallel_tool_calls: bool | None = None
    thinking: ThinkingLevel | None = None
    thinking_summary: bool | None = None
    output: OutputSchema | None = None
    cache: CachePolicy = CachePolicy()
    skip_signatures: bool = False
    metadata: dict[str, str] = {}
    extra_body: dict[str, Any] = {}
    extra_headers: dict[str, str] = {}


class KeySource(msgspec.Struct, frozen=True):
    """Where a key comes from and where it goes.

    Attributes:
        variable: name of the environment variable.
        header: the header it is sent in; in "authorization" it is sent as a bearer token.
    """

    variable: str
    header: str = "authorization"


class Model(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A model and where it is. It never holds a key, only where one is found.

    Attributes:
        id: the model's name, as the service wants it in a request.
        protocol: name of the protocol, as `sseam.Parser` takes it.
        base_url: address up to the protocol's own path, without a slash at the end.
        dialect: name of the server's dialect. None: for Chat Completions that of the server known to be at `base_url`,
            else of one that is not known; for the other protocols as their makers speak them. A request in a dialect
            that Chat Completions does not have is a `RequestError`.
        input: what the model takes beside text.
        thinking: how reasoning is asked for, where the tables do not know the model: "manual" or "adaptive"
            (Anthropic), "effort" (OpenAI), "budget" or "level" (Gemini), "none"; None: by the tables.
        max_output_tokens: sent where the caller sets no limit and the protocol demands one.
        reported_as: further names under which the service reports this model in its answers (a deployment, an alias):
            reasoning of a model of another name is not sent back to this one.
        keys: where a key is looked for, in this order; empty: none is needed.
        key_optional: the server also answers without a key.
    """

    id: str
    protocol: str
    base_url: str
    dialect: str | None = None
    input: tuple[Literal["image", "document"], ...] = ("image", "document")
    thinking: str | None = None
    max_output_tokens: int | None = None
    reported_as: tuple[str, ...] = ()
    keys: tuple[KeySource, ...] = ()
    key_optional: bool = False

    def __repr__(self) -> str:
        """As of any struct, without what its address holds of a key."""
        address = mask(self.base_url, secrets_in(self.base_url, {}))
        return msgspec.Struct.__repr__(msgspec.structs.replace(self, base_url=address))


_DECODER = msgspec.json.Decoder(Context)
