"""Chunks to neutral events and the message: what the fixtures cannot show.

The fixtures of this protocol (`fixtures/openai-chat`) show each feature and each fault on bytes.
"""

from __future__ import annotations

import gc
import json
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

import sseam
from sseam.errors import ApiError, SseamError, StopReasonError, TruncatedStream
from sseam.events import Done, Event, Failed, TextDelta, ThinkingEnd
from sseam.message import OpaqueBlock, ServerToolBlock, TextBlock, ThinkingBlock
from sseam.protocols.openai_chat import State, decode, finish, initial, reduce

from .streams import DONE, HEAD, chunk, codes, event, frame, parse, stream

CALL = {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}


def more(text: str) -> dict[str, Any]:
    return {"index": 0, "function": {"arguments": text}}


CHUNKS = [
    chunk({"role": "assistant", "content": ""}),
    chunk({"reasoning_content": "Let me "}),
    chunk({"reasoning_content": "see."}),
    chunk({"content": "I look"}),
    chunk({"content": " it up."}),
    chunk({"tool_calls": [CALL]}),
    *(chunk({"tool_calls": [more(piece)]}) for piece in ('{"a', '":"', "x y", ' \\"', 'q\\"', '"', "}")),
    chunk({"content": " Done."}),
    chunk({}, "tool_calls"),
    {**HEAD, "choices": [], "usage": {"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5}},
]


def fold(state: State, payloads: list[Any]) -> tuple[State, list[Event]]:
    events: list[Event] = []
    for payload in payloads:
        state, caused = reduce(state, decode(frame(payload)))
        events += caused
    return state, events


def test_a_state_can_be_kept_and_stepped_from_twice() -> None:
    payloads = [*CHUNKS, b"[DONE]"]
    whole = fold(initial(), payloads)
    states = [initial()]
    for payload in payloads:
        states.append(reduce(states[-1], decode(frame(payload)))[0])
    for number, state in enumerate(states):
        fold(state, [chunk({"content": "other"}), chunk({"tool_calls": [more("other")]})])
        assert state == fold(initial(), payloads[:number])[0]
        again, _ = fold(state, payloads[number:])
        assert again == whole[0]
    assert isinstance(whole[1][-1], Done)


def test_a_plain_chunk_gives_what_a_full_one_gives() -> None:
    """The short way is no other way: a field that says nothing sends every chunk the long one."""

    def long(payload: dict[str, Any]) -> dict[str, Any]:
        choices = [{**choice, "delta": {**choice["delta"], "annotations": []}} for choice in payload["choices"]]
        return {**payload, "choices": choices}

    assert fold(initial(), [*CHUNKS, b"[DONE]"]) == fold(initial(), [*map(long, CHUNKS), b"[DONE]"])


def test_nothing_comes_after_the_terminal_event() -> None:
    for last in (b"[DONE]", {"error": "e"}):
        state, _ = fold(initial(), [*CHUNKS, last])
        for payload in (*CHUNKS, b"[DONE]", {"error": "e"}, b""):
            assert reduce(state, decode(frame(payload))) == (state, ())
        assert finish(state) == (state, ())


def test_text_is_given_at_once() -> None:
    parser = sseam.Parser("openai-chat")
    given = [parser.feed(event(chunk({"content": text}))) for text in ("a", "b")]
    assert [made[-1] for made in given] == [TextDelta(0, "a"), TextDelta(0, "b")]


# ---- choices


def test_each_choice_is_judged_by_itself() -> None:
    message = parse(
        chunk({"content": "A"}),
        chunk({"content": "b"}, index=2),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": "x"}}]}, index=1),
        chunk({"content": "B"}),
        chunk({"content": "c"}, index=2),
        chunk({}, "stop", index=2),
        chunk({}, "stop"),
    )
    assert message.text == "AB"
    assert [(other.text, other.complete) for other in message.alternatives] == [("", False), ("bc", True)]
    assert message.alternatives[1].id == "c"


def test_a_failed_answer_keeps_the_other_choices() -> None:
    body = stream(chunk({"content": "A"}), chunk({"content": "b"}, "stop", index=1), chunk({}, "length"))
    with pytest.raises(StopReasonError) as caught:
        sseam.parse(body, "openai-chat")
    assert caught.value.partial is not None
    assert [(other.text, other.complete) for other in caught.value.partial.alternatives] == [("b", True)]


def test_no_choice_is_complete_when_the_stream_failed() -> None:
    with pytest.raises(ApiError) as caught:
        parse(chunk({"content": "b"}, "stop", index=1), {"error": "e"})
    assert caught.value.partial is not None
    assert [other.complete for other in caught.value.partial.alternatives] == [False]


# ---- what goes back


def test_reasoning_details_are_kept_in_order_and_joined() -> None:
    text = {"type": "reasoning.text", "format": "f", "index": 0}
    sealed = {"type": "reasoning.encrypted", "data": "x", "index": 0}
    message = parse(
        chunk({"reasoning": "a", "reasoning_details": [{**text, "text": "a"}]}),
        chunk({"reasoning": "b", "reasoning_details": [{**text, "text": "b"}]}),
        chunk({"reasoning_details": [{**text, "signature": "s"}]}),
        chunk({"reasoning_details": [{**text, "index": 1, "text": "c"}]}),
        chunk({"reasoning_details": [sealed, sealed]}),
        chunk({"content": "Yes"}),
        chunk({"reasoning_details": [{**sealed, "id": "a"}]}, "stop"),
    )
    first, answer, last = message.content
    assert isinstance(first, ThinkingBlock)
    assert first.thinking == "abc"
    assert first.extra["reasoning_details"] == [
        {**text, "text": "ab", "signature": "s"},
        {**text, "index": 1, "text": "c"},
        sealed,
        sealed,
    ]
    assert answer == TextBlock(text="Yes")
    assert last == ThinkingBlock(thinking="", extra={"reasoning_details": [{**sealed, "id": "a"}]})


def test_summaries_are_joined_as_summaries() -> None:
    item = {"type": "reasoning.summary", "index": 0}
    message = parse(
        *(chunk({"reasoning_details": [{**item, "summary": text}]}) for text in "ab"), chunk({"content": "c"}, "stop")
    )
    assert message.thinking == "ab"
    assert message.content[0].extra["reasoning_details"] == [{**item, "summary": "ab"}]


def test_reasoning_details_that_are_not_one_item_stay_apart() -> None:
    text = {"type": "reasoning.text"}
    for items in (
        [{**text, "text": "A", "signature": "s1"}, {**text, "text": "B", "signature": "s2"}],
        [{**text, "text": "A", "signature": "s1"}, {**text, "text": "B"}],
        [{**text, "text": "A", "id": "1"}, {**text, "text": "B", "id": "2"}],
        [{**text, "text": "A", "format": "f"}, {**text, "text": "B", "format": "g"}],
    ):
        message = parse(*(chunk({"reasoning_details": [item]}) for item in items), chunk({"content": "c"}, "stop"))
        assert message.content[0].extra["reasoning_details"] == items
    parts = [{**text, "text": "A", "id": "1"}, {**text, "text": "B"}, {**text, "signature": "s"}]
    message = parse(chunk({"reasoning_details": parts}), chunk({"content": "c"}, "stop"))
    joined = {**text, "text": "AB", "id": "1", "signature": "s"}
    assert message.content[0].extra["reasoning_details"] == [joined]


def test_opaque_reasoning_and_signatures() -> None:
    message = parse(chunk({"reasoning_text": "a", "reasoning_opaque": "o"}), chunk({"content": "b"}, "stop"))
    assert message.content[0] == ThinkingBlock(thinking="a", extra={"reasoning_opaque": "o"})


def test_extra_content_goes_with_the_block_touched_last_or_the_message() -> None:
    given = {"google": {"thought_signature": "s"}}
    message = parse(chunk({"content": "a"}), chunk({"extra_content": given}), chunk({}, "stop"))
    assert message.content[0].extra == {"extra_content": given}
    message = parse(chunk({"extra_content": given}), chunk({"content": "a"}), chunk({}, "stop"))
    assert message.raw["extra_content"] == given


def test_blocks_that_are_kept_as_they_come() -> None:
    message = parse(
        chunk({"executed_tools": [{"index": 0, "type": "search"}, {"index": 1, "type": "visit"}]}),
        chunk({"executed_tools": [{"index": 0, "output": "found"}]}),
        chunk({"audio": {"id": "u", "data": "aa", "transcript": "Hel"}}),
        chunk({"audio": {"data": "bb", "transcript": "lo"}}),
        chunk({"audio": {"expires_at": 9}}),
        chunk({}, "stop"),
    )
    assert message.content == (
        ServerToolBlock(kind="executed_tool", raw={"index": 0, "type": "search", "output": "found"}),
        ServerToolBlock(kind="executed_tool", raw={"index": 1, "type": "visit"}),
        OpaqueBlock(kind="audio", raw={"id": "u", "data": "aabb", "transcript": "Hello", "expires_at": 9}),
    )


# ---- the message


def test_fields_without_a_struct_are_kept() -> None:
    logprobs = [{"token": "a", "logprob": -1.0}, {"token": "b", "logprob": -2.0}]
    first = chunk({"role": "assistant", "content": ""}, provider="P", obfuscation="xyz", service_tier=None)
    last = chunk({"provider_metadata": {"q": 1}}, "stop", citations=["u"])
    last["choices"][0]["native_finish_reason"] = "end"
    texts = [chunk({"content": token["token"]}) for token in logprobs]
    for text, token in zip(texts, logprobs, strict=True):
        text["choices"][0]["logprobs"] = {"content": [token], "refusal": None}
    message = parse(first, *texts, last)
    assert message.raw == {
        "created": HEAD["created"],
        "provider": "P",
        "citations": ["u"],
        "choice": {"native_finish_reason": "end", "provider_metadata": {"q": 1}},
        "logprobs": {"content": logprobs},
    }


def test_the_first_id_and_model_that_say_anything_count() -> None:
    blank = {"id": "", "model": "", "choices": []}
    named = [chunk({"content": text}, id=id, model=id) for text, id in (("a", "1"), ("b", "2"))]
    message = parse({**HEAD, **blank}, *named, chunk({}, "stop", id="3", model=None))
    assert (message.id, message.model) == ("1", "1")
    assert codes(message) >= {"chunk_id_changes", "first_choices_empty", "envelope_blank"}


@pytest.mark.parametrize(
    ("places", "output"),
    [
        ([{"usage": {"completion_tokens": 1}}, {"usage": {"completion_tokens": 2}}], 2),
        ([{"usage": {"completion_tokens": 1}}, {"usage": None}], 1),
        ([{"usage": {"completion_tokens": 1}}, {"usage": {}}], 1),
        ([{"usage": {"completion_tokens": 1}}, {"x_groq": {"usage": {"completion_tokens": 2}}}], 1),
        ([{"x_groq": {"usage": {"completion_tokens": 1}}}, {"usage": {"completion_tokens": 2}}], 2),
        ([{"x_groq": {"id": "q"}}, {"usage": "none"}], None),
        ([{"usage": {"completion_tokens": "many"}}], None),
        ([{"usage": {"completion_tokens": -1}}], None),
        ([{"usage": {"completion_tokens": 1.5}}], None),
    ],
)
def test_the_last_usage_of_the_best_place_counts(places: list[dict[str, Any]], output: int | None) -> None:
    message = parse(chunk({"content": "a"}), *(chunk({}, **place) for place in places), chunk({}, "stop"))
    assert message.usage.output_tokens == output


@pytest.mark.parametrize(
    ("reasons", "raw"),
    [
        (["stop", "tool_calls"], "tool_calls"),
        (["tool_calls", "stop"], "tool_calls"),
        (["content_filter", "tool_calls"], "content_filter"),
        (["length", "content_filter"], "length"),
        (["error", "length"], "error"),
        (["stop", "mystery"], "mystery"),
        (["stop", "", "stop"], "stop"),
    ],
)
def test_the_worst_finish_reason_counts(reasons: list[str], raw: str) -> None:
    call = {**CALL, "function": {"name": "f", "arguments": "{}"}}
    try:
        message: sseam.Message | None = parse(chunk({"tool_calls": [call]}), *(chunk({}, reason) for reason in reasons))
    except SseamError as error:
        message = error.partial
    assert message is not None
    assert message.raw_stop_reason == raw


def test_a_cut_before_the_finish_reason_is_an_error_with_the_text_so_far() -> None:
    body = b"".join(map(event, CHUNKS[:5]))
    with pytest.raises(TruncatedStream) as caught:
        sseam.parse(body, "openai-chat")
    assert str(caught.value).startswith("OpenAI Chat stream protocol error: stream ended before finish_reason")
    assert caught.value.partial is not None
    assert caught.value.partial.text == "I look it up."


# ---- non-streaming bodies


def body(message: dict[str, Any], reason: str | None = "stop", **fields: Any) -> dict[str, Any]:
    return {**HEAD, "object": "chat.completion", "choices": [{"message": message, "finish_reason": reason}], **fields}


def test_a_body_gives_the_same_as_a_stream() -> None:
    calls = [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}},
        {"id": "b", "type": "custom", "custom": {"name": "g", "input": "free"}},
    ]
    message = sseam.parse_response(
        body(
            {"role": "assistant", "content": None, "reasoning": "Hm", "tool_calls": calls},
            "tool_calls",
            usage={"prompt_tokens": 1},
        ),
        "openai-chat",
        strict=True,
    )
    assert message.thinking == "Hm"
    assert [(call.id, call.arguments, call.kind) for call in message.tool_calls] == [
        ("a", {"x": 1}, "function"),
        ("b", {"input": "free"}, "custom"),
    ]
    assert message.usage.input_tokens == 1
    assert message.deviations == ()


