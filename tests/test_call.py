"""Model, context and options → the HTTP request of a call: what cannot be sent is told before anything is sent."""

from __future__ import annotations

import re
from typing import Any

import httpx
import httpx2
import msgspec
import pytest

from sseam import AsyncClient, Client, RequestError, Retry, TimeLimits, models
from sseam._call import prepare
from sseam.content import TextContent
from sseam.context import Context, Model, Options, ToolResultMessage, UserMessage
from sseam.message import Message, ToolCall
from sseam.tools import ToolResult

MODELS = [
    models.anthropic("claude-opus-5"),
    models.openai("gpt-5"),
    models.openai_responses("gpt-5"),
    models.gemini("gemini-3-pro"),
    models.gemini_interactions("gemini-3-pro"),
]
HALF = "a\ud800"
HI = UserMessage("hi")


def called(arguments: dict[str, Any], result: str) -> Context:
    text = '{"a":"\ud800"}'
    call = ToolCall(id="c1", name="f", arguments=arguments, arguments_json=text if arguments else "{}")
    found = ToolResult(call_id="c1", name="f", content=(TextContent(result),))
    return Context(messages=(HI, Message(content=(call,), complete=True), ToolResultMessage((found,))))


def declared(*tools: Any) -> Context:
    return Context(messages=(HI,), tools=tools)


REFUSED: dict[str, tuple[Context, Options]] = {
    "user": (Context(messages=(UserMessage(HALF),)), Options()),
    "system": (Context(system=HALF, messages=(HI,)), Options()),
    "tool name": (declared({"name": HALF, "input_schema": {"type": "object"}}), Options()),
    "tool description": (declared({"name": "f", "description": HALF, "input_schema": {"type": "object"}}), Options()),
    "result": (called({}, HALF), Options(skip_signatures=True)),
    "arguments": (called({"a": HALF}, "x"), Options(skip_signatures=True)),
    "extra_body": (Context(messages=(HI,)), Options(extra_body={"a": HALF})),
    "object": (Context(messages=(HI,)), Options(extra_body={"a": object()})),
    "nan": (Context(messages=(HI,)), Options(extra_body={"a": float("nan")})),
    "no name": (declared({"input_schema": {}}), Options()),
    "one name twice": (declared(*[{"name": "f", "input_schema": {"type": "object"}}] * 2), Options()),
    "schema": (declared({"name": "f", "input_schema": 5}), Options()),
    "declarations": (declared({"functionDeclarations": 5}), Options()),
    "nothing": (declared({"type": "function", "function": {}}), Options()),
}


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.protocol)
@pytest.mark.parametrize("what", REFUSED)
@pytest.mark.unusual_body
def test_what_cannot_be_sent_is_a_request_error(model: Model, what: str) -> None:
    context, options = REFUSED[what]
    with pytest.raises(RequestError):
        Client().stream(model, context, options, key="sk-test")


@pytest.mark.parametrize("model", MODELS[:2], ids=lambda model: model.protocol)
@pytest.mark.parametrize("options", [Options(stop_sequences=(HALF,)), Options(metadata={"user_id": HALF})])
def test_options_too(model: Model, options: Options) -> None:
    with pytest.raises(RequestError, match="half of a surrogate pair"):
        Client().stream(model, Context(messages=(HI,)), options, key="sk-test")


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.protocol)
def test_a_models_name_too(model: Model) -> None:
    with pytest.raises(RequestError):
        Client().stream(msgspec.structs.replace(model, id=HALF), Context(messages=(HI,)), key="sk-test")


CLIENT = Client(environ={})
LOCAL = models.anthropic("m", base_url="http://localhost", keys=())
PLAIN = Context(messages=(HI,))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("m", PLAIN), "model is a str, expected a Model, such as sseam.models.anthropic("),
        ((LOCAL, "hi"), "context is a str, expected a Context, such as Context(messages="),
        ((LOCAL, PLAIN, {"temperature": 1}), "options is a dict, expected an Options"),
    ],
)
def test_an_argument_of_another_kind(arguments: Any, words: str) -> None:
    with pytest.raises(TypeError, match=re.escape(words)):
        CLIENT.stream(*arguments)


