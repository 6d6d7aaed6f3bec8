"""The reducer's table, and what only states can show. Streams are in `fixtures/`, one an edge row."""

from __future__ import annotations

from typing import Any

import pytest

import sseam
from sseam.protocols.anthropic_messages import initial, reduce, wire
from sseam.protocols.anthropic_messages.reducer import _TABLE, Phase

START = wire.MessageStart({"id": "msg_1", "model": "m", "content": []})
TEXT = wire.ContentBlockStart(0, {"type": "text", "text": ""})
STOP = wire.MessageDelta({"stop_reason": "end_turn"})

LEADS: dict[Phase, list[wire.Event]] = {
    Phase.IDLE: [],
    Phase.STREAMING: [START],
    Phase.STOPPED: [START, STOP],
}
EVENTS: dict[type[Any], wire.Event] = {
    wire.MessageStart: START,
    wire.ContentBlockStart: TEXT,
    wire.ContentBlockDelta: wire.ContentBlockDelta(0, wire.TextDelta("x")),
    wire.UnknownContentBlockDelta: wire.UnknownContentBlockDelta(0, "new", {}),
    wire.ContentBlockStop: wire.ContentBlockStop(0),
    wire.MessageDelta: STOP,
    wire.MessageStop: wire.MessageStop(),
    wire.Ping: wire.Ping(),
    wire.Empty: wire.Empty(),
    wire.Unknown: wire.Unknown("new", {}),
    wire.Error: wire.Error({"message": "m"}),
    wire.DoneMarker: wire.DoneMarker(),
    wire.Renamed: wire.Renamed(wire.Ping(), "event_name_missing"),
}
LEGAL = {
    Phase.IDLE: {wire.MessageStart},
    Phase.STREAMING: {
        wire.MessageStart,
        wire.ContentBlockStart,
        wire.ContentBlockDelta,
        wire.UnknownContentBlockDelta,
        wire.ContentBlockStop,
        wire.MessageDelta,
        wire.MessageStop,
    },
    Phase.STOPPED: {wire.MessageStart, wire.MessageDelta, wire.MessageStop},
}
ANYWHERE = {wire.Ping, wire.Empty, wire.Unknown, wire.Error, wire.DoneMarker, wire.Renamed}


def after(events: list[wire.Event]) -> tuple[Any, list[sseam.Event]]:
    state, caused = initial(), []
    for event in events:
        state, more = reduce(state, event)
        caused += more
    return state, caused


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.__name__)
def test_every_pair_of_phase_and_event_is_legal_or_refused_by_name(phase: Phase, kind: type[Any]) -> None:
    assert (kind in _TABLE[phase]) == (kind in LEGAL[phase] | ANYWHERE)
    state, _ = after(LEADS[phase])
    assert state.wire.phase is phase
    _, caused = reduce(state, EVENTS[kind])
    refused = caused and isinstance(caused[-1], sseam.Failed) and "before message_start" in str(caused[-1].error)
    late = caused and isinstance(caused[-1], sseam.Failed) and "after stop_reason" in str(caused[-1].error)
    assert bool(refused or late) == (kind not in LEGAL[phase] | ANYWHERE)


@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("last", [wire.MessageStop(), wire.Error("x")])
def test_nothing_comes_after_the_terminal_event(kind: type[Any], last: wire.Event) -> None:
    state, caused = after([START, TEXT, wire.ContentBlockStop(0), STOP, last])
    assert isinstance(caused[-1], sseam.Done | sseam.Failed)
    assert reduce(state, EVENTS[kind]) == (state, ())


def test_a_state_can_be_left_twice_in_different_directions() -> None:
    state, _ = after([START, TEXT, wire.ContentBlockDelta(0, wire.TextDelta("a"))])
    left, _ = reduce(state, wire.ContentBlockDelta(0, wire.TextDelta("left")))
    right, _ = reduce(state, wire.ContentBlockDelta(0, wire.TextDelta("right")))
    left, _ = reduce(left, wire.ContentBlockDelta(0, wire.TextDelta("!")))
    texts = [reduce(one, wire.ContentBlockStop(0))[1][0] for one in (state, left, right)]
    assert texts == [sseam.TextEnd(0, "a"), sseam.TextEnd(0, "aleft!"), sseam.TextEnd(0, "aright")]
    assert left != right
    assert hash(left) != hash(right)


def test_an_error_says_whether_content_was_delivered() -> None:
    for lead, delivered in (([], False), ([START], False), ([START, TEXT], True)):
        _, caused = after([*lead, wire.Error({"type": "overloaded_error", "message": "m"})])
        failed = caused[-1]
        assert isinstance(failed, sseam.Failed)
        assert isinstance(failed.error, sseam.ApiError)
        assert (failed.error.delivered, failed.error.retryable) == (delivered, True)


def test_fields_that_are_not_modelled_are_kept() -> None:
    _, caused = after(
        [
            wire.MessageStart({"id": "m", "container": None, "new": 1}),
            wire.ContentBlockStart(0, {"type": "text", "text": "x", "new": 2}),
            wire.ContentBlockStop(0),
            wire.MessageDelta(
                {"stop_reason": "end_turn", "container": {"id": "c"}, "stop_details": None},
                context_management={"applied_edits": []},
                input_transformations=[],
            ),
            wire.MessageStop({"x": 1}),
        ]
    )
    done = caused[-1]
    assert isinstance(done, sseam.Done)
    assert done.message.raw == {
        "container": {"id": "c"},
        "new": 1,
        "context_management": {"applied_edits": []},
        "input_transformations": [],
        "amazon-bedrock-invocationMetrics": {"x": 1},
    }
    assert done.message.content == (sseam.TextBlock(text="x", extra={"new": 2}),)
