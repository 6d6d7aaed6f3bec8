"""Tool calls written as text: which notations are found, where they are not looked for, and what is left."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sseam
from sseam.forged import check, discard_protocol_violation
from sseam.message import Message, TextBlock, ThinkingBlock, ToolCall, WithheldCall

TOOLS = ["get_weather", "search.web"]

# name of the notation, the forged part.
FORGED = [
    ("invoke", '<invoke name="get_weather">\n<parameter name="city">Rome</parameter>\n</invoke>'),
    ("invoke", "<function_calls>\n<invoke name='get_weather'></invoke>\n</function_calls>"),
    ("invoke", '<x:function_calls>\n<x:invoke name="get_weather"></x:invoke>\n</x:function_calls>'),
    ("invoke", '<minimax:tool_call>\n<invoke name="get_weather">\n</invoke>\n</minimax:tool_call>'),
    ("invoke", '<invoke name="get_weather"><parameter name="city">Ro'),
    ("function", "<function=get_weather>\n<parameter=city>Rome</parameter>\n</function>"),
    ("function", "<tool_call>\n<function=get_weather>\n</function>\n</tool_call>"),
    ("function", '<function=get_weather>{"city": "Rome"}</function>'),
    ("function", '<function name="get_weather">{}</function>'),
    ("tool_call", '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Rome"}}\n</tool_call>'),
    ("tool_call", '<tool_call>{"arguments": {"city": "Rome"}, "name" : "get_weather"}</tool_call>'),
    ("tool_call", "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>\n</tool_call>"),
    ("tool_call", '<function_call>{"name":"get_weather"}</function_call>'),
    (
        "dsml",
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="get_weather">\n</｜DSML｜invoke>\n</｜DSML｜function_calls>',
    ),
    ("dsml", '<|DSML|invoke name="get_weather"><|DSML|parameter name="x">1</|DSML|parameter></|DSML|invoke>'),
    ("dsml", '<‖DSML‖invoke name="get_weather">'),
    (
        "deepseek",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{}\n```"
        "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    ),
    ("deepseek", "<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{}<｜tool▁call▁end｜>"),
    (
        "kimi",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{}"
        "<|tool_call_end|><|tool_calls_section_end|>",
    ),
    ("harmony", "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{}<|call|>"),
    ("harmony", "<|start|>assistant<|channel|>commentary to=functions.get_weather<|message|>{}<|call|>"),
    ("harmony", "to=functions.get_weather json{}"),
    ("python_tag", '<|python_tag|>{"type": "function", "name": "get_weather", "parameters": {}}'),
    ("python_tag", "<|python_tag|>get_weather.call(city='Rome')"),
    ("mistral", '[TOOL_CALLS][{"name": "get_weather", "arguments": {}}]'),
    ("mistral", "[TOOL_CALLS]get_weather[ARGS]{}"),
    ("invoke", '<invoke name="search.web"></invoke>'),
]


def message(*texts: str, **fields: object) -> Message:
    return Message(content=tuple(TextBlock(text=text) for text in texts), complete=True, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(("format", "forged"), FORGED)
def test_each_notation_is_found_and_taken_out(format: str, forged: str) -> None:
    for before, after in (("", ""), ("I look.\n\n", ""), ("I look. ", " So.") if _closes(forged) else ("x ", "")):
        said = message(before + forged + after)
        error = check(said, TOOLS)
        assert isinstance(error, sseam.OutputProtocolViolation)
        assert error.format == format
        assert error.tool in TOOLS
        assert error.where.block == 0
        left = discard_protocol_violation(said, TOOLS)
        assert left.text == (before + after if after else before.rstrip())
        assert left == discard_protocol_violation(said)
        assert check(left, TOOLS) is None
        assert discard_protocol_violation(left) == left


def _closes(forged: str) -> bool:
    return forged.endswith(">") and not forged.endswith('get_weather">')


INNOCENT = [
    "",
    "Nothing at all.",
    '<invoke name="other_tool"></invoke>',
    "`<function=get_weather>` is how it is written.",
    "``<function=get_weather> ` ``",
    "```\n<function=get_weather>\n```\nLike so.",
    "```xml\n<function=get_weather>",
    "~~~\n<tool_call>get_weather\n```\n</tool_call>\n~~~",
    "   ````md\n```\n<function=get_weather>\n```\n````",
    'Call get_weather with {"name": "get_weather"} in mind.',
    '{"name": "get_weather", "city": "Rome"}',
    '{"name": "other", "parameters": {}}',
    '[{"name": "get_weather", "parameters": {}}]',
    "a < b and <function> and <tool_call> and [TOOL_CALLS]",
    "<tool_call>{}</tool_call> get_weather",
]


@pytest.mark.parametrize("text", INNOCENT)
def test_what_is_none(text: str) -> None:
    assert check(message(text), TOOLS) is None
    assert discard_protocol_violation(message(text), TOOLS) == message(text) or not text


FOUND_BESIDE_CODE = [
    "`code` <function=get_weather>",
    "a ` b <function=get_weather>",
    "a ` b\n\n<function=get_weather> ` c",
    "```\ncode\n```\n<function=get_weather>",
    "```a`b <function=get_weather>",
    "~~~\n```\n~~~\n<function=get_weather>",
    "`` ` `` <function=get_weather>",
]


@pytest.mark.parametrize("text", FOUND_BESIDE_CODE)
def test_code_hides_only_what_is_in_it(text: str) -> None:
    assert check(message(text), TOOLS) is not None


def test_a_text_that_is_nothing_but_the_json_of_a_call() -> None:
    said = message('\n{"name": "get_weather", "parameters": {"city": "Rome"}}\n')
    error = check(said, TOOLS)
    assert error is not None
    assert (error.format, error.tool) == ("json", "get_weather")
    assert discard_protocol_violation(said, TOOLS).content == ()


def test_a_real_call_is_the_answer() -> None:
    call = ToolCall(id="c", name="get_weather", arguments={}, arguments_json="{}")
    text = TextBlock(text="<function=get_weather>")
    assert check(Message(content=(text, call)), TOOLS) is None
    held = WithheldCall(id="c", name="get_weather", arguments_json="{", reason="open", index=1)
    assert check(Message(content=(text,), withheld=(held,)), TOOLS) is None
    assert check(Message(content=(ThinkingBlock(thinking=text.text),)), TOOLS) is None
    assert check(Message(content=(text,)), []) is None


def test_the_block_is_named_and_others_stay() -> None:
    said = message("One.", "Two. <function=get_weather></function>", "<function=get_weather>")
    error = check(said, TOOLS)
    assert error is not None
    assert error.where.block == 1
    assert [block.text for block in discard_protocol_violation(said).content] == ["One.", "Two."]  # type: ignore[union-attr]


def test_several_calls_are_all_taken_out() -> None:
    forged = '<function_calls><invoke name="get_weather"></invoke><invoke name="search.web"></invoke></function_calls>'
    assert discard_protocol_violation(message(f"a {forged} b"), TOOLS).text == "a  b"


PIECES = [
    "<invoke name=",
    '"get_weather"',
    ">",
    "</invoke>",
    "<tool_call>",
    '{"name":',
    "`",
    "``",
    "```\n",
    "~~~\n",
    "\n",
]


@given(
    st.lists(
        st.sampled_from([*PIECES, "<|channel|>", "to=functions.", "get_weather", "[TOOL_CALLS]", " "]), max_size=40
    )
)
def test_taking_out_leaves_nothing_to_find_and_adds_nothing(pieces: list[str]) -> None:
    said = message("".join(pieces))
    left = discard_protocol_violation(said, TOOLS)
    rest = iter(said.text)
    assert all(letter in rest for letter in left.text)
    if check(said, TOOLS) is None:
        assert left == said


HOSTILE = [
    '<invoke name="get_weather">',
    "<invoke name=",
    "<tool_call>",
    '<tool_call>{"name":',
    "<function_calls>",
    "`",
    "`a``b```c",
    "```\n",
    " ",
    "<|channel|>",
    "<｜tool▁call▁begin｜>",
    "[TOOL_CALLS]",
    "<function=",
    "[",
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_time_is_linear(piece: str) -> None:
    def seconds(size: int) -> float:
        said = message(piece * (size // len(piece)))
        best = 10.0
        for _ in range(3):
            began = time.process_time()
            check(said, ["other"])
            discard_protocol_violation(said, ["other"])
            best = min(best, time.process_time() - began)
        return best

    # Four times the text; quadratic would be sixteen times the time.
    assert seconds(200_000) < 9 * seconds(50_000) + 0.05
