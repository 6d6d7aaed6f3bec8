"""The command line: `sseam replay`, `sseam check` and `sseam call`. Arguments to calls to an exit code.

Results go to standard output, progress and errors to standard error. A subcommand is a function
that adds its arguments and names what runs them (`_add_replay`), and that function (`_replay`).
"""

from __future__ import annotations

import argparse
import functools
import glob
import math
import os
import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from io import BufferedReader, TextIOWrapper
from pathlib import Path
from typing import Any, cast

from .. import __version__
from ..audit import (
    SUFFIXES,
    Verdict,
    audit,
    judge,
    open_parser,
    open_recording,
    read_pieces,
    recordings,
    unidentified,
    unreadable,
)
from ..events import Event
from ..parser import Parser, ParserOptions
from ..protocols import NAMES, load
from . import call, render
from .terminal import (
    BROKEN_PIPE,
    FINDINGS,
    INTERRUPTED,
    OK,
    USAGE,
    AddParser,
    UsageError,
    add_accept,
    add_command,
    painter,
    shower,
    width,
)

__all__ = ["main"]

# Recordings carry no times. Services send about 30 to 100 frames a second.
_FRAMES_A_SECOND = 50
_SLOWEST = 0.001
# A progress bar for fewer recordings than this would be gone before it is seen.
_BAR_FROM = 20

_DESCRIPTION = """\
Read recorded event streams of language-model APIs, check them, and show what they amount to.

Protocols: {protocols}.
They are told apart from the first bytes."""

_EXIT_CODES = """\
exit codes:
  0    every recording is complete
  1    one is not: cut off, refused, truncated, against the protocol ...
  2    wrong usage, a file that cannot be read, or a protocol that cannot be told
  130  interrupted"""

_REPLAY = """\
Show recorded streams as they came: text as it is, reasoning dimmed behind a bar, tool calls with
their arguments; then how the stream ended, which calls are released, usage and deviations."""

_REPLAY_EPILOG = f"""\
--json writes one object a line. Its "type" is "Recording" for the first line of a file ("file",
"protocol"), then the class of each event with its fields, the last being "Done" ("reason", "message")
or "Failed" ("error", "message": what was received whole). A file that cannot be read gives one line
of the type "Verdict", as `sseam check --json` does.

{_EXIT_CODES}

examples:
  sseam replay answer.sse
  curl -sN ... | sseam replay -
  sseam replay --json answer.sse | jq -r 'select(.type == "TextDelta").text'"""

_CHECK = """\
Give one verdict for each recording: complete, or what is wrong, where, and why."""

