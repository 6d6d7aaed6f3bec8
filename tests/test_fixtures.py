"""The project's own streams give what the JSON beside them says, however they are cut.

The fixtures are data that others may use: see `fixtures/README.md` for the fields.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sseam
from harness import Result, calls, chunkings, load, outcome, run

ROOT = Path(__file__).parent.parent / "fixtures"
CASES = sorted(ROOT.glob("*/*.sse"))


@pytest.mark.parametrize("path", CASES, ids=[f"{path.parent.name}/{path.stem}" for path in CASES])
def test_fixture_gives_its_expectation(path: Path) -> None:
    case = load(path.with_suffix(".json"))
    results = {name: run(chunks, case["protocol"], **case["options"]) for name, chunks in chunkings(path.read_bytes())}
    for name, result in results.items():
        assert outcome(result) == outcome(results["whole"]), name
        _compare(case["expect"], result)


def _compare(expect: dict[str, Any], result: Result) -> None:
    found = "message" if result.error is None else type(result.error).__name__
    assert found == expect["outcome"], result.error
    told = f"{result.error} {vars(result.error) if result.error else ''}"
    for part in expect.get("error_contains", ()):
        assert part in told
    seen = _seen(result.last)
    for name, value in expect.items():
        if name not in ("outcome", "error_contains"):
            assert seen[name] == value, name


def _seen(message: sseam.Message) -> dict[str, Any]:
    """What an expectation may name."""
    usage = message.usage
    return {
        "text": message.text,
        "thinking": message.thinking,
        "refusal": message.refusal,
        "tool_calls": calls(message.tool_calls),
        "withheld": [call.name for call in message.withheld],
        "stop_reason": message.stop_reason,
        "raw_stop_reason": message.raw_stop_reason,
        "model": message.model,
        "usage": {
            name: count
            for name in usage.__struct_fields__
            if name != "raw" and (count := getattr(usage, name)) is not None
        },
        "deviations": {deviation.code: deviation.count for deviation in message.deviations},
        "content": [block.__struct_config__.tag for block in message.content],
        "signatures": [block.signature for block in message.content if isinstance(block, sseam.ThinkingBlock)],
        "citations": [len(block.citations) for block in message.content if isinstance(block, sseam.TextBlock)],
    }


def test_there_are_fixtures() -> None:
    assert CASES
    for path in CASES:
        assert path.with_suffix(".json").exists(), path
