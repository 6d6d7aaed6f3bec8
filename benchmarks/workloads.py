"""Streams to measure: a neutral script of blocks, written out as each protocol's wire events, and ways to cut them.

A protocol is added by one encoder and its row in `ENCODERS`; every workload then exists for it.
"""

import json
import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

BLANK_LINE = {"gemini-generate": b"\r\n\r\n"}  # all others end an event with LF LF


class Block(NamedTuple):
    """One block of an answer. `kind` is "thinking", "text" or "tool"; a tool's pieces make up one string argument."""

    kind: str
    pieces: list[str]
    name: str = ""
    whole: bool = False  # Gemini: the call comes in one part, not as streamed partial arguments


class Workload(NamedTuple):
    """A stream as events of bytes, each with its blank line, and what a reader must make of it."""

    events: list[bytes]
    text: str
    arguments: list[dict[str, str]]


PATH = "src/report.py"
TEXT = """the parser keeps what it was given, in order and unread until its block ends; nothing else is promised “here”.
a naïve client copies all of it again for each fragment: 250 ms at first, then "minutes" or hours"""
WORDS = TEXT.split()

# Fragments or deltas of each workload: text; eight parallel tools; one argument of 20 characters a fragment; thinking,
# text and three tools; a short stream, which counts all its events.
SIZES = {"W1": 2_000, "W2": 2_000, "W3": 100_000, "W4": 2_000, "W5": 12}


def _pieces(count: int, rng: random.Random) -> list[str]:
    """Pieces of the size that services send: one or two words, some with line breaks or non-ASCII letters."""
    return [" " + " ".join(rng.choices(WORDS, k=rng.randint(1, 2))) for _ in range(count)]


def _tool(name: str, fragments: int, rng: random.Random, **fields: bool) -> Block:
    return Block("tool", _pieces(fragments - 2, rng), name, **fields)  # two fragments open and close the object


