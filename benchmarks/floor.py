"""The floor: the least that any reader built on msgspec does, once a protocol.

Split at the blank line on what is left over, strip the field names, decode each payload once as a typed struct (a
tagged union where the protocol has types) with the fields a message is made of, append its text. No other rule of the
event-stream standard, no order, no state, no check of any kind.
"""

from collections.abc import Callable
from functools import reduce
from operator import or_
from typing import Any

from msgspec import defstruct
from msgspec.json import Decoder
from workloads import BLANK_LINE

Folded = tuple[list[str], dict[int, list[str]]]  # the text, and the fragments of each call


def _struct(tag: str | None = None, **fields: Any) -> Any:
    """A struct type, tagged by `type` if it has a tag; a field given as a pair has a default."""
    specs = [(name, *spec) if isinstance(spec, tuple) else (name, spec) for name, spec in fields.items()]
    return defstruct("Payload", specs, tag_field="type" if tag else None, tag=tag, kw_only=True)


def _union(*members: Any, others: str, prefix: str = "") -> Any:
    """A tagged union of members and of the named types, whose fields are not read."""
    return reduce(or_, [*members, *(_struct(prefix + name) for name in others.split())])


TEXT_DELTA = _struct("text_delta", text=str)
INPUT_DELTA = _struct("input_json_delta", partial_json=str)
THINKING = _struct("thinking_delta", thinking=str) | _struct("signature_delta", signature=str)
BLOCK_DELTA = _struct("content_block_delta", index=int, delta=TEXT_DELTA | INPUT_DELTA | THINKING)
ANTHROPIC = _union(
    BLOCK_DELTA, others="message_start content_block_start content_block_stop message_delta message_stop ping"
)


def _anthropic(event: Any, text: list[str], calls: dict[int, list[str]]) -> None:
    if type(event) is BLOCK_DELTA:
        delta = event.delta
        if type(delta) is TEXT_DELTA:
            text.append(delta.text)
        elif type(delta) is INPUT_DELTA:
            calls.setdefault(event.index, []).append(delta.partial_json)


STRING = (str | None, None)
CALL = _struct(index=int, id=STRING, function=_struct(name=STRING, arguments=(str, "")))
DELTA = _struct(role=STRING, content=STRING, refusal=STRING, reasoning_content=STRING, tool_calls=(list[CALL], []))
CHOICE = _struct(index=int, delta=DELTA, finish_reason=STRING)
CHAT_USAGE = _struct(prompt_tokens=int, completion_tokens=int, total_tokens=int)
CHAT = _struct(id=str, model=str, choices=list[CHOICE], usage=(CHAT_USAGE | None, None))


def _chat(event: Any, text: list[str], calls: dict[int, list[str]]) -> None:
    for choice in event.choices:
        delta = choice.delta
        if delta.content:
            text.append(delta.content)
        for call in delta.tool_calls:
            calls.setdefault(call.index, []).append(call.function.arguments)


OUTPUT_TEXT = _struct("response.output_text.delta", output_index=int, delta=str)
ARGUMENTS = _struct("response.function_call_arguments.delta", output_index=int, delta=str)
SUMMARY = _struct("response.reasoning_summary_text.delta", output_index=int, delta=str)
RESPONSES = _union(
    OUTPUT_TEXT,
    ARGUMENTS,
    SUMMARY,
    prefix="response.",
    others="created in_progress completed output_item.added output_item.done content_part.added content_part.done"
    " reasoning_summary_part.added reasoning_summary_part.done reasoning_summary_text.done"
    " output_text.done function_call_arguments.done",
)


def _responses(event: Any, text: list[str], calls: dict[int, list[str]]) -> None:
    if type(event) is OUTPUT_TEXT:
        text.append(event.delta)
    elif type(event) is ARGUMENTS:
        calls.setdefault(event.output_index, []).append(event.delta)


PARTIAL = _struct(jsonPath=str, stringValue=(str, ""))
FUNCTION = _struct(name=STRING, args=(dict[str, Any] | None, None), partialArgs=(list[PARTIAL], []))
PART = _struct(text=STRING, thought=(bool, False), functionCall=(FUNCTION | None, None))
CANDIDATE = _struct(content=_struct(parts=(list[PART], [])), finishReason=STRING)
COUNTS = _struct(promptTokenCount=int, candidatesTokenCount=int, thoughtsTokenCount=int, totalTokenCount=int)
GEMINI = _struct(candidates=list[CANDIDATE], usageMetadata=COUNTS, modelVersion=str, responseId=str)


def _gemini(event: Any, text: list[str], calls: dict[int, list[str]]) -> None:
    for candidate in event.candidates:
        for part in candidate.content.parts:
            if (call := part.functionCall) is not None:
                for entry in call.partialArgs:
                    calls.setdefault(0, []).append(entry.stringValue)
            elif part.text and not part.thought:
                text.append(part.text)


FLOORS = {
    "anthropic-messages": (ANTHROPIC, _anthropic),
    "openai-chat": (CHAT, _chat),
    "openai-responses": (RESPONSES, _responses),
    "gemini-generate": (GEMINI, _gemini),
}


def floor(protocol: str) -> Callable[[list[bytes]], Folded]:
    """A function from chunks (of at least four bytes, but for the last) to the text and the fragments."""
    shape, fold = FLOORS[protocol]
    decode = Decoder(shape).decode
    blank = BLANK_LINE.get(protocol, b"\n\n")

    def run(chunks: list[bytes]) -> Folded:
        text: list[str] = []
        calls: dict[int, list[str]] = {}
        rest: list[bytes] = []  # pieces of the unfinished event, joined once it is whole
        for chunk in chunks:
            if rest:
                rest.append(chunk)
                if blank not in rest[-2][-3:] + chunk:
                    continue
                chunk = b"".join(rest)
            *frames, tail = chunk.split(blank)
            rest = [tail] if tail else []
            for frame in frames:
                data = frame.partition(b"data: ")[2]
                if data != b"[DONE]":
                    fold(decode(data), text, calls)
        return text, calls

    return run
