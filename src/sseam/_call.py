"""Model, context and options → the HTTP request of a call, and how its answer is read. No I/O."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Collection, Mapping
from typing import Any, TypedDict, TypeVar
from urllib.parse import quote, urlsplit

import msgspec

from . import forged, telemetry
from ._encode import encode
from ._mask import mask, secrets_in
from ._reading import Reading
from .context import Context, HistoryMessage, Model, Options, ToolResultMessage, UserMessage
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
from .tools import ToolResult

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


def make_settings(*, retry: Retry, limits: TimeLimits, refuse_text_calls: bool, telemetry: bool) -> Settings:
    """The settings of a client. Raises `TypeError` or `ValueError` for what cannot be one."""
    retry = _checked("retry", retry, Retry, "Retry(max_retries=3)", TypeError)
    limits = _checked("limits", limits, TimeLimits, "TimeLimits(total=60.0)", TypeError)
    for name, value in {**msgspec.structs.asdict(retry), **msgspec.structs.asdict(limits)}.items():
        if value is not None and not value >= 0:
            raise ValueError(f"{name} is {value}, expected a number that is not negative")
    return Settings(retry=retry, limits=limits, refuse_text_calls=refuse_text_calls, telemetry=telemetry)


class Request(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """An HTTP request. Its headers hold a key, its address may: its repr shows none.

    Attributes:
        secrets: values that no error may show, though the service sends them back.
    """

    method: str
    url: str
    headers: dict[str, str]
    content: bytes = b""
    secrets: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Request({self.method} {mask(self.url, self.secrets)}, {len(self.content):,} bytes)"


def prepare(
    model: Model, context: Context, options: Options, key: str | None = None, environ: Mapping[str, str] | None = None
) -> Request:
    """The request that asks `model` for a stream.

    Raises:
        RequestError: what was asked for cannot be sent, or there is no key.
        TypeError: an argument that is no model, context or options.
        ValueError: a model of a protocol that there is not.
    """
    model = _checked("model", model, Model, 'sseam.models.anthropic("…")')
    context = _checked("context", context, Context, 'Context(messages=(UserMessage("…"),))')
    options = _checked("options", options, Options, "Options(max_output_tokens=…)")
    context = msgspec.structs.replace(
        context, messages=tuple(itertools.starmap(_checked_message, enumerate(context.messages)))
    )
    if type(key) not in (str, type(None)):
        raise TypeError(f"key is {_a(type(key))}, expected a str")
    if key is not None and not key.strip():
        raise RequestError("key is empty: leave it out where none is needed")
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
    secrets = secrets_in(model.base_url, headers, own)
    try:
        url = protocol.url(model)
    except ValueError as error:
        raise RequestError(mask(f"base_url {model.base_url!r} is no address: {error}", secrets)) from None
    if fault := _fault_of(url, model.base_url):
        raise RequestError(f"base_url {mask(model.base_url, secrets)!r} {fault}")
    return Request("POST", url, headers, content, secrets)


def _fault_of(url: str, base_url: str) -> str:
    """What is wrong with an address, "" where nothing is."""
    if not (url.isprintable() and base_url.isprintable()):
        return "holds characters that an address cannot carry"
    try:
        address, base = urlsplit(url), urlsplit(base_url)
        if address.scheme not in ("http", "https") or not address.hostname:
            return "does not begin with http:// or https:// and a host"
        _ = address.port
    except ValueError as error:
        return f"is no address: {error}"
    own = address.path.removeprefix(base.path.rstrip("/"))
    if base.path.rstrip("/").endswith(own):
        return f"ends with {own}, which is put behind it: leave that out"
    return ""


T = TypeVar("T", bound=msgspec.Struct)


def _checked(what: str, value: T, kind: type[T], example: str, error_kind: type[Exception] = RequestError) -> T:
    """`value` with its fields as they are declared, lists as tuples: a struct does not look at what it is made of."""
    if not isinstance(value, kind):
        raise TypeError(f"{what} is {_a(type(value))}, expected {_a(kind)}, such as {example}")
    try:
        return msgspec.convert(msgspec.structs.asdict(value), kind)
    except msgspec.ValidationError as error:
        fault, _, place = str(error).partition(" - at `$")
        hint = f". Write it as in {example}" if place.startswith((".messages[", ".content[", ".results[")) else ""
        raise error_kind(f"{what}{place.rstrip('`')}: {fault}{hint}") from None


def _checked_message(place: int, message: HistoryMessage) -> HistoryMessage:
    at = f"context.messages[{place}]"
    match message:
        case UserMessage():
            return _checked(at, message, UserMessage, 'UserMessage("…")')
        case ToolResultMessage():
            message = _checked(at, message, ToolResultMessage, "ToolResultMessage((result,))")
            for number, result in enumerate(message.results):
                _checked(f"{at}.results[{number}]", result, ToolResult, "ToolResult.from_value(call, …)")
            return message
        case Message():
            return _checked(at, message, Message, 'assistant("…")')


def _a(kind: type) -> str:
    return f"{'an' if kind.__name__[0] in 'AEIOUaeiou' else 'a'} {kind.__name__}"


def _body(protocol: Any, model: Model, context: Context, options: Options) -> Any:
    try:
        declare(context.tools)
    except (TypeError, ValueError) as error:
        raise RequestError(str(error)) from error
    try:
        return protocol.body(model, context, options)
    except UnicodeEncodeError as error:
        raise RequestError("the request holds half of a surrogate pair, which UTF-8 cannot carry") from error


def reading_of(
    model: Model,
    context: Context,
    options: Options,
    request: Request,
    settings: Settings,
    call: CallOptions,
) -> Reading:
    """How the answer to a call is read. Raises `TypeError` for an option of the call that there is not."""
    if unknown := call.keys() - CallOptions.__annotations__.keys():
        raise TypeError(f"a call takes {', '.join(CallOptions.__annotations__)}, not {', '.join(sorted(unknown))}")
    given: Any = call.get("accept", ())
    if isinstance(given, str):
        raise TypeError(f"accept: expected a collection of stop reasons, got the single {given!r}")
    accept = set(given)
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
