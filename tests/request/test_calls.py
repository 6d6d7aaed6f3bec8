from __future__ import annotations

import time

import msgspec
import pytest

from sseam.context import ToolResultMessage, assistant
from sseam.errors import RequestError
from sseam.message import ToolCall
from sseam.request.calls import IdRule, answer_calls, wire_id, wire_ids
from sseam.tools import ToolResult

WORD = IdRule(alphabet="a-zA-Z0-9_-", max_length=16)


@pytest.mark.parametrize(
    ("rule", "id", "taken"),
    [
        (IdRule(), "anything goes: ü", True),
        (IdRule(max_length=3), "abc", True),
        (IdRule(max_length=3), "abcd", False),
        (IdRule(max_length=3, exact=True), "ab", False),
        (IdRule(max_length=3, exact=True), "abc", True),
        (WORD, "call_1-x", True),
        (WORD, "call|1", False),
        (WORD, "x\n", False),
        (WORD, "", False),
    ],
)
def test_accepts(rule, id, taken):
    assert rule.accepts(id) is taken


def test_one_mark_stands_behind_the_last_of_the_results_that_turns_share():
    turns = [assistant(ToolCall(id=id, name="f", arguments={}, arguments_json="{}")) for id in "abc"]
    given = tuple(ToolResult(call_id=id, name="f") for id in "abc")
    for cache in (True, False):
        answered = answer_calls((*turns, assistant("so"), ToolResultMessage(given, cache=cache)))
        assert [message.cache for message in answered if isinstance(message, ToolResultMessage)] == [
            False,
            False,
            cache,
        ]


def test_a_result_with_a_wrong_id_is_told_where_a_call_has_none():
    asked = assistant(*(ToolCall(id=id, name="f", arguments={}, arguments_json="{}") for id in ("a", "b")))
    done, mistyped = (ToolResultMessage((ToolResult(call_id=id, name="f"),)) for id in ("a", "bb"))
    with pytest.raises(RequestError, match=r"there is a result for 'bb', which no tool call before it has.*'b'"):
        answer_calls((asked, done, mistyped))
    # Of a turn whose calls were dropped the results go with them, and a call alone is told not to have run.
    assert answer_calls((assistant("cut"), mistyped)) == (assistant("cut"),)
    assert len(answer_calls((asked, done))) == 2


def test_an_aborted_turn_beside_it_is_no_reason_to_refuse():
    asked = assistant(ToolCall(id="b", name="f", arguments={}, arguments_json="{}"))
    aborted = msgspec.structs.replace(assistant("cut"), complete=False, stop_reason="aborted")
    answered = answer_calls((asked, aborted, ToolResultMessage((ToolResult(call_id="a", name="f"),))))
    assert [result.call_id for result in answered[1].results] == ["b"]


def test_ids_that_repeat_in_every_turn_cost_no_more_than_others():
    turns = [assistant(ToolCall(id="call_0", name="f", arguments={}, arguments_json="{}")) for _ in range(4_000)]
    began = time.process_time()
    names = wire_ids(tuple(turns), IdRule(alphabet="a-zA-Z0-9_-", max_length=64, unique=True))
    assert time.process_time() - began < 2
    assert len({name["call_0"] for number, name in names.items() if number >= 0}) == 4_000
    fresh: dict[str, int] = {}
    assert [wire_id("call_0", WORD, fresh) for _ in range(3)] == [wire_id("call_0", WORD, dict(t)) for t in _before()]


def _before() -> list[dict[str, int]]:
    """The ids that are taken at each of three uses of one id, each tried anew from the first."""
    taken: list[str] = []
    befores: list[dict[str, int]] = []
    for _ in range(3):
        befores.append(dict.fromkeys(taken, 0))
        taken.append(wire_id("call_0", WORD, dict.fromkeys(taken, 0)))
    return befores


def test_a_made_id_shows_where_it_comes_from():
    assert wire_id("fc|call", WORD, {}).startswith("fcc_")
    assert len(wire_id("x" * 99, WORD, {})) == 16


def test_a_made_id_never_meets_one_that_is_taken():
    taken: dict[str, int] = {}
    made = wire_id("a b", WORD, taken)
    assert made in taken
    assert wire_id("a b", WORD, taken) not in ("a b", made)
    assert wire_id(made, WORD, taken) != made
