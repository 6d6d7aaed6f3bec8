"""`ToolExecutor`: each call once, each with one result, in their order. In virtual time, under asyncio and trio."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import anyio
import msgspec
import pytest

import virtual
from sseam.agent.approval import Allow, Approval, Deny, Edit
from sseam.agent.cancel import CancelToken
from sseam.agent.execute import ToolExecutor
from sseam.agent.execution import (
    STATUSES,
    TRANSITIONS,
    CallLimitError,
    CallState,
    ToolEvent,
    ToolExecution,
    ToolFinished,
    ToolProgress,
    ToolStarted,
)
from sseam.content import TextContent
from sseam.context import ToolResultMessage
from sseam.errors import InvalidToolCall, ProtocolError
from sseam.message import ToolCall
from sseam.testing import tool_call
from sseam.tools import Tool, ToolContext, ToolError, ToolResult, tool

pytestmark = pytest.mark.parametrize("backend", virtual.BACKENDS)


def statuses(executions: tuple[ToolExecution, ...]) -> list[str]:
    return [execution.status for execution in executions]


def sleeper(name: str = "sleep", **traits: Any) -> Tool:
    async def sleep(seconds: float) -> str:
        await anyio.sleep(seconds)
        return f"slept {seconds:g}"

    return Tool.from_function(sleep, name=name, description="", **traits)


def naps(*seconds: float, name: str = "sleep") -> list[ToolCall]:
    return [tool_call(f"c{number}", name, seconds=each) for number, each in enumerate(seconds)]


async def carry_out(tools: list[Tool], calls: list[ToolCall], **options: Any) -> tuple[ToolExecution, ...]:
    async with ToolExecutor(tools, **options) as executor:
        return await executor.run(calls)


# ---- the machine


def test_the_tables_agree(backend: str) -> None:
    del backend
    assert set(TRANSITIONS) == set(STATUSES) == set(CallState)
    assert TRANSITIONS[CallState.SETTLED] == STATUSES[CallState.SETTLED] == frozenset()
    for state in set(CallState) - {CallState.SETTLED}:
        assert CallState.SETTLED in TRANSITIONS[state]
        assert STATUSES[state], "every state that can be settled has a status for it"
    # What ran is never said not to have run, and the other way round.
    assert STATUSES[CallState.RUNNING].isdisjoint({"not_run", "denied"})
    for state in (CallState.WAITING, CallState.CHECKING, CallState.QUEUED):
        assert STATUSES[state].isdisjoint({"done", "timeout", "cancelled"})


class Scene:
    """An executor that has one call in each state."""

    def __init__(self) -> None:
        self.events: list[ToolEvent] = []
        self.token = CancelToken()
        self.executor = ToolExecutor(
            [sleeper(eager=True), sleeper("later"), sleeper("alone", eager=True, exclusive=True)],
            max_calls=5,
            approve=self.approve,
            cancel=self.token,
            on_event=self.events.append,
        )
        self.asked = anyio.Event()
        self.hook_fault: Exception | None = None

    async def approve(self, call: ToolCall) -> Approval:
        if call.id != "checking":
            return Allow()
        await self.asked.wait()
        if self.hook_fault is not None:
            raise self.hook_fault
        return Allow()

    async def set(self) -> None:
        announce = self.executor.announce
        announce(tool_call("settled", "sleep", seconds=0))
        announce(tool_call("running", "sleep", seconds=1000))
        announce(tool_call("queued", "alone", seconds=1))
        announce(tool_call("checking", "sleep", seconds=1))
        announce(tool_call("waiting", "later", seconds=1))
        await anyio.sleep(1)
        states = {id: entry.state.value for id, entry in self.executor._entries.items()}
        assert states == {id: id for id in ("settled", "running", "queued", "checking", "waiting")}

    def calls(self) -> list[ToolCall]:
        return [entry.call for entry in self.executor._entries.values()]


def by_cancel(scene: Scene) -> None:
    scene.executor.cancel()


def by_token(scene: Scene) -> None:
    scene.token.cancel()


def by_limit(scene: Scene) -> None:
    with pytest.raises(CallLimitError, match="6 or more tool calls in one turn, and 5 are allowed"):
        scene.executor.announce(tool_call("sixth", "sleep", seconds=0))


def by_larger_batch(scene: Scene) -> None:
    with pytest.raises(CallLimitError):
        scene.executor.confirm([*scene.calls(), tool_call("sixth", "sleep", seconds=0)])


def by_smaller_batch(scene: Scene) -> None:
    with pytest.raises(ProtocolError, match="announced that the message does not hold"):
        scene.executor.confirm(scene.calls()[1:])


def by_other_arguments(scene: Scene) -> None:
    with pytest.raises(InvalidToolCall, match="the same id"):
        scene.executor.announce(tool_call("running", "sleep", seconds=2))


def by_doubled_batch(scene: Scene) -> None:
    with pytest.raises(InvalidToolCall, match="the same id"):
        scene.executor.confirm([*scene.calls()[1:], scene.calls()[1]])


def by_hook(scene: Scene) -> None:
    scene.hook_fault = LookupError("hook")
    scene.asked.set()


async def by_thread(scene: Scene) -> None:
    thread = threading.Thread(target=scene.token.cancel)
    thread.start()
    thread.join()


async def by_leaving(scene: Scene) -> None:
    await scene.executor.aclose()


FAULTS: list[Callable[[Scene], Any]] = [
    by_cancel,
    by_token,
    by_thread,
    by_limit,
    by_larger_batch,
    by_smaller_batch,
    by_other_arguments,
    by_doubled_batch,
    by_hook,
    by_leaving,
]

GIVEN_UP = {
    "settled": "done",
    "running": "cancelled",
    "queued": "not_run",
    "checking": "not_run",
    "waiting": "not_run",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_state_against_every_fault(backend: str, fault: Callable[[Scene], Any]) -> None:
    async def main() -> None:
        scene = Scene()
        async with scene.executor:
            await scene.set()
            outcome = fault(scene)
            if isinstance(outcome, Awaitable):
                await outcome
            await anyio.sleep(0.001)  # what was posted by the thread, and the hook's answer
            found = {execution.call.id: execution.status for execution in scene.executor.executions}
            assert found == GIVEN_UP
        finished = [event.execution.call.id for event in scene.events if isinstance(event, ToolFinished)]
        assert sorted(finished) == sorted(GIVEN_UP), "exactly one result each"
        started = [event.call.id for event in scene.events if isinstance(event, ToolStarted)]
        assert sorted(started) == ["running", "settled"]
        for execution in scene.executor.executions:
            assert execution.result.is_error == (execution.status != "done")
            assert execution.result.call_id == execution.call.id

    began = time.monotonic()
    virtual.run(backend, main)
    assert time.monotonic() - began < 5, "the running tool was interrupted, not waited for"


def test_a_native_cancellation_cancels_the_tools(backend: str) -> None:
    """B190: cancelling the run cancels its tools."""

    async def main() -> None:
        with anyio.move_on_after(1):
            async with ToolExecutor([sleeper()]) as executor:
                await executor.run(naps(100, 100))
        assert statuses(executor.executions) == ["cancelled", "cancelled"]
        assert anyio.current_time() - start == pytest.approx(1)

    async def timed() -> None:
        nonlocal start
        start = anyio.current_time()
        await main()

    start = 0.0
    virtual.run(backend, timed)


def returns_text() -> Any:
    return "text"


def returns_nothing() -> Any:
    return None


def returns_broken_result() -> Any:
    return ToolResult(call_id="", name="", content=(TextContent("a\ud800b"),))


def returns_broken_data() -> Any:
    return ToolResult(call_id="", name="", data="\ud800")


def returns_bytes() -> Any:
    return b"\x00"


def raises_error() -> Any:
    raise KeyError("secret")


def raises_for_the_model() -> Any:
    raise ToolError("no such city")


def raises_timeout() -> Any:
    raise TimeoutError("its own")


def raises_stop() -> Any:
    raise StopIteration(1)


OUTCOMES: list[tuple[Callable[[], Any], str, bool, str]] = [
    (returns_text, "done", False, "text"),
    (returns_nothing, "done", False, "null"),
    (returns_broken_result, "done", False, "a\ufffdb"),
    (returns_broken_data, "done", True, "tool it returned a result that has no JSON form (UnicodeEncodeError)"),
    (returns_bytes, "done", True, "tool it returned bytes, which are no text"),
    (raises_error, "error", True, "tool it failed: KeyError"),
    (raises_for_the_model, "error", True, "ToolError: no such city"),
    # B218: a tool's own TimeoutError is no timeout of the executor's.
    (raises_timeout, "error", True, "tool it failed: TimeoutError"),
    (raises_stop, "error", True, "tool it failed: RuntimeError"),
]


@pytest.mark.parametrize("in_thread", [False, True])
@pytest.mark.parametrize(("function", "status", "is_error", "text"), OUTCOMES)
def test_what_a_tool_comes_to(
    backend: str, in_thread: bool, function: Callable[[], Any], status: str, is_error: bool, text: str
) -> None:
    async def wrapped() -> Any:
        await anyio.sleep(0)
        return function()

    run = Tool.from_function(function if in_thread else wrapped, name="it", description="")
    (execution,) = anyio.run(carry_out, [run], [tool_call("c", "it")], backend=backend)
    assert (execution.status, execution.result.is_error, execution.result.text) == (status, is_error, text)
    assert msgspec.json.decode(msgspec.json.encode(execution), type=ToolExecution) == execution


def test_exposed_errors(backend: str) -> None:
    run = Tool.from_function(raises_error, name="it", description="")

    async def main() -> tuple[ToolExecution, ...]:
        return await carry_out([run], [tool_call("c", "it")], expose_errors=True)

    (execution,) = anyio.run(main, backend=backend)
    assert "KeyError: 'secret'" in execution.result.text


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (tool_call("c", "nap"), "There is no tool 'nap'. The tools are: sleep."),
        (tool_call("c", "sleep", seconds="long"), "$.seconds"),
        (tool_call("c", "sleep"), "$.seconds"),
        (ToolCall(id="c", name="sleep", arguments={}, arguments_json='{"seconds": 1'), "one JSON object"),
    ],
)
def test_calls_that_cannot_be_run(backend: str, call: ToolCall, text: str) -> None:
    asked: list[ToolCall] = []
    events: list[ToolEvent] = []

    def approve(call: ToolCall) -> Approval:
        asked.append(call)
        return Allow()

    async def main() -> tuple[ToolExecution, ...]:
        return await carry_out([sleeper()], [call], approve=approve, on_event=events.append)

    (execution,) = virtual.run(backend, main)
    assert execution.status == "error"
    assert text in execution.result.text
    assert not asked, "nobody is asked about a call that cannot run"
    assert [type(event) for event in events] == [ToolFinished]


def test_a_custom_tools_text_is_its_argument(backend: str) -> None:
    @tool
    async def shout(input: str) -> str:
        """Shouts."""
        return input.upper()

    call = ToolCall(id="c", name="shout", arguments={"input": "a {b"}, arguments_json="a {b", kind="custom")
    (execution,) = virtual.run(backend, lambda: carry_out([shout], [call]))
    assert execution.result.text == "A {B"


# ---- at most once, in order, within limits


@pytest.mark.parametrize("eager", [False, True])
def test_announced_by_several_events_and_run_once(backend: str, eager: bool) -> None:
    """B192: one call id runs at most once a turn, whatever announces it."""
    runs: list[str] = []

    async def count(name: str) -> str:
        runs.append(name)
        return name

    async def main() -> None:
        counting = Tool.from_function(count, description="", eager=eager)
        signed = msgspec.structs.replace(tool_call("a", "count", name="a"), signature="late")
        async with ToolExecutor([counting]) as executor:
            for _ in range(3):
                executor.announce(tool_call("a", "count", name="a"))
            await anyio.sleep(1)
            executor.announce(tool_call("a", "count", name="a"))
            executions = await executor.run([signed, tool_call("b", "count", name="b")])
        assert statuses(executions) == ["done", "done"]

    virtual.run(backend, main)
    assert sorted(runs) == ["a", "b"]


def test_results_keep_the_order_of_the_calls(backend: str) -> None:
    """B188: results are stored in the order of the calls: equal histories give equal bytes."""
    histories: set[bytes] = set()
    finishing: set[tuple[str, ...]] = set()

    async def once(delays: dict[str, float]) -> None:
        async def work(name: str) -> str:
            await anyio.sleep(delays[name])
            return name

        events: list[ToolEvent] = []
        calls = [tool_call(name, "work", name=name) for name in "abcd"]
        tools = [Tool.from_function(work, description="")]
        executions = await carry_out(tools, calls, on_event=events.append)
        finishing.add(tuple(e.execution.call.id for e in events if isinstance(e, ToolFinished)))
        assert [execution.call for execution in executions] == calls
        histories.add(msgspec.json.encode(ToolResultMessage(tuple(execution.result for execution in executions))))

    async def main() -> None:
        for order in itertools.permutations(range(4)):
            await once(dict(zip("abcd", order, strict=True)))

    virtual.run(backend, main)
    assert len(finishing) == 24
    assert len(histories) == 1


@pytest.mark.parametrize("eager", [False, True])
def test_the_limit_is_checked_for_the_whole_batch(backend: str, eager: bool) -> None:
    """B190: the limit is checked before any call of the batch starts."""
    started: list[str] = []

    async def work(name: str) -> None:
        started.append(name)
        await anyio.sleep(1)

    async def main() -> None:
        calls = [tool_call(name, "work", name=name) for name in "abc"]
        async with ToolExecutor([Tool.from_function(work, description="", eager=eager)], max_calls=2) as executor:
            with pytest.raises(CallLimitError) as caught:
                await executor.run(calls)
            assert caught.value.limit == 2
            await anyio.sleep(5)
        assert executor.executions == ()

    virtual.run(backend, main)
    assert started == []


def test_parallel_up_to_the_limit(backend: str) -> None:
    running = most = 0

    async def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await anyio.sleep(1)
        running -= 1

    async def main() -> float:
        start = anyio.current_time()
        calls = [tool_call(f"c{number}", "work") for number in range(7)]
        await carry_out([Tool.from_function(work, description="")], calls, max_parallel=3)
        return anyio.current_time() - start

    assert virtual.run(backend, main) == pytest.approx(3)
    assert most == 3


def test_exclusive_tools_run_alone_and_in_turn(backend: str) -> None:
    spans: dict[str, tuple[float, float]] = {}

    async def work(name: str) -> None:
        start = anyio.current_time()
        await anyio.sleep(1)
        spans[name] = (start, anyio.current_time())

    tools = [
        Tool.from_function(work, name="shared", description=""),
        Tool.from_function(work, name="alone", description="", exclusive=True),
    ]
    names = ["shared", "shared", "alone", "shared", "alone", "alone", "shared"]

    async def main() -> float:
        start = anyio.current_time()
        await carry_out(tools, [tool_call(f"c{n}", name, name=f"c{n}") for n, name in enumerate(names)])
        return start

    start = virtual.run(backend, main)
    begun = [spans[f"c{number}"][0] - start for number in range(7)]
    assert begun == pytest.approx([0, 0, 1, 2, 3, 4, 5])


def test_eager_tools_start_while_the_stream_runs(backend: str) -> None:
    """B184: every other tool waits until the stop reason was checked."""
    begun: dict[str, float] = {}

    async def work(name: str) -> None:
        begun[name] = anyio.current_time() - start
        await anyio.sleep(1)

    tools = [
        Tool.from_function(work, name="eager", description="", eager=True),
        Tool.from_function(work, name="later", description=""),
    ]
    calls = [tool_call(name, name, name=name) for name in ("later", "eager")]
    start = 0.0

    async def main() -> None:
        nonlocal start
        start = anyio.current_time()
        async with ToolExecutor(tools) as executor:
            for call in calls:
                executor.announce(call)
            await anyio.sleep(10)
            await executor.run(calls)

    virtual.run(backend, main)
    assert begun == pytest.approx({"eager": 0, "later": 10})


# ---- time limits


async def obey() -> None:
    await anyio.sleep(100)


async def resist() -> None:
    with anyio.CancelScope(shield=True):
        await anyio.sleep(100)


async def swallow() -> str:
    """B216: it catches its cancellation and goes on as if nothing were."""
    try:
        await anyio.sleep(50)
    except anyio.get_cancelled_exc_class():
        pass
    return "went on"


@pytest.mark.parametrize("function", [obey, resist, swallow])
def test_timeouts(backend: str, function: Callable[[], Any]) -> None:
    """B218: the outcome says that it was the tool's own limit, and comes when that has passed."""

    async def main() -> None:
        start = anyio.current_time()
        slow = Tool.from_function(function, name="slow", description="", timeout=2)
        async with ToolExecutor([slow, sleeper()]) as executor:
            executions = await executor.run([tool_call("c", "slow"), tool_call("d", "sleep", seconds=1)])
            assert anyio.current_time() - start == pytest.approx(2)
        assert statuses(executions) == ["timeout", "done"]
        assert "did not finish within 2 s" in executions[0].result.text
        assert anyio.current_time() - start < 10, "what ignores its cancellation is left to itself"

    virtual.run(backend, main)


