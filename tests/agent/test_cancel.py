"""`CancelToken`: set once, from anywhere, and it forgets who left."""

from __future__ import annotations

import threading

from sseam.agent.cancel import CancelToken


def test_tells_each_subscriber_once() -> None:
    token, told = CancelToken(), []
    token.subscribe(lambda: told.append("a"))
    token.subscribe(lambda: told.append("b"))
    assert not token.cancelled
    token.cancel()
    token.cancel()
    assert token.cancelled
    assert told == ["a", "b"]


def test_late_subscribers_are_told_at_once() -> None:
    token, told = CancelToken(), []
    token.cancel()
    unsubscribe = token.subscribe(lambda: told.append("late"))
    assert told == ["late"]
    unsubscribe()


def test_a_subscription_can_be_taken_back_at_any_time() -> None:
    """B220."""
    token, told = CancelToken(), []
    first = token.subscribe(lambda: told.append("first"))
    again = token.subscribe(lambda: told.append("second"))
    first()
    first()
    token.cancel()
    again()
    assert told == ["second"]
    assert not token._callbacks


def test_a_subscriber_may_take_back_another_while_it_is_told() -> None:
    token, told = CancelToken(), []
    token.subscribe(lambda: (told.append("first"), second()))
    second = token.subscribe(lambda: told.append("second"))
    token.cancel()
    assert told[0] == "first"


def test_from_another_thread() -> None:
    token, threads = CancelToken(), []
    token.subscribe(lambda: threads.append(threading.get_ident()))
    thread = threading.Thread(target=token.cancel)
    thread.start()
    thread.join()
    assert token.cancelled
    assert threads != [threading.get_ident()]
