"""`run_agent`: what is committed, what is not, and what the caller is told. In virtual time, under asyncio and trio."""

from __future__ import annotations

import contextlib
import gc
import json
import threading
import time
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import anyio
import httpx
import pytest

import sseam
import virtual
from agents import ASKED, TOOLS, backends, begin, fail, kinds, look, read, require_sendable, results_of, write
from sseam.agent import (
    AgentEvent,
    AgentResult,
    AgentRun,
    BoundModel,
    ModelRequest,
    RunCancelled,
    RunTimeout,
    TurnCommitted,
    TurnDiscarded,
    TurnLimitError,
    TurnStarted,
    run_agent,
    run_agent_sync,
)
from sseam.agent.execution import CallLimitError, ToolFinished, ToolProgress, ToolStarted
from sseam.client import AsyncClient, Client
from sseam.context import Context, NamedTool, Options, UserMessage, assistant
from sseam.errors import (
    ApiError,
    InvalidToolCall,
    OutputProtocolViolation,
    ProtocolError,
    SseamError,
    StopReasonError,
    TransportError,
    TruncatedStream,
)
from sseam.events import TextDelta, ToolCallEnd
from sseam.message import Message, RefusalBlock, TextBlock, ThinkingBlock, ToolCall, Usage, WithheldCall
from sseam.model import ModelDone, ModelEvent, ModelText, ModelToolCall
from sseam.testing import Cut, FakeClient, Pause, Stop, tool_call
from sseam.tools import Tool, ToolContext, tool

# ---- a run that goes well


@backends
@pytest.mark.parametrize("fine", [False, True])
def test_a_run(backend: str, fine: bool) -> None:
    client = FakeClient(
        ["Let me ", "see. ", tool_call("a", "look"), tool_call("b", "write"), Stop("tool_use", Usage(input_tokens=5))],
        ["All ", Pause(1), "good.", Stop("end_turn", Usage(input_tokens=7, output_tokens=2))],
        fine=fine,
    )
    events: list[AgentEvent] = []

    async def main() -> AgentResult:
        async with begin(client) as run:
            async for event in run:
                events.append(event)
                require_sendable(run.context)
            return await run.result()

    result = virtual.run(backend, main)
    assert result.text == "All good."
    assert (result.turns, result.requests, result.unmetered) == (2, 2, 0)
    assert result.usage == Usage(input_tokens=12, output_tokens=2)
    assert result.context.messages[0] == ASKED
    assert results_of(result.context.messages) == [("a", "seen"), ("b", "written")]
    assert result.context.messages[-1] is result.message
    require_sendable(result.context)
    assert [request.context.messages for request in client.requests] == [(ASKED,), result.context.messages[:3]]
    assert client.requests[0].context.tools == tuple(TOOLS)
    assert client.open == 0
    told = [kind for kind in kinds(events) if kind.startswith(("Turn", "Tool")) and kind not in FINE]
    finished = ["ToolStarted", "ToolStarted", "ToolFinished", "ToolFinished"]
    assert told == ["TurnStarted", *finished, "TurnCommitted", "TurnStarted", "TurnCommitted"]
    texts = [event.text for event in events if isinstance(event, TextDelta if fine else ModelText)]
    assert texts == ["Let me ", "see. ", "All ", "good."]
    assert any(isinstance(event, ToolCallEnd) for event in events) == fine
    assert any(isinstance(event, ModelToolCall) for event in events) != fine


FINE = ("ToolCallStart", "ToolCallDelta", "ToolCallEnd")


@backends
def test_awaited_as_a_whole(backend: str) -> None:
    async def main() -> AgentResult:
        return await begin(FakeClient(["yes"]))

    assert virtual.run(backend, main).text == "yes"


