"""The grammar of the neutral events: what is legal, what is refused, and with which words."""

from __future__ import annotations

import json
import time
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sseam import events as neutral
from sseam.errors import ApiError, StreamSequenceError, TruncatedStream
from sseam.events import (
    Done,
    Event,
    Failed,
    Opaque,
    RefusalDelta,
    RefusalEnd,
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
    ToolCallWithheld,
    UsageUpdate,
)
from sseam.message import (
    Message,
    OpaqueBlock,
    RedactedThinkingBlock,
    RefusalBlock,
    ServerToolBlock,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    Usage,
    WithheldCall,
)
from sseam.sequence import BLOCKS, TRANSITIONS, Phase, Validator, initial, step

EVENT_TYPES = [getattr(neutral, name) for name in neutral.__all__ if name != "Event"]


def call(id: str = "c1", arguments: Any = None, text: str | None = None, **fields: Any) -> ToolCall:
    arguments = {} if arguments is None else arguments
    text = json.dumps(arguments) if text is None else text
    return ToolCall(**{"id": id, "name": "f", "arguments": arguments, "arguments_json": text, **fields})


def withheld(index: int = 0, text: str = "", reason: Any = "open", id: str = "c1", name: str = "f") -> WithheldCall:
    return WithheldCall(id=id, name=name, arguments_json=text, reason=reason, index=index)


def done(*content: Any, reason: str = "end_turn", **fields: Any) -> Done:
    return Done(reason, Message(**{"content": content, "stop_reason": reason, "complete": True, **fields}))


def failed(*content: Any, **fields: Any) -> Failed:
    message = Message(**{"content": content, **fields})
    return Failed(TruncatedStream("stream ended early", partial=message), message)


SEARCH = ServerToolBlock(kind="web_search", raw={"id": "s1"})
FOUND = ServerToolBlock(kind="web_search", raw={"id": "s1", "query": "x"})
ODD = OpaqueBlock(kind="odd", raw={"type": "odd"})
USAGE = Usage(input_tokens=1)
TEXT = [TextStart(0), TextDelta(0, "a"), TextDelta(0, "b"), TextEnd(0, "ab")]
CALL = [
    ToolCallStart(0, "c1", "f"),
    ToolCallDelta(0, '{"a"'),
    ToolCallDelta(0, ": 1}"),
    ToolCallEnd(0, call(arguments={"a": 1})),
]
OPEN_CALL = CALL[:2]
CITED = ({"url": "u"},)

