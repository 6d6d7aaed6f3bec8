"""Recorded answers, put into a history and sent on: to the service that gave them, and to every other one."""

from __future__ import annotations

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


def body(protocol: str, id: str, context: Context) -> dict[str, Any]:
    request = importlib.import_module(f"sseam.protocols.{NAMES[protocol]}.request")
    return valid(protocol, request.body(MODELS[protocol][0](id), context, Options(skip_signatures=True)))


def test_an_answer_goes_back_to_its_service_with_every_proof(answers):
    sent = 0
    for file, answer in answers:
        wire = json.dumps(body(answer.protocol, answer.model or MODELS[answer.protocol][1], history(answer)))
        if answer.complete and answer.stop_reason in ("end_turn", "tool_use"):
            lost = [proof for proof in proofs(answer) if json.dumps(proof) not in wire]
            assert not lost, file
            sent += 1
    assert sent > 400


def proofs(answer: Message) -> list[str]:
    """What the service made for itself, and wants back as it came. Chat Completions of the maker has none."""
    found: list[str | None] = []
    blocks = [] if answer.protocol == "openai-chat" else list(answer.content)
    while blocks and isinstance(blocks[-1], ThinkingBlock):  # what it led to never came
        blocks.pop()
    # Items are sent as new ones where reasoning of their answer has no proof.
    lost = any(isinstance(block, ThinkingBlock) and not block.extra.get("encrypted_content") for block in blocks)
    renamed = answer.protocol == "openai-responses" and lost
    for block in blocks:
        match block:
            case ThinkingBlock() | TextBlock() | ToolCall():
                found += (block.signature, block.extra.get("encrypted_content"))
            case RedactedThinkingBlock():
                found.append(block.data)
            case ServerToolBlock() | OpaqueBlock():
                found += (
                    None if renamed else block.raw.get("id"),
                    block.raw.get("thoughtSignature"),
                    block.raw.get("encrypted_content"),
                )
    return [proof for proof in found if proof]


@pytest.mark.parametrize("protocol", MODELS)
def test_an_answer_is_handed_over_to_another_service(answers, protocol):
    for file, answer in answers:
        if answer.protocol != protocol:
            wire = body(protocol, MODELS[protocol][1], history(answer))
            texts = [block.text for block in answer.content if isinstance(block, TextBlock) and block.text.strip()]
            refused = answer.stop_reason in ("refusal", "content_filter")
            assert refused or all(json.dumps(text)[1:-1] in json.dumps(wire) for text in texts), file
