"""`sseam call`: one question to a model, its answer as it comes."""

from __future__ import annotations

import argparse
import json
import re
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from .. import models
from ..audit import conclude
from ..context import Context, Model, UserMessage
from ..declared import declare
from ..errors import RequestError, SseamError
from ..events import Failed
from ..stream import Stream
from . import render
from .terminal import FINDINGS, OK, AddParser, UsageError, add_command, painter, shower, width

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
variables (ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY ...)."""

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
  git diff | sseam call -m openai:gpt-5.1 --system "Review this."
  sseam call -m compatible:qwen3 --base-url http://localhost:11434/v1 --record recordings "Hello\""""


def add(add_parser: AddParser) -> None:
    """Add the subcommand."""
    call = add_command(add_parser, "call", "ask a model and show the answer as it comes", _DESCRIPTION, _EPILOG)
    call.add_argument("question", nargs="?", metavar="QUESTION", help="standard input where it is not given")
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
    call.add_argument("--base-url", metavar="URL", help="where the service is, in place of the provider's own")
    call.add_argument("--record", metavar="DIR", help="keep each response in this folder")
    form = call.add_mutually_exclusive_group()
    form.add_argument("--events", action="store_true", help="one line for each neutral event")
    form.add_argument("--json", action="store_true", help="JSON Lines: each event, the last with the message or error")
    call.set_defaults(run=_call)


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
    return _PROVIDERS[provider](name, **({} if args.base_url is None else {"base_url": args.base_url}))


def _question(args: argparse.Namespace) -> str:
    question = args.question
    if question is None:
        try:
            question = sys.stdin.buffer.read().decode()
        except UnicodeDecodeError as error:
            raise UsageError(f"standard input is no UTF-8 text: {error}") from None
    if not question.strip():
        raise UsageError("there is no question")
    return question


def _tools(args: argparse.Namespace) -> tuple[Any, ...]:
    tools: list[Any] = []
    for name in args.tools:
        try:
            found = json.loads(Path(name).read_bytes())
            tools += found if isinstance(found, list) else [found]
            declare(tools)
        except (OSError, ValueError, TypeError, RecursionError) as error:
            raise UsageError(f"{name}: {error}") from None
    return tuple(tools)


def _stream(args: argparse.Namespace, model: Model, context: Context, later: ExitStack) -> Stream:
    from .._httpx import installed
    from ..client import Client

    http = later.enter_context(installed().Client(timeout=None))
    if args.record is not None:
        from ..recording.tap import record

        try:
            Path(args.record).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"{args.record}: {error.strerror}") from None
        record(http, args.record, name=re.sub(r"[^\w.-]+", "-", model.id))
    return later.enter_context(Client(http)).stream(model, context)


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