# Each runs behind a Start, under both settings of `interleaved` unless it interleaves.
LEGAL: dict[str, list[Event]] = {
    "nothing": [done()],
    "text": [*TEXT, done(TextBlock(text="ab"))],
    "text with extra and signature": [*TEXT, done(TextBlock(text="ab", signature="s", extra={"x": 1}))],
    "text without deltas": [TextStart(0), TextEnd(0, ""), done(TextBlock(text=""))],
    "citations": [TextStart(0), TextEnd(0, "", CITED), done(TextBlock(text="", citations=CITED))],
    "thinking": [
        ThinkingStart(0),
        ThinkingDelta(0, "t"),
        ThinkingEnd(0, "t", "sig"),
        done(ThinkingBlock(thinking="t", signature="sig")),
    ],
    "redacted thinking": [ThinkingStart(0, True), ThinkingEnd(0, ""), done(RedactedThinkingBlock(data="x"))],
    "refusal": [
        RefusalStart(0),
        RefusalDelta(0, "no"),
        RefusalEnd(0, "no"),
        done(RefusalBlock(text="no"), reason="refusal"),
    ],
    "call": [*CALL, done(call(arguments={"a": 1}), reason="tool_use")],
    "call, input given whole": [
        ToolCallStart(0, "c1", "f"),
        ToolCallEnd(0, call(arguments={"a": [1, None, True, "x", 1.5]})),
        done(call(arguments={"a": [1, None, True, "x", 1.5]})),
    ],
    "call, no input": [ToolCallStart(0, "c1", "f"), ToolCallEnd(0, call(text="")), done(call(text=""))],
    "call, blank input": [
        ToolCallStart(0, "c1", "f"),
        ToolCallDelta(0, " "),
        ToolCallEnd(0, call(text=" ")),
        done(call(text=" ")),
    ],
    "call, blank input spelled out": [
        ToolCallStart(0, "c1", "f"),
        ToolCallDelta(0, ""),
        ToolCallEnd(0, call(text="{}")),
        done(call(text="{}")),
    ],
    "one number, two spellings": [
        ToolCallStart(0, "c1", "f"),
        ToolCallDelta(0, '{"a":1.0}'),
        ToolCallEnd(0, call(arguments={"a": 1}, text='{"a":1.0}')),
        done(call(arguments={"a": 1}, text='{"a":1.0}')),
    ],
    "custom call": [
        ToolCallStart(0, "c1", "f"),
        ToolCallDelta(0, "ls "),
        ToolCallEnd(0, call(arguments={"input": "ls "}, text="ls ", kind="custom")),
        done(call(arguments={"input": "ls "}, text="ls ", kind="custom")),
    ],
    "custom call, input given whole": [
        ToolCallStart(0, "c1", "f"),
        ToolCallEnd(0, call(arguments={"input": "ls"}, text="ls", kind="custom")),
        done(call(arguments={"input": "ls"}, text="ls", kind="custom")),
    ],
    "withheld, open": [
        *OPEN_CALL,
        ToolCallWithheld(0, withheld(text='{"a"')),
        done(withheld=(withheld(text='{"a"'),), reason="max_tokens"),
    ],
    "withheld, open, input given whole": [
        CALL[0],
        ToolCallWithheld(0, withheld(text="{}")),
        done(withheld=(withheld(text="{}"),), reason="max_tokens"),
    ],
    "withheld, invalid": [
        *OPEN_CALL,
        ToolCallWithheld(0, withheld(text='{"a"', reason="invalid")),
        done(withheld=(withheld(text='{"a"', reason="invalid"),), reason="max_tokens"),
    ],
    "withheld, unreleased": [
        *CALL,
        ToolCallWithheld(0, withheld(text='{"a": 1}', reason="unreleased")),
        done(withheld=(withheld(text='{"a": 1}', reason="unreleased"),), reason="max_tokens"),
    ],
    "released and withheld": [
        *CALL,
        ToolCallStart(1, "c2", "f"),
        ToolCallWithheld(1, withheld(1, id="c2")),
        done(call(arguments={"a": 1}), withheld=(withheld(1, id="c2"),), reason="max_tokens"),
    ],
    "server tool": [ServerTool(0, SEARCH, False), ServerTool(0, FOUND, True), done(FOUND)],
    "opaque": [Opaque(0, ODD, False), Opaque(0, ODD, True), done(ODD)],
    "usage": [UsageUpdate(Usage()), *TEXT, UsageUpdate(USAGE), done(TextBlock(text="ab"), usage=USAGE)],
    "usage only at the end": [done(usage=USAGE)],
    "failed": [failed()],
    "failed with open text": [*TEXT[:2], failed(TextBlock(text="a"))],
    "failed with an ended call": [*CALL, failed(call(arguments={"a": 1}))],
    "failed without an ended call": [*CALL, failed(withheld=(withheld(text='{"a": 1}', reason="unreleased"),))],
    "failed with an open call": [*OPEN_CALL, failed(withheld=(withheld(text='{"a"'),))],
    "failed by the service": [Failed(ApiError("overloaded", partial=Message()), Message())],
}

INTERLEAVED: list[Event] = [
    TextStart(0),
    ToolCallStart(1, "c1", "f"),
    ThinkingStart(2),
    ToolCallDelta(1, '{"a"'),
    TextDelta(0, "a"),
    ThinkingDelta(2, "t"),
    ToolCallDelta(1, ": 1}"),
    ThinkingEnd(2, "t"),
    TextDelta(0, "b"),
    ToolCallEnd(1, call(arguments={"a": 1})),
    TextEnd(0, "ab"),
    done(TextBlock(text="ab"), call(arguments={"a": 1}), ThinkingBlock(thinking="t"), reason="tool_use"),
]


