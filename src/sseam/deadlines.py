"""Time limits of a call, apart from each other: connect, first event, idle, total.

Bytes alone are no progress: a server that only sends pings or comments is as idle as a silent one.
Idle is who is waited for: while the reader is busy with an event, its clock stands still.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import msgspec

from .errors import TransportError

__all__ = ["NO_LIMITS", "Deadlines", "Limit", "TimeLimits"]

Limit: TypeAlias = Literal["connect", "first_event", "idle", "total"]
"""The name of a limit, as in `TimeLimits`."""


class TimeLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds; None for no limit.

    Attributes:
        connect: to reach the server, TLS included.
        first_event: from the start of an attempt to its first event.
        idle: without an event that says something; pings and comments do not count.
        total: for the whole call, with all of its attempts.
    """

    connect: float | None = 10.0
    first_event: float | None = 600.0
    idle: float | None = 300.0
    total: float | None = None


NO_LIMITS = TimeLimits(connect=None, first_event=None, idle=None, total=None)


class Deadlines:
    """The limits of one call as it goes on. Times are those of `time.monotonic`.

    Attributes:
        limits: what they are.
        due: when reading must have brought something; `math.inf` for never. It stands still while `paused`.
        paused: an event came and nobody has waited for the next one yet.
        seen: when the last bytes came, None before the first.
        progressed: when the last event that says something came, None before the first.
    """

    __slots__ = ("_begun", "_idle", "_over", "due", "limits", "paused", "progressed", "seen")

    def __init__(self, limits: TimeLimits) -> None:
        self.limits = limits
        self._idle = math.inf if limits.idle is None else limits.idle
        self._over = math.inf
        self._begun = False
        self.due = math.inf
        self.paused = False
        self.seen: float | None = None
        self.progressed: float | None = None

    def begin(self, now: float) -> None:
        """An attempt begins; the first one starts the call."""
        if not self._begun:
            self._begun = True
            self._over = now + _seconds(self.limits.total)
        self.seen = self.progressed = None
        self.paused = False
        self.due = min(now + _seconds(self.limits.first_event), self._over)

    def wait(self, now: float) -> None:
        """The reader waits for the next event."""
        due = now + self._idle
        self.due = due if due < self._over else self._over
        self.paused = False  # last: who sees it from another thread is to find the new deadline

    def stop(self) -> None:
        """The attempt is over, and the next one has not begun."""
        self.due = math.inf
        self.paused = False

    def allow(self, seconds: float, now: float) -> None:
        """Whatever else holds, reading must end `seconds` from now."""
        self.due = min(now + seconds, self.due)

    def fits(self, wait: float, now: float) -> bool:
        """Whether the call may still go on after `wait` seconds."""
        return now + wait < self._over

    def passed(self, now: float) -> Limit:
        """Which limit has passed: "first_event", "idle" or "total"."""
        if now >= self._over:
            return "total"
        return "first_event" if self.progressed is None else "idle"

    def error(self, which: Limit) -> TransportError:
        """The error for a limit that has passed."""
        seconds = getattr(self.limits, which)
        within = "" if seconds is None else f" of {seconds:g} s"
        return TransportError(f"{_WORDS[which]} within its limit{within} (TimeLimits.{which})", timeout=which)


_WORDS: dict[Limit, str] = {
    "connect": "no connection was made",
    "first_event": "no event came",
    "idle": "nothing but pings came",
    "total": "the call did not end",
}


def _seconds(limit: float | None) -> float:
    return math.inf if limit is None else limit
