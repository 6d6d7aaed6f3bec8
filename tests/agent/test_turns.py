"""What follows from an answer, as a table."""

from __future__ import annotations

import pytest

from sseam.agent.turns import (
    AFTER,
    GO_ON,
    Next,
    accepted,
    add_usage,
    invalid_call_turn,
    is_reportable,
    judge,
    kept_text,
)
from sseam.context import ToolResultMessage
from sseam.errors import InvalidToolCall, StopReasonError
from sseam.message import Message, RefusalBlock, TextBlock, ThinkingBlock, Usage
from sseam.model import ModelDone
from sseam.stop import NEUTRAL
from sseam.testing import tool_call

TEXT = TextBlock(text="Hm")
CALL = tool_call("a", "look")
CONTENTS = {"nothing": (), "text": (TEXT,), "call": (CALL,), "text and call": (TEXT, CALL)}

# reason → what follows for each content; None: an error. With every reason accepted that can be.
EXPECTED = {
    "end_turn": (None, Next.ANSWER, None, None),
    "stop_sequence": (None, Next.ANSWER, None, None),
    "tool_use": (None, None, Next.TOOLS, Next.TOOLS),
    "pause_turn": (Next.RESEND, Next.RESEND, None, None),
    "compaction": (Next.RESEND, Next.RESEND, None, None),
    "max_tokens": (None, Next.CONTINUE, None, Next.CONTINUE),
}
EVERYTHING = accepted(stop_sequences=("x",), continues=True)


@pytest.mark.parametrize("reason", sorted(NEUTRAL))
@pytest.mark.parametrize("content", CONTENTS)
def test_every_reason_with_every_content(reason: str, content: str) -> None:
    """B184: a reason that is not in the table never leads on."""
    expected = dict(zip(CONTENTS, EXPECTED.get(reason, (None,) * 4), strict=True))[content]
    done = ModelDone(reason, Message(content=CONTENTS[content], raw_stop_reason="raw"))
    if expected is None:
        with pytest.raises(StopReasonError) as caught:
            judge(done, EVERYTHING)
        assert caught.value.partial == done.message
        assert (caught.value.stop_reason, caught.value.raw_stop_reason) == (reason, "raw")
    else:
        following, message = judge(done, EVERYTHING)
        assert following is expected
        assert message.complete
        assert message.stop_reason == reason


def test_the_table_knows_only_neutral_reasons() -> None:
    assert set(AFTER) <= NEUTRAL
    assert set(EVERYTHING) | {"end_turn", "tool_use"} == set(AFTER)


@pytest.mark.parametrize(
    ("stop_sequences", "continues", "reasons"),
    [
        ((), False, ("pause_turn", "compaction")),
        (("x",), False, ("pause_turn", "compaction", "stop_sequence")),
        ((), True, ("pause_turn", "compaction", "max_tokens")),
    ],
)
def test_what_is_accepted(stop_sequences: tuple[str, ...], continues: bool, reasons: tuple[str, ...]) -> None:
    assert accepted(stop_sequences=stop_sequences, continues=continues) == reasons


def test_kept_text_has_no_calls() -> None:
    """B186."""
    message = Message(content=(TEXT, CALL, TEXT), stop_reason="max_tokens", complete=True)
    assert kept_text(message).content == (TEXT, TEXT)
    assert "cut off" in str(GO_ON.content)


def test_a_refusal_is_told() -> None:
    done = ModelDone("end_turn", Message(content=(RefusalBlock(text="I cannot"),)))
    with pytest.raises(StopReasonError, match="the model declined: 'I cannot'"):
        judge(done, ())


def test_the_turn_of_an_invalid_call() -> None:
    partial = Message(content=(ThinkingBlock(thinking="cut"), TEXT, CALL), stop_reason="max_tokens")
    error = InvalidToolCall("not JSON", id="b", name="look", arguments_json="{" * 500, partial=partial)
    assert is_reportable(error)
    message, results = invalid_call_turn(error, [])
    assert isinstance(message, Message)
    assert [call.id for call in message.tool_calls] == ["a", "b"]
    assert message.content[0] == TEXT
    assert message.stop_reason == "tool_use"
    assert isinstance(results, ToolResultMessage)
    assert [result.call_id for result in results.results] == ["a", "b"]
    assert all(result.is_error for result in results.results)
    assert len(results.results[1].text) < 400, "long arguments are shown by head and tail"


@pytest.mark.parametrize(
    ("id", "name", "expected"), [("b", "look", True), ("", "look", False), ("b", "", False), ("a", "look", False)]
)
def test_what_can_be_reported(id: str, name: str, expected: bool) -> None:
    assert is_reportable(InvalidToolCall("x", id=id, name=name, partial=Message(content=(CALL,)))) == expected
    assert is_reportable(InvalidToolCall("x", id="b", name="look"))


def test_usage_adds_up_and_unknown_stays_unknown() -> None:
    """B228."""
    first = Usage(input_tokens=1, output_tokens=2, raw={"x": 1})
    second = Usage(input_tokens=10, reasoning_tokens=3)
    assert add_usage(first, second) == Usage(input_tokens=11, output_tokens=2, reasoning_tokens=3)
    assert add_usage(Usage(), Usage()) == Usage()
