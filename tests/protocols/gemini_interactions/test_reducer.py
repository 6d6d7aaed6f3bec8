"""The reducer's table, and what only states can show. Streams are in `fixtures/`, one an edge row."""

from __future__ import annotations

from typing import Any, get_args

import pytest

import sseam
from sseam.protocols.gemini_interactions import STOP_REASONS, finish, initial, reduce, wire
from sseam.protocols.gemini_interactions.reducer import _TABLE, ERROR_CODES
from sseam.protocols.gemini_interactions.steps import Phase
from sseam.stop import NEUTRAL

CREATED = wire.InteractionCreated({"id": "x", "model": "m", "status": "in_progress"})
COMPLETED = wire.InteractionCompleted({"id": "x", "status": "completed"})
OUTPUT = wire.StepStart(0, {"type": "model_output"})

LEADS: dict[Phase, list[wire.Event]] = {Phase.IDLE: [], Phase.STREAMING: [CREATED]}
EVENTS: dict[type[Any], wire.Event] = {
    wire.InteractionCreated: CREATED,
    wire.StatusUpdate: wire.StatusUpdate("in_progress"),
    wire.StepStart: OUTPUT,
    wire.StepDelta: wire.StepDelta(0, wire.TextDelta("x")),
    wire.OtherStepDelta: wire.OtherStepDelta(0, "new", {}),
    wire.StepStop: wire.StepStop(0),
    wire.InteractionCompleted: COMPLETED,
    wire.Error: wire.Error({"message": "m"}),
    wire.Empty: wire.Empty(),
    wire.Unknown: wire.Unknown("new", {}),
    wire.DoneMarker: wire.DoneMarker(),
}
ANYWHERE = {wire.StatusUpdate, wire.Error, wire.Empty, wire.Unknown, wire.DoneMarker}
LEGAL = {Phase.IDLE: ANYWHERE | {wire.InteractionCreated}, Phase.STREAMING: set(EVENTS)}


def after(*events: wire.Event, **options: Any) -> tuple[Any, list[sseam.Event]]:
    state, caused = initial(**options), []
    for event in events:
        state, more = reduce(state, event)
        caused += more
    return state, caused


def message(*events: wire.Event, **options: Any) -> sseam.Message:
    last = after(CREATED, *events, COMPLETED, **options)[1][-1]
    assert isinstance(last, sseam.Done), last
    return last.message


def text(index: int, value: str) -> wire.Event:
    return wire.StepDelta(index, wire.TextDelta(value))


def other(index: int, type: str, **fields: Any) -> wire.Event:
    return wire.OtherStepDelta(index, type, {"type": type, **fields})


def test_every_event_has_its_arm() -> None:
    assert set(EVENTS) == set(get_args(wire.Event))
    assert set(STOP_REASONS.values()) | set(ERROR_CODES.values()) <= NEUTRAL


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.__name__)
def test_every_pair_of_phase_and_event_is_legal_or_refused_by_name(phase: Phase, kind: type[Any]) -> None:
    assert set(_TABLE[phase]) == LEGAL[phase]
    state, _ = after(*LEADS[phase])
    assert state.wire.phase is phase
    _, caused = reduce(state, EVENTS[kind])
    refused = caused and isinstance(caused[-1], sseam.Failed) and "before interaction.created" in str(caused[-1].error)
    assert bool(refused) == (kind not in LEGAL[phase])


@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("last", [COMPLETED, wire.Error("x"), wire.DoneMarker()])
def test_nothing_comes_after_the_terminal_event(kind: type[Any], last: wire.Event) -> None:
    state, caused = after(CREATED, OUTPUT, text(0, "a"), wire.StepStop(0), last)
    assert isinstance(caused[-1], sseam.Done | sseam.Failed)
    assert reduce(state, EVENTS[kind]) == (state, ())
    assert finish(state) == (state, ())


def test_a_state_can_be_left_twice_in_different_directions() -> None:
    state, _ = after(CREATED, OUTPUT, text(0, "a"))
    left, _ = reduce(state, text(0, "left"))
    right, _ = reduce(state, text(0, "right"))
    left, _ = reduce(left, text(0, "!"))
    texts = [reduce(one, wire.StepStop(0))[1][0] for one in (state, left, right)]
    assert texts == [sseam.TextEnd(0, "a"), sseam.TextEnd(0, "aleft!"), sseam.TextEnd(0, "aright")]
    assert left != right


