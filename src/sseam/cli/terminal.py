"""What the subcommands share: exit codes, the options that all have, the terminal."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Callable
from typing import TypeAlias

from .. import stop
from ..events import Event
from . import render

__all__ = [
    "BROKEN_PIPE",
    "FINDINGS",
    "INTERRUPTED",
    "OK",
    "USAGE",
    "AddParser",
    "UsageError",
    "add_accept",
    "add_command",
    "painter",
    "shower",
    "width",
]

_ACCEPTABLE = sorted(stop.NEUTRAL - stop.ALWAYS_ACCEPTED)

OK, FINDINGS, USAGE, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 130, 141

AddParser: TypeAlias = Callable[..., argparse.ArgumentParser]


class UsageError(Exception):
    """What was asked for cannot be done; the text says why."""


def add_command(add_parser: AddParser, name: str, help: str, description: str, epilog: str) -> argparse.ArgumentParser:
    """A subcommand with the options that all have."""
    formatter = argparse.RawDescriptionHelpFormatter
    command = add_parser(name, help=help, description=description, epilog=epilog, formatter_class=formatter)
    command.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="auto, the default: on a terminal, unless NO_COLOR is set",
    )
    return command


def add_accept(command: argparse.ArgumentParser) -> None:
    """The option for stop reasons that are a good end, too."""
    command.add_argument(
        "--accept",
        action="append",
        default=[],
        choices=_ACCEPTABLE,
        metavar="REASON",
        help=f"take this stop reason as a good end, too (repeatable): {', '.join(_ACCEPTABLE)}",
    )


def painter(args: argparse.Namespace) -> render.Paint:
    automatic = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    try:
        return render.painter(args.color == "always" or (args.color == "auto" and automatic))
    except ImportError:
        raise UsageError("the terminal output needs rich: pip install 'sseam[cli]' (--json works without)") from None


def width() -> int | None:
    """Columns of the terminal; None where the output goes elsewhere, which is not wrapped."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def shower(args: argparse.Namespace, paint: render.Paint) -> Callable[[Event], str]:
    """What turns an event into what is written for it."""
    if args.json:
        return lambda event: render.event_json(event) + "\n"
    if args.events:
        return lambda event: render.event_line(event, paint)
    return render.Screen(paint).show
