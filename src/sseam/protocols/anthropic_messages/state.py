"""The reducer's own part of the state."""

from __future__ import annotations

import enum
from typing import Any, TypeAlias

import msgspec

from ... import fold
from ..._enums import quick
from ..._persistent import Index

__all__ = ["Phase", "State", "Step", "Wire"]


@quick
class Phase(enum.Enum):
    """Where in the message the stream is."""

    IDLE = "idle"  # before message_start
    STREAMING = "streaming"  # blocks come and go
    STOPPED = "stopped"  # the stop reason came; only more of it and message_stop may follow


class Wire(msgspec.Struct, frozen=True):
    """The reducer's own part of the state.

    Attributes:
        phase: see there.
        keys: the wire's index of every block to its neutral index.
        usage: the provider's counts so far, later fields over earlier ones.
        start: the message of `message_start`, to know a repetition by.
    """

    phase: Phase
    keys: Index[int]
    usage: dict[str, Any] = {}
    start: dict[str, Any] = {}


State: TypeAlias = fold.State[Wire]
Step: TypeAlias = fold.Step[Wire]