@pytest.mark.parametrize(
    ("message", "reason", "error"),
    [
        ({"content": "Hi"}, None, TruncatedStream),
        ({"content": "Hi"}, "length", StopReasonError),
        ({"refusal": "No."}, "stop", StopReasonError),
        ({"content": None, "tool_calls": []}, "tool_calls", StopReasonError),
    ],
)
def test_a_body_is_checked_like_a_stream(message: dict[str, Any], reason: str | None, error: type[SseamError]) -> None:
    with pytest.raises(error):
        sseam.parse_response(json.dumps(body(message, reason)), "openai-chat")


def test_an_error_says_whether_content_was_delivered() -> None:
    for chunks, delivered in (([], False), ([chunk({"content": "Hi"})], True)):
        _, events = fold(initial(), [*chunks, {"error": {"message": "m", "code": "rate_limit_exceeded"}}])
        assert isinstance(events[-1], Failed)
        error = events[-1].error
        assert isinstance(error, ApiError)
        assert (error.delivered, error.status, error.retryable) == (delivered, 429, True)


def test_reasoning_ends_when_the_answer_begins() -> None:
    _, events = fold(initial(), CHUNKS[:4])
    assert events[-3] == ThinkingEnd(0, "Let me see.")
    assert DONE not in b"".join(map(event, CHUNKS))


