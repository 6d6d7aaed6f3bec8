"""Messages, events and verdicts to terminal text and JSON Lines.

Everything here gives strings; nothing writes. What came in a stream is untrusted: a terminal would
obey control characters in it, so all of it passes `escape`.

::

    event ──► Screen.show ──► text as it streams          message ──► ending ──► what it amounts to
          └─► event_line, event_json                      verdict ──► verdict_line, summary
"""

from __future__ import annotations

import functools
import json
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any, TypeAlias

import msgspec

from ..audit import Outcome, Verdict
from ..errors import SseamError
from ..events import (
    Done,
    Event,
    Failed,
    Opaque,
    RefusalDelta,
    ServerTool,
    TextDelta,
    TextEnd,
    ThinkingDelta,
    ThinkingEnd,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolCallWithheld,
)
from ..message import Deviation, Message, TextBlock, Usage

__all__ = [
    "Paint",
    "Screen",
    "ending",
    "escape",
    "event_json",
    "event_line",
    "one_line",
    "painter",
    "summary",
    "to_json",
    "verdict_line",
]

Paint: TypeAlias = Callable[[str, str], str]
"""Text and a style ("dim", "bold red") to text that a terminal shows so."""

# What a terminal might obey, or show in another order than it stands: C0 but tab and line feed, DEL,
# C1, the marks that turn the direction of text; and halves of surrogate pairs, which no encoding takes.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

_OUTCOME_WIDTH = 17
# So many characters of a block that is shown on one line, and of what is wrong with a stream.
_EXCERPT = 160
_FAULT = 600

_STYLES: dict[Outcome, str] = {
    "complete": "green",
    "cut_off": "yellow",
    "refused": "yellow",
    "blocked": "yellow",
    "paused": "yellow",
    "stop_sequence": "yellow",
    "compacted": "yellow",
    "unidentified": "magenta",
    "unreadable": "magenta",
}


def escape(text: str) -> str:
    """`text` with its control characters written out, tab and line feed excepted."""
    return _CONTROL.sub(lambda match: _written(match[0]), text)


def _written(char: str) -> str:
    if char == "\r":
        return "\\r"
    return f"\\x{ord(char):02x}" if ord(char) < 0x100 else f"\\u{ord(char):04x}"


def one_line(text: str) -> str:
    """`text` on one line."""
    return escape(text).replace("\n", "\\n").replace("\t", "\\t")


def _shorten(text: str, limit: int = _EXCERPT) -> str:
    return text if len(text) <= limit else f"{text[:limit]} ... {len(text) - limit:,} more"


def painter(colour: bool) -> Paint:
    """What paints text: with ANSI codes, or not at all. Needs `rich`; raises ImportError without."""
    from rich.color import ColorSystem
    from rich.style import Style

    if not colour:
        return lambda text, _: text
    parse = functools.cache(Style.parse)
    return lambda text, style: parse(style).render(text, color_system=ColorSystem.STANDARD)


# ---- JSON


def to_json(value: object) -> str:
    """`value` as one line of JSON that a terminal can show as it is."""
    try:
        text = msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        # A file's name that is no Unicode text, which Python writes with halves of surrogate pairs.
        text = json.dumps(msgspec.to_builtins(value), separators=(",", ":"))
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def event_json(event: Event) -> str:
    """An event as one line of JSON: its fields, and its class as "type". A `Failed` has the error as an
    object: its class as "type", the whole "text", "detail", "hint", "where", and the class's own fields."""
    if isinstance(event, Failed):
        return to_json({"type": "Failed", "error": _error(event.error), "message": event.message})
    return to_json(event)


def _error(error: SseamError) -> dict[str, Any]:
    # The partial message stands beside the error; bytes and frames are in the recording.
    own = {name: value for name, value in vars(error).items() if name not in ("partial", "tail", "frames")}
    return {"type": type(error).__name__, "text": str(error), **own}


def event_line(event: Event, paint: Paint) -> str:
    """An event on one line: its class, its block, and the rest as JSON. The terminal event without its message."""
    fields = {name: getattr(event, name) for name in event.__struct_fields__ if name not in ("index", "message")}
    if isinstance(event, Failed):
        fields["error"] = str(event.error)
    index = getattr(event, "index", "")
    rest = " ".join(f"{name}={to_json(value)}" for name, value in fields.items())
    style = _EVENT_STYLES.get(type(event), "")
    return f"{paint(f'{type(event).__name__:<16}', style)} {index!s:>3}  {rest}\n"


_EVENT_STYLES: dict[type[Event], str] = {
    ThinkingDelta: "dim",
    ToolCallStart: "cyan",
    ToolCallDelta: "cyan",
    ToolCallEnd: "cyan",
    ToolCallWithheld: "yellow",
    Done: "green",
    Failed: "red",
}


# ---- a stream as it comes