def accept(events: list[Any], interleaved: bool = True) -> Validator:
    validator = Validator(interleaved)
    for event in events:
        validator.accept(event)
    return validator


def refusal(events: list[Any], interleaved: bool = True) -> StreamSequenceError:
    """The error for the last event, the ones before it being accepted; it changes nothing."""
    validator = accept(events[:-1], interleaved)
    phase = validator.phase
    with pytest.raises(StreamSequenceError) as caught:
        validator.accept(events[-1])
    assert validator.phase is phase
    assert caught.value.event_type == type(events[-1]).__name__
    assert caught.value.phase == phase.value
    assert "Legal here: " in str(caught.value)
    return caught.value


@pytest.mark.parametrize("interleaved", [True, False])
@pytest.mark.parametrize("name", LEGAL)
def test_legal(name: str, interleaved: bool) -> None:
    assert accept([Start(), *LEGAL[name]], interleaved).phase is Phase.TERMINAL


def test_blocks_interleave() -> None:
    assert accept([Start(), *INTERLEAVED]).phase is Phase.TERMINAL


def test_strict_rule_allows_one_open_block() -> None:
    error = refusal([Start(), TextStart(0), ToolCallStart(1, "c1", "f")], interleaved=False)
    assert str(error) == (
        "ToolCallStart opens a block while another one is open (block 1, call 'c1'). "
        "Legal here: TextDelta/TextEnd for block 0, UsageUpdate, Failed"
    )


def test_failed_may_come_first() -> None:
    assert accept([failed()]).phase is Phase.TERMINAL


SAMPLES: dict[type[Any], Any] = {
    Start: Start(),
    TextStart: TextStart(0),
    TextDelta: TextDelta(0, ""),
    TextEnd: TextEnd(0, ""),
    ThinkingStart: ThinkingStart(0),
    ThinkingDelta: ThinkingDelta(0, ""),
    ThinkingEnd: ThinkingEnd(0, ""),
    RefusalStart: RefusalStart(0),
    RefusalDelta: RefusalDelta(0, ""),
    RefusalEnd: RefusalEnd(0, ""),
    ToolCallStart: ToolCallStart(0, "c1", "f"),
    ToolCallDelta: ToolCallDelta(0, ""),
    ToolCallEnd: ToolCallEnd(0, call()),
    ToolCallWithheld: ToolCallWithheld(0, withheld()),
    ServerTool: ServerTool(0, SEARCH, False),
    Opaque: Opaque(0, ODD, False),
    UsageUpdate: UsageUpdate(USAGE),
    Done: done(),
    Failed: failed(),
}
BEFORE: dict[Phase, list[Event]] = {Phase.IDLE: [], Phase.STREAMING: [Start()], Phase.TERMINAL: [Start(), done()]}
OPENERS = {kind: opener for opener, kinds in BLOCKS.items() for kind in kinds if kind is not opener}


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("kind", EVENT_TYPES)
def test_every_pair_of_phase_and_event(phase: Phase, kind: type[Any]) -> None:
    # Within a block's own rules each event has a place; the table alone decides here.
    opened = [SAMPLES[OPENERS[kind]]] if kind in OPENERS and phase is Phase.STREAMING else []
    events = [*BEFORE[phase], *opened, SAMPLES[kind]]
    if kind in TRANSITIONS[phase]:
        assert accept(events).phase is TRANSITIONS[phase][kind]
    else:
        refusal(events)


@pytest.mark.parametrize("opener", BLOCKS)
@pytest.mark.parametrize("kind", [*OPENERS, ServerTool, Opaque])
def test_every_pair_of_block_and_event(opener: type[Any], kind: type[Any]) -> None:
    event = (
        msgspec.structs.replace(SAMPLES[kind], ended=True) if kind in BLOCKS and kind is not opener else SAMPLES[kind]
    )
    if kind is opener:
        event = msgspec.structs.replace(event, ended=True)
    events = [Start(), SAMPLES[opener], event]
    if kind in BLOCKS[opener]:
        accept(events)
    else:
        assert f"is for block 0, which {opener.__name__} opened" in refusal(events).detail


