"""Tool calls: their ids, what their arguments make of them, and those that must not be run."""

from __future__ import annotations

from typing import Any

import msgspec

from .. import release, toolargs
from .._persistent import Index
from ..errors import InvalidToolCall, ProtocolError, Where
from ..events import Event, ToolCallWithheld
from ..message import ToolCall, WithheldCall
from .state import Head, Part, Settings, State, Step, W, focus, parts, refocus, set_head

__all__ = [
    "claim",
    "invalid",
    "is_released",
    "make_call",
    "require_valid",
    "same_input",
    "server_input",
    "withheld_call",
    "withhold_unreleased",
]


def claim(head: Head, index: int, key: int | str, fields: dict[str, Any]) -> Index[str]:
    """The call ids with this call's own, which must be new."""
    id, name = fields["id"], fields["name"]
    where = Where(block=key, call=id or None)
    if not id.strip() or not name.strip():
        detail = f"tool_use block {key} has no {'name' if id.strip() else 'id'}"
        raise InvalidToolCall(detail, id=id, name=name, reason="unnamed", where=where)
    if head.call_ids.get(id) is not None:
        raise InvalidToolCall(f"tool id {id} used twice", id=id, name=name, reason="duplicate_id", where=where)
    return head.call_ids.add(id, index)


def make_call(part: Part, settings: Settings) -> ToolCall | toolargs.BadArguments:
    """The call that an ended block makes.

    No fragment arrived: the input given at the start stands. Any arrived: their joined text is the
    truth; a blank one means no arguments, unless the declared tool cannot do without.
    """
    fields = part.fields
    text = part.text
    if fields.get("custom"):
        arguments: dict[str, Any] | toolargs.BadArguments = {"input": text}
    elif not part.arrived and fields.get("input") is not None:
        arguments = toolargs.inspect(fields["input"]) or fields["input"]
        text = "" if isinstance(arguments, toolargs.BadArguments) else msgspec.json.encode(arguments).decode()
    elif not text.strip():
        arguments, text = {}, "{}"
    else:
        arguments = toolargs.parse(text)
    if isinstance(arguments, toolargs.BadArguments):
        return arguments
    tool = settings.tools.get(fields["name"])
    if tool is None and settings.tools and not fields.get("toolset"):
        return toolargs.BadArguments(
            "undeclared", f"the tool is not declared; declared are {', '.join(sorted(settings.tools))}"
        )
    if not arguments and tool is not None and tool.required:
        return toolargs.BadArguments("empty", f"the tool requires {', '.join(tool.required)}")
    return ToolCall(
        id=fields["id"],
        name=fields["name"],
        arguments=arguments,
        arguments_json=text,
        signature=fields.get("signature"),
        kind="custom" if fields.get("custom") else "function",
        extra=fields.get("extra", {}),
    )


_FAULT_TEXTS = {
    "not_object": "tool_use block {} returned non-object input",
    "duplicate_key": "tool_use block {} has a key twice in its input",
    "empty": "tool_use block {} has no input",
    "undeclared": "tool_use block {} calls an undeclared tool",
}


def invalid(part: Part, fault: toolargs.BadArguments) -> InvalidToolCall:
    text = _FAULT_TEXTS.get(fault.reason, "tool_use block {} had invalid input_json_delta JSON")
    id, name = part.fields["id"], part.fields["name"]
    return InvalidToolCall(
        text.format(part.key),
        id=id,
        name=name,
        arguments_json=part.text,
        reason=fault.reason,
        where=Where(block=part.key, call=id),
        hint=f"Call of {name!r}: {fault.detail}",
    )


def same_input(part: Part) -> bool:
    """Whether the deltas of a call gave what its start gave already."""
    return toolargs.parse(part.text) == part.fields["input"]


def server_input(part: Part) -> dict[str, Any]:
    """The input of an ended block of a server-run tool. Raises `ProtocolError` for bad JSON."""
    arguments = toolargs.parse(part.text)
    if isinstance(arguments, toolargs.BadArguments):
        raise ProtocolError(
            f"{part.wire} block {part.key} had invalid input_json_delta JSON",
            where=Where(block=part.key),
            hint=arguments.detail,
        )
    return arguments


def require_valid(state: State[Any]) -> None:
    """Raise the `InvalidToolCall` of the first call that ended and cannot be used."""
    if state.head.fault is not None:
        for part in parts(state):
            if part.fault is not None:
                raise invalid(part, part.fault)


def is_released(part: Part, head: Head) -> bool:
    return part.started_at_end is not None and release.is_released(part.started_at_end, head.started)


def withheld_call(part: Part) -> WithheldCall:
    fields = part.fields
    if "withheld" in fields:
        return fields["withheld"]
    if isinstance(part.block, ToolCall):
        text, reason = part.block.arguments_json, "unreleased"
    else:
        text, reason = part.text, "invalid" if part.ended else "open"
    return WithheldCall(id=fields["id"], name=fields["name"], arguments_json=text, reason=reason, index=part.index)


def withhold_unreleased(state: State[W]) -> Step[W]:
    """Take back every call that has ended and is not released: it will not be one."""
    events: list[Event] = []
    for part in list(parts(state)):
        if isinstance(part.block, ToolCall) and not is_released(part, state.head):
            withheld = withheld_call(part)
            gone = msgspec.structs.replace(part, block=None, fields={**part.fields, "withheld": withheld})
            state = set_head(refocus(focus(state, part.index), gone), calls=state.head.calls - 1)
            events.append(ToolCallWithheld(part.index, withheld))
    return state, tuple(events)