@pytest.mark.parametrize("value", [None, 5, 1.5, True, "x", [], {}, [None], {"content": 5, "refusal": True}])
def test_logprobs_of_another_shape_are_no_fault(value: Any) -> None:
    given = chunk({"content": "Hi"})
    given["choices"][0]["logprobs"] = value
    assert parse(given, chunk({}, "stop")).text == "Hi"


@pytest.mark.parametrize("value", [None, 5, True, {}, ["s"]])
def test_a_signature_that_is_no_text_is_none(value: Any) -> None:
    part = {"type": "thinking", "thinking": "Hm", "signature": value}
    message = parse(chunk({"content": [part]}), chunk({"content": "Hi"}), chunk({}, "stop"))
    assert message.content[0] == ThinkingBlock(thinking="Hm")


@pytest.mark.parametrize("depth", range(900, 1000, 10))
def test_a_deep_error_object_is_an_error_of_ours(depth: int) -> None:
    body = b'data: {"error":' + b'{"a":' * depth + b"1" + b"}" * depth + b"}\n\n"
    with pytest.raises(SseamError):
        sseam.parse(body, "openai-chat")


def _calls(count: int) -> list[dict[str, Any]]:
    return [{"index": 0, "id": f"i{n}", "function": {"name": "f", "arguments": "{}"}} for n in range(count)]


