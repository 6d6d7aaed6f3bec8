"""One rich context in every dialect: the exact body, as `dialect_bodies.json` has it.

The table is held against the reference of the dialects, too, where that is at hand: what it says of a server's fields
must be true of the server's row.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from schemas import valid
from sseam import models
from sseam.content import TextContent
from sseam.context import Context, Options, OutputSchema, ToolResultMessage, UserMessage
from sseam.errors import RequestError
from sseam.message import Message, TextBlock, ThinkingBlock, ToolCall
from sseam.protocols.openai_chat import request
from sseam.protocols.openai_chat.request_dialects import DIALECTS
from sseam.tools import Tool, ToolResult

TABLE: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("dialect_bodies.json").read_text("utf-8"))
CLOSED = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
DETAIL = {"type": "reasoning.text", "text": "hm", "index": 0, "signature": "s"}
ANSWER = Message(
    protocol="openai-chat",
    complete=True,
    stop_reason="tool_use",
    content=(
        ThinkingBlock(thinking="hm", extra={"reasoning_details": [DETAIL]}),
        TextBlock(text="I look."),
        ToolCall(id="call_1", name="look", arguments={"city": "Rome"}, arguments_json='{"city":"Rome"}'),
    ),
)
RESULT = ToolResult(call_id="call_1", name="look", content=(TextContent("sunny"),))
SAMPLING: dict[str, Any] = {"temperature": 0.5, "top_k": 40, "seed": 7, "stop_sequences": ("END",)}
# With a tool, its history and everything that is asked for beside it; and with structured output.
CONTEXTS = {
    "calls": (
        Context(
            system="Be brief.",
            messages=(UserMessage("Rome?"), ANSWER, ToolResultMessage((RESULT,)), UserMessage("And now?")),
            tools=(Tool(name="look", description="looks", schema=CLOSED, strict=True),),
        ),
        Options(max_output_tokens=9_000, thinking="medium", tool_choice="auto", parallel_tool_calls=False, **SAMPLING),
    ),
    "output": (
        Context(system="Be brief.", messages=(UserMessage("Rome?"),)),
        Options(max_output_tokens=100, thinking="off", output=OutputSchema(schema=CLOSED)),
    ),
}


def made(dialect: str, context: str) -> Any:
    """The body, or the words of the refusal."""
    of = models.compatible("m", base_url="http://h/v1", dialect=dialect)
    try:
        return valid("openai-chat", request.body(of, *CONTEXTS[context]), dialect)
    except RequestError as error:
        return str(error)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("context", CONTEXTS)
def test_the_body_in_every_dialect(dialect: str, context: str) -> None:
    assert made(dialect, context) == TABLE[dialect][context]


def test_no_row_is_for_a_dialect_that_is_gone() -> None:
    assert set(TABLE) == set(DIALECTS)


# ---- the table against the reference

REASONING_FIELDS = {"reasoning_content", "reasoning", "reasoning_text", "reasoning_details", "content"}


@pytest.fixture(scope="module")
def reference(shared: Path) -> dict[str, dict[str, Any]]:
    return json.loads((shared / "protocols" / "openai-chat.dialects.json").read_text("utf-8"))["dialects"]


def words(listed: Any) -> set[str]:
    """Its words without what stands in brackets behind them."""
    return {one.split(" ")[0] for one in ([listed] if isinstance(listed, str) else listed)}


@pytest.mark.parametrize("dialect", TABLE)
def test_the_table_says_what_the_reference_says(dialect: str, reference: dict[str, dict[str, Any]]) -> None:
    machine = reference[dialect]["machine"]
    for body in TABLE[dialect].values():
        if isinstance(body, str):
            continue
        limits = {"max_tokens", "max_completion_tokens"} & set(body)
        assert len(limits) == 1
        assert machine["token_field"] in (*limits, "both")
        assert body["messages"][0]["role"] == "system"  # of a model that is not known to reason
        asked = "stream_options" in body
        assert asked or machine["stream_options"] != "needed"
        assert not asked or machine["stream_options"] != "never"


@pytest.mark.parametrize("dialect", TABLE)
def test_tools_and_reasoning_go_as_the_reference_says(dialect: str, reference: dict[str, dict[str, Any]]) -> None:
    known = reference[dialect]
    body = TABLE[dialect]["calls"]
    if isinstance(body, str):
        assert known["tool_choice"] == []
        return
    assert ("tool_choice" in body) == ("auto" in words(known["tool_choice"]))
    (tool,) = body["tools"]
    assert "strict" not in tool["function"] or known["machine"]["strict_tools"] in ("yes", "conditional")
    # llama.cpp makes a grammar of every schema, and needs no such field.
    assert "strict" in tool["function"] or known["machine"]["strict_tools"] != "yes" or dialect == "llama-cpp"
    turn = body["messages"][2]
    sent = REASONING_FIELDS & set(turn) - ({"content"} if isinstance(turn["content"], str) else set())
    field = known["machine"]["reasoning_replay_field"]
    # Both are proofs that this answer did not come with.
    want = {"reasoning_opaque": {"reasoning_text"}, "extra_content": set(), None: set()}.get(field, {field})
    assert sent == want


@pytest.mark.parametrize("dialect", TABLE)
def test_structured_output_is_asked_for_as_the_reference_says(
    dialect: str, reference: dict[str, dict[str, Any]]
) -> None:
    formats = words(reference[dialect]["response_format"])
    body = TABLE[dialect]["output"]
    if isinstance(body, str):
        assert not formats & {"json_object", "json_schema"}
    else:
        best = "json_schema" if formats & {"json_schema", "per"} else "json_object"
        assert body["response_format"]["type"] == best
