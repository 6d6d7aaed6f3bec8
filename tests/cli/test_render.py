"""Events, messages and verdicts as terminal text and JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sseam import errors
from sseam.audit import Outcome, Verdict
from sseam.cli import render
from sseam.errors import Where
from sseam.events import (
    Done,
    Event,
    Failed,
    Opaque,
    RefusalDelta,
    RefusalStart,
    ServerTool,
    Start,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageUpdate,
)
from sseam.message import (
    Deviation,
    Message,
    OpaqueBlock,
    ServerToolBlock,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    Usage,
    WithheldCall,
)


def plain(text: str, _: str) -> str:
    return text


def marked(text: str, style: str) -> str:
    """Text with its style visible."""
    return f"<{style}:{text}>" if style and text else text


LOOK = ToolCall(id="c1", name="look", arguments={"a": 1}, arguments_json='{"a":1}')
DONE = Done("end_turn", Message(complete=True))
SEARCH = ServerToolBlock(kind="search_call", raw={"type": "search_call", "query": "x"})
THING = OpaqueBlock(kind="thing", raw={"type": "thing", "size": 1})

# Events, and what they show.
SCREENS: dict[str, tuple[list[Event], str]] = {
    "text": ([Start(), TextStart(0), TextDelta(0, "a\n"), TextDelta(0, "b\tc"), TextEnd(0, ""), DONE], "a\nb\tc\n"),
    "text that ends its line": ([TextDelta(0, "a\n"), DONE], "a\n"),
    "nothing": ([Start(), UsageUpdate(Usage()), DONE], ""),
    "texts belong together": ([TextDelta(0, "a"), TextEnd(0, "a"), TextDelta(1, "b"), DONE], "ab\n"),
    "citations": (
        [TextDelta(0, "a"), TextEnd(0, "a", ({}, {})), TextDelta(1, "b"), TextEnd(1, "b", ({},)), DONE],
        "a<dim:[1][2]>b<dim:[3]>\n",
    ),
    "thinking": (
        [ThinkingStart(0), ThinkingDelta(0, "a\n"), ThinkingDelta(0, "b\n\n"), ThinkingEnd(0, "."), TextDelta(1, "c")],
        "<dim:| ><dim:a><dim:\n| b>\n\nc",
    ),
    "thinking that is not shown": (
        [ThinkingStart(0, redacted=True), ThinkingEnd(0, ""), TextDelta(1, "a"), DONE],
        "<dim:thinking> not shown\n\na\n",
    ),
    "refusal": (
        [RefusalStart(0), RefusalDelta(0, "No"), RefusalDelta(0, ".\nx"), DONE],
        "<yellow:! ><yellow:No><yellow:.\n! x>\n",
    ),
    "a call in fragments": (
        [ToolCallStart(0, "c1", "look"), ToolCallDelta(0, '{"a'), ToolCallDelta(0, '":1}'), ToolCallEnd(0, LOOK), DONE],
        '<cyan:tool call> look (c1) {"a":1}\n',
    ),
    "a call given whole": (
        [ToolCallStart(0, "c1", "look"), ToolCallEnd(0, LOOK), ToolCallStart(1, "c2", "go"), DONE],
        '<cyan:tool call> look (c1) {"a":1}\n<cyan:tool call> go (c2) \n',
    ),
    "arguments over several lines": (
        [ToolCallStart(0, "c1", "look"), ToolCallDelta(0, '{\n"a": 1\n}\n'), DONE],
        '<cyan:tool call> look (c1) {\n  "a": 1\n  }\n',
    ),
    "interleaved": (
        [
            TextDelta(0, "a"),
            ToolCallStart(1, "c1", "look"),
            TextDelta(0, "b"),
            ToolCallDelta(1, "{"),
            ToolCallStart(2, "c2", "go"),
            ToolCallDelta(1, "}"),
            DONE,
        ],
        "a\n\n<cyan:tool call> look (c1) \n\nb\n\n<cyan:tool call> look (c1) {\n"
        "<cyan:tool call> go (c2) \n<cyan:tool call> look (c1) }\n",
    ),
    "server tools and opaque blocks": (
        [ServerTool(0, SEARCH, False), ServerTool(0, SEARCH, True), Opaque(1, THING, True), TextDelta(2, "a")],
        '<blue:server tool> search_call {"query":"x"}\n<blue:opaque block> thing {"size":1}\n\na',
    ),
    "blocks that never ended": (
        [ServerTool(0, SEARCH, False), Opaque(1, THING, False), Failed(errors.ProtocolError("x"), Message())],
        '<blue:server tool> search_call, not ended {"query":"x"}\n<blue:opaque block> thing, not ended {"size":1}\n',
    ),
    "control characters": (
        [
            TextDelta(0, "\x1b[2J\r\x9b\u202e"),
            ToolCallStart(1, "\x1b\n", "\x07\t"),
            ToolCallDelta(1, "\x1b]0;x\x07"),
            ServerTool(2, ServerToolBlock(kind="\x1b", raw={"\x9b": "\x1b\u202e"}), True),
        ],
        "\\x1b[2J\\r\\x9b\\u202e\n\n<cyan:tool call> \\x07\\t (\\x1b\\n) \\x1b]0;x\\x07\n"
        '<blue:server tool> \\x1b {"\\u009b":"\\u001b\\u202e"}',
    ),
}


@pytest.mark.parametrize("name", SCREENS)
def test_the_screen_shows_events_as_they_come(name: str) -> None:
    events, expected = SCREENS[name]
    screen = render.Screen(marked)
    assert "".join(map(screen.show, events)) == expected


def test_text_is_shown_at_once() -> None:
    screen = render.Screen(plain)
    assert [screen.show(TextDelta(0, text)) for text in ("Hel", "lo ", "you")] == ["Hel", "lo ", "you"]


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("plain ü 漢 👍🏽 \t\n", "plain ü 漢 👍🏽 \t\n"),
        ("\x00\x1b\x7f\x85", "\\x00\\x1b\\x7f\\x85"),
        ("\r\n", "\\r\n"),
        ("\u2028\u202e\u2069\ud800", "\\u2028\\u202e\\u2069\\ud800"),
    ],
)
def test_control_characters_are_written_out(text: str, escaped: str) -> None:
    assert render.escape(text) == escaped
    assert render.one_line(text) == escaped.replace("\n", "\\n").replace("\t", "\\t")


def test_json_is_one_line_without_control_characters() -> None:
    value = {"a": "\x1b\n\x7f\x9b\u2028\u202eü"}
    text = render.to_json(value)
    assert text == '{"a":"\\u001b\\n\\u007f\\u009b\\u2028\\u202eü"}'
    assert json.loads(text) == value


def test_a_name_that_is_no_unicode_text_goes_through_json() -> None:
    assert json.loads(render.to_json(Verdict(file="\udcff", outcome="complete")))["file"] == "\udcff"


def test_colour_is_ansi_codes_or_nothing() -> None:
    assert render.painter(False)("a", "dim") == "a"
    paint = render.painter(True)
    assert (paint("a", "bold red"), paint("a", ""), paint("a", "dim")) == ("\x1b[1;31ma\x1b[0m", "a", "\x1b[2ma\x1b[0m")


FAILED = Failed(
    errors.InvalidToolCall("bad", id="c1", name="look", where=Where(frame=2, offset=9), hint="why", partial=Message()),
    Message(id="m"),
)


def test_events_in_json() -> None:
    assert json.loads(render.event_json(TextDelta(1, "a"))) == {"type": "TextDelta", "index": 1, "text": "a"}
    done = json.loads(render.event_json(DONE))
    assert done == {"type": "Done", "reason": "end_turn", "message": {"role": "assistant", "complete": True}}


def test_a_failure_in_json() -> None:
    failed = json.loads(render.event_json(FAILED))
    assert failed["message"] == {"role": "assistant", "id": "m"}
    assert failed["error"] == {
        "type": "InvalidToolCall",
        "text": "bad (frame 2, byte 9). why",
        "detail": "bad",
        "hint": "why",
        "where": {"protocol": None, "frame": 2, "offset": 9, "block": None, "call": None},
        "id": "c1",
        "name": "look",
        "arguments_json": "",
        "reason": "malformed",
    }


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (TextDelta(3, "a\n\x9b"), 'TextDelta          3  text="a\\n\\u009b"\n'),
        (Start("m", "x"), 'Start                 id="m" model="x"\n'),
        (DONE, '<green:Done            >      reason="end_turn"\n'),
        (FAILED, '<red:Failed          >      error="bad (frame 2, byte 9). why"\n'),
    ],
)
def test_events_on_a_line(event: Event, line: str) -> None:
    assert render.event_line(event, marked) == line


FULL = Message(
    id="m1",
    model="x-1",
    content=(
        ThinkingBlock(thinking="t"),
        TextBlock(text="a", citations=({"title": "T" * 200},)),
        LOOK,
    ),
    withheld=(
        WithheldCall(id="c2", name="go", arguments_json="{", reason="open", index=3),
        WithheldCall(id="c3", name="go", arguments_json="{", reason="invalid", index=4),
        WithheldCall(id="c4", name="go", arguments_json="{}", reason="unreleased", index=5),
    ),
    usage=Usage(input_tokens=1200, output_tokens=30, cache_read_tokens=1000, cache_write_tokens=5, reasoning_tokens=7),
    deviations=(
        Deviation(code="odd", grade="soft", count=2),
        Deviation(code="even", grade="harmless", count=1),
    ),
    alternatives=(Message(content=(TextBlock(text="b"),), raw_stop_reason="stop"), Message()),
)


def test_the_ending_says_what_a_stream_amounts_to() -> None:
    verdict = Verdict(file="f", outcome="complete", raw_stop_reason="tool_use")
    title = "T" * 150
    assert render.ending(verdict, FULL, plain) == (
        "complete    tool_use\n"
        "released    look (c1)\n"
        "withheld    go (c2): it never ended\n"
        "withheld    go (c3): it cannot be used\n"
        "withheld    go (c4): it ended, but nothing proves that it is finished\n"
        f'[1]         {{"title":"{title} ... 52 more\n'
        "choice 1    stop: b\n"
        "choice 2    no end:\n"
        "model       x-1 (m1)\n"
        "usage       1,200 in (1,000 from cache, 5 into cache), 30 out (7 reasoning)\n"
        "deviations  odd (soft, 2 times), even (harmless)\n"
    )


@pytest.mark.parametrize(
    ("usage", "text"),
    [
        (Usage(), "not reported"),
        (Usage(input_tokens=0), "0 in"),
        (Usage(output_tokens=5, reasoning_tokens=0), "5 out"),
        (Usage(cache_read_tokens=4, output_tokens=5), "? in (4 from cache), 5 out"),
    ],
)
def test_what_is_not_known_of_the_usage_is_not_zero(usage: Usage, text: str) -> None:
    ending = render.ending(Verdict(file="f", outcome="complete"), Message(usage=usage, model="x"), plain)
    assert ending == f"complete\nmodel     x\nusage     {text}\n"


def test_an_ending_is_wrapped_and_painted() -> None:
    verdict = Verdict(file="f", outcome="truncated", reason="one two three four five six", where=Where(frame=1))
    assert render.ending(verdict, Message(), marked, 40) == (
        "<red:truncated  >one two three four five six\n           (frame 1)\n<dim:usage      >not reported\n"
    )
    narrow = render.ending(verdict, Message(), plain, 5)
    assert max(map(len, narrow.splitlines())) <= 31


def verdict(outcome: Outcome = "complete", **fields: Any) -> Verdict:
    return Verdict(file="a.sse", outcome=outcome, **fields)


FAULT = verdict("protocol_error", reason="bad\n", where=Where(frame=1, offset=20), hint="why", withheld=2)


@pytest.mark.parametrize(
    ("verdict", "line"),
    [
        (verdict(), "<green:complete         >  a.sse\n"),
        (
            verdict(
                raw_stop_reason="tool_use",
                tool_calls=1,
                withheld=1,
                trailing=1234,
                deviations=(Deviation(code="odd", grade="soft", count=1),),
            ),
            "<green:complete         >  a.sse  <dim:tool_use, 1 tool call, 1 tool call withheld, odd (soft), "
            "1,234 bytes after the terminal event>\n",
        ),
        (FAULT, "<red:protocol error   >  a.sse: bad\\n (frame 1, byte 20). why (2 tool calls withheld)\n"),
        (verdict("cut_off", reason="r"), "<yellow:cut off          >  a.sse: r\n"),
        (verdict("api_error", reason="r" * 700), f"<red:api error        >  a.sse: {'r' * 600} ... 100 more\n"),
    ],
)
def test_a_verdict_on_a_line(verdict: Verdict, line: str) -> None:
    assert render.verdict_line(verdict, marked) == line


def test_on_a_terminal_what_is_wrong_stands_below_the_file() -> None:
    assert render.verdict_line(FAULT, plain, 40) == (
        "protocol error     a.sse\n    bad\\n (frame 1, byte 20). why (2\n    tool calls withheld)\n"
    )


def test_the_summary_counts() -> None:
    odd = (Deviation(code="odd", grade="soft", count=5),)
    verdicts = [verdict(), verdict("cut_off"), verdict(deviations=odd)]
    assert render.summary(verdicts) == "3 recordings: 2 complete, 1 cut off\ndeviations: odd in 1\n"
    assert render.summary(verdicts[:1]) == "1 recording: 1 complete\n"
