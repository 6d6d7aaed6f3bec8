"""What a run is made of, looked at before it begins."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

import msgspec

from ..context import Context, UserMessage
from ..declared import declare
from ..tools import Tool

__all__ = ["checked_context", "require_client", "tools_by_name"]


def require_client(client: Any) -> None:
    """Raise TypeError for what a run cannot ask."""
    found = client.__name__ if isinstance(client, type) else type(client).__name__
    if isinstance(client, type) or not callable(getattr(client, "stream", None)):
        raise TypeError(f"{found} is no model client: a run asks what has `stream(request)`, such as a BoundModel")
    try:
        inspect.signature(client.stream).bind(None)
    except TypeError:
        raise TypeError(f"{found}.stream takes more than a request. Wrap it: BoundModel(client, model)") from None
    except ValueError:
        return  # a function that tells nothing of its arguments


def checked_context(context: Context | str, tools: Iterable[object]) -> Context:
    """The context of a run, with `tools` in place of its own where there are any.

    Raises TypeError for what is no context and for what is no tool, ValueError for two tools of one name.
    """
    if isinstance(context, str):
        context = Context(messages=(UserMessage(context),))
    if not isinstance(context, Context):  # pyright: ignore[reportUnnecessaryIsInstance]
        found = type(context).__name__
        raise TypeError(f"the context is a {found}, expected text or a Context(messages=(UserMessage(…),))")
    if isinstance(tools, Tool | dict | str | bytes) or callable(tools):
        raise TypeError("tools: expected a list of tools, got a single one")
    given = tuple(tools)
    context = msgspec.structs.replace(context, tools=given) if given else context
    for place, tool in enumerate(context.tools):
        if callable(tool):
            raise _not_a_tool(tool, place)
    declare(context.tools)
    return context


def tools_by_name(tools: Iterable[Tool]) -> dict[str, Tool]:
    """The tools that can be run.

    Raises TypeError for what is no tool, ValueError for one without a function and for two of one name.
    """
    named: dict[str, Tool] = {}
    for place, tool in enumerate(tools):
        if not isinstance(tool, Tool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise _not_a_tool(tool, place)
        if tool.run is None:
            raise ValueError(f"tool {tool.name} has no function to run")
        if tool.name in named:
            raise ValueError(f"two tools have the name {tool.name!r}")
        named[tool.name] = tool
    return named


def _not_a_tool(value: object, place: int) -> TypeError:
    hint = "decorate it with @sseam.tool" if callable(value) else "expected a sseam.Tool"
    return TypeError(f"tools[{place}] is a {type(value).__name__}: {hint}")
