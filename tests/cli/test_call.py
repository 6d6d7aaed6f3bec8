"""`sseam call`, against the loopback server."""

from __future__ import annotations

import errno
import io
import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sseam
from recordings import CALL, PROTOCOL
from sseam import cli
from sseam.cli import call
from sseam.recording.faults import Cut, apply
from sseam.recording.record import Recording, load
from sseam.recording.serve import Server, serve

Run = Callable[..., tuple[int, str, str]]

SHOWN = """\
It is sünny.

tool call look (toolu_1) {"at": "sky"}

complete  tool_use
released  look (toolu_1)
model     m (msg_1)
usage     7 in, 9 out
"""
OVERLOADED = Recording(
    b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}', 529, {"retry-after": "0"}
)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An empty folder, a key, and nobody at the terminal."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret-key")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    feed_stdin(monkeypatch, b"")


def feed_stdin(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `sseam call` with a model of the server: exit code, standard output, standard error."""

    def run(server: Server, *argv: str) -> tuple[int, str, str]:
        code = cli.main(["call", "-m", "anthropic:claude-opus-5", "--base-url", server.base_url, *argv])
        return code, *capsys.readouterr()

    return run


def body_of(server: Server) -> Any:
    return json.loads(server.requests[-1].body)


def question_of(server: Server) -> str:
    (message,) = body_of(server)["messages"]
    content = message["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def test_the_answer_is_shown(run: Run) -> None:
    with serve(CALL, cuts=7) as server:
        assert run(server, "How is the sky?") == (0, SHOWN, "")
    (request,) = server.requests
    assert (request.target, request.headers["x-api-key"]) == ("/v1/messages", "secret-key")
    body = body_of(server)
    assert (body["model"], body["stream"]) == ("claude-opus-5", True)
    assert "How is the sky?" in json.dumps(body["messages"])
    assert "system" not in body
    assert "tools" not in body


def test_the_question_on_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    feed_stdin(monkeypatch, "Wie ist das Wetter, schön?\n".encode())
    with serve(CALL) as server:
        assert run(server)[0] == 0
    assert "schön" in json.dumps(body_of(server)["messages"], ensure_ascii=False)


@pytest.mark.parametrize("question", ["-", None])
def test_standard_input_by_its_name_or_by_none(run: Run, monkeypatch: pytest.MonkeyPatch, question: str | None) -> None:
    feed_stdin(monkeypatch, b"From there.")
    with serve(CALL) as server:
        assert run(server, *[question] * bool(question))[0] == 0
    assert question_of(server) == "From there."


@pytest.mark.parametrize(
    ("piped", "asked"),
    [(b"+ a\n- b\n", "Review this\n\n+ a\n- b\n"), (b"", "Review this"), (b" \n", "Review this")],
    ids=["text", "nothing", "blank"],
)
def test_what_is_piped_in_stands_behind_the_question(
    run: Run, monkeypatch: pytest.MonkeyPatch, piped: bytes, asked: str
) -> None:
    feed_stdin(monkeypatch, piped)
    with serve(CALL) as server:
        assert run(server, "Review this")[0] == 0
    assert question_of(server) == asked


class Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


class Unreadable(io.BytesIO):
    """What nohup leaves as standard input, or a broken disk."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def read(self, size: int | None = -1, /) -> bytes:
        raise OSError(self.number, os.strerror(self.number))


@pytest.mark.parametrize(
    "stdin",
    [Terminal(io.BytesIO(b"typed")), None, io.TextIOWrapper(Unreadable(errno.EBADF))],
    ids=["terminal", "closed", "nohup"],
)
def test_a_question_without_anything_piped_in(run: Run, monkeypatch: pytest.MonkeyPatch, stdin: Any) -> None:
    monkeypatch.setattr(sys, "stdin", stdin)
    with serve(CALL) as server:
        assert run(server, "Hi")[0] == 0
    assert question_of(server) == "Hi"


@pytest.mark.parametrize(
    ("stdin", "text"),
    [(None, "there is no question"), (io.TextIOWrapper(Unreadable(errno.EIO)), "standard input: ")],
    ids=["closed", "broken"],
)
def test_no_question_in_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch, stdin: Any, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", stdin)
    with serve(CALL) as server:
        code, _, err = run(server)
    assert code == 2
    assert text in err


def test_a_pipe_that_is_left_open_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call, "_PATIENCE", 0.05)
    reader, writer = os.pipe()
    threading.Timer(0.5, os.close, [writer]).start()
    with open(reader, encoding="utf-8") as stdin, serve(CALL) as server:
        monkeypatch.setattr(sys, "stdin", stdin)
        code, _, err = run(server, "Hi")
    assert code == 0
    assert err == "sseam call: waiting for the end of standard input; </dev/null where there is none\n"