def test_deltas_of_a_server_step_make_up_its_block() -> None:
    found = message(
        wire.StepStart(0, {"type": "google_search_call", "id": "s", "arguments": {}, "signature": ""}),
        other(0, "google_search_call", arguments={"queries": ["q"]}),
        other(0, "thought_signature", signature="c2ln"),
        wire.StepStop(0),
        wire.StepStart(1, {"type": "mcp_server_tool_call", "id": "m"}),
        wire.StepDelta(1, wire.ArgumentsDelta('{"a":')),
        wire.StepDelta(1, wire.ArgumentsDelta("1}")),
        wire.StepStop(1),
        wire.StepStart(2, {"type": "function_result", "call_id": "c"}),
        wire.OtherStepDelta(2, "", {"result": "ok"}),
        wire.StepStop(2),
    )
    assert found.content == (
        sseam.ServerToolBlock(
            kind="google_search_call",
            raw={"type": "google_search_call", "id": "s", "arguments": {"queries": ["q"]}, "signature": "c2ln"},
        ),
        sseam.ServerToolBlock(
            kind="mcp_server_tool_call", raw={"type": "mcp_server_tool_call", "id": "m", "arguments": {"a": 1}}
        ),
        sseam.OpaqueBlock(kind="function_result", raw={"type": "function_result", "call_id": "c", "result": "ok"}),
    )


def test_fields_that_are_not_modelled_are_kept() -> None:
    _, caused = after(
        wire.InteractionCreated({"id": "", "agent": "deep", "object": "interaction"}),
        wire.StatusUpdate("in_progress", None, "tok"),
        wire.StepStart(0, {"type": "thought", "new": 1, "summary": [{"type": "image", "data": "A"}]}),
        other(0, "thought_summary", content={"type": "image", "data": "B"}),
        other(0, "thought_summary", content=None),
        other(0, "mood", value=1),
        wire.StepStop(0),
        wire.StepStart(1, {"type": "function_call", "name": "f", "new": 2}),
        other(1, "thought_signature", signature="s"),
        wire.StepStop(1),
        wire.StepStart(2, {"type": "dream", "x": 1}),
        other(2, "dream", y=2),
        other(2, "piece", z=3),
        text(2, "t"),
        wire.StepStop(2),
        wire.InteractionCompleted({"id": "late", "status": "completed", "service_tier": "flex", "created": None}),
    )
    done = caused[-1]
    assert isinstance(done, sseam.Done)
    found = done.message
    assert (found.id, found.model) == ("late", "deep")
    assert found.raw == {"agent": "deep", "object": "interaction", "continuation_token": "tok", "service_tier": "flex"}
    thought, call, dream = found.content
    assert thought.extra == {
        "new": 1,
        "summary": [{"type": "image", "data": "A"}, {"type": "image", "data": "B"}],
        "unknown_deltas": [{"type": "mood", "value": 1}],
    }
    assert isinstance(call, sseam.ToolCall)
    assert (call.id, call.signature, call.extra) == ("call_1", "s", {"new": 2, "id": None})
    assert isinstance(dream, sseam.OpaqueBlock)
    assert dream.raw == {"type": "dream", "x": 1, "y": 2}
    assert dream.deltas == ({"type": "piece", "z": 3}, {"type": "text", "text": "t"})


@pytest.mark.parametrize(
    ("items", "kept"),
    [
        ([], None),
        ([{"type": "text", "text": "a"}], None),
        ([{"type": "text", "text": "a", "new": 1}], [{"type": "text", "text": "a", "new": 1}]),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "all"),
        ([{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}], "all"),
    ],
)
@pytest.mark.parametrize("stopped", [True, False])
def test_the_items_of_a_summary_are_told_apart(items: list[Any], kept: Any, stopped: bool) -> None:
    deltas = [other(0, "thought_summary", content=item) for item in items]
    found = message(wire.StepStart(0, {"type": "thought"}), *deltas, *[wire.StepStop(0)] * stopped).content[0]
    assert isinstance(found, sseam.ThinkingBlock)
    assert found.thinking == "".join(item.get("text", "") for item in items)
    assert found.extra.get("summary") == (items if kept == "all" else kept)


