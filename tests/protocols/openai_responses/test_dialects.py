"""Every deviation is shown by a fixture, and graded: tolerated, refused, or allowed by a dialect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sseam
from harness import load, run
from sseam.protocols.openai_responses import DEVIATIONS, DIALECTS

ROOT = Path(__file__).parents[3] / "fixtures" / "openai-responses"
CASES = {path.stem: load(path) for path in sorted(ROOT.glob("*.json"))}
SHOWN = [(name, code) for name, case in CASES.items() for code in case["expect"].get("deviations", ())]
WHOLE = [name for name, case in CASES.items() if case["expect"]["outcome"] == "message"]


def _run(name: str, **options: Any) -> Any:
    case = CASES[name]
    data = (ROOT / f"{name}.sse").read_bytes()
    return run([data], case["protocol"], **{**case["options"], "dialect": None, "strict": False, **options})


def test_every_deviation_is_shown() -> None:
    assert {code for _, code in SHOWN} | {"unterminated_tail"} == DEVIATIONS.keys()


@pytest.mark.parametrize("name", WHOLE)
def test_strict_mode_refuses_what_is_soft_and_nothing_else(name: str) -> None:
    codes = CASES[name]["expect"].get("deviations")
    if codes is None or "xai" in name:
        return
    soft = [code for code in codes if DEVIATIONS[code] == "soft"]
    error = _run(name, strict=True).error
    assert (error is not None) == bool(soft)
    assert error is None or any(code in str(error) for code in soft)
    known = sseam.Dialect(name="all", codes=frozenset(codes) - {"server_custom_tool"})
    assert _run(name, strict=True, dialect=known).message is not None


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_a_dialect_lists_deviations(dialect: sseam.Dialect) -> None:
    assert dialect.codes <= DEVIATIONS.keys()


def test_a_tail_without_its_blank_line_is_used_in_a_recording_only() -> None:
    data = (ROOT / "text.sse").read_bytes().rstrip(b"\n")
    assert sseam.parse(data, "openai-responses").deviations[0].code == "unterminated_tail"
    parser = sseam.Parser("openai-responses")
    parser.feed(data)
    with pytest.raises(sseam.TruncatedStream):
        parser.close()
