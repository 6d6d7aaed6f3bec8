"""Each rule on its own, then the whole repair; ids of behaviours are those of the case collection."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sseam import models
from sseam.content import DocumentContent, ImageContent, TextContent
from sseam.context import ToolResultMessage, UserMessage, assistant
from sseam.errors import RequestError
from sseam.handover import paired_server_tools, server_ids
from sseam.message import (
    Message,
    OpaqueBlock,
    RedactedThinkingBlock,
    RefusalBlock,
    ServerToolBlock,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    WithheldCall,
)
from sseam.request.calls import NOT_RUN, IdRule, answer_calls, translate_ids
from sseam.tools import ToolResult
from sseam.transform import Target, original_ids, repair

CLAUDE = models.anthropic("claude-sonnet-4-5")
SIGNED = Target(
    model=CLAUDE,
    ids=IdRule(alphabet="a-zA-Z0-9_-", max_length=64, unique=True),
    thinking="signed",
    needs_outcome=True,
    blank_text=True,
)
PLAIN = Target(model=models.compatible("m", base_url="https://api.deepseek.com"), thinking="plain")
NONE = Target(model=models.openai("gpt-4o"))


def call(id="c1", name="f", **rest):
    return ToolCall(id=id, name=name, arguments={}, arguments_json="{}", **rest)


def result(id="c1", text="r", name="f", **rest):
    return ToolResult(call_id=id, name=name, content=(TextContent(text),), **rest)


def results(*ids):
    return ToolResultMessage(tuple(result(id) for id in ids))


def turn(*content, **rest):
    fields = {"protocol": "anthropic-messages", "model": "claude-sonnet-4-5-20250929", "complete": True, **rest}
    return Message(content=content, **fields)


def not_run(id="c1", name="f"):
    return ToolResult(call_id=id, name=name, content=(TextContent(NOT_RUN),), is_error=True)


HI, BYE = UserMessage("hi"), UserMessage("bye")


def test_b194_an_interrupted_call_gets_a_result_right_after_its_turn():
    assert repair([HI, turn(call()), BYE], SIGNED) == (HI, turn(call()), ToolResultMessage((not_run(),)), BYE)


def test_b196_results_without_their_call_are_dropped():
    history = [results("gone"), HI, turn(TextBlock(text="ok")), results("c9"), BYE]
    assert repair(history, SIGNED) == (HI, turn(TextBlock(text="ok")), BYE)


@pytest.mark.parametrize("stop_reason", ["aborted", "error", None])
def test_b198_a_failed_turn_keeps_its_text_and_loses_its_calls_with_their_results(stop_reason):
    failed = turn(
        ThinkingBlock(thinking="hm", signature="s"),
        TextBlock(text="so far"),
        call(),
        complete=False,
        stop_reason=stop_reason,
        withheld=(WithheldCall(id="c2", name="f", arguments_json="{", reason="open", index=3),),
    )
    repaired = repair([HI, failed, results("c1"), BYE], SIGNED)
    assert [message.content for message in repaired] == ["hi", (TextBlock(text="so far"),), "bye"]


def test_b198_a_failed_turn_without_text_goes():
    assert repair([HI, turn(call(), complete=False), results("c1"), BYE], SIGNED) == (HI, BYE)


@pytest.mark.parametrize("stop_reason", ["refusal", "content_filter"])
def test_a_refused_turn_goes(stop_reason):
    refused = turn(TextBlock(text="partly"), call(), stop_reason=stop_reason)
    assert repair([HI, refused, results("c1"), BYE], SIGNED) == (HI, BYE)


def test_b200_reasoning_goes_with_the_block_it_led_to():
    paired = Target(model=models.openai_responses("gpt-5"), thinking="signed", needs_outcome=True, paired=True)
    thought = ThinkingBlock(thinking="", extra={"id": "rs_1", "encrypted_content": "e"})
    other = ThinkingBlock(thinking="", extra={"id": "rs_2", "encrypted_content": "e"})
    own = {"protocol": "openai-responses", "model": "gpt-5"}
    kept = turn(thought, call(), **own)
    assert repair([HI, kept], paired)[1] == kept
    for content in ((other, TextBlock(text=""), thought, call()), (thought, call(), other)):
        assert repair([HI, turn(*content, **own)], paired)[1] == kept


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (ThinkingBlock(thinking="hm"), {}),
        (ThinkingBlock(thinking="hm", signature=""), {}),
        (ThinkingBlock(thinking="hm", signature="s"), {"model": "claude-opus-4-1"}),
        (ThinkingBlock(thinking="hm", signature="s"), {"protocol": "gemini-generate", "model": "gemini-3-pro"}),
        (RedactedThinkingBlock(data="d"), {"model": "claude-opus-4-1"}),
    ],
)
def test_b202_unsigned_and_foreign_thinking_is_left_out(block, message):
    repaired = repair([HI, turn(block, TextBlock(text="ok"), **message)], SIGNED)
    assert repaired[1].content == (TextBlock(text="ok"),)


def test_own_thinking_stays_as_it_is():
    own = turn(ThinkingBlock(thinking="", signature="s"), RedactedThinkingBlock(data="d"), call(extra={"caller": {}}))
    assert repair([HI, own, results("c1")], SIGNED)[1] == own


def test_foreign_thinking_becomes_plain_text_where_there_is_a_field_for_it():
    foreign = turn(ThinkingBlock(thinking="hm", signature="s"), RedactedThinkingBlock(data="d"), TextBlock(text="ok"))
    assert repair([HI, foreign], PLAIN)[1].content == (ThinkingBlock(thinking="hm"), TextBlock(text="ok"))
    assert repair([HI, foreign], NONE)[1].content == (TextBlock(text="ok"),)


def test_a_foreign_turn_keeps_what_everyone_can_read():
    foreign = turn(
        TextBlock(text="a", citations=({"type": "char_location"},), signature="s", extra={"id": "msg_1"}),
        RefusalBlock(text="no"),
        ServerToolBlock(kind="web_search_call", raw={"type": "web_search_call"}),
        OpaqueBlock(kind="new", raw={"type": "new"}),
        call(signature="s", extra={"id": "fc_1"}),
        protocol="openai-responses",
        model="gpt-5",
    )
    assert repair([HI, foreign], SIGNED)[1].content == (TextBlock(text="a"), TextBlock(text="no"), call())


def test_a_block_that_could_not_be_folded_is_not_sent_back():
    broken = OpaqueBlock(kind="new", raw={"type": "new"}, deltas=({"type": "x"},))
    whole = OpaqueBlock(kind="new", raw={"type": "new"})
    assert repair([HI, turn(whole, broken, TextBlock(text="ok"))], SIGNED)[1].content == (whole, TextBlock(text="ok"))


def test_before_a_fallback_only_what_the_answering_model_can_read_stays():
    search = ServerToolBlock(kind="server_tool_use", raw={"type": "server_tool_use", "id": "s1"})
    found = ServerToolBlock(kind="web_search_tool_result", raw={"type": "web_search_tool_result", "tool_use_id": "s1"})
    lost = ServerToolBlock(kind="server_tool_use", raw={"type": "server_tool_use", "id": "s2"})
    fallback = OpaqueBlock(kind="fallback", raw={"type": "fallback"})
    connector = OpaqueBlock(kind="connector_text", raw={"type": "connector_text"})
    declined = (
        ThinkingBlock(thinking="x", signature="s"),
        TextBlock(text="a"),
        connector,
        search,
        found,
        call("old"),
        lost,
    )
    message = turn(*declined, fallback, TextBlock(text="b"), call("new"))
    repaired = repair([HI, message, results("old", "new")], SIGNED)
    assert repaired[1].content == (TextBlock(text="a"), search, found, fallback, TextBlock(text="b"), call("new"))
    assert repaired[2] == results("new")


def test_empty_text_goes_and_blank_text_where_it_is_refused():
    def texts(target):
        message = turn(
            TextBlock(text=""), TextBlock(text=" \n"), TextBlock(text="", signature="proof"), TextBlock(text="a")
        )
        user = UserMessage((TextContent(""), TextContent("\t"), TextContent("q")))
        first, second = repair([user, message], target)
        return [part.text for part in first.content], [block.text for block in second.content]

    assert texts(SIGNED) == (["q"], ["", "a"])
    assert texts(Target(model=CLAUDE)) == (["\t", "q"], [" \n", "", "a"])


def test_a_refusal_of_no_words_goes_too():
    said = turn(RefusalBlock(text=""), TextBlock(text="a"))
    assert repair([HI, said], SIGNED)[1].content == (TextBlock(text="a"),)


def test_thinking_stays_where_an_empty_text_behind_it_goes():
    # A turn that waits for results must come back with its thinking.
    thought = ThinkingBlock(thinking="hm", signature="s")
    assert repair([HI, turn(thought, TextBlock(text=""), call())], SIGNED)[1].content == (thought, call())


def test_thinking_at_the_end_stays_where_it_may():
    gemini = Target(model=models.gemini("gemini-3-pro"), thinking="signed")
    own = turn(
        TextBlock(text="a"), ThinkingBlock(thinking="", signature="s"), protocol="gemini-generate", model="gemini-3-pro"
    )
    assert repair([HI, own], gemini)[1] == own


def test_what_a_service_does_not_take_by_value_becomes_a_description():
    picky = Target(model=CLAUDE, image_types=("image/png",), document_types=("text/*",))
    vector = ImageContent(media_type="image/svg+xml", data="aGk=")
    linked = ImageContent(media_type="image/svg+xml", url="https://x/i")
    plain = DocumentContent(media_type="Text/CSV; charset=utf-8", data="aGk=")
    archive = DocumentContent(media_type="application/zip", data="aGk=")
    (user,) = repair([UserMessage((vector, linked, plain, archive))], picky)
    assert user.content[1:3] == (linked, plain)
    told = [json.loads(user.content[at].text) for at in (0, 3)]
    assert [each["reason"] for each in told] == [
        "an image of type image/svg+xml is not taken",
        "a document of type application/zip is not taken",
    ]


def test_thinking_that_a_cut_left_at_the_end_goes():
    cut = turn(TextBlock(text="a"), ThinkingBlock(thinking="hm", signature="s"), stop_reason="max_tokens")
    assert repair([HI, cut], SIGNED)[1].content == (TextBlock(text="a"),)


def test_attachments_become_descriptions_for_a_model_without_eyes():
    blind = Target(model=models.openai("gpt-3.5-turbo", input=()))
    image = ImageContent(media_type="image/png", data="aGVsbG8=")
    pdf = DocumentContent(media_type="", url="https://example.com/a.pdf", title="paper")
    text = DocumentContent(media_type="text/plain", text="words")
    shown = ToolResult(call_id="c1", name="f", content=(TextContent("here"), image))
    user, _, tool = repair([UserMessage((image, pdf, text)), turn(call()), ToolResultMessage((shown,))], blind)
    reason = "this model takes no images"
    picture = {"omitted": "image", "media_type": "image/png", "bytes": 5, "reason": reason}
    assert [json.loads(part.text) for part in user.content[:2]] == [
        picture,
        {
            "omitted": "document",
            "title": "paper",
            "url": "https://example.com/a.pdf",
            "reason": "this model takes no documents",
        },
    ]
    assert user.content[2] == text
    assert json.loads(tool.results[0].content[1].text) == picture


def test_results_come_in_the_order_of_the_calls_however_late_they_are():
    history = [HI, turn(call("a"), call("b")), BYE, results("b"), results("a"), turn(TextBlock(text="ok"))]
    assert repair(history, SIGNED) == (
        HI,
        turn(call("a"), call("b")),
        results("a", "b"),
        BYE,
        turn(TextBlock(text="ok")),
    )


def test_a_result_behind_the_next_turn_is_too_late():
    history = [turn(call("a")), HI, turn(TextBlock(text="ok")), results("a")]
    assert answer_calls(tuple(history))[1] == ToolResultMessage((not_run("a"),))


def test_neighbouring_turns_share_what_follows_them():
    first, second = turn(call("a")), turn(call("b"))
    assert answer_calls((first, second, results("b", "a"))) == (first, results("a"), second, results("b"))


@pytest.mark.parametrize(
    ("history", "told"),
    [
        ([turn(call("twice"), call("twice"))], "two tool calls of one message have the id 'twice'"),
        ([turn(call("c1")), results("c1", "c1")], "there are two results for the tool call 'c1'"),
        ([turn(call("c1")), results("c1"), results("c1")], "there are two results for the tool call 'c1'"),
        ([turn(call("c1"), complete=False)], "the conversation holds no message to send"),
    ],
)
def test_what_cannot_be_repaired_is_told(history, told):
    with pytest.raises(RequestError, match=re.escape(told)):
        repair(history, SIGNED)


ID_RULES = {
    "anthropic": IdRule(alphabet="a-zA-Z0-9_-", max_length=64, unique=True),
    "openai": IdRule(max_length=40),
    "mistral": IdRule(alphabet="a-zA-Z0-9", max_length=9, exact=True),
}


@pytest.mark.parametrize("rule", ID_RULES.values(), ids=ID_RULES)
@given(ids=st.lists(st.lists(st.text(min_size=1), min_size=1, max_size=4, unique=True), max_size=4))
def test_b204_ids_are_mapped_one_to_one_for_call_and_result_alike(rule, ids):
    target = Target(model=CLAUDE, ids=rule)
    history = [message for turn_ids in ids for message in (turn(*map(call, turn_ids)), results(*turn_ids))]
    sent = translate_ids(tuple(history), rule)
    names = [[block.id for block in message.content] for message in sent[::2]]
    assert names == [[result.call_id for result in message.results] for message in sent[1::2]]
    assert all(rule.accepts(name) for turn_names in names for name in turn_names)
    assert all(len(set(turn_names)) == len(turn_names) for turn_names in names)
    if rule.unique:
        flat = [name for turn_names in names for name in turn_names]
        assert len(set(flat)) == len(flat)
    # A history that grows keeps the ids that it had, and every id has a way back.
    for length in range(len(history)):
        assert translate_ids(tuple(history[:length]), rule) == sent[:length]
    back = original_ids(history, target)
    assert [[back[name] for name in turn_names] for turn_names in names] == ids


def test_b204_an_id_that_the_target_takes_stays():
    for rule, id in (("anthropic", "call_x-1"), ("openai", "functions.f:0"), ("mistral", "abcdefgh1")):
        assert translate_ids((turn(call(id)), results(id)), ID_RULES[rule])[0] == turn(call(id))


def test_ids_that_a_server_gives_again_in_a_later_turn_are_told_apart_where_they_must_be():
    history = (turn(call("call_0")), results("call_0"), turn(call("call_0")), results("call_0"))
    first, _, second, _ = translate_ids(history, SIGNED.ids)
    assert first.content[0].id == "call_0" != second.content[0].id
    assert translate_ids(history, NONE.ids) == history


def test_server_tools_stay_in_pairs():
    def block(kind, **raw):
        return ServerToolBlock(kind=kind, raw={"type": kind, **raw})

    asked, answered = block("server_tool_use", id="s1"), block("web_search_tool_result", tool_use_id="s1")
    waiting, lost = block("server_tool_use", id="s2"), block("web_search_tool_result", tool_use_id="s3")
    listing = block("mcp_tool_listing")
    blocks = (asked, answered, waiting, lost, listing)
    assert paired_server_tools(blocks) == (asked, answered, listing)
    assert paired_server_tools(blocks, open_turn=True) == (asked, answered, waiting, listing)
    assert paired_server_tools((answered,), among=server_ids((asked, answered))) == (answered,)


def test_a_turn_written_by_hand_is_taken_as_the_targets_own():
    own = assistant(ThinkingBlock(thinking="hm", signature="s"), "ok")
    assert repair([HI, own], SIGNED)[1] == own


def test_repair_changes_nothing_in_what_is_right_and_is_stable():
    history = (
        HI,
        turn(ThinkingBlock(thinking="x", signature="s"), call()),
        results("c1"),
        turn(TextBlock(text="ok")),
        BYE,
    )
    assert repair(history, SIGNED) == history
    broken = (results("x"), HI, turn(call("a b")), BYE, turn(TextBlock(text="")))
    assert repair(repair(broken, SIGNED), SIGNED) == repair(broken, SIGNED)
