"""`run_agent` given up: at every checkpoint, in every way, and by readers that leave. In virtual time."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import pytest

import virtual
from agents import ASKED, backends, begin, fail, read, require_sendable, results_of, write
from sseam.agent import AgentEvent, AgentRun, RunCancelled, RunTimeout, run_agent
from sseam.approval import Allow, Approval
from sseam.cancel import CancelToken
from sseam.errors import ApiError, TransportError
from sseam.message import ToolCall
from sseam.model import ModelText
from sseam.testing import FakeClient, Pause, tool_call
from sseam.tools import Tool, ToolContext

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
    Checkpoint("in a blocked read", [], turns=[["Hm", Pause(100)]], at="blocked"),
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

    def give_up_at(event: AgentEvent) -> None:
        if type(event).__name__ == at:
            give_up()

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
            async with run:
                with pytest.raises(RunCancelled) as caught:
                    await read(run, seen, give_up_at)
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
        def fault(event: AgentEvent) -> None:
            if event == ModelText("Hm"):
                raise LookupError

        async def handle() -> None:
            async with run:
                await read(run, [], fault)

        with pytest.raises(LookupError):
            await handle()

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
        assert results_of(run.context.messages)[0][1].startswith("This call was cancelled")

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
