"""A short soak, and that the measurement of the overhead runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.mark.parametrize(("backend", "streams"), [("asyncio", 150), ("trio", 150), ("threads", 300)])
def test_nothing_leaks_and_no_message_is_wrong(backend: str, streams: int, tmp_path: Path) -> None:
    report = tmp_path / "soak.json"
    options = ["--streams", str(streams), "--concurrent", "30", "--backend", backend, "--json", str(report)]
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / "soak.py"), *options],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(report.read_text())
    assert found["wrong"] == []
    assert not any(found["left"].values())
    assert found["lost places"] <= 0.05 * streams
    assert sum(found["ends"].values()) == streams


def test_the_overhead_is_measured(tmp_path: Path) -> None:
    report = tmp_path / "overhead.json"
    command = [sys.executable, str(BENCHMARKS / "overhead.py"), "--quick", "--json", str(report)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    figures = json.loads(report.read_text())
    assert len(figures) == 5
    assert all(row["drain"] > 0 and row["ratio"] > 0.5 for row in figures.values())