def test_a_tool_that_ignores_its_timeout_gives_up_its_place(backend: str) -> None:
    async def main() -> None:
        start = anyio.current_time()
        slow = Tool.from_function(resist, name="slow", description="", timeout=2)
        async with ToolExecutor([slow, sleeper()], max_parallel=1) as executor:
            executions = await executor.run([tool_call("c", "slow"), tool_call("d", "sleep", seconds=1)])
        assert statuses(executions) == ["timeout", "done"]
        assert anyio.current_time() - start < 20

    virtual.run(backend, main)


@pytest.mark.parametrize("function", [resist, swallow])
def test_cancelled_tools_that_go_on_are_not_believed(backend: str, function: Callable[[], Any]) -> None:
    """B208, B216: what comes after the cancel is no result."""

    async def main() -> None:
        start = anyio.current_time()
        async with ToolExecutor([Tool.from_function(function, name="slow", description="")]) as executor:
            executor.confirm([tool_call("c", "slow")])
            await anyio.sleep(1)
            executor.cancel()
            assert statuses(await executor.results()) == ["cancelled"]
            assert anyio.current_time() - start == pytest.approx(1)
        assert statuses(executor.executions) == ["cancelled"]

    virtual.run(backend, main)


def test_checkpoint_after_the_execution(backend: str) -> None:
    """B208: a signal that comes while the tool is finishing wins."""
    token = CancelToken()

    async def last_moment() -> str:
        token.cancel()
        return "result"

    run = Tool.from_function(last_moment, description="")
    (execution,) = virtual.run(backend, lambda: carry_out([run], [tool_call("c", "last_moment")], cancel=token))
    assert execution.status == "cancelled"
    assert "result" not in execution.result.text.replace("its result", "")