@backends
@pytest.mark.parametrize("fine", [False, True])
def test_eager_tools_overlap_with_the_stream(backend: str, fine: bool) -> None:
    """Three eager tools of 4 s in a stream of 10 s take 10 s together; one that is released last adds its own time."""
    calls = [tool_call(id, "look", seconds=4) for id in "abc"]

    async def timed(*steps: Any) -> float:
        start = anyio.current_time()
        async with begin(FakeClient(list(steps), ["done"], fine=fine)) as run:
            async for event in run:
                if isinstance(event, TurnCommitted):
                    return anyio.current_time() - start
        raise AssertionError

    async def main() -> tuple[float, float]:
        within = await timed(Pause(2), calls[0], Pause(2), calls[1], Pause(2), calls[2], "so", Pause(4))
        last = await timed(Pause(2), *calls, "so", Pause(1))
        return within, last

    assert virtual.run(backend, main) == pytest.approx((10, 6))


@backends
def test_eager_tools_start_in_a_stream_that_never_waits(backend: str) -> None:
    """B243: what comes all at once does not keep the tools from starting."""

    async def main() -> None:
        events: list[AgentEvent] = []
        async with begin(FakeClient([tool_call("a", "look", seconds=0), *["so"] * 30], ["done"])) as run:
            await read(run, events)
        told = kinds(events)
        assert told.index("ToolStarted") < told.index("ModelText") < told.index("ModelDone")

    virtual.run(backend, main)


# ---- faults of the stream


FAULTS: list[Any] = [
    TransportError("the connection broke", delivered=True),
    ApiError("overloaded", type="overloaded_error", status=529, retryable=True),
    ProtocolError("nonsense"),
    KeyError("a client's own fault"),
    Cut(),
]


@backends
@pytest.mark.parametrize("fault", FAULTS)
def test_a_stream_that_fails_after_eager_calls_started(backend: str, fault: Any) -> None:
    """B198: the failed turn leaves nothing; the error says which calls ran, which finished and with what."""
    calls = [tool_call("a", "look", seconds=1), tool_call("b", "look", seconds=100), tool_call("c", "write")]

    async def main() -> None:
        events: list[AgentEvent] = []
        async with begin(FakeClient([*calls, "so", Pause(2), fault])) as run:
            with pytest.raises((SseamError, KeyError)) as caught:
                await read(run, events)
            error = caught.value
            assert error is fault or isinstance(error, TruncatedStream)
            assert ModelText("so") in events, "what came before was delivered"
            assert run.context.messages == (ASKED,)
            found = [(e.call.id, e.status) for e in run.executions]
            assert found == [("a", "done"), ("b", "cancelled"), ("c", "not_run")]
        assert error.__notes__[-3:] == [
            "tool call 'a' (look): done: seen",
            "tool call 'b' (look): cancelled: This call was cancelled while it ran. What came of it is not known; "
            "it may have had effects.",
            "tool call 'c' (write): not_run: This call was not run: the turn was given up before.",
        ]
        if isinstance(error, SseamError):
            assert error.run is not None
            assert error.run.executions == run.executions
            assert error.run.turn == 1

    virtual.run(backend, main)


@backends
def test_a_failed_turn_after_a_good_one(backend: str) -> None:
    """B198: calls and results of a turn are kept together or dropped together."""

    async def main() -> None:
        client = FakeClient([tool_call("a", "write")], ["Hm", tool_call("b", "look"), "x", Pause(5), ApiError("no")])
        error = await fail(begin(client), ApiError)
        require_sendable(error.run.context)
        assert results_of(error.run.context.messages) == [("a", "written")]
        assert error.run.turn == 2
        again = await run_agent(FakeClient(["well"]), error.run.context)
        assert again.text == "well"

    virtual.run(backend, main)