def test_limits_and_thinking(run: Run) -> None:
    with serve(CALL.replace(b'"tool_use"}', b'"max_tokens"}')) as server:
        code, _, err = run(server, "--max-tokens", "77", "--thinking", "low", "--accept", "max_tokens", "Hi")
    assert (code, err) == (0, "")
    body = body_of(server)
    assert body["max_tokens"] == 77
    assert body["thinking"]


def test_a_time_limit(run: Run) -> None:
    with serve(CALL, fault=Cut(frame=3, ending="stall")) as server:
        code, out, _ = run(server, "--timeout", "0.3", "Hi")
    assert code == 1
    assert "\ndisconnected  " in out


@pytest.mark.parametrize(
    "option", [["--max-tokens", "0"], ["--max-tokens", "x"], ["--timeout", "0"], ["--timeout", "inf"]]
)
def test_limits_that_cannot_be(run: Run, option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["call", "-m", "anthropic:m", *option, "Hi"])
    assert option[0] in capsys.readouterr().err


@pytest.mark.parametrize(
    ("model", "header", "value"),
    [("anthropic:m", "x-api-key", "own-key"), ("compatible:m", "authorization", "Bearer own-key")],
)
def test_a_key_in_a_variable_of_its_own(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, model: str, header: str, value: str
) -> None:
    argv = ["call", "-m", model, "--key-variable", "MY_KEY", "Hi"]
    with serve(CALL) as server:
        argv += ["--base-url", server.base_url]
        assert cli.main(argv) == 2
        assert "the environment variable MY_KEY is not set" in capsys.readouterr().err
        monkeypatch.setenv("MY_KEY", "own-key")
        cli.main(argv)
    assert server.requests[-1].headers[header] == value


def test_system_and_tools(run: Run) -> None:
    Path("one.json").write_text('{"name": "look", "input_schema": {"type": "object"}}')
    Path("two.json").write_text(
        '[{"type": "function", "function": {"name": "hear", "parameters": {"type": "object"}}}]'
    )
    with serve(CALL) as server:
        code, out, _ = run(
            server, "--system", "Be brief.", "--tool-schema", "one.json", "--tool-schema", "two.json", "Hi"
        )
        assert (code, out) == (0, SHOWN)
    body = body_of(server)
    assert "Be brief." in json.dumps(body["system"])
    assert [tool["name"] for tool in body["tools"]] == ["look", "hear"]


def test_a_call_of_another_tool_is_refused(run: Run) -> None:
    Path("hear.json").write_text('{"name": "hear", "input_schema": {"type": "object"}}')
    with serve(CALL) as server:
        code, out, err = run(server, "--tool-schema", "hear.json", "Hi")
    assert (code, err) == (1, "")
    assert "invalid tool call" in out
    assert "released" not in out


def test_json(run: Run) -> None:
    with serve(CALL) as server:
        code, out, err = run(server, "--json", "Hi")
    assert (code, err) == (0, "")
    first, *events, last = map(json.loads, out.splitlines())
    assert first == {"type": "Call", "model": "anthropic:claude-opus-5", "protocol": PROTOCOL}
    assert "".join(event["text"] for event in events if event["type"] == "TextDelta") == "It is sünny."
    assert (last["type"], last["message"]["complete"]) == ("Done", True)


def test_events(run: Run) -> None:
    with serve(CALL) as server:
        code, out, _ = run(server, "--events", "--color", "never", "Hi")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()][-2:] == ["UsageUpdate", "Done"]


