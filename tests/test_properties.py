"""What holds for every stream of every protocol: cuts do not matter, states do not change, nothing raw escapes."""

from __future__ import annotations

import copy
import gc
import weakref
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sseam
from harness import ALL_REASONS, calls, ended_without_marker, load, outcome, run
from sseam.protocols import load as load_protocol

ROOT = Path(__file__).parent.parent / "fixtures"
PATHS = sorted(ROOT.glob("*/*.sse"))
SMALL = [path for path in PATHS if 0 < path.stat().st_size < 4000]
IDS = [f"{path.parent.name}/{path.stem}" for path in PATHS]


def _read(path: Path) -> tuple[bytes, str, dict[str, Any]]:
    case = load(path.with_suffix(".json"))
    return path.read_bytes(), case["protocol"], case["options"]


@given(path=st.sampled_from(SMALL), data=st.data())
@settings(max_examples=300)
def test_cuts_do_not_matter(path: Path, data: st.DataObject) -> None:
    body, protocol, options = _read(path)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=12)))
    chunks = [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    assert outcome(run(chunks, protocol, **options)) == outcome(run([body], protocol, **options))


@given(path=st.sampled_from(SMALL), data=st.data())
@settings(max_examples=600)
def test_damage_is_told_or_harmless(path: Path, data: st.DataObject) -> None:
    """Bytes lost, doubled or changed: one of our errors or a message, never anything raw."""
    body, protocol, options = _read(path)
    start = data.draw(st.integers(0, len(body)))
    end = data.draw(st.integers(start, min(len(body), start + 60)))
    damage = data.draw(st.one_of(st.just(b""), st.binary(max_size=4), st.just(body[start:end] * 2)))
    run([body[:start] + damage + body[end:]], protocol, **options)


@given(path=st.sampled_from(SMALL), data=st.data())
@settings(max_examples=300)
def test_frames_in_any_order_are_told_or_harmless(path: Path, data: st.DataObject) -> None:
    body, protocol, options = _read(path)
    frames = sseam.Framer().feed(body)
    order = data.draw(st.lists(st.sampled_from(frames), max_size=14)) if frames else []
    run([b"".join(map(_encode, order))], protocol, **options)


def _encode(frame: sseam.Frame) -> bytes:
    lines = b"\n".join(b"data: " + line for line in frame.data.split(b"\n"))
    return b"event: " + frame.event.encode() + b"\n" + lines + b"\n\n"


@pytest.mark.parametrize("path", PATHS, ids=IDS)
def test_no_step_changes_an_earlier_state(path: Path) -> None:
    """And stepping back to any state and going on again gives the same states and events."""
    body, name, options = _read(path)
    protocol = load_protocol(name)
    events = _wire_events(protocol, body)
    state = protocol.initial(**options)
    steps = [(state, copy.deepcopy(state), ())]
    for event in events:
        state, caused = protocol.reduce(state, event)
        steps.append((state, copy.deepcopy(state), caused))
    for state, before, _ in steps:
        assert state == before
    for at in range(0, len(events), max(1, len(events) // 8)):
        state = steps[at][0]
        for number, event in enumerate(events[at:], at + 1):
            state, caused = protocol.reduce(state, event)
            assert caused == steps[number][2]
            assert state == steps[number][1]
    for state, before, _ in steps:
        assert state == before


def _wire_events(protocol: Any, body: bytes) -> list[Any]:
    events = []
    for frame in sseam.Framer().feed(body):
        try:
            events.append(protocol.decode(frame))
        except sseam.ProtocolError:
            break
    return events


@pytest.mark.parametrize("path", PATHS, ids=IDS)
def test_a_cut_stream_releases_nothing_of_its_own(path: Path) -> None:
    """Cut at every byte before the end of its terminal event: never a message, never a call of its own."""
    body, protocol, options = _read(path)
    options |= {"accept": ALL_REASONS}
    parser = sseam.Parser(protocol, **options)
    terminal = None
    for at in range(len(body)):
        parser.feed(body[at : at + 1])
        if parser.done:
            terminal = at
            break
    if terminal is None or not parser.partial.complete or terminal > 6000:
        return
    released = calls(parser.close().tool_calls)
    for cut in range(terminal):
        result = run([body[:cut]], protocol, recording=False, **options)
        assert result.message is None or ended_without_marker(result.message, parser.partial), cut
        assert all(call in released for call in calls(result.last.tool_calls)), cut


@pytest.mark.parametrize("path", PATHS, ids=IDS)
def test_atomic_events_agree_with_the_message(path: Path) -> None:
    """What `model_events` releases is what the message holds; before a fault, what the partial one holds."""
    body, protocol, options = _read(path)
    stream = sseam.iter_events([body], protocol, **options)
    atomic = []
    try:
        atomic += sseam.model_events(stream)
        message = stream.message()
        assert atomic[-1] == sseam.ModelDone(message.stop_reason, message)
    except sseam.SseamError as error:
        message = error.partial
        assert message is not None
    text = "".join(event.text for event in atomic if isinstance(event, sseam.ModelText))
    released = [event.call for event in atomic if isinstance(event, sseam.ModelToolCall)]
    assert {call.id for call in released} <= {call.id for call in message.tool_calls}
    if atomic and isinstance(atomic[-1], sseam.ModelDone):
        assert text == message.text
        assert sorted(call.id for call in released) == sorted(call.id for call in message.tool_calls)


def test_no_parser_outlives_its_error() -> None:
    """An error holds a traceback, which holds the parser: nothing in that ring may be hidden from the collector."""

    def fail(path: Path) -> weakref.ref[sseam.Parser] | None:
        body, protocol, options = _read(path)
        parser = sseam.Parser(protocol, **options)
        parser.feed(body)
        try:
            parser.close()
        except sseam.SseamError:
            return weakref.ref(parser)
        return None

    parsers = [(path, parser) for path in PATHS if (parser := fail(path)) is not None]
    gc.collect()
    assert parsers
    assert [path.stem for path, parser in parsers if parser() is not None] == []
