"""`run_agent`: what is committed, what is not, and what the caller is told. In virtual time, under asyncio and trio."""

from __future__ import annotations

import contextlib
import gc
import threading
import time
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import anyio
import pytest
import virtual

import sseam
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
from sseam.approval import Allow, Approval
from sseam.cancel import CancelToken
from sseam.context import Context, HistoryMessage, NamedTool, Options, ToolResultMessage, UserMessage, assistant
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
from sseam.execution import CallLimitError, ToolFinished, ToolProgress, ToolStarted
from sseam.message import Message, RefusalBlock, TextBlock, ThinkingBlock, ToolCall, Usage, WithheldCall
from sseam.model import ModelDone, ModelEvent, ModelText, ModelToolCall
from sseam.testing import Cut, FakeClient, Pause, Stop, tool_call
from sseam.tools import Tool, ToolContext, tool

backends = pytest.mark.parametrize("backend", virtual.BACKENDS)


@tool(eager=True)
async def look(seconds: float = 1) -> str:
    """Looks at something, for so long."""
    await anyio.sleep(seconds)
    return "seen"


@tool
async def write(seconds: float = 0) -> str:
    """Changes something."""
    await anyio.sleep(seconds)
    return "written"


TOOLS = [look, write]
ASKED = UserMessage("go")


def begin(client: Any, **options: Any) -> AgentRun:
    options.setdefault("tools", TOOLS)
    return run_agent(client, "go", **options)


async def fail(run: AgentRun, error: type[Exception] = SseamError) -> Any:
    with pytest.raises(error) as caught:
        await run
    return caught.value


def kinds(events: list[AgentEvent]) -> list[str]:
    return [type(event).__name__ for event in events]


def results_of(messages: tuple[HistoryMessage, ...]) -> list[tuple[str, str]]:
    return [(r.call_id, r.text) for m in messages if isinstance(m, ToolResultMessage) for r in m.results]


def require_sendable(context: Context) -> None:
    """Every call has its one result right behind its message, in order, and no result is without a call."""
    messages = context.messages
    for number, message in enumerate(messages):
        if isinstance(message, Message):
            assert message.complete
            calls = [call.id for call in message.tool_calls]
            if calls:
                results = messages[number + 1]
                assert isinstance(results, ToolResultMessage)
                assert [result.call_id for result in results.results] == calls
        elif isinstance(message, ToolResultMessage):
            before = messages[number - 1]
            assert isinstance(before, Message)
            assert before.tool_calls
    assert Context.from_json(context.to_json()).messages == messages


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


# ---- checkpoints


class Abort:
    """A way to give up a run, and what the run then ends with."""

    def __init__(self, run: AgentRun, token: CancelToken) -> None:
        self.run = run
        self.token = token

    def by_cancel(self) -> None:
        self.run.cancel()

    def by_token(self) -> None:
        self.token.cancel()

    def by_thread(self) -> None:
        thread = threading.Thread(target=self.run.cancel)
        thread.start()
        thread.join()


ABORTS = [Abort.by_cancel, Abort.by_token, Abort.by_thread]


class Checkpoint:
    """Where the abort comes, what the run says before it, and what it has committed then."""

    def __init__(self, name: str, answered: list[str], *, turns: list[Any], **hooks: str) -> None:
        self.name = name
        self.answered = answered  # the statuses of the calls, [] where nothing was committed
        self.turns = turns
        self.hooks = hooks

    def __repr__(self) -> str:
        return self.name


NOT_RUN = "not run"
CANCELLED = "cancelled while it ran"


def step_abort() -> None:
    """Stands in a script for the abort."""


TWO = [tool_call("a", "work"), tool_call("b", "work")]

CHECKPOINTS = [
    Checkpoint("before the first turn", [], turns=[], at="start"),
    Checkpoint("before the next turn", ["worked", "worked"], turns=[TWO], at="TurnCommitted"),
    Checkpoint("at the first event", [], turns=[["Hm", step_abort, " so", *TWO]]),
    Checkpoint("at a released call", [], turns=[["Hm", *TWO, step_abort]], at="ModelToolCall"),
    Checkpoint("with the last event", [], turns=[["Hm", *TWO, step_abort]]),
    Checkpoint("at the last event, by its reader", [], turns=[["Hm", *TWO]], at="ModelDone"),
    Checkpoint("with the last event of an answer", [], turns=[["Hm", step_abort]]),
    Checkpoint("in a blocked read", [], turns=[["Hm", Pause()]], at="blocked"),
    Checkpoint("before a tool", [NOT_RUN, NOT_RUN], turns=[TWO], at="approve"),
    Checkpoint("after an approval", ["worked", NOT_RUN], turns=[TWO], at="approve b"),
    Checkpoint("after an execution", [CANCELLED, NOT_RUN], turns=[TWO], at="work a"),
    Checkpoint("after the last execution", ["worked", CANCELLED], turns=[TWO], at="work b"),
    Checkpoint("in a blocked tool", ["worked", CANCELLED], turns=[TWO], at="block b"),
]


