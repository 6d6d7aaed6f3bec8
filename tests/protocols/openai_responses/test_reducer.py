"""The reducer's table, and what only states can show. Streams are in `fixtures/`, one an edge row."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

import sseam
from sseam.protocols.openai_responses import decode, initial, last_number, reduce, request, wire
from sseam.protocols.openai_responses.order import WINDOW
from sseam.protocols.openai_responses.reducer import _TABLE, Phase

KNOWN = [*wire._Known.__args__, wire.Passive, wire.Unknown, wire.Empty, wire.DoneMarker]
MESSAGE = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
DONE = {**MESSAGE, "content": [{"type": "output_text", "text": "ab", "annotations": []}]}


def numbered(*events: dict[str, Any], first: int = 0) -> list[dict[str, Any]]:
    return [{"sequence_number": number, **event} for number, event in enumerate(events, first)]


def delta(text: str, **fields: Any) -> dict[str, Any]:
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    return {"type": "response.output_text.delta", **place, "delta": text, **fields}


def ending(*output: dict[str, Any], **fields: Any) -> dict[str, Any]:
    response = {"id": "r", "status": "completed", "output": list(output), **fields}
    return {"type": "response.completed", "response": response}


CREATED = {"type": "response.created", "response": {"id": "r", "model": "m"}}
ADDED = {"type": "response.output_item.added", "output_index": 0, "item": {**MESSAGE, "content": []}}
ITEM_DONE = {"type": "response.output_item.done", "output_index": 0, "item": DONE}
STREAM = numbered(CREATED, ADDED, delta("a"), delta("b"), ITEM_DONE, ending(DONE))


def read(events: list[dict[str, Any]]) -> list[wire.Event]:
    return [decode(sseam.Frame(event["type"], json.dumps(event).encode(), "", None, 0, 0)) for event in events]


def after(events: list[dict[str, Any]], state: Any = None) -> tuple[Any, list[sseam.Event]]:
    state, caused = initial() if state is None else state, []
    for event in read(events):
        state, more = reduce(state, event)
        caused += more
    return state, caused


def texts(caused: list[sseam.Event]) -> list[str]:
    return [event.text for event in caused if isinstance(event, sseam.TextDelta)]


def parse(*events: dict[str, Any], **options: Any) -> sseam.Message:
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    return sseam.parse(body.encode(), "openai-responses", **options)


def items_sent(answer: sseam.Message) -> list[dict[str, Any]]:
    """The items of an answer as the next request sends them back."""
    messages = (sseam.UserMessage("q"), answer, sseam.UserMessage("n"))
    model = sseam.models.openai_responses(answer.model)
    wire = request.body(model, sseam.Context(messages=messages), sseam.Options())["input"][1:-1]
    return [item for item in wire if not item["type"].endswith("_output")]


def whole(*output: dict[str, Any]) -> sseam.Message:
    done = ({"type": "response.output_item.done", "output_index": at, "item": item} for at, item in enumerate(output))
    return parse(*numbered(CREATED, *done, ending(*output)))


@pytest.mark.parametrize(
    "item",
    [
        {"type": "fusion_call", "name": "x"},
        {"type": "fusion_call", "id": "f_1", "name": "x"},
        {**MESSAGE, "content": [{"type": "output_dance", "steps": 1}]},
        {**MESSAGE, "content": [*DONE["content"], {"type": "output_dance", "steps": 1}]},
        {**MESSAGE, "content": [{"type": "output_text", "text": "", "annotations": []}, *DONE["content"]]},
        {"type": "tool_search_call", "id": "t_1", "execution": "client", "arguments": {}},
    ],
)
def test_what_came_goes_back_as_it_came(item: dict[str, Any]) -> None:
    assert items_sent(whole(item)) == [item]


@pytest.mark.parametrize("phase", Phase)
def test_the_table_has_an_arm_for_every_event(phase: Phase) -> None:
    assert _TABLE[phase].keys() == set(KNOWN)


@pytest.mark.parametrize("last", [ending(DONE), {"type": "error", "message": "m"}], ids=["done", "failed"])
def test_nothing_comes_after_the_terminal_event(last: dict[str, Any]) -> None:
    state, caused = after([*STREAM[:-1], last])
    assert isinstance(caused[-1], sseam.Done | sseam.Failed)
    for event in read([*STREAM, delta("x")]):
        assert reduce(state, event) == (state, ())


def test_a_state_that_failed_elsewhere_takes_no_delta() -> None:
    state, _ = after(STREAM[:3])
    state, _ = sseam.fold.fail(state, sseam.ProtocolError("elsewhere"))
    assert reduce(state, read(STREAM)[3]) == (state, ())


# ---- numbers


def test_a_late_event_is_put_back_whatever_came_before_it() -> None:
    early = [*STREAM[:2], STREAM[2], STREAM[4], STREAM[3], STREAM[5]]
    _, caused = after(early)
    _, expected = after(STREAM)
    assert caused[:-1] == expected[:-1]
    assert [each.code for each in caused[-1].message.deviations] == ["sequence_reordered"]


def test_an_early_event_waits_and_goes_on_in_order() -> None:
    events = numbered(CREATED, ADDED, *map(delta, "abcdef"))
    state, caused = after([*events[:3], events[4], events[5]])
    assert texts(caused) == ["a"]
    state, caused = after([events[3]], state)
    assert texts(caused) == ["b", "c", "d"]
    _, caused = after(events[6:], state)
    assert texts(caused) == ["e", "f"]


def test_what_is_missing_is_not_waited_for_longer_than_the_window() -> None:
    events = numbered(CREATED, ADDED, *map(delta, "abcdefghijklmnopqrstuvwxyz"))
    state, caused = after([*events[:3], *events[4 : 4 + WINDOW]])
    assert texts(caused) == ["a"]
    _, caused = after([events[4 + WINDOW]], state)
    assert "".join(texts(caused)) == "cdefghijklmnopqrs"


def test_an_event_that_waits_counts_once() -> None:
    state, _ = after([*STREAM[:3], STREAM[4], STREAM[4]])
    assert state.head.deviations == {"sequence_repeated": 1}


def test_a_stream_resumed_with_its_state_loses_and_doubles_nothing() -> None:
    _, expected = after(STREAM)
    for cut in range(1, len(STREAM)):
        state, caused = after(STREAM[:cut])
        assert last_number(state) == cut - 1
        for overlap in (0, 1, cut):
            if cut - overlap < 3 and overlap:
                continue  # numbers are trusted from the third on
            _, more = after(STREAM[cut - overlap :], state)
            assert [*caused, *more][:-1] == expected[:-1]
            assert more[-1].message.content == expected[-1].message.content


def test_no_number_is_known_before_one_came() -> None:
    assert last_number(initial()) is None


# ---- blocks as they go back to the service


def test_a_reasoning_item_keeps_all_that_its_replay_needs() -> None:
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "early"}
    done = {**item, "encrypted_content": "final"}
    added = {"type": "response.output_item.added", "output_index": 0, "item": item}
    message = parse(
        CREATED, added, {"type": "response.output_item.done", "output_index": 0, "item": done}, ending(done)
    )
    assert message.content == (
        sseam.ThinkingBlock(thinking="", extra={"id": "rs_1", "summary": [], "encrypted_content": "final"}),
    )


def test_a_message_keeps_its_item_and_what_is_not_modelled_of_its_parts() -> None:
    part = {"type": "output_text", "text": "ab", "annotations": [{"type": "file_path"}], "logprobs": [{"token": "a"}]}
    item = {**MESSAGE, "phase": "final_answer", "content": [part]}
    (block,) = parse(CREATED, ending(item)).content
    assert block == sseam.TextBlock(
        text="ab",
        citations=({"type": "file_path"},),
        extra={
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "phase": "final_answer",
            "part": {"logprobs": [{"token": "a"}]},
        },
    )


def test_calls_keep_what_goes_back_with_them() -> None:
    item = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{ }"}
    (call,) = parse(CREATED, ending({**item, "namespace": "n", "caller": {"type": "direct"}})).tool_calls
    assert (call.arguments_json, call.kind) == ("{ }", "function")
    assert call.extra == {"id": "fc_1", "namespace": "n", "caller": {"type": "direct"}}

    patch = {"type": "apply_patch_call", "id": "a", "call_id": "c", "operation": {"type": "delete_file", "path": "p"}}
    (call,) = parse(CREATED, ending(patch)).tool_calls
    assert call.extra == {key: value for key, value in patch.items() if key != "call_id"}


def test_a_call_of_the_preview_computer_has_the_name_it_was_declared_by() -> None:
    item = {"type": "computer_call", "id": "cu", "call_id": "c", "actions": [], "pending_safety_checks": []}
    tools = [{"type": "computer_use_preview", "display_width": 1}]
    (call,) = parse(CREATED, ending(item), tools=tools).tool_calls
    assert (call.name, call.arguments) == ("computer_use_preview", {"actions": [], "pending_safety_checks": []})


def test_call_ids_are_of_one_response() -> None:
    """Bedrock Mantle numbers the calls of every response from `call_0`."""
    item = {"type": "function_call", "id": "fc_1", "call_id": "call_0", "name": "f", "arguments": "{}"}
    assert parse(CREATED, ending(item)).tool_calls == parse(CREATED, ending(item)).tool_calls


def test_large_lines_are_normal() -> None:
    image = {"type": "image_generation_call", "id": "ig", "status": "completed", "result": "A" * 5_000_000}
    (block,) = parse(CREATED, ending(image)).content
    assert block == sseam.ServerToolBlock(kind="image_generation_call", raw=image)


def test_the_message_keeps_the_fields_of_the_response_that_are_not_modelled() -> None:
    message = parse(CREATED, ending(DONE, service_tier="flex", usage={"input_tokens": 1, "cost": 0.5}))
    assert message.raw == {"service_tier": "flex"}
    assert message.usage == sseam.Usage(input_tokens=1, raw={"input_tokens": 1, "cost": 0.5})


def test_a_body_gives_the_message_of_its_stream() -> None:
    streamed = parse(*STREAM)
    whole = sseam.parse_response(STREAM[-1]["response"] | {"object": "response", "model": "m"}, "openai-responses")
    assert (whole.content, whole.stop_reason, whole.id) == (streamed.content, streamed.stop_reason, streamed.id)


# ---- what an item costs among many


def _call(number: int) -> dict[str, Any]:
    ids = {"id": f"fc_{number}", "call_id": f"call_{number}"}
    return {"type": "function_call", **ids, "name": "f", "arguments": "{}"}


def _only_the_end(count: int) -> list[dict[str, Any]]:
    return [CREATED, ending(*map(_call, range(count)))]


def _all_open(count: int) -> list[dict[str, Any]]:
    added = ({**ADDED, "output_index": number, "item": _call(number)} for number in range(count))
    return [CREATED, *added, ending(*map(_call, range(count)))]


def _parts_of_one_item(count: int) -> list[dict[str, Any]]:
    part = {"type": "output_text", "text": "a"}
    places = [{"item_id": "msg_1", "output_index": 0, "content_index": number} for number in range(count)]
    added = ({"type": "response.content_part.added", **place, "part": part} for place in places)
    done = ({"type": "response.output_text.done", **place, "text": "a"} for place in places)
    return [CREATED, *added, *done, ending({**MESSAGE, "content": [part] * count})]


def _rising_indexes(count: int) -> list[dict[str, Any]]:
    done = {**MESSAGE, "content": [{"type": "output_text", "text": "a" * count}]}
    return [CREATED, ADDED, *(delta("a", content_index=number) for number in range(count)), ending(done)]


@pytest.mark.parametrize("stream", [_only_the_end, _all_open, _parts_of_one_item, _rising_indexes])
def test_cost_is_linear_in_items_and_parts(stream: Callable[[int], list[dict[str, Any]]]) -> None:
    def seconds(count: int) -> float:
        events = read(numbered(*stream(count)))
        best = float("inf")
        for _ in range(2):
            state = initial()
            gc.collect()
            started = time.process_time()
            for event in events:
                state, _caused = reduce(state, event)
            best = min(best, time.process_time() - started)
        assert isinstance(state.head.result, sseam.Done)
        return best

    few, many = seconds(1_000), seconds(8_000)
    assert many < 20 * few + 0.05  # 8 if linear, 64 if quadratic
