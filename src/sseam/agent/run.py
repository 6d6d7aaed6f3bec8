"""An agent: a model and its tools in a loop, under asyncio or trio.

::

    async with sseam.run_agent(client, "What is the weather in Oslo?", tools=[weather]) as run:
        async for event in run:
            ...
        result = await run.result()

The run works in a task of its own, which no scope of the caller's encloses: it may be iterated,
cancelled and left from any task. It goes at the pace of its reader.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Generator, Iterable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeAlias, TypedDict, Unpack

from .._wait import Signal
from ..context import Context, Model, Options
from ..errors import SseamError
from ..events import Event
from ..model import ModelEvent
from .approval import Approve
from .cancel import CancelToken
from .checks import checked_context, require_client
from .execution import ToolExecution
from .job import Home, Job, wind_down
from .loop import (
    AgentEvent,
    AgentResult,
    Loop,
    ModelRequest,
    RunCancelled,
    RunReport,
    RunSettings,
)
from .outbox import Outbox

if TYPE_CHECKING:
    from ..client import AsyncClient, Client

__all__ = [
    "AgentRun",
    "BoundModel",
    "ModelClient",
    "ModelStream",
    "RunOptions",
    "RunTimeout",
    "run_agent",
    "run_agent_sync",
]

_AsyncEvents: TypeAlias = AsyncIterable[Event] | AsyncIterable[ModelEvent]
_Events: TypeAlias = Iterable[Event] | Iterable[ModelEvent]

ModelStream: TypeAlias = (
    _AsyncEvents | AbstractAsyncContextManager[_AsyncEvents] | _Events | AbstractContextManager[_Events]
)
"""What a client may answer with: atomic events, or fine ones, from which the atomic ones are made. A context manager
is entered and left. What is not async is read in threads."""


class ModelClient(Protocol):
    """All that a loop knows of a model."""

    def stream(self, request: ModelRequest) -> ModelStream:
        """The answer to a request. Its last event is a `ModelDone` or `Done`; what is wrong is raised."""
        ...


class BoundModel:
    """A `ModelClient` that asks one model over HTTP, through an `AsyncClient` or a `Client`.

    Args:
        client, model: what is asked, and how.
        key: the key for the model's service; without it the model's environment variables are looked at.
    """

    def __init__(self, client: AsyncClient | Client, model: Model, *, key: str | None = None) -> None:
        if not isinstance(model, Model):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"BoundModel takes a client and a model, such as sseam.models.anthropic(…), not {model!r}")
        self._client = client
        self._model = model
        self._key = key

    def stream(self, request: ModelRequest) -> ModelStream:
        """The answer in fine events."""
        return self._client.stream(self._model, request.context, request.options, accept=request.accept, key=self._key)


class RunTimeout(SseamError):
    """The run took longer than it may.

    Attributes:
        seconds: how long it was allowed to take.
    """

    kind = "run"

    def __init__(self, detail: str, *, seconds: float = 0.0, **common: Any) -> None:
        super().__init__(detail, **common)
        self.seconds = seconds


class RunOptions(TypedDict, total=False):
    """The keyword arguments of `run_agent` and `run_agent_sync`."""

    options: Options
    max_turns: int
    max_calls: int | None
    max_parallel: int
    approve: Approve | None
    on_invalid_call: Literal["raise", "report"]
    on_max_tokens: Literal["raise", "continue"]
    timeout: float | None
    cancel: CancelToken | None
    expose_errors: bool


class AgentRun:
    """A run of an agent. Made by `run_agent`; it begins when it is entered.

    Iterating gives the events of the whole run, each delivered once, and raises what the run failed
    with; `result()` waits for the answer whether or not anybody iterates. Leaving the `with` cancels
    what is not over. `await run` does all of it without events.

    After a cancel nothing is handed out any more. What the history then holds is in `context`.
    """

    def __init__(self, client: ModelClient, context: Context, settings: RunSettings) -> None:
        self._settings = settings
        self._token = CancelToken()
        self._outbox: Outbox[AgentEvent] = Outbox()
        self._loop = Loop(client, context, settings, self._token, self._outbox)
        self._over = Signal()
        self._result: AgentResult | None = None
        self._error: BaseException | None = None
        self._traceback: TracebackType | None = None
        self._home: Home | None = None
        self._jobs: list[Job] = []
        self._unsubscribe: Callable[[], None] | None = None

    @property
    def context(self) -> Context:
        """The conversation with everything that was committed by now. It can be sent at any time."""
        return self._loop.context

    @property
    def executions(self) -> tuple[ToolExecution, ...]:
        """The calls of the turn that is under way, or was the last, as far as they are settled."""
        return self._loop.executions

    async def __aenter__(self) -> Self:
        if self._home is not None:
            raise RuntimeError("a run is entered once; make another one with run_agent")
        self._home = Home()
        self._jobs.append(Job(self._main))
        if self._settings.timeout is not None:
            self._jobs.append(Job(partial(self._watch, self._settings.timeout)))
        if self._settings.cancel is not None:
            self._unsubscribe = self._settings.cancel.subscribe(self.cancel)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __await__(self) -> Generator[Any, Any, AgentResult]:
        return self._run_through().__await__()

    async def _run_through(self) -> AgentResult:
        async with self:
            return await self.result()

    def __aiter__(self) -> Self:
        self._require_entered()
        return self

    async def __anext__(self) -> AgentEvent:
        event = await self._outbox.take()
        if self._token.cancelled:
            # Perhaps in another thread, whose word is still on its way to this loop.
            self._abort(RunCancelled("the run was cancelled"))
        if event is None or isinstance(self._error, RunCancelled):
            self._raise_failure()
            raise StopAsyncIteration
        return event

    async def result(self) -> AgentResult:
        """The answer. Where nobody has begun to iterate, the events are dropped.

        Raises what the run failed with: `RunCancelled`, `RunTimeout`, `TurnLimitError`, `CallLimitError`,
        what the client raised, or what a hook raised. The `run` of a `SseamError` is a `RunReport`.
        """
        self._require_entered()
        self._outbox.release()
        await self._over.wait()
        self._raise_failure()
        assert self._result is not None
        return self._result

    def cancel(self) -> None:
        """Give up, from any task or thread: what waits is interrupted, and nothing more is committed.

        Only when the model's message was accepted already it is kept, each of its calls with a result
        that says what became of it.
        """
        self._token.cancel()
        if self._home is not None:
            self._home.call(partial(self._abort, RunCancelled("the run was cancelled")))

    async def aclose(self) -> None:
        """Give up, if the run is not over, and wait for what still runs; not longer than some seconds."""
        if self._home is not None:
            self._abort(RunCancelled("the run was left before its end"))
            await wind_down(self._jobs)

    def _require_entered(self) -> None:
        if self._home is None:
            raise RuntimeError("enter the run with 'async with', or await it as a whole")

    def _raise_failure(self) -> None:
        # Every waiter raises the same object; without this it would gather the traceback of each.
        if self._error is not None:
            raise self._error.with_traceback(self._traceback)

    # ---- in tasks of their own

    async def _main(self) -> None:
        import anyio

        try:
            result = await self._loop.run()
        except anyio.get_cancelled_exc_class():
            self._settle(None, RunCancelled("the run was cancelled from within"))
            raise
        except BaseException as error:
            self._settle(None, error)
        else:
            self._settle(result, None)

    async def _watch(self, seconds: float) -> None:
        import anyio

        await anyio.sleep(seconds)
        self._abort(RunTimeout(f"the run took longer than {seconds:g} s", seconds=seconds))

    def _abort(self, error: SseamError) -> None:
        if self._over.is_set:
            return
        self._token.cancel()
        self._settle(None, error)

    def _settle(self, result: AgentResult | None, error: BaseException | None) -> None:
        """End the run with the first outcome there is."""
        if self._over.is_set:
            return
        self._result = result
        if error is not None:
            self._loop.abandon()
            _tell(error, self._loop.report())
            self._error, self._traceback = error, error.__traceback__
        self._outbox.close()
        if self._unsubscribe is not None:
            self._unsubscribe()
        self._over.set()
        for job in self._jobs:
            job.cancel()


def _tell(error: BaseException, report: RunReport) -> None:
    """Put what the run had done by then on the error, and what its tools did into its text."""
    if isinstance(error, SseamError):
        error.run = report
    for execution in report.executions:
        call = execution.call
        error.add_note(f"tool call {call.id!r} ({call.name}): {execution.status}: {execution.result.text[:200]}")


def run_agent(
    client: ModelClient, context: Context | str, *, tools: Iterable[object] = (), **options: Unpack[RunOptions]
) -> AgentRun:
    """A run that asks the model, runs the tools that it calls, and asks again until it answers.

    Args:
        client: the model, such as `BoundModel(sseam.AsyncClient(), model)`.
        context: the conversation, or the user's first message.
        tools: what the model may call: `Tool` objects, which are run here, and dicts, which are only sent.
            With any, they take the place of those of the context.
        options: for every request. A `tool_choice` that demands a call holds until calls were made.
        max_turns: how many turns may be committed.
        max_calls: how many calls one turn may hold, None for no limit; checked before any starts.
        max_parallel: how many tools may run at once.
        approve: asked before each call; see `sseam.agent.approval`.
        on_invalid_call: "report": an `InvalidToolCall` goes back to the model, three times in a row at most.
        on_max_tokens: "continue": an answer cut off by the output limit keeps its text, loses its calls, and the
            model is told to go on.
        timeout: seconds that the run may take.
        cancel: a token that cancels the run when it is set.
        expose_errors: show the model message and traceback of what a tool raises.

    An `OutputProtocolViolation` of the client's discards the answer and asks again, three times in a row at most.

    Raises ValueError for arguments that make no sense, and TypeError for those of another type. Needs anyio (extra
    "agent").
    """
    require_client(client)
    return AgentRun(client, checked_context(context, tools), RunSettings(**options))


def run_agent_sync(
    client: ModelClient,
    context: Context | str,
    *,
    tools: Iterable[object] = (),
    on_event: Callable[[AgentEvent], object] | None = None,
    **options: Unpack[RunOptions],
) -> AgentResult:
    """`run_agent` for code that is not async: runs an event loop until the answer is there.

    Meant for a client that is not async either. A client that holds connections of an event loop of
    its own cannot be used in this one.

    Args:
        on_event: called with every event. What it raises ends the run.

    Raises RuntimeError where an event loop is running already, otherwise as `AgentRun.result`.
    """
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise RuntimeError("run_agent_sync runs an event loop, and one is running here: use `await run_agent(…)`")

    async def main() -> AgentResult:
        async with run_agent(client, context, tools=tools, **options) as run:
            if on_event is not None:
                async for event in run:
                    on_event(event)
            return await run.result()

    return asyncio.run(main())
