"""Runs a coroutine function in virtual time: waiting takes none, and a seed shuffles the order of what is ready."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio
import pytest
import trio
import trio.testing

T = TypeVar("T")

BACKENDS = ["asyncio", "trio"]

# Virtual seconds after which a run hangs.
LIMIT = 10_000


class _VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose clock jumps to the next timer when nothing is ready."""

    def __init__(self, seed: int | None) -> None:
        super().__init__()
        self._virtual_now = 0.0
        self._random = None if seed is None else random.Random(seed)

    def time(self) -> float:
        return self._virtual_now

    def _run_once(self) -> None:
        ready: Any = self._ready  # type: ignore[attr-defined]
        scheduled: Any = self._scheduled  # type: ignore[attr-defined]
        if not ready and scheduled:
            self._virtual_now = max(self._virtual_now, scheduled[0].when())
        if self._random is not None:
            handles = list(ready)
            self._random.shuffle(handles)
            ready.clear()
            ready.extend(handles)
        super()._run_once()  # type: ignore[misc]


def run(backend: str, main: Callable[[], Awaitable[T]], seed: int | None = None) -> T:
    """What `main()` returns. Not for code that uses threads."""

    async def limited() -> T:
        with anyio.fail_after(LIMIT):
            return await main()

    if backend == "asyncio":
        return anyio.run(limited, backend_options={"loop_factory": lambda: _VirtualLoop(seed)})
    with pytest.MonkeyPatch.context() as patch:
        core: Any = trio._core._run  # type: ignore[attr-defined]
        if seed is not None:
            patch.setattr(core, "_ALLOW_DETERMINISTIC_SCHEDULING", True)
            core._r.seed(seed)
        return trio.run(limited, clock=trio.testing.MockClock(autojump_threshold=0))
