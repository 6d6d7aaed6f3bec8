"""Whose a fragment is: the vectors of the wire reference, and what no rule may ever do."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sseam
from sseam.dialect import Dialect
from sseam.errors import InvalidToolCall, SseamError, StopReasonError, TruncatedStream

from .streams import DONE, chunk, codes, event, parse, stream

TOOLS = [
    {"name": "get_weather", "parameters": {"type": "object", "required": ["city"]}},
    {"name": "get_time", "parameters": {"type": "object"}},
]

# A fault that has an error of its own, to how that error says it.
FAULTS: dict[str, tuple[type[SseamError], str]] = {
    "args_incomplete": (InvalidToolCall, "it ends inside its JSON"),
    "args_missing": (InvalidToolCall, "the tool requires"),
    "args_not_object": (InvalidToolCall, "returned non-object input"),
    "args_trailing": (InvalidToolCall, "it goes on after the end of the first value"),
    "calls_missing": (StopReasonError, "no whole tool call"),
    "finish_missing": (TruncatedStream, "unclosed tool_use block(s): 0"),
    "id_alternates": (InvalidToolCall, "changed its id and changed it back"),
    "name_missing": (InvalidToolCall, "has no name"),
    "not_complete": (StopReasonError, "is not accepted"),
    "tool_unknown": (InvalidToolCall, "undeclared tool"),
    "type_unknown": (InvalidToolCall, "unknown type"),
}


def entry(fields: list[Any]) -> dict[str, Any]:
    index, id, name, arguments, *type = fields
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value != "-"}
    labels = {key: value for key, value in (("index", index), ("id", id)) if value != "-"}
    return {**labels, "function": function, **({"type": type[0]} if type else {})}


def read(vector: dict[str, Any], **options: Any) -> sseam.Message:
    deltas = [chunk({"tool_calls": [entry(fields)]}) for fields in vector["entries"]]
    last = [chunk({}, vector["finish"])] if vector["finish"] else []
    return parse(chunk({"role": "assistant", "content": None}), *deltas, *last, tools=TOOLS, **options)


def check(vector: dict[str, Any], expected: dict[str, Any], **options: Any) -> None:
    if "error" in expected:
        code = expected["error"].partition(":")[0]
        kind, text = FAULTS.get(code, (SseamError, code))
        with pytest.raises(kind) as caught:
            read(vector, **options)
        assert text in str(caught.value) or getattr(caught.value, "reason", None) == code
        assert caught.value.partial is not None
        assert not caught.value.partial.tool_calls
        return
    message = read(vector, **options)
    got = [[call.id, call.name, call.arguments] for call in message.tool_calls]
    assert [call[1:] for call in got] == [call[1:] for call in expected["calls"]]
    ids = [call[0] for call in got]
    assert len(set(ids)) == len(ids)
    wanted = [call[0] for call in expected["calls"]]
    for number, id in enumerate(wanted):
        if id is not None and id not in wanted[:number]:
            assert ids[number] == id
    assert codes(message) == set(expected["notes"])


@pytest.fixture(scope="module")
def vectors(shared: Path) -> list[dict[str, Any]]:
    return json.loads((shared / "protocols" / "openai-chat.dialects.json").read_text("utf-8"))["assembly_vectors"]


@pytest.mark.parametrize("number", range(69))
@pytest.mark.parametrize("mode", ["lenient", "strict"])
def test_vector(vectors: list[dict[str, Any]], number: int, mode: str) -> None:
    check(vectors[number], vectors[number][mode], strict=mode == "strict")


def test_vectors_with_a_gated_code_that_the_dialect_lists(vectors: list[dict[str, Any]]) -> None:
    gated = [vector for vector in vectors if "with_allowed" in vector]
    assert len(gated) == 2
    for vector in gated:
        allowed = vector["with_allowed"]
        check(vector, allowed["lenient"], dialect=Dialect(name="", codes=frozenset(allowed["allow"])))


# ---- what holds for any fragments

CALLS = st.lists(
    st.tuples(
        st.sampled_from(["get_weather", "get_time", "search"]),
        st.dictionaries(st.text(max_size=4), st.text(max_size=6) | st.integers() | st.none(), max_size=3),
    ),
    min_size=1,
    max_size=4,
)


def quirks(data: st.DataObject, calls: list[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    """The calls one behind the other, labelled as one of the kinds of servers does."""
    index = data.draw(st.sampled_from(["own", "zero", "none", "from one"]))
    id = data.draw(st.sampled_from(["header", "always", "none", "other each time", "blank"]))
    # With no index, another id and the name each time, every fragment looks like a call of its own.
    again = data.draw(st.booleans()) and not (index == "none" and id == "other each time")
    deltas: list[dict[str, Any]] = []
    for number, (name, arguments) in enumerate(calls):
        text = json.dumps(arguments)
        cut = data.draw(st.integers(0, len(text)))
        for part, piece in enumerate(["", text[:cut], text[cut:]]):
            labels: dict[str, Any] = {"function": {"arguments": piece}}
            if part == 0 or again:
                labels["function"]["name"] = name
            if index != "none":
                labels["index"] = 0 if index == "zero" else number + (index == "from one")
            if id == "always" or (id in ("header", "blank") and part == 0):
                labels["id"] = f"id{number}"
            elif id == "other each time":
                labels["id"] = f"id{number}.{part}"
            elif id == "blank":
                labels["id"] = ""
            deltas.append(chunk({"tool_calls": [labels]}))
    return deltas


@given(CALLS, st.data())
def test_labels_of_any_kind_give_the_calls_or_an_error(
    calls: list[tuple[str, dict[str, Any]]], data: st.DataObject
) -> None:
    """Whatever is left out or repeated: no call is ever joined of two, changed or lost."""
    deltas = quirks(data, calls)
    try:
        message = parse(*deltas, chunk({}, "tool_calls"))
    except SseamError:
        return
    got = [(call.name, call.arguments) for call in message.tool_calls]
    assert got == calls
    assert len({call.id for call in message.tool_calls}) == len(calls)


def test_a_call_is_told_as_soon_as_nothing_can_change_it() -> None:
    parser = sseam.Parser("openai-chat", tools=TOOLS)
    seen: list[list[str]] = []
    for fields in (
        [0, "a", "-", ""],  # no name yet
        [0, "-", "get_weather", ""],
        [0, "-", "-", '{"city":'],
        [1, "-", "get_time", "{}"],  # an id may follow
        [2, "b", "get_time", "{}"],  # and calls start in order
        [0, "-", "-", '"Paris"}'],
        [1, "c", "-", "-"],
    ):
        events = parser.feed(event(chunk({"tool_calls": [entry(fields)]})))
        seen.append([type(made).__name__ for made in events])
    assert seen == [
        ["Start"],
        ["ToolCallStart"],
        ["ToolCallDelta"],
        [],
        [],
        ["ToolCallDelta"],
        ["ToolCallStart", "ToolCallDelta", "ToolCallStart", "ToolCallDelta"],
    ]
    parser.feed(event(chunk({}, "tool_calls")) + DONE)
    assert [call.id for call in parser.close().tool_calls] == ["a", "c", "b"]


def test_a_made_id_is_no_other_call_s() -> None:
    entries = [entry([0, "call_1", "get_time", "{}"]), entry([1, "-", "get_time", '{"a":1}'])]
    message = parse(chunk({"tool_calls": entries}), chunk({}, "tool_calls"))
    assert [call.id for call in message.tool_calls] == ["call_1", "call_1_"]


PROOF = {"google": {"thought_signature": "s"}}
OTHER = {"google": {"thought_signature": "t"}}
ONE = {"tool_calls": [entry([0, "a", "get_time", "{}"])]}
TWO = {"tool_calls": [entry([1, "b", "get_time", "{}"])]}
NO_ID = {"tool_calls": [entry([0, "-", "get_time", "{}"])]}


@pytest.mark.parametrize(
    ("deltas", "extras"),
    [
        ([ONE, {"extra_content": PROOF}], [PROOF]),
        ([{**ONE, "extra_content": PROOF}], [PROOF]),
        ([{"extra_content": PROOF}, ONE], [PROOF]),
        ([{"content": "x"}, {"extra_content": PROOF}, ONE], [PROOF]),
        ([NO_ID, {"extra_content": PROOF}], [PROOF]),
        ([{"content": "x"}, NO_ID, {"extra_content": PROOF}], [PROOF]),
        # Of calls made side by side the first has the proof.
        ([ONE, TWO, {"extra_content": PROOF}], [PROOF, None]),
        ([{"tool_calls": [*ONE["tool_calls"], *TWO["tool_calls"]], "extra_content": PROOF}], [PROOF, None]),
        ([ONE, {"extra_content": PROOF}, TWO, {"extra_content": OTHER}], [PROOF, OTHER]),
        # What says nothing but that text is thought is no proof.
        ([{"content": "x", "extra_content": {"google": {"thought": True}}}, ONE], [None]),
    ],
)
@pytest.mark.parametrize("late", [False, True])
def test_extra_content_of_a_delta_goes_with_the_call(deltas, extras, late) -> None:
    last = deltas[-1]
    if late and set(last) == {"extra_content"}:
        chunks = [*map(chunk, deltas[:-1]), chunk({}, "tool_calls"), chunk(last)]  # behind the finish
    else:
        chunks = [*map(chunk, deltas[:-1]), chunk(last, "tool_calls")]
    message = parse(*chunks)
    assert [call.extra.get("extra_content") for call in message.tool_calls] == extras


def test_extra_content_of_a_call_goes_back_with_it() -> None:
    given = {**entry([0, "a", "get_time", "{}"]), "extra_content": {"google": {"thought_signature": "s"}}}
    later = {"index": 0, "extra_content": {"other": 1}}
    message = parse(chunk({"tool_calls": [given]}), chunk({"tool_calls": [later]}), chunk({}, "tool_calls"))
    assert message.tool_calls[0].extra == {"extra_content": {"other": 1}}


@pytest.mark.parametrize(
    "entries",
    [
        [[n, f"id{n}", "get_time", ""] for n in range(2000)],
        [[0, f"id{n}", "get_time", "{}"] for n in range(2000)],
        [[0, f"id{n}", "-", "x"] if n else [0, "id", "get_time", '{"a":"'] for n in range(2000)],
        [["-", f"id{n}", "get_time", "{}"] for n in range(2000)],
        [[n, "same", "get_time", "{}"] for n in range(2000)],
        [["-", "-", "get_time", f'{{"a":{n}}}'] for n in range(2000)],
        [[0, "-", "-", '{"a":1},'] if n else [0, "id", "get_time", '{"a":['] for n in range(2000)],
    ],
)
def test_cost_is_linear(entries: list[list[Any]]) -> None:
    def cost(count: int) -> float:
        body = stream(*(chunk({"tool_calls": [entry(fields)]}) for fields in entries[:count]))
        best = float("inf")
        for _ in range(3):
            start = time.process_time()
            parser = sseam.Parser("openai-chat")
            parser.feed(body)
            best = min(best, time.process_time() - start)
        return best

    assert cost(2000) < cost(500) * 4 * 2.5
