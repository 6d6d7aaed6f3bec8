"""What only states and messages can show. Streams are in `fixtures/`, one an edge row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest

import sseam
from sseam.protocols.gemini_generate import STOP_REASONS, decode, finish, initial, reduce, wire
from sseam.protocols.gemini_generate.reducer import _TABLE, BLOCK_REASONS
from sseam.stop import NEUTRAL

FIXTURES = Path(__file__).parents[3] / "fixtures" / "gemini-generate"


def chunk(*parts: Any, finish: str | None = None, index: int | None = None, **fields: Any) -> wire.Event:
    candidate: dict[str, Any] = {"content": {"parts": list(parts)}}
    candidate |= {} if finish is None else {"finishReason": finish}
    candidate |= {} if index is None else {"index": index}
    data = json.dumps({"candidates": [candidate | fields.pop("candidate", {})], **fields}).encode()
    return decode(sseam.Frame("message", data, "", None, 0, 0))


def after(*events: wire.Event, **options: Any) -> tuple[Any, list[sseam.Event]]:
    state, caused = initial(**options), []
    for event in events:
        state, more = reduce(state, event)
        caused += more
    return state, caused


def message(*events: wire.Event, **options: Any) -> sseam.Message:
    state, _ = after(*events, **options)
    last = finish(state)[1][-1]
    assert isinstance(last, sseam.Done), last
    return last.message


def text(value: str, **fields: Any) -> dict[str, Any]:
    return {"text": value, **fields}


def call(name: str, **fields: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, **fields}}


STOP = chunk(finish="STOP")


def test_every_event_has_its_arm() -> None:
    assert set(_TABLE) == {*get_args(wire.Event), wire.FullChunk}
    assert set(STOP_REASONS.values()) | set(BLOCK_REASONS.values()) <= NEUTRAL


@pytest.mark.parametrize("kind", _TABLE, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("last", [wire.Error("x"), None])
def test_nothing_comes_after_the_terminal_event(kind: type[Any], last: wire.Event | None) -> None:
    state, _ = after(chunk(text("a")), STOP)
    state, caused = finish(state) if last is None else reduce(state, last)
    assert isinstance(caused[-1], sseam.Done | sseam.Failed)
    event = kind({}) if kind in (wire.Error, wire.Unknown) else kind()
    assert reduce(state, event) == (state, ())
    assert reduce(state, chunk(text("b"))) == (state, ())
    assert finish(state) == (state, ())


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.sse")), ids=lambda path: path.stem)
def test_chunks_read_in_full_say_the_same(path: Path) -> None:
    """A chunk with a field that is not plain takes another way through the decoder and the reducer."""
    plain, full = initial(), initial()
    for frame in sseam.Framer().feed(path.read_bytes()):
        try:
            event = decode(frame)
            value = json.loads(frame.data)
        except (sseam.ProtocolError, ValueError):
            return
        if not isinstance(event, wire.Chunk) or b'"args"' in frame.data:
            return
        plain, first = reduce(plain, event)
        data = json.dumps(value | {"modelStatus": {"x": 1}}).encode()
        full, second = reduce(full, decode(sseam.Frame("message", data, "", None, 0, 0)))
        assert [event for event in first if type(event) is not sseam.Failed] == [
            event for event in second if type(event) is not sseam.Failed
        ]
    last, other = finish(plain)[1][-1:], finish(full)[1][-1:]
    assert [type(event) for event in last] == [type(event) for event in other]
    assert [event.message.content for event in last] == [event.message.content for event in other]  # type: ignore[union-attr]


def test_a_state_can_be_left_twice_in_different_directions() -> None:
    state, _ = after(chunk(text("a")))
    left, _ = reduce(state, chunk(text("left")))
    right, _ = reduce(state, chunk(text("right")))
    left, _ = reduce(left, chunk(text("!")))
    texts = [finish(reduce(one, STOP)[0])[1][0] for one in (state, left, right)]
    assert texts == [sseam.TextEnd(0, "a"), sseam.TextEnd(0, "aleft!"), sseam.TextEnd(0, "aright")]
    assert left != right


def test_streamed_arguments_are_shown_as_they_grow() -> None:
    def piece(value: str, *, more: bool = True) -> wire.Event:
        entry = {"jsonPath": "$.a", "stringValue": value} | ({"willContinue": True} if more else {})
        return chunk({"functionCall": {"partialArgs": [entry], "willContinue": True}})

    _, caused = after(
        chunk(call("f", willContinue=True)),
        piece("x\n"),
        piece("y"),
        piece("", more=False),
        chunk({"functionCall": {}}),
    )
    deltas = [event.arguments_json for event in caused if isinstance(event, sseam.ToolCallDelta)]
    assert deltas == ['{"a":"x\\n', "y", '"', "}"]
    end = caused[-1]
    assert isinstance(end, sseam.ToolCallEnd)
    assert end.call.arguments == {"a": "x\ny"}


@pytest.mark.parametrize("signed", [call("f"), text("", thought=True), text("x"), text("")])
def test_a_signature_stays_with_its_part(signed: dict[str, Any]) -> None:
    found = (
        message(chunk(text("a")), chunk({**signed, "thoughtSignature": "c2ln"}), chunk(text("b")), STOP)
        if ("text" in signed)
        else message(chunk(text("a")), chunk({**signed, "thoughtSignature": "c2ln"}), STOP)
    )
    assert [getattr(block, "signature", None) for block in found.content[:2]] == [None, "c2ln"]


def test_a_kept_part_keeps_its_signature() -> None:
    part = {"toolCall": {"id": "1"}, "thoughtSignature": "c2ln"}
    assert message(chunk(part), chunk(text("x"), finish="STOP")).content[0] == sseam.ServerToolBlock(
        kind="toolCall", raw=part
    )


def test_fields_that_are_not_modelled_are_kept() -> None:
    found = message(
        chunk(
            text("x", partMetadata={"k": 1}),
            createTime="now",
            candidate={"groundingMetadata": {"webSearchQueries": ["a"], "retrievalMetadata": {}}},
            modelStatus={"s": 1},
        ),
        chunk(finish="STOP", candidate={"groundingMetadata": {"webSearchQueries": ["b"]}, "finishMessage": "ok"}),
    )
    assert found.raw == {
        "createTime": "now",
        "modelStatus": {"s": 1},
        "groundingMetadata": {"webSearchQueries": ["b"], "retrievalMetadata": {}},
        "finishMessage": "ok",
    }
    assert found.content == (sseam.TextBlock(text="x", extra={"partMetadata": {"k": 1}}),)


def test_a_made_id_is_told_from_one_of_the_wire() -> None:
    found = message(chunk(call("f", id="ab"), call("f")), STOP)
    assert [(call.id, call.extra) for call in found.tool_calls] == [("ab", {}), ("call_1", {"id": None})]


def test_a_later_chunk_may_name_the_message() -> None:
    found = message(chunk(text("a")), chunk(text("b"), finish="STOP", responseId="r", modelVersion="m"))
    assert (found.id, found.model) == ("r", "m")


def test_usage_is_told_when_it_changes() -> None:
    def counted(**counts: Any) -> wire.Event:
        return chunk(text("a"), usageMetadata=counts)

    _, caused = after(
        counted(trafficType="ON_DEMAND"),
        counted(promptTokenCount=1),
        counted(promptTokenCount=1),
        counted(trafficType="ON_DEMAND"),
        counted(promptTokenCount=2, totalTokenCount=None),
    )
    updates = [event.usage for event in caused if isinstance(event, sseam.UsageUpdate)]
    assert [usage.input_tokens for usage in updates] == [1, 2]
    assert updates[-1].raw == {"trafficType": "ON_DEMAND", "promptTokenCount": 2, "totalTokenCount": None}


@pytest.mark.parametrize("usage", [7, [], "x"])
def test_usage_of_a_wrong_shape_is_told(usage: Any) -> None:
    _, caused = after(chunk(text("a"), usageMetadata=usage))
    assert isinstance(caused[-1], sseam.Failed)
    assert "usageMetadata is not an object" in str(caused[-1].error)


def both(first: str, second: str, **fields: Any) -> wire.Event:
    candidates = [
        {"index": at, "content": {"parts": [text(value)]}, **fields} for at, value in enumerate((first, second))
    ]
    return decode(
        sseam.Frame("message", json.dumps({"candidates": candidates, "responseId": "r"}).encode(), "", None, 0, 0)
    )


def test_further_candidates_are_alternatives() -> None:
    found = message(both("a", "x"), both("b", "y", finishReason="STOP"))
    assert found.text == "ab"
    assert [(other.text, other.complete, other.id) for other in found.alternatives] == [("xy", True, "r")]
    assert sseam.Message.from_json(found.to_json()) == found


def test_a_candidate_that_fails_does_not_fail_the_others() -> None:
    bad = chunk(call("f", args=[1]), finish="STOP", index=1)
    found = message(both("a", "x"), bad, STOP)
    assert [(other.complete, other.tool_calls) for other in found.alternatives] == [(False, ())]
    filtered = message(both("a", "x"), chunk(finish="SAFETY", index=1), STOP)
    assert [(other.complete, other.stop_reason) for other in filtered.alternatives] == [(False, "content_filter")]


def test_an_error_says_whether_content_was_delivered() -> None:
    for lead, delivered in (([], False), ([chunk()], False), ([chunk(text("a"))], True)):
        _, caused = after(*lead, wire.Error({"code": 503, "message": "m"}))
        failed = caused[-1]
        assert isinstance(failed, sseam.Failed)
        assert isinstance(failed.error, sseam.ApiError)
        assert (failed.error.delivered, failed.error.retryable) == (delivered, True)


def test_the_response_body_gives_the_same_message() -> None:
    body = {
        "candidates": [
            {
                "content": {"parts": [text("Hm", thought=True), text("a"), call("f", args={"x": 1})]},
                "finishReason": "STOP",
            }
        ],
        "usageMetadata": {"promptTokenCount": 1},
        "responseId": "r",
    }
    found = sseam.parse_response(body, "gemini-generate")
    assert found == sseam.parse_response([body], "gemini-generate")  # type: ignore[arg-type]
    assert found == sseam.parse_response(json.dumps([body]), "gemini-generate")
    assert found == sseam.parse(b"data: " + json.dumps(body).encode() + b"\n\n", "gemini-generate")
    assert [block.__struct_config__.tag for block in found.content] == ["thinking", "text", "tool_call"]


def test_the_end_of_the_array_is_judged_when_the_input_is_over() -> None:
    """What stands behind its bracket counts, however the bytes are cut."""
    parser = sseam.Parser("gemini-generate")
    body = json.dumps([{"candidates": [{"content": {"parts": [text("a")]}, "finishReason": "STOP"}]}]).encode()
    assert not any(isinstance(event, sseam.Done) for event in parser.feed(body))
    assert not parser.done
    assert isinstance(parser.finish()[-1], sseam.Done)
    assert parser.done


def test_counts_that_cannot_be_read_are_a_fault() -> None:
    with pytest.raises(sseam.ProtocolError, match="usageMetadata cannot be read"):
        sseam.parse(b'data: {"usageMetadata":{"totalTokenCount":1e999}}\n\n', "gemini-generate")
