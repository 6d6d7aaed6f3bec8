"""Random runs in random interleavings: what must hold of every one. Seeded, in virtual time."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

import virtual
from agents import backends, require_sendable
from sseam.agent import AgentEvent, AgentResult, AgentRun, RunCancelled, RunTimeout, TurnCommitted, run_agent
from sseam.agent.approval import Allow, Approval, Deny
from sseam.agent.cancel import CancelToken
from sseam.agent.execution import ToolExecution, ToolFinished, ToolProgress, ToolStarted
from sseam.context import HistoryMessage, ToolResultMessage
from sseam.errors import ApiError, SseamError
from sseam.message import Message, ToolCall
from sseam.testing import FakeClient, Pause, tool_call
from sseam.tools import Tool, ToolContext

SEEDS = 150
MAX_PARALLEL = 3
# Few different lengths, so that much happens at the same moment.
LENGTHS = (0, 0, 1, 1, 2, 3)


class Scenario:
    """One random conversation with its tools, its faults, its reader and what cuts it short."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.token = CancelToken()
        self.invoked: Counter[str] = Counter()
        self.running: dict[str, bool] = {}  # call → whether its tool is exclusive
        self.completed: set[str] = set()
        self.events: list[AgentEvent] = []
        self.cancelled_after: int | None = None  # events that were read when the run was cancelled
        turns = [self.turn(number) for number in range(self.random.randint(1, 4))]
        self.cooperative = self.random.random() < 0.8
        self.client = FakeClient(*turns, ["done"], fine=self.random.random() < 0.5, cooperative=self.cooperative)

    def turn(self, number: int) -> list[Any]:
        steps: list[Any] = []
        for call in range(self.random.randint(1, 5)):
            if self.random.random() < 0.4:
                steps.append(self.pause())
            name = self.random.choice(["eager", "eager_alone", "later", "alone", "unknown"])
            steps.append(tool_call(f"t{number}c{call}", name, id=f"t{number}c{call}"))
            if self.random.random() < 0.4:
                steps += ["text", self.pause()]
        if self.random.random() < 0.1:
            steps.insert(self.random.randrange(len(steps) + 1), ApiError("overloaded"))
        return steps

    def pause(self) -> Pause:
        return Pause(self.random.choice(LENGTHS))

    def tools(self) -> list[Tool]:
        def make(name: str, **traits: Any) -> Tool:
            async def work(id: str, context: ToolContext) -> str:
                return await self.work(id, context, traits.get("exclusive", False))

            return Tool.from_function(work, name=name, description="", **traits)

        return [
            make("eager", eager=True),
            make("eager_alone", eager=True, exclusive=True, timeout=2.5),
            make("later", timeout=1.5),
            make("alone", exclusive=True),
        ]

    async def work(self, id: str, context: ToolContext, exclusive: bool) -> str:
        self.invoked[id] += 1
        self.running[id] = exclusive
        assert len(self.running) <= MAX_PARALLEL
        assert len(self.running) == 1 or not any(self.running.values())
        try:
            for _ in range(self.random.randint(0, 2)):
                await anyio.sleep(self.random.choice(LENGTHS))
                context.progress(id)
            if self.random.random() < 0.1:
                raise LookupError(id)
        finally:
            del self.running[id]
        self.completed.add(id)
        return id

    async def approve(self, call: ToolCall) -> Approval:
        await anyio.sleep(self.random.choice(LENGTHS))
        return Deny() if call.id.endswith("c3") else Allow()

    async def main(self) -> BaseException | AgentResult:
        run = run_agent(
            self.client,
            "go",
            tools=self.tools(),
            max_parallel=MAX_PARALLEL,
            approve=self.approve if self.random.random() < 0.3 else None,
            cancel=self.token,
            timeout=self.random.choice([None, None, 5, 10]),
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.interfere, run)
            async with run:
                outcome = await self.follow(run)
                committed = run.context.messages
            tasks.cancel_scope.cancel()
        assert run.context.messages == committed, "what was committed at the end is final"
        assert not self.token._callbacks
        assert self.client.open == 0 or not self.cooperative
        self.check(run, outcome)
        return outcome

    async def follow(self, run: AgentRun) -> BaseException | AgentResult:
        try:
            if self.random.random() < 0.7:
                async for event in run:
                    self.events.append(event)
                    require_sendable(run.context)
                    if self.random.random() < 0.2:
                        await anyio.sleep(self.random.choice(LENGTHS))
            return await run.result()
        except SseamError as error:
            return error

    async def interfere(self, run: AgentRun) -> None:
        how = self.random.choice([run.cancel, self.token.cancel, None])
        await anyio.sleep(self.random.choice(range(12)))
        if how is not None and not run._over.is_set:
            self.cancelled_after = len(self.events)
            how()

    # ---- what must hold

    def check(self, run: AgentRun, outcome: BaseException | AgentResult) -> None:
        require_sendable(run.context)
        committed = [event for event in self.events if isinstance(event, TurnCommitted)]
        messages = tuple(message for event in committed for message in event.messages)
        assert run.context.messages[1 : 1 + len(messages)] == messages
        assert max(self.invoked.values(), default=0) <= 1, "each call at most once"
        if isinstance(outcome, AgentResult):
            assert outcome.text == "done"
            assert outcome.context == run.context
        else:
            assert isinstance(outcome, RunCancelled | RunTimeout | ApiError)
            assert outcome.run is not None
            assert outcome.run.context == run.context
            self.check_executions(outcome.run.executions)
        if isinstance(outcome, RunCancelled):
            assert self.cancelled_after == len(self.events), "nothing is handed out after the cancel"
        self.check_results(run.context.messages)
        self.check_events()

    def check_executions(self, executions: tuple[ToolExecution, ...]) -> None:
        for execution in executions:
            ran = bool(self.invoked[execution.call.id])
            assert ran or execution.status in ("error", "denied", "not_run", "cancelled")
            if execution.status in ("not_run", "denied"):
                assert not ran, "what ran is never said not to have run"
            if execution.status == "done":
                assert execution.call.id in self.completed

    def check_results(self, messages: tuple[HistoryMessage, ...]) -> None:
        for message in messages:
            if isinstance(message, ToolResultMessage):
                for result in message.results:
                    if not result.is_error:
                        assert result.text == result.call_id
                        assert result.call_id in self.completed

    def check_events(self) -> None:
        """Per call: started at most once and before its progress, finished exactly once and last."""
        calls: dict[str, list[str]] = {}
        for event in self.events:
            if isinstance(event, ToolStarted | ToolProgress):
                calls.setdefault(event.call.id, []).append(type(event).__name__)
            elif isinstance(event, ToolFinished):
                calls.setdefault(event.execution.call.id, []).append(event.execution.status)
            elif isinstance(event, TurnCommitted) and isinstance(event.messages[0], Message):
                for call in event.messages[0].tool_calls:
                    assert calls[call.id][-1] not in ("ToolStarted", "ToolProgress"), "a result, then the commit"
        for told in calls.values():
            assert told.count("ToolStarted") <= 1
            assert "ToolProgress" not in told or told[0] == "ToolStarted"
            ends = [number for number, one in enumerate(told) if not one.startswith("Tool")]
            assert ends in ([], [len(told) - 1])