def wrong_end(*deltas: str, end: ToolCall) -> list[Event]:
    return [ToolCallStart(0, "c1", "f"), *(ToolCallDelta(0, text) for text in deltas), ToolCallEnd(0, end)]


# Behind a Start: the last event is refused with these words.
REFUSED: dict[str, tuple[list[Any], str]] = {
    "second start": (
        [Start()],
        "Start came a second time. Legal here: the start of block 0, UsageUpdate, Done, Failed",
    ),
    "no event": ([{"type": "text"}], "dict is no neutral event"),
    "none": ([None], "NoneType is no neutral event"),
    "index too high": ([TextStart(1)], "TextStart opens block 1 (block 1). Legal here: index 0, the next one"),
    "index again": ([TextStart(0), TextEnd(0, ""), ThinkingStart(0)], "Legal here: index 1, the next one"),
    "index no number": ([TextStart("0")], "TextStart has str as its index (block 0). Legal here: int"),
    "delta for no block": ([TextDelta(0, "a")], "TextDelta is for block 0, which never started"),
    "negative index": ([TextStart(0), TextDelta(-1, "a")], "is for block -1, which never started (block -1)"),
    "delta after the end": ([*TEXT, TextDelta(0, "c")], "TextDelta is for block 0, which has ended"),
    "second end": ([*TEXT, TextEnd(0, "ab")], "TextEnd is for block 0, which has ended"),
    "delta of another block that ended": ([*TEXT, TextStart(1), TextDelta(0, "c")], "block 0, which has ended"),
    "null delta": ([TextStart(0), TextDelta(0, None)], "TextDelta has NoneType as its text (block 0). Legal here: str"),
    "signature no text": (
        [ThinkingStart(0), ThinkingEnd(0, "", 1)],
        "has int as its signature (block 0). Legal here: str",
    ),
    "citations in a list": (
        [TextStart(0), TextEnd(0, "", [])],
        "has list as its citations (block 0). Legal here: tuple",
    ),
    "no call": ([ToolCallStart(0, "c1", "f"), ToolCallEnd(0, None)], "has NoneType as its call (block 0)"),
    "no error": ([Failed("boom", Message())], "Failed has str as its error. Legal here: SseamError"),
    "end with less": ([*TEXT[:3], TextEnd(0, "a")], "TextEnd has text 'a' (block 0). Legal here: 'ab'"),
    "thinking end with more": ([ThinkingStart(0), ThinkingEnd(0, "t")], "ThinkingEnd has text 't'"),
    "refusal end with other": ([RefusalStart(0), RefusalDelta(0, "n"), RefusalEnd(0, "m")], "RefusalEnd has text 'm'"),
    "redacted with text": (
        [ThinkingStart(0, True), ThinkingDelta(0, "t"), ThinkingEnd(0, "t")],
        "gives text to redacted thinking",
    ),
    "server tool of another kind": (
        [ServerTool(0, SEARCH, False), ServerTool(0, ServerToolBlock(kind="fetch", raw={}), True)],
        "ServerTool has block.kind 'fetch' (block 0). Legal here: 'web_search'",
    ),
    "opaque of another kind": (
        [Opaque(0, ODD, False), Opaque(0, OpaqueBlock(kind="even", raw={}), True)],
        "Opaque has block.kind 'even'",
    ),
    "server tool twice begun": ([ServerTool(0, SEARCH, False), ServerTool(0, SEARCH, False)], "opens block 0"),
    "call without id": ([ToolCallStart(0, "", "f")], "ToolCallStart has no id (block 0)"),
    "call without name": ([ToolCallStart(0, "c1", "")], "ToolCallStart has no name (block 0, call 'c1')"),
    "id again": ([*CALL, ToolCallStart(1, "c1", "g")], "ToolCallStart uses the call id of block 0 again"),
    "other id": (wrong_end(end=call("c2")), "ToolCallEnd has call.id 'c2' (block 0, call 'c2'). Legal here: 'c1'"),
    "other name": (wrong_end(end=call(name="g")), "ToolCallEnd has call.name 'g'"),
    "other text": (wrong_end('{"a":1}', end=call(text="{}")), "has call.arguments_json '{}'"),
    "other arguments": (wrong_end('{"a":1}', end=call(arguments={"a": 2}, text='{"a":1}')), "arguments are not what"),
    "true for 1": (wrong_end('{"a":1}', end=call(arguments={"a": True}, text='{"a":1}')), "arguments are not what"),
    "1 for true": (wrong_end('{"a":true}', end=call(arguments={"a": 1}, text='{"a":true}')), "arguments are not what"),
    "deep inside": (
        wrong_end('{"a":[{"b":0}]}', end=call(arguments={"a": [{"b": 1}]}, text='{"a":[{"b":0}]}')),
        "not what",
    ),
    "shorter list": (wrong_end('{"a":[1]}', end=call(arguments={"a": []}, text='{"a":[1]}')), "arguments are not what"),
    "tuple for list": (
        wrong_end('{"a":[1]}', end=call(arguments={"a": (1,)}, text='{"a":[1]}')),
        "arguments are not what",
    ),
    "list for object": (
        wrong_end('{"a":{}}', end=call(arguments={"a": []}, text='{"a":{}}')),
        "arguments are not what",
    ),
    "key no text": (wrong_end('{"1":1}', end=call(arguments={1: 1}, text='{"1":1}')), "arguments are not what"),
    "complaisant object": (
        wrong_end('{"a":1}', end=call(arguments={"a": type("Any", (), {"__eq__": lambda *_: True})()}, text='{"a":1}')),
        "arguments are not what",
    ),
    "not finite": (wrong_end('{"a":NaN}', end=call(arguments={"a": 1}, text='{"a":NaN}')), "none that JSON knows"),
    "too large": (wrong_end('{"a":1e999}', end=call(arguments={"a": 1}, text='{"a":1e999}')), "too large"),
    "infinite": (wrong_end(end=call(arguments={"a": float("inf")}, text='{"a":1}')), "arguments are not what"),
    "cut off": (wrong_end('{"a"', end=call(text='{"a"')), "arguments_json cannot be used: it ends inside its JSON"),
    "not an object": (wrong_end("[]", end=call(arguments=[], text="[]")), "cannot be used: it is a list"),
    "key twice": (wrong_end('{"a":1,"a":1}', end=call(arguments={"a": 1}, text='{"a":1,"a":1}')), "stands twice"),
    "half a pair, escaped": (wrong_end(end=call(arguments={"a": "\ud800"}, text='{"a":"\\ud800"}')), "surrogate"),
    "half a pair": (wrong_end(end=call(arguments={"a": "\ud800"}, text='{"a":"\ud800"}')), "is no Unicode text"),
    "text no text": (wrong_end(end=call(text=b"{}")), "is no Unicode text"),  # type: ignore[arg-type]
    "arguments from nowhere": (wrong_end("", end=call(arguments={"a": 1})), "although its deltas gave none"),
    "arguments without text": (wrong_end(end=call(arguments={"a": 1}, text="")), "arguments are not what"),
    "custom, other text": (
        wrong_end("ls", end=call(arguments={"input": "l"}, text="l", kind="custom")),
        "has call.arguments_json 'l'",
    ),
    "custom, other arguments": (wrong_end("ls", end=call(arguments={}, text="ls", kind="custom")), "are not what"),
    "kind": (
        wrong_end(end=call(kind="odd")),
        "call of kind 'odd' (block 0, call 'c1'). Legal here: function or custom",
    ),
    "withheld twice": (
        [*OPEN_CALL, *[ToolCallWithheld(0, withheld(text='{"a"'))] * 2],
        "ToolCallWithheld is for block 0, which was withheld",
    ),
    "withheld with other id": ([*OPEN_CALL, ToolCallWithheld(0, withheld(id="c2"))], "has call.id 'c2'"),
    "withheld with other name": ([*OPEN_CALL, ToolCallWithheld(0, withheld(name="g"))], "has call.name 'g'"),
    "withheld with other index": ([*OPEN_CALL, ToolCallWithheld(0, withheld(1))], "has call.index 1 (block 0"),
    "withheld with other text": ([*OPEN_CALL, ToolCallWithheld(0, withheld())], "has call.arguments_json ''"),
    "withheld with other text than its end": (
        [*CALL, ToolCallWithheld(0, withheld(reason="unreleased"))],
        "has call.arguments_json ''",
    ),
    "withheld as unreleased, open": (
        [*OPEN_CALL, ToolCallWithheld(0, withheld(text='{"a"', reason="unreleased"))],
        "gives the reason 'unreleased' (block 0, call 'c1'). Legal here: open or invalid",
    ),
    "withheld as open, ended": (
        [*CALL, ToolCallWithheld(0, withheld(text='{"a": 1}', reason="open"))],
        "gives the reason 'open' (block 0, call 'c1'). Legal here: unreleased",
    ),
    "withheld after its release": (
        [*CALL, TextStart(1), ToolCallWithheld(0, withheld(text='{"a": 1}', reason="unreleased"))],
        "takes back a call that the start of a later block released",
    ),
    "end after withheld": (
        [*OPEN_CALL, ToolCallWithheld(0, withheld(text='{"a"')), ToolCallEnd(0, call(text='{"a"'))],
        "ToolCallEnd is for block 0, which has ended",
    ),
    "done with an open block": ([TextStart(0), done(TextBlock(text=""))], "Done leaves blocks open. Legal here: their"),
    "done, not complete": ([done(complete=False)], "a message that is not complete"),
    "done, other reason": ([done(stop_reason="tool_use")], "Done has reason 'end_turn'. Legal here: 'tool_use'"),
    "done, no reason": ([done(stop_reason=None)], "Done has reason 'end_turn'. Legal here: None"),
    "done, other usage": ([UsageUpdate(USAGE), done()], "another usage than the last UsageUpdate"),
    "done, block missing": ([*TEXT, done()], "not a tuple of the 1 ended blocks"),
    "done, block too many": ([done(TextBlock(text=""))], "not a tuple of the 0 ended blocks"),
    "done, list of blocks": ([*TEXT, done(content=[TextBlock(text="ab")])], "not a tuple of the 1 ended blocks"),
    "done, order": (
        [*TEXT, RefusalStart(1), RefusalEnd(1, ""), done(RefusalBlock(text=""), TextBlock(text="ab"))],
        "has content[0] unlike what block 0 gave",
    ),
    "done, withheld call in content": (
        [*CALL, ToolCallWithheld(0, withheld(text='{"a": 1}', reason="unreleased")), done(call(arguments={"a": 1}))],
        "does not withhold the 1 calls that were",
    ),
    "done, call withheld by the message alone": (
        [*CALL, done(withheld=(withheld(text='{"a": 1}', reason="unreleased"),))],
        "does not withhold the 0 calls that were",
    ),
    "failed, complete": ([failed(complete=True)], "Failed has a message that is complete"),
    "failed, other partial": (
        [Failed(TruncatedStream("x", partial=Message(id="m")), Message())],
        "not its error's partial",
    ),
    "failed, no partial": ([Failed(TruncatedStream("x"), Message())], "not its error's partial"),
    "failed, list of blocks": ([failed(content=[])], "content is not a tuple"),
    "failed, half a call": ([*OPEN_CALL, failed(call())], "the call 'c1', which did not end so"),
    "failed, other call": ([*CALL, failed(call(arguments={"a": 2}))], "the call 'c1', which did not end so"),
    "failed, equal only to Python": (
        [*CALL, failed(call(arguments={"a": True}, text='{"a": 1}'))],
        "the call 'c1', which did not end so",
    ),
    "failed, call twice": ([*CALL, failed(*[call(arguments={"a": 1})] * 2)], "the call 'c1', which did not end so"),
    "failed, withheld call": (
        [
            *CALL,
            ToolCallWithheld(0, withheld(text='{"a": 1}', reason="unreleased")),
            failed(call(arguments={"a": 1})),
        ],
        "the call 'c1', which did not end so",
    ),
    "nothing after done": (
        [done(), UsageUpdate(USAGE)],
        "UsageUpdate came after the terminal event. Legal here: nothing",
    ),
    "no event after done": ([done(), 3], "int is no neutral event. Legal here: nothing"),
}

