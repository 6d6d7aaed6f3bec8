"""Recorded answers, put into a history and sent on: to the service that gave them, and to every other one."""

from __future__ import annotations

import collections
import importlib
import json
from typing import Any

import pytest

import sseam
from schemas import valid
from sseam import models
from sseam.content import TextContent
from sseam.context import Context, Options, ToolResultMessage, UserMessage
from sseam.handover import paired_server_tools
from sseam.message import (
    Message,
    OpaqueBlock,
    RedactedThinkingBlock,
    ServerToolBlock,
    TextBlock,
    ThinkingBlock,
    ToolCall,
)
from sseam.protocols import NAMES
from sseam.stop import NEUTRAL
from sseam.tools import ToolResult

MODELS = {
    "anthropic-messages": (models.anthropic, "claude-opus-4-8"),
    "openai-chat": (models.openai, "gpt-5"),
    "openai-responses": (models.openai_responses, "gpt-5"),
    "gemini-generate": (models.gemini, "gemini-3-pro"),
    "gemini-interactions": (models.gemini_interactions, "gemini-3-pro"),
}


@pytest.fixture(scope="module")
def answers(shared) -> list[tuple[str, Message]]:
    """Every recorded answer, as far as it was received, with the name of its file."""
    rows = json.loads((shared / "corpus" / "manifest.json").read_text(encoding="utf-8"))
    rows = rows if isinstance(rows, list) else rows["streams"]
    found: list[tuple[str, Message]] = []
    for row in rows:
        if not row["file"].endswith(".sse"):
            continue
        data = (shared / "corpus" / row["file"]).read_bytes()
        try:
            found.append((row["file"], sseam.parse(data, row["protocol"], accept=tuple(NEUTRAL))))
        except sseam.SseamError as error:
            if error.partial is not None:
                found.append((row["file"], error.partial))
    return found


def history(answer: Message) -> Context:
    results = tuple(
        ToolResult(call_id=call.id, name=call.name, content=(TextContent("r"),)) for call in answer.tool_calls
    )
    # A server's tool that was left open goes on where nothing but results follows.
    open_turn = paired_server_tools(answer.content) != answer.content
    said = () if open_turn and results else (UserMessage("go on"),)
    return Context(messages=(UserMessage("q"), answer, ToolResultMessage(results), *said))


def request_of(protocol: str) -> Any:
    return importlib.import_module(f"sseam.protocols.{NAMES[protocol]}.request")


def body(protocol: str, id: str, context: Context) -> dict[str, Any]:
    return valid(protocol, request_of(protocol).body(MODELS[protocol][0](id), context, Options(skip_signatures=True)))


def test_an_answer_goes_back_to_its_service_with_every_proof(answers):
    sent = 0
    for file, answer in answers:
        wire = json.dumps(body(answer.protocol, answer.model or MODELS[answer.protocol][1], history(answer)))
        if answer.complete and answer.stop_reason in ("end_turn", "tool_use"):
            at = 0  # they stand in the order in which they came
            for block in proofs(answer):
                places = [wire.find(json.dumps(proof), at) for proof in block]
                assert min(places, default=0) >= 0, file
                at = max(places, default=at)
            sent += 1
    assert sent > 400


def proofs(answer: Message) -> list[list[str]]:
    """What the service made for itself, and wants back as it came, block by block.

    Chat Completions of the maker has none; those of others go back by `test_reasoning_goes_back_to_its_server`.
    """
    found: list[list[str | None]] = []
    blocks = [] if answer.protocol == "openai-chat" else list(answer.content)
    while blocks and isinstance(blocks[-1], ThinkingBlock):  # what it led to never came
        blocks.pop()
    # Items are sent as new ones where reasoning of their answer has no proof.
    lost = any(isinstance(block, ThinkingBlock) and not block.extra.get("encrypted_content") for block in blocks)
    renamed = answer.protocol == "openai-responses" and lost
    for block in blocks:
        match block:
            case ThinkingBlock() | TextBlock() | ToolCall():
                found.append([block.signature, block.extra.get("encrypted_content")])
            case RedactedThinkingBlock():
                found.append([block.data])
            case ServerToolBlock() | OpaqueBlock():
                own = None if renamed else block.raw.get("id")
                found.append([own, block.raw.get("thoughtSignature"), block.raw.get("encrypted_content")])
    return [[proof for proof in block if proof] for block in found]


