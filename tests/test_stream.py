"""Streams over sources of bytes: iterating, the message, giving up, several readers, sources that fail."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import anyio
import httpx
import pytest
from tests.calls import LAST, begin, block_stop, collect, delta, error_frame, stop, text, text_start

import sseam
from sseam import Done, StreamAborted, TextDelta, TransportError, TruncatedStream, aiter_events, iter_events

pytestmark = pytest.mark.anyio

PROTOCOL = "anthropic-messages"
HELLO = text("Hel", "lo")
WHOLE = sseam.parse(b"".join(HELLO), PROTOCOL)


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


class Source:
    """Chunks, sync and async, that tell whether they were closed; an exception among them is raised."""

    def __init__(self, *chunks: bytes | BaseException | None) -> None:
        self.chunks = iter(chunks)
        self.taken = 0
        self.closed = 0
        self.blocked = anyio.Event()

    def _take(self, stop: type[Exception]) -> bytes | None:
        for chunk in self.chunks:
            self.taken += 1
            if isinstance(chunk, BaseException):
                raise chunk
            return chunk
        raise stop

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        chunk = self._take(StopIteration)
        assert chunk is not None
        return chunk

    def close(self) -> None:
        self.closed += 1

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        chunk = self._take(StopAsyncIteration)
        if chunk is None:  # nothing more comes
            self.blocked.set()
            await anyio.sleep(60)
            raise AssertionError
        await anyio.sleep(0)
        return chunk

    async def aclose(self) -> None:
        self.closed += 1


# Each check runs for both kinds of stream, under either loop.


class Run:
    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.is_async = isinstance(stream, sseam.AsyncStream)
        self.events: list[Any] = []

    async def iterate(self) -> None:
        if self.is_async:
            await collect(self.stream, self.events)
        else:
            self.events += self.stream

    async def message(self) -> sseam.Message:
        return await self.stream.message() if self.is_async else self.stream.message()

    async def close(self) -> None:
        await self.stream.aclose() if self.is_async else self.stream.close()


@pytest.fixture(params=["sync", "async"])
def over(request: pytest.FixtureRequest) -> Callable[..., Run]:
    make = iter_events if request.param == "sync" else aiter_events
    return lambda source, **options: Run(make(source, PROTOCOL, **options))


async def test_events_then_the_message(over: Callable[..., Run]) -> None:
    source = Source(*HELLO)
    run = over(source)
    await run.iterate()
    assert isinstance(run.events[-1], Done)
    assert [event.text for event in run.events if isinstance(event, TextDelta)] == ["Hel", "lo"]
    assert await run.message() == WHOLE
    assert run.stream.partial == WHOLE
    assert run.stream.attempts == ()
    assert source.closed == 1


async def test_the_message_then_the_events(over: Callable[..., Run]) -> None:
    run = over(Source(*HELLO))
    message = await run.message()
    assert message == WHOLE
    await run.iterate()
    assert run.events[-1].message is message


async def test_nothing_behind_the_end_is_read(over: Callable[..., Run]) -> None:
    source = Source(*HELLO, AssertionError("read on"))
    run = over(source)
    assert await run.message() == WHOLE
    assert source.taken == len(HELLO)
    assert source.closed == 1


async def test_options_are_the_parsers(over: Callable[..., Run]) -> None:
    cut = [begin(), text_start(), delta("x"), block_stop(), stop("max_tokens"), LAST]
    with pytest.raises(sseam.StopReasonError):
        await over(Source(*cut)).message()
    assert (await over(Source(*cut), accept=["max_tokens"]).message()).text == "x"


FAULTS: list[tuple[str, list[Any], type[Exception]]] = [
    ("it ends", [], TruncatedStream),
    ("the service fails", [error_frame("overloaded_error")], sseam.ApiError),
    ("reset", [ConnectionResetError("reset")], TransportError),
    ("httpx", [httpx.ReadError("broke")], TransportError),
    ("an error of ours", [sseam.FramingError("x")], sseam.FramingError),
]


@pytest.mark.parametrize(("rest", "kind"), [row[1:] for row in FAULTS], ids=[row[0] for row in FAULTS])
async def test_a_fault_comes_after_what_came_before_it(
    over: Callable[..., Run], rest: list[Any], kind: type[Exception]
) -> None:
    source = Source(*HELLO[:3], *rest)
    run = over(source)
    with pytest.raises(kind) as caught:
        await run.iterate()
    assert isinstance(caught.value, sseam.SseamError)
    assert isinstance(run.events[-1], TextDelta)
    assert caught.value.partial is not None
    assert caught.value.partial.text == "Hel"
    assert not caught.value.partial.complete
    assert source.closed == 1
    for _ in range(2):
        with pytest.raises(kind) as again:
            await run.message()
        assert again.value is caught.value


async def test_another_error_passes_and_ends_the_stream(over: Callable[..., Run]) -> None:
    source = Source(*HELLO[:3], ZeroDivisionError("mine"))
    run = over(source)
    with pytest.raises(ZeroDivisionError, match="mine"):
        await run.iterate()
    assert source.closed == 1
    with pytest.raises(StreamAborted, match="raised ZeroDivisionError"):
        await run.message()


async def test_abort(over: Callable[..., Run]) -> None:
    source = Source(*HELLO)
    run = over(source)
    if run.is_async:
        iterator = aiter(run.stream)
        event = await anext(iterator)
    else:
        iterator = iter(run.stream)
        event = next(iterator)
    assert isinstance(event, sseam.Start)
    run.stream.abort()
    run.stream.abort()
    with pytest.raises(StreamAborted) as caught:
        _ = await anext(iterator) if run.is_async else next(iterator)
    message = await run.message()
    assert (message.id, message.stop_reason, message.complete) == ("msg_1", "aborted", False)
    assert caught.value.partial == message
    assert source.taken == 1
    assert source.closed == 1


async def test_closing_early_gives_nothing(over: Callable[..., Run]) -> None:
    source = Source(*HELLO)
    run = over(source)
    await run.close()
    await run.close()
    assert source.closed == 1
    with pytest.raises(StreamAborted, match="closed before its end"):
        await run.message()
    with pytest.raises(StreamAborted):
        await run.iterate()


async def test_closing_after_the_end_changes_nothing(over: Callable[..., Run]) -> None:
    run = over(Source(*HELLO))
    message = await run.message()
    await run.close()
    run.stream.abort()
    assert await run.message() is message


async def test_one_iterator(over: Callable[..., Run]) -> None:
    run = over(Source(*HELLO))
    await run.iterate()
    with pytest.raises(RuntimeError, match="delivered once"):
        await run.iterate()


async def test_the_context_manager_closes(over: Callable[..., Run]) -> None:
    source = Source(*HELLO)
    stream = over(source).stream
    if isinstance(stream, sseam.AsyncStream):
        async with stream as entered:
            assert entered is stream
    else:
        with stream as entered:
            assert entered is stream
    assert source.closed == 1


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_generators_do(kind: str) -> None:
    closed: list[str] = []

    async def chunks() -> AsyncIterator[bytes]:
        try:
            for chunk in HELLO:
                yield chunk
        finally:
            closed.append("async")

    def plain() -> Iterator[bytes]:
        try:
            yield from HELLO
        finally:
            closed.append("sync")

    for early in (False, True):
        run = Run(aiter_events(chunks(), PROTOCOL) if kind == "async" else iter_events(plain(), PROTOCOL))
        if early:
            iterator = aiter(run.stream) if run.is_async else iter(run.stream)
            _ = await anext(iterator) if run.is_async else next(iterator)
            await run.close()
        else:
            assert await run.message() == WHOLE
    assert closed == [kind] * 2


# ---- async


@pytest.mark.parametrize("thread", [False, True])
async def test_abort_ends_a_blocked_read(thread: bool) -> None:
    source = Source(*HELLO[:3], None)
    stream = aiter_events(source, PROTOCOL)
    events: list[Any] = []

    async def read() -> None:
        with pytest.raises(StreamAborted):
            await collect(stream, events)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            await source.blocked.wait()
            if thread:
                await anyio.to_thread.run_sync(stream.abort)
            else:
                stream.abort()
    assert isinstance(events[-1], TextDelta)
    assert (await stream.message()).text == "Hel"
    assert source.closed == 1


async def test_a_chunk_that_comes_with_the_abort_is_not_handed_out() -> None:
    class Late(Source):
        async def __anext__(self) -> bytes:
            chunk = await super().__anext__()
            if self.taken == 3:
                stream.abort()
            return chunk

    stream = aiter_events(Late(*HELLO), PROTOCOL)
    assert (await stream.message()).text == ""


async def test_cancelling_one_of_two_waiters_leaves_the_other() -> None:
    source = Source(*HELLO[:3], None)
    stream = aiter_events(source, PROTOCOL)
    got: list[Any] = []

    async def read() -> None:
        try:
            got.append(await stream.message())
        except StreamAborted as error:
            got.append(error)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            await source.blocked.wait()
            with anyio.move_on_after(0.05) as scope:
                await stream.message()
            assert scope.cancelled_caught
            assert got == []
            stream.abort()
    assert got[0].text == "Hel"


async def test_closing_while_another_task_reads() -> None:
    source = Source(*HELLO[:3], None)
    stream = aiter_events(source, PROTOCOL)
    raised: list[Exception] = []

    async def read() -> None:
        try:
            await stream.message()
        except StreamAborted as error:
            raised.append(error)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            await source.blocked.wait()
            await stream.aclose()
            assert source.closed == 1
    assert len(raised) == 1


def test_without_a_loop_it_says_so() -> None:
    stream = aiter_events(Source(*HELLO), PROTOCOL)
    with pytest.raises(RuntimeError, match="asyncio or trio"):
        stream.message().send(None)  # type: ignore[attr-defined]


async def test_letting_go_leaves_no_garbage_that_waits_for_the_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        source = Source(*HELLO)
        stream = aiter_events(source, PROTOCOL)
        async for _ in stream:
            break
        gone = weakref.ref(stream)
        del stream
        assert gone() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_aborting_from_a_thread_when_the_loop_is_gone() -> None:
    source = Source(*HELLO[:3], None)
    stream = aiter_events(source, PROTOCOL)

    async def begin_reading() -> None:
        task = asyncio.ensure_future(stream.message())
        await asyncio.sleep(0.05)
        task.cancel()

    await anyio.to_thread.run_sync(lambda: asyncio.run(begin_reading()))
    stream.abort()


# ---- threads


def test_abort_from_another_thread_takes_effect_with_the_next_chunk() -> None:
    may_go_on = threading.Event()
    stream: sseam.Stream

    def chunks() -> Iterator[bytes]:
        yield from HELLO[:3]
        may_go_on.wait(5)
        yield from HELLO[3:]

    stream = iter_events(chunks(), PROTOCOL)

    def give_up() -> None:
        stream.abort()
        stream.close()
        may_go_on.set()

    def read() -> None:
        for event in stream:
            if isinstance(event, TextDelta):
                threading.Timer(0.05, give_up).start()

    with pytest.raises(StreamAborted):
        read()
    assert stream.message().text == "Hel"


def test_many_threads_get_one_message() -> None:
    stream = iter_events(iter(HELLO), PROTOCOL)
    got: list[sseam.Message] = []
    threads = [threading.Thread(target=lambda: got.append(stream.message())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)
    assert len(got) == 8
    assert all(message is got[0] for message in got)
