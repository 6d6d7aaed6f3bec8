"""Whatever a history has been through, a request made from it is one that the service takes, or it is refused here."""

from __future__ import annotations

import importlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas import valid
from sseam import models
from sseam.content import DocumentContent, ImageContent, TextContent
from sseam.context import Context, Options, ToolResultMessage, UserMessage
from sseam.errors import RequestError
from sseam.message import (
    Message,
    RedactedThinkingBlock,
    RefusalBlock,
    ServerToolBlock,
    TextBlock,
    ThinkingBlock,
    ToolCall,
)
from sseam.protocols import NAMES
from sseam.tools import ToolResult

# Models that take a history with any end, and calls without a proof.
MODELS = {
    "anthropic-messages": models.anthropic("claude-3-5-sonnet-latest"),
    "openai-chat": models.openai("gpt-4o"),
    "openai-responses": models.openai_responses("gpt-5"),
    "gemini-generate": models.gemini("gemini-2.5-pro"),
    "gemini-interactions": models.gemini_interactions("gemini-2.5-pro"),
}
FOREIGN = "another-model"

texts = st.sampled_from(["", " ", "\n", "a", "b c", "é\u2028"])
ids = st.sampled_from(["c1", "c2", "call|3", "functions.f:0", "x" * 70])
proofs = st.sampled_from([None, "", "s"])


def blocks(protocol):
    # What only Responses gives with its items.
    def item(**fields):
        return st.sampled_from([{}, fields]) if protocol == "openai-responses" else st.just({})

    reasoning = {"thinking": texts, "signature": proofs, "extra": item(id="rs_1", encrypted_content="e")}
    call = {"id": ids, "name": st.just("f"), "arguments": st.just({}), "arguments_json": st.just("{}")}
    redacted = st.builds(RedactedThinkingBlock, data=st.just("d"), extra=item(id="rs_2").filter(bool))
    return st.one_of(
        st.builds(TextBlock, text=texts, extra=item(id="msg_1", status="completed")),
        st.builds(RefusalBlock, text=st.just("no")),
        st.builds(ThinkingBlock, **reasoning),
        redacted if protocol == "openai-responses" else st.builds(RedactedThinkingBlock, data=st.just("d")),
        st.builds(ToolCall, **call, extra=item(id="fc_1")),
        *([st.sampled_from([SEARCH, FOUND])] if protocol == "anthropic-messages" else []),
    )


SEARCH = ServerToolBlock(kind="server_tool_use", raw={"type": "server_tool_use", "id": "s1", "name": "search"})
FOUND = ServerToolBlock(kind="web_search_tool_result", raw={"type": "web_search_tool_result", "tool_use_id": "s1"})


parts = st.one_of(
    st.builds(TextContent, texts),
    st.just(ImageContent(media_type="image/png", data="aGk=")),
    st.just(ImageContent(media_type="image/svg+xml", data="aGk=")),
    st.builds(DocumentContent, media_type=st.just("text/plain"), text=texts),
    st.just(DocumentContent(media_type="application/zip", data="aGk=")),
)
contents = st.lists(parts, max_size=2).map(tuple)
results = st.builds(ToolResult, call_id=ids, name=st.just("f"), content=contents, is_error=st.booleans())


def messages(protocol):
    return st.one_of(
        st.builds(UserMessage, st.one_of(texts, contents)),
        st.builds(ToolResultMessage, st.lists(results, max_size=2).map(tuple)),
        st.builds(
            Message,
            content=st.lists(blocks(protocol), max_size=4).map(tuple),
            protocol=st.sampled_from([protocol, "", *MODELS]),
            model=st.sampled_from([MODELS[protocol].id, FOREIGN, ""]),
            complete=st.sampled_from([True, True, False]),
            stop_reason=st.sampled_from(["end_turn", "tool_use", "refusal", "pause_turn"]),
        ),
    )


@pytest.mark.parametrize("protocol", MODELS)
@settings(max_examples=60)
@given(data=st.data())
def test_every_history_gives_a_body_that_the_service_takes(protocol, data):
    history = data.draw(st.lists(messages(protocol), max_size=8))
    request = importlib.import_module(f"sseam.protocols.{NAMES[protocol]}.request")
    try:
        body = request.body(MODELS[protocol], Context(messages=tuple(history)), Options(skip_signatures=True))
    except RequestError as error:
        if any(told in str(error) for told in REFUSED):
            return
        raise
    wire = json.dumps(valid(protocol, body))
    calls, answers = (wire.count(f'"{name}"') for name in COUNTED[protocol])
    assert calls == answers


REFUSED = ("no message to send", "have the id", "two results", "begins with the model", "no tool call before it")

# How each protocol names a call, and a result.
COUNTED = {
    "anthropic-messages": ("tool_use", "tool_result"),
    "openai-chat": ("arguments", "tool_call_id"),
    "openai-responses": ("function_call", "function_call_output"),
    "gemini-generate": ("functionCall", "functionResponse"),
    "gemini-interactions": ("function_call", "function_result"),
}
