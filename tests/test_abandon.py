"""A call that blocks, turned away from: by another thread, by an exception in the one that waits, or never."""

from __future__ import annotations

import contextvars
import signal
import threading
import time
from collections.abc import Callable

import pytest

from sseam._abandon import Abandonable, Abandoned

WHO: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")


def never(_: object) -> None:
    raise AssertionError


def test_what_it_returns_and_raises() -> None:
    WHO.set("caller")
    assert Abandonable(lambda: WHO.get(), never).run() == "caller"
    with pytest.raises(ZeroDivisionError):
        Abandonable(lambda: 1 / 0, never).run()
    assert Abandonable(lambda: None, never).run() is None


def test_what_comes_after_it_was_abandoned_is_discarded() -> None:
    go_on = threading.Event()
    discarded: list[str] = []
    call = Abandonable(lambda: "late" if go_on.wait(5) else "", discarded.append)
    threading.Timer(0.05, call.abandon).start()
    with pytest.raises(Abandoned):
        call.run()
    assert discarded == []
    go_on.set()
    assert _until(lambda: discarded == ["late"])


def test_what_it_raises_after_it_was_abandoned_is_nobodys() -> None:
    go_on = threading.Event()
    before = set(threading.enumerate())

    def fail() -> None:
        go_on.wait(5)
        raise ZeroDivisionError

    call = Abandonable(fail, never)
    threading.Timer(0.02, call.abandon).start()
    with pytest.raises(Abandoned):
        call.run()
    go_on.set()
    assert _until(lambda: not set(threading.enumerate()) - before)


def test_abandoned_after_its_end_it_has_its_result() -> None:
    call = Abandonable(lambda: 5, never)
    assert call.run() == 5
    call.abandon()


def test_abandoned_before_it_runs_it_does_not_begin() -> None:
    call = Abandonable(lambda: pytest.fail("it began"), never)
    call.abandon()
    with pytest.raises(Abandoned):
        call.run()


def test_what_nobody_took_is_discarded_once_it_is_dropped() -> None:
    discarded: list[int] = []
    call = Abandonable(lambda: 5, discarded.append)
    call.run()
    call.abandon()
    assert discarded == []
    call.drop()
    call.drop()
    assert discarded == [5]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="has no timers of signals")
def test_a_signal_handler_may_abandon_the_call_that_its_thread_waits_for() -> None:
    go_on = threading.Event()
    before = signal.getsignal(signal.SIGALRM)
    calls: list[Abandonable[bool]] = []
    signal.signal(signal.SIGALRM, lambda *_: calls[-1].abandon())
    try:
        for _ in range(20):
            calls.append(Abandonable(lambda: go_on.wait(5), lambda _: None))
            signal.setitimer(signal.ITIMER_REAL, 0.005)
            with pytest.raises(Abandoned):
                calls[-1].run()
    finally:
        signal.signal(signal.SIGALRM, before)
        go_on.set()


def _until(holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + 5
    while not holds() and time.monotonic() < end:
        time.sleep(0.002)
    return holds()
