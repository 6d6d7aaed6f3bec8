"""One thread for all alarms: they go off in time and in order, and it ends with the last one."""

from __future__ import annotations

import gc
import math
import os
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable

import pytest

from sseam._alarm import Alarm


def until(holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + 5
    while not holds() and time.monotonic() < end:
        time.sleep(0.002)
    return holds()


def running() -> bool:
    return any(thread.name == "sseam-watchdog" for thread in threading.enumerate())


def note(rung: list[str], name: str) -> Callable[[], float]:
    def ring() -> float:
        rung.append(name)
        return math.inf

    return ring


def soon(seconds: float) -> float:
    return time.monotonic() + seconds


def test_alarms_go_off_in_the_order_of_their_times() -> None:
    rung: list[str] = []
    alarms = {name: Alarm(note(rung, name)) for name in "abc"}
    for name, wait in {"c": 0.09, "a": 0.03, "b": 0.06}.items():
        alarms[name].set(soon(wait))
    assert until(lambda: len(rung) == 3)
    assert rung == ["a", "b", "c"]
    assert until(lambda: not running())


def test_a_time_that_has_passed() -> None:
    rung: list[str] = []
    Alarm(note(rung, "now")).set(soon(-1))
    assert until(lambda: rung == ["now"])


def test_a_later_time_does_not_move_it_and_an_earlier_one_does() -> None:
    rung: list[str] = []
    alarm = Alarm(note(rung, "once"))
    alarm.set(soon(30))
    alarm.set(soon(0.02))
    alarm.set(soon(30))
    assert until(lambda: rung == ["once"])
    assert alarm.due == math.inf
    assert until(lambda: not running())


def test_it_rings_again_when_it_says_so() -> None:
    rung: list[float] = []

    def ring() -> float:
        rung.append(time.monotonic())
        return soon(0.01) if len(rung) < 3 else math.inf

    Alarm(ring).set(soon(0.01))
    assert until(lambda: len(rung) == 3)
    assert rung[2] - rung[0] >= 0.02


def test_a_cancelled_alarm_stays_silent_and_is_let_go_of() -> None:
    rung: list[str] = []
    alarm = Alarm(note(rung, "never"))
    alarm.set(soon(0.05))
    alarm.cancel()
    alarm.set(soon(0.01))
    assert until(lambda: not running())
    time.sleep(0.06)
    assert rung == []


def test_many_that_are_cancelled_are_not_kept() -> None:
    class Kept:
        def ring(self) -> float:
            return math.inf

    def come_and_go() -> weakref.ref[Kept]:
        owner = Kept()
        alarm = Alarm(owner.ring)
        alarm.set(soon(60))
        alarm.cancel()
        return weakref.ref(owner)

    first = Alarm(Kept().ring)
    first.set(soon(30))
    kept = [come_and_go() for _ in range(1_000)]
    gc.collect()
    left = sum(ref() is not None for ref in kept)
    first.cancel()
    assert left < 100
    assert until(lambda: not running())


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_one_that_fails_does_not_silence_the_others() -> None:
    rung: list[str] = []

    def fail() -> float:
        raise ZeroDivisionError

    Alarm(fail).set(soon(0.01))
    Alarm(note(rung, "other")).set(soon(0.03))
    assert until(lambda: rung == ["other"])


def test_a_destructor_may_cancel_wherever_it_runs() -> None:
    """In the thread that is being started, too, while the one that starts it waits for it."""

    class Dropped:
        def __init__(self) -> None:
            self.alarm = Alarm(lambda: math.inf)
            self.alarm.set(soon(60))
            self.me = self

        def __del__(self) -> None:
            self.alarm.cancel()
            cancelled_in.append(threading.get_ident())

    cancelled_in: list[int] = []
    here = threading.get_ident()
    set_event = threading.Event.set

    def collecting(event: threading.Event) -> None:
        if threading.get_ident() != here:
            gc.collect()
        set_event(event)

    assert until(lambda: not running())
    gc.disable()
    try:
        with pytest.MonkeyPatch.context() as patch:
            dropped = Dropped()
            dropped.alarm.cancel()
            dropped.alarm = Alarm(lambda: math.inf)
            assert until(lambda: not running())
            del dropped
            patch.setattr(threading.Event, "set", collecting)
            alarm = Alarm(lambda: math.inf)
            alarm.set(soon(30))
    finally:
        gc.enable()
    assert cancelled_in
    assert here not in cancelled_in
    alarm.cancel()
    assert until(lambda: not running())


AT_EXIT = """
import math, time
from sseam._alarm import Alarm

class Last:
    def __init__(self):
        self.alarm = Alarm(lambda: math.inf)
        self.alarm.set(time.monotonic() + 0.01)
        self.others = [Alarm(lambda: time.monotonic() + 0.00001) for _ in range(50)]
        for other in self.others:
            other.set(time.monotonic())

    def __del__(self):
        for one in (self.alarm, *self.others):
            one.cancel()

last = Last()
"""


def test_a_program_ends_while_alarms_go_off() -> None:
    for _ in range(5):
        subprocess.run([sys.executable, "-c", AT_EXIT], check=True, timeout=20)


@pytest.mark.skipif(sys.platform == "win32", reason="has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_has_its_own() -> None:
    parents = Alarm(lambda: math.inf)
    parents.set(soon(30))
    child = os.fork()
    if child == 0:
        rung: list[str] = []
        Alarm(note(rung, "child")).set(soon(0.01))
        os._exit(0 if until(lambda: rung == ["child"]) else 1)
    parents.cancel()
    assert os.waitpid(child, 0)[1] == 0