def _script(workload: str, size: int, rng: random.Random) -> list[Block]:
    match workload:
        case "W2":
            return [_tool(f"edit_file_{n}", size // 8, rng) for n in range(8)]
        case "W3":
            pool = ["".join(rng.choices("abcdefghijklmnop rstuvwxyz", k=20)) for _ in range(64)]
            return [Block("tool", rng.choices(pool, k=size - 2), "write_file")]
        case "W4":
            thinking, text = (Block(kind, _pieces(size * 2 // 5, rng)) for kind in ("thinking", "text"))
            return [thinking, text, *(_tool(f"run_{n}", size // 15, rng, whole=True) for n in range(3))]
        case _:
            return [Block("text", _pieces(size, rng))]


def build(protocol: str, workload: str, size: int) -> Workload:
    """The workload in the protocol, the same bytes at every call; `size` counts as in `SIZES`."""
    rng = random.Random(f"{protocol} {workload}")
    encode = ENCODERS[protocol]
    if workload == "W5":
        size -= len(list(encode([Block("text", [])], rng)))
    script = _script(workload, size, rng)
    text = "".join("".join(block.pieces) for block in script if block.kind == "text")
    arguments = [{"path": PATH, "content": "".join(block.pieces)} for block in script if block.kind == "tool"]
    return Workload(list(encode(script, rng)), text, arguments)


CHUNKINGS = ("event", "16384", "64", "whole")


def cut(events: list[bytes], chunking: str) -> list[bytes]:
    """The stream as chunks: one event each, pieces of so many bytes, or one chunk."""
    if chunking == "event":
        return events
    body = b"".join(events)
    step = len(body) if chunking == "whole" else int(chunking)
    return [body[start : start + step] for start in range(0, len(body), step)]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _fragments(block: Block) -> list[str]:
    """The pieces of a delta each: text as it is, a tool's argument as pieces of JSON text."""
    if block.kind != "tool":
        return block.pieces
    inner = [_json(piece)[1:-1] for piece in block.pieces]
    return [f'{{"path": "{PATH}", "content": "', *inner, '"}']


def _id(prefix: str, length: int, rng: random.Random) -> str:
    return prefix + f"{rng.getrandbits(length * 4):0{length}x}"


def _anthropic(script: list[Block], rng: random.Random) -> Iterator[bytes]:
    def event(kind: str, **fields: Any) -> bytes:
        # the service pads most payloads with 1 to 15 spaces before the last brace
        return f"event: {kind}\ndata: {_json({'type': kind, **fields})[:-1]}{' ' * rng.randint(1, 15)}}}\n\n".encode()

    usage = {"input_tokens": 512, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1}
    message = {"id": _id("msg_", 24, rng), "type": "message", "role": "assistant", "model": "claude-sonnet-4-5"}
    yield event("message_start", message={**message, "content": [], "stop_reason": None, "usage": usage})
    for index, block in enumerate(script):
        start: dict[str, Any] = {"type": block.kind, block.kind: ""}
        kind, field = f"{block.kind}_delta", block.kind
        if block.kind == "tool":
            start = {"type": "tool_use", "id": _id("toolu_", 24, rng), "name": block.name, "input": {}}
            kind, field = "input_json_delta", "partial_json"
        yield event("content_block_start", index=index, content_block=start)
        if index == 0:
            yield b'event: ping\ndata: {"type": "ping"}\n\n'
        for piece in _fragments(block):
            yield event("content_block_delta", index=index, delta={"type": kind, field: piece})
        if block.kind == "thinking":
            signature = {"type": "signature_delta", "signature": _id("", 360, rng)}
            yield event("content_block_delta", index=index, delta=signature)
        yield event("content_block_stop", index=index)
    reason = "tool_use" if any(block.kind == "tool" for block in script) else "end_turn"
    delta = {"stop_reason": reason, "stop_sequence": None}
    yield event("message_delta", delta=delta, usage={**usage, "output_tokens": 2048})
    yield event("message_stop")


def _openai_chat(script: list[Block], rng: random.Random) -> Iterator[bytes]:
    head = {"id": _id("chatcmpl-", 28, rng), "object": "chat.completion.chunk", "created": 1_764_000_000}
    head |= {"model": "gpt-5-mini-2025-08-07", "service_tier": "default", "system_fingerprint": None}

    def chunk(choices: list[Any], usage: Any = None) -> bytes:
        padding = _id("", rng.randint(4, 14), rng)
        return f"data: {_json({**head, 'choices': choices, 'usage': usage, 'obfuscation': padding})}\n\n".encode()

    def delta(fields: dict[str, Any], finish: str | None = None) -> bytes:
        return chunk([{"index": 0, "delta": fields, "logprobs": None, "finish_reason": finish}])

    yield delta({"role": "assistant", "content": "", "refusal": None})
    tools = 0
    for block in script:
        if block.kind == "tool":
            function = {"name": block.name, "arguments": ""}
            call = {"index": tools, "id": _id("call_", 24, rng), "type": "function", "function": function}
            yield delta({"tool_calls": [call]})
            for piece in _fragments(block):
                yield delta({"tool_calls": [{"index": tools, "function": {"arguments": piece}}]})
            tools += 1
        else:
            field = {"text": "content", "thinking": "reasoning_content"}[block.kind]
            for piece in block.pieces:
                yield delta({field: piece})
    yield delta({}, "tool_calls" if tools else "stop")
    yield chunk([], {"prompt_tokens": 512, "completion_tokens": 2048, "total_tokens": 2560})
    yield b"data: [DONE]\n\n"


def _openai_responses(script: list[Block], rng: random.Random) -> Iterator[bytes]:
    number = iter(range(10_000_000))

    def event(kind: str, **fields: Any) -> bytes:
        payload = {"type": f"response.{kind}", "sequence_number": next(number), **fields}
        return f"event: response.{kind}\ndata: {_json(payload)}\n\n".encode()

    response: dict[str, Any] = {"id": _id("resp_", 48, rng), "object": "response", "created_at": 1_764_000_000}
    response |= {"status": "in_progress", "error": None, "incomplete_details": None, "model": "gpt-5.1", "output": []}
    response |= {"parallel_tool_calls": True, "temperature": 1.0, "tool_choice": "auto", "tools": [], "usage": None}
    yield event("created", response=response)
    yield event("in_progress", response=response)
    output: list[Any] = []
    for index, block in enumerate(script):
        # names that differ by kind: the item's type, its field, the text's event, the part's event and type
        kind, field, text_event, part_event, part_type = {
            "tool": ("function_call", "arguments", "function_call_arguments", "", ""),
            "text": ("message", "content", "output_text", "content_part", "output_text"),
            "thinking": ("reasoning", "summary", "reasoning_summary_text", "reasoning_summary_part", "summary_text"),
        }[block.kind]
        tool, whole = block.kind == "tool", "".join(_fragments(block))
        item: dict[str, Any] = {"id": _id("item_", 48, rng), "type": kind, "status": "in_progress"}
        item |= {"call_id": _id("call_", 24, rng), "name": block.name} if tool else {}
        item |= {"role": "assistant"} if block.kind == "text" else {}
        place: dict[str, Any] = {"item_id": item["id"], "output_index": index}
        yield event("output_item.added", output_index=index, item={**item, field: "" if tool else []})
        if not tool:
            place |= {"summary_index" if block.kind == "thinking" else "content_index": 0}
            part = {"type": part_type} | ({"annotations": []} if block.kind == "text" else {})
            yield event(f"{part_event}.added", **place, part={**part, "text": ""})
        extra = {"logprobs": []} if block.kind == "text" else {}
        for piece in _fragments(block):
            padding = _id("", rng.randint(4, 14), rng)
            yield event(f"{text_event}.delta", **place, **extra, delta=piece, obfuscation=padding)
        yield event(f"{text_event}.done", **place, **extra, **{"arguments" if tool else "text": whole})
        if not tool:
            yield event(f"{part_event}.done", **place, part={**part, "text": whole})
        output.append({**item, "status": "completed", field: whole if tool else [{**part, "text": whole}]})
        yield event("output_item.done", output_index=index, item=output[-1])
    usage: dict[str, Any] = {"input_tokens": 512, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 2048}
    usage |= {"output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 2560}
    yield event("completed", response={**response, "status": "completed", "output": output, "usage": usage})


def _gemini_generate(script: list[Block], rng: random.Random) -> Iterator[bytes]:
    tail = {"modelVersion": "gemini-3-flash-preview", "responseId": _id("", 22, rng)}

    def chunk(part: dict[str, Any], finish: str | None = None) -> bytes:
        candidate: dict[str, Any] = {"content": {"parts": [part], "role": "model"}}
        candidate |= {"finishReason": finish, "index": 0} if finish else {"index": 0}
        usage = {"promptTokenCount": 512, "candidatesTokenCount": 41, "totalTokenCount": 572, "thoughtsTokenCount": 19}
        return f"data: {_json({'candidates': [candidate], 'usageMetadata': usage, **tail})}\r\n\r\n".encode()

    def partial(path: str, value: str, more: bool) -> bytes:
        entry = {"jsonPath": path, "stringValue": value} | ({"willContinue": True} if more else {})
        return chunk({"functionCall": {"partialArgs": [entry], "willContinue": True}})

    for block in script:
        if block.kind == "tool" and block.whole:
            arguments = {"path": PATH, "content": "".join(block.pieces)}
            yield chunk({"functionCall": {"name": block.name, "args": arguments}})
        elif block.kind == "tool":
            yield chunk({"functionCall": {"name": block.name, "willContinue": True}})
            yield partial("$.path", PATH, True)
            yield partial("$.path", "", False)
            for piece in block.pieces:
                yield partial("$.content", piece, True)
            yield partial("$.content", "", False)
            yield chunk({"functionCall": {}})
        else:
            for piece in block.pieces:
                yield chunk({"text": piece, "thought": True} if block.kind == "thinking" else {"text": piece})
    yield chunk({"text": ""}, "STOP")


ENCODERS: dict[str, Callable[[list[Block], random.Random], Iterator[bytes]]] = {
    "anthropic-messages": _anthropic,
    "openai-chat": _openai_chat,
    "openai-responses": _openai_responses,
    "gemini-generate": _gemini_generate,
}