@pytest.mark.parametrize(
    "chunks",
    [
        lambda count: [chunk({"tool_calls": _calls(count)})],
        lambda count: [chunk({"content": "x", "annotations": [{"n": n}]}) for n in range(count)],
        lambda count: [chunk({"executed_tools": [{"index": n}]}) for n in range(count)],
        lambda count: [chunk({"images": [{"n": n} for n in range(count)]})],
        lambda count: [chunk({"content": [{"type": "other", "n": n} for n in range(count)]})],
    ],
)
def test_cost_is_linear(chunks: Callable[[int], list[dict[str, Any]]]) -> None:
    def cost(count: int) -> float:
        body = stream(*chunks(count), chunk({}, "stop"))
        best = float("inf")
        gc.disable()  # what a collection costs is a matter of all that the tests before have left
        try:
            for _ in range(5):
                start = time.process_time()
                sseam.parse(body, "openai-chat")
                best = min(best, time.process_time() - start)
        finally:
            gc.enable()
        return best

    assert cost(8000) < cost(2000) * 4 * 2


def test_a_long_argument_is_held_no_more_often_than_its_call_needs() -> None:
    """The text of the call, its decoded value, and little else."""
    piece, count = "a" * 20, 20_000
    first = chunk({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"a":"'}}]})
    last = chunk({"tool_calls": [{"index": 0, "function": {"arguments": '"}'}}]})
    more = event(chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}))
    parser = sseam.Parser("openai-chat")
    tracemalloc.start()
    try:
        for data in (event(first), *[more] * count, event(last), event(chunk({}, "tool_calls")), DONE):
            parser.feed(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < len(piece) * count * 2.5
