"""The loop of an agent: turn after turn until there is an answer.

A turn is committed as a whole, the model's message together with the results of its calls, so the
history can be sent at any time. The six checkpoints are marked where they stand; those of the calls
(before, after approval, after execution) are in `execute.py`.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from .. import release
from ..context import Context, HistoryMessage, Options, ToolResultMessage
from ..errors import InvalidToolCall, OutputProtocolViolation, SseamError, TruncatedStream
from ..events import Event
from ..message import Message, Usage
from ..model import ModelDone, ModelEvent, ModelText, ModelToolCall, advance
from ..tools import Tool
from .approval import Approve
from .cancel import CancelToken
from .execute import ToolExecutor
from .execution import ToolEvent, ToolExecution
from .opened import opened
from .outbox import Outbox
from .turns import GO_ON, Next, accepted, add_usage, invalid_call_turn, is_reportable, judge

__all__ = [
    "AgentEvent",
    "AgentResult",
    "Loop",
    "ModelRequest",
    "RunCancelled",
    "RunReport",
    "RunSettings",
    "TurnCommitted",
    "TurnDiscarded",
    "TurnLimitError",
    "TurnStarted",
]

# How often in a row an answer is asked for again, or an invalid call reported back.
MAX_AGAIN = 3


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a loop asks of a model.

    Attributes:
        context: the conversation and the tools.
        options: what else is asked for.
        accept: the stop reasons that the loop can go on from, besides "end_turn" and "tool_use".
    """

    context: Context
    options: Options = Options()
    accept: tuple[str, ...] = ()


class RunSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a run goes on; see `run_agent`. Raises ValueError for what makes no sense."""

    options: Options = Options()
    max_turns: int = 32
    max_calls: int | None = None
    max_parallel: int = 8
    approve: Approve | None = None
    on_invalid_call: Literal["raise", "report"] = "raise"
    on_max_tokens: Literal["raise", "continue"] = "raise"
    timeout: float | None = None
    cancel: CancelToken | None = None
    expose_errors: bool = False

    def __post_init__(self) -> None:
        for name in ("max_turns", "max_parallel"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name, values in (("on_invalid_call", ("raise", "report")), ("on_max_tokens", ("raise", "continue"))):
            if getattr(self, name) not in values:
                raise ValueError(f"{name} must be one of {values}, got {getattr(self, name)!r}")
        if self.timeout is not None and not self.timeout > 0:
            raise ValueError(f"timeout must be more than 0 seconds, got {self.timeout}")


class AgentResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a run came to.

    Attributes:
        message: the model's last message.
        text: the text of the answer; more than that of `message` where the answer was paused or continued.
        context: the conversation with everything that was committed: store it (`Context.to_json`), or go on from it.
        turns: how many turns were committed.
        usage: the tokens of all requests, those of discarded answers included, as far as they were reported.
        requests: how many requests were made; unmetered: how many of them reported no tokens.
    """

    message: Message
    text: str
    context: Context
    turns: int
    usage: Usage
    requests: int
    unmetered: int


class RunReport(msgspec.Struct, frozen=True, kw_only=True):
    """How far a run came that ended without an answer. It is the `run` of the error.

    Attributes:
        context: the conversation with everything that was committed; it can be sent.
        turn: the number of the turn in which the run ended, from 1.
        executions: the calls of this turn: which ran, which finished and with what.
        usage, requests, unmetered: as in `AgentResult`.
    """

    context: Context
    turn: int
    executions: tuple[ToolExecution, ...] = ()
    usage: Usage = Usage()
    requests: int = 0
    unmetered: int = 0


class RunCancelled(SseamError):
    """The run was given up by its caller: `cancel`, a token, or leaving it before its end."""

    kind = "run"


class TurnLimitError(SseamError):
    """There was no answer within the turns that were allowed. The history can be continued.

    Attributes:
        limit: how many turns were allowed.
    """

    kind = "turn limit"

    def __init__(self, detail: str, *, limit: int = 0, **common: Any) -> None:
        super().__init__(detail, **common)
        self.limit = limit


