"""Running the calls of one turn: the only place that runs foreign code.

::

    async with ToolExecutor(tools) as executor:
        async for event in sseam.model_events(stream):
            if isinstance(event, ModelToolCall):
                executor.announce(event.call)          # eager tools start here
        message = await stream.message()               # the stop reason was checked
        executions = await executor.run(message.tool_calls)

A call is settled once, in the states of `sseam.agent.execution`; whatever comes of it later is dropped.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self

import msgspec

from .._encode import encode
from .._wait import Signal
from ..errors import InvalidToolCall, ProtocolError, RequestError, Where
from ..message import ToolCall
from ..tools import Problem, Tool, ToolArgumentsError, ToolContext, ToolResult
from .approval import Approve, Deny, Edit, ask
from .cancel import CancelToken
from .checks import tools_by_name
from .execution import (
    STATUSES,
    TRANSITIONS,
    CallLimitError,
    CallState,
    ExecutionStatus,
    ToolEvent,
    ToolExecution,
    ToolFinished,
    ToolProgress,
    ToolStarted,
)
from .job import Home, Job, in_thread, wind_down

__all__ = ["ToolExecutor"]

_NOT_RUN = "This call was not run: the turn was given up before."
_CANCELLED = "This call was cancelled while it ran. What came of it is not known; it may have had effects."


class _Entry:
    """One call on its way."""

    __slots__ = ("answered", "arguments", "call", "context", "edited", "execution", "job", "state", "tool")

    def __init__(self, call: ToolCall, tool: Tool | None, progress: Callable[[_Entry, object], None]) -> None:
        self.call = call
        self.tool = tool
        self.state = CallState.WAITING
        self.arguments: dict[str, Any] = {}
        self.edited: dict[str, Any] | None = None
        self.execution: ToolExecution | None = None
        self.context = ToolContext(call_id=call.id, name=call.name, progress=partial(progress, self))
        self.answered = Signal()  # it was approved or not, and the next call may be asked about
        self.job: Job | None = None  # what is at work for it now


class ToolExecutor:
    """Runs the calls of one turn, each at most once, and gives their results in the order of the calls.

    To be used in the event loop in which it is entered; it may be left from another task. Leaving it
    cancels what still runs and waits for that to wind down.

    Args:
        tools: what may be called. Raises ValueError for one without a function, or two of one name, TypeError for
            what is no `Tool`.
        max_parallel: how many tools may run at once.
        max_calls: how many calls a turn may hold; None for no limit.
        approve: asked before each call; see `sseam.agent.approval`.
        cancel: looked at before each tool, after its approval and after its execution; setting it cancels all.
        on_event: called in the loop's thread when a tool started, reported progress or finished.
        expose_errors: show the model message and traceback of what a tool raises.
    """

    def __init__(
        self,
        tools: Iterable[Tool],
        *,
        max_parallel: int = 8,
        max_calls: int | None = None,
        approve: Approve | None = None,
        cancel: CancelToken | None = None,
        on_event: Callable[[ToolEvent], None] | None = None,
        expose_errors: bool = False,
    ) -> None:
        self._tools = tools_by_name(tools)
        if max_parallel < 1:
            raise ValueError(f"max_parallel must be at least 1, got {max_parallel}")
        self._max_parallel = max_parallel
        self._max_calls = max_calls
        self._approve = approve
        self._token = cancel or CancelToken()
        self._on_event = on_event
        self._expose_errors = expose_errors
        self._entries: dict[str, _Entry] = {}
        self._order: tuple[str, ...] | None = None  # the ids of the whole turn, once it is confirmed
        self._queue: deque[_Entry] = deque()
        self._running: set[_Entry] = set()
        self._all_settled = Signal()
        self._cancelled = False
        self._failure: BaseException | None = None
        self._home: Home | None = None
        self._jobs: list[Job] = []
        self._last_asked: _Entry | None = None
        self._unsubscribe: Callable[[], None] | None = None

    @property
    def executions(self) -> tuple[ToolExecution, ...]:
        """What became of the calls that are settled, in the order of the calls."""
        entries = (self._entries[id] for id in self._order or self._entries)
        return tuple(entry.execution for entry in entries if entry.execution is not None)

    async def __aenter__(self) -> Self:
        self._home = Home()
        self._unsubscribe = self._token.subscribe(self.cancel)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    # ---- the calls

    def announce(self, call: ToolCall) -> None:
        """The stream released this call: that of an eager tool starts, any other waits for `run`.

        Raises:
            InvalidToolCall: another call of this turn has the same id.
            CallLimitError: this is one call too many; those that run are cancelled.
        """
        if self._order is not None:
            raise RuntimeError("a call was announced after the turn's calls were run")
        if call.id not in self._entries:
            self._check_limit(len(self._entries) + 1)
        entry = self._enter(call)
        if entry.tool is not None and entry.tool.eager:
            self._begin(entry)

    async def run(self, calls: Sequence[ToolCall]) -> tuple[ToolExecution, ...]:
        """Runs all calls of the turn, whose stop reason was checked: `confirm` and `results`."""
        self.confirm(calls)
        return await self.results()

    def confirm(self, calls: Sequence[ToolCall]) -> None:
        """The turn ended well and these are its calls: what has not started starts. Once only.

        Nothing of it is started when this raises, and what was is cancelled.

        Raises:
            InvalidToolCall: two calls have the same id.
            CallLimitError: they are more than `max_calls`.
            ProtocolError: a call was announced and is not among them.
        """
        if self._order is not None:
            raise RuntimeError("the calls of this turn were run already; make an executor for each turn")
        self._check_limit(len(calls))
        try:
            self._check_batch(calls)
        except ProtocolError:
            self.cancel()
            raise
        entries = [self._enter(call) for call in calls]
        self._order = tuple(call.id for call in calls)
        self._look_whether_all_settled()
        for entry in entries:
            self._begin(entry)

    async def results(self) -> tuple[ToolExecution, ...]:
        """One execution a call, in the order of the calls, once all are settled.

        Raises what was raised by an approval hook, an event hook, or a tool that wants the program to end.
        """
        await self._all_settled.wait()
        if self._failure is not None:
            raise self._failure
        return self.executions

    def cancel(self) -> None:
        """Settle every call that is not, at once: "cancelled" where the tool runs, else "not_run".

        From any thread. What is running is interrupted and its outcome dropped.
        """
        if self._home is None:
            self._cancelled = True
        else:
            self._home.call(self._cancel)

    async def aclose(self) -> None:
        """`cancel`, and wait for what ran to wind down. From any task; not longer than some seconds."""
        self._cancel()
        if self._unsubscribe is not None:
            self._unsubscribe()
        await wind_down(self._jobs)

    # ---- checks before anything starts

    def _check_limit(self, count: int) -> None:
        if self._max_calls is not None and count > self._max_calls:
            self.cancel()
            raise CallLimitError(
                f"the model made {count} or more tool calls in one turn, and {self._max_calls} are allowed",
                limit=self._max_calls,
            )

    def _check_batch(self, calls: Sequence[ToolCall]) -> None:
        seen: dict[str, ToolCall] = {}
        for call in calls:
            if call.id in seen:
                raise _reused(call)
            seen[call.id] = call
        for id, entry in self._entries.items():
            if id not in seen:
                raise ProtocolError("a tool call was announced that the message does not hold", where=Where(call=id))
            _require_same(entry.call, seen[id])

    def _enter(self, call: ToolCall) -> _Entry:
        known = self._entries.get(call.id)
        if known is not None:
            try:
                _require_same(known.call, call)
            except InvalidToolCall:
                self.cancel()
                raise
            return known
        entry = _Entry(call, self._tools.get(call.name), self._report_progress)
        self._entries[call.id] = entry
        return entry

    def _begin(self, entry: _Entry) -> None:
        if self._home is None:
            raise RuntimeError("enter the executor with 'async with' before calls are run")
        if entry.state is not CallState.WAITING:
            return
        if self._must_stop():
            self._give_up(entry)
            return
        self._move(entry, CallState.CHECKING)
        if entry.tool is None:
            names = ", ".join(sorted(self._tools)) or "none"
            self._settle(entry, "error", f"There is no tool {entry.call.name!r}. The tools are: {names}.")
        elif self._check_arguments(entry, entry.tool, _arguments_json(entry.call)):
            if self._approve is None:
                self._enqueue(entry)
            else:
                before, self._last_asked = self._last_asked, entry
                self._start(entry, partial(self._get_approval, entry, entry.tool, self._approve, before))

    def _check_arguments(self, entry: _Entry, tool: Tool, text: str) -> bool:
        try:
            entry.arguments = tool.arguments(text)
        except ToolArgumentsError as error:
            self._settle(entry, "error", ToolResult.from_exception(entry.call, error))
            return False
        return True

    # ---- one call, in tasks of its own

    def _start(self, entry: _Entry, work: Callable[[], Awaitable[None]]) -> None:
        entry.job = Job(partial(self._guard, entry, work))
        self._jobs.append(entry.job)

    async def _guard(self, entry: _Entry, work: Callable[[], Awaitable[None]]) -> None:
        import anyio

        try:
            await work()
        except anyio.get_cancelled_exc_class():
            self._give_up(entry)
            raise
        except BaseException as error:
            self._fail(error)

    async def _get_approval(self, entry: _Entry, tool: Tool, approve: Approve, before: _Entry | None) -> None:
        try:
            if before is not None:
                await before.answered.wait()
            if not self._goes_on(entry):  # checkpoint: before each tool
                return
            verdict = await ask(approve, entry.call)
        finally:
            entry.answered.set()
        if not self._goes_on(entry):  # checkpoint: after its approval
            return
        match verdict:
            case Deny(reason):
                self._settle(entry, "denied", f"This call was denied: {reason}")
            case Edit(edited):
                self._take_edited(entry, tool, edited)
            case _:
                self._enqueue(entry)

    def _take_edited(self, entry: _Entry, tool: Tool, edited: dict[str, Any]) -> None:
        try:
            text = encode(edited, "the edited arguments").decode()
        except RequestError as error:
            fault = ToolArgumentsError(entry.call.name, [Problem("$", "a JSON object", error.detail)])
            self._settle(entry, "error", ToolResult.from_exception(entry.call, fault))
            return
        entry.edited = edited
        if self._check_arguments(entry, tool, text):
            self._enqueue(entry)

    async def _run_tool(self, entry: _Entry, tool: Tool) -> None:
        if not self._goes_on(entry):  # checkpoint: before each tool
            return
        self._move(entry, CallState.RUNNING)
        self._emit(ToolStarted(entry.call))
        watchdog = self._watch(entry, tool.timeout) if tool.timeout is not None else None
        try:
            await self._call_tool(entry, tool)
        finally:
            if watchdog is not None:
                watchdog.cancel()
            self._release(entry)

    async def _call_tool(self, entry: _Entry, tool: Tool) -> None:
        invoke = partial(tool.invoke, entry.arguments, entry.context)
        status: ExecutionStatus = "done"
        try:
            value = invoke() if tool.is_async else await in_thread(invoke)
            if inspect.isawaitable(value):
                value = await value
            result = ToolResult.from_value(entry.call, value)
        except Exception as error:
            status = "error"
            result = ToolResult.from_exception(entry.call, error, expose_errors=self._expose_errors)
        if self._goes_on(entry):  # checkpoint: after its execution
            self._settle(entry, status, result)

    def _watch(self, entry: _Entry, seconds: float) -> Job:
        watchdog = Job(partial(self._end_in_time, entry, seconds))
        self._jobs.append(watchdog)
        return watchdog

    async def _end_in_time(self, entry: _Entry, seconds: float) -> None:
        """Settle the call when its time is over, and free its place even if the tool does not react."""
        import anyio

        await anyio.sleep(seconds)
        if self._goes_on(entry):
            late = f"This call did not finish within {seconds:g} s and was cancelled. It may have had effects."
            self._settle(entry, "timeout", late)
        if entry.job is not None:
            await wind_down([entry.job])
        self._release(entry)

    # ---- places to run

    def _enqueue(self, entry: _Entry) -> None:
        self._move(entry, CallState.QUEUED)
        self._queue.append(entry)
        self._fill_places()

    def _fill_places(self) -> None:
        """Give places in the order of the queue: exclusive tools alone, nothing overtakes them."""
        while self._queue and len(self._running) < self._max_parallel:
            alone = _is_exclusive(self._queue[0])
            if self._running and (alone or any(map(_is_exclusive, self._running))):
                return
            entry = self._queue.popleft()
            assert entry.tool is not None
            self._running.add(entry)
            self._start(entry, partial(self._run_tool, entry, entry.tool))

    def _release(self, entry: _Entry) -> None:
        self._running.discard(entry)
        self._fill_places()

    # ---- states

    def _move(self, entry: _Entry, state: CallState) -> None:
        assert state in TRANSITIONS[entry.state], f"{entry.state} → {state}"
        entry.state = state

    def _settle(self, entry: _Entry, status: ExecutionStatus, result: ToolResult | str) -> None:
        assert status in STATUSES[entry.state], f"{status} in {entry.state}"
        if isinstance(result, str):
            result = ToolResult.error(entry.call, result)
        self._move(entry, CallState.SETTLED)
        entry.execution = ToolExecution(call=entry.call, status=status, result=result, edited=entry.edited)
        if status in ("cancelled", "timeout"):
            entry.context.cancellation.set()
        self._look_whether_all_settled()
        self._emit(ToolFinished(entry.execution))

    def _look_whether_all_settled(self) -> None:
        if self._order is not None and all(self._entries[id].execution is not None for id in self._order):
            self._all_settled.set()

    def _must_stop(self) -> bool:
        # The token may have been set in another thread, whose word is still on its way to this loop.
        if self._token.cancelled and not self._cancelled:
            self._cancel()
        return self._cancelled

    def _goes_on(self, entry: _Entry) -> bool:
        """A checkpoint: whether the call is still to be carried through."""
        return not self._must_stop() and entry.execution is None

    def _give_up(self, entry: _Entry) -> None:
        if entry.state is CallState.RUNNING:
            self._settle(entry, "cancelled", _CANCELLED)
        elif entry.execution is None:
            self._settle(entry, "not_run", _NOT_RUN)

    def _cancel(self) -> None:
        if self._cancelled:
            return
        self._cancelled = True
        self._queue.clear()
        for entry in list(self._entries.values()):
            self._give_up(entry)
            if entry.job is not None:
                entry.job.cancel()

    def _fail(self, error: BaseException) -> None:
        if self._failure is None:
            self._failure = error
        self._cancel()
        self._all_settled.set()

    # ---- events

    def _emit(self, event: ToolEvent) -> None:
        if self._on_event is not None:
            try:
                self._on_event(event)
            except Exception as error:
                self._fail(error)

    def _report_progress(self, entry: _Entry, value: object) -> None:
        assert self._home is not None

        def report() -> None:
            if entry.execution is None:
                self._emit(ToolProgress(entry.call, value))

        self._home.call(report)


def _is_exclusive(entry: _Entry) -> bool:
    return entry.tool is not None and entry.tool.exclusive


def _arguments_json(call: ToolCall) -> str:
    """The arguments as JSON; the text of a custom tool's call is none."""
    return msgspec.json.encode(call.arguments).decode() if call.kind == "custom" else call.arguments_json


def _require_same(known: ToolCall, call: ToolCall) -> None:
    # A signature may come later than the call, so what is not to be run may differ.
    if (known.name, known.arguments_json, known.arguments) != (call.name, call.arguments_json, call.arguments):
        raise _reused(call)


def _reused(call: ToolCall) -> InvalidToolCall:
    return InvalidToolCall(
        "two different tool calls of one turn have the same id",
        id=call.id,
        name=call.name,
        arguments_json=call.arguments_json,
        reason="duplicate_id",
        where=Where(call=call.id),
    )