def test_checkpoint_before_the_tool(backend: str) -> None:
    """B190: of two calls that have their places, the one that has not begun does not begin after the cancel."""
    token = CancelToken()
    began: list[str] = []

    async def work(id: str) -> None:
        began.append(id)
        token.cancel()

    calls = [tool_call(id, "work", id=id) for id in "abc"]
    run = Tool.from_function(work, description="")
    executions = virtual.run(backend, lambda: carry_out([run], calls, cancel=token))
    assert len(began) == 1
    assert sorted(statuses(executions)) == ["cancelled", "not_run", "not_run"]


def test_leaving_waits_for_what_winds_down(backend: str) -> None:
    cleaned: list[str] = []

    async def work() -> None:
        try:
            await anyio.sleep(100)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(1)
            cleaned.append("up")

    async def main() -> None:
        with anyio.move_on_after(1):
            await carry_out([Tool.from_function(work, description="")], [tool_call("c", "work")])
        assert cleaned == ["up"]

    virtual.run(backend, main)


# ---- threads


def test_sync_tools_run_beside_each_other_and_the_loop(backend: str) -> None:
    """B243: the event loop goes on beside a tool that blocks."""
    barrier = threading.Barrier(2, timeout=10)
    ticks = 0

    def meet() -> int:
        return barrier.wait() * 0 + threading.get_ident()

    async def main() -> tuple[ToolExecution, ...]:
        nonlocal ticks
        async with ToolExecutor([Tool.from_function(meet, description=""), blocked]) as executor:
            executor.confirm([tool_call(id, "meet") for id in "ab"] + [tool_call("c", "blocked")])
            while not seen.wait(0):
                ticks += 1
                await anyio.sleep(0.001)
            executor.cancel()
            return await executor.results()

    seen = threading.Event()

    @tool
    def blocked(context: ToolContext) -> None:
        """Blocks until it is cancelled."""
        time.sleep(0.05)
        seen.set()
        stopped.append(context.cancellation.wait(10))

    stopped: list[bool] = []
    executions = anyio.run(main, backend=backend)
    assert statuses(executions) == ["done", "done", "cancelled"]
    assert ticks > 5
    idents = {execution.result.data for execution in executions[:2]}
    assert threading.get_ident() not in idents
    for _ in range(100):
        if stopped:
            break
        time.sleep(0.01)
    assert stopped == [True], "a tool in a thread is told that it was cancelled"


