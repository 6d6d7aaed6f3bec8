"""A call that blocks, which whoever waits for it can turn away from."""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["Abandonable", "Abandoned"]

T = TypeVar("T")


class Abandoned(Exception):
    """The call goes on, and nobody waits for it any more."""


class Abandonable(Generic[T]):
    """Runs `work` in a thread of its own, with the context variables of the caller.

    Args:
        work: what blocks.
        discard: gets what `work` returns after it was abandoned.

    Attributes:
        abandoned: nobody waits for it any more.
    """

    def __init__(self, work: Callable[[], T], discard: Callable[[T], object]) -> None:
        self._work = work
        self._discard = discard
        self._lock = threading.Lock()
        self._ended = threading.Event()  # or abandoned
        self._outcome: tuple[T] | BaseException | None = None
        self.abandoned = False

    def run(self) -> T:
        """What `work` returns. Raises what it raises, and `Abandoned`."""
        run = contextvars.copy_context().run
        threading.Thread(target=run, args=(self._run,), name="sseam-request", daemon=True).start()
        try:
            self._ended.wait()
        except BaseException:  # of a signal handler: whoever waited is gone
            self.abandon()
            if isinstance(outcome := self._take(), tuple):
                self._discard(*outcome)
            raise
        match self._take():
            case tuple((result,)):
                return result
            case BaseException() as error:
                raise error
            case _:
                raise Abandoned

    def abandon(self) -> None:
        """Let `run` return now, if it is waiting. From any thread."""
        with self._lock:
            self.abandoned = self._outcome is None
        self._ended.set()

    def _take(self) -> tuple[T] | BaseException | None:
        # An exception has this object in its traceback: not to be kept in turn.
        with self._lock:
            outcome, self._outcome = self._outcome, None
        return outcome

    def _run(self) -> None:
        try:
            outcome: tuple[T] | BaseException = (self._work(),)
        except BaseException as error:
            outcome = error
        with self._lock:
            if not self.abandoned:
                self._outcome = outcome
        self._ended.set()
        if self.abandoned and isinstance(outcome, tuple):
            with contextlib.suppress(Exception):
                self._discard(*outcome)
        del outcome
