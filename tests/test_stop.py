"""A stop reason is checked against the content, and against what the caller accepts."""

from __future__ import annotations

import pytest

from sseam import StopReasonError, stop
from sseam.protocols import NAMES, load


@pytest.mark.parametrize("reason", sorted(stop.NEUTRAL))
@pytest.mark.parametrize("calls", [0, 2])
@pytest.mark.parametrize("accepted", [False, True])
def test_every_reason_against_calls_and_acceptance(reason: str, calls: int, accepted: bool) -> None:
    contradicts = (reason == "tool_use" and not calls) or (reason in ("end_turn", "stop_sequence") and calls > 0)
    holds = not contradicts and (reason in ("end_turn", "tool_use") or accepted)
    error = stop.check(reason, "raw_word", calls, {reason} if accepted else ())
    if holds:
        assert error is None
    else:
        assert isinstance(error, StopReasonError)
        assert (error.stop_reason, error.raw_stop_reason) == (reason, "raw_word")
        assert "raw_word" in str(error)


def test_the_text_says_what_to_do() -> None:
    assert "output limit" in str(stop.check("max_tokens", "length", 0, ()))
    assert "unknown stop_reason 'sensitive'" in str(stop.check(stop.UNKNOWN, "sensitive", 0, ()))
    assert "accept" in str(stop.check("error", "failed", 0, ()))


@pytest.mark.parametrize("protocol", NAMES)
def test_every_wire_value_has_a_neutral_one(protocol: str) -> None:
    table = load(protocol).STOP_REASONS
    assert table
    assert set(table.values()) <= stop.NEUTRAL