_CHECK_EPILOG = f"""\
--json writes one object a line, of the type "Verdict": "file", "outcome", "protocol", "model", "reason",
"hint", "where" ("frame", "offset", "block", "call"), "error", "stop_reason", "raw_stop_reason",
"tool_calls", "withheld", "deviations", "size", "trailing" (bytes after the terminal event).

outcomes, with _ for a blank in --json:
  complete           the protocol's own end, every check passed, an accepted stop reason
  cut off            the output limit or the context window was reached
  refused            the model declined
  blocked            a filter stopped the output
  paused, compacted  to be continued by sending it back
  stop sequence      one of the request's own stop sequences was met
  failed             the provider ended with an error as its stop reason
  aborted            given up by the client
  unknown stop       a stop reason that no table knows
  contradiction      the stop reason does not fit the content
  truncated          the recording ends before the stream does
  invalid tool call  a call that ended and cannot be used
  api error          the service said no
  not a stream       no event stream, or over a limit
  disconnected       the connection broke or a time limit passed (`sseam call` only)
  protocol error     another rule of the protocol is broken
  unidentified       the bytes do not say which protocol they are: exit code 2
  unreadable         no such file, no permission ...: exit code 2

{_EXIT_CODES}

examples:
  sseam check recordings/
  sseam check --accept max_tokens --accept refusal 'recordings/**/*.sse'
  sseam check --json recordings/ | jq 'select(.outcome != "complete")'"""


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code of `sseam` with these arguments, the process's own by default.

    Raises:
        SystemExit: from argparse, for wrong arguments, `--help` and `--version`.
    """
    args = _arguments().parse_args(argv)
    # What the terminal's encoding lacks is written out; a model may say anything.
    cast("TextIOWrapper", sys.stdout).reconfigure(errors="backslashreplace")
    try:
        code = args.run(args)
        sys.stdout.flush()
    except UsageError as error:
        return _complain(args, str(error))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has left. Python flushes again at exit, which must not complain either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except OSError as error:
        return _complain(args, f"the output cannot be written: {error.strerror or error}")
    return code


def _complain(args: argparse.Namespace, text: str) -> int:
    print(f"sseam {args.command}: {render.one_line(text)}", file=sys.stderr)
    return USAGE


# ---- arguments


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sseam",
        description=_DESCRIPTION.format(protocols=", ".join(NAMES)),
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"sseam {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_replay(commands.add_parser)
    _add_check(commands.add_parser)
    call.add(commands.add_parser)
    return parser


def _add_replay(add_parser: AddParser) -> None:
    replay = add_command(add_parser, "replay", "show recorded streams as they came", _REPLAY, _REPLAY_EPILOG)
    _add_reading(replay)
    form = replay.add_mutually_exclusive_group()
    form.add_argument("--events", action="store_true", help="one line for each neutral event")
    form.add_argument("--json", action="store_true", help="JSON Lines: each event, the last with the message or error")
    replay.add_argument(
        "--speed",
        type=_speed,
        default=0,
        metavar="FACTOR",
        help=f"1 is the pace of a service, {_FRAMES_A_SECOND} frames a second, since recordings carry no times; "
        "2 is twice as fast; 0, the default, is at once",
    )
    replay.set_defaults(run=_replay)


def _add_check(add_parser: AddParser) -> None:
    check = add_command(add_parser, "check", "give a verdict for each recording", _CHECK, _CHECK_EPILOG)
    _add_reading(check)
    check.add_argument("--json", action="store_true", help="JSON Lines: one verdict a line, no summary")
    check.set_defaults(run=_check)


def _add_reading(command: argparse.ArgumentParser) -> None:
    """What to read, and how."""
    suffixes = " and ".join(f"*{suffix}" for suffix in SUFFIXES)
    command.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help=f"a recorded response body; a folder stands for all {suffixes} below it, - for standard input",
    )
    command.add_argument("--protocol", choices=NAMES, metavar="NAME", help="read as this protocol, do not detect it")
    command.add_argument("--dialect", metavar="NAME", help="what the server is known to do otherwise")
    command.add_argument("--strict", action="store_true", help="refuse soft deviations")
    add_accept(command)
    command.add_argument(
        "--tool",
        action="append",
        default=[],
        dest="tools",
        metavar="NAME",
        help="a tool that the request declared (repeatable); calls of others are refused then",
    )


def _speed(text: str) -> float:
    try:
        speed = float(text)
    except ValueError:
        speed = math.nan
    if speed != 0 and not _SLOWEST <= speed < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is neither 0 nor a number from {_SLOWEST}")
    return speed


def _options(args: argparse.Namespace) -> ParserOptions:
    """The options for the parsers, of which a wrong one is found before anything is read."""
    options = ParserOptions(dialect=args.dialect, strict=args.strict, accept=args.accept, tools=args.tools)
    if args.dialect is not None:
        known = {name: sorted(load(name).DIALECTS) for name in ([args.protocol] if args.protocol else NAMES)}
        if not any(args.dialect in dialects for dialects in known.values()):
            there = "; ".join(f"{name} has {', '.join(dialects)}" for name, dialects in known.items())
            raise UsageError(f"no dialect {args.dialect!r} in {args.protocol or 'any protocol'}: {there}")
    return options


def _files(args: argparse.Namespace) -> list[str]:
    """The paths that the arguments name. One that does not exist is kept: it is judged unreadable."""
    files: list[str] = []
    for name in args.files:
        if os.path.isdir(name):
            found = recordings(Path(name))
        elif glob.has_magic(name) and not os.path.exists(name):
            found = sorted(filter(os.path.isfile, glob.glob(name, recursive=True))) or [name]
        else:
            found = [name]
        if not found:
            raise UsageError(f"{name}: no recordings ({', '.join(f'*{suffix}' for suffix in SUFFIXES)}) there")
        files += found
    return files


# ---- the terminal


@contextmanager
def _progress(total: int, args: argparse.Namespace) -> Generator[Callable[[], None] | None]:
    """What moves the progress bar on; None where there is none."""
    if total < _BAR_FROM or args.json or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    # The bar is on standard error; nothing else is drawn through it, and it is gone at the end.
    console = Console(stderr=True, no_color=args.color == "never" or None)
    columns = (BarColumn(bar_width=None), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False) as bar:
        task = bar.add_task("", total=total)
        yield lambda: bar.advance(task)


# ---- replay


class _Unreadable(Exception):
    """A recording cannot be read, or not to its end."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(cause)
        self.cause = cause


