"""Frames to wire events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import sseam
from sseam.protocols.gemini_interactions import STOP_REASONS, decode, read_response, wire
from sseam.protocols.gemini_interactions.reducer import ERROR_CODES, UNFINISHED
from sseam.protocols.gemini_interactions.steps import _MEDIA, _OPAQUE, _SERVER, _START


def framed(data: bytes | str, event: str = "message") -> sseam.Frame:
    return sseam.Frame(event, data if isinstance(data, bytes) else data.encode(), "", None, 0, 0)


def event(event_type: str, **fields: Any) -> wire.Event:
    return decode(framed(json.dumps({**fields, "event_type": event_type})))


def delta(**fields: Any) -> wire.Event:
    return event("step.delta", index=1, delta=fields)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (event("interaction.created", interaction={"id": "x"}), wire.InteractionCreated({"id": "x"})),
        (event("interaction.completed", interaction={}, event_id="e"), wire.InteractionCompleted({})),
        (event("interaction.status_update", status="queued"), wire.StatusUpdate("queued")),
        (event("interaction.in_progress", interaction_id="x"), wire.StatusUpdate("in_progress")),
        (event("interaction.requires_action"), wire.StatusUpdate("requires_action")),
        (event("step.start", index=0, step={"type": "x"}), wire.StepStart(0, {"type": "x"})),
        (event("step.stop", index=0, usage={"total_tokens": 1}), wire.StepStop(0, {"total_tokens": 1})),
        (delta(type="text", text="x", new=1), wire.StepDelta(1, wire.TextDelta("x"))),
        (delta(text="x", type="text"), wire.StepDelta(1, wire.TextDelta("x"))),
        (delta(type="arguments_delta", arguments="{"), wire.StepDelta(1, wire.ArgumentsDelta("{"))),
        (delta(type="arguments_delta"), wire.StepDelta(1, wire.ArgumentsDelta(""))),
        (
            event("step.delta", index=1, delta={"type": "text", "text": "x"}, metadata={"total_usage": {}}),
            wire.StepDelta(1, wire.TextDelta("x"), {"total_usage": {}}),
        ),
        (
            delta(type="thought_signature", signature="s"),
            wire.OtherStepDelta(1, "thought_signature", {"type": "thought_signature", "signature": "s"}),
        ),
        (delta(type="new", x=1), wire.OtherStepDelta(1, "new", {"type": "new", "x": 1})),
        (delta(text="x"), wire.StepDelta(1, wire.TextDelta("x"))),
        (delta(arguments="{}"), wire.StepDelta(1, wire.ArgumentsDelta("{}"))),
        (delta(arguments={}), wire.OtherStepDelta(1, "", {"arguments": {}})),
        (delta(signature="s"), wire.OtherStepDelta(1, "thought_signature", {"signature": "s"})),
        (delta(content={"text": "x"}), wire.OtherStepDelta(1, "thought_summary", {"content": {"text": "x"}})),
        (delta(annotations=[]), wire.OtherStepDelta(1, "text_annotation_delta", {"annotations": []})),
        (delta(text="x", signature="s"), wire.OtherStepDelta(1, "", {"text": "x", "signature": "s"})),
        (delta(), wire.OtherStepDelta(1, "", {})),
        (event("error", error={"code": "c"}), wire.Error({"code": "c"})),
        (event("error"), wire.Error()),
        (decode(framed('{"error": {"code": 400}}')), wire.Error({"code": 400})),
        (
            event("interaction.dreamed", x=1),
            wire.Unknown("interaction.dreamed", {"x": 1, "event_type": "interaction.dreamed"}),
        ),
        (decode(framed("")), wire.Empty()),
        (decode(framed(" [DONE] ", "done")), wire.DoneMarker()),
    ],
)
def test_a_frame_is_read(found: wire.Event, expected: wire.Event) -> None:
    assert found == expected


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ("{", "data is not JSON"),
        ("[]", "not an object"),
        ("{}", "no event_type"),
        ('{"event_type": 7}', "no event_type"),
        ('{"event_type": "step.stop"}', "event step.stop has the wrong shape"),
        ('{"event_type": "step.stop", "index": "0"}', r"\$.index"),
        ('{"event_type": "step.delta", "index": 0}', "event step.delta has the wrong shape"),
        ('{"event_type": "step.delta", "index": 0, "delta": {"type": 7}}', "delta of type 7"),
        ('{"event_type": "step.delta", "index": 0, "delta": {"type": "text"}}', "delta text has the wrong shape"),
        ('{"event_type": "step.delta", "index": 0, "delta": {"type": "text", "text": 1}}', "delta text has the wrong"),
        ('{"event_type": "interaction.created", "interaction": "x"}', "wrong shape"),
        ('{"event_type": "content.delta"}', "schema of outputs"),
        ('{"event_type": "interaction.complete"}', "schema of outputs"),
        (b'{"event_type": "x", "y": "\xff"}', "not UTF-8"),
        (b'{"event_type": "step.stop", "index": 0, "y": "\xff"}', "not UTF-8"),
        ('{"event_type": "x", "y": "\\udc00"}', "surrogate"),
        ('{"event_type": "x", "y": ' + "[" * 100_000, "nested too deeply"),
    ],
)
def test_a_frame_that_is_no_event_is_told(data: bytes | str, told: str) -> None:
    with pytest.raises(sseam.ProtocolError, match=told):
        decode(framed(data))


def test_a_body_is_read() -> None:
    body = {"id": "x", "status": "completed", "steps": [{"type": "thought"}]}
    head = {"id": "x", "status": "completed"}
    assert read_response(body) == [
        wire.InteractionCreated(head),
        wire.StepStart(0, {"type": "thought"}),
        wire.StepStop(0),
        wire.InteractionCompleted(head),
    ]
    assert read_response({"status": "queued", "steps": None}) == [
        wire.InteractionCreated({"status": "queued"}),
        wire.InteractionCompleted({"status": "queued"}),
    ]
    assert read_response({"error": {"code": "not_found"}}) == [wire.Error({"code": "not_found"})]


@pytest.mark.parametrize(
    "body", [7, [], {}, {"status": "x", "steps": 5}, {"status": "x", "steps": [5]}, {"status": "x", "outputs": []}]
)
def test_a_body_that_is_none_is_told(body: Any) -> None:
    with pytest.raises(sseam.ProtocolError):
        read_response(body)


def test_every_value_of_the_reference_is_known(shared: Path) -> None:
    reference = json.loads((shared / "protocols" / "gemini.events.json").read_text())["interactions"]
    fields = {"index": 0, "interaction": {}, "step": {}, "delta": {"type": "text", "text": ""}}
    for entry in [*reference["events"], *reference["documented_variants"]]:
        assert not isinstance(event(entry["event_type"], **fields), wire.Unknown)
    assert {entry["value"] for entry in reference["statuses"]} == set(STOP_REASONS) | UNFINISHED
    assert set(reference["step_types"]) == set(_START) | _SERVER | _OPAQUE
    typed = {"text", "arguments_delta", "thought_signature", "thought_summary", "text_annotation_delta"}
    assert set(reference["delta_types"]) <= typed | _MEDIA | _SERVER | _OPAQUE
    errors = json.loads((shared / "protocols" / "gemini.events.json").read_text())["errors"]
    blocked, faults = errors["interactions_generation_blocked_codes"], errors["interactions_generation_error_codes"]
    assert dict.fromkeys(blocked, "content_filter") | dict.fromkeys(faults, "error") == ERROR_CODES
