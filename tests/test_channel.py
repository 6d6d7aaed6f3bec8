"""The push channel, under asyncio and trio."""

from __future__ import annotations

import contextlib
import gc
import threading
import traceback
import weakref
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from sseam.channel import EventStream
from sseam.errors import ApiError, StreamSequenceError, TransportError, TruncatedStream
from sseam.events import Done, Event, Failed, Start, TextDelta, TextEnd, TextStart, UsageUpdate
from sseam.message import Message, TextBlock, Usage

pytestmark = pytest.mark.anyio

MESSAGE = Message(content=(TextBlock(text="hello"),), stop_reason="end_turn", complete=True)
EVENTS: list[Event] = [
    Start("m"),
    TextStart(0),
    TextDelta(0, "hel"),
    TextDelta(0, "lo"),
    TextEnd(0, "hello"),
    Done("end_turn", MESSAGE),
]


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(autouse=True)
async def time_limit() -> Any:
    with anyio.fail_after(10):
        yield


def pushed(events: list[Event]) -> EventStream:
    stream = EventStream()
    for event in events:
        stream.push(event)
    return stream


async def collect(stream: EventStream, into: list[Event], pause: float | None = None) -> None:
    async for event in stream:
        into.append(event)
        if pause is not None:
            await anyio.sleep(pause)


async def push_slowly(stream: EventStream, events: list[Event]) -> None:
    for event in events:
        await anyio.wait_all_tasks_blocked()
        stream.push(event)


async def test_late_reader_gets_everything() -> None:
    stream = pushed(EVENTS)
    seen: list[Event] = []
    await collect(stream, seen)
    assert seen == EVENTS
    assert await stream.result() is MESSAGE


async def test_waiting_reader_gets_each_event_as_it_comes() -> None:
    stream, seen = EventStream(), []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(collect, stream, seen)
        for number, event in enumerate(EVENTS):
            await anyio.wait_all_tasks_blocked()
            assert len(seen) == number
            stream.push(event)
    assert seen == EVENTS


async def test_slow_reader() -> None:
    stream, seen = EventStream(), []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(collect, stream, seen, 0.001)
        for event in EVENTS:
            stream.push(event)
            await anyio.sleep(0)
    assert seen == EVENTS


async def test_producer_in_a_thread() -> None:
    deltas = [TextDelta(0, "x")] * 2_000
    message = Message(content=(TextBlock(text="x" * 2_000),), stop_reason="end_turn", complete=True)
    events = [Start(), TextStart(0), *deltas, TextEnd(0, "x" * 2_000), Done("end_turn", message)]
    stream, seen = EventStream(), []
    thread = threading.Thread(target=lambda: [stream.push(event) for event in events])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(collect, stream, seen)
        await anyio.wait_all_tasks_blocked()
        thread.start()
    thread.join()
    assert seen == events
    assert await stream.result() is message


async def test_result_without_a_reader_for_several() -> None:
    stream, results = EventStream(), []

    async def wait() -> None:
        results.append(await stream.result())

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(wait)
        await push_slowly(stream, EVENTS)
    assert results == [MESSAGE] * 3


def bad_push(stream: EventStream) -> Exception:
    with pytest.raises(StreamSequenceError) as caught:
        stream.push(TextDelta(7, "x"))
    return caught.value


def no_event(stream: EventStream) -> Exception:
    with pytest.raises(StreamSequenceError) as caught:
        stream.push("text")  # type: ignore[arg-type]
    return caught.value


def failed_event(stream: EventStream) -> Exception:
    partial = Message(content=(TextBlock(text="hel"),))
    error = TruncatedStream("ended early", partial=partial)
    stream.push(Failed(error, partial))
    return error


def fail(stream: EventStream) -> Exception:
    error = ApiError("overloaded")
    stream.fail(error)
    return error


def fail_with_foreign_error(stream: EventStream) -> Exception:
    error = KeyError("x")
    stream.fail(error)
    return error


FAILURES = [bad_push, no_event, failed_event, fail, fail_with_foreign_error]


@pytest.mark.parametrize("end", FAILURES)
@pytest.mark.parametrize("late", [True, False])
async def test_failure_reaches_reader_and_result(end: Callable[[EventStream], Exception], late: bool) -> None:
    stream, seen, errors = EventStream(), [], []

    async def read() -> None:
        try:
            await collect(stream, seen)
        except Exception as error:
            errors.append(error)

    async def wait() -> None:
        try:
            await stream.result()
        except Exception as error:
            errors.append(error)

    async with anyio.create_task_group() as tasks:
        if not late:
            tasks.start_soon(read)
            tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
        for event in EVENTS[:3]:
            stream.push(event)
        error = end(stream)
        if late:
            tasks.start_soon(read)
            tasks.start_soon(wait)
    await wait()
    assert seen == EVENTS[:3]
    assert len(errors) == 3
    assert all(caught is error for caught in errors)


@pytest.mark.parametrize("end", FAILURES)
async def test_nothing_counts_after_a_failure(end: Callable[[EventStream], Exception]) -> None:
    stream = EventStream()
    stream.push(Start())
    error = end(stream)
    with pytest.raises(StreamSequenceError, match="UsageUpdate came after the stream was failed") as caught:
        stream.push(UsageUpdate(Usage()))
    assert (caught.value.event_type, caught.value.phase) == ("UsageUpdate", "terminal")
    assert caught.value.__cause__ is error
    stream.fail(ApiError("later"))
    with pytest.raises(type(error)) as seen:
        await stream.result()
    assert seen.value is error


async def test_nothing_counts_after_done() -> None:
    stream = pushed(EVENTS)
    with pytest.raises(StreamSequenceError, match="Start came after the stream was done"):
        stream.push(Start())
    stream.fail(ApiError("later"))
    seen: list[Event] = []
    await collect(stream, seen)
    assert seen == EVENTS
    assert await stream.result() is MESSAGE


