"""A call that blocks, which whoever waits for it can turn away from."""

from __future__ import annotations

import contextlib
import contextvars
import queue
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

__all__ = ["Abandonable", "Abandoned"]

T = TypeVar("T")


class Abandoned(Exception):
    """Nobody waits for the call any more; if it had begun, it goes on."""


class Abandonable(Generic[T]):
    """Runs `work` in a thread of its own, with the context variables of the caller. To be run once.

    Args:
        work: what blocks.
        discard: gets what `work` returned and nobody took.

    Attributes:
        abandoned: nobody waits for it any more.
    """

    def __init__(self, work: Callable[[], T], discard: Callable[[T], object]) -> None:
        self._work: Callable[[], Any] = work
        self._discard = discard
        # A signal handler may abandon the call while its own thread is anywhere in here: of a queue `put` can be
        # called within `get`, and the lock can be taken twice.
        self._woken: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._lock = threading.RLock()
        self._outcome: tuple[T] | BaseException | None = None
        self.abandoned = False

    def run(self) -> T:
        """What `work` returns. Raises what it raises, and `Abandoned`."""
        if self.abandoned:
            raise Abandoned
        run = contextvars.copy_context().run
        threading.Thread(target=run, args=(self._run,), name="sseam-request", daemon=True).start()
        self._woken.get()
        outcome = self._outcome
        if isinstance(outcome, tuple):
            return outcome[0]
        if outcome is None:
            raise Abandoned
        self._outcome = None  # the error has this object in its traceback
        raise outcome

    def abandon(self) -> None:
        """Let `run` end now, if it waits. What it has to return by then it returns. From any thread."""
        with self._lock:
            self.abandoned = self._outcome is None
        self._woken.put(None)

    def drop(self) -> None:
        """Abandon it, and discard what it returned or is still to return."""
        with self._lock:
            self.abandoned = True
            outcome, self._outcome = self._outcome, None
        self._woken.put(None)
        self._throw_away(outcome)

    def forget(self) -> None:
        """Keep nothing of it: what it returned was taken, or it is not to be run."""
        with self._lock:
            self._outcome = None
            self._work = _nothing

    def _run(self) -> None:
        try:
            outcome: tuple[T] | BaseException = (self._work(),)
        except BaseException as error:
            outcome = error
        with self._lock:
            late = self.abandoned
            if not late:
                self._outcome = outcome
        self._woken.put(None)
        if late:
            self._throw_away(outcome)

    def _throw_away(self, outcome: tuple[T] | BaseException | None) -> None:
        if isinstance(outcome, tuple):
            with contextlib.suppress(Exception):
                self._discard(*outcome)


def _nothing() -> None:
    raise Abandoned