@backends
@pytest.mark.parametrize("reason", sorted(sseam.stop.NEUTRAL - {"tool_use"}))
@pytest.mark.parametrize("announced", [True, False])
def test_only_an_end_for_tools_runs_tools(backend: str, reason: str, announced: bool) -> None:
    """B184: every other stop reason returns the turn to the caller, whatever calls it holds."""
    ran: list[str] = []

    async def work() -> None:
        ran.append("work")

    call = tool_call("a", "work")
    content = (TextBlock(text="Hm"), call)
    done = ModelDone(reason, Message(content=content, stop_reason=reason, complete=True))

    class Client:
        async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
            del request
            if announced:
                yield ModelToolCall(call)
            yield done

    async def main() -> None:
        options = Options(stop_sequences=("x",))
        error = await fail(begin(Client(), tools=[Tool.from_function(work, description="")], options=options))
        assert isinstance(error, StopReasonError)
        assert error.stop_reason == reason
        assert error.partial == done.message
        assert error.run is not None
        assert error.run.context.messages == (ASKED,)

    virtual.run(backend, main)
    assert ran == []


@backends
@pytest.mark.parametrize(
    "content",
    [
        (),
        (TextBlock(text=" \n"),),
        (ThinkingBlock(thinking="Let me see", signature="s"),),
        (RefusalBlock(text="I would rather not"),),
    ],
)
def test_an_answer_with_neither_text_nor_calls(backend: str, content: Any) -> None:
    class Client:
        async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
            del request
            yield ModelDone("end_turn", Message(content=content, complete=True))

    async def main() -> StopReasonError:
        return await fail(begin(Client()), StopReasonError)

    error = virtual.run(backend, main)
    assert "neither text nor tool calls" in str(error)
    assert ("I would rather not" in str(error)) == isinstance((*content, None)[0], RefusalBlock)


@backends
def test_contradictions_between_events_and_message(backend: str) -> None:
    a, b = tool_call("a", "look", seconds=100), tool_call("b", "look")

    class Client:
        def __init__(self, events: list[ModelToolCall], calls: tuple[ToolCall, ...]) -> None:
            self.events = events
            self.message = Message(content=calls, complete=True)

        async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
            del request
            for event in self.events:
                yield event
            yield ModelDone("tool_use", self.message)

    async def main() -> None:
        error = await fail(begin(Client([ModelToolCall(a), ModelToolCall(b)], (b,))), ProtocolError)
        assert "does not hold" in str(error)
        other = tool_call("a", "look", seconds=2)
        assert isinstance(await fail(begin(Client([ModelToolCall(a), ModelToolCall(other)], (a,)))), InvalidToolCall)
        assert isinstance(await fail(begin(Client([ModelToolCall(a)], (other,)))), InvalidToolCall)
        assert isinstance(await fail(begin(Client([], (a, a)))), InvalidToolCall)
        result_before = await fail(begin(Client([], (a, b)), max_calls=1), CallLimitError)
        assert result_before.run.executions == ()

    virtual.run(backend, main)


# ---- invalid calls, violations, limits, continuations


def invalid(**fields: Any) -> InvalidToolCall:
    content = (
        ThinkingBlock(thinking="cut"),
        ThinkingBlock(thinking="whole", signature="s"),
        TextBlock(text="Hm"),
        tool_call("a", "look", seconds=0.5),
        tool_call("b", "write"),
    )
    withheld = (WithheldCall(id="c", name="write", arguments_json='{"x', reason="invalid", index=5),)
    partial = Message(content=content, withheld=withheld)
    known: Any = {"id": "c", "name": "write", "arguments_json": '{"x', "partial": partial, **fields}
    return InvalidToolCall("tool_use block 1 had invalid input_json_delta JSON", **known)


