"""Cache breakpoints of a finished body: placing them, and counting them where they really are.

Source: the provider's page on prompt caching, read 2026-11-29.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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

    In that order of importance, as far as the caller's own leave room; a place that has one keeps it. They give way to
    the caller's: behind one that lives shorter they live as short, before one that lives longer there is none. Where
    the caller asked for the automatic breakpoint, or for none, the body stays as it is.

    Raises RequestError for tools, system or messages that are not in the form of the API.
    """
    require_form(body)
    if not policy.breakpoints or "cache_control" in body:
        return body
    control = cache_control(policy)
    room = MAX_BREAKPOINTS - sum(1 for _ in _breakpoints(body))
    for place in (_in_last_user_message, _in_system, _in_tools):
        placed = _fitting(body, place, control) if room > 0 else None
        if placed is not None:
            body, room = placed, room - 1
    return body


_Place: TypeAlias = Callable[[dict[str, Any], CacheControl], dict[str, Any] | None]


def _fitting(body: dict[str, Any], place: _Place, control: CacheControl) -> dict[str, Any] | None:
    """The body with a breakpoint more, which lives no longer than those before it; None where there can be none."""
    mark = dict(control)
    marked = place(body, mark)
    if marked is None:
        return None
    marks = [found for _, found in _breakpoints(marked)]
    at = next(number for number, found in enumerate(marks) if found is mark)
    if _is_long(mark):
        if not all(map(_is_long, marks[:at])):
            mark["ttl"] = "5m"
        return marked
    return None if any(map(_is_long, marks[at:])) else marked


def _is_long(control: CacheControl) -> bool:
    return control.get("ttl") == "1h"


def _in_last_user_message(body: dict[str, Any], control: CacheControl) -> dict[str, Any] | None:
    messages = cast("list[dict[str, Any]]", body["messages"])
    at = next((number for number in reversed(range(len(messages))) if messages[number].get("role") == "user"), None)
    content = None if at is None else _marked_last(messages[at]["content"], control)
    if at is None or content is None:
        return None
    return {**body, "messages": [*messages[:at], {**messages[at], "content": content}, *messages[at + 1 :]]}


def _in_system(body: dict[str, Any], control: CacheControl) -> dict[str, Any] | None:
    return _in_list(body, "system", control)


def _in_tools(body: dict[str, Any], control: CacheControl) -> dict[str, Any] | None:
    return _in_list(body, "tools", control)


def _in_list(body: dict[str, Any], field: str, control: CacheControl) -> dict[str, Any] | None:
    entries = _marked_last(body.get(field), control)
    return None if entries is None else {**body, field: entries}


def _marked_last(entries: Any, control: CacheControl) -> list[dict[str, Any]] | None:
    """The entries, the last that may carry a breakpoint marked; None where none may, or it has one."""
    if not isinstance(entries, list):
        return None
    found = cast("list[dict[str, Any]]", entries)
    for number in reversed(range(len(found))):
        entry = found[number]
        if entry.get("type") in _NO_BREAKPOINT or entry.get("defer_loading") or entry.get("text") == "":
            continue
        if "cache_control" in entry:
            return None
        return [*found[:number], {**entry, "cache_control": control}, *found[number + 1 :]]
    return None


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
        if not _is_long(control):
            short = short or path
        elif short:
            raise RequestError(f"the cache breakpoint {path} lives longer than {short} before it")


def _breakpoints(body: dict[str, Any]) -> Iterator[tuple[str, CacheControl]]:
    """The blocks that carry one, path and mark, in the order of the prefix: tools, system, messages."""
    try:
        for field in ("tools", "system"):
            yield from _in_blocks(body.get(field), field)
        for number, message in enumerate(body["messages"]):
            yield from _in_blocks(message["content"], f"messages[{number}].content")
    except RecursionError:
        raise RequestError("the content of a message is nested too deeply") from None
    # The automatic breakpoint stands for one on the last block.
    if body.get("cache_control"):
        yield "cache_control", body["cache_control"]


def _in_blocks(blocks: Any, path: str) -> Iterator[tuple[str, CacheControl]]:
    if not isinstance(blocks, list):
        return
    for number, block in enumerate(cast("list[Any]", blocks)):
        if isinstance(block, dict):
            entry = cast("dict[str, Any]", block)
            if isinstance(entry.get("cache_control"), dict):
                yield f"{path}[{number}]", entry["cache_control"]
            yield from _in_blocks(entry.get("content"), f"{path}[{number}].content")


# ---- the form of what `extra_body` may have replaced


def require_form(body: dict[str, Any]) -> None:
    """Raises RequestError where tools, system, messages or a breakpoint are in no form that the API knows."""
    for field in ("tools", "system"):
        if not isinstance(body.get(field), str | None):
            _require_blocks(body[field], field)
    messages: object = body.get("messages")
    if not isinstance(messages, list):
        raise _malformed("messages", "a list", messages)
    for number, message in enumerate(cast("list[object]", messages)):
        content: object = cast("dict[str, object]", message).get("content") if isinstance(message, dict) else None
        if content is None:
            raise _malformed(f"messages[{number}]", "an object with content", cast("object", message))
        if not isinstance(content, str):
            _require_blocks(content, f"messages[{number}].content")
    _require_mark(body, "")


def _require_blocks(blocks: object, path: str) -> None:
    if not isinstance(blocks, list):
        raise _malformed(path, "a list", blocks)
    for number, block in enumerate(cast("list[object]", blocks)):
        place = f"{path}[{number}]"
        if not isinstance(block, dict):
            raise _malformed(place, "an object", block)
        entry = cast("dict[str, object]", block)
        if not isinstance(entry.get("type"), str | None):
            raise _malformed(f"{place}.type", "a text", entry["type"])
        _require_mark(entry, f"{place}.")


def _require_mark(entry: dict[str, Any], path: str) -> None:
    mark: object = entry.get("cache_control")
    if mark is not None and not isinstance(mark, dict):
        raise _malformed(f"{path}cache_control", "an object", mark)


def _malformed(path: str, expected: str, found: object) -> RequestError:
    return RequestError(f"{path}: expected {expected}, got {type(found).__name__}", hint="Look at extra_body")