def test_progress_comes_in_the_loop_and_not_after_the_end(backend: str) -> None:
    late: list[Callable[[object], None]] = []
    threads: set[int] = set()
    events: list[ToolEvent] = []

    @tool
    def count(context: ToolContext) -> str:
        """Counts in a thread."""
        for number in range(3):
            context.progress(number)
        late.append(context.progress)
        return "done"

    def note(event: ToolEvent) -> None:
        threads.add(threading.get_ident())
        events.append(event)

    async def main() -> int:
        async with ToolExecutor([count], on_event=note) as executor:
            await executor.run([tool_call("c", "count")])
            late[0]("late")
        return threading.get_ident()

    here = anyio.run(main, backend=backend)
    assert threads == {here}
    kinds = [event.value if isinstance(event, ToolProgress) else type(event).__name__ for event in events]
    assert kinds == ["ToolStarted", 0, 1, 2, "ToolFinished"]


# ---- approval


class Said(NamedTuple):
    verdict: Approval
    status: str
    text: str


VERDICTS = [
    Said(Allow(), "done", "slept 0.01"),
    Said(Deny("not on a Sunday"), "denied", "This call was denied: not on a Sunday"),
    Said(Edit({"seconds": 0.02}), "done", "slept 0.02"),
    Said(Edit({"seconds": "two"}), "error", "$.seconds"),
]


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("said", VERDICTS)
def test_approval(backend: str, said: Said, asynchronous: bool) -> None:
    threads: list[int] = []

    def answer(call: ToolCall) -> Approval:
        assert call == tool_call("c0", "sleep", seconds=0.01)
        threads.append(threading.get_ident())
        return said.verdict

    async def answer_later(call: ToolCall) -> Approval:
        await anyio.sleep(1)
        return answer(call)

    async def main() -> ToolExecution:
        hook = answer_later if asynchronous else answer
        (execution,) = await carry_out([sleeper()], naps(0.01), approve=hook)
        return execution

    execution = virtual.run(backend, main) if asynchronous else anyio.run(main, backend=backend)
    assert execution.status == said.status
    assert said.text in execution.result.text
    assert execution.call.arguments == {"seconds": 0.01}, "the history keeps what the model wrote"
    assert execution.edited == (said.verdict.arguments if isinstance(said.verdict, Edit) else None)
    assert (threads == [threading.get_ident()]) == asynchronous, "a hook that may block is asked in a thread"