@backends
def test_an_invalid_call_is_raised_or_reported(backend: str) -> None:
    fault = invalid()

    def client(*rest: Any) -> FakeClient:
        calls = [tool_call("a", "look", seconds=0.5), tool_call("b", "write")]
        return FakeClient(["Hm", *calls, Pause(1), fault], *rest)

    async def main() -> None:
        assert await fail(begin(client())) is fault
        result = await begin(client(["sorry"]), on_invalid_call="report")
        require_sendable(result.context)
        first, second, third = results_of(result.context.messages)
        assert first == ("a", "seen"), "an eager tool that was done keeps its result"
        assert second[1].startswith("This call was not run")
        assert third[1].startswith("The arguments of this call cannot be used: tool_use block 1 had invalid")
        sent = result.context.messages[1]
        assert isinstance(sent, Message)
        assert sent.tool_calls[-1] == ToolCall(id="c", name="write", arguments={}, arguments_json="{}")
        assert sent.thinking == "whole"

    virtual.run(backend, main)


@backends
def test_reports_are_bounded(backend: str) -> None:
    async def main() -> None:
        client = FakeClient(*[[invalid()]] * 5)
        await fail(begin(client, on_invalid_call="report"), InvalidToolCall)
        assert len(client.requests) == 4
        # A turn that went well starts the count again.
        good = [tool_call("x", "write")]
        client = FakeClient(*[*[[invalid()]] * 3, good] * 2, ["done"])
        assert (await begin(client, on_invalid_call="report")).text == "done"

    virtual.run(backend, main)


@backends
@pytest.mark.parametrize("fields", [{"id": ""}, {"name": ""}, {"id": "a", "reason": "duplicate_id"}])
def test_invalid_calls_that_nothing_can_answer(backend: str, fields: dict[str, str]) -> None:
    fault = invalid(**fields)

    async def main() -> None:
        error = await fail(begin(FakeClient([fault]), on_invalid_call="report"))
        assert error is fault
        assert error.run.context.messages == (ASKED,)

    virtual.run(backend, main)


@backends
def test_a_call_written_as_text_is_asked_for_again(backend: str) -> None:
    async def main() -> None:
        violation = OutputProtocolViolation("a call as text", partial=Message(usage=Usage(output_tokens=3)))
        bad = [tool_call("a", "look", seconds=9), "<tool_call>write", Pause(1), violation]
        client = FakeClient(bad, bad, ["fine"])
        events: list[AgentEvent] = []
        async with begin(client, max_turns=1) as run:
            await read(run, events)
            result = await run.result()
        assert result.context.messages == (ASKED, result.message)
        assert (result.turns, result.requests, result.usage) == (1, 3, Usage(output_tokens=6))
        assert [event.turn for event in events if isinstance(event, TurnDiscarded)] == [1, 1]
        assert [event.turn for event in events if isinstance(event, TurnStarted)] == [1, 1, 1]
        told = [kind for kind in kinds(events) if kind in ("ToolStarted", "ToolFinished", "TurnDiscarded")]
        assert told == ["ToolStarted", "ToolFinished", "TurnDiscarded"] * 2

        client = FakeClient(*[bad] * 9)
        error = await fail(begin(client), OutputProtocolViolation)
        assert len(client.requests) == 4
        assert error.run.context.messages == (ASKED,)

    virtual.run(backend, main)


@backends
def test_max_turns(backend: str) -> None:
    async def main() -> None:
        client = FakeClient(*[[tool_call("a", "write")]] * 9)
        error = await fail(begin(client, max_turns=3), TurnLimitError)
        assert str(error) == "no answer came within 3 turn(s)"
        assert (error.limit, len(client.requests), error.run.turn) == (3, 3, 3)
        require_sendable(error.run.context)
        assert (await begin(FakeClient(["yes"]), max_turns=1)).text == "yes"

    virtual.run(backend, main)


