"""Tool calls that a model wrote as text in place of making them.

A server whose template or parser does not fit its model lets the model's own notation through as
text. Nothing is run from it: it is told. Only a finished message is looked at, only where it makes no
call of its own, and only text outside of code: a text *about* a notation shows it as code.

Sources: the notations in the models' chat templates, and bug reports of what reached clients
(vLLM, llama.cpp, SGLang, OpenRouter and agents on top of them; read 2026-11-29).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, cast

import msgspec

from .declared import declare
from .errors import OutputProtocolViolation, Where, excerpt
from .message import Block, Message, TextBlock

__all__ = ["check", "discard_protocol_violation"]


class _Format(msgspec.Struct, frozen=True):
    """A notation.

    Attributes:
        name: what the error calls it.
        opening: how a call begins, its wrapper included; group 1 is the tool, where it stands there.
            Else it is the first name in the JSON that follows.
        closing: how it ends; where it does not, it goes on to the end of the text.
    """

    name: str
    opening: re.Pattern[str]
    closing: re.Pattern[str] | None = None


def _format(name: str, opening: str, closing: str | None = None) -> _Format:
    return _Format(name, re.compile(opening), re.compile(closing) if closing else None)


# Bars: ASCII, full width, and the double one that some tokenisers make of it. Every repetition has a
# bound and a fixed beginning: looking costs linear time whatever the text is.
_BAR = "[|｜‖]"
_NAME = r"[\w./-]{1,128}"
_S = r"\s{0,99}"
_QUOTED_NAME = rf"""["']?({_NAME})["']?"""

_FORMATS = (
    _format(
        "dsml",
        rf"(?:<{_BAR}DSML{_BAR}\w{{1,20}}>{_S})?<{_BAR}DSML{_BAR}invoke\s{{1,9}}name={_QUOTED_NAME}",
        rf"</{_BAR}DSML{_BAR}invoke>(?:{_S}</{_BAR}DSML{_BAR}\w{{1,20}}>)?",
    ),
    _format(
        "invoke",
        rf"(?:<(?:\w{{1,20}}:)?(?:function_calls|tool_call)>{_S})?<(?:\w{{1,20}}:)?invoke\s{{1,9}}name={_QUOTED_NAME}",
        rf"</(?:\w{{1,20}}:)?invoke>(?:{_S}</(?:\w{{1,20}}:)?(?:function_calls|tool_call)>)?",
    ),
    _format(
        "function",
        rf"(?:<tool_call>{_S})?<function(?:=|\s{{1,9}}name=){_QUOTED_NAME}\s{{0,9}}>",
        rf"</function>(?:{_S}</tool_call>)?",
    ),
    _format(
        "tool_call",
        rf"<(?:tool_call|function_call|tool_use)>{_S}({_NAME})?",
        r"</(?:tool_call|function_call|tool_use)>",
    ),
    _format(
        "deepseek",
        rf"(?:<{_BAR}tool▁calls▁begin{_BAR}>{_S})?<{_BAR}tool▁call▁begin{_BAR}>"
        rf"(?:function<{_BAR}tool▁sep{_BAR}>)?({_NAME})",
        rf"<{_BAR}tool▁call▁end{_BAR}>(?:{_S}<{_BAR}tool▁calls▁end{_BAR}>)?",
    ),
    _format(
        "kimi",
        rf"(?:<\|tool_calls_section_begin\|>{_S})?<\|tool_call_begin\|>{_S}({_NAME})",
        rf"<\|tool_call_end\|>(?:{_S}<\|tool_calls_section_end\|>)?",
    ),
    _format(
        "harmony",
        rf"(?:<\|start\|>\w{{1,20}}\s{{0,9}})?(?:<\|channel\|>\w{{1,20}}\s{{0,9}})?to=functions\.({_NAME})",
        r"<\|call\|>",
    ),
    _format("python_tag", rf"<\|python_tag\|>{_S}([A-Za-z_]\w{{0,127}})?"),
    _format("mistral", rf"\[TOOL_CALLS\]{_S}([A-Za-z_][\w-]{{0,127}})?"),
)

_NAME_IN_JSON = re.compile(rf'"(?:name|tool_name|function)"{_S}:{_S}"([^"\\]{{1,128}})"')


class _Call(msgspec.Struct, frozen=True):
    """A call in a text: the notation, the tool, and where it begins and ends."""

    format: str
    tool: str
    start: int
    end: int


def check(message: Message, tools: Iterable[object]) -> OutputProtocolViolation | None:
    """The fault of a message that makes no call and has one of a declared tool in its text, else None."""
    if message.tool_calls or message.withheld:
        return None
    names = frozenset(declare(tools))
    for index, block in enumerate(message.content):
        if isinstance(block, TextBlock):
            found = min(_calls(block.text, names), key=lambda call: call.start, default=None)
            if found is not None:
                return OutputProtocolViolation(
                    f"a call of the tool {found.tool!r} was written as text, in the notation {found.format!r}",
                    format=found.format,
                    tool=found.tool,
                    where=Where(block=index),
                    hint=f"The text reads {excerpt(block.text[found.start : found.end])}",
                )
    return None


def discard_protocol_violation(message: Message, tools: Iterable[object] = ()) -> Message:
    """The message without the calls that were written as text; the rest of its text is unchanged, but for
    white space before a call that ended it. A text block of which nothing is left is gone.

    Args:
        message: a message, or the `partial` of an `OutputProtocolViolation`.
        tools: the declared tools; with none given, a call of any tool is taken out.
    """
    names = frozenset(declare(tools)) or None
    content: list[Block] = []
    for block in message.content:
        if isinstance(block, TextBlock):
            text = _without_calls(block.text, names)
            if text != block.text:
                if not text.strip():
                    continue
                block = msgspec.structs.replace(block, text=text)
        content.append(block)
    return msgspec.structs.replace(message, content=tuple(content))


def _without_calls(text: str, names: frozenset[str] | None) -> str:
    kept: list[str] = []
    end = 0
    for call in sorted(_calls(text, names), key=lambda call: call.start):
        kept.append(text[end : call.start])
        end = max(end, call.end)
    if not kept:
        return text
    rest = text[end:]
    return "".join(kept) + rest if rest.strip() else "".join(kept).rstrip()


def _calls(text: str, names: frozenset[str] | None) -> Iterator[_Call]:
    """The calls in a text, by notation. `names` are the tools that count, None for any."""
    bare = _bare_json(text, names)
    if bare is not None:
        yield bare
        return
    visible = _without_code(text)
    for format in _FORMATS:
        yield from _calls_in(text, visible, format, names)


def _calls_in(text: str, visible: str, format: _Format, names: frozenset[str] | None) -> Iterator[_Call]:
    openings = list(format.opening.finditer(visible))
    # What a call holds may look like code, and hide its end with it.
    closings = [found.span() for found in format.closing.finditer(text)] if format.closing and openings else []
    closings.reverse()
    for number, opening in enumerate(openings):
        following = openings[number + 1].start() if number + 1 < len(openings) else len(text)
        while closings and closings[-1][0] < opening.end():
            closings.pop()
        closed = bool(closings) and closings[-1][0] < following
        inner_end = closings[-1][0] if closed else following
        name = opening[1]
        if name is None:
            found = _NAME_IN_JSON.search(text, opening.end(), inner_end)
            name = found[1] if found else None
        tool = _tool(name, names)
        if tool is not None:
            yield _Call(format.name, tool, opening.start(), closings[-1][1] if closed else following)


def _tool(name: str | None, names: frozenset[str] | None) -> str | None:
    """The tool that a name in a notation means: some put a namespace before it, or a number behind."""
    if name is None:
        return None
    if names is None:
        return name
    short = name.removeprefix("functions.")
    return next((known for known in (name, short, short.partition(".")[0]) if known in names), None)


def _bare_json(text: str, names: frozenset[str] | None) -> _Call | None:
    """A text that is nothing but the JSON of a call, as Llama 3 writes it."""
    stripped = text.strip()
    if not stripped.startswith("{") or not stripped.endswith("}"):
        return None
    try:
        decoded = json.loads(stripped)
    except (ValueError, RecursionError):
        return None
    call = cast("dict[str, Any]", decoded)
    arguments = call.get("parameters", call.get("arguments"))
    if not isinstance(call.get("name"), str) or not isinstance(arguments, dict) or len(call) > 3:
        return None
    tool = _tool(call["name"], names)
    return None if tool is None else _Call("json", tool, 0, len(text))


# ---- code in Markdown (CommonMark 0.31, sections 4.5 and 6.1)

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_TICKS = re.compile("`+")


def _without_code(text: str) -> str:
    """The text with blanks in place of all code, so that every place stays where it is."""
    if "`" not in text and "~~~" not in text:
        return text
    pieces: list[str] = []
    paragraph: list[str] = []
    fence = ""
    for line in _LINE.findall(text):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not mark[2].strip():
                fence = ""
            pieces.append(_blank(line))
            continue
        opens = mark is not None and not ("`" in mark[1] and "`" in mark[2])
        if not opens and line.strip():
            paragraph.append(line)
            continue
        pieces.append(_without_spans("".join(paragraph)))
        paragraph.clear()
        if mark and opens:
            fence = mark[1]
        pieces.append(_blank(line))
    pieces.append(_without_spans("".join(paragraph)))
    return "".join(pieces)


def _without_spans(paragraph: str) -> str:
    """A paragraph with blanks in place of its code spans: from a run of backticks to the next as long."""
    ticks = list(_TICKS.finditer(paragraph))
    partners: dict[int, int] = {}
    last: dict[int, int] = {}
    for number in reversed(range(len(ticks))):
        length = len(ticks[number][0])
        if length in last:
            partners[number] = last[length]
        last[length] = number
    pieces: list[str] = []
    end = number = 0
    while number < len(ticks):
        partner = partners.get(number)
        if partner is not None:
            pieces.append(paragraph[end : ticks[number].start()])
            end = ticks[partner].end()
            pieces.append(_blank(paragraph[ticks[number].start() : end]))
            number = partner
        number += 1
    return "".join([*pieces, paragraph[end:]])


def _blank(text: str) -> str:
    return "\n".join(" " * len(line) for line in text.split("\n"))
