"""Work in a task of its own: started, cancelled and waited for from anywhere."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading

import anyio
import pytest

import virtual
from sseam.agent.job import GRACE, Home, Job, in_thread, wind_down

backends = pytest.mark.parametrize("backend", virtual.BACKENDS)


@backends
def test_it_outlives_the_scope_of_its_maker(backend: str) -> None:
    """B212."""
    done: list[float] = []

    async def work() -> None:
        await anyio.sleep(5)
        done.append(anyio.current_time())

    async def main() -> None:
        start = anyio.current_time()
        with anyio.move_on_after(1):
            job = Job(work)
            await anyio.sleep(10)
        await job.finished.wait()
        assert done == [pytest.approx(start + 5)]

    virtual.run(backend, main)


@backends
@pytest.mark.parametrize("wait", [0, 1])
def test_cancelled_before_or_after_it_began(backend: str, wait: float) -> None:
    began: list[bool] = []

    async def work() -> None:
        began.append(True)
        await anyio.sleep(100)
        raise AssertionError

    async def main() -> None:
        start = anyio.current_time()
        job = Job(work)
        if wait:
            await anyio.sleep(wait)
        job.cancel()
        await job.finished.wait()
        assert anyio.current_time() - start == pytest.approx(wait)
        job.cancel()

    virtual.run(backend, main)


@backends
def test_winding_down_is_bounded_and_not_interrupted(backend: str) -> None:
    async def resist() -> None:
        with anyio.CancelScope(shield=True):
            await anyio.sleep(1000)

    async def clean_up() -> None:
        try:
            await anyio.sleep(1000)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(1)

    async def main() -> None:
        for work, seconds in ((clean_up, 1), (resist, GRACE)):
            start = anyio.current_time()
            with anyio.CancelScope() as scope:
                jobs = [Job(work), Job(work)]
                await anyio.sleep(0)
                scope.cancel()
                await wind_down(jobs)
            assert anyio.current_time() - start == pytest.approx(seconds)

    virtual.run(backend, main)


@backends
def test_context_variables_are_those_of_the_maker(backend: str) -> None:
    variable = contextvars.ContextVar("variable", default="outside")
    seen: list[str] = []

    async def work() -> None:
        seen.append(variable.get())
        variable.set("inside")

    async def main() -> None:
        variable.set("maker")
        await Job(work).finished.wait()
        assert variable.get() == "maker"

    virtual.run(backend, main)
    assert seen == ["maker"]


def test_a_task_that_is_cancelled_before_it_begins_has_finished() -> None:
    async def main() -> None:
        job = Job(lambda: asyncio.sleep(1))
        assert job._task is not None
        job._task.cancel()
        await asyncio.wait_for(job.finished.wait(), 1)

    asyncio.run(main())


@backends
def test_home_is_reached_from_any_thread(backend: str) -> None:
    threads: list[int] = []
    homes: list[Home] = []

    async def main() -> None:
        home = Home()
        homes.append(home)
        home.call(lambda: threads.append(threading.get_ident()))
        assert threads == [threading.get_ident()]
        await in_thread(lambda: home.call(lambda: threads.append(threading.get_ident())))
        await anyio.sleep(0.01)
        assert threads == [threading.get_ident()] * 2

    anyio.run(main, backend=backend)
    # The loop has ended: nobody is there any more to do anything.
    thread = threading.Thread(target=lambda: homes[0].call(lambda: threads.append(0)))
    thread.start()
    thread.join()
    assert len(threads) == 2


@backends
def test_a_generators_exit_in_a_thread_arrives_as_any_other(backend: str) -> None:
    """Thrown into a task by asyncio, it would pass by whoever handles it on the way, and be reported as lost."""
    caught: list[BaseException] = []

    def work() -> None:
        raise GeneratorExit

    async def handled() -> None:
        try:
            await in_thread(work)
        except BaseException as error:
            caught.append(error)

    async def main() -> None:
        reported: list[object] = []
        if backend == "asyncio":
            asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        job = Job(handled)
        await job.finished.wait()
        del job
        gc.collect()
        assert reported == []

    anyio.run(main, backend=backend)
    assert [type(error) for error in caught] == [GeneratorExit]


def test_needs_an_event_loop() -> None:
    with pytest.raises(RuntimeError, match="under asyncio or trio"):
        Home()


@backends
def test_threads_that_were_given_up_take_nobodys_place(backend: str) -> None:
    release = threading.Event()

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(50):
                tasks.start_soon(in_thread, release.wait)
            await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()
        with anyio.fail_after(5):
            assert await in_thread(lambda: "free") == "free"
        release.set()

    anyio.run(main, backend=backend)
