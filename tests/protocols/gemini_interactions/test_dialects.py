"""Every deviation and dialect is shown by a fixture or refused by its name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import sseam
from sseam.protocols.gemini_interactions import DEVIATIONS, DIALECTS

FIXTURES = Path(__file__).parents[3] / "fixtures" / "gemini-interactions"


def test_every_deviation_is_shown_by_a_fixture() -> None:
    shown = {
        code
        for path in FIXTURES.glob("*.json")
        for code in json.loads(path.read_text())["expect"].get("deviations", {})
    }
    assert shown == set(DEVIATIONS)


@pytest.mark.parametrize("name", DIALECTS)
def test_a_dialect_names_deviations_that_exist(name: str) -> None:
    assert DIALECTS[name].name == name
    assert DIALECTS[name].codes <= set(DEVIATIONS)


SOFT = {
    "interleaved_steps": "interleaved-steps",
    "index_gap": "index-gap",
    "input_given_twice": "input-given-twice",
    "step_unstopped": "row-42-text-never-stopped",
    "unterminated_tail": "tail-without-blank-line",
}


@pytest.mark.parametrize("code", SOFT)
def test_strict_refuses_what_is_soft_unless_the_dialect_is_known_for_it(code: str) -> None:
    assert DEVIATIONS[code] == "soft"
    data = (FIXTURES / f"{SOFT[code]}.sse").read_bytes()
    with pytest.raises(sseam.ProtocolError, match=code):
        sseam.parse(data, "gemini-interactions", strict=True)
    known = sseam.Dialect(name="x", codes=frozenset({code}))
    assert sseam.parse(data, "gemini-interactions", strict=True, dialect=known).complete


def test_all_that_is_soft_is_shown() -> None:
    assert {code for code, grade in DEVIATIONS.items() if grade == "soft"} == set(SOFT)