def test_content_tells_whether_its_step_is_another() -> None:
    def step(index: int, *kinds: str) -> list[wire.Event]:
        deltas = [text(index, "a") if kind == "text" else other(index, kind) for kind in kinds]
        return [wire.StepStart(index, {"type": "model_output"}), *deltas, wire.StepStop(index)]

    search = [wire.StepStart(3, {"type": "google_search_call", "id": "s"}), wire.StepStop(3)]
    steps = [*step(0, "text", "image"), *step(1, "image", "text"), *step(2, "scent", "scent"), *search]
    found = message(*steps, *step(4, "text"), *step(5, "scent")).content
    assert [block.extra.get("new_step") for block in found] == [None, None, True, None, True, False, None, None, True]


def test_annotations_belong_to_the_text_before_them() -> None:
    found = message(
        OUTPUT,
        text(0, "a"),
        other(0, "text_annotation_delta", annotations=[{"n": 1}]),
        other(0, "image", data="A"),
        other(0, "text_annotation_delta", annotations=None),
        other(0, "text_annotation_delta", annotations=[{"n": 2}]),
        text(0, "b"),
        wire.StepStop(0),
    )
    assert found.content == (
        sseam.TextBlock(text="a", citations=({"n": 1},)),
        sseam.OpaqueBlock(kind="image", raw={"type": "image", "data": "A"}),
        sseam.TextBlock(text="b", citations=({"n": 2},)),
    )


@pytest.mark.parametrize(
    ("step", "delta", "told"),
    [
        ("thought", other(0, "thought_summary", content="x"), "thought_summary delta in thought block 0"),
        ("thought", wire.OtherStepDelta(0, "", {"a": 1, "b": 2}), "delta without a type"),
        ("thought", wire.StepDelta(0, wire.ArgumentsDelta("{}")), "input_json_delta arrived without an open tool_use"),
        (
            "model_output",
            other(0, "thought_signature", signature="s"),
            "thought_signature delta in model_output block 0",
        ),
        ("google_search_call", other(0, "url_context_call"), "url_context_call delta in google_search_call block 0"),
        ("google_search_call", text(0, "x"), "text delta in google_search_call block 0"),
        ("function_call", text(0, "x"), "text delta in tool_use block 0"),
    ],
)
def test_a_delta_of_another_kind_of_step_is_refused(step: str, delta: wire.Event, told: str) -> None:
    _, caused = after(CREATED, wire.StepStart(0, {"type": step, "id": "a", "name": "f"}), delta)
    failed = caused[-1]
    assert isinstance(failed, sseam.Failed)
    assert told in str(failed.error)


@pytest.mark.parametrize(
    ("step", "told"),
    [
        ({"type": "function_call", "arguments": "{}"}, "function_call step has the wrong shape"),
        ({"type": "function_call", "id": "a"}, "tool_use block 0 has no name"),
        ({"type": "thought", "summary": "x"}, "summary of thought step is no list of objects"),
        ({"type": "model_output", "content": ["x"]}, "content of model_output step is no list of objects"),
        ({}, "step has no type"),
    ],
)
def test_a_step_of_a_wrong_shape_is_told(step: dict[str, Any], told: str) -> None:
    _, caused = after(CREATED, wire.StepStart(0, step))
    failed = caused[-1]
    assert isinstance(failed, sseam.Failed)
    assert told in str(failed.error)


def test_bad_json_of_a_server_step_is_told() -> None:
    _, caused = after(
        CREATED,
        wire.StepStart(0, {"type": "mcp_server_tool_call", "id": "m"}),
        wire.StepDelta(0, wire.ArgumentsDelta("{")),
        wire.StepStop(0),
    )
    failed = caused[-1]
    assert isinstance(failed, sseam.Failed)
    assert "mcp_server_tool_call block 0 had invalid input_json_delta JSON" in str(failed.error)


def test_completed_ends_the_stream_before_done_does() -> None:
    state, caused = after(CREATED, OUTPUT, text(0, "a"), wire.StepStop(0), COMPLETED)
    assert isinstance(caused[-1], sseam.Done)
    assert reduce(state, wire.DoneMarker()) == (state, ())
