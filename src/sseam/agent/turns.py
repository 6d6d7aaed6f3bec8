"""What follows from an answer: whether it ends the run, and what of it goes into the history. Pure."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

import msgspec

from .. import stop
from ..context import HistoryMessage, ToolResultMessage, UserMessage
from ..errors import InvalidToolCall, StopReasonError, excerpt
from ..message import Message, ThinkingBlock, ToolCall, Usage
from ..model import ModelDone
from ..tools import ToolResult
from .execution import ToolExecution

__all__ = ["GO_ON", "Next", "accepted", "add_usage", "invalid_call_turn", "is_reportable", "judge", "kept_text"]


class Next(enum.Enum):
    """What follows a turn."""

    ANSWER = "answer"  # it is the answer: the run ends
    TOOLS = "tools"  # its calls are run
    RESEND = "resend"  # the provider paused: everything is sent back as it is
    CONTINUE = "continue"  # the text is kept and the model told to go on


# Every reason that is not here returns the turn to the caller, as an error, and runs no tool.
AFTER: Mapping[str, Next] = MappingProxyType(
    {
        "end_turn": Next.ANSWER,
        "stop_sequence": Next.ANSWER,
        "tool_use": Next.TOOLS,
        "pause_turn": Next.RESEND,
        "compaction": Next.RESEND,
        "max_tokens": Next.CONTINUE,
    }
)

GO_ON = UserMessage(
    "Your answer was cut off by the output limit. Go on exactly where it stopped, without repeating any."
)


def accepted(*, stop_sequences: Collection[str], continues: bool) -> tuple[str, ...]:
    """The reasons beside "end_turn" and "tool_use" that a run can go on from."""
    reasons = ["pause_turn", "compaction"]
    if stop_sequences:
        reasons.append("stop_sequence")
    if continues:
        reasons.append("max_tokens")
    return tuple(reasons)


def judge(done: ModelDone, accept: Collection[str]) -> tuple[Next, Message]:
    """What follows, and the message as it goes into the history.

    Raises StopReasonError, the answer as its `partial`: an end that contradicts the content, that is
    not accepted, or with nothing in it that could be used.
    """
    message, reason = done.message, done.reason
    raw = message.raw_stop_reason or reason
    error = stop.check(reason, raw, len(message.tool_calls), accept)
    if error is not None:
        error.partial = message
        raise error
    following = AFTER[reason]
    if following is Next.RESEND and message.tool_calls:
        raise _unusable(f"stop_reason {raw!r}, but the message holds tool calls, which ask for an answer", done)
    if following is Next.CONTINUE and not message.text.strip():
        raise _unusable(f"stop_reason {raw!r}, and there is no text to go on from", done)
    if following is Next.ANSWER and not message.text.strip():
        refusal = f"; the model declined: {excerpt(message.refusal)}" if message.refusal else ""
        raise _unusable(f"the answer has neither text nor tool calls (stop_reason {raw!r}){refusal}", done)
    message = msgspec.structs.replace(message, stop_reason=reason, complete=True)
    return following, kept_text(message) if following is Next.CONTINUE else message


def _unusable(detail: str, done: ModelDone) -> StopReasonError:
    raw = done.message.raw_stop_reason or done.reason
    return StopReasonError(detail, stop_reason=done.reason, raw_stop_reason=raw, partial=done.message)


def kept_text(message: Message) -> Message:
    """The message without its calls: under an output limit the last one may be cut, closed or not."""
    content = tuple(block for block in message.content if not isinstance(block, ToolCall))
    return msgspec.structs.replace(message, content=content)


def is_reportable(error: InvalidToolCall) -> bool:
    """Whether the call can be answered: it has a name, and an id that no other call of its turn has."""
    calls = error.partial.tool_calls if error.partial is not None else ()
    return bool(error.id and error.name) and error.id not in {call.id for call in calls}


def invalid_call_turn(error: InvalidToolCall, executions: Iterable[ToolExecution]) -> tuple[HistoryMessage, ...]:
    """The turn that failed for a call that cannot be used, as two messages that can be sent.

    The call goes back without its arguments, which no service would take, and its result says what
    was wrong with them. The other calls keep the results that eager tools had by then; what did not
    run says so. Reasoning without proof is left out: it may be cut.
    """
    partial = error.partial or Message()
    kept = (b for b in partial.content if not isinstance(b, ThinkingBlock) or b.signature is not None)
    invalid = ToolCall(id=error.id, name=error.name, arguments={}, arguments_json="{}")
    message = msgspec.structs.replace(
        partial, content=(*kept, invalid), withheld=(), stop_reason="tool_use", raw_stop_reason=None, complete=True
    )
    given = {execution.call.id: execution.result for execution in executions}
    results = [given.get(call.id) or ToolResult.error(call, _NOT_RUN) for call in partial.tool_calls]
    fault = f"The arguments of this call cannot be used: {error.detail}. They were: {excerpt(error.arguments_json)}"
    return message, ToolResultMessage((*results, ToolResult.error(invalid, fault)))


_NOT_RUN = "This call was not run, since another call of the same turn was invalid."


def add_usage(total: Usage, usage: Usage) -> Usage:
    """The sum, field by field; what neither reports stays None. `raw` is left out."""
    return Usage(
        input_tokens=_sum(total.input_tokens, usage.input_tokens),
        output_tokens=_sum(total.output_tokens, usage.output_tokens),
        cache_read_tokens=_sum(total.cache_read_tokens, usage.cache_read_tokens),
        cache_write_tokens=_sum(total.cache_write_tokens, usage.cache_write_tokens),
        reasoning_tokens=_sum(total.reasoning_tokens, usage.reasoning_tokens),
        total_tokens=_sum(total.total_tokens, usage.total_tokens),
    )


def _sum(first: int | None, second: int | None) -> int | None:
    return second if first is None else first if second is None else first + second