@backends
@pytest.mark.parametrize("abort", ABORTS)
@pytest.mark.parametrize("cooperative", [True, False])
@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
def test_every_checkpoint_against_every_abort(
    backend: str, checkpoint: Checkpoint, abort: Callable[[Abort], None], cooperative: bool
) -> None:
    """B190, B208: nothing that comes after the signal is handed out or stored, and the history can be sent."""
    at = checkpoint.hooks.get("at", "")
    token = CancelToken()
    seen: list[AgentEvent] = []
    aborted_at: list[int] = []
    runs: list[AgentRun] = []

    def give_up() -> None:
        if not aborted_at:
            aborted_at.append(len(seen))
            abort(Abort(runs[0], token))

    async def work(context: ToolContext) -> str:
        if at == f"block {context.call_id}":
            await anyio.sleep(100)
        if at == f"work {context.call_id}":
            give_up()
        return "worked"

    async def approve(call: ToolCall) -> Approval:
        if at in ("approve", f"approve {call.id}"):
            await anyio.sleep(0.5)  # the call before is done by then
            give_up()
        return Allow()

    async def give_up_later() -> None:
        await anyio.sleep(1)
        give_up()

    async def main() -> None:
        turns = [[give_up if step is step_abort else step for step in turn] for turn in checkpoint.turns]
        client = FakeClient(*turns, ["never"], cooperative=cooperative)
        tools = [Tool.from_function(work, description="")]
        run = begin(client, tools=tools, approve=approve, cancel=token, max_parallel=1)
        runs.append(run)
        if at == "start":
            give_up()
        start = anyio.current_time()
        async with anyio.create_task_group() as tasks:
            if at.startswith("block"):
                tasks.start_soon(give_up_later)
            with contextlib.AsyncExitStack() if False else contextlib.nullcontext():
                async with run:
                    with pytest.raises(RunCancelled) as caught:
                        async for event in run:
                            seen.append(event)
                            if type(event).__name__ == at:
                                give_up()
                    assert anyio.current_time() - start <= 3, "what is blocked is interrupted"
                    with pytest.raises(RunCancelled):
                        await run.result()
                    context = run.context
            tasks.cancel_scope.cancel()
        assert aborted_at == [len(seen)], "no event after the signal"
        assert run.context == context, "what is committed then is final"
        assert caught.value.run is not None
        assert caught.value.run.context == context
        require_sendable(context)
        found = [text for _, text in results_of(context.messages)]
        assert len(context.messages) == (3 if checkpoint.answered else 1)
        assert len(found) == len(checkpoint.answered)
        for text, expected in zip(found, checkpoint.answered, strict=True):
            assert expected in text
        assert client.open == 0 or not cooperative
        if checkpoint.answered[-1:] == [CANCELLED]:
            assert [e.status for e in caught.value.run.executions][-1] == "cancelled"

    virtual.run(backend, main)


@backends
def test_left_by_its_reader(backend: str) -> None:
    """B210: break, an exception and a cancellation all close the stream before control returns."""

    async def leave_by_break(run: AgentRun) -> None:
        async with run:
            async for event in run:
                if isinstance(event, ModelText):
                    break

    async def leave_by_error(run: AgentRun) -> None:
        with pytest.raises(LookupError):
            async with run:
                async for event in run:
                    if isinstance(event, ModelText):
                        raise LookupError

    async def leave_by_cancellation(run: AgentRun) -> None:
        with anyio.move_on_after(1) as scope:
            async with run:
                await run.result()
        assert scope.cancelled_caught

    async def main() -> None:
        for leave in (leave_by_break, leave_by_error, leave_by_cancellation):
            client = FakeClient(["Hm", tool_call("a", "look", seconds=100), "x", Pause()])
            run = begin(client)
            start = anyio.current_time()
            await leave(run)
            assert anyio.current_time() - start <= 1
            assert client.open == 0
            assert run.context.messages == (ASKED,)
            assert [execution.status for execution in run.executions] == ["cancelled"]
            with pytest.raises(RunCancelled):
                await run.result()

    virtual.run(backend, main)


@backends
def test_iterated_cancelled_and_left_in_different_tasks(backend: str) -> None:
    """B212, B214: no scope is held open; the task that reads gets a typed error when another one cancels."""
    ends: list[str] = []

    async def read(run: AgentRun) -> None:
        try:
            async for _ in run:
                pass
        except RunCancelled as error:
            ends.append(str(error))

    async def main() -> None:
        run = begin(FakeClient(["Hm", Pause()]))
        for step in (run.__aenter__, run.__anext__):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(step)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read, run)
            await anyio.sleep(1)
            run.cancel()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run.aclose)
        assert ends == ["the run was cancelled"]

    async def through_a_generator() -> None:
        async def handler() -> AsyncIterator[AgentEvent]:
            async with begin(FakeClient(["Hm", Pause()])) as run:
                async for event in run:
                    yield event

        stream = handler()
        for _ in range(2):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(stream.__anext__)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stream.aclose)

    virtual.run(backend, main)
    virtual.run(backend, through_a_generator)


