"""The time limits of a call as it goes on, in made-up time."""

from __future__ import annotations

import math

import pytest

from sseam.deadlines import NO_LIMITS, Deadlines, TimeLimits

LIMITS = TimeLimits(first_event=10, idle=4, total=30)


def progress(deadlines: Deadlines, now: float) -> None:
    """An event comes, as `Reading.feed` notes it."""
    deadlines.progressed = now
    deadlines.paused = True


def test_each_limit_in_its_turn() -> None:
    deadlines = Deadlines(LIMITS)
    assert deadlines.due == math.inf
    deadlines.begin(100)
    assert deadlines.due == 110
    assert deadlines.passed(110) == "first_event"
    progress(deadlines, 108)
    deadlines.wait(109)
    assert deadlines.due == 113
    assert deadlines.passed(113) == "idle"
    progress(deadlines, 128)
    deadlines.wait(128)
    assert deadlines.due == 130
    assert deadlines.passed(130) == "total"


def test_a_later_attempt_has_its_own_first_event_and_no_new_total() -> None:
    deadlines = Deadlines(LIMITS)
    deadlines.begin(100)
    progress(deadlines, 101)
    deadlines.stop()
    assert deadlines.due == math.inf
    deadlines.begin(115)
    assert (deadlines.progressed, deadlines.seen) == (None, None)
    assert deadlines.due == 125
    assert deadlines.passed(125) == "first_event"
    deadlines.begin(125)
    assert deadlines.due == 130


@pytest.mark.parametrize(("wait", "fits"), [(0, True), (9.9, True), (10, False), (50, False)])
def test_whether_a_wait_fits(wait: float, fits: bool) -> None:
    deadlines = Deadlines(LIMITS)
    deadlines.begin(100)
    assert deadlines.fits(wait, 120) is fits
    unlimited = Deadlines(NO_LIMITS)
    unlimited.begin(100)
    assert unlimited.fits(wait, 120)


def test_a_limit_of_the_moment_only_shortens() -> None:
    deadlines = Deadlines(LIMITS)
    deadlines.begin(100)
    deadlines.allow(3, 101)
    assert deadlines.due == 104
    deadlines.allow(50, 101)
    assert deadlines.due == 104


def test_none_at_all() -> None:
    deadlines = Deadlines(NO_LIMITS)
    deadlines.begin(0)
    progress(deadlines, 1)
    deadlines.wait(2)
    assert deadlines.due == math.inf
