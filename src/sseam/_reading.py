"""One call as it is read, without its I/O: attempts, the parser of each, the events nobody took yet, the end.

`Stream` and `AsyncStream` are two loops around this: they get bytes and hand them in here, hand out
events, and wait when they are told to.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from . import response as http
from ._body import Body
from ._broken import is_broken_connection, transport_error, with_causes
from ._mask import mask, mask_error
from .deadlines import NO_LIMITS, Deadlines, TimeLimits
from .errors import ApiError, SseamError, StreamAborted, TransportError, TruncatedStream
from .events import Done, Event, Failed, Start, TextDelta, UsageUpdate
from .message import Message, Timing
from .parser import Parser
from .response import Response
from .retry import Attempt, Received, Retry, back_off, say_what_was_asked, wait

if TYPE_CHECKING:
    from ._call import Request
    from .fold import State

__all__ = ["Reading"]

_ERROR_BODY_SECONDS = 10.0
_NO_RETRY = Retry(max_retries=0)


class Reading:
    """What is known of a call. One thread or task at a time hands in bytes; `abort` may come from any.

    Args:
        make_parser: makes the parser of an attempt.
        protocol: name of the protocol, for errors that no parser sees.
        request: what the bytes are an answer to: attempts are counted, timed and made again. None where
            nothing is requested.
        resume: the request that goes on where a parser's state is, None where nothing does.
        limits: time limits.
        retry: how often a failed attempt is made again.
        review: looks at a finished message; what it returns is its fault.
        on_end: called once with the message, or the partial one and the error.

    Attributes:
        parser: of the current attempt.
        events: what was read and not handed out.
        attempts: the requests that were made.
        deadlines: the time limits as they run.
        request: the one to be made next; fresh: it is to be made now.
        pause: seconds to wait before it, None where none is to be made.
        result: how it ended, None while it goes on.
        over: nothing more is to be read.
        given_up: set when the reader gave it up.
        iterated: it has its iterator.
    """

    def __init__(
        self,
        make_parser: Callable[[], Parser],
        *,
        protocol: str = "",
        request: Request | None = None,
        resume: Callable[[State[Any]], Request | None] | None = None,
        limits: TimeLimits = NO_LIMITS,
        retry: Retry = _NO_RETRY,
        review: Callable[[Message], SseamError | None] | None = None,
        on_end: Callable[[Message, SseamError | None], object] | None = None,
    ) -> None:
        self._make_parser = make_parser
        self._protocol = protocol
        self._retry = retry
        self._review = review
        self._on_end = on_end
        self.parser = make_parser()
        self.events: deque[Event] = deque()
        self.attempts: list[Attempt] = []
        self.deadlines = Deadlines(limits)
        self.request = request
        self._secrets = () if request is None else request.secrets
        self._resume = resume
        self._resumed = 0  # attempts to go on since an event came
        self.fresh = request is not None
        self.pause: float | None = None
        self.result: Done | Failed | None = None
        self.over = False
        self.given_up: StreamAborted | None = None
        self.iterated = False
        self._closed = False
        self._committed = False  # the end was handed out
        # For what must be either handed out or given up, and told once. A signal handler may abort within.
        self._ending = threading.RLock()
        self._told = False
        self._began: float | None = None
        self._first_event: float | None = None
        self._first_text: float | None = None
        self._waited = 0.0
        self._received: Received = "nothing"
        self._started = False  # a Start was given to the reader
        self._response: Response | None = None
        self._body = Body(protocol)
        self._marked = False  # content and text have come: nothing is to be noted any more

    # ---- what the reader sees

    @property
    def ended(self) -> bool:
        """Whether it came to its own end."""
        return isinstance(self.result, Done) and self.given_up is None

    @property
    def failed(self) -> bool:
        """Whether it ended in a fault."""
        return isinstance(self.result, Failed)

    @property
    def partial(self) -> Message:
        """The message so far."""
        if self.given_up is not None and self.given_up.partial is not None:
            return self.given_up.partial
        return self.parser.partial if self.result is None else self.result.message

    def claim(self) -> None:
        """Take the place of the one iterator. Raises `RuntimeError` when it is taken."""
        if self.iterated:
            raise RuntimeError("the stream has an iterator already: each event is delivered once")
        self.iterated = True

    def take(self) -> Event | None:
        """The next event, None when the stream is over. Raises the error of a fault in its place."""
        if self.given_up is not None:
            raise self.given_up.with_traceback(None)
        if not self.events:
            return None
        event = self.events.popleft()
        if event is self.result:
            self._commit()
            if type(event) is Failed:
                raise event.error.with_traceback(None)
        return event

    def message(self) -> Message:
        """The final message. Raises the error of a fault."""
        with self._ending:
            given_up = self.given_up
            self._committed = self._committed or (given_up is None and self.result is not None)
        if given_up is not None:
            if self._closed:
                raise given_up.with_traceback(None)
            return self.partial
        match self.result:
            case Done(_, message):
                return message
            case Failed(error):
                raise error.with_traceback(None)
            case None:
                raise RuntimeError("the stream is not over")

    def abort(self, *, closed: bool = False) -> None:
        """The reader gave up: what comes now is not read, and what was not taken is not handed out.

        An end that was handed out stays; one that only arrived does not count. With `closed` the
        reader did not ask for what there is, and `message()` has nothing to give.
        """
        if self._committed or self.given_up is not None:
            return
        timing = self._timing(time.monotonic())
        partial = msgspec.structs.replace(self.partial, stop_reason="aborted", complete=False, timing=timing)
        how = "closed before its end was read" if closed else "aborted"
        error = StreamAborted(f"the stream was {how}", partial=partial)
        with self._ending:
            if self._committed or self.given_up is not None:
                return
            self._closed = closed
            self.given_up = error
        self.over = True
        if self.result is None and self.attempts:
            self._note_failure(self.attempts[-1], error)
        self._end(partial, error)

    def _commit(self) -> None:
        """The end is handed out, unless the reader gave up: one of the two, whichever comes first."""
        with self._ending:
            if self.given_up is not None:
                raise self.given_up.with_traceback(None)
            self._committed = True

    # ---- what the source says

    def begin(self) -> None:
        """A request is about to be sent."""
        self.fresh = False
        now = time.monotonic()
        if self._began is None:
            self._began = now
        self.deadlines.begin(now)
        self.attempts.append(Attempt(number=len(self.attempts) + 1, waited=self._waited))

    def answered(self, response: Response) -> None:
        """Status and headers came.

        Raises `FramingError` for a content coding that is not known, and `ApiError` where it is that of a refusal.
        """
        response = msgspec.structs.replace(response, headers=mask(response.headers, self._secrets))
        attempt = self.attempts[-1]
        attempt.status = response.status
        attempt.headers = response.headers
        attempt.request_id = http.request_id(response.headers)
        self._response = response
        self._body = Body(self._protocol, response)
        if self._body.is_refusal:
            self.deadlines.allow(_ERROR_BODY_SECONDS, time.monotonic())

    def feed(self, chunk: bytes | None) -> None:
        """More of the body; None: it ended."""
        if chunk is None:
            self._finish()
        elif self._body.plain:
            self._parse(chunk)
        else:
            self._take_in(chunk)

    def interrupted(self, *, late: bool) -> None:
        """The read was ended: by `abort`, or because a time limit passed."""
        if not late or self.over:
            return
        if self._body.is_refusal:
            self._refuse()
        else:
            self._fail(self.deadlines.error(self.deadlines.passed(time.monotonic())))

    def break_off(self, cause: BaseException) -> None:
        """The source raised. What is no fault of the connection passes through."""
        if isinstance(cause, Exception):
            _leave_out_own_frames(cause)
        if self.over:
            # What a source raises that was given up does not matter; a cancellation is somebody else's.
            if not isinstance(cause, Exception):
                raise cause
        elif isinstance(cause, SseamError):
            self._fail(cause)
        elif not is_broken_connection(cause):
            foreign = StreamAborted(f"the source of the bytes raised {type(cause).__name__}")
            foreign.__cause__ = cause
            self._fail(foreign)
            raise cause
        elif self._body.is_refusal:
            _leave_out_all_frames(cause)
            self._refuse()
        else:
            error = transport_error(cause, started=self.deadlines.progressed is not None)
            now = time.monotonic()
            if error.timeout is not None:
                # The library's own timeout stands for whichever limit was the shorter one.
                early = error.timeout == "connect" and now < self.deadlines.due
                error = self.deadlines.error("connect" if early else self.deadlines.passed(now))
            error.__cause__ = cause
            self._fail(error)

    def start_over(self) -> None:
        """The pause is over: the next attempt may begin."""
        self.fresh = True
        self._waited, self.pause = self.pause or 0.0, None
        if self._resumed:
            self.parser.reconnect()
        else:
            self.parser = self._make_parser()
            self._received = "nothing"
        self._response = None
        self._body = Body(self._protocol)

    # ---- inside

    def _parse(self, chunk: bytes) -> None:
        now = time.monotonic()
        deadlines = self.deadlines
        deadlines.seen = now
        parser = self.parser
        before = parser.state
        events = parser.feed(chunk)
        state = parser.state
        if events:
            deadlines.progressed = now
            deadlines.paused = True
            if not self._marked:
                self._mark(events, now)
            self.events += events
            if state.head.result is not None:
                self._conclude(now)
        elif state is not before and state.head.deviations is before.head.deviations:
            # A signature, or whatever else the neutral side is not told of; empty frames are only counted.
            deadlines.progressed = now
            deadlines.paused = True

    def _take_in(self, chunk: bytes) -> None:
        """More of a body of which not all is known, or that is gathered."""
        self.deadlines.seen = time.monotonic()
        if self._received == "nothing":
            self._received = "bytes"
        try:
            for piece in self._body.take(chunk):
                self._parse(piece)
                if self.over or self.pause is not None:
                    return
        except SseamError as error:
            self._fail(error)
            return
        if self._body.is_full:
            self._refuse()

    def _finish(self) -> None:
        """The body ended."""
        whole = self._body.whole
        if whole is None:
            if not self._go_on(TruncatedStream("the body ended before the stream")):
                self._add(self.parser.finish(), time.monotonic())
        elif self._body.is_refusal:
            self._refuse()
        elif (error := self._error_in(whole)) is not None:
            self._fail(error)
        else:
            self._add(self.parser.feed_body(whole) or self.parser.finish(), time.monotonic())

    def _error_in(self, whole: bytes) -> SseamError | None:
        return None if self._response is None else http.error_in(self._protocol, self._response, whole)

    def _refuse(self) -> None:
        assert self._response is not None
        # Masked before it is cut to what is shown: half of a key is too much of it.
        body = mask(self._body.whole or b"", self._secrets)
        self._fail(http.refusal(self._protocol, self._response, body))

    def _add(self, events: list[Event], now: float) -> None:
        self._mark(events, now)
        self.events += events
        if self.parser.done:
            self._conclude(now)

    def _mark(self, events: list[Event], now: float) -> None:
        """Note what comes for the first time; a Start of a later attempt is not handed out again."""
        for event in list(events):
            kind = type(event)
            if kind is Failed:
                continue
            if self._first_event is None:
                self._first_event = now
            if kind is TextDelta and self._first_text is None:
                self._first_text = now
            if kind is Start:
                self._received = "events"
                if self._started:
                    events.remove(event)
                self._started = True
            elif kind is not UsageUpdate:
                self._received = "content"
        self._marked = self._first_text is not None and self._received == "content"

    def _conclude(self, now: float) -> None:
        """The parser is done: the last event is its `Done` or `Failed`."""
        last = self.events.pop()
        if isinstance(last, Failed):
            self._settle(last.error, now)
            return
        assert isinstance(last, Done)
        message = msgspec.structs.replace(last.message, timing=self._timing(now))
        fault = self._review(message) if self._review is not None else None
        if fault is None:
            self.result = Done(last.reason, message)
            self.over = True
            self.events.append(self.result)
            self._end(message, None)
        else:
            fault.partial = msgspec.structs.replace(message, complete=False)
            self._settle(fault, now)

    def _go_on(self, error: SseamError) -> bool:
        """Whether the rest of the events is asked for in another request, after an attempt that failed."""
        if self._resume is None:
            return False
        if self.deadlines.progressed is not None:
            self._resumed = 0
        match error:
            case TruncatedStream():
                pass
            case TransportError(retryable=True) if error.timeout != "total":
                pass
            case ApiError(retryable=True) if self._resumed:
                pass
            case _:
                return False
        request = self._resume(self.parser.state)
        if request is None or self._resumed >= self._retry.max_retries:
            return False
        asked = error.retry_after if isinstance(error, ApiError) else None
        seconds = back_off(self._retry, self._resumed + 1) if asked is None else asked
        if seconds > self._retry.max_retry_after or not self.deadlines.fits(seconds, time.monotonic()):
            return False
        self._resumed += 1
        self.request = request
        self.attempts[-1].error = error
        self._pause(seconds, error)
        return True

    def _pause(self, seconds: float, error: SseamError) -> None:
        _leave_out_all_frames(error)
        self.pause = seconds
        self.deadlines.stop()

    def _fail(self, error: SseamError) -> None:
        mask_error(error, self._secrets)
        if self._go_on(error):
            return
        if self.pause is None:
            self._add(self.parser.abort(error), time.monotonic())
        else:  # between two attempts, the parser of the first has ended already
            self._settle(error, time.monotonic())

    def _settle(self, error: SseamError, now: float) -> None:
        """The attempt failed: another one, or the end."""
        mask_error(error, self._secrets)
        if isinstance(error, ApiError | TransportError):
            error.delivered = self._received == "content"
        if self.attempts:
            attempt = self.attempts[-1]
            self._note_failure(attempt, error)
            if isinstance(error, ApiError) and error.request_id is None:
                error.request_id = attempt.request_id
            seconds = wait(self._retry, attempt.number, error, self._received)
            if seconds is not None and self.deadlines.fits(seconds, now):
                self._pause(seconds, error)
                return
            if self.request is not None and isinstance(error, ApiError | TransportError):
                asked = mask(f"{self.request.method} {self.request.url}", self._secrets)
                say_what_was_asked(error, asked, len(self.attempts), self._retry)
        partial = error.partial or self.parser.partial
        if self._began is not None:
            partial = msgspec.structs.replace(partial, timing=self._timing(now))
        error.partial = partial
        self.result = Failed(error, partial)
        self.over = True
        self.events.append(self.result)
        self._end(partial, error)

    def _note_failure(self, attempt: Attempt, error: SseamError) -> None:
        attempt.error = attempt.error or error
        if error.partial is not None and self._received not in ("nothing", "bytes"):
            usage = error.partial.usage
            attempt.usage = usage if usage.input_tokens is not None or usage.output_tokens is not None else None

    def _timing(self, now: float) -> Timing | None:
        began = self._began
        if began is None:
            return None
        return Timing(
            first_event=None if self._first_event is None else self._first_event - began,
            first_text=None if self._first_text is None else self._first_text - began,
            duration=now - began,
        )

    def _end(self, message: Message, error: SseamError | None) -> None:
        with self._ending:
            told, self._told = self._told, True
        if self._on_end is None or told:
            return
        try:
            self._on_end(message, error)
        except Exception as fault:  # of a hook that only looks on
            warnings.warn(f"the telemetry of a call failed: {fault!r}", RuntimeWarning, stacklevel=2)


def _leave_out_own_frames(error: Exception) -> None:
    """The error is kept, and our frames in its traceback would keep the stream, which closes when it is dropped."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__package__") == __package__:
        trace = trace.tb_next
    error.__traceback__ = trace


def _leave_out_all_frames(error: BaseException) -> None:
    """As `_leave_out_own_frames`, for an error that is kept and not raised: from Python 3.12 on each frame keeps its
    caller's, and a library's frames would keep ours."""
    for one in with_causes(error):
        one.__traceback__ = None
