"""The part of every reducer that is the same: blocks, calls, stop, message.

A reducer reads its own wire events and says here what they mean: a block starts, grows, ends; the
message stops. Each verb takes a state and gives the next one and the neutral events it caused. A
verb raises `ProtocolError` for what may not be; `fail` turns that into the `Failed` event.
"""

from .blocks import append, end, grow, start
from .calls import require_valid, same_input, server_input, withhold_unreleased
from .ending import fail, finish, partial, truncated
from .state import (
    Events,
    Head,
    Kind,
    Part,
    Settings,
    State,
    Step,
    begin,
    count,
    focus,
    initial,
    is_over,
    note,
    open_parts,
    parts,
    set_head,
    set_stop,
    set_usage,
    set_wire,
    settings,
    unfocus,
    update,
)

__all__ = [
    "Events",
    "Head",
    "Kind",
    "Part",
    "Settings",
    "State",
    "Step",
    "append",
    "begin",
    "count",
    "end",
    "fail",
    "finish",
    "focus",
    "grow",
    "initial",
    "is_over",
    "note",
    "open_parts",
    "partial",
    "parts",
    "require_valid",
    "same_input",
    "server_input",
    "set_head",
    "set_stop",
    "set_usage",
    "set_wire",
    "settings",
    "start",
    "truncated",
    "unfocus",
    "update",
    "withhold_unreleased",
]
