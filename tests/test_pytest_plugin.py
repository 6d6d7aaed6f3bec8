"""The fixture `sse_replay`, in runs of pytest of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

import sseam
from recordings import CALL

pytest_plugins = ["pytester"]

PLUGIN = ("-p", "sseam.pytest_plugin", "-p", "no:cacheprovider")


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    # An installed sseam would bring the plugin by its entry point, too, and other packages theirs.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    # A run in another process and folder finds the same sseam, however this one was found.
    monkeypatch.setenv("PYTHONPATH", str(Path(sseam.__file__).parents[1]))


def test_paths_are_beside_the_test(pytester: pytest.Pytester) -> None:
    folder = pytester.mkdir("inner")
    (folder / "answer.sse").write_bytes(CALL)
    (folder / "test_it.py").write_text(
        f"""
import httpx, sseam
from pathlib import Path

CALL = {CALL!r}
HERE = Path(__file__).parent

def get(transport):
    with httpx.Client(transport=transport) as client, client.stream("POST", "http://api.test") as response:
        return list(response.iter_raw())

def test_path(sse_replay):
    assert b"".join(get(sse_replay("answer.sse"))) == CALL

def test_options_and_kinds(sse_replay):
    for source in ("answer.sse", HERE / "answer.sse", CALL, sseam.record.Recording(CALL)):
        assert get(sse_replay(source, cuts="whole")) == [CALL]

def test_a_list(sse_replay):
    transport = sse_replay(["answer.sse", b"second"], cuts="whole")
    assert get(transport) + get(transport) == [CALL, b"second"]

def test_another_folder(sse_replay, tmp_path):
    (tmp_path / "x.sse").write_bytes(b"x")
    assert get(sse_replay("x.sse", folder=tmp_path)) == [b"x"]
"""
    )
    pytester.runpytest(*PLUGIN, "inner").assert_outcomes(passed=4)


def test_the_fixture_is_listed(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest(*PLUGIN, "--fixtures")
    result.stdout.fnmatch_lines(["sse_replay*", "*sseam.replay.transport*"])


def test_a_run_without_it_loads_nothing_more(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
import sys

def test_nothing():
    assert "sseam.pytest_plugin" in sys.modules
    loaded = {"httpx", "httpx2", "anyio", "asyncio", "sseam.replay", "sseam.recording"}
    assert loaded.isdisjoint(sys.modules), loaded & set(sys.modules)
"""
    )
    result = pytester.runpytest_subprocess(*PLUGIN)
    result.assert_outcomes(passed=1)


def test_a_run_without_httpx(pytester: pytest.Pytester) -> None:
    """What needs neither library works where there is none."""
    pytester.makepyfile(
        """
import sys

sys.modules["httpx"] = sys.modules["httpx2"] = None

def test_transport(sse_replay):
    assert sse_replay(b"data: 1").requests == []
"""
    )
    pytester.runpytest_subprocess(*PLUGIN).assert_outcomes(passed=1)
