"""Recorded streams give what an independent fold of the same bytes gives, however they are cut.

The recordings are not part of the project: SSEAM_CORPUS says where they lie.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import sseam
from harness import ALL_REASONS, calls, chunkings, ended_without_marker, load, outcome, run

ROOT = Path(os.environ["SSEAM_CORPUS"]) / "corpus" if "SSEAM_CORPUS" in os.environ else None
NEEDS_CORPUS = pytest.mark.skipif(ROOT is None, reason="SSEAM_CORPUS is not set: no recorded streams at hand")

# Where a rule of the protocol's reference says otherwise than a plain fold: the error, and why.
RULE_WINS: dict[str, tuple[type[sseam.SseamError], str]] = {
    "anthropic__ai__spliced-message-start": (sseam.ProtocolError, "a second message spliced into the first"),
    "openrouter__llm__test_tools_streaming_variant_a-1": (sseam.TruncatedStream, "calls without a finish_reason"),
}

# Calls of the provider's own tools that the client runs; the plain fold counts them with what the provider ran.
CLIENT_BUILT_INS = frozenset({"apply_patch", "local_shell", "shell", "tool_search"})


def rows() -> list[Any]:
    if ROOT is None:
        return []
    return [pytest.param(row, id=Path(row["file"]).name) for row in load(ROOT / "manifest.json")]


@NEEDS_CORPUS
@pytest.mark.parametrize("row", rows())
def test_recording_gives_its_expected_result(row: dict[str, Any]) -> None:
    assert ROOT is not None
    data = (ROOT / row["file"]).read_bytes()
    expected = load(ROOT / row["expected"])
    expected |= expected.get("if_tail_flushed") or {}
    options = {"accept": ALL_REASONS, "tools": row["request_tools"] or ()}

    results = {name: run(chunks, row["protocol"], **options) for name, chunks in chunkings(data)}
    whole = results["whole"]
    for name, result in results.items():
        assert outcome(result) == outcome(whole), name

    exception = RULE_WINS.get(Path(row["file"]).stem)
    if exception is not None:
        assert type(whole.error) is exception[0], exception[1]
        return
    last = whole.last
    assert last.text == expected.get("text_from_items", expected["text"])
    assert last.thinking == (expected["thinking"] or "")
    _compare_calls(expected, last)
    assert [call.name for call in last.withheld] == [call["name"] for call in expected["incomplete_tool_calls"]]
    if whole.message is not None or not expected["error"]:  # after an error no reason is waited for
        assert last.raw_stop_reason == _stop_reason(row, expected)
    assert last.usage.raw == (expected["usage"] or {})
    assert isinstance(whole.error, sseam.ApiError) == bool(expected["error"])
    assert (whole.message is not None) == expected["complete"]


def _stop_reason(row: dict[str, Any], expected: dict[str, Any]) -> str | None:
    """The provider's word; for Responses the incomplete reason where there is one."""
    detail = expected.get("stop_detail") if row["protocol"] == "openai-responses" else None
    return detail or expected["stop_reason"]


def _compare_calls(expected: dict[str, Any], message: sseam.Message) -> None:
    found = calls(call for call in message.tool_calls if call.name not in CLIENT_BUILT_INS)
    assert len(found) == len(expected["tool_calls"]), found
    for call, wanted in zip(found, expected["tool_calls"], strict=True):
        assert call["id"] == (wanted["id"] or call["id"])
        assert call["id"]
        assert call["name"] == wanted["name"]
        custom = wanted["arguments"].get("__custom__")
        assert call["arguments"] == ({"input": custom} if custom is not None else wanted["arguments"])


@NEEDS_CORPUS
@pytest.mark.parametrize("row", rows())
def test_a_cut_recording_is_never_a_message(row: dict[str, Any]) -> None:
    """Cut anywhere before the end of its terminal event, a stream releases no call that the whole does not."""
    assert ROOT is not None
    data = (ROOT / row["file"]).read_bytes()
    options = {"accept": ALL_REASONS, "tools": row["request_tools"] or ()}
    parser = sseam.Parser(row["protocol"], **options)
    parser.feed(data)
    if not parser.done:
        return  # no terminal event: nothing to cut before
    released = calls(parser.result().tool_calls) if parser.partial.complete else []
    for cut in _cuts(data, _terminal(data, row["protocol"], options)):
        result = run([data[:cut]], row["protocol"], recording=False, **options)
        assert result.message is None or ended_without_marker(result.message, parser.partial), cut
        assert all(call in released for call in calls(result.last.tool_calls)), cut


def _terminal(data: bytes, protocol: str, options: dict[str, Any]) -> int:
    """The offset of the frame that held the terminal event."""
    parser = sseam.Parser(protocol, **options)
    for frame in sseam.Framer().feed(data):
        parser.feed_frame(frame)
        if parser.done:
            return frame.offset
    raise AssertionError("no terminal event")


def _cuts(data: bytes, terminal: int) -> list[int]:
    """Every byte of a short stream; of a longer one every frame's end and what lies around the last."""
    if terminal < 2500:
        return list(range(terminal + 1))
    frames = [frame.offset for frame in sseam.Framer().feed(data)]
    step = max(1, len(frames) // 40)
    return [offset + shift for offset in frames[::step] for shift in (0, 9) if offset + shift <= terminal]