# Content that an ended block did not give.
UNLIKE: dict[str, tuple[list[Event], Any]] = {
    "text": (TEXT, TextBlock(text="a")),
    "citations": (TEXT, TextBlock(text="ab", citations=CITED)),
    "kind": (TEXT, RefusalBlock(text="ab")),
    "thinking": ([ThinkingStart(0), ThinkingEnd(0, "")], ThinkingBlock(thinking="t")),
    "signature": ([ThinkingStart(0), ThinkingEnd(0, "", "s")], ThinkingBlock(thinking="")),
    "redacted": ([ThinkingStart(0), ThinkingEnd(0, "")], RedactedThinkingBlock(data="x")),
    "not redacted": ([ThinkingStart(0, True), ThinkingEnd(0, "")], ThinkingBlock(thinking="")),
    "refusal": ([RefusalStart(0), RefusalEnd(0, "")], RefusalBlock(text="no")),
    "call": (CALL, call(arguments={"a": 2})),
    "call of Python": (CALL, call(arguments={"a": True}, text='{"a": 1}')),
    "call signature": (CALL, call(arguments={"a": 1}, signature="s")),
    "server tool": ([ServerTool(0, SEARCH, False), ServerTool(0, FOUND, True)], SEARCH),
    "opaque": ([Opaque(0, ODD, False), Opaque(0, ODD, True)], OpaqueBlock(kind="odd", raw={})),
    "no block": (TEXT, None),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    events, words = REFUSED[name]
    assert words in str(refusal([Start(), *events]))


@pytest.mark.parametrize("name", UNLIKE)
def test_done_equals_the_content(name: str) -> None:
    events, content = UNLIKE[name]
    assert "has content[0] unlike what block 0 gave" in str(refusal([Start(), *events, done(content)]))


@pytest.mark.parametrize(("event", "words"), [(TextStart(0), "came before Start"), (done(), "came before Start")])
def test_start_comes_first(event: Event, words: str) -> None:
    assert words in str(refusal([event]))
    assert "Legal here: Start or Failed" in str(refusal([event]))


def test_values_too_deep_to_compare() -> None:
    def nested() -> dict[str, Any]:
        value: dict[str, Any] = {}
        for _ in range(100_000):
            value = {"a": value}
        return value

    blocks = [ServerToolBlock(kind="x", raw=nested()) for _ in range(2)]
    error = refusal([Start(), ServerTool(0, blocks[0], False), ServerTool(0, blocks[0], True), done(blocks[1])])
    assert "nested too deeply to compare" in str(error)


def test_refusal_names_what_is_open() -> None:
    error = refusal([Start(), TextStart(0), ServerTool(1, SEARCH, False), ToolCallDelta(0, "")])
    assert str(error) == (
        "ToolCallDelta is for block 0, which TextStart opened (block 0). Legal here: TextDelta/TextEnd for block 0, "
        "ServerTool for block 1, the start of block 2, UsageUpdate, Failed"
    )


# ---- properties


TEXTS = st.text('a"{é', max_size=3)


@st.composite
def streams(draw: st.DrawFn) -> list[Event]:
    """A legal stream of interleaved blocks that ends in Done."""
    pending: list[tuple[int, list[Event]]] = []
    out: list[Event] = [Start("m")]
    content: list[Any] = []
    while (len(content) < 6 and draw(st.booleans())) or pending:
        if len(content) < 6 and (not pending or draw(st.booleans())):
            block, events = draw(blocks(len(content)))
            content.append(block)
            out.append(events[0])
            pending.append((len(content) - 1, events[1:]))
        else:
            at = draw(st.integers(0, len(pending) - 1))
            _, events = pending[at]
            out.append(events.pop(0))
            if not events:
                del pending[at]
    out.append(done(*content))
    return out


@st.composite
def blocks(draw: st.DrawFn, index: int) -> tuple[Any, list[Event]]:
    pieces = draw(st.lists(TEXTS, max_size=4))
    text = "".join(pieces)
    match draw(st.sampled_from(["text", "thinking", "call", "custom", "server"])):
        case "text":
            return TextBlock(text=text), [
                TextStart(index),
                *(TextDelta(index, p) for p in pieces),
                TextEnd(index, text),
            ]
        case "thinking":
            events = [ThinkingStart(index), *(ThinkingDelta(index, p) for p in pieces), ThinkingEnd(index, text, "s")]
            return ThinkingBlock(thinking=text, signature="s"), events
        case "call":
            arguments = draw(st.dictionaries(TEXTS, st.integers() | st.booleans()))
            ended = call(f"c{index}", arguments)
            cut = draw(st.integers(0, len(ended.arguments_json)))
            parts = [ended.arguments_json[:cut], ended.arguments_json[cut:]]
            start = ToolCallStart(index, ended.id, "f")
            return ended, [start, *(ToolCallDelta(index, part) for part in parts), ToolCallEnd(index, ended)]
        case "custom":
            ended = call(f"c{index}", {"input": text}, text, kind="custom")
            start = ToolCallStart(index, ended.id, "f")
            return ended, [start, *(ToolCallDelta(index, p) for p in pieces), ToolCallEnd(index, ended)]
        case _:
            return FOUND, [ServerTool(index, SEARCH, False), ServerTool(index, FOUND, True)]


@given(streams())
def test_legal_streams_pass(events: list[Event]) -> None:
    assert accept(events).phase is Phase.TERMINAL


@given(streams(), st.data())
def test_stream_without_one_event_is_refused(events: list[Event], data: st.DataObject) -> None:
    dropped = events.pop(data.draw(st.integers(0, len(events) - 2)))
    assume(not (isinstance(dropped, TextDelta | ThinkingDelta) and dropped.text == ""))  # it gave nothing
    assume(not isinstance(dropped, ToolCallDelta))  # without any, the call may give its input whole
    with pytest.raises(StreamSequenceError):
        accept(events)


@given(streams(), st.data())
def test_stream_with_one_event_twice_is_refused(events: list[Event], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(events) - 1))
    event = events[at]
    assume(not (isinstance(event, TextDelta | ThinkingDelta) and event.text == ""))
    assume(not (isinstance(event, ToolCallDelta) and event.arguments_json == ""))
    with pytest.raises(StreamSequenceError):
        accept([*events[: at + 1], *events[at:]])


