"""Giving up: abort, cancellation, leaving early, and letting go, with servers that do not help."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import anyio
import anyio.to_thread
import httpx
import httpx2
import pytest
from tests.calls import CONTEXT, WITH_TOOL, begin, call, collect, delta, model, text, text_start
from tests.server import End, Pause, Server, answer, until

import sseam
from sseam import AsyncClient, Client, Done, StreamAborted, TextDelta

pytestmark = pytest.mark.anyio

# The first frames of an answer: its text is "Hello" by then.
HELLO = [begin(), text_start(), delta("Hello")]


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=[httpx, httpx2], ids=["httpx", "httpx2"])
def library(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


@pytest.fixture
async def http(library: Any, anyio_backend: str) -> AsyncIterator[Any]:
    """A client that must not be what closes the connections, and whose loop must be left as it was."""
    async with library.AsyncClient(limits=library.Limits(max_connections=4, max_keepalive_connections=0)) as client:
        yield client
        gc.collect()
        if anyio_backend == "asyncio":
            names = [repr(task.get_coro()) for task in asyncio.all_tasks() if not task.done()]
            assert [name for name in names if "TestRunner" not in name] == []


async def to_text(stream: sseam.AsyncStream) -> None:
    """Read until the first text was given."""
    async for event in stream:
        if isinstance(event, TextDelta):
            return


async def closed(server: Server) -> bool:
    """Whether all connections are closed soon. The loop goes on meanwhile."""
    return await anyio.to_thread.run_sync(server.wait_closed)


ENDLESS = [End.HANG, End.IGNORE]


def from_task(stream: sseam.AsyncStream) -> None:
    stream.abort()


def from_thread(stream: sseam.AsyncStream) -> None:
    threading.Thread(target=stream.abort).start()


@pytest.mark.parametrize("ending", ENDLESS)
@pytest.mark.parametrize("abort", [from_task, from_thread])
async def test_b214_abort_ends_a_blocked_read_at_once(
    server: Server, http: Any, ending: End, abort: Callable[[sseam.AsyncStream], None]
) -> None:
    server.add(answer(*HELLO, ending))
    raised: list[StreamAborted] = []
    async with AsyncClient(http).stream(model(server.url), CONTEXT) as stream:

        async def read() -> None:
            with pytest.raises(StreamAborted) as caught:
                async for _ in stream:
                    pass
            raised.append(caught.value)

        with anyio.fail_after(3):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(read)
                while stream.partial.text != "Hello":
                    await anyio.sleep(0.005)
                await anyio.wait_all_tasks_blocked()
                abort(stream)
            message = await stream.message()
        assert (message.text, message.stop_reason, message.complete) == ("Hello", "aborted", False)
        assert message == stream.partial
        assert raised[0].partial == message
        if ending is End.HANG:
            assert await closed(server)


@pytest.mark.parametrize("at", ["before", "connecting", "headers", "waiting for a retry"])
async def test_abort_before_the_first_event(server: Server, http: Any, at: str) -> None:
    server.add(answer(status=503, retry_after="60") if at == "waiting for a retry" else answer(End.SILENCE))
    # The server waits for the end of what it takes for a request's head, and the client for a handshake.
    url = server.url.replace("http", "https") if at == "connecting" else server.url
    async with AsyncClient(http).stream(model(url), CONTEXT) as stream:
        with anyio.fail_after(3):
            if at == "before":
                stream.abort()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_expect_abort, stream)
                if at in ("headers", "waiting for a retry"):
                    await anyio.to_thread.run_sync(server.wait_requests, 1)
                await anyio.sleep(0.05)
                stream.abort()
            message = await stream.message()
    assert (message.content, message.stop_reason, message.complete) == ((), "aborted", False)
    assert await closed(server)


async def _expect_abort(stream: sseam.AsyncStream) -> None:
    with pytest.raises(StreamAborted):
        async for _ in stream:
            pass


async def test_b208_nothing_is_handed_out_after_an_abort(server: Server, http: Any) -> None:
    server.add(answer(begin(), *call(0), *call(1, "toolu_2"), *text("x")[1:]))
    async with AsyncClient(http).stream(model(server.url), WITH_TOOL) as stream:
        iterator = aiter(stream)
        await anext(iterator)
        stream.abort()
        with pytest.raises(StreamAborted):
            await anext(iterator)
        assert (await stream.message()).complete is False


async def test_abort_with_the_very_last_byte_commits_nothing(server: Server, http: Any) -> None:
    """The whole answer is there, and its last event was not handed out."""
    server.add(answer(b"".join(text("Hello"))))
    async with AsyncClient(http).stream(model(server.url), CONTEXT) as stream:
        async for event in stream:
            if isinstance(event, TextDelta):
                break
        stream.abort()
        message = await stream.message()
        with pytest.raises(StreamAborted):
            await anext(_again(stream))
    assert (message.text, message.stop_reason, message.complete) == ("Hello", "aborted", False)


def _again(stream: Any) -> Any:
    """The iterator that the stream has already."""
    stream._reading.iterated = False
    return aiter(stream)


async def test_abort_in_the_turn_of_the_last_byte(server: Server, http: Any) -> None:
    """Whatever comes first, what one reader got is what every reader gets."""
    for turns in range(8):
        server.add(answer(*text("Hello")[:-1], Pause(0.02), text("Hello")[-1]))
        got: list[sseam.Message] = []
        async with AsyncClient(http).stream(model(server.url), CONTEXT) as stream:

            async def wait(stream: sseam.AsyncStream = stream, got: list[sseam.Message] = got) -> None:
                got.append(await stream.message())

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                while stream.partial.stop_reason is None:
                    await anyio.sleep(0)
                while not stream.partial.complete and stream.partial.stop_reason != "aborted":
                    await anyio.sleep(0)
                    if stream._reading.parser.done:
                        break
                for _ in range(turns):
                    await anyio.sleep(0)
                stream.abort()
            got.append(await stream.message())
        assert got[0] == got[1]
        assert got[0].complete is (got[0].stop_reason == "end_turn")


async def test_abort_after_the_end_changes_nothing(server: Server, http: Any) -> None:
    server.add(answer(*text("Hello")))
    async with AsyncClient(http).stream(model(server.url), CONTEXT) as stream:
        async for _ in stream:
            pass
        stream.abort()
        assert (await stream.message()).complete


# ---- cancelling the task


@pytest.mark.parametrize("ending", ENDLESS)
async def test_b216_cancelling_passes_through_and_closes(server: Server, http: Any, ending: End) -> None:
    server.add(answer(*HELLO, ending))
    stream = AsyncClient(http).stream(model(server.url), CONTEXT)
    with anyio.move_on_after(0.3) as scope:
        async for _ in stream:
            pass
    assert scope.cancelled_caught
    if ending is End.HANG:
        assert await closed(server)
    with pytest.raises(StreamAborted) as caught:
        await stream.message()
    assert caught.value.partial is not None
    assert caught.value.partial.text == "Hello"


async def test_cancelled_between_two_attempts(server: Server, http: Any) -> None:
    server.add(answer(status=503, retry_after="60"))
    stream = AsyncClient(http).stream(model(server.url), CONTEXT)
    with anyio.move_on_after(0.2) as scope:
        await stream.message()
    assert scope.cancelled_caught
    assert [attempt.status for attempt in stream.attempts] == [503]
    assert isinstance(stream.attempts[0].error, sseam.ApiError)
    with pytest.raises(StreamAborted):
        await stream.message()
    assert await closed(server)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_b216_a_cancellation_beside_an_abort_is_not_swallowed(server: Server, http: Any) -> None:
    server.add(answer(*HELLO, End.HANG))
    stream = AsyncClient(http).stream(model(server.url), CONTEXT)
    for first in ("abort", "cancel"):
        stream = AsyncClient(http).stream(model(server.url), CONTEXT)
        task = asyncio.ensure_future(stream.message())
        while stream.partial.text != "Hello":
            await asyncio.sleep(0.005)
        for step in (stream.abort, task.cancel) if first == "abort" else (task.cancel, stream.abort):
            step()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await closed(server)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_an_abort_leaves_no_cancellation_behind(server: Server, http: Any) -> None:
    server.add(answer(*HELLO, End.HANG))
    stream = AsyncClient(http).stream(model(server.url), CONTEXT)

    async def read() -> int:
        await stream.message()
        task = asyncio.current_task()
        assert task is not None
        await asyncio.sleep(0.01)
        return task.cancelling()

    task = asyncio.ensure_future(read())
    while stream.partial.text != "Hello":
        await asyncio.sleep(0.005)
    stream.abort()
    assert await task == 0


async def test_b218_three_ways_to_end_are_three_outcomes(server: Server, http: Any) -> None:
    server.add(answer(*HELLO, End.HANG))
    client = AsyncClient(http, limits=sseam.TimeLimits(idle=0.2))
    with pytest.raises(sseam.TransportError) as late:
        await client.complete(model(server.url), CONTEXT)
    assert late.value.timeout == "idle"
    with anyio.move_on_after(0.1) as scope:
        await client.complete(model(server.url), CONTEXT)
    assert scope.cancelled_caught
    stream = client.stream(model(server.url), CONTEXT)
    await to_text(stream)
    stream.abort()
    assert (await stream.message()).stop_reason == "aborted"


# ---- leaving early, and letting go


@pytest.mark.parametrize("ending", ENDLESS)
async def test_b210_leaving_early_closes_before_control_returns(server: Server, http: Any, ending: End) -> None:
    server.add(answer(*HELLO, ending))
    for _ in range(6):  # more than the pool has connections
        with anyio.fail_after(3):
            async with AsyncClient(http).stream(model(server.url), CONTEXT) as stream:
                async for event in stream:
                    if isinstance(event, TextDelta):
                        break
        if ending is End.HANG:
            assert server.wait_closed()  # the loop stands still
        with pytest.raises(StreamAborted, match="closed"):
            await stream.message()


async def test_b210_an_exception_in_the_loop_body(server: Server, http: Any) -> None:
    server.add(answer(*HELLO, End.HANG))
    with contextlib.suppress(ZeroDivisionError):
        async with AsyncClient(http).stream(model(server.url), CONTEXT) as stream:
            async for _ in stream:
                raise ZeroDivisionError
    assert await closed(server)


async def test_b210_cancelled_in_the_loop_body(server: Server, http: Any) -> None:
    server.add(answer(*HELLO, End.HANG))
    with anyio.move_on_after(0.2) as scope:
        async with AsyncClient(http).stream(model(server.url), CONTEXT) as stream:
            async for _ in stream:
                await anyio.sleep(10)
    assert scope.cancelled_caught
    assert await closed(server)


@pytest.mark.parametrize("ending", ENDLESS)
async def test_b210_a_stream_that_is_let_go_of(server: Server, http: Any, ending: End) -> None:
    server.add(answer(*HELLO, ending))
    for _ in range(6):
        with anyio.fail_after(3):
            async for event in AsyncClient(http).stream(model(server.url), CONTEXT):
                if isinstance(event, TextDelta):
                    break
            if ending is End.HANG:
                assert await closed(server)
    await anyio.sleep(0.1)  # the closing of the last one


async def test_b210_it_closes_at_once_also_after_attempts_that_failed(server: Server, http: Any) -> None:
    """Their errors are kept, and must not keep the stream: it is no garbage that has to be found first."""
    faults = [answer(End.NOTHING), answer(b"x", End.CLOSE, status=500)]
    gc.collect()
    gc.disable()
    try:
        for first in faults:
            server.add(first, answer(*HELLO, End.HANG))
            client = AsyncClient(http, retry=sseam.Retry(first_wait=0.001))
            async for event in client.stream(model(server.url), CONTEXT):
                if isinstance(event, TextDelta):
                    break
            assert await closed(server)
            server._answers.clear()
    finally:
        gc.enable()


async def test_b212_a_stream_goes_from_task_to_task(server: Server, http: Any) -> None:
    server.add(answer(*HELLO, Pause(0.02), *text("Hello")[3:]))
    stream = AsyncClient(http).stream(model(server.url), CONTEXT)
    iterator = aiter(stream)
    events: list[Any] = []

    async def step() -> None:
        events.append(await anext(iterator))

    with anyio.fail_after(3):
        while not events or not isinstance(events[-1], Done):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(step)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stream.aclose)
    assert (await stream.message()).complete


async def test_b214_closing_from_a_second_task(server: Server, http: Any) -> None:
    server.add(answer(*HELLO, End.HANG))
    stream = AsyncClient(http).stream(model(server.url), CONTEXT)
    with anyio.fail_after(3):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_expect_abort, stream)
            while stream.partial.text != "Hello":
                await anyio.sleep(0.005)
            await stream.aclose()
            assert await closed(server)


# ---- both at once


async def test_iterating_while_another_task_waits_for_the_message(server: Server, http: Any) -> None:
    pieces = [str(number) for number in range(20)]
    server.add(answer(*[piece for one in text(*pieces) for piece in (one, Pause(0.002))]))
    got: list[sseam.Message] = []
    async with AsyncClient(http).stream(model(server.url), CONTEXT) as stream:

        async def wait() -> None:
            got.append(await stream.message())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            tasks.start_soon(wait)
            seen = [event.text async for event in stream if isinstance(event, TextDelta)]
    assert seen == pieces
    assert got[0].text == got[1].text == "".join(pieces)


async def test_b233_message_before_after_and_without_iteration(server: Server, http: Any) -> None:
    server.add(answer(*text("Hello")))
    client = AsyncClient(http)
    async with client.stream(model(server.url), CONTEXT) as stream:
        message = await stream.message()
        assert [type(event).__name__ for event in [event async for event in stream]][-1] == "Done"
        assert await stream.message() is message
    async with client.stream(model(server.url), CONTEXT) as stream:
        await to_text(stream)
        assert (await stream.message()).text == "Hello"
    async with client.stream(model(server.url), CONTEXT) as stream:
        pass
    with pytest.raises(StreamAborted, match="closed before its end"):
        await stream.message()


async def test_two_iterators_are_refused(server: Server, http: Any) -> None:
    server.add(answer(*text("Hello")))
    async with AsyncClient(http).stream(model(server.url), CONTEXT) as stream:
        aiter(stream)
        with pytest.raises(RuntimeError, match="delivered once"):
            aiter(stream)


async def test_b235_every_waiter_gets_the_first_error(server: Server, http: Any) -> None:
    server.add(answer(*HELLO, Pause(0.05), End.RESET))
    stream = AsyncClient(http).stream(model(server.url), CONTEXT)
    raised: list[Exception] = []

    async def wait() -> None:
        try:
            await stream.message()
        except sseam.SseamError as error:
            raised.append(error)

    with anyio.fail_after(3):
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(wait)
    assert len(raised) == 3
    assert len({id(error) for error in raised}) == 1


async def test_b237_iterating_a_stream_that_has_failed(server: Server, http: Any) -> None:
    server.add(answer(*HELLO, End.CLOSE))
    stream = AsyncClient(http).stream(model(server.url), CONTEXT)
    with pytest.raises(sseam.TransportError):
        await stream.message()
    seen: list[Any] = []
    with pytest.raises(sseam.TransportError):
        await collect(stream, seen)
    assert isinstance(seen[-1], TextDelta)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_b220_many_streams_leave_nothing(server: Server, http: Any) -> None:
    server.add(answer(*text("x")))
    client = AsyncClient(http)
    loop: Any = asyncio.get_running_loop()
    for count in range(200):
        assert (await client.complete(model(server.url), CONTEXT)).text == "x"
        if count == 20:
            before = len(loop._scheduled)
    assert len(loop._scheduled) <= before + 5


# ---- without a loop


@pytest.fixture(params=[httpx, httpx2], ids=["httpx", "httpx2"])
def sync_http(request: pytest.FixtureRequest) -> Iterator[Any]:
    with request.param.Client() as client:
        yield client


@pytest.mark.parametrize("ending", ENDLESS)
def test_abort_from_another_thread_ends_a_blocked_read(server: Server, sync_http: Any, ending: End) -> None:
    server.add(answer(*HELLO, ending))
    with Client(sync_http).stream(model(server.url), CONTEXT) as stream:

        def give_up() -> None:
            until(lambda: stream.partial.text == "Hello")
            time.sleep(0.05)
            stream.abort()

        thread = threading.Thread(target=give_up)
        thread.start()
        began = time.monotonic()
        with pytest.raises(StreamAborted):
            for _ in stream:
                pass
        assert time.monotonic() - began < 3
        thread.join()
        message = stream.message()
        assert (message.text, message.stop_reason, message.complete) == ("Hello", "aborted", False)
        if ending is End.HANG:
            assert server.wait_closed()


def test_abort_from_another_thread_before_the_headers(server: Server, sync_http: Any) -> None:
    server.add(answer(End.SILENCE))
    with Client(sync_http).stream(model(server.url), CONTEXT) as stream:
        threading.Thread(target=lambda: (server.wait_requests(1), stream.abort())).start()
        with pytest.raises(StreamAborted):
            for _ in stream:
                pass
    assert server.wait_closed()


def test_closing_from_another_thread(server: Server, sync_http: Any) -> None:
    server.add(answer(*HELLO, End.HANG))
    stream = Client(sync_http).stream(model(server.url), CONTEXT)
    threading.Thread(target=lambda: (until(lambda: stream.partial.text == "Hello"), stream.close())).start()
    with pytest.raises(StreamAborted):
        for _ in stream:
            pass
    assert server.wait_closed()
    with pytest.raises(StreamAborted, match="closed"):
        stream.message()


def test_one_thread_iterates_and_others_wait(server: Server, sync_http: Any) -> None:
    server.add(answer(*[piece for one in text("a", "b") for piece in (one, Pause(0.01))]))
    got: list[sseam.Message] = []
    with Client(sync_http).stream(model(server.url), CONTEXT) as stream:
        threads = [threading.Thread(target=lambda: got.append(stream.message())) for _ in range(2)]
        for thread in threads:
            thread.start()
        assert [event.text for event in stream if isinstance(event, TextDelta)] == ["a", "b"]
        for thread in threads:
            thread.join(3)
    assert [message.text for message in got] == ["ab", "ab"]


def test_a_sync_stream_that_is_let_go_of(server: Server, sync_http: Any) -> None:
    server.add(answer(*HELLO, End.HANG))
    for _ in Client(sync_http).stream(model(server.url), CONTEXT):
        break
    gc.collect()
    assert server.wait_closed()
    assert until(lambda: not any(thread.name == "sseam-watchdog" for thread in threading.enumerate()))
