"""A model that says what it is told to, for tests of agents and tools without a network.

::

    client = FakeClient(
        ["Let me look. ", tool_call("c1", "weather", city="Oslo")],
        ["It is ", Pause(0.5), "raining."],
    )
    result = await sseam.run_agent(client, "How is the weather?", tools=[weather])

Each turn is a list of steps. A turn ends by itself with "tool_use" where it made calls, else with
"end_turn"; a last `Stop` says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import msgspec

from ._encode import encode
from .agent import ModelRequest
from .errors import RequestError
from .events import Done, Event, Start, TextDelta, TextEnd, TextStart, ToolCallDelta, ToolCallEnd, ToolCallStart
from .message import Block, Message, TextBlock, ToolCall, Usage
from .model import ModelDone, ModelEvent, ModelText, ModelToolCall

__all__ = ["Cut", "FakeClient", "Pause", "Step", "Stop", "tool_call"]


class Pause(msgspec.Struct, frozen=True):
    """Nothing comes for so many seconds; without a number, for ever."""

    seconds: float = math.inf


class Stop(msgspec.Struct, frozen=True):
    """The turn ends here, with this neutral stop reason and usage. Steps behind it are not reached."""

    reason: str
    usage: Usage = Usage()


class Cut(msgspec.Struct, frozen=True):
    """The stream is over here, without its last event."""


Step: TypeAlias = str | ToolCall | Pause | Stop | Cut | Exception | Callable[[], object]
"""Text; a whole call; a pause; an end; a fault, raised here; or a function, called here."""


def tool_call(id: str, name: str, /, **arguments: Any) -> ToolCall:
    """A call with these arguments. Raises ValueError where they have no JSON form."""
    try:
        text = encode(arguments, f"tool_call({id!r}, {name!r})").decode()
    except RequestError as error:
        raise ValueError(error.detail) from None
    return ToolCall(id=id, name=name, arguments=arguments, arguments_json=text)


class FakeClient:
    """A `ModelClient` that plays one turn of its script a request.

    Args:
        turns: the script; an iterator may be endless. Raises TypeError for what is no step.
        fine: give fine events in place of atomic ones.
        cooperative: without, it takes no notice of being cancelled: it sits out its pauses and goes on.

    Attributes:
        requests: what was asked for, in order.
        open: how many streams are open now.
    """

    def __init__(self, *turns: Sequence[Step], fine: bool = False, cooperative: bool = True) -> None:
        self.requests: list[ModelRequest] = []
        self.open = 0
        for place, turn in enumerate(turns):
            _check(turn, place)
        self._turns: Iterator[Sequence[Step]] = iter(turns)
        self._speak = _fine if fine else _atomic
        self._cooperative = cooperative

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Event | ModelEvent, None]:
        """The next turn of the script. Raises RuntimeError when there is none."""
        self.requests.append(request)
        turn = next(self._turns, None)
        if turn is None:
            raise RuntimeError(f"the script ended before request {len(self.requests)}")
        self.open += 1
        try:
            for event in self._speak(turn):
                if isinstance(event, Pause):
                    await self._sit_out(event.seconds)
                else:
                    yield event
        finally:
            self.open -= 1

    async def _sit_out(self, seconds: float) -> None:
        import anyio

        with anyio.CancelScope(shield=not self._cooperative):
            await anyio.sleep(seconds)


def _check(turn: Iterable[object], place: int) -> None:
    if not hasattr(turn, "__iter__"):
        raise TypeError(f"turn {place} is {turn!r}, expected a list of steps")
    if isinstance(turn, Sequence):  # an iterator is looked at as it is played
        for number, step in enumerate(turn):
            _require_step(step, f"step {number} of turn {place}")


def _require_step(step: object, what: str) -> None:
    if isinstance(step, type):
        raise TypeError(f"{what} is the class {step.__name__}: make one, as in {step.__name__}()")
    if not isinstance(step, str | ToolCall | Pause | Stop | Cut | Exception) and not callable(step):
        turns = "; each turn is an argument of its own: FakeClient([…], […])" if isinstance(step, list | tuple) else ""
        raise TypeError(f"{what} is {step!r}, expected text, a call, a Pause, a Stop, a Cut or an exception{turns}")


def _spoken(turn: Iterable[Step]) -> Iterator[str | ToolCall | Pause | Stop]:
    """The steps up to the end of the turn, the end included unless the stream is cut."""
    calls = False
    for step in turn:
        match step:
            case Exception():
                raise step
            case Cut():
                return
            case Stop():
                yield step
                return
            case str() | ToolCall() | Pause():
                calls = calls or isinstance(step, ToolCall)
                yield step
            case _:
                _require_step(step, "the step")
                step()
    yield Stop("tool_use" if calls else "end_turn")


def _atomic(turn: Iterable[Step]) -> Iterator[ModelEvent | Pause]:
    content: list[Block] = []
    for step in _spoken(turn):
        match step:
            case str():
                _add_text(content, step)
                yield ModelText(step)
            case ToolCall():
                content.append(step)
                yield ModelToolCall(step)
            case Pause():
                yield step
            case Stop(reason):
                yield ModelDone(reason, _message(content, step))


def _fine(turn: Iterable[Step]) -> Iterator[Event | Pause]:
    content: list[Block] = []
    open_text = False
    yield Start("fake", "fake")
    for step in _spoken(turn):
        if open_text and not isinstance(step, str | Pause):
            open_text = False
            yield _text_end(content)
        match step:
            case str():
                if not open_text:
                    yield TextStart(len(content))
                    content.append(TextBlock(text=""))
                    open_text = True
                _add_text(content, step)
                yield TextDelta(len(content) - 1, step)
            case ToolCall():
                index = len(content)
                yield ToolCallStart(index, step.id, step.name)
                content.append(step)
                yield ToolCallDelta(index, step.arguments_json)
                yield ToolCallEnd(index, step)
            case Pause():
                yield step
            case Stop(reason):
                yield Done(reason, _message(content, step))


def _add_text(content: list[Block], text: str) -> None:
    if content and isinstance(content[-1], TextBlock):
        content[-1] = TextBlock(text=content[-1].text + text)
    else:
        content.append(TextBlock(text=text))


def _text_end(content: list[Block]) -> TextEnd:
    block = content[-1]
    assert isinstance(block, TextBlock)
    return TextEnd(len(content) - 1, block.text)


def _message(content: Sequence[Block], stop: Stop) -> Message:
    return Message(
        id="fake",
        model="fake",
        content=tuple(content),
        stop_reason=stop.reason,
        raw_stop_reason=stop.reason,
        usage=stop.usage,
        complete=True,
    )
