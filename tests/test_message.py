"""A message goes through JSON and comes back equal."""

from __future__ import annotations

import msgspec
import pytest

import sseam

CALL = sseam.ToolCall(
    id="a",
    name="f",
    arguments={"n": 9007199254740993, "s": "ü\u2028🌍"},
    arguments_json='{"n":1}',
    extra={"caller": {}},
)
MESSAGE = sseam.Message(
    id="m",
    model="model",
    protocol="anthropic-messages",
    content=(
        sseam.ThinkingBlock(thinking="Hm, ", signature="c2ln"),
        sseam.RedactedThinkingBlock(data="x"),
        sseam.ThinkingBlock(thinking="so."),
        sseam.TextBlock(text="Hi ", citations=({"url": "u"},), extra={"id": 1}),
        sseam.ServerToolBlock(kind="web_search", raw={"a": [1]}),
        sseam.OpaqueBlock(kind="new", raw={}, deltas=({"x": 1},)),
        sseam.TextBlock(text="there"),
        sseam.RefusalBlock(text="No."),
        CALL,
    ),
    withheld=(sseam.WithheldCall(id="b", name="g", arguments_json="{", reason="open", index=9),),
    stop_reason="tool_use",
    raw_stop_reason="tool_use",
    usage=sseam.Usage(input_tokens=0, output_tokens=3, raw={"x": None}),
    deviations=(sseam.Deviation(code="index_gap", grade="soft", count=2),),
    complete=True,
    raw={"container": {"id": "c"}},
    alternatives=(sseam.Message(content=(sseam.TextBlock(text="Or"),)),),
)


def test_round_trip() -> None:
    assert sseam.Message.from_json(MESSAGE.to_json()) == MESSAGE
    assert sseam.Message.from_json(MESSAGE.to_json().decode()) == MESSAGE
    assert sseam.Message.from_json(sseam.Message().to_json()) == sseam.Message()


def test_views_join_their_blocks_with_nothing_between() -> None:
    assert MESSAGE.text == "Hi there"
    assert MESSAGE.thinking == "Hm, so."
    assert MESSAGE.refusal == "No."
    assert MESSAGE.tool_calls == (CALL,)


def test_big_integers_survive() -> None:
    big = msgspec.structs.replace(CALL, arguments={"n": 2**80, "deep": [{"n": -(2**70)}]})
    message = sseam.Message(content=(big,))
    assert sseam.Message.from_json(message.to_json()) == message


def test_anything_else_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        sseam.Message.from_json(b'{"content": [{"type": "new"}]}')