class _TurnEvent(msgspec.Struct, frozen=True, tag=True):
    pass


class TurnStarted(_TurnEvent, frozen=True):
    """A request is made for turn `turn`, counted from 1. After a discarded answer it comes again."""

    turn: int


class TurnDiscarded(_TurnEvent, frozen=True):
    """The answer cannot be used and is asked for again: what was shown of it is void."""

    turn: int
    error: SseamError


class TurnCommitted(_TurnEvent, frozen=True):
    """These messages were added to the history: the model's, then the results of its calls."""

    turn: int
    messages: tuple[HistoryMessage, ...]


AgentEvent: TypeAlias = Event | ModelEvent | ToolEvent | TurnStarted | TurnDiscarded | TurnCommitted


class Loop:
    """One run of an agent, to be driven by `run` in one task.

    `abandon` may be called at any moment in the same thread; after it nothing is committed any more.
    """

    def __init__(
        self, client: Any, context: Context, settings: RunSettings, token: CancelToken, outbox: Outbox[AgentEvent]
    ) -> None:
        self._client = client
        self._context = context
        self._settings = settings
        self._token = token
        self._outbox = outbox
        self._options = settings.options
        self._accept = accepted(
            stop_sequences=settings.options.stop_sequences, continues=settings.on_max_tokens == "continue"
        )
        self._tools = [tool for tool in context.tools if isinstance(tool, Tool)]
        self._history = list(context.messages)
        self._make_executor()  # a tool that cannot be run is found here and not in the first turn
        self._turn = 0
        self._executor: ToolExecutor | None = None
        self._answered: Message | None = None  # accepted; to be committed with the results of its calls
        self._abandoned = False
        self._discarded = self._reported = 0  # in a row
        self._text: list[str] = []  # of an answer that was paused or continued
        self._usage = Usage()
        self._requests = self._unmetered = 0

    @property
    def context(self) -> Context:
        """The conversation with everything that was committed."""
        return msgspec.structs.replace(self._context, messages=tuple(self._history))

    @property
    def executions(self) -> tuple[ToolExecution, ...]:
        """The calls of the turn that is under way, or was the last, as far as they are settled."""
        return self._executor.executions if self._executor is not None else ()

    def report(self) -> RunReport:
        """How far it came."""
        return RunReport(
            context=self.context,
            turn=self._turn,
            executions=self.executions,
            usage=self._usage,
            requests=self._requests,
            unmetered=self._unmetered,
        )

    def abandon(self) -> None:
        """Settle the calls of this turn, and commit it if its message was accepted. Nothing comes after."""
        if self._executor is not None and not self._abandoned:
            self._executor.cancel()
            self._commit_with_results(self._executor.executions)
        self._abandoned = True

    async def run(self) -> AgentResult:
        """The answer. Raises what keeps it from coming."""
        while True:
            await self._outbox.flush()
            self._check()  # checkpoint: before a turn
            limit = self._settings.max_turns
            if self._turn == limit:
                raise TurnLimitError(f"no answer came within {limit} turn(s)", limit=limit)
            result = await self._take_turn()
            if result is not None:
                return result

    def _check(self) -> None:
        if self._token.cancelled:
            raise RunCancelled("the run was cancelled")

    # ---- one turn

    async def _take_turn(self) -> AgentResult | None:
        self._turn += 1
        self._requests += 1
        self._executor = self._make_executor()
        self._outbox.put(TurnStarted(self._turn))
        async with self._executor as executor:
            try:
                return await self._carry_through(executor)
            except BaseException:
                self.abandon()
                raise

    def _make_executor(self) -> ToolExecutor:
        settings = self._settings
        return ToolExecutor(
            self._tools,
            max_parallel=settings.max_parallel,
            max_calls=settings.max_calls,
            approve=settings.approve,
            cancel=self._token,
            on_event=self._outbox.put,
            expose_errors=settings.expose_errors,
        )

    async def _carry_through(self, executor: ToolExecutor) -> AgentResult | None:
        try:
            done = await self._read(executor)
            await self._outbox.flush()
            self._check()  # checkpoint: between the end of the stream and the commit
        except OutputProtocolViolation as error:
            self._count_usage(error.partial)
            return self._discard(error, executor)
        except InvalidToolCall as error:
            self._count_usage(error.partial)
            await self._outbox.flush()
            self._check()
            return self._report_invalid(error, executor)
        except SseamError as error:
            self._count_usage(error.partial)
            raise
        self._count_usage(done.message)
        self._discarded = self._reported = 0
        return await self._follow(done, executor)

    async def _follow(self, done: ModelDone, executor: ToolExecutor) -> AgentResult | None:
        following, message = judge(done, self._accept)
        if following is Next.TOOLS:
            executor.confirm(message.tool_calls)
            self._answered = message
            self._text.clear()
            self._commit_with_results(await executor.results())
            self._relax_tool_choice()
            return None
        self._text.append(message.text)
        if following is Next.CONTINUE:
            executor.cancel()
            self._commit(message, GO_ON)
            return None
        self._commit(message)
        return self._result(message) if following is Next.ANSWER else None

    async def _read(self, executor: ToolExecutor) -> ModelDone:
        """The end of the answer, whose events were handed on and whose eager calls were started."""
        context = msgspec.structs.replace(self._context, messages=tuple(self._history))
        request = ModelRequest(context=context, options=self._options, accept=self._accept)
        pending = release.Pending()
        async with opened(self._client.stream(request)) as stream:
            async for event in stream:
                self._check()  # checkpoint: after each event
                if isinstance(event, ModelText | ModelToolCall | ModelDone):
                    atomic = [event]
                else:
                    pending, atomic = advance(pending, event)
                self._outbox.put(event)
                for one in atomic:
                    if isinstance(one, ModelToolCall):
                        executor.announce(one.call)
                        await self._outbox.give_way()  # it starts now, and not when the stream next waits
                    elif isinstance(one, ModelDone):
                        return one
                await self._outbox.room()
        raise TruncatedStream("the model's stream ended without its last event")

    # ---- what becomes of it

    def _discard(self, error: OutputProtocolViolation, executor: ToolExecutor) -> None:
        self._discarded += 1
        if self._discarded > MAX_AGAIN:
            raise error
        executor.cancel()
        self._outbox.put(TurnDiscarded(self._turn, error))
        self._turn -= 1

    def _report_invalid(self, error: InvalidToolCall, executor: ToolExecutor) -> None:
        self._reported += 1
        reports = self._settings.on_invalid_call == "report" and is_reportable(error)
        if not reports or self._reported > MAX_AGAIN:
            raise error
        executor.cancel()
        self._commit(*invalid_call_turn(error, executor.executions))

    def _commit_with_results(self, executions: tuple[ToolExecution, ...]) -> None:
        """Once only: when the results are there, or when the run is abandoned before."""
        message, self._answered = self._answered, None
        if message is not None:
            self._commit(message, ToolResultMessage(tuple(execution.result for execution in executions)))

    def _commit(self, *messages: HistoryMessage) -> None:
        self._history += messages
        self._outbox.put(TurnCommitted(self._turn, messages))

    def _relax_tool_choice(self) -> None:
        # A call was asked for and made; asked for again, there would never be an answer.
        if self._options.tool_choice not in (None, "auto", "none"):
            self._options = msgspec.structs.replace(self._options, tool_choice=None)

    def _result(self, message: Message) -> AgentResult:
        return AgentResult(
            message=message,
            text="".join(self._text),
            context=self.context,
            turns=self._turn,
            usage=self._usage,
            requests=self._requests,
            unmetered=self._unmetered,
        )

    def _count_usage(self, message: Message | None) -> None:
        usage = message.usage if message is not None else Usage()
        known = msgspec.structs.replace(usage, raw={})
        self._unmetered += known == Usage()
        self._usage = add_usage(self._usage, known)