@backends
def test_a_cut_answer_goes_on_only_if_asked_for(backend: str) -> None:
    """B186: the text is kept, no call is, whole or not, and nothing is repaired."""
    cut = ["One, ", tool_call("a", "look", seconds=0), "two, ", tool_call("b", "write"), Pause(1), Stop("max_tokens")]

    async def main() -> None:
        await fail(begin(FakeClient(cut)), StopReasonError)
        client = FakeClient(cut, ["three."])
        result = await begin(client, on_max_tokens="continue")
        assert result.text == "One, two, three."
        assert result.message.text == "three."
        require_sendable(result.context)
        kept, go_on = client.requests[1].context.messages[1:]
        assert isinstance(kept, Message)
        assert (kept.text, kept.tool_calls) == ("One, two, ", ())
        assert isinstance(go_on, UserMessage)
        assert [request.accept for request in client.requests] == [("pause_turn", "compaction", "max_tokens")] * 2
        only_call = [tool_call("a", "write"), Stop("max_tokens")]
        error = await fail(begin(FakeClient(only_call), on_max_tokens="continue"), StopReasonError)
        assert "no text to go on from" in str(error)

    virtual.run(backend, main)


@backends
@pytest.mark.parametrize("reason", ["pause_turn", "compaction"])
def test_a_pause_sends_everything_back(backend: str, reason: str) -> None:
    async def main() -> None:
        client = FakeClient(["So ", Stop(reason)], ["far."])
        result = await begin(client)
        assert result.text == "So far."
        before_calls = FakeClient(["Let me see. ", Stop(reason)], [tool_call("a", "write")], ["Done."])
        assert (await begin(before_calls)).text == "Done."
        paused = client.requests[1].context.messages[1]
        assert isinstance(paused, Message)
        assert (paused.text, paused.stop_reason) == ("So ", reason)
        error = await fail(begin(FakeClient([tool_call("a", "write"), Stop(reason)])), StopReasonError)
        assert "holds tool calls" in str(error)

    virtual.run(backend, main)


@backends
def test_options_of_the_requests(backend: str) -> None:
    async def main() -> None:
        for choice in ("required", NamedTool("write")):
            client = FakeClient([tool_call("a", "write")], ["done"])
            await begin(client, options=Options(tool_choice=choice, temperature=0))
            assert [request.options.tool_choice for request in client.requests] == [choice, None]
            assert [request.options.temperature for request in client.requests] == [0, 0]
        client = FakeClient(["x", Stop("stop_sequence")])
        await begin(client, options=Options(stop_sequences=("y",)))
        assert "stop_sequence" in client.requests[0].accept

    virtual.run(backend, main)


def test_arguments_that_make_no_sense() -> None:
    client = FakeClient()
    unknown: list[Any] = [{"on_invalid_call": "ignore"}, {"on_max_tokens": "report"}]
    for options in ({"max_turns": 0}, {"max_parallel": 0}, {"timeout": 0}, {"tools": [look, look]}, *unknown):
        with pytest.raises(ValueError):
            begin(client, **options)
    with pytest.raises(ValueError, match="no function to run"):
        begin(client, tools=[Tool(name="x", schema={}, validate=False)])


# ---- the run as an object


@backends
def test_the_result_before_iteration(backend: str) -> None:
    """B233: asking for the result drives the run, also after a part of it was read."""

    async def main() -> None:
        texts = [str(number) for number in range(300)]
        for steps in (0, 3):
            async with begin(FakeClient([tool_call("a", "write")], texts)) as run:
                for _ in range(steps):
                    await run.__anext__()
                assert (await run.result()).text == "".join(texts)
                rest = [event async for event in run]
                assert bool(rest) == bool(steps), "what somebody began to read is kept for them"
                assert await run.result() is await run.result()

    virtual.run(backend, main)


@backends
def test_the_run_keeps_the_pace_of_its_reader(backend: str) -> None:
    said = 0

    class Client:
        async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
            nonlocal said
            del request
            while True:
                said += 1
                yield ModelText("x")

    async def main() -> None:
        async with begin(Client()) as run:
            for _ in range(5):
                await run.__anext__()
            await anyio.sleep(10)
        assert said < 100

        # And one that is asked for its result alone lets others run, so that it can be cancelled.
        await fail(begin(Client(), timeout=0.0001), RunTimeout)

    with_short_waits(backend, main)


