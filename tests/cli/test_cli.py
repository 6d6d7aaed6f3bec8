"""The command line, called as a function; as a process where only that shows it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from sseam import __version__, audit, cli
from test_audit import WHOLE, block, call, ended, sse, start, text

CALLS = sse(start(), *text(0, "Let me ", "look."), *call(1, '{"a":', "1}"), *ended("tool_use"))
CUT = sse(start(), *text(0, "Hi"), *call(1, '{"a"', stop=False), *ended("max_tokens"))
THINKING = sse(start(), *block(0, {"type": "thinking", "thinking": ""}, {"type": "thinking_delta", "thinking": "Hm."}))
THOUGHT = THINKING + sse(*text(1, "Yes."), *ended("end_turn"))

CALLS_SHOWN = """\
Let me look.

tool call look (toolu_1) {"a":1}

complete  tool_use
released  look (toolu_1)
model     m-1 (msg_1)
usage     3 in, 9 out
"""


class Terminal(io.TextIOWrapper):
    """A stream that says that it is a terminal, or not, and remembers what was flushed to it."""

    def __init__(self, terminal: bool = True, **options: Any) -> None:
        super().__init__(io.BytesIO(), write_through=True, **{"encoding": "utf-8", "newline": "", **options})
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal

    @property
    def text(self) -> str:
        raw = self.buffer
        assert isinstance(raw, io.BytesIO)
        return raw.getvalue().decode(self.encoding)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An empty folder to work in and a terminal that is known."""
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs the command line: exit code, standard output, standard error."""

    def run(*argv: str) -> tuple[int, str, str]:
        code = cli.main(argv)
        return code, *capsys.readouterr()

    return run


Run = Callable[..., tuple[int, str, str]]


def feed_stdin(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


# ---- replay


def test_replay_shows_text_calls_and_the_end(run: Run) -> None:
    Path("a.sse").write_bytes(CALLS)
    assert run("replay", "a.sse") == (0, CALLS_SHOWN, "")


@pytest.mark.parametrize("chunk", [1, 7, 10_000])
def test_replay_shows_the_same_however_the_input_is_cut(chunk: int, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(io.BytesIO):
        def read1(self, size: int | None = -1, /) -> bytes:
            return self.read(chunk)

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Slow(CALLS)))
    assert run("replay", "-") == (0, CALLS_SHOWN, "")


def test_replay_of_a_cut_off_stream_withholds_the_call(run: Run) -> None:
    Path("a.sse").write_bytes(CUT)
    code, out, err = run("replay", "a.sse")
    assert (code, err) == (1, "")
    assert f"cut off   stop reason 'max_tokens' (frame 7, byte {CUT.rindex(b'event: message_stop'):,})\n" in out
    assert "withheld  look (toolu_1): it never ended\n" in out
    code, out, err = run("replay", "--accept", "max_tokens", "a.sse")
    assert (code, err) == (0, "")
    assert "complete  max_tokens\nwithheld  look (toolu_1): it never ended\n" in out


@pytest.mark.parametrize("speed", ["0", "1000"])
def test_replay_of_a_truncated_stream_says_so(speed: str, run: Run) -> None:
    Path("a.sse").write_bytes(sse(start(), *text(0, "Hi", stop=False)))
    code, out, err = run("replay", "--speed", speed, "a.sse")
    assert (code, err) == (1, "")
    assert out.startswith("Hi\n\ntruncated  stream ended with unclosed text block(s): 0 (")


def test_replay_dims_thinking_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.sse").write_bytes(THOUGHT)
    out = Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    assert cli.main(["replay", "a.sse"]) == 0
    assert out.text.startswith("\x1b[2m| \x1b[0m\x1b[2mHm.\x1b[0m\n\nYes.\n\n\x1b[32mcomplete  \x1b[0mend_turn\n")


@pytest.mark.parametrize(
    ("terminal", "setting", "variables", "coloured"),
    [
        (True, "auto", {}, True),
        (False, "auto", {}, False),
        (True, "auto", {"NO_COLOR": "1"}, False),
        (True, "auto", {"NO_COLOR": ""}, True),
        (True, "auto", {"TERM": "dumb"}, False),
        (True, "never", {}, False),
        (False, "always", {"NO_COLOR": "1", "TERM": "dumb"}, True),
    ],
)
@pytest.mark.parametrize("command", ["replay", "check"])
def test_colour_only_where_it_is_wanted(
    command: str,
    terminal: bool,
    setting: str,
    variables: dict[str, str],
    coloured: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Path("a.sse").write_bytes(THOUGHT)
    out = Terminal(terminal)
    monkeypatch.setattr(sys, "stdout", out)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert cli.main([command, "--color", setting, "a.sse"]) == 0
    assert ("\x1b" in out.text) == coloured


def test_replay_events_one_a_line(run: Run) -> None:
    Path("a.sse").write_bytes(WHOLE)
    code, out, err = run("replay", "--events", "a.sse")
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()] == [
        *("Start", "UsageUpdate", "TextStart", "TextDelta", "TextEnd", "UsageUpdate", "Done")
    ]


def test_replay_json_lines(run: Run) -> None:
    Path("a.sse").write_bytes(CUT)
    code, out, err = run("replay", "--json", "a.sse", "none.sse")
    lines = [json.loads(line) for line in out.splitlines()]
    assert (code, err) == (2, "sseam replay: none.sse: No such file or directory\n")
    assert lines[0] == {"type": "Recording", "file": "a.sse", "protocol": "anthropic-messages"}
    assert lines[1] == {"type": "Start", "id": "msg_1", "model": "m-1"}
    assert lines[-2]["type"] == "Failed"
    assert lines[-2]["error"]["type"] == "StopReasonError"
    assert lines[-2]["message"]["withheld"][0]["id"] == "toolu_1"
    assert (lines[-1]["type"], lines[-1]["outcome"]) == ("Verdict", "unreadable")


def test_replay_of_several_files_names_each(run: Run) -> None:
    Path("a.sse").write_bytes(WHOLE)
    Path("b.sse").write_bytes(CUT)
    code, out, _ = run("replay", "a.sse", "b.sse", "a.sse")
    assert code == 1
    assert out.startswith("==> a.sse (anthropic-messages) <==\nHi\n")
    assert out.count("\n\n==> ") == 2


def test_replay_goes_on_behind_a_file_that_cannot_be_read(run: Run) -> None:
    Path("a.sse").write_bytes(WHOLE)
    Path("notes.txt").write_text("notes\n")
    code, out, err = run("replay", "none.sse", "notes.txt", "a.sse")
    assert code == 2
    assert "Hi\n" in out
    assert err.splitlines() == [
        "sseam replay: none.sse: No such file or directory",
        "sseam replay: notes.txt: its first bytes tell no protocol. "
        "It begins 'notes\\n'; name the protocol with --protocol",
    ]


def test_replay_at_a_pace_sleeps_between_the_frames(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    naps: list[float] = []
    monkeypatch.setattr(time, "sleep", naps.append)
    Path("a.sse").write_bytes(CALLS)
    assert run("replay", "--speed", "2", "a.sse") == (0, CALLS_SHOWN, "")
    assert naps == [0.01] * (CALLS.count(b"\n\n") - 1)


@pytest.mark.parametrize("speed", ["-1", "nan", "inf", "fast", "1e-320"])
def test_a_pace_that_is_none_is_refused(speed: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        cli.main(["replay", "--speed", speed, "a.sse"])
    assert exit.value.code == 2
    assert f"--speed: {speed!r} is neither 0 nor a number from 0.001" in capsys.readouterr().err


def test_text_is_written_while_the_input_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    out = Terminal()
    shown: list[str] = []

    class Live(io.BytesIO):
        def read1(self, size: int | None = -1, /) -> bytes:
            shown.append(out.text)
            return self.readline() + self.readline() + self.readline()

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Live(CALLS + b"data: after the end\n\n")))
    monkeypatch.setattr(sys, "stdout", out)
    assert cli.main(["replay", "--color", "never", "-"]) == 0
    assert shown[:5] == ["", "", "", "Let me ", "Let me look."]
    assert len(shown) == CALLS.count(b"\n\n")


# ---- check


def test_check_gives_a_verdict_each_and_a_summary(run: Run) -> None:
    Path("a.sse").write_bytes(WHOLE)
    Path("b.sse").write_bytes(CUT + b"more")
    code, out, err = run("check", ".")
    assert (code, err) == (1, "")
    assert out == (
        "complete           a.sse  end_turn\n"
        f"cut off            b.sse: stop reason 'max_tokens' (frame 7, byte {CUT.rindex(b'event: message_stop'):,}) "
        "(1 tool call withheld, 4 bytes after the terminal event)\n"
        "\n2 recordings: 1 complete, 1 cut off\n"
    )


def test_check_of_one_file_needs_no_summary(run: Run) -> None:
    Path("a.sse").write_bytes(WHOLE)
    assert run("check", "a.sse") == (0, "complete           a.sse  end_turn\n", "")


def test_check_json(run: Run) -> None:
    Path("a.sse").write_bytes(WHOLE)
    code, out, err = run("check", "--json", "a.sse", "none.sse")
    first, second = (json.loads(line) for line in out.splitlines())
    assert (code, err) == (2, "sseam check: none.sse: No such file or directory\n")
    assert first == {
        "type": "Verdict",
        "file": "a.sse",
        "outcome": "complete",
        "protocol": "anthropic-messages",
        "model": "m-1",
        "reason": "",
        "hint": "",
        "where": {"protocol": None, "frame": None, "offset": None, "block": None, "call": None},
        "error": None,
        "stop_reason": "end_turn",
        "raw_stop_reason": "end_turn",
        "tool_calls": 0,
        "withheld": 0,
        "deviations": [],
        "size": len(WHOLE),
        "trailing": 0,
    }
    assert (second["outcome"], second["error"]) == ("unreadable", "FileNotFoundError")


def test_check_reads_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    feed_stdin(monkeypatch, WHOLE)
    assert run("check", "-") == (0, "complete           -  end_turn\n", "")


def test_an_unreadable_file_is_said_once_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    out, err = Terminal(), Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    assert cli.main(["check", "none.sse"]) == 2
    assert "unreadable" in out.text
    assert err.text == ""


def test_globs_and_folders(run: Run) -> None:
    Path("in/deep").mkdir(parents=True)
    for name in ("in/a.sse", "in/deep/b.body", "in/deep/c.txt", "[d].sse"):
        Path(name).write_bytes(WHOLE)

    def found(*argv: str) -> list[str]:
        return [json.loads(line)["file"].replace(os.sep, "/") for line in run("check", "--json", *argv)[1].splitlines()]

    assert found("in") == ["in/a.sse", "in/deep/b.body"]
    assert found("in/**/*.*") == ["in/a.sse", "in/deep/b.body", "in/deep/c.txt"]
    assert found("[d].sse") == ["[d].sse"]
    assert found("*.none") == ["*.none"]


def test_a_folder_without_recordings_is_refused(run: Run) -> None:
    Path("empty").mkdir()
    assert run("check", "empty") == (2, "", "sseam check: empty: no recordings (*.sse, *.body) there\n")


def test_a_dialect_that_nobody_has_is_refused(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "NAMES", ["anthropic-messages"])
    Path("a.sse").write_bytes(WHOLE)
    code, out, err = run("check", "--dialect", "klingon", "a.sse")
    assert (code, out) == (2, "")
    assert err.startswith("sseam check: no dialect 'klingon' in any protocol: anthropic-messages has anthropic, ")
    code, out, err = run("check", "--protocol", "anthropic-messages", "--dialect", "klingon", "a.sse")
    assert err.startswith("sseam check: no dialect 'klingon' in anthropic-messages: ")


def test_the_dialects_are_told_by_protocol(run: Run) -> None:
    Path("a.sse").write_bytes(WHOLE)
    err = run("check", "--dialect", "vlm", "a.sse")[2]
    there = dict(part.split(" has ") for part in err.strip().partition("any protocol: ")[2].split("; "))
    assert there.keys() == set(cli.NAMES)
    assert all(len(names) == len(set(names)) for names in (part.split(", ") for part in there.values()))


def test_every_outcome_is_in_the_help(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["check", "--help"])
    shown = capsys.readouterr().out
    assert all(outcome.replace("_", " ") in shown for outcome in get_args(audit.Outcome))


def test_reading_options_reach_the_parser(run: Run) -> None:
    Path("a.sse").write_bytes(CALLS[:-1])
    assert run("check", "a.sse", "--tool", "look")[0] == 0
    assert run("check", "a.sse", "--tool", "other")[1].startswith("invalid tool call")
    assert run("check", "a.sse", "--strict")[1].startswith("protocol error")
    dialect = next(iter(cli.load("anthropic-messages").DIALECTS))
    assert run("check", "a.sse", "--protocol", "anthropic-messages", "--dialect", dialect)[0] == 0


def test_a_bar_on_standard_error_and_the_results_below_it(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.sse").write_bytes(WHOLE)
    out, err = Terminal(), Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    assert cli.main(["check", "--color", "never", *["a.sse"] * 30]) == 0
    assert "30/30" in err.text
    assert out.text == "complete           a.sse  end_turn\n" * 30 + "\n30 recordings: 30 complete\n"


@pytest.mark.parametrize(("files", "terminal", "options"), [(30, False, []), (3, True, []), (30, True, ["--json"])])
def test_no_bar(files: int, terminal: bool, options: list[str], run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.sse").write_bytes(WHOLE)
    err = Terminal(terminal)
    monkeypatch.setattr(sys, "stderr", err)
    code, out, _ = run("check", *options, *["a.sse"] * files)
    assert (code, err.text) == (0, "")
    assert len(out.splitlines()) >= files


def test_results_go_to_a_pipe_while_the_bar_moves(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.sse").write_bytes(WHOLE)
    err = Terminal()
    monkeypatch.setattr(sys, "stderr", err)
    code, out, _ = run("check", *["a.sse"] * 25)
    assert (code, out.count("complete  ")) == (0, 25)
    assert "25/25" in err.text


# ---- both


@pytest.mark.parametrize("command", [["replay"], ["replay", "--events"], ["replay", "--json"], ["check"]])
def test_control_characters_of_a_recording_do_not_reach_the_terminal(command: list[str], run: Run) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\u202e"
    payloads = [start(), *text(0, evil), *call(1, json.dumps({evil: evil})), *ended(evil)]
    payloads[0]["message"]["model"] = evil
    Path("a.sse").write_bytes(sse(*payloads))
    _, out, err = run(*command, "a.sse")
    assert not set("\x1b\x07\x9b\r\u202e") & set(out + err)
    assert err == ""


def test_what_the_encoding_lacks_is_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.sse").write_bytes(sse(start(), *text(0, "ü漢"), *ended("end_turn")))
    out = Terminal(encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    assert cli.main(["replay", "a.sse"]) == 0
    assert out.text.startswith("\\xfc\\u6f22\n")


@pytest.mark.parametrize("command", ["replay", "check"])
def test_without_rich_one_line_says_how_to_get_it(command: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.sse").write_bytes(WHOLE)
    monkeypatch.setitem(sys.modules, "rich.style", None)
    code, out, err = run(command, "a.sse")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "pip install 'sseam[cli]'" in err
    assert run(command, "--json", "a.sse")[0] == 0


@pytest.mark.parametrize("command", ["replay", "check"])
def test_an_interruption_is_quiet(command: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(io.BytesIO):
        def read1(self, size: int | None = -1, /) -> bytes:
            raise KeyboardInterrupt

        def readline(self, size: int | None = -1, /) -> bytes:
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Interrupted()))
    assert run(command, "-") == (130, "", "")


def test_a_reader_that_leaves_is_no_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.sse").write_bytes(WHOLE)
    reading, writing = os.pipe()
    os.close(reading)
    with contextlib.closing(os.fdopen(writing, "w")) as out:
        monkeypatch.setattr(sys, "stdout", out)
        assert cli.main(["replay", "a.sse"]) == 141
    assert capsys.readouterr().err == ""


def test_output_that_cannot_be_written_is_said(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(Terminal):
        def write(self, text: str, /) -> int:
            raise OSError(28, "No space left on device")

    Path("a.sse").write_bytes(WHOLE)
    monkeypatch.setattr(sys, "stdout", Full())
    assert run("check", "a.sse")[::2] == (2, "sseam check: the output cannot be written: No space left on device\n")


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["--version"], 0, f"sseam {__version__}"),
        (["--help"], 0, "exit codes:"),
        (["replay", "--help"], 0, '"Recording"'),
        (["check", "--help"], 0, '"outcome"'),
        ([], 2, "COMMAND"),
        (["check"], 2, "FILE"),
        (["replay", "--protocol", "none", "a"], 2, "invalid choice"),
        (["replay", "--accept", "none", "a"], 2, "invalid choice"),
        (["replay", "--json", "--events", "a"], 2, "not allowed with"),
    ],
)
def test_help_and_usage(argv: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        cli.main(argv)
    assert exit.value.code == code
    assert said in "".join(capsys.readouterr())


# ---- as a process


def process(*argv: str, **options: Any) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-m", "sseam", *argv], stdin=pipe, stdout=pipe, stderr=pipe, **options)


def test_the_package_runs_as_a_module() -> None:
    with process("check", "none.sse") as check:
        out, _ = check.communicate()
    assert check.returncode == 2
    assert b"none.sse" in out


def test_a_live_pipe_shows_text_as_it_comes() -> None:
    with process("replay", "-") as replay:
        assert replay.stdin is not None
        assert replay.stdout is not None
        replay.stdin.write(sse(start(), *text(0, "first", stop=False)))
        replay.stdin.flush()
        assert replay.stdout.read(5) == b"first"
        # The terminal event ends the replay; nobody need close the connection.
        replay.stdin.write(sse({"type": "content_block_stop", "index": 0}, *ended("end_turn")))
        replay.stdin.flush()
        assert replay.stdout.read().startswith(b"\n\ncomplete  end_turn")
        assert replay.wait() == 0


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_ends_a_process_quietly() -> None:
    with process("replay", "-") as replay:
        assert replay.stdin is not None
        assert replay.stdout is not None
        replay.stdin.write(sse(start(), *text(0, "first", stop=False)))
        replay.stdin.flush()
        assert replay.stdout.read(5) == b"first"
        replay.send_signal(signal.SIGINT)
        out, err = replay.communicate()
        assert (replay.returncode, out, err) == (130, b"", b"")


def test_a_pipe_closed_early_ends_a_process_quietly() -> None:
    Path("a.sse").write_bytes(sse(start(), *text(0, *["word "] * 50_000), *ended("end_turn")))
    with process("replay", "a.sse") as replay:
        assert replay.stdout is not None
        assert replay.stderr is not None
        assert replay.stdout.read(5) == b"word "
        replay.stdout.close()
        assert replay.wait() == 141
        assert replay.stderr.read() == b""


def test_the_command_line_loads_no_http_and_no_event_loop() -> None:
    script = "import sys, sseam.cli; print(sorted({'httpx', 'asyncio', 'rich', 'trio', 'anyio'} & set(sys.modules)))"
    assert subprocess.check_output([sys.executable, "-c", script]).strip() == b"[]"
