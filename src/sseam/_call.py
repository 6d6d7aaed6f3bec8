"""Model, context and options → the HTTP request of a call, and how its answer is read. No I/O."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Mapping
from typing import Any, TypedDict
from urllib.parse import quote

import msgspec

from . import forged, telemetry
from ._encode import encode
from ._reading import Reading
from .context import Context, Model, Options
from .deadlines import TimeLimits
from .declared import declare
from .errors import RequestError, SseamError
from .fold import State
from .message import Message
from .models import credential
from .parser import Parser
from .protocols import NAMES, load
from .request import join_url
from .retry import Retry

__all__ = ["CallOptions", "Request", "Settings", "prepare", "reading_of"]


class CallOptions(TypedDict, total=False):
    """How the answer to one call is taken.

    Attributes:
        key: the key for the model's service; without it the model's environment variables are looked at.
        accept: neutral stop reasons to take as an end, see `sseam.stop`.
        strict: refuse soft deviations from the protocol.
    """

    key: str | None
    accept: Collection[str]
    strict: bool


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What a client does with every call.

    Attributes:
        retry: how often a failed attempt is made again.
        limits: time limits.
        refuse_text_calls: a tool call that was written as text is an `OutputProtocolViolation`.
        telemetry: make a span of each call, where `opentelemetry-api` is installed.
    """

    retry: Retry = Retry()
    limits: TimeLimits = TimeLimits()
    refuse_text_calls: bool = True
    telemetry: bool = True


class Request(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """An HTTP request. Its headers hold a key: it has no repr of them.

    Attributes:
        secrets: values that no error may show, though the service sends them back.
    """

    method: str
    url: str
    headers: dict[str, str]
    content: bytes = b""
    secrets: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Request({self.method} {self.url}, {len(self.content):,} bytes)"


def prepare(
    model: Model, context: Context, options: Options, key: str | None = None, environ: Mapping[str, str] | None = None
) -> Request:
    """The request that asks `model` for a stream.

    Raises:
        RequestError: what was asked for cannot be sent, or there is no key.
        ValueError: a model of a protocol that there is not.
    """
    if model.protocol not in NAMES:
        load(model.protocol)  # which says what there is
    protocol: Any = importlib.import_module(f"{__package__}.protocols.{NAMES[model.protocol]}.request")
    own = credential(model, key, environ)
    headers = {"accept-encoding": "identity", **protocol.headers(options, own)}
    for name, value in headers.items():
        # An HTTP library would quote a value that it refuses, and it may be a key.
        if not (name.isascii() and value.isascii() and value.isprintable()):
            raise RequestError(f"header {name!r} holds characters that a header cannot carry")
    content = encode(_body(protocol, model, context, options), "the request")
    url = protocol.url(model)
    if not url.isprintable():
        raise RequestError(f"the address {url!r} holds characters that an address cannot carry")
    return Request("POST", url, headers, content, _secrets(headers, own))


def _body(protocol: Any, model: Model, context: Context, options: Options) -> Any:
    try:
        declare(context.tools)
    except (TypeError, ValueError) as error:
        raise RequestError(str(error)) from error
    try:
        return protocol.body(model, context, options)
    except UnicodeEncodeError as error:
        raise RequestError("the request holds half of a surrogate pair, which UTF-8 cannot carry") from error


_KEY_HEADERS = frozenset(("authorization", "proxy-authorization", "x-api-key", "x-goog-api-key", "api-key"))
# A shorter value is a placeholder ("none", "test"), and may stand in any text by chance.
_SHORTEST_SECRET = 6


def _secrets(headers: Mapping[str, str], own: Mapping[str, str]) -> tuple[str, ...]:
    """The keys in the headers, the longest first."""
    values = {value.split(" ", 1)[-1].strip() for name, value in headers.items() if name in _KEY_HEADERS | own.keys()}
    return tuple(sorted((value for value in values if len(value) >= _SHORTEST_SECRET), key=lambda value: -len(value)))


def reading_of(
    model: Model,
    context: Context,
    options: Options,
    request: Request,
    settings: Settings,
    call: CallOptions,
) -> Reading:
    """How the answer to a call is read."""
    accept = set(call.get("accept", ()))
    if options.stop_sequences:
        accept.add("stop_sequence")

    def make_parser() -> Parser:
        return Parser(
            model.protocol,
            dialect=model.dialect,
            strict=call.get("strict", False),
            tools=context.tools,
            accept=accept,
        )

    def review(message: Message) -> SseamError | None:
        fault = forged.check(message, context.tools)
        return None if fault is None else fault.at(protocol=load(model.protocol).TITLE)

    def resume(state: State[Any]) -> Request | None:
        return _resume(model, request, state)

    background = model.protocol == "openai-responses" and options.extra_body.get("background") is True
    return Reading(
        make_parser,
        protocol=model.protocol,
        request=request,
        resume=resume if background else None,
        limits=settings.limits,
        retry=settings.retry,
        review=review if settings.refuse_text_calls and context.tools else None,
        on_end=telemetry.span_recorder(model, options) if settings.telemetry else None,
    )


def _resume(model: Model, request: Request, state: State[Any]) -> Request | None:
    """The request for the events of a background response behind those that came; None where they have no numbers.

    Only a response that was made in the background goes on without its connection, and can be joined again.
    Source: OpenAI's API reference, "Get a model response", and its guide "Background mode" (read 2026-11-29).
    """
    from .protocols.openai_responses.order import last_number

    last, id = last_number(state), state.head.id
    if not id or last is None:
        return None
    address = join_url(model.base_url, f"/responses/{quote(id, safe='')}")
    headers = {name: value for name, value in request.headers.items() if name != "content-type"}
    url = f"{address}{'&' if '?' in address else '?'}stream=true&starting_after={last}"
    return Request("GET", url, headers, secrets=request.secrets)
