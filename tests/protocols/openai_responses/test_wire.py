"""Frames to wire events."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import sseam
from sseam.protocols.openai_responses import STOP_REASONS, decode, read_response, wire


def framed(data: bytes | str, event: str = "message") -> sseam.Frame:
    return sseam.Frame(event, data if isinstance(data, bytes) else data.encode(), "", None, 0, 0)


def event(type: str, **fields: Any) -> wire.Event:
    return decode(framed(json.dumps({"type": type, **fields}), type))


PLACE = {"item_id": "i", "output_index": 1}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (
            event(
                "response.output_text.delta", sequence_number=4, **PLACE, content_index=0, delta="x", obfuscation="y"
            ),
            wire.TextDelta(sequence_number=4, **PLACE, content_index=0, text="x"),
        ),
        (
            event("response.reasoning_summary_text.delta", **PLACE, summary_index=2, delta="x"),
            wire.ReasoningSummaryDelta(**PLACE, content_index=2, text="x"),
        ),
        (
            event("response.function_call_arguments.done", **PLACE, arguments="{}", name="f"),
            wire.FunctionArgumentsDone(**PLACE, text="{}"),
        ),
        (
            event("response.shell_call_command.delta", output_index=1, command_index=3, delta="x"),
            wire.ShellCommandDelta(output_index=1, content_index=3, text="x"),
        ),
        (event("response.refusal.done", refusal="No"), wire.RefusalDone(text="No")),
        (event("response.custom_tool_call_input.done", input="x"), wire.CustomInputDone(text="x")),
        (event("response.apply_patch_call_operation_diff.done", diff="x"), wire.ApplyPatchDiffDone(text="x")),
        (event("response.output_item.added", item=None, output_index=0), wire.ItemAdded(item=None, output_index=0)),
        (
            event("response.created", response={"id": "r", "model": "m", "tools": [{"big": 1}]}),
            wire.Created(response=wire.Snapshot("r", "m")),
        ),
        (event("response.completed", response={"id": "r"}), wire.Completed(response={"id": "r"})),
        (event("error", code="c", message="m", param=None), wire.Error(code="c", message="m")),
        (event("error", error={"code": "c"}), wire.Error(error={"code": "c"})),
        (
            event("response.image_generation_call.partial_image", sequence_number=3, partial_image_b64="x"),
            wire.Passive(type="response.image_generation_call.partial_image", sequence_number=3),
        ),
        (
            event("response.new", sequence_number=3),
            wire.Unknown(type="response.new", raw={"type": "response.new", "sequence_number": 3}, sequence_number=3),
        ),
        (decode(framed('{"error": {"message": "m"}}')), wire.Error(error={"message": "m"})),
        (decode(framed('{"detail": "d"}')), wire.Error(error="d")),
        (decode(framed("<h1>Bad gateway</h1>", "error")), wire.Error(message="<h1>Bad gateway</h1>")),
        (decode(framed("")), wire.Empty()),
        (decode(framed(" [DONE] ")), wire.DoneMarker()),
        (decode(framed("[DONE]x")), wire.DoneMarker()),
        (decode(framed('{"type":"error"}')), wire.Error()),
        (decode(framed('{"type":"error"}', "ping")), wire.Renamed(wire.Error(), "event_name_mismatch")),
    ],
)
def test_a_frame_is_read(found: wire.Event, expected: wire.Event) -> None:
    assert found == expected


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ("{", "data is not JSON"),
        ("[]", "not an object"),
        ("{}", "no type"),
        ('{"type": 7}', "no type"),
        ('{"object": "chat.completion.chunk"}', "openai-chat"),
        ('{"type": "response.output_text.delta"}', "response.output_text.delta has the wrong shape"),
        ('{"type": "response.output_text.delta", "delta": 1}', r"\$.delta"),
        ('{"type": "response.output_item.done", "item": 1}', r"\$.item"),
        ('{"type": "response.output_text.delta", "delta": "x", "sequence_number": "1"}', r"\$.sequence_number"),
        (b'{"type": "response.created", "x": "\xff"}', "not UTF-8"),
        ('{"type": "response.new", "x": "\\udc00"}', "surrogate"),
        ('{"type": "response.output_text.delta", "delta": "\\ud800"}', "surrogate"),
        ('{"type": "response.new", "x": ' + "[" * 100_000, "nested too deeply"),
    ],
)
def test_a_frame_that_is_no_event_is_told(data: bytes | str, told: str) -> None:
    with pytest.raises(sseam.ProtocolError, match=told):
        decode(framed(data))


@pytest.mark.parametrize(
    ("body", "kinds"),
    [
        ({"object": "response", "id": "r", "status": "completed"}, [wire.Created, wire.ResponseDone]),
        ({"output": [], "status": "completed"}, [wire.Created, wire.ResponseDone]),
        ({"object": "response", "error": {"code": "x"}, "status": "failed"}, [wire.Created, wire.ResponseDone]),
        ({"error": {"message": "m"}}, [wire.Error]),
        ({"type": "response.completed", "response": {}}, [wire.Completed]),
    ],
)
def test_a_body_is_read_as_events(body: dict[str, Any], kinds: list[type[Any]]) -> None:
    assert [type(event) for event in read_response(body)] == kinds


@pytest.mark.parametrize("body", [[], 7, {}, {"object": "response", "id": 7}])
def test_a_body_that_is_no_response_is_told(body: Any) -> None:
    with pytest.raises(sseam.ProtocolError):
        read_response(body)


@pytest.mark.skipif("SSEAM_CORPUS" not in os.environ, reason="SSEAM_CORPUS is not set: no wire reference at hand")
def test_every_event_and_stop_value_of_the_reference_is_known() -> None:
    path = Path(os.environ["SSEAM_CORPUS"]) / "protocols" / "openai-responses.events.json"
    reference = json.loads(path.read_text(encoding="utf-8"))
    for entry in reference["events"]:
        assert not isinstance(_sample(entry), wire.Unknown), entry["type"]
    reasons = reference["enums"]["incomplete_details.reason"]
    assert STOP_REASONS.keys() >= {*reasons, *reference["enums"]["response.status"]} - {"in_progress", "queued"}


def _sample(entry: dict[str, Any]) -> wire.Event:
    values: dict[str, Any] = {"string": "x", "integer": 1}
    fields = {name: values.get(field["type"], {}) for name, field in entry["fields"].items() if field["required"]}
    return event(entry["type"], **{name: {} if name == "item" else value for name, value in fields.items()})
