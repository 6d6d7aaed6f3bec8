"""Who is measured: the floor, sseam, httpx-sse without JSON, and each vendor's SDK with its own accumulation."""

import codecs
import json
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

from floor import Folded, floor

NAMES = ("floor", "sseam", "httpx-sse", "SDK")
PACKAGES = ("sseam", "msgspec", "httpx-sse", "anthropic", "openai", "google-genai", "httpx2")
Outcome = tuple[str, list[Any] | None]  # the text, and the arguments of the calls where the contestant gives them


class Contestant(NamedTuple):
    """`run` is timed. `outcome` is not: it shows once that the work was done (None: nothing to show)."""

    run: Callable[[list[bytes]], Any]
    outcome: Callable[[Any], Outcome | None]


def _floor(protocol: str) -> Contestant:
    def outcome(result: Folded) -> Outcome:
        text, calls = result
        if protocol == "gemini-generate":  # what it keeps are pieces of values, not of JSON text
            return "".join(text), None
        return "".join(text), [json.loads("".join(fragments)) for fragments in calls.values()]

    return Contestant(floor(protocol), outcome)


def _sseam(protocol: str) -> Contestant:
    import sseam

    def run(chunks: list[bytes]) -> Any:
        parser = sseam.Parser(protocol)
        for chunk in chunks:
            parser.feed(chunk)
        return parser.close()

    sseam.Parser(protocol)
    return Contestant(run, lambda message: (message.text, [call.arguments for call in message.tool_calls]))


def _httpx_sse(_protocol: str) -> Contestant:
    from httpx_sse._decoders import SSEDecoder, SSELineDecoder  # as its EventSource does, without the response

    def run(chunks: list[bytes]) -> int:
        characters = codecs.getincrementaldecoder("utf-8")()
        lines, events, count = SSELineDecoder(), SSEDecoder(), 0
        for chunk in chunks:
            for line in lines.decode(characters.decode(chunk)):
                if events.decode(line) is not None:
                    count += 1
        return count

    return Contestant(run, lambda _count: None)


def _response(body: Iterator[bytes]) -> Any:
    import httpx2

    return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=body)


def _anthropic() -> Contestant:
    import anthropic
    from anthropic.lib.streaming import MessageStream
    from anthropic.types import RawMessageStreamEvent

    client = anthropic.Anthropic(api_key="none")

    def run(chunks: list[bytes]) -> Any:
        raw: Any = anthropic.Stream(cast_to=RawMessageStreamEvent, response=_response(iter(chunks)), client=client)
        return MessageStream(raw, output_format=anthropic.NOT_GIVEN).get_final_message()

    def outcome(message: Any) -> Outcome:
        text = "".join(block.text for block in message.content if block.type == "text")
        return text, [block.input for block in message.content if block.type == "tool_use"]

    return Contestant(run, outcome)


def _openai_chat() -> Contestant:
    import openai
    from openai.lib.streaming.chat import ChatCompletionStream
    from openai.types.chat import ChatCompletionChunk

    client = openai.OpenAI(api_key="none")

    def run(chunks: list[bytes]) -> Any:
        raw = openai.Stream(cast_to=ChatCompletionChunk, response=_response(iter(chunks)), client=client)
        stream: Any = ChatCompletionStream(raw_stream=raw, response_format=openai.omit, input_tools=openai.omit)
        return stream.get_final_completion().choices[0].message

    def outcome(message: Any) -> Outcome:
        return message.content or "", [json.loads(call.function.arguments) for call in message.tool_calls or ()]

    return Contestant(run, outcome)


def _openai_responses() -> Contestant:
    import openai
    from openai.lib.streaming.responses import ResponseStream
    from openai.types.responses import ResponseStreamEvent

    client, omit = openai.OpenAI(api_key="none"), openai.omit

    def run(chunks: list[bytes]) -> Any:
        raw: Any = openai.Stream(cast_to=ResponseStreamEvent, response=_response(iter(chunks)), client=client)
        stream: Any = ResponseStream(raw_stream=raw, text_format=omit, input_tools=omit, starting_after=None)
        return stream.get_final_response()

    def outcome(response: Any) -> Outcome:
        calls = [item for item in response.output if item.type == "function_call"]
        return response.output_text, [json.loads(call.arguments) for call in calls]

    return Contestant(run, outcome)


def _google_genai() -> Contestant:
    """It folds nothing, so its chunks are read as its guide shows; its figure includes one mocked request a stream."""
    import httpx2
    from google import genai

    body: list[Iterator[bytes]] = []
    http = httpx2.Client(transport=httpx2.MockTransport(lambda _request: _response(body.pop())))
    client = genai.Client(api_key="none", http_options=genai.types.HttpOptions(httpx_client=http))

    def run(chunks: list[bytes]) -> tuple[list[str], list[Any]]:
        body.append(iter(chunks))
        text, calls = [], []
        for chunk in client.models.generate_content_stream(model="gemini-3-flash-preview", contents="hello"):
            for part in chunk.candidates[0].content.parts:
                if part.function_call:
                    calls.append(part.function_call)
                elif part.text and not part.thought:
                    text.append(part.text)
        return text, calls

    return Contestant(run, lambda result: ("".join(result[0]), None))


SDKS = {
    "anthropic-messages": _anthropic,
    "openai-chat": _openai_chat,
    "openai-responses": _openai_responses,
    "gemini-generate": _google_genai,
}


def contestants(protocol: str, names: list[str]) -> tuple[dict[str, Contestant], list[str]]:
    """Those of `names` that can run `protocol`, and a note for each that cannot."""
    makers = {"floor": _floor, "sseam": _sseam, "httpx-sse": _httpx_sse, "SDK": lambda name: SDKS[name]()}
    found: dict[str, Contestant] = {}
    notes: list[str] = []
    for name in names:
        try:
            found[name] = makers[name](protocol)
        except (ImportError, AttributeError, LookupError, ValueError) as error:
            notes.append(f"{name} not available: {error}")
    return found, notes


def versions() -> dict[str, str]:
    """The installed version of every package that takes part."""
    result = dict.fromkeys(PACKAGES, "not installed")
    for package in PACKAGES:
        try:
            result[package] = version(package)
        except PackageNotFoundError:
            continue
    return result