def signature(scenario: Scenario, outcome: object) -> tuple[object, ...]:
    return (type(outcome).__name__, *(type(event).__name__ for event in scenario.events))


@backends
@pytest.mark.parametrize("block", range(4))
def test_random_runs(backend: str, block: int) -> None:
    """B188, B190, B192, B198, B208, B214, B220, B235 at once, in every order that the seeds find."""
    ways: set[tuple[object, ...]] = set()
    ends: Counter[str] = Counter()
    for seed in range(block * SEEDS, (block + 1) * SEEDS):
        scenario = Scenario(seed)
        try:
            outcome = virtual.run(backend, scenario.main, seed=seed)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        ways.add(signature(scenario, outcome))
        ends[type(outcome).__name__] += 1
    assert len(ways) > SEEDS / 2, "the seeds find different interleavings"
    assert set(ends) == {"AgentResult", "RunCancelled", "RunTimeout", "ApiError"}


@backends
def test_one_scenario_in_many_orders(backend: str) -> None:
    """The same script, the cancel in the same moment as everything else: only the order of what is ready differs."""

    async def tool(id: str) -> str:
        await anyio.sleep(1)
        return id

    async def once(moment: float) -> tuple[str, ...]:
        calls = [tool_call(id, "tool", id=id) for id in "abc"]
        client = FakeClient([*calls, "so", Pause(1)], ["done"])
        async with run_agent(client, "go", tools=[Tool.from_function(tool, description="", eager=True)]) as run:
            async with anyio.create_task_group() as tasks:

                async def cancel() -> None:
                    await anyio.sleep(moment)
                    run.cancel()

                tasks.start_soon(cancel)
                try:
                    end = (await run.result()).text
                except RunCancelled as error:
                    end = str(error)
                tasks.cancel_scope.cancel()
            require_sendable(run.context)
            assert len(run.context.messages) in (1, 3, 4)
            return (end, str(len(run.context.messages)), *(execution.status for execution in run.executions))

    found: set[tuple[str, ...]] = set()
    for seed in range(150):
        main: Callable[[], Awaitable[tuple[str, ...]]] = lambda: once(1)  # noqa: E731
        found.add(virtual.run(backend, main, seed=seed))
    assert len(found) > 3, "the moment is the same, the order is not"