@pytest.mark.parametrize("protocol", MODELS)
def test_an_answer_is_handed_over_to_another_service(answers, protocol):
    for file, answer in answers:
        if answer.protocol != protocol:
            wire = body(protocol, MODELS[protocol][1], history(answer))
            texts = [block.text for block in answer.content if isinstance(block, TextBlock) and block.text.strip()]
            refused = answer.stop_reason in ("refusal", "content_filter")
            assert refused or all(json.dumps(text)[1:-1] in json.dumps(wire) for text in texts), file


# ---- reasoning of compatible servers, which goes back in a field of each one's own

# What `openai-chat.dialects.json` calls a vendor of the corpus by another name.
DIALECT_OF = {"llama.cpp": "llama-cpp", "ollama-cloud": "ollama"}
# The field in which it came, and goes back on every turn.
KEPT = {
    "openrouter": "reasoning_details",
    "vercel-gateway": "reasoning_details",
    **dict.fromkeys(("deepseek", "alibaba", "zai", "llama-cpp"), "reasoning_content"),
    **dict.fromkeys(("groq", "ollama"), "reasoning"),
}


def deltas(data: bytes) -> list[dict[str, Any]]:
    """The deltas of the first choice, read without the library."""
    lines = [line[5:].strip() for line in data.decode().splitlines() if line.startswith("data:")]
    chunks = [json.loads(line) for line in lines if line.startswith("{")]
    choices = [choice for chunk in chunks for choice in chunk.get("choices") or () if choice.get("index", 0) == 0]
    return [choice.get("delta") or {} for choice in choices]


def joined(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Fragments of one text or summary that follow each other as one; what is encrypted stays whole."""
    found: list[dict[str, Any]] = []
    for item in items:
        key = {"reasoning.text": "text", "reasoning.summary": "summary"}.get(item["type"])
        last = found[-1] if found else {}
        if key and (last.get("type"), last.get("index")) == (item["type"], item.get("index")):
            text = (last.get(key) or "") + (item.get(key) or "")
            found[-1] = {**last, **{name: value for name, value in item.items() if value is not None}, key: text}
        else:
            found.append(item)
    return found


def test_reasoning_goes_back_to_its_server(shared):
    rows = json.loads((shared / "corpus" / "manifest.json").read_text(encoding="utf-8"))
    rows = rows if isinstance(rows, list) else rows["streams"]
    seen: collections.Counter[str] = collections.Counter()
    for row in rows:
        dialect = DIALECT_OF.get(row["vendor"], row["vendor"])
        field = KEPT.get(dialect)
        if row["protocol"] != "openai-chat" or not row["file"].endswith(".sse") or field is None:
            continue
        data = (shared / "corpus" / row["file"]).read_bytes()
        try:
            answer = sseam.parse(data, row["protocol"], dialect=dialect)
        except sseam.SseamError:
            continue
        came = [delta[field] for delta in deltas(data) if delta.get(field)]
        if not came:
            continue
        want = joined([item for items in came for item in items]) if field == "reasoning_details" else "".join(came)
        of = models.compatible(answer.model or "m", base_url="http://h/v1", dialect=dialect)
        sent = request_of("openai-chat").body(of, history(answer), Options())
        (turn,) = (message for message in sent["messages"] if message["role"] == "assistant")
        assert turn.get(field) == want, row["file"]
        seen[dialect] += 1
    assert set(seen) == set(KEPT)
    assert seen.total() > 25