# The same constructors without their types, for what a type checker would have found.
LOOSE: dict[str, Any] = {
    kind.__name__: kind for kind in (Context, Message, Options, ToolResult, UserMessage, ToolResultMessage)
}


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("Context(messages=('hi',))", "context.messages[0]: Expected `object`, got `str`. Write it as in Context("),
        ("Context(messages=(UserMessage(5),))", "context.messages[0].content: Expected `str | array`, got `int`"),
        ("Context(messages=(UserMessage('a'), UserMessage(('a',))))", "context.messages[1].content[0]: Expected"),
        ("Context(messages=(ToolResultMessage(('a',)),))", "context.messages[0].results[0]: Expected `object`"),
        (
            "Context(messages=(ToolResultMessage((ToolResult(call_id='c', name='f', content=('a',)),)),))",
            "context.messages[0].results[0].content[0]: Expected `object`, got `str`. Write it as in ToolResult.from",
        ),
        ("Context(messages=(Message(content=('a',)),))", "context.messages[0].content[0]: Expected `object`, got"),
        ("Context(system=5)", "context.system: Expected `str | array`, got `int`"),
        ("Options(temperature='x')", "options.temperature: Expected `float | null`, got `str`"),
        ("Options(thinking='much')", "options.thinking: Invalid enum value 'much'"),
        ("Options(stop_sequences='END')", "options.stop_sequences: Expected `array`, got `str`"),
    ],
)
def test_what_an_argument_is_made_of_is_told_by_its_place(written: str, words: str) -> None:
    value = eval(written, LOOSE)
    arguments = (value, Options()) if isinstance(value, Context) else (PLAIN, value)
    with pytest.raises(RequestError, match=re.escape(words)):
        CLIENT.stream(LOCAL, *arguments)


def test_lists_and_messages_as_dicts_are_taken() -> None:
    listed = LOOSE["Context"](messages=[{"role": "user", "content": "hi"}])
    assert prepare(LOCAL, listed, Options()).content == prepare(LOCAL, PLAIN, Options()).content


def test_an_option_of_a_call_that_there_is_not() -> None:
    wrong: Any = {"acept": ("refusal",)}
    with pytest.raises(TypeError, match="a call takes key, accept, strict, not acept"):
        CLIENT.stream(LOCAL, PLAIN, **wrong)


@pytest.mark.parametrize(
    ("kind", "http"),
    [
        (Client, httpx.AsyncClient),
        (AsyncClient, httpx.Client),
        (Client, httpx2.AsyncClient),
        (AsyncClient, httpx2.Client),
    ],
)
def test_an_http_client_of_the_other_kind(kind: Any, http: Any) -> None:
    with pytest.raises(TypeError, match=rf"sseam.{kind.__name__} sends with an httpx.{kind.__name__} or httpx2"):
        kind(http())
    with pytest.raises(TypeError, match="not with"):
        kind(http)


def test_no_repr_shows_a_key_that_stands_in_an_address() -> None:
    model = models.anthropic("m", base_url="http://user:secret-1@localhost/?key=secret-2", keys=())
    request = prepare(model, PLAIN, Options())
    assert "secret-2" in request.url
    assert "secret" not in repr(request)


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"retry": 3}, TypeError, "retry is an int, expected a Retry, such as Retry(max_retries=3)"),
        ({"retry": None}, TypeError, "retry is a NoneType, expected a Retry"),
        ({"limits": 10}, TypeError, "limits is an int, expected a TimeLimits, such as TimeLimits(total=60.0)"),
        ({"limits": TimeLimits(total="10")}, TypeError, "limits.total: Expected `float | null`, got `str`"),  # type: ignore[arg-type]  # pyright: ignore
        ({"limits": TimeLimits(total=-10)}, ValueError, "total is -10.0, expected a number that is not negative"),
        ({"limits": TimeLimits(idle=float("nan"))}, ValueError, "idle is nan, expected a number that is not negative"),
        ({"retry": Retry(max_retries=-1)}, ValueError, "max_retries is -1, expected"),
    ],
)
@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_settings_are_looked_at_when_a_client_is_made(kind: Any, settings: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=re.escape(words)):
        kind(**settings)


@pytest.mark.parametrize(
    ("base_url", "words"),
    [
        ("localhost:8000", "does not begin with http:// or https:// and a host"),
        ("ftp://localhost", "does not begin with http:// or https:// and a host"),
        ("https:///v1", "does not begin with http:// or https:// and a host"),
        ("http://localhost:99999", "is no address: Port out of range"),
        ("http://[::1", "is no address: Invalid IPv6 URL"),
        ("http://localhost/v1/messages", "ends with /v1/messages, which is put behind it: leave that out"),
        ("http://local\nhost", "holds characters that an address cannot carry"),
    ],
)
def test_a_base_url_that_cannot_be_right(base_url: str, words: str) -> None:
    with pytest.raises(RequestError, match=re.escape(words)):
        prepare(models.anthropic("m", base_url=base_url, keys=()), PLAIN, Options())


def test_a_key_that_is_none() -> None:
    wrong: Any = 3
    with pytest.raises(TypeError, match="key is an int, expected a str"):
        CLIENT.stream(LOCAL, PLAIN, key=wrong)
    with pytest.raises(RequestError, match="key is empty"):
        CLIENT.stream(LOCAL, PLAIN, key=" ")
    with pytest.raises(TypeError, match="got the single 'refusal'"):
        CLIENT.stream(LOCAL, PLAIN, accept="refusal")