def _replay(args: argparse.Namespace) -> int:
    options = _options(args)
    paint: render.Paint = (lambda text, _: text) if args.json else painter(args)
    files = _files(args)
    codes: list[int] = []
    for file in files:
        if codes and not args.json:
            sys.stdout.write("\n")
        codes.append(_replay_one(file, args, options, paint, named=len(files) > 1))
    return max(codes)


def _replay_one(
    file: str, args: argparse.Namespace, options: ParserOptions, paint: render.Paint, *, named: bool
) -> int:
    """The exit code for one recording, shown as it is read. `named`: its name stands above it."""
    write = sys.stdout.write
    try:
        parser, chunks = open_parser(_read(file, args.speed), args.protocol, options)
        if parser is None:
            return _refuse(unidentified(file, chunks), args)
        show = shower(args, paint)
        write(_heading(file, parser.partial.protocol, args, paint) if named or args.json else "")
        for events in _feed(parser, chunks):
            write("".join(map(show, events)))
            sys.stdout.flush()
    except _Unreadable as error:
        return _refuse(unreadable(file, error.cause), args)
    verdict = judge(file, parser)
    if not args.json and not args.events:
        write("\n" + render.ending(verdict, parser.partial, paint, width()))
    return OK if verdict.outcome == "complete" else FINDINGS


def _read(file: str, speed: float) -> Iterator[bytes]:
    """The chunks of a recording: as they come, or with `speed` frame by frame at its pace."""
    try:
        with open_recording(file) as source:
            yield from _pace(read_pieces(source), speed) if speed else _chunks(source)
    except OSError as error:
        raise _Unreadable(error) from error


def _chunks(source: BufferedReader) -> Iterator[bytes]:
    # read1 gives what a pipe holds and does not wait for more.
    return iter(functools.partial(source.read1, 1 << 16), b"")


def _pace(pieces: Iterator[bytes], speed: float) -> Iterator[bytes]:
    for piece in pieces:
        yield piece
        time.sleep(1 / (_FRAMES_A_SECOND * speed))


def _feed(parser: Parser, chunks: Iterator[bytes]) -> Iterator[list[Event]]:
    for chunk in chunks:
        yield parser.feed(chunk)
        if parser.done:
            return
    yield parser.finish(recording=True)


def _heading(file: str, protocol: str, args: argparse.Namespace, paint: render.Paint) -> str:
    if args.json:
        return render.to_json({"type": "Recording", "file": file, "protocol": protocol}) + "\n"
    return paint(f"==> {render.one_line(file)} ({protocol}) <==", "bold") + "\n"


def _refuse(verdict: Verdict, args: argparse.Namespace) -> int:
    if args.json:
        sys.stdout.write(render.to_json(verdict) + "\n")
    return _complain(args, _why(verdict))


def _why(verdict: Verdict) -> str:
    return f"{verdict.file}: {verdict.reason}{f'. {verdict.hint}' if verdict.hint else ''}"


# ---- check


def _check(args: argparse.Namespace) -> int:
    options = _options(args)
    paint = None if args.json else painter(args)
    files = _files(args)
    verdicts: list[Verdict] = []
    held: list[str] = []
    try:
        with _progress(len(files), args) as advance:
            # A bar on the same terminal would be torn by results: they follow it.
            write: Callable[[str], Any] = held.append if advance and sys.stdout.isatty() else sys.stdout.write
            for file in files:
                verdict = audit(file, args.protocol, **options)
                verdicts.append(verdict)
                write(render.verdict_line(verdict, paint, width()) if paint else render.to_json(verdict) + "\n")
                if advance:
                    advance()
    finally:
        sys.stdout.write("".join(held))
    if paint and len(files) > 1:
        sys.stdout.write("\n" + render.summary(verdicts, width()))
    return max(_code(verdict, args) for verdict in verdicts)


def _code(verdict: Verdict, args: argparse.Namespace) -> int:
    if verdict.outcome not in ("unreadable", "unidentified"):
        return OK if verdict.outcome == "complete" else FINDINGS
    # On a terminal the result itself has said it.
    return USAGE if sys.stdout.isatty() else _complain(args, _why(verdict))
