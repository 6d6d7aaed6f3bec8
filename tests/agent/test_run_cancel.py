"""`run_agent` given up: at every checkpoint, in every way, and by readers that leave. In virtual time."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import anyio
import pytest

import virtual
from agents import ASKED, backends, begin, fail, read, require_sendable, results_of, write
from sseam.agent import AgentEvent, AgentRun, ModelRequest, RunCancelled, RunTimeout, run_agent
from sseam.agent.approval import Allow, Approval
from sseam.agent.cancel import CancelToken
from sseam.errors import ApiError, TransportError
from sseam.events import Event
from sseam.message import ToolCall
from sseam.model import ModelEvent, ModelText
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
    """Where the abort comes, what the model says, and what becomes of its calls."""

    def __init__(self, name: str, at: str, *turns: list[Any], answered: Sequence[str] = ()) -> None:
        self.name = name
        self.at = at
        self.turns = turns
        self.answered = answered  # a piece of each result that is committed; none: nothing is

    def __repr__(self) -> str:
        return self.name


NOT_RUN = "not run"
CANCELLED = "cancelled while it ran"


def step_abort() -> None:
    """Stands in a script for the abort."""


TWO = [tool_call("a", "work"), tool_call("b", "work")]

CHECKPOINTS = [
    Checkpoint("before the first turn", "start"),
    Checkpoint("before the next turn", "TurnCommitted", TWO, answered=["worked", "worked"]),
    Checkpoint("at the first event", "", ["Hm", step_abort, *["so"] * 9, *TWO]),
    Checkpoint("at a released call", "ModelToolCall", ["Hm", *TWO, *["so"] * 9]),
    Checkpoint("with the last event", "", ["Hm", *TWO, step_abort]),
    Checkpoint("at the last event, by its reader", "ModelDone", ["Hm", *TWO]),
    Checkpoint("with the last event of an answer", "", ["Hm", step_abort]),
    Checkpoint("between the stream and the commit", "close", ["Hm", *TWO]),
    Checkpoint("between the stream and the commit of an answer", "close", ["Hm"]),
    Checkpoint("in a blocked read", "block", ["Hm", Pause(100)]),
    Checkpoint("before a tool", "approve a", TWO, answered=[NOT_RUN, NOT_RUN]),
    Checkpoint("after an approval", "approve b", TWO, answered=["worked", NOT_RUN]),
    Checkpoint("after an execution", "work a", TWO, answered=[CANCELLED, NOT_RUN]),
    Checkpoint("after the last execution", "work b", TWO, answered=["worked", CANCELLED]),
    Checkpoint("in a blocked tool", "block b", TWO, answered=["worked", CANCELLED]),
]
BY_READER = ("TurnCommitted", "ModelToolCall", "ModelDone")


class Scene:
    """A run that is given up at a checkpoint, and what was seen of it."""

    def __init__(self, checkpoint: Checkpoint, abort: Callable[[Abort], None], cooperative: bool) -> None:
        self.at = checkpoint.at
        self.abort = abort
        self.token = CancelToken()
        self.cooperative = cooperative
        self.client = FakeClient(*map(self.script, checkpoint.turns), ["never"], cooperative=cooperative)
        self.run = begin(
            self,
            tools=[Tool.from_function(self.work, description="")],
            approve=self.approve,
            cancel=self.token,
            max_parallel=1,
        )
        self.seen: list[AgentEvent] = []
        self.seen_before = -1  # events that were read when the run was given up
        self.after: list[str] = []  # what was asked of the client, the hook and the tool behind that

    def script(self, turn: list[Any]) -> list[Any]:
        return [self.give_up if step is step_abort else step for step in turn]

    @property
    def given_up(self) -> bool:
        return self.seen_before >= 0

    def give_up(self) -> None:
        if not self.given_up:
            self.seen_before = len(self.seen)
            self.abort(Abort(self.run, self.token))

    def give_up_at(self, event: AgentEvent) -> None:
        if type(event).__name__ == self.at:
            self.give_up()

    async def give_up_later(self) -> None:
        await anyio.sleep(1)
        self.give_up()

    def note(self, what: str) -> None:
        if self.given_up:
            self.after.append(what)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Event | ModelEvent]:
        self.note("request")
        try:
            async with contextlib.aclosing(self.client.stream(request)) as events:
                async for event in events:
                    yield event
                    self.note("event")
        finally:
            if self.at == "close":
                self.give_up()

    async def work(self, context: ToolContext) -> str:
        self.note("tool")
        if self.at == f"block {context.call_id}":
            await anyio.sleep(100)
        if self.at == f"work {context.call_id}":
            self.give_up()
        return "worked"

    async def approve(self, call: ToolCall) -> Approval:
        self.note("approval")
        if self.at == f"approve {call.id}":
            await anyio.sleep(0.5)  # the call before is done by then
            self.give_up()
        return Allow()

    async def play(self, reads: bool) -> RunCancelled:
        async with anyio.create_task_group() as tasks:
            if self.at == "start":
                self.give_up()
            if self.at.startswith("block"):
                tasks.start_soon(self.give_up_later)
            start = anyio.current_time()
            async with self.run as run:
                with pytest.raises(RunCancelled) as caught:
                    await (read(run, self.seen, self.give_up_at) if reads else run.result())
                assert anyio.current_time() - start <= 1, "what is blocked is interrupted"
                with pytest.raises(RunCancelled):
                    await run.result()
                context = run.context
                await anyio.sleep(0.01)
                assert self.client.open == 0 or not self.cooperative, "interrupted, though nobody has left yet"
            tasks.cancel_scope.cancel()
        assert run.context == context, "what is committed then is final"
        return caught.value


@backends
@pytest.mark.parametrize("reads", [True, False], ids=["read", "awaited"])
@pytest.mark.parametrize("abort", ABORTS)
@pytest.mark.parametrize("cooperative", [True, False], ids=["cooperative", "ignoring"])
@pytest.mark.parametrize("checkpoint", CHECKPOINTS, ids=repr)
def test_every_checkpoint_against_every_abort(
    backend: str, checkpoint: Checkpoint, abort: Callable[[Abort], None], cooperative: bool, reads: bool
) -> None:
    """B190, B208: nothing that comes after the signal is handed out or stored, and the history can be sent."""
    if checkpoint.at in BY_READER and not reads:
        return  # nobody is there to give it up

    async def main() -> None:
        scene = Scene(checkpoint, abort, cooperative)
        error = await scene.play(reads)
        assert len(scene.seen) == (scene.seen_before if reads else 0), "no event after the signal"
        assert scene.after in ([], ["event"]), "nothing is begun, and at most the next event is taken"
        assert len(scene.client.requests) == len(checkpoint.turns)
        context = scene.run.context
        assert error.run is not None
        assert error.run.context == context
        require_sendable(context)
        assert len(context.messages) == (3 if checkpoint.answered else 1)
        found = [text for _, text in results_of(context.messages)]
        assert len(found) == len(checkpoint.answered)
        for text, expected in zip(found, checkpoint.answered, strict=True):
            assert expected in text

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
