"""The queue between a run and its reader: who waits for whom."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import pytest

import virtual
from sseam.agent.outbox import Outbox

backends = pytest.mark.parametrize("backend", virtual.BACKENDS)


async def is_done(wait: Callable[[], Awaitable[object]]) -> bool:
    """Whether `wait` returns without anything else happening."""
    with anyio.move_on_after(1):
        await wait()
        return True
    return False


@backends
def test_flush_waits_until_the_reader_comes_back(backend: str) -> None:
    async def main() -> None:
        outbox: Outbox[int] = Outbox()
        assert await is_done(outbox.flush), "nothing was put, so nothing is waited for"
        outbox.put(1)
        outbox.put(2)
        assert not await is_done(outbox.flush)
        assert await outbox.take() == 1
        assert await outbox.take() == 2
        assert not await is_done(outbox.flush), "the reader has the last event and is not done with it"
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(outbox.take)
            await outbox.flush()
            tasks.cancel_scope.cancel()

    virtual.run(backend, main)


@backends
def test_room_is_limited(backend: str) -> None:
    async def main() -> None:
        outbox: Outbox[int] = Outbox()
        put = 0
        while await is_done(outbox.room):
            outbox.put(put)
            put += 1
        assert put == 64
        await outbox.take()
        assert await is_done(outbox.room)
        outbox.put(put)
        assert not await is_done(outbox.room)
        outbox.release()
        assert await is_done(outbox.room)
        assert await is_done(outbox.flush)
        assert [await outbox.take() for _ in range(64)] == list(range(1, 65)), "what somebody began to read is kept"

    virtual.run(backend, main)


@backends
def test_released_before_anybody_reads(backend: str) -> None:
    async def main() -> None:
        outbox: Outbox[int] = Outbox()
        outbox.put(1)
        outbox.release()
        outbox.put(2)
        outbox.close()
        assert await outbox.take() is None

    virtual.run(backend, main)


@backends
def test_closed(backend: str) -> None:
    async def main() -> None:
        outbox: Outbox[int] = Outbox()
        outbox.put(1)
        outbox.put(2)
        outbox.close()
        outbox.put(3)
        assert [await outbox.take(), await outbox.take()] == [1, 2]
        assert await outbox.take() is None
        assert await outbox.take() is None

    virtual.run(backend, main)


@backends
def test_closing_wakes_reader_and_writer(backend: str) -> None:
    async def main() -> None:
        for waiting in ("take", "flush"):
            outbox: Outbox[int] = Outbox()
            if waiting == "flush":
                outbox.put(1)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(getattr(outbox, waiting))
                await anyio.wait_all_tasks_blocked()
                outbox.close()

    virtual.run(backend, main)