@pytest.mark.parametrize("value", [object(), "\ud800", float("nan")])
def test_an_edit_without_a_json_form_is_an_error_result(backend: str, value: object) -> None:
    async def main() -> ToolExecution:
        (execution,) = await carry_out([sleeper()], naps(0.01), approve=lambda _: Edit({"seconds": value}))
        return execution

    execution = anyio.run(main, backend=backend)
    assert (execution.status, execution.edited) == ("error", None)
    assert "the edited arguments cannot be written as JSON: seconds " in execution.result.text


def test_approvals_come_one_at_a_time_in_order(backend: str) -> None:
    asked: list[str] = []
    asking = 0

    async def ask(call: ToolCall) -> Approval:
        nonlocal asking
        asking += 1
        assert asking == 1
        asked.append(call.id)
        await anyio.sleep(1)
        asking -= 1
        return Allow()

    executions = virtual.run(backend, lambda: carry_out([sleeper()], naps(3, 2, 1, 0), approve=ask))
    assert statuses(executions) == ["done"] * 4
    assert asked == ["c0", "c1", "c2", "c3"]


def test_checkpoint_after_the_approval(backend: str) -> None:
    """B208: the signal came while somebody was asked; the answer does not count any more."""
    token = CancelToken()

    async def ask(call: ToolCall) -> Approval:
        token.cancel()
        try:
            await anyio.sleep(1)
        except anyio.get_cancelled_exc_class():
            pass  # B216
        return Allow()

    events: list[ToolEvent] = []
    executions = virtual.run(
        backend, lambda: carry_out([sleeper()], naps(1, 1), approve=ask, cancel=token, on_event=events.append)
    )
    assert statuses(executions) == ["not_run", "not_run"]
    assert not any(isinstance(event, ToolStarted) for event in events)