class Screen:
    """Events to text, each as it comes.

    Text of the answer stands as it is, reasoning dim behind a bar, a refusal behind an exclamation
    mark, every other block on a line with its name in front. Where blocks interleave, each change
    begins a new line.
    """

    def __init__(self, paint: Paint) -> None:
        self._paint = paint
        self._index = -1  # the block that is being written
        self._group = ""  # "text", "thinking", "refusal" or "line": a blank line stands between two groups
        self._fresh = True  # nothing stands on the line yet
        self._held = ""  # line ends of the block that nothing followed yet
        self._calls: dict[int, str] = {}
        self._streamed: set[int] = set()  # calls of which arguments were shown
        self._unended: dict[int, ServerTool | Opaque] = {}
        self._citations = 0

    def show(self, event: Event) -> str:
        """What `event` adds to the screen, "" where that is nothing; the terminal event ends the last line."""
        match event:
            case TextDelta(index, text):
                return self._open(index, "text") + self._grow(text, "", "")
            case TextEnd(index, _, citations) if citations:
                return self._open(index, "text") + self._grow(self._cite(len(citations)), "", "dim")
            case ThinkingDelta(index, text):
                return self._open(index, "thinking", self._paint("| ", "dim")) + self._grow(text, "| ", "dim")
            case ThinkingEnd(index, ""):
                return self._open(index, "line", self._paint("thinking", "dim"), " not shown")
            case RefusalDelta(index, text):
                return self._open(index, "refusal", self._paint("! ", "yellow")) + self._grow(text, "! ", "yellow")
            case ToolCallStart(index, id, name):
                self._calls[index] = f" {one_line(name)} ({one_line(id)}) "
                return self._open_call(index)
            case ToolCallDelta(index, text):
                self._streamed.add(index)
                return self._open_call(index) + self._grow(text, "  ", "")
            case ToolCallEnd(index, call) if index not in self._streamed:
                return self._open_call(index) + self._grow(call.arguments_json, "  ", "")
            case ServerTool(index, _, False) | Opaque(index, _, False):
                self._unended[index] = event
                return ""
            case ServerTool(index) | Opaque(index):
                self._unended.pop(index, None)
                return self._block(event)
            case Done() | Failed():
                return "".join(map(self._block, self._unended.values())) + self._break()
            case _:
                return ""

    def _open(self, index: int, group: str, *lead: str) -> str:
        """What leads over to block `index`, behind which it can be written."""
        if index == self._index or group == self._group == "text":
            # Blocks of text belong together with nothing between: a citation ends one in mid-sentence.
            return ""
        first = not self._group
        between = self._break() + ("" if first or group == self._group == "line" else "\n")
        self._index, self._group, self._fresh, self._held = index, group, not lead, ""
        return between + "".join(lead)

    def _open_call(self, index: int) -> str:
        return self._open(index, "line", self._paint("tool call", "cyan"), self._calls[index])

    def _grow(self, text: str, margin: str, style: str) -> str:
        """`text`, its further lines behind `margin`. Where there is one, line ends wait for more text."""
        if margin:
            text, whole = (self._held + text).rstrip("\n"), self._held + text
            self._held = whole[len(text) :]
        self._fresh = text.endswith("\n") if text else self._fresh
        return self._paint(escape(text).replace("\n", f"\n{margin}"), style)

    def _break(self) -> str:
        end, self._fresh = "" if self._fresh else "\n", True
        return end

    def _cite(self, count: int) -> str:
        first, self._citations = self._citations + 1, self._citations + count
        return "".join(f"[{number}]" for number in range(first, self._citations + 1))

    def _block(self, event: ServerTool | Opaque) -> str:
        name = "server tool" if isinstance(event, ServerTool) else "opaque block"
        raw = {key: value for key, value in event.block.raw.items() if key != "type"}
        left = "" if event.ended else ", not ended"
        text = f" {one_line(event.block.kind)}{left} {_shorten(to_json(raw))}"
        return self._open(event.index, "line", self._paint(name, "blue"), text)


# ---- what a stream amounts to


def ending(verdict: Verdict, message: Message, paint: Paint, width: int | None = None) -> str:
    """What stands below a stream: outcome, calls, citations, further choices, model, usage, deviations.

    `width`: columns to wrap at; None: not at all.
    """
    outcome = _label(verdict.outcome)
    said = verdict.raw_stop_reason or "" if verdict.outcome == "complete" else _fault(verdict)
    rows = [(outcome, _STYLES.get(verdict.outcome, "red"), said)]
    rows += [("released", "cyan", f"{call.name} ({call.id})") for call in message.tool_calls]
    rows += [("withheld", "yellow", f"{call.name} ({call.id}): {_WITHHELD[call.reason]}") for call in message.withheld]
    citations = chain.from_iterable(block.citations for block in message.content if isinstance(block, TextBlock))
    rows += [(f"[{number}]", "dim", _shorten(to_json(citation))) for number, citation in enumerate(citations, 1)]
    for number, other in enumerate(message.alternatives, 1):
        rows.append((f"choice {number}", "bold", f"{other.raw_stop_reason or 'no end'}: {_shorten(other.text)}"))
    if message.model:
        rows.append(("model", "dim", f"{message.model} ({message.id})" if message.id else message.model))
    rows.append(("usage", "dim", _usage(message.usage)))
    if message.deviations:
        rows.append(("deviations", "dim", _deviations(message.deviations)))
    margin = max(len(label) for label, _, _ in rows) + 2
    return "".join(_row(f"{label:<{margin}}", style, text, paint, width) for label, style, text in rows)


