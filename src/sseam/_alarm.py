"""Calling a function at a time, from one thread that serves the whole process.

The thread is there while an alarm is set, and a moment longer: calls often follow each other.
"""

from __future__ import annotations

import heapq
import itertools
import math
import os
import queue
import sys
import threading
import time
from collections.abc import Callable

__all__ = ["Alarm"]

_LINGER = 0.05
_FEW = 64  # so many cancelled alarms may be kept in any case


class Alarm:
    """Calls `ring` in another thread, at a time that may be moved forward.

    Args:
        ring: what is called. It returns when it is to be called next, `math.inf` for not again. It
            must not block: it holds up every other alarm.

    Attributes:
        due: when it goes off, by `time.monotonic`; `math.inf` when it is not set.
        cancelled: it never goes off any more.
    """

    __slots__ = ("cancelled", "due", "ring")

    def __init__(self, ring: Callable[[], float]) -> None:
        self.due = math.inf
        self.cancelled = False
        self.ring = ring

    def set(self, due: float) -> None:
        """Go off at `due`, unless it goes off earlier anyway. Not from a destructor."""
        _clock.set(self, due)

    def cancel(self) -> None:
        """Never go off any more, if that has not begun. Takes no lock, so that a destructor can do it."""
        if not self.cancelled:
            self.cancelled = True
            if self.due < math.inf:
                _clock.changed.put(None)


class _Clock:
    """The thread that waits for the earliest alarm. It alone has the alarms; it is told of changes."""

    def __init__(self) -> None:
        # A destructor runs wherever something is made, in the middle of a `put` too, and in whichever thread: this
        # queue is made for it. The lock is for `set` and the thread's end, and no destructor takes it.
        self.changed: queue.SimpleQueue[tuple[float, Alarm] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def set(self, alarm: Alarm, due: float) -> None:
        thread = None
        with self._lock:
            if due >= alarm.due or alarm.cancelled:
                return
            alarm.due = due
            self.changed.put((due, alarm))
            if self._thread is None:
                thread = self._thread = threading.Thread(target=self._run, name="sseam-watchdog", daemon=True)
        if thread is not None:  # not with the lock held: it waits until the thread runs, which may run a destructor
            try:
                thread.start()
            except BaseException:  # there are too many: the next alarm is to try again
                with self._lock:
                    self._thread = None
                    alarm.due = math.inf
                raise

    def _run(self) -> None:
        alarms: list[tuple[float, int, Alarm]] = []  # a heap
        number = itertools.count()
        cancelled = 0
        while True:
            while alarms and not _is_valid(alarms[0][2], alarms[0][0]):
                heapq.heappop(alarms)
            if cancelled > _FEW + len(alarms) // 2:
                alarms = [entry for entry in alarms if _is_valid(entry[2], entry[0])]
                heapq.heapify(alarms)
                cancelled = 0
            wait = alarms[0][0] - time.monotonic() if alarms else _LINGER
            if wait <= 0:
                due, _, alarm = heapq.heappop(alarms)
                self._go_off(alarm, due)
                del alarm  # which is not to be kept while the next one is waited for
                continue
            try:
                change = self.changed.get(timeout=min(wait, threading.TIMEOUT_MAX))
            except queue.Empty:
                if not alarms and self._end():
                    return
            else:
                if change is None:
                    cancelled += 1
                else:
                    heapq.heappush(alarms, (change[0], next(number), change[1]))
                del change

    def _go_off(self, alarm: Alarm, due: float) -> None:
        with self._lock:
            if not _is_valid(alarm, due):
                return
            alarm.due = math.inf
        try:
            self.set(alarm, alarm.ring())
        except Exception:
            threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread())))

    def _end(self) -> bool:
        """Whether nothing has come since: then the thread ends."""
        with self._lock:
            if not self.changed.empty():
                return False
            self._thread = None
            return True


def _is_valid(alarm: Alarm, due: float) -> bool:
    """Whether an entry for `due` still holds: the alarm was neither cancelled nor moved."""
    return not alarm.cancelled and alarm.due == due


_clock = _Clock()

if hasattr(os, "register_at_fork"):
    # A child has no thread but the one that forked, and what the others were reading is not its own.
    os.register_at_fork(after_in_child=_clock.__init__)
