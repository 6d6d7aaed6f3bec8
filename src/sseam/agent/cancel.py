"""One signal to give up, for any number of runs and tools."""

from __future__ import annotations

import threading
from collections.abc import Callable

__all__ = ["CancelToken"]


class CancelToken:
    """A flag that is set once, from any task or thread, and tells those who asked to be told.

    It may outlive what it cancels: whoever subscribes takes the subscription back in the end.
    """

    __slots__ = ("_callbacks", "_cancelled", "_lock")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cancelled = False
        self._callbacks: dict[object, Callable[[], None]] = {}

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._cancelled

    def cancel(self) -> None:
        """Set the flag and call every subscriber, in this thread. Does nothing the second time."""
        with self._lock:
            self._cancelled = True
            callbacks = list(self._callbacks.values())
            self._callbacks.clear()
        for callback in callbacks:
            callback()

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Have `callback` called when the flag is set, at once if it is; it must not raise.

        Returns:
            What takes the subscription back. It may be called at any time and more than once.
        """
        key = object()
        with self._lock:
            if not self._cancelled:
                self._callbacks[key] = callback
                return lambda: self._forget(key)
        callback()
        return lambda: None

    def _forget(self, key: object) -> None:
        with self._lock:
            self._callbacks.pop(key, None)
