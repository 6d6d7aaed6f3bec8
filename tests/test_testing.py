"""The public fake client: it says what its script says, in both granularities, and obeys the grammar."""

from __future__ import annotations

import math
import re
from typing import Any

import anyio
import pytest

import virtual
from sseam.agent import ModelRequest
from sseam.context import Context
from sseam.errors import ApiError
from sseam.events import Done, Event
from sseam.message import TextBlock, Usage
from sseam.model import ModelDone, ModelText, ModelToolCall, model_events
from sseam.sequence import Validator
from sseam.testing import Cut, FakeClient, Pause, Stop, tool_call

REQUEST = ModelRequest(context=Context())
CALL = tool_call("a", "look", at="x")
SCRIPT: list[Any] = ["One ", "two", CALL, Pause(2), "three", Pause(1)]


async def play(client: FakeClient) -> list[Any]:
    return [event async for event in client.stream(REQUEST)]


@pytest.mark.parametrize("value", ["\udc00", object(), float("inf")])
def test_a_call_that_has_no_json_form(value: object) -> None:
    with pytest.raises(ValueError, match=r"tool_call\('a', 'f'\).*x "):
        tool_call("a", "f", x=value)


@pytest.mark.parametrize("backend", virtual.BACKENDS)
def test_atomic_and_fine_say_the_same(backend: str) -> None:
    async def main() -> None:
        start = anyio.current_time()
        atomic = await play(FakeClient(SCRIPT))
        assert anyio.current_time() - start == pytest.approx(3)
        fine: list[Event] = await play(FakeClient(SCRIPT, fine=True))
        validator = Validator()
        for event in fine:
            validator.accept(event)
        assert isinstance(fine[-1], Done)

        async def again() -> Any:
            for event in fine:
                yield event

        assert [event async for event in model_events(again())] == atomic
        done = atomic.pop()
        assert isinstance(done, ModelDone)
        assert done.reason == "tool_use"
        assert done.message.content == (TextBlock(text="One two"), CALL, TextBlock(text="three"))
        assert done.message.complete
        assert atomic == [ModelText("One "), ModelText("two"), ModelToolCall(CALL), ModelText("three")]

    virtual.run(backend, main)


@pytest.mark.parametrize("fine", [False, True])
def test_ends_and_faults(fine: bool) -> None:
    called: list[str] = []

    async def main() -> None:
        fault = ApiError("no")
        client = FakeClient(
            ["x"],
            ["x", Stop("max_tokens", Usage(output_tokens=1)), "never"],
            ["x", Cut(), "never"],
            [lambda: called.append("x")],
            ["x", fault],
            fine=fine,
        )
        assert (await play(client))[-1].reason == "end_turn"
        last = (await play(client))[-1]
        assert (last.reason, last.message.usage.output_tokens) == ("max_tokens", 1)
        assert not isinstance((await play(client))[-1], Done | ModelDone)
        assert (await play(client))[-1].reason == "end_turn"
        with pytest.raises(ApiError):
            await play(client)
        with pytest.raises(RuntimeError, match="the script ended before request 6"):
            await play(client)
        assert len(client.requests) == 6
        assert client.open == 0

    anyio.run(main)
    assert called == ["x"]


@pytest.mark.parametrize("backend", virtual.BACKENDS)
@pytest.mark.parametrize(("cooperative", "seconds"), [(True, 1), (False, 5)])
def test_a_client_that_takes_no_notice(backend: str, cooperative: bool, seconds: float) -> None:
    async def main() -> None:
        client = FakeClient([Pause(5), "x"], cooperative=cooperative)
        start = anyio.current_time()
        with anyio.move_on_after(1):
            await play(client)
        assert anyio.current_time() - start == pytest.approx(seconds)

    virtual.run(backend, main)


def test_a_pause_without_a_number_lasts_for_ever() -> None:
    assert Pause().seconds == math.inf
    assert tool_call("a", "n", x=1).arguments_json == '{"x":1}'


@pytest.mark.parametrize(
    ("turn", "text"),
    [
        (
            [["a"], ["b"]],
            "step 0 of turn 0 is ['a'], expected text, a call, a Pause, a Stop, a Cut or an exception; each ",
        ),
        (["a", 3], "step 1 of turn 0 is 3, expected text"),
        (["a", Cut], "step 1 of turn 0 is the class Cut: make one, as in Cut()"),
        ([ValueError], "step 0 of turn 0 is the class ValueError"),
        (3, "turn 0 is 3, expected a list of steps"),
        (CALL, "turn 0 is ToolCall("),
    ],
)
def test_what_is_no_step(turn: Any, text: str) -> None:
    with pytest.raises(TypeError, match=re.escape(text)):
        FakeClient(turn)


def test_what_is_no_step_of_a_turn_that_is_read_as_it_is_played() -> None:
    with pytest.raises(TypeError, match="the step is 3, expected text"):
        anyio.run(play, FakeClient(iter(["a", 3])))  # type: ignore[arg-type]
