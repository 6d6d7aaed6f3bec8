"""What the README says is true: its code runs and its tables are those of the data."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from tables import TABLES, filled

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
# What goes into a test file of the reader's own is not run here.
BLOCKS = [
    block
    for block in re.findall(r"^```python\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    if "def test_" not in block
]


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_code_runs_and_prints_what_it_says(block: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block, "README.md", "exec"), {"__name__": "__main__"})
    # A comment behind a print says what it prints; … and what follows it is left open.
    told = [line.partition("# ")[2].partition("…")[0].strip() for line in block.splitlines() if "print(" in line]
    told = [text for text in told if text and not text[0].islower()]
    position = 0
    for text in told:
        position = printed.getvalue().index(text, position) + len(text)


def test_there_are_two_commands_to_set_up_and_no_more() -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 2
    assert all(block.count("\n") == 1 for block in blocks)


def test_the_tables_are_those_of_the_data() -> None:
    assert all(f"<!-- {name} -->" in README for name in TABLES)
    assert filled(README) == README


@pytest.mark.parametrize(
    "name",
    [
        "CachePolicy",
        "FakeClient",
        "ImageContent",
        "NamedTool",
        "OutputSchema",
        "Retry",
        "ToolResultMessage",
        "background",
        "extra_body",
        "fixtures/README.md",
        "key_variable=",
        "run_agent_sync",
        "sseam.cost",
        "thinking=",
    ],
)
def test_what_a_reader_looks_for_is_there(name: str) -> None:
    assert name in README