def test_each_response_is_recorded(run: Run) -> None:
    with serve([OVERLOADED, CALL]) as server:
        code, out, err = run(server, "--record", "deep/er", "Hi")
    assert (code, out) == (0, SHOWN)
    assert err.startswith("sseam call: attempt 1 failed: ")
    assert "Overloaded" in err
    assert sorted(path.name for path in Path("deep/er").iterdir()) == [
        "claude-opus-5-001.json",
        "claude-opus-5-001.sse",
        "claude-opus-5-002.json",
        "claude-opus-5-002.sse",
    ]
    assert load("deep/er/claude-opus-5-001.sse").status == 529
    assert sseam.parse(load("deep/er/claude-opus-5-002.sse").data, PROTOCOL).text == "It is sünny."
    assert "secret-key" not in "".join(path.read_text() for path in Path("deep/er").iterdir())


@pytest.mark.parametrize(
    ("recording", "shown", "label"),
    [
        (apply(Cut(frame=3, ending="reset"), Recording(CALL)), "It is \n\n", "disconnected"),
        (apply(Cut(frame=3, ending="end"), Recording(CALL)), "It is \n\n", "truncated"),
        (Recording(b'{"error":{"type":"invalid_request_error","message":"No."}}', 400), "", "api error"),
        (Recording(CALL.replace(b'"tool_use"}', b'"max_tokens"}')), "", "cut off"),
    ],
    ids=["reset", "truncated", "refused", "cut off"],
)
def test_what_is_not_complete(run: Run, recording: Recording, shown: str, label: str) -> None:
    with serve(recording) as server:
        code, out, err = run(server, "Hi")
        assert (code, err) == (1, "")
        assert out.startswith(shown)
        assert f"\n{label}  " in out
        code, out, _ = run(server, "--json", "Hi")
    assert code == 1
    assert json.loads(out.splitlines()[-1])["type"] == "Failed"


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (["-m", "claude", "Hi"], "'claude' is not PROVIDER:MODEL with a provider of anthropic, openai"),
        (["-m", "acme:claude", "Hi"], "is not PROVIDER:MODEL"),
        (["-m", "anthropic:", "Hi"], "is not PROVIDER:MODEL"),
        (["-m", "compatible:m", "Hi"], "a compatible server needs --base-url"),
        (["-m", "anthropic:m"], "there is no question"),
        (["-m", "anthropic:m", " \n"], "there is no question"),
        (["-m", "openai:m", "Hi"], "the environment variable OPENAI_API_KEY is not set"),
        (["-m", "anthropic:m", "--tool-schema", "none.json", "Hi"], "call: none.json: No such file or directory\n"),
        (["-m", "anthropic:m", "--tool-schema", "broken.json", "Hi"], "broken.json: "),
        (["-m", "anthropic:m", "--tool-schema", "number.json", "Hi"], "number.json: a tool is a JSON object, not 1"),
        (["-m", "anthropic:m", "--tool-schema", "text.json", "Hi"], 'text.json: a tool is a JSON object, not "str"'),
        (["-m", "anthropic:m", "--tool-schema", "empty.json", "Hi"], "empty.json: there are no tools in it"),
        (["-m", "anthropic:m", "--record", "broken.json", "Hi"], "broken.json: File exists"),
    ],
)
def test_wrong_usage(capsys: pytest.CaptureFixture[str], argv: list[str], text: str) -> None:
    Path("broken.json").write_text("{")
    Path("number.json").write_text("[1]")
    Path("text.json").write_text('"str"')
    Path("empty.json").write_text("[]")
    assert cli.main(["call", *argv]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("sseam call: ")
    assert text in err


def test_standard_input_that_is_no_text(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    feed_stdin(monkeypatch, b"caf\xe9")
    with serve(CALL) as server:
        code, _, err = run(server)
    assert code == 2
    assert "standard input is no UTF-8 text" in err
    assert server.requests == []


@pytest.mark.parametrize("record", [[], ["--record", "."]])
def test_without_a_library(run: Run, monkeypatch: pytest.MonkeyPatch, record: list[str]) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with serve(CALL) as server:
        code, _, err = run(server, *record, "Hi")
    assert code == 2
    assert "pip install 'sseam[http]'" in err


@pytest.mark.parametrize("record", [[], ["--record", "."]])
def test_with_the_other_library(run: Run, monkeypatch: pytest.MonkeyPatch, record: list[str]) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with serve(CALL) as server:
        assert run(server, *record, "Hi") == (0, SHOWN, "")
