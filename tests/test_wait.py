"""`Signal`: set from anywhere, waited for under asyncio and trio."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import anyio
import pytest
import trio

from sseam._wait import Signal

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


def from_here(work: Callable[[], None]) -> None:
    work()


def from_a_thread(work: Callable[[], None]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


@pytest.mark.parametrize("call", [from_here, from_a_thread])
async def test_wakes_every_waiter(call: Callable[[Callable[[], None]], None]) -> None:
    signal = Signal()
    woken: list[int] = []

    async def waiter(number: int) -> None:
        await signal.wait()
        woken.append(number)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            for number in range(3):
                tasks.start_soon(waiter, number)
            await anyio.wait_all_tasks_blocked()
            assert not signal.is_set
            assert woken == []
            call(signal.set)
            assert signal.is_set
    assert sorted(woken) == [0, 1, 2]


async def test_returns_at_once_when_set() -> None:
    signal = Signal()
    signal.set()
    signal.set()
    with pytest.raises(StopIteration):  # it never gave way to the loop
        signal.wait().send(None)


async def test_set_while_the_waiter_gets_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    signal = Signal()
    enter = Signal._enter

    def late(self: Signal, key: object, wake: Callable[[], object]) -> None:
        self.set()
        enter(self, key, wake)

    monkeypatch.setattr(Signal, "_enter", late)
    with anyio.fail_after(5):
        await signal.wait()


async def test_cancelled_waiter_leaves_nothing() -> None:
    signal = Signal()
    with anyio.move_on_after(0) as scope:
        await signal.wait()
    assert scope.cancelled_caught
    assert not signal._wakers
    signal.set()
    await signal.wait()


async def test_cancelled_in_the_moment_of_waking() -> None:
    signal = Signal()
    after: list[bool] = []

    async def waiter() -> None:
        with anyio.CancelScope() as scope:
            scopes.append(scope)
            await signal.wait()
        after.append(signal.is_set)

    scopes: list[anyio.CancelScope] = []
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(waiter)
            await anyio.wait_all_tasks_blocked()
            signal.set()
            scopes[0].cancel()  # the wake-up is on its way and finds nobody
    assert after == [True]


@pytest.mark.parametrize("repeat", range(20))
async def test_thread_against_waiter(repeat: int) -> None:
    signals = [Signal() for _ in range(50)]
    thread = threading.Thread(target=lambda: [signal.set() for signal in signals])
    with anyio.fail_after(10):
        thread.start()
        for signal in signals:
            await signal.wait()
    thread.join()
    assert all(signal.is_set for signal in signals), repeat


def test_waiter_of_a_closed_loop_is_forgotten(anyio_backend: str) -> None:
    del anyio_backend
    signal = Signal()
    loop = asyncio.new_event_loop()
    task = loop.create_task(signal.wait())
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    signal.set()
    assert not task.done()
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    task.get_coro().close()  # type: ignore[union-attr]


def test_needs_a_loop() -> None:
    for loaded in (True, False):
        wait: Coroutine[Any, Any, None] = Signal().wait()
        hidden = {} if loaded else {name: sys.modules.pop(name) for name in ("asyncio", "trio")}
        try:
            with pytest.raises(RuntimeError, match="neither is running"):
                wait.send(None)
        finally:
            sys.modules.update(hidden)


def test_trio_as_a_guest_of_asyncio() -> None:
    """A trio task in an asyncio loop waits as trio does, and an asyncio task beside it as asyncio does."""
    first, second = Signal(), Signal()

    async def guest() -> str:
        await first.wait()
        second.set()
        return "guest"

    async def host() -> str:
        loop = asyncio.get_running_loop()
        finished: asyncio.Future[Any] = loop.create_future()
        trio.lowlevel.start_guest_run(
            guest, run_sync_soon_threadsafe=loop.call_soon_threadsafe, done_callback=finished.set_result
        )
        await asyncio.sleep(0.01)
        first.set()
        await asyncio.wait_for(second.wait(), 5)
        return (await finished).unwrap()

    assert asyncio.run(host()) == "guest"


def test_import_loads_no_event_loop() -> None:
    code = "import sys, sseam.channel; print([n for n in ('asyncio', 'trio', 'anyio', 'httpx') if n in sys.modules])"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "[]"
