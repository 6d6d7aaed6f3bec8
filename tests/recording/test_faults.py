"""`sseam.faults`: each fault of a recording ends in an error, never in a message."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import sseam
from recordings import CALL, PROTOCOL
from sseam.protocols import NAMES
from sseam.recording.faults import (
    Cut,
    Drop,
    Duplicate,
    ErrorEvent,
    Fault,
    Garbage,
    Gzip,
    WrongContentType,
    apply,
    faults,
)
from sseam.recording.record import Recording
from sseam.sse import Framer

THREE = b"data: 1\n\n: ping\n\ndata: 22\r\n\r\nevent: x\ndata: 3"


@pytest.mark.parametrize(
    ("fault", "data", "ending"),
    [
        (Cut(4), b"data", "close"),
        (Cut(byte=-2), THREE[:-2], "close"),
        (Cut(frame=0, ending="end"), b"", "end"),
        (Cut(frame=1, ending="reset"), b"data: 1\n\n: ping\n\n", "reset"),
        (Cut(frame=-1, ending="stall"), THREE[:-16], "stall"),
        (Drop(0), b": ping\n\ndata: 22\r\n\r\nevent: x\ndata: 3", "end"),
        (Drop(2), THREE[:-16], "end"),
        (Duplicate(1), b"data: 1\n\n: ping\n\ndata: 22\r\n\r\ndata: 22\r\n\r\nevent: x\ndata: 3", "end"),
        (Garbage(1, b"\x00"), b"data: 1\n\n: ping\n\ndata: 2\x002\n\nevent: x\ndata: 3", "end"),
        (
            ErrorEvent(1, "oh", "no"),
            b"data: 1\n\n: ping\n\nevent: oh\ndata: no\n\ndata: 22\r\n\r\nevent: x\ndata: 3",
            "end",
        ),
        (WrongContentType(body="<p>"), b"<p>", "end"),
    ],
)
def test_bytes(fault: Fault, data: bytes, ending: str) -> None:
    damaged = apply(fault, Recording(THREE))
    assert (damaged.data, damaged.ending) == (data, ending)


def test_all_else_of_the_recording_stays() -> None:
    recording = Recording(THREE, 201, {"x": "y"}, ((0.1, 5),))
    assert apply(Drop(0), recording) == msgspec.structs.replace(recording, data=apply(Drop(0), recording).data)
    damaged = apply(WrongContentType("text/plain"), recording)
    assert damaged.headers == {"x": "y", "content-type": "text/plain"}
    assert gzip.decompress(apply(Gzip(), recording).data) == THREE


@pytest.mark.parametrize("fault", [Cut(frame=3), Cut(frame=-4), Drop(3), Duplicate(3), Garbage(3), ErrorEvent(3)])
def test_no_such_frame(fault: Fault) -> None:
    with pytest.raises(ValueError, match="the recording has 3"):
        apply(fault, Recording(THREE))


@pytest.mark.parametrize("where", [{}, {"byte": 1, "frame": 1}])
def test_a_cut_is_in_one_place(where: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="give one of them"):
        Cut(**where)


def test_faults_are_data() -> None:
    fault = Cut(frame=3, ending="stall")
    assert msgspec.json.decode(msgspec.json.encode(fault), type=Fault) == fault
    assert b'"fault":"cut"' in msgspec.json.encode(fault)


def test_the_recording_is_whole() -> None:
    assert len(Framer().feed(CALL)) == 11
    assert [call.arguments for call in sseam.parse(CALL, PROTOCOL).tool_calls] == [{"at": "sky"}]


def structural() -> list[Fault]:
    """Losing or doubling frames of which each has its place; the deltas of text are not among them."""
    lost = [0, 1, 4, 5, 6, 7, 8, 9, 10]
    doubled = [1, 4, 5, 6, 7, 8]  # a second, equal message_start is a named deviation
    return [*map(Drop, lost), *map(Duplicate, doubled)]


@pytest.mark.parametrize("fault", [*faults(Recording(CALL)), *structural()], ids=str)
def test_never_a_message(fault: Fault) -> None:
    # Even to a reader that does not know how the body ended.
    with pytest.raises(sseam.SseamError) as caught:
        sseam.parse(apply(fault, Recording(CALL)).data, PROTOCOL)
    assert caught.value.partial is None or not caught.value.partial.complete


def test_a_cut_at_every_byte_is_told() -> None:
    # The last two bytes are the line ends of the terminal event, which `parse` does without in a recording.
    for byte in range(len(CALL) - 2):
        with pytest.raises(sseam.SseamError):
            sseam.parse(apply(Cut(byte), Recording(CALL)).data, PROTOCOL)


@pytest.mark.parametrize("protocol", NAMES)
def test_the_error_event_is_one_in_every_protocol(protocol: str) -> None:
    data = apply(ErrorEvent(0), Recording(b"data: {}\n\n")).data
    with pytest.raises(sseam.ApiError, match="Overloaded"):
        sseam.parse(data, protocol)


def test_recorded_streams_give_their_own_message_or_none(shared: Path) -> None:
    """Small ones of every protocol: a fault may come too late to matter, as behind a finish reason."""
    seen: set[str] = set()
    for row in json.loads((shared / "corpus" / "manifest.json").read_bytes()):
        if row["bytes"] > 4_000:
            continue
        recording = Recording((shared / "corpus" / row["file"]).read_bytes())
        whole = message_of(recording, row["protocol"])
        if whole is None:
            continue
        seen.add(row["protocol"])
        for fault in faults(recording):
            assert message_of(apply(fault, recording), row["protocol"]) in (None, whole), (row["file"], fault)
    assert seen == set(NAMES)


def message_of(recording: Recording, protocol: str) -> tuple[Any, ...] | None:
    """What is acted on in the message, None where there is none."""
    try:
        message = sseam.parse(recording.data, protocol)
    except sseam.SseamError:
        return None
    return message.text, message.tool_calls, message.stop_reason
