"""Calling a function at a time, from one thread that serves the whole process.

The thread is there while an alarm is set, and a moment longer: calls often follow each other.
"""

from __future__ import annotations

import heapq
import itertools
import math
import os
import threading
import time
from collections.abc import Callable

__all__ = ["Alarm"]

_LINGER = 0.05
_FEW = 64  # so many alarms that are no longer set may be kept in any case


class Alarm:
    """Calls `ring` in another thread, at a time that may be moved.

    Args:
        ring: what is called. It returns when it is to be called next, `math.inf` for not again. It
            must not block: it holds up every other alarm.

    Attributes:
        due: when it goes off, by `time.monotonic`; `math.inf` when it is not set, and less than any time
            once it is cancelled.
    """

    __slots__ = ("due", "ring")

    def __init__(self, ring: Callable[[], float]) -> None:
        self.due = math.inf
        self.ring = ring

    def set(self, due: float) -> None:
        """Go off at `due`, unless it goes off earlier anyway."""
        _clock.set(self, due)

    def cancel(self) -> None:
        """Never go off any more, if that has not begun. Also from a destructor."""
        _clock.cancel(self)


class _Clock:
    """The alarms that are set, and the thread that waits for the earliest."""

    def __init__(self) -> None:
        # Its lock can be taken twice by one thread: a destructor may run, and cancel, wherever something is made.
        self._changed = threading.Condition(threading.RLock())
        self._set: set[Alarm] = set()
        self._queue: list[tuple[float, int, Alarm]] = []  # a heap; an entry whose time is not its alarm's is void
        self._number = itertools.count()
        self._thread: threading.Thread | None = None
        self._waits_until = math.inf

    def set(self, alarm: Alarm, due: float) -> None:
        with self._changed:
            if due >= alarm.due:
                return
            if len(self._queue) > _FEW + 2 * len(self._set):
                self._queue = [entry for entry in self._queue if entry[0] == entry[2].due]
                heapq.heapify(self._queue)
            alarm.due = due
            self._set.add(alarm)
            heapq.heappush(self._queue, (due, next(self._number), alarm))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="sseam-watchdog", daemon=True)
                self._thread.start()
            elif due < self._waits_until:
                self._changed.notify()

    def cancel(self, alarm: Alarm) -> None:
        with self._changed:
            alarm.due = -math.inf
            self._set.discard(alarm)
            if not self._set:
                self._changed.notify()

    def _run(self) -> None:
        while (alarm := self._wait()) is not None:
            try:
                again = alarm.ring()
            except Exception:
                import sys

                threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread())))
            else:
                alarm.set(again)
            del alarm  # which is not to be kept while the next one is waited for

    def _wait(self) -> Alarm | None:
        """The next alarm that goes off; None when the thread is to end."""
        in_vain = False
        with self._changed:
            while True:
                due, now = self._earliest(), time.monotonic()
                if due <= now:
                    _, _, alarm = heapq.heappop(self._queue)
                    alarm.due = math.inf
                    self._set.discard(alarm)
                    return alarm
                if due == math.inf and in_vain:
                    self._thread = None
                    return None
                self._waits_until = min(due, now + (_LINGER if due == math.inf else threading.TIMEOUT_MAX))
                in_vain = not self._changed.wait(self._waits_until - now)

    def _earliest(self) -> float:
        queue = self._queue
        while queue and queue[0][0] != queue[0][2].due:
            heapq.heappop(queue)
        return queue[0][0] if queue else math.inf


_clock = _Clock()

if hasattr(os, "register_at_fork"):
    # A child has no thread but the one that forked, and what the others were reading is not its own.
    os.register_at_fork(after_in_child=_clock.__init__)