@given(streams(), st.data())
def test_step_changes_no_earlier_state(events: list[Event], data: st.DataObject) -> None:
    states = [initial()]
    for event in events:
        states.append(step(states[-1], event))
    fork = data.draw(st.integers(0, len(events) - 1))
    other = step(states[fork], Failed(TruncatedStream("x", partial=Message()), Message()))
    assert other.phase is Phase.TERMINAL
    for at in range(fork, len(events)):  # from the earlier state again, and then from each as it was kept
        assert step(states[at], events[at]) == states[at + 1]


def test_forks_share_nothing_that_shows() -> None:
    state = initial()
    for event in [Start(), TextStart(0), TextDelta(0, "a")]:
        state = step(state, event)
    left = step(step(state, TextDelta(0, "b")), ToolCallStart(1, "c1", "f"))
    right = step(step(state, TextDelta(0, "c")), ToolCallStart(1, "c1", "f"))
    assert step(left, TextEnd(0, "ab")).open == step(right, TextEnd(0, "ac")).open == 1
    assert step(state, TextEnd(0, "a")).open == 0
    with pytest.raises(StreamSequenceError):
        step(left, TextEnd(0, "ac"))


def test_b239_b241_cost_is_linear_in_the_deltas() -> None:
    def cost(deltas: int) -> float:
        validator = accept([Start(), ToolCallStart(0, "c1", "f")])
        events = [ToolCallDelta(0, " ")] * deltas
        began = time.process_time()
        for event in events:
            validator.accept(event)
        validator.accept(ToolCallEnd(0, call(text=" " * deltas)))
        return (time.process_time() - began) / deltas

    few = min(cost(1_000) for _ in range(5))
    many = min(cost(50_000) for _ in range(2))
    assert many < 4 * few  # quadratic work would be fifty times as much
