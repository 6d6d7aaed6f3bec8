"""Recordings and the verdicts on them."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from sseam import errors
from sseam.audit import STDIN, audit, judge, read_pieces, recordings
from sseam.parser import Parser
from sseam.protocols import NAMES
from sseam.sse import Limits

ANTHROPIC = "anthropic-messages"


def sse(*payloads: dict[str, Any]) -> bytes:
    """An event stream as Anthropic frames it."""
    return b"".join(b"event: %s\ndata: %s\n\n" % (one["type"].encode(), json.dumps(one).encode()) for one in payloads)


def start() -> dict[str, Any]:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m-1", "content": []}
    return {"type": "message_start", "message": {**message, "usage": {"input_tokens": 3, "output_tokens": 1}}}


def block(index: int, content: dict[str, Any], *deltas: dict[str, Any], stop: bool = True) -> list[dict[str, Any]]:
    payloads: list[dict[str, Any]] = [{"type": "content_block_start", "index": index, "content_block": content}]
    payloads += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
    return [*payloads, {"type": "content_block_stop", "index": index}] if stop else payloads


def text(index: int, *texts: str, stop: bool = True) -> list[dict[str, Any]]:
    deltas = [{"type": "text_delta", "text": one} for one in texts]
    return block(index, {"type": "text", "text": ""}, *deltas, stop=stop)


def call(index: int, *fragments: str, stop: bool = True) -> list[dict[str, Any]]:
    content = {"type": "tool_use", "id": f"toolu_{index}", "name": "look", "input": {}}
    deltas = [{"type": "input_json_delta", "partial_json": one} for one in fragments]
    return block(index, content, *deltas, stop=stop)


def ended(reason: str) -> list[dict[str, Any]]:
    delta = {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 9}}
    return [delta, {"type": "message_stop"}]


WHOLE = sse(start(), *text(0, "Hi"), *ended("end_turn"))

# A stream, and what is expected of the verdict on it.
VERDICTS: dict[str, tuple[bytes, dict[str, Any]]] = {
    "complete": (WHOLE, {"outcome": "complete", "reason": "", "error": None, "trailing": 0, "size": len(WHOLE)}),
    "calls": (
        sse(start(), *call(0, '{"a":1}'), *call(1), *ended("tool_use")),
        {"outcome": "complete", "tool_calls": 2, "withheld": 0, "raw_stop_reason": "tool_use"},
    ),
    "blank lines at the end": (WHOLE + b"\n\n\r\n", {"outcome": "complete", "trailing": 0, "size": len(WHOLE) + 4}),
    "[DONE] behind it": (WHOLE + b"event: done\ndata: [DONE]\n\n", {"outcome": "complete", "trailing": 0}),
    "a stream behind it": (WHOLE * 2, {"outcome": "complete", "trailing": len(WHOLE), "size": 2 * len(WHOLE)}),
    "no last blank line": (WHOLE[:-1], {"outcome": "complete", "trailing": 0}),
    "CRLF": (WHOLE.replace(b"\n", b"\r\n") + b"x", {"outcome": "complete", "trailing": 1}),
    "max_tokens": (
        sse(start(), *call(0, '{"a"', stop=False), *ended("max_tokens")) + b"more",
        {"outcome": "cut_off", "reason": "stop reason 'max_tokens'", "hint": "", "withheld": 1, "trailing": 4},
    ),
    "context window": (
        sse(start(), *ended("model_context_window_exceeded")),
        {
            "outcome": "cut_off",
            "reason": "stop reason 'model_context_window_exceeded', which is context_window_exceeded",
        },
    ),
    "refusal": (sse(start(), *ended("refusal")), {"outcome": "refused", "stop_reason": "refusal"}),
    "pause_turn": (sse(start(), *ended("pause_turn")), {"outcome": "paused"}),
    "stop_sequence": (sse(start(), *ended("stop_sequence")), {"outcome": "stop_sequence"}),
    "compaction": (sse(start(), *ended("compaction")), {"outcome": "compacted"}),
    "unknown stop": (
        sse(start(), *ended("tired")),
        {"outcome": "unknown_stop", "reason": "unknown stop reason 'tired'", "raw_stop_reason": "tired"},
    ),
    "end_turn with a call": (
        sse(start(), *call(0, "{}"), *ended("end_turn")),
        {"outcome": "contradiction", "tool_calls": 0, "withheld": 1, "error": "StopReasonError"},
    ),
    "stop_sequence with a call": (sse(start(), *call(0, "{}"), *ended("stop_sequence")), {"outcome": "contradiction"}),
    "cut in a block": (sse(start(), *text(0, "Hi", stop=False)), {"outcome": "truncated", "error": "TruncatedStream"}),
    "bad arguments": (
        sse(start(), *call(0, '{"a":'), *ended("tool_use")),
        {"outcome": "invalid_tool_call", "withheld": 1},
    ),
    "error event": (
        sse(start(), {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}) + b"more",
        {"outcome": "api_error", "trailing": 0, "error": "ApiError"},
    ),
    "error body": (
        b'{"type":"error","error":{"type":"not_found_error","message":"no such model"}}',
        {"outcome": "api_error", "reason": "no such model [404, not_found_error]"},
    ),
    "JSON body": (
        json.dumps({**start()["message"], "stop_reason": "end_turn"}, indent=1).encode(),
        {"outcome": "complete", "model": "m-1"},
    ),
    "two starts": (sse(start(), *text(0), *text(0)), {"outcome": "protocol_error", "error": "ProtocolError"}),
    "other text": (b"hello\n", {"outcome": "unidentified", "reason": "its first bytes tell no protocol"}),
    "empty": (b"", {"outcome": "unidentified", "reason": "it is empty"}),
    "blank": (b"\n\n", {"outcome": "unidentified", "reason": "it is empty"}),
    "nothing for long": (b": still waiting\n\n" * 20_000 + WHOLE, {"outcome": "unidentified"}),
    "much before the start": (b": still waiting\n\n" * 5_000 + WHOLE, {"outcome": "complete"}),
}


@pytest.mark.parametrize("name", VERDICTS)
def test_a_recording_gives_its_verdict(name: str, tmp_path: Path) -> None:
    stream, expected = VERDICTS[name]
    file = tmp_path / "stream.sse"
    file.write_bytes(stream)
    verdict = audit(str(file))
    assert {field: getattr(verdict, field) for field in expected} == expected
    assert verdict.file == str(file)


def test_the_verdict_says_where(tmp_path: Path) -> None:
    file = tmp_path / "stream.sse"
    before = sse(start(), *text(0, "Hi"))
    file.write_bytes(before + sse(*text(0)))
    verdict = audit(str(file))
    assert verdict.where == errors.Where(protocol="Anthropic", frame=4, offset=len(before), block=0)
    assert (verdict.protocol, verdict.model) == (ANTHROPIC, "m-1")


@pytest.mark.parametrize("rest", [b"", b"event: content_block_delta\ndata: {"])
def test_a_truncated_recording_says_how_far_it_goes(rest: bytes, tmp_path: Path) -> None:
    file = tmp_path / "stream.sse"
    whole = sse(start(), *text(0, "Hi", stop=False))
    file.write_bytes(whole + rest)
    verdict = audit(str(file))
    assert (verdict.outcome, verdict.where.frame, verdict.where.offset) == ("truncated", 3, len(whole))


def test_what_cannot_be_read_is_a_verdict(tmp_path: Path) -> None:
    assert audit(str(tmp_path / "none.sse")).reason == "No such file or directory"
    assert audit(str(tmp_path)).outcome == "unreadable"


def test_faults_of_the_framing_are_told_apart() -> None:
    parser = Parser(ANTHROPIC, limits=Limits(line=10))
    parser.feed(b"data: longer than ten bytes\n\n")
    assert judge("x", parser).outcome == "not_a_stream"


def test_an_accepted_stop_reason_is_complete(tmp_path: Path) -> None:
    file = tmp_path / "stream.sse"
    file.write_bytes(VERDICTS["max_tokens"][0])
    verdict = audit(str(file), accept=["max_tokens"])
    assert (verdict.outcome, verdict.withheld, verdict.trailing) == ("complete", 1, 4)


def test_options_reach_the_parser(tmp_path: Path) -> None:
    file = tmp_path / "stream.sse"
    file.write_bytes(VERDICTS["calls"][0])
    assert audit(str(file), ANTHROPIC, tools=["other"]).outcome == "invalid_tool_call"
    file.write_bytes(WHOLE[:-1])
    assert audit(str(file), strict=True).outcome == "protocol_error"


def test_a_dialect_of_another_protocol_is_left_out_where_the_protocol_was_detected(tmp_path: Path) -> None:
    file = tmp_path / "stream.sse"
    file.write_bytes(WHOLE)
    assert audit(str(file), dialect="of another").outcome == "complete"
    with pytest.raises(ValueError, match="has no 'of another'"):
        audit(str(file), ANTHROPIC, dialect="of another")


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(WHOLE)))
    assert audit(STDIN).outcome == "complete"
    assert not sys.stdin.buffer.closed


@pytest.mark.parametrize(
    ("data", "pieces"),
    [
        (b"", []),
        (b"a\n\nb\r\n\r\nc", [b"a\n\n", b"b\r\n\r\n", b"c"]),
        (b"\n\n", [b"\n", b"\n"]),
        (b"a" * (3 << 20) + b"\n\nb\n", [b"a" * (1 << 20)] * 3 + [b"\n", b"\n", b"b\n"]),
    ],
)
def test_pieces_end_at_blank_lines(data: bytes, pieces: list[bytes]) -> None:
    source: Any = io.BytesIO(data)
    read = list(read_pieces(source))
    assert b"".join(read) == data
    assert [len(piece) for piece in read] == [len(piece) for piece in pieces]


def test_a_folder_is_searched_to_its_bottom(tmp_path: Path) -> None:
    (tmp_path / "b" / "c").mkdir(parents=True)
    (tmp_path / "folder.sse").mkdir()
    for name in ("z.sse", "b/c/y.body", "a.sse", "a.json", "notes.md"):
        (tmp_path / name).touch()
    names = [os.path.relpath(found, tmp_path) for found in recordings(tmp_path)]
    assert names == ["a.sse", os.path.join("b", "c", "y.body"), "z.sse"]


def test_recorded_streams_are_told_apart_and_none_that_is_broken_is_complete(shared: Path) -> None:
    folder = shared / "corpus"
    rows = json.loads((folder / "manifest.json").read_text())
    for row in rows:
        verdict = audit(str(folder / row["file"]))
        assert verdict.protocol == row["protocol"], row["file"]
        assert verdict.size == row["bytes"], row["file"]
        expected = json.loads((folder / row["expected"]).read_text())
        expected.update(expected.get("if_tail_flushed") or {})
        if expected["error"] or not expected["complete"]:
            assert verdict.outcome != "complete", row["file"]
    assert {row["protocol"] for row in rows} == set(NAMES)
