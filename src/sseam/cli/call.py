"""`sseam call`: one question to a model, its answer as it comes."""

from __future__ import annotations

import argparse
import errno
import json
import math
import re
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast, get_args

import msgspec

from .. import models
from ..audit import STDIN, conclude
from ..context import Context, KeySource, Model, Options, ThinkingLevel, UserMessage
from ..deadlines import TimeLimits
from ..declared import declare
from ..errors import RequestError, SseamError
from ..events import Failed
from ..stream import Stream
from . import render
from .terminal import FINDINGS, OK, AddParser, UsageError, add_accept, add_command, painter, shower, width

__all__ = ["add"]

_PROVIDERS = {
    "anthropic": models.anthropic,
    "openai": models.openai,
    "openai-responses": models.openai_responses,
    "gemini": models.gemini,
    "gemini-interactions": models.gemini_interactions,
    "compatible": models.compatible,
}

_DESCRIPTION = f"""\
Ask a model one question and show the answer as it comes, as `sseam replay` shows a recording.

Providers: {", ".join(_PROVIDERS)}.
"compatible" is any server of Chat Completions at --base-url. Keys come from the usual environment
variables (ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY ...). A server that is not known gets no
key: --key-variable names the variable that holds its own.

What is piped in, or comes from a file, is asked behind the QUESTION, or as the question where there
is none or it is -. It is read to its end; where a program leaves its own pipe open as standard input,
say </dev/null. A terminal is read only where there is no QUESTION."""

_EPILOG = """\
--json writes one object a line, as `sseam replay --json` does; the first has the type "Call" ("model",
"protocol").
--record writes each response that comes to MODEL-001.sse, and to MODEL-001.json the request, status,
headers and times; keys are masked.

exit codes:
  0    the answer is complete
  1    it is not: cut off, refused, no connection ...
  2    wrong usage, no key, or what was asked for cannot be sent
  130  interrupted

examples:
  sseam call -m anthropic:claude-opus-5 "Why is the sky blue?"
  git diff | sseam call -m openai:gpt-5.1 "Review this."
  sseam call -m gemini:gemini-3-pro --thinking low --max-tokens 500 - <question.txt
  sseam call -m compatible:qwen3 --base-url http://localhost:11434/v1 --record recordings "Hello\""""


# Whoever waits for input that does not come is told why after so many seconds.
_PATIENCE = 3.0


def add(add_parser: AddParser) -> None:
    """Add the subcommand."""
    call = add_command(add_parser, "call", "ask a model and show the answer as it comes", _DESCRIPTION, _EPILOG)
    call.add_argument("question", nargs="?", metavar="QUESTION", help="what to ask; - for standard input")
    call.add_argument("-m", "--model", required=True, metavar="PROVIDER:MODEL", help="whom to ask")
    call.add_argument("--system", default="", metavar="TEXT", help="the system prompt")
    call.add_argument(
        "--tool-schema",
        action="append",
        default=[],
        dest="tools",
        metavar="FILE",
        help="JSON with a tool, or a list of tools, in any provider's form (repeatable); calls are shown, not run",
    )
    call.add_argument("--max-tokens", type=_count, metavar="N", help="limit of the output, reasoning included")
    levels = get_args(ThinkingLevel)
    call.add_argument("--thinking", choices=levels, metavar="LEVEL", help=f"how much to reason: {', '.join(levels)}")
    add_accept(call)
    call.add_argument("--timeout", type=_seconds, metavar="SECONDS", help="for the whole call, retries included")
    call.add_argument("--base-url", metavar="URL", help="where the service is, in place of the provider's own")
    call.add_argument("--key-variable", metavar="NAME", help="the environment variable that holds the key")
    call.add_argument("--record", metavar="DIR", help="keep each response in this folder")
    form = call.add_mutually_exclusive_group()
    form.add_argument("--events", action="store_true", help="one line for each neutral event")
    form.add_argument("--json", action="store_true", help="JSON Lines: each event, the last with the message or error")
    call.set_defaults(run=_call)


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return seconds


def _call(args: argparse.Namespace) -> int:
    model = _model(args)
    paint: render.Paint = (lambda text, _: text) if args.json else painter(args)
    context = Context(system=args.system, messages=(UserMessage(_question(args)),), tools=_tools(args))
    with ExitStack() as later:
        try:
            stream = later.enter_context(_stream(args, model, context, later))
        except (RequestError, ImportError) as error:
            raise UsageError(str(error)) from None
        if args.json:
            _write(render.to_json({"type": "Call", "model": args.model, "protocol": model.protocol}) + "\n")
        return _show(args, stream, paint)