def with_short_waits(backend: str, main: Callable[[], Awaitable[None]]) -> None:
    """Virtual time stands still while something is always ready, so real time it is, with its waits taken out."""
    sleep = anyio.sleep
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(anyio, "sleep", lambda seconds: sleep(min(seconds, 0.05)))
        anyio.run(main, backend=backend)


@backends
def test_every_waiter_gets_the_failure(backend: str) -> None:
    """B235, B237: whoever waits is settled with the first error, and iteration raises behind the last good event."""

    async def main() -> None:
        fault = ApiError("no")
        got: list[object] = []

        async def wait(run: AgentRun) -> None:
            try:
                await run.result()
            except ApiError as error:
                got.append(error)

        async with begin(FakeClient(["a", "b", Pause(1), fault])) as run, anyio.create_task_group() as tasks:
            seen = [await run.__anext__()]
            tasks.start_soon(wait, run)
            tasks.start_soon(wait, run)
            await anyio.sleep(2)
            with pytest.raises(ApiError) as caught:
                await read(run, seen)
        assert got == [fault, fault]
        assert caught.value is fault
        assert kinds(seen) == ["TurnStarted", "ModelText", "ModelText"]
        depth = traceback_depth(fault)
        for _ in range(5):
            with pytest.raises(ApiError):
                await run.result()
        assert traceback_depth(fault) <= depth + 2, "each waiter's traceback is its own"

    virtual.run(backend, main)


def traceback_depth(error: BaseException) -> int:
    depth, trace = 0, error.__traceback__
    while trace is not None:
        depth, trace = depth + 1, trace.tb_next
    return depth


class Quit(BaseException):
    pass


@backends
def test_what_ends_the_program_ends_the_run(backend: str) -> None:
    async def main() -> None:
        async def quit() -> None:
            raise Quit

        def quit_step() -> None:
            raise Quit

        for turn in ([tool_call("a", "quit")], [quit_step]):
            run = begin(FakeClient(turn), tools=[Tool.from_function(quit, description="")])
            with pytest.raises(Quit):
                await run
            require_sendable(run.context)

    virtual.run(backend, main)


@backends
def test_misuse(backend: str) -> None:
    async def main() -> None:
        run = begin(FakeClient(["x"]))
        with pytest.raises(RuntimeError, match="enter the run"):
            await run.result()
        with pytest.raises(RuntimeError, match="enter the run"):
            aiter(run)
        await run.aclose()
        async with run:
            with pytest.raises(RuntimeError, match="entered once"):
                await run.__aenter__()

    virtual.run(backend, main)


@backends
def test_progress_of_a_tool(backend: str) -> None:
    @tool
    async def count(context: ToolContext) -> str:
        """Counts."""
        for number in range(3):
            context.progress(number)
            await anyio.sleep(1)
        return "counted"

    async def main() -> list[AgentEvent]:
        async with begin(FakeClient([tool_call("a", "count")], ["done"]), tools=[count]) as run:
            return [event async for event in run]

    events = [
        event for event in virtual.run(backend, main) if isinstance(event, ToolStarted | ToolProgress | ToolFinished)
    ]
    assert kinds(events) == ["ToolStarted", *["ToolProgress"] * 3, "ToolFinished"]
    assert [event.value for event in events if isinstance(event, ToolProgress)] == [0, 1, 2]


# ---- history


@backends
def test_a_stored_history_is_continued_with_another_model(backend: str) -> None:
    async def main() -> None:
        first = await begin(FakeClient([tool_call("a", "write")], ["done"]))
        stored = first.context.to_json()
        context = Context.from_json(stored)
        asked = (*context.messages, UserMessage("again"))
        other = FakeClient([tool_call("a", "look")], ["seen"], fine=True)
        second = await run_agent(other, Context(messages=asked), tools=TOOLS)
        assert other.requests[0].context.messages == asked
        assert other.requests[0].context.messages[:-1] == first.context.messages
        require_sendable(second.context)
        assert results_of(second.context.messages) == [("a", "written"), ("a", "seen")]

    virtual.run(backend, main)