# ---- faults of the caller's own code, which are told and never hang


class Stop(BaseException):
    """As KeyboardInterrupt and SystemExit: it ends the program."""


def broken_hook(call: ToolCall) -> Approval:
    raise LookupError(call.id)


def wrong_answer(call: ToolCall) -> Any:
    del call
    return True


def broken_event(event: ToolEvent) -> None:
    raise LookupError(type(event).__name__)


async def stopping() -> None:
    raise Stop


@pytest.mark.parametrize(
    ("options", "name", "error"),
    [
        ({"approve": broken_hook}, "sleep", LookupError),
        ({"approve": wrong_answer}, "sleep", TypeError),
        ({"on_event": broken_event}, "sleep", LookupError),
        ({}, "stopping", Stop),
    ],
)
def test_faults_that_end_the_turn(backend: str, options: Any, name: str, error: type[BaseException]) -> None:
    """B235: the failure reaches whoever waits."""

    async def main() -> None:
        with anyio.fail_after(10):
            async with ToolExecutor([sleeper(), Tool.from_function(stopping, description="")], **options) as executor:
                arguments = {"seconds": 100} if name == "sleep" else {}
                calls = [tool_call("c0", name, **arguments), tool_call("c1", "sleep", seconds=100)]
                with pytest.raises(error):
                    await executor.run(calls)
                assert len(executor.executions) == 2
                assert all(execution.status != "done" for execution in executor.executions)

    anyio.run(main, backend=backend)