@backends
def test_a_reader_that_absorbs_its_cancellation(backend: str) -> None:
    """B216: the caller's cancel is not lost when code inside the run catches it."""

    async def main() -> None:
        async def absorb() -> str:
            with contextlib.suppress(anyio.get_cancelled_exc_class()):
                await anyio.sleep(100)
            return "absorbed"

        client = FakeClient([tool_call("a", "absorb")], ["never"])
        start = anyio.current_time()
        with anyio.move_on_after(1) as scope:
            async with begin(client, tools=[Tool.from_function(absorb, description="")]) as run:
                with contextlib.suppress(anyio.get_cancelled_exc_class()):
                    await run.result()
                await run.result()
        assert anyio.current_time() - start <= 1
        assert scope.cancelled_caught or backend == "asyncio"
        assert len(client.requests) == 1
        assert [status for _, status in results_of(run.context.messages)][0].startswith("This call was cancelled")

    virtual.run(backend, main)


@backends
def test_three_ways_to_end_early(backend: str) -> None:
    """B218: cancelled by the caller, timed out (and by which timer), failed."""

    async def main() -> None:
        slow = [tool_call("a", "write", seconds=100)]
        timed_out = await fail(begin(FakeClient(slow), timeout=3), RunTimeout)
        assert (timed_out.seconds, str(timed_out)) == (3, "the run took longer than 3 s")
        assert [execution.status for execution in timed_out.run.executions] == ["cancelled"]
        require_sendable(timed_out.run.context)

        token = CancelToken()
        token.cancel()
        assert isinstance(await fail(begin(FakeClient(slow), cancel=token)), RunCancelled)

        idle = TransportError("nothing came for 30 s", timeout="idle")
        assert await fail(begin(FakeClient(["Hm", idle]))) is idle

        short = Tool.from_function(write.run or print, name="write", timeout=1)
        result = await begin(FakeClient(slow, ["so"]), tools=[short])
        assert "did not finish within 1 s" in results_of(result.context.messages)[0][1]

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
            with pytest.raises(Exception) as caught:  # noqa: PT011, B017
                async for event in run:
                    events.append(event)
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
@pytest.mark.parametrize("by_check", [False, True])
def test_a_call_written_as_text_is_asked_for_again(backend: str, by_check: bool) -> None:
    forged = "<tool_call>write</tool_call>"

    def check(message: Message, context: Context) -> SseamError | None:
        assert context.tools
        return OutputProtocolViolation("a call as text") if forged in message.text else None

    async def main() -> None:
        violation = OutputProtocolViolation("a call as text", partial=Message(usage=Usage(output_tokens=3)))
        bad = [tool_call("a", "look", seconds=9), forged, Pause(1), *([] if by_check else [violation])]
        if by_check:
            bad = [forged, Stop("end_turn", Usage(output_tokens=3))]
        client = FakeClient(bad, bad, ["fine"])
        events: list[AgentEvent] = []
        async with begin(client, check=check if by_check else None, max_turns=1) as run:
            async for event in run:
                events.append(event)
            result = await run.result()
        assert result.context.messages == (ASKED, result.message)
        assert (result.turns, result.requests, result.usage) == (1, 3, Usage(output_tokens=6))
        assert [event.turn for event in events if isinstance(event, TurnDiscarded)] == [1, 1]
        assert [event.turn for event in events if isinstance(event, TurnStarted)] == [1, 1, 1]

        client = FakeClient(*[bad] * 9)
        error = await fail(begin(client, check=check if by_check else None), OutputProtocolViolation)
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
    for options in ({"max_turns": 0}, {"max_parallel": 0}, {"timeout": 0}, {"tools": [look, look]}):
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

    anyio.run(main, backend=backend) if backend == "none" else virtual_or_real(backend, main)


def virtual_or_real(backend: str, main: Callable[[], Awaitable[None]]) -> None:
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
                async for event in run:
                    seen.append(event)
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
def test_nothing_stays_on_a_token(backend: str) -> None:
    """B220: a thousand runs leave a constant number of callbacks, none, on a signal that outlives them."""
    token = CancelToken()

    async def main() -> None:
        for number in range(1000):
            turn = ["yes"] if number % 2 else [ApiError("no")]
            with contextlib.suppress(ApiError):
                await run_agent(FakeClient(turn), "go", cancel=token)
            assert not token._callbacks

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

    events = [event for event in virtual.run(backend, main) if isinstance(event, ToolStarted | ToolProgress | ToolFinished)]
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


def test_a_bound_model_asks_through_a_client() -> None:
    asked: list[Any] = []

    class Client:
        def stream(self, *args: Any, **options: Any) -> str:
            asked.append((args, options))
            return "stream"

    model = sseam.models.anthropic("claude-x")
    request = ModelRequest(context=Context(messages=(assistant("x"),)), accept=("pause_turn",))
    assert BoundModel(Client(), model).stream(request) == "stream"  # type: ignore[comparison-overlap]
    assert asked == [((model, request.context, request.options), {"accept": ("pause_turn",)})]


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
            for _ in range(10):
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