@backends
def test_tools_that_are_only_sent(backend: str) -> None:
    server_tool = {"type": "web_search_20250305", "name": "web_search"}

    async def main() -> None:
        client = FakeClient([tool_call("a", "web_search")], ["done"])
        result = await begin(client, tools=[write, server_tool])
        assert client.requests[0].context.tools == (write, server_tool)
        assert results_of(result.context.messages)[0][1] == "There is no tool 'web_search'. The tools are: write."

    virtual.run(backend, main)


def sse(*events: dict[str, Any]) -> bytes:
    return b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events)


def anthropic(stop_reason: str, block: dict[str, Any], delta: dict[str, Any]) -> bytes:
    usage = {"input_tokens": 3, "output_tokens": 1}
    head = {"id": "m", "type": "message", "role": "assistant", "model": "claude-x", "content": [], "usage": usage}
    return sse(
        {"type": "message_start", "message": {**head, "stop_reason": None, "stop_sequence": None}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop_reason, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    )


ANSWERS = [
    anthropic(
        "tool_use",
        {"type": "tool_use", "id": "toolu_1", "name": "write", "input": {}},
        {"type": "input_json_delta", "partial_json": '{"seconds": 0}'},
    ),
    anthropic("pause_turn", {"type": "text", "text": ""}, {"type": "text_delta", "text": "It is "}),
    anthropic("end_turn", {"type": "text", "text": ""}, {"type": "text_delta", "text": "done."}),
]


def answering(bodies: list[dict[str, Any]]) -> httpx.MockTransport:
    def answer(request: httpx.Request) -> httpx.Response:
        bodies.append(json.loads(request.content))
        return httpx.Response(
            200, headers={"content-type": "text/event-stream"}, stream=httpx.ByteStream(ANSWERS[len(bodies) - 1])
        )

    return httpx.MockTransport(answer)


@pytest.mark.parametrize("way", ["asyncio", "trio", "sync"])
def test_a_bound_model_over_http(way: str) -> None:
    bodies: list[dict[str, Any]] = []
    model = sseam.models.anthropic("claude-x")

    async def main() -> AgentResult:
        async with httpx.AsyncClient(transport=answering(bodies)) as http:
            return await begin(BoundModel(AsyncClient(http), model, key="secret"))

    if way == "sync":
        with httpx.Client(transport=answering(bodies)) as http:
            result = run_agent_sync(BoundModel(Client(http), model, key="secret"), "go", tools=TOOLS)
    else:
        result = anyio.run(main, backend=way)
    assert result.text == "It is done."
    require_sendable(result.context)
    assert result.usage.output_tokens == 3
    assert [tool["name"] for tool in bodies[0]["tools"]] == ["look", "write"]
    assert bodies[1]["messages"][-1]["content"][0]["type"] == "tool_result"
    assert bodies[2]["messages"][-1] == {"role": "assistant", "content": [{"type": "text", "text": "It is "}]}


# ---- code that is not async


class SyncClient:
    """Each turn comes from a generator in a `with`, as from `sseam.Client`."""

    def __init__(self, *turns: list[Any]) -> None:
        self.turns = iter(turns)
        self.open = 0
        self.threads: set[int] = set()

    @contextlib.contextmanager
    def stream(self, request: ModelRequest) -> Iterator[Iterator[ModelEvent]]:
        del request
        self.open += 1
        try:
            yield self.play(next(self.turns))
        finally:
            self.open -= 1

    def play(self, turn: list[Any]) -> Iterator[ModelEvent]:
        self.threads.add(threading.get_ident())
        content: list[Any] = []
        for step in turn:
            if isinstance(step, Exception):
                raise step
            if isinstance(step, float):
                time.sleep(step)
            elif isinstance(step, str):
                content.append(TextBlock(text=step))
                yield ModelText(step)
            else:
                content.append(step)
                yield ModelToolCall(step)
        calls = any(isinstance(block, ToolCall) for block in content)
        yield ModelDone("tool_use" if calls else "end_turn", Message(content=tuple(content), complete=True))


def test_run_without_async() -> None:
    @tool
    def double(number: int) -> int:
        """Doubles."""
        return 2 * number

    events: list[AgentEvent] = []
    client = SyncClient(["Hm", tool_call("a", "double", number=4)], ["It is ", "8."])
    result = run_agent_sync(client, "4 times 2?", tools=[double], on_event=events.append)
    assert result.text == "It is 8."
    assert results_of(result.context.messages) == [("a", "8")]
    assert kinds(events)[-1] == "TurnCommitted"
    assert client.open == 0
    assert threading.get_ident() not in client.threads
    assert run_agent_sync(FakeClient(["async"]), "?").text == "async"
    with pytest.raises(ApiError):
        run_agent_sync(SyncClient(["Hm", ApiError("no")]), "?")
    with pytest.raises(LookupError):
        run_agent_sync(SyncClient(["Hm"]), "?", on_event=broken)


def broken(event: AgentEvent) -> None:
    raise LookupError(type(event).__name__)


@backends
def test_a_sync_stream_does_not_block_the_loop(backend: str) -> None:
    """B243; and a read that blocks is given up at once, in its thread."""
    client = SyncClient(["Hm", 0.2, "so"], ["Hm", 0.5, "so"])
    closed: list[str] = []

    class PlainClient:
        def stream(self, request: ModelRequest) -> Iterator[ModelEvent]:
            del request
            try:
                yield ModelDone("end_turn", assistant("plain"))
                raise AssertionError("read behind the last event")
            finally:
                closed.append("closed")

    async def main() -> None:
        ticks = 0
        async with run_agent(client, "?") as run, anyio.create_task_group() as tasks:

            async def tick() -> None:
                nonlocal ticks
                while True:
                    ticks += 1
                    await anyio.sleep(0.01)

            tasks.start_soon(tick)
            assert (await run.result()).text == "Hmso"
            tasks.cancel_scope.cancel()
        assert ticks >= 5
        async with run_agent(client, "?") as run:
            async for event in run:
                if isinstance(event, ModelText):
                    break
            start = time.monotonic()
            run.cancel()
            with pytest.raises(RunCancelled):
                await run.result()
            assert time.monotonic() - start < 0.3
        assert client.open == 0, "left although its reader was at work"
        async with run_agent(PlainClient(), "?") as run:
            assert (await run.result()).text == "plain"
        assert closed == ["closed"]

    anyio.run(main, backend=backend)


# ---- size


@backends
def test_a_thousand_turns_keep_memory_flat(backend: str) -> None:
    class Client:
        def __init__(self) -> None:
            self.turn = 0

        async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
            self.turn += 1
            if self.turn == 1001:
                yield ModelDone("end_turn", assistant("done"))
                return
            assert len(request.context.messages) == 2 * self.turn - 1
            call = tool_call(f"c{self.turn}", "look", seconds=0)
            for _ in range(3):
                yield ModelText("x" * 100)
            yield ModelToolCall(call)
            yield ModelDone("tool_use", Message(content=(call,), complete=True))

    sizes: dict[int, int] = {}

    async def main() -> None:
        client = Client()
        async with begin(client, tools=[look], max_turns=1001) as run:
            async for event in run:
                if isinstance(event, TurnCommitted) and event.turn in (200, 600, 1000):
                    gc.collect()
                    sizes[event.turn] = tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        virtual.run(backend, main)
    finally:
        tracemalloc.stop()
    growth = [(sizes[600] - sizes[200]) / 400, (sizes[1000] - sizes[600]) / 400]
    # A turn's history is a message, a call with its arguments, and a result: some 2 kB.
    assert max(growth) < 4000, growth
    assert abs(growth[1] - growth[0]) < 400, growth
