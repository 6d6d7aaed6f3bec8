"""`sseam call` as a program of its own: what it prints while the answer comes, every provider, and Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.calls import LAST, begin, block_stop, delta, stop, text_start
from tests.server import End, Pause, Server, answer

import sseam

FIXTURES = Path(__file__).parents[2] / "fixtures"
SHOWN = pytest.mark.parametrize("shown", [[], ["--json"], ["--events"]], ids=["text", "json", "events"])


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


def start(server: Server, model: str, *argv: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    """`sseam call` with a model of the server."""
    keys = {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k", "GEMINI_API_KEY": "k"}
    paths = {"PYTHONPATH": str(Path(sseam.__file__).parents[1])}
    return subprocess.Popen(
        [sys.executable, "-m", "sseam", "call", "-m", model, "--base-url", server.url, *argv],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **keys, **paths, "PYTHONUNBUFFERED": ""},  # which would hide that nothing is flushed
        # Whoever runs the tests in the background may have it ignored, which would be inherited.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def read_until(process: subprocess.Popen[bytes], words: bytes) -> float:
    """When the words came out."""
    assert process.stdout is not None
    seen = b""
    while words not in seen:
        more = os.read(process.stdout.fileno(), 65536)
        assert more, (seen, process.communicate()[1])
        seen += more
    return time.monotonic()


@SHOWN
def test_the_answer_is_printed_as_it_comes(server: Server, shown: list[str]) -> None:
    server.add(
        answer(begin(), text_start(), delta("Hello"), Pause(0.5), delta(" you"), Pause(0.1), block_stop(), stop(), LAST)
    )
    with start(server, "anthropic:m", *shown, "q") as process:
        first = read_until(process, b"Hello")
        assert read_until(process, b"you") - first > 0.3
        process.communicate(timeout=10)
    assert process.returncode == 0


@SHOWN
def test_an_interrupt_ends_it_and_its_connection(server: Server, shown: list[str]) -> None:
    server.add(answer(begin(), text_start(), delta("Hello"), End.HANG))
    with start(server, "anthropic:m", *shown, "q") as process:
        read_until(process, b"Hello")
        assert server.open == 1
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=10)
    assert process.returncode == 130
    assert b"Traceback" not in told
    assert server.wait_closed()


PROVIDERS = [
    ("openai", "/chat/completions", "openai-chat", "text"),
    ("compatible", "/chat/completions", "openai-chat", "text"),
    ("openai-responses", "/responses", "openai-responses", "text"),
    ("gemini", "/models/m:streamGenerateContent?alt=sse", "gemini-generate", "text"),
    ("anthropic", "/v1/messages", "anthropic-messages", "text"),
]


@pytest.mark.parametrize(("provider", "path", "protocol", "name"), PROVIDERS, ids=[row[0] for row in PROVIDERS])
def test_every_provider_answers(server: Server, provider: str, path: str, protocol: str, name: str) -> None:
    data = (FIXTURES / protocol / f"{name}.sse").read_bytes()
    server.add(answer(data))
    with start(server, f"{provider}:m", "--system", "Be brief.", "--json", stdin=subprocess.PIPE) as process:
        out, told = process.communicate(b"from standard input", timeout=10)
    assert (process.returncode, told) == (0, b"")
    *_events, last = (json.loads(line) for line in out.splitlines())
    assert (last["type"], last["message"]["complete"]) == ("Done", True)
    text = "".join(block["text"] for block in last["message"]["content"] if block["type"] == "text")
    assert text == sseam.parse(data, protocol).text != ""
    (request,) = server.requests
    assert request.path.endswith(path)
    sent: Any = json.loads(request.body)
    assert "from standard input" in json.dumps(sent)
    assert "Be brief." in json.dumps(sent)
