"""Every deviation and dialect is shown by a fixture or refused by its name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import sseam
from sseam.protocols.gemini_generate import DEVIATIONS, DIALECTS

FIXTURES = Path(__file__).parents[3] / "fixtures" / "gemini-generate"


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


@pytest.mark.parametrize(
    ("stream", "code"),
    [
        ("row-09-stop-on-every-chunk", "parts_after_finish"),
        ("tail-without-blank-line", "unterminated_tail"),
    ],
)
def test_strict_refuses_what_is_soft_unless_the_dialect_is_known_for_it(stream: str, code: str) -> None:
    assert DEVIATIONS[code] == "soft"
    data = (FIXTURES / f"{stream}.sse").read_bytes()
    with pytest.raises(sseam.ProtocolError, match=code):
        sseam.parse(data, "gemini-generate", strict=True)
    dialect = next(dialect for dialect in DIALECTS.values() if code in dialect.codes)
    assert sseam.parse(data, "gemini-generate", strict=True, dialect=dialect.name).complete