def _model(args: argparse.Namespace) -> Model:
    provider, colon, name = args.model.partition(":")
    if provider not in _PROVIDERS or not colon or not name:
        raise UsageError(f"{args.model!r} is not PROVIDER:MODEL with a provider of {', '.join(_PROVIDERS)}")
    if provider == "compatible" and args.base_url is None:
        raise UsageError("a compatible server needs --base-url")
    model = _PROVIDERS[provider](name, **({} if args.base_url is None else {"base_url": args.base_url}))
    if args.key_variable is None:
        return model
    usual = model.keys[0] if model.keys else KeySource("")
    keys = (msgspec.structs.replace(usual, variable=args.key_variable),)
    return msgspec.structs.replace(model, keys=keys, key_optional=False)


def _question(args: argparse.Namespace) -> str:
    """The question with what was piped in behind it."""
    given = "" if args.question in (None, STDIN) else args.question
    # Who is at a terminal and has asked already does not mean to type more.
    piped = "" if given and sys.stdin is not None and sys.stdin.isatty() else _standard_input()
    question = "\n\n".join(part for part in (given, piped) if part.strip())
    if not question:
        raise UsageError("there is no question")
    return question


def _standard_input() -> str:
    """All of standard input; "" where it was closed."""
    if cast("Any", sys.stdin) is None:
        return ""
    timer = threading.Timer(_PATIENCE, _say_what_is_read)
    timer.daemon = True
    timer.start()
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"standard input is no UTF-8 text: {error}") from None
    except OSError as error:
        if error.errno == errno.EBADF:  # nohup leaves one that is open and cannot be read
            return ""
        raise UsageError(f"standard input: {error.strerror or error}") from None
    finally:
        timer.cancel()


def _say_what_is_read() -> None:
    print("sseam call: waiting for the end of standard input; </dev/null where there is none", file=sys.stderr)


def _tools(args: argparse.Namespace) -> tuple[Any, ...]:
    tools: list[Any] = []
    for name in args.tools:
        try:
            tools += _tools_in(Path(name))
            declare(tools)
        except OSError as error:
            raise UsageError(f"{name}: {error.strerror or error}") from None
        except (ValueError, TypeError, RecursionError) as error:
            raise UsageError(f"{name}: {error}") from None
    return tuple(tools)


def _tools_in(file: Path) -> list[Any]:
    found = json.loads(file.read_bytes())
    tools = cast("list[Any]", found if isinstance(found, list) else [found])
    if not tools:
        raise ValueError("there are no tools in it")
    if others := [tool for tool in tools if not isinstance(tool, dict)]:
        raise TypeError(f"a tool is a JSON object, not {json.dumps(others[0])}")
    return tools


def _stream(args: argparse.Namespace, model: Model, context: Context, later: ExitStack) -> Stream:
    from .._httpx import installed
    from ..client import Client

    http = later.enter_context(installed().Client(timeout=None))
    if args.record is not None:
        from ..recording.tap import record

        try:
            record(http, args.record, name=re.sub(r"[^\w.-]+", "-", model.id))
        except OSError as error:
            raise UsageError(f"{args.record}: {error.strerror}") from None
    client = later.enter_context(Client(http, limits=TimeLimits(total=args.timeout)))
    options = Options(max_output_tokens=args.max_tokens, thinking=args.thinking)
    return client.stream(model, context, options, accept=args.accept)


def _show(args: argparse.Namespace, stream: Stream, paint: render.Paint) -> int:
    """The exit code, after the answer was shown as it came."""
    show = shower(args, paint)
    error: SseamError | None = None
    try:
        for event in stream:
            _write(show(event))
    except SseamError as fault:
        error = fault
        _write(show(Failed(error, stream.partial)))
    for attempt in stream.attempts[:-1]:
        print(f"sseam call: attempt {attempt.number} failed: {render.one_line(str(attempt.error))}", file=sys.stderr)
    message = stream.message() if error is None else stream.partial
    if not args.json and not args.events:
        _write("\n" + render.ending(conclude(args.model, message, error), message, paint, width()))
    return OK if error is None else FINDINGS


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
