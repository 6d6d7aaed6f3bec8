"""How far a JSON value has come, fragment by fragment, without parsing it twice.

It tells only whether the first value is open or closed, which is what tells a fragment that goes on
from one that starts anew. Whether the text is JSON is found out once, at the end.
"""

from __future__ import annotations

import re

import msgspec

__all__ = ["Scan", "scan", "starts_object"]

_STRUCTURE = re.compile(r'["{}\[\]]')
_IN_STRING = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_SPACE = " \t\r\n"


class Scan(msgspec.Struct, frozen=True, gc=False):
    """Where in its JSON value a text ends.

    Attributes:
        depth: how many brackets are open.
        in_string, escaped: inside a string; behind the backslash of an escape in it.
        begun: anything but white space came.
        closed: the value ended.
    """

    depth: int = 0
    in_string: bool = False
    escaped: bool = False
    begun: bool = False
    closed: bool = False


def starts_object(text: str) -> bool:
    """Whether `text` may be the start of an object."""
    return text.lstrip(_SPACE)[:1] == "{"


def scan(state: Scan, text: str) -> tuple[Scan, int]:
    """The state behind `text`, and where in it the value closed; the length of `text` where it did not.

    What follows the closing bracket is not read, and nothing of `text` once the value closed before.
    """
    if state.closed:
        return state, 0
    depth, in_string = state.depth, state.in_string
    at, end = 1 if state.escaped and text else 0, len(text)
    while at < end:
        if in_string:
            match = _IN_STRING.match(text, at)
            assert match is not None
            at = match.end()
            if at == end:
                break
            at += 1
            if text[at - 1] == "\\":
                return Scan(depth, True, True, True), end
            in_string = False
        else:
            match = _STRUCTURE.search(text, at)
            if match is None:
                break
            at = match.end()
            character = match[0]
            if character == '"':
                in_string = True
                continue
            depth += 1 if character in "{[" else -1
        if depth <= 0 and not in_string:
            return Scan(0, begun=True, closed=True), at
    if state.escaped and not text:
        return state, end
    return Scan(depth, in_string, False, state.begun or bool(text.strip(_SPACE))), end
