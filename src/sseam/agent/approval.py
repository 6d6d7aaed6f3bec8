"""What may be said about a tool call before it runs."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeAlias

import msgspec

from ..message import ToolCall
from .job import in_thread

__all__ = ["Allow", "Approval", "Approve", "Deny", "Edit", "ask"]


class Allow(msgspec.Struct, frozen=True):
    """The call runs as it is."""


class Deny(msgspec.Struct, frozen=True):
    """The call does not run; the model is told the reason."""

    reason: str = "the user said no"


class Edit(msgspec.Struct, frozen=True):
    """The call runs with these arguments, which are checked as the model's own were.

    The history keeps the call as the model made it.
    """

    arguments: dict[str, Any]


Approval: TypeAlias = Allow | Deny | Edit

Approve: TypeAlias = Callable[[ToolCall], Approval | Awaitable[Approval]]
"""Asked before each call, one at a time and in the order of the calls. A plain function is called in a thread, since
it may wait for somebody's answer."""


async def ask(approve: Approve, call: ToolCall) -> Approval:
    """The hook's answer. Raises what the hook raises, and TypeError for an answer that is none."""
    answer = approve(call) if _is_async(approve) else await in_thread(partial(approve, call))
    verdict = await answer if inspect.isawaitable(answer) else answer
    if not isinstance(verdict, Allow | Deny | Edit):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"an approval hook answers Allow, Deny or Edit, not {type(verdict).__name__}")
    return verdict


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)
