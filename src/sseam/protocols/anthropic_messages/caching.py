"""Cache breakpoints of a finished body: placing them, and counting them where they really are.

Source: the provider's page on prompt caching, read 2026-11-29.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias, cast

from ...context import CachePolicy
from ...errors import RequestError

__all__ = ["MAX_BREAKPOINTS", "CacheControl", "cache_control", "check_breakpoints", "place_breakpoints"]

CacheControl: TypeAlias = dict[str, str]

MAX_BREAKPOINTS = 4

_NO_BREAKPOINT = frozenset({"thinking", "redacted_thinking", "fallback", "mcp_tool_listing"})


def cache_control(policy: CachePolicy) -> CacheControl:
    """The mark itself. One lifetime for all of them: longer ones must not come behind shorter ones."""
    if policy.retention is None:
        return {"type": "ephemeral"}
    return {"type": "ephemeral", "ttl": "1h" if policy.retention == "long" else "5m"}


def place_breakpoints(body: dict[str, Any], policy: CachePolicy) -> dict[str, Any]:
    """The body with breakpoints at the end of the last user message, of the system prompt and of the tools.

    In that order of importance, as far as the caller's own leave room; a place that has one keeps it. Where the caller
    asked for the automatic breakpoint, or for none, the body stays as it is.
    """
    if not policy.breakpoints or "cache_control" in body:
        return body
    control = cache_control(policy)
    room = MAX_BREAKPOINTS - sum(1 for _ in _breakpoints(body))
    body = {**body}
    for place in (_in_last_user_message, _in_system, _in_tools):
        if room > 0 and place(body, control):
            room -= 1
    return body


def _in_last_user_message(body: dict[str, Any], control: CacheControl) -> bool:
    messages = cast("list[dict[str, Any]]", body["messages"])
    at = next((number for number in reversed(range(len(messages))) if messages[number]["role"] == "user"), None)
    if at is None or not isinstance(messages[at]["content"], list):
        return False
    content = list(messages[at]["content"])
    if not _mark_last(content, control):
        return False
    body["messages"] = [*messages[:at], {**messages[at], "content": content}, *messages[at + 1 :]]
    return True


def _in_system(body: dict[str, Any], control: CacheControl) -> bool:
    return _in_list(body, "system", control)


def _in_tools(body: dict[str, Any], control: CacheControl) -> bool:
    return _in_list(body, "tools", control)


def _in_list(body: dict[str, Any], field: str, control: CacheControl) -> bool:
    if not isinstance(body.get(field), list):
        return False
    entries = list(body[field])
    if not _mark_last(entries, control):
        return False
    body[field] = entries
    return True


def _mark_last(entries: list[dict[str, Any]], control: CacheControl) -> bool:
    """Marks the last entry that may carry a breakpoint; False where none may, or it has one."""
    for number in reversed(range(len(entries))):
        entry = entries[number]
        if entry.get("type") in _NO_BREAKPOINT or entry.get("defer_loading") or entry.get("text") == "":
            continue
        if "cache_control" in entry:
            return False
        entries[number] = {**entry, "cache_control": control}
        return True
    return False


def check_breakpoints(body: dict[str, Any]) -> None:
    """Raises RequestError, naming the places, for what the API refuses, judged on the blocks as they are sent:

    more breakpoints than it takes, and one that lives longer behind one that lives shorter.
    """
    marks = list(_breakpoints(body))
    if len(marks) > MAX_BREAKPOINTS:
        places = ", ".join(path for path, _ in marks)
        raise RequestError(f"{len(marks)} cache breakpoints, at most {MAX_BREAKPOINTS} are taken: {places}")
    short = None
    for path, control in marks:
        if control.get("ttl") != "1h":
            short = short or path
        elif short:
            raise RequestError(f"the cache breakpoint {path} lives longer than {short} before it")


def _breakpoints(body: dict[str, Any]) -> Iterator[tuple[str, CacheControl]]:
    """The blocks that carry one, path and mark, in the order of the prefix: tools, system, messages."""
    for field in ("tools", "system"):
        yield from _in_blocks(body.get(field), field)
    for number, message in enumerate(body.get("messages", ())):
        yield from _in_blocks(message["content"], f"messages[{number}].content")
    # The automatic breakpoint stands for one on the last block.
    if body.get("cache_control"):
        yield "cache_control", body["cache_control"]


def _in_blocks(blocks: Any, path: str) -> Iterator[tuple[str, CacheControl]]:
    if not isinstance(blocks, list):
        return
    for number, block in enumerate(cast("list[Any]", blocks)):
        if isinstance(block, dict):
            entry = cast("dict[str, Any]", block)
            if entry.get("cache_control"):
                yield f"{path}[{number}]", entry["cache_control"]
            yield from _in_blocks(entry.get("content"), f"{path}[{number}].content")
