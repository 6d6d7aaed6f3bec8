"""Calls and their results in a history: each call has its result, under ids that a service takes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

import msgspec

from ..context import HistoryMessage, ToolResultMessage
from ..errors import RequestError
from ..message import Block, Message, ToolCall
from ..tools import ToolResult

__all__ = ["NOT_RUN", "IdRule", "answer_calls", "translate_ids", "wire_id", "wire_ids"]

NOT_RUN = "This call was not run, and there is no result."


class IdRule(msgspec.Struct, frozen=True, kw_only=True):
    """Which ids of tool calls a service takes.

    Attributes:
        alphabet: inside of a regular expression's brackets; "" means any character.
        max_length: in characters; 0 means any.
        exact: the length must be `max_length`.
        unique: an id may be used once in the whole conversation, not only once in a turn.
    """

    alphabet: str = ""
    max_length: int = 0
    exact: bool = False
    unique: bool = False

    def accepts(self, id: str) -> bool:
        """Whether the service takes this id."""
        size = self.max_length or len(id)
        fits = len(id) == size if self.exact else len(id) <= size
        return fits and (not self.alphabet or re.fullmatch(f"[{self.alphabet}]+", id) is not None)


def answer_calls(messages: tuple[HistoryMessage, ...]) -> tuple[HistoryMessage, ...]:
    """Every call gets exactly one result, directly behind its message and in the order of the calls.

    Results are looked for up to the next assistant turn. A call without one gets one that says it
    was not run; a result without a call is dropped.

    Raises RequestError where two calls of one message, or two results of one call, have the same id, and where
    a turn has both a call without a result and a result without a call: its id is wrong, and what was done would be
    denied.
    """
    answered: list[HistoryMessage] = []
    for turn, others in _turns(messages):
        given = [message for message in others if isinstance(message, ToolResultMessage)]
        results: dict[str, list[ToolResult]] = {}
        for result in (result for message in given for result in message.results):
            results.setdefault(result.call_id, []).append(result)
        called: set[str] = set()
        _require_known(turn, results)
        # However many turns share the results, one mark of the caller's is one breakpoint: behind the last of them.
        calling = [number for number, message in enumerate(turn) if message.tool_calls]
        marked = calling[-1:] if any(message.cache for message in given) else []
        for number, message in enumerate(turn):
            answered.append(message)
            if calls := _distinct_calls(message):
                called.update(call.id for call in calls)
                own = tuple(_result_of(call, results) for call in calls)
                answered.append(ToolResultMessage(own, cache=number in marked))
        for id in called & results.keys():
            if results[id]:
                raise RequestError(f"there are two results for the tool call {id!r}")
        answered += (message for message in others if not isinstance(message, ToolResultMessage))
    return tuple(answered)


def _require_known(turn: list[Message], results: dict[str, list[ToolResult]]) -> None:
    calls = {call.id: None for message in turn for call in message.tool_calls}
    unknown = [id for id in results if id not in calls]
    missing = [id for id in calls if id not in results]
    # What an aborted turn called was taken from it, and the result is of that.
    if unknown and missing and all(message.complete for message in turn):
        raise RequestError(
            f"there is a result for {unknown[0]!r}, which no tool call before it has as its id",
            hint=f"Without a result there is {', '.join(map(repr, missing))}",
        )


def _turns(messages: tuple[HistoryMessage, ...]) -> Iterator[tuple[list[Message], list[HistoryMessage]]]:
    """Each run of assistant messages with what follows it up to the next run."""
    turn: list[Message] = []
    others: list[HistoryMessage] = []
    for message in messages:
        if not isinstance(message, Message):
            others.append(message)
            continue
        if others:
            yield turn, others
            turn, others = [], []
        turn.append(message)
    yield turn, others


def _distinct_calls(message: Message) -> tuple[ToolCall, ...]:
    seen: set[str] = set()
    for call in message.tool_calls:
        if call.id in seen:
            raise RequestError(f"two tool calls of one message have the id {call.id!r}")
        seen.add(call.id)
    return message.tool_calls


def _result_of(call: ToolCall, results: dict[str, list[ToolResult]]) -> ToolResult:
    found = results.get(call.id)
    if not found:
        return ToolResult.error(call, NOT_RUN)
    return msgspec.structs.replace(found.pop(0), name=call.name)


def translate_ids(messages: tuple[HistoryMessage, ...], rule: IdRule) -> tuple[HistoryMessage, ...]:
    """Ids of calls that the service does not take are replaced, one to one, in call and result alike.

    The new id depends on the old one and on how often it was used before, so it stays the same
    while the history grows. To be applied after `answer_calls`.
    """
    names = wire_ids(messages, rule)
    translated: list[HistoryMessage] = []
    at = -1
    for number, message in enumerate(messages):
        if isinstance(message, Message):
            at = number
            content = tuple(_renamed(block, names[at]) for block in message.content)
            translated.append(msgspec.structs.replace(message, content=content))
        elif isinstance(message, ToolResultMessage):
            results = (msgspec.structs.replace(result, call_id=names[at][result.call_id]) for result in message.results)
            translated.append(msgspec.structs.replace(message, results=tuple(results)))
        else:
            translated.append(message)
    return tuple(translated)


def wire_ids(messages: tuple[HistoryMessage, ...], rule: IdRule) -> dict[int, dict[str, str]]:
    """The translation of the ids of each assistant message, by the message's number."""
    taken: dict[str, int] = {}
    names: dict[int, dict[str, str]] = {-1: {}}
    for number, message in enumerate(messages):
        if isinstance(message, Message):
            in_turn: dict[str, int] = {}
            names[number] = {
                call.id: wire_id(call.id, rule, taken if rule.unique else in_turn) for call in message.tool_calls
            }
    return names


def _renamed(block: Block, names: dict[str, str]) -> Block:
    return msgspec.structs.replace(block, id=names[block.id]) if isinstance(block, ToolCall) else block


def wire_id(id: str, rule: IdRule, taken: dict[str, int]) -> str:
    """`id`, or the first id made from it that the rule accepts and that is not `taken`; it is then added to these.

    Made ids depend on `id` and on which are taken, so equal histories give equal ids.

    Args:
        taken: the ids that were given away, each with the number of ids that were tried in its place.
    """
    candidate, attempt = id, taken.get(id, 0)
    while candidate in taken or not rule.accepts(candidate):
        candidate = _minted(id, attempt, rule)
        attempt += 1
    taken[id] = attempt
    taken.setdefault(candidate, 0)
    return candidate


def _minted(id: str, attempt: int, rule: IdRule) -> str:
    digest = hashlib.sha256(f"{attempt}:{id}".encode()).hexdigest()
    if rule.exact:
        return digest[: rule.max_length]
    readable = re.sub(f"[^{rule.alphabet}]", "", id) if rule.alphabet else id
    length = max((rule.max_length or 64) - 13, 0)
    return f"{readable[:length]}_{digest[:12]}"