@pytest.mark.parametrize("kind", [StopAsyncIteration, StopIteration])
async def test_error_that_would_end_an_iteration(kind: type[Exception]) -> None:
    stream, original = EventStream(), kind()
    stream.fail(original)
    with pytest.raises(RuntimeError, match=f"the producer raised {kind.__name__}") as caught:
        await collect(stream, [])
    assert caught.value.__cause__ is original


@pytest.mark.parametrize("what", ["boom", None, KeyboardInterrupt(), ValueError])
async def test_fail_takes_an_exception(what: Any) -> None:
    stream = EventStream()
    with pytest.raises(TypeError, match="takes an Exception"):
        stream.fail(what)
    stream.push(Start())  # the stream goes on


async def test_error_does_not_gather_tracebacks() -> None:
    stream = EventStream()
    try:
        raise TransportError("connection reset")
    except TransportError as error:
        stream.fail(error)
    depths = []
    for _ in range(3):
        try:
            await stream.result()
        except TransportError as error:
            depths.append(len(traceback.extract_tb(error.__traceback__)))
    assert len(set(depths)) == 1


async def test_reader_that_breaks_frees_its_place() -> None:
    stream = pushed(EVENTS[:3])
    async for event in stream:
        if isinstance(event, TextStart):
            break
    for event in EVENTS[3:]:
        stream.push(event)
    assert await stream.result() is MESSAGE
    seen: list[Event] = []
    await collect(stream, seen)
    assert seen == EVENTS[2:]


async def test_reader_that_closes_gives_up_the_rest() -> None:
    stream = pushed(EVENTS[:3])
    async with contextlib.aclosing(aiter(stream)) as reader:
        assert await anext(reader) == EVENTS[0]
    for event in EVENTS[3:]:
        stream.push(event)
    assert not stream._waiting
    with pytest.raises(StopAsyncIteration):
        await anext(reader)
    with pytest.raises(RuntimeError, match="read or given up"):
        aiter(stream)
    with pytest.raises(StreamSequenceError):
        stream.push(Start())
    assert await stream.result() is MESSAGE


async def test_reader_closed_by_another_task_while_it_waits() -> None:
    stream, seen = EventStream(), []
    reader = aiter(stream)

    async def read() -> None:
        seen.extend([event async for event in reader])
        seen.append(None)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        await anyio.wait_all_tasks_blocked()
        await reader.aclose()
    assert seen == [None]
    assert bad_push(stream)
    with pytest.raises(StopAsyncIteration):
        await anext(reader)


async def test_one_reader_at_a_time() -> None:
    stream = pushed(EVENTS)
    reader = aiter(stream)
    with pytest.raises(RuntimeError, match="being read already"):
        aiter(stream)
    assert [event async for event in reader] == EVENTS
    with pytest.raises(StopAsyncIteration):
        await anext(reader)


async def test_second_reading_is_not_silently_empty() -> None:
    stream = pushed(EVENTS)
    await collect(stream, [])
    with pytest.raises(RuntimeError, match=r"await result\(\)"):
        await collect(stream, [])


async def test_failed_reader_fails_again() -> None:
    stream = EventStream()
    reader = aiter(stream)
    error = fail(stream)
    for _ in range(2):
        with pytest.raises(ApiError) as caught:
            await anext(reader)
        assert caught.value is error


async def test_cancelled_reader_loses_nothing() -> None:
    stream, seen = EventStream(), []
    reader = aiter(stream)
    stream.push(EVENTS[0])
    assert await anext(reader) == EVENTS[0]
    with anyio.move_on_after(0) as scope:
        await anext(reader)
    assert scope.cancelled_caught
    stream.push(EVENTS[1])
    assert await anext(reader) == EVENTS[1]  # the same reader goes on

    del reader
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(collect, stream, seen)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    for event in EVENTS[2:]:
        stream.push(event)
    await collect(stream, seen)  # and so does the next one
    assert seen == EVENTS[2:]


async def test_cancelled_in_the_moment_of_an_event() -> None:
    stream, seen = EventStream(), []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(collect, stream, seen)
        await anyio.wait_all_tasks_blocked()
        stream.push(EVENTS[0])
        tasks.cancel_scope.cancel()
    for event in EVENTS[1:]:
        stream.push(event)
    await collect(stream, seen)
    assert seen == EVENTS


async def test_cancelled_waiter_for_the_result() -> None:
    stream = EventStream()
    with anyio.move_on_after(0) as scope:
        await stream.result()
    assert scope.cancelled_caught
    for event in EVENTS:
        stream.push(event)
    assert await stream.result() is MESSAGE


async def test_two_tasks_share_one_reader() -> None:
    stream, seen = EventStream(), []
    reader = aiter(stream)

    async def read() -> None:
        seen.extend([event async for event in reader])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        tasks.start_soon(read)
        await push_slowly(stream, EVENTS)
    assert len(seen) == len(EVENTS)
    assert all(event in seen for event in EVENTS)


async def test_cancelled_readers_hold_nothing() -> None:
    stream = EventStream()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(collect, stream, [])
        tasks.start_soon(stream.result)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert not stream._over._wakers
    gone = weakref.ref(stream)
    del stream
    gc.collect()
    assert gone() is None


async def test_reader_that_left_cannot_come_back_beside_the_next() -> None:
    stream = pushed(EVENTS[:1])
    first = aiter(stream)
    await anext(first)
    with anyio.move_on_after(0):
        await anext(first)
    second = aiter(stream)
    stream.push(EVENTS[1])
    with pytest.raises(RuntimeError, match="being read already"):
        await anext(first)
    assert await anext(second) == EVENTS[1]
