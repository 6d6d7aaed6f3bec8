"""The benchmark runs, checks what its contestants read, and prints the ratio that the targets speak of."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).parent.parent / "benchmarks" / "run.py"


def run(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(RUN), *options], capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[dict[str, object]]]:
    report = tmp_path_factory.mktemp("benchmark") / "figures.json"
    done = run(
        *("--quick", "--protocol", "anthropic-messages", "--workload", "W5", "--contestant", "floor,sseam"),
        *("--json", str(report)),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads(report.read_text())["figures"]


def test_prints_the_ratio_of_every_chunking(tiny: tuple[str, list[dict[str, object]]]) -> None:
    output, figures = tiny
    ratios = {figure["chunking"]: figure["value"] for figure in figures if figure["measure"] == "sseam/floor"}
    assert set(ratios) == {"event", "64"}
    rows = {row.split()[2]: row for row in output.splitlines() if row.startswith("W5")}
    for chunking, ratio in ratios.items():
        assert f"{ratio:.2f}" in rows[str(chunking)].split()


def test_says_which_targets_were_not_measured(tiny: tuple[str, list[dict[str, object]]]) -> None:
    lines = [line.strip() for line in tiny[0].partition("targets\n")[2].splitlines()]
    assert any(line.startswith("sseam/floor") and line.endswith("met") for line in lines)
    assert any(line.startswith("SDK/sseam") and line.endswith("not measured") for line in lines)


def test_check_fails_when_nothing_of_sseam_was_measured() -> None:
    done = run("--quick", "--check", "--protocol", "openai-chat", "--workload", "W5", "--contestant", "floor")
    assert done.returncode == 1, done.stderr


def test_an_unknown_workload_is_a_usage_error() -> None:
    done = run("--workload", "W9")
    assert done.returncode == 2
    assert "W9" in done.stderr