_WITHHELD = {
    "open": "it never ended",
    "invalid": "it cannot be used",
    "unreleased": "it ended, but nothing proves that it is finished",
}


def _row(label: str, style: str, text: str, paint: Paint, width: int | None) -> str:
    lines = _wrap(text, width, len(label))[len(label) :].rstrip()
    return f"{paint(label, style)}{lines}\n" if lines else f"{paint(label.rstrip(), style)}\n"


def _wrap(text: str, width: int | None, margin: int) -> str:
    """`text` on one line, behind `margin` blanks; with `width` wrapped, each line behind as many."""
    blanks = " " * margin
    if width is None:
        return blanks + one_line(text)
    width = max(width, margin + 20)
    return textwrap.fill(
        one_line(text),
        width,
        initial_indent=blanks,
        subsequent_indent=blanks,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _usage(usage: Usage) -> str:
    cached = [(usage.cache_read_tokens, "from cache"), (usage.cache_write_tokens, "into cache")]
    sides = [
        _tokens(usage.input_tokens, "in", cached),
        _tokens(usage.output_tokens, "out", [(usage.reasoning_tokens, "reasoning")]),
    ]
    return ", ".join(filter(None, sides)) or "not reported"


def _tokens(count: int | None, side: str, shares: list[tuple[int | None, str]]) -> str:
    of_it = ", ".join(f"{share:,} {name}" for share, name in shares if share)
    known = "?" if count is None else f"{count:,}"
    return "" if count is None and not of_it else f"{known} {side}{f' ({of_it})' if of_it else ''}"


def _deviations(deviations: tuple[Deviation, ...]) -> str:
    return ", ".join(f"{one.code} ({one.grade}{f', {one.count} times' if one.count > 1 else ''})" for one in deviations)


# ---- verdicts


def verdict_line(verdict: Verdict, paint: Paint, width: int | None = None) -> str:
    """A verdict: on one line, or with `width` what is wrong on indented lines of their own below the file."""
    outcome = paint(f"{_label(verdict.outcome):<{_OUTCOME_WIDTH}}", _STYLES.get(verdict.outcome, "red"))
    line = f"{outcome}  {one_line(verdict.file)}"
    notes = ", ".join(_notes(verdict))
    if verdict.outcome == "complete":
        return f"{line}  {paint(one_line(notes), 'dim')}".rstrip() + "\n"
    fault = _fault(verdict) + (f" ({notes})" if notes else "")
    return f"{line}: {one_line(fault)}\n" if width is None else f"{line}\n{_wrap(fault, width, 4)}\n"


def _label(outcome: Outcome) -> str:
    return outcome.replace("_", " ")


def _fault(verdict: Verdict) -> str:
    """What is wrong, where, and what else is known."""
    where = str(verdict.where)
    hint = f". {verdict.hint}" if verdict.hint else ""
    return f"{_shorten(verdict.reason, _FAULT)}{f' ({where})' if where else ''}{_shorten(hint, _FAULT)}"


def _notes(verdict: Verdict) -> list[str]:
    """What else is to say."""
    notes: list[str] = []
    if verdict.outcome == "complete" and verdict.raw_stop_reason:
        notes.append(verdict.raw_stop_reason)
    if verdict.tool_calls:
        notes.append(_count(verdict.tool_calls, "tool call"))
    if verdict.withheld:
        notes.append(f"{_count(verdict.withheld, 'tool call')} withheld")
    if verdict.deviations:
        notes.append(_deviations(verdict.deviations))
    if verdict.trailing:
        notes.append(f"{_count(verdict.trailing, 'byte')} after the terminal event")
    return notes


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def summary(verdicts: Iterable[Verdict], width: int | None = None) -> str:
    """How many recordings came to which outcome, and in how many each deviation was seen."""
    outcomes: Counter[Outcome] = Counter()
    deviations: Counter[str] = Counter()
    for verdict in verdicts:
        outcomes[verdict.outcome] += 1
        deviations.update(deviation.code for deviation in verdict.deviations)
    parts = ", ".join(f"{count:,} {_label(outcome)}" for outcome, count in outcomes.most_common())
    lines = [f"{_count(outcomes.total(), 'recording')}: {parts}"]
    if deviations:
        lines.append("deviations: " + ", ".join(f"{code} in {count:,}" for code, count in deviations.most_common()))
    return "".join(f"{_wrap(line, width, 0)}\n" for line in lines)