def test_misuse(backend: str) -> None:
    async def main() -> None:
        with pytest.raises(RuntimeError, match="enter the executor"):
            ToolExecutor([sleeper()]).confirm(naps(1))
        async with ToolExecutor([sleeper()]) as executor:
            assert await executor.run([]) == ()
            with pytest.raises(RuntimeError, match="an executor for each turn"):
                await executor.run(naps(1))
            with pytest.raises(RuntimeError, match="after the turn's calls were run"):
                executor.announce(naps(1)[0])
        unentered = ToolExecutor([sleeper()])
        unentered.cancel()
        await unentered.aclose()

    virtual.run(backend, main)
    with pytest.raises(ValueError, match="two tools have the name 'sleep'"):
        ToolExecutor([sleeper(), sleeper()])
    with pytest.raises(ValueError, match="has no function to run"):
        ToolExecutor([Tool(name="x", schema={}, validate=False)])
    with pytest.raises(ValueError, match="max_parallel must be at least 1"):
        ToolExecutor([], max_parallel=0)


def test_calls_after_a_cancel_are_not_run(backend: str) -> None:
    async def main() -> None:
        async with ToolExecutor([sleeper(eager=True)]) as executor:
            executor.cancel()
            executor.announce(naps(1)[0])
            assert statuses(await executor.run(naps(1, 1))) == ["not_run", "not_run"]

    virtual.run(backend, main)


def test_left_from_another_task(backend: str) -> None:
    """B212: no scope is held open, so an executor may be entered in one task and left in another."""

    async def main() -> None:
        executor = ToolExecutor([sleeper()])
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(executor.__aenter__)
        executor.confirm(naps(100))
        await anyio.sleep(1)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(executor.aclose)
        assert statuses(executor.executions) == ["cancelled"]

    virtual.run(backend, main)


def test_a_token_outlives_a_thousand_executors(backend: str) -> None:
    """B220: nothing is left behind on a signal that lives long."""
    token = CancelToken()

    async def main() -> None:
        for _ in range(1000):
            await carry_out([sleeper()], naps(0), cancel=token)
            assert not token._callbacks

    virtual.run(backend, main)
