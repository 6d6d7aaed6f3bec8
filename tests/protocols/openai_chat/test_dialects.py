"""Dialects as data: the table of the wire reference, and what each code does in each mode."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import sseam
from sseam.dialect import Dialect
from sseam.errors import SseamError
from sseam.protocols.openai_chat import DEVIATIONS, DIALECTS, STOP_REASONS, dialect_for
from sseam.protocols.openai_chat.dialects import server_at
from sseam.protocols.openai_chat.request_dialects import DIALECTS as REQUEST_DIALECTS

from .streams import chunk, codes, parse


@pytest.fixture(scope="module")
def reference(shared: Path) -> dict[str, Any]:
    return json.loads((shared / "protocols" / "openai-chat.dialects.json").read_text("utf-8"))


def test_every_code_of_the_reference_has_its_grade(reference: dict[str, Any]) -> None:
    wanted = {code: row["class"] for code, row in reference["codes"].items()}
    wanted["leaked_tool_text"] = "soft"  # its own section: reported, and an error under strict
    assert {code: DEVIATIONS[code] for code in wanted} == wanted


def test_every_dialect_of_the_reference_lists_its_codes(reference: dict[str, Any]) -> None:
    assert len(reference["dialects"]) >= 40
    ours = {"github-copilot": {"choices_joined"}}
    for name, row in reference["dialects"].items():
        assert DIALECTS[name].codes == set(row["quirks"]) | ours.get(name, set()), name
        assert set(row["machine"]["strict_allow"]) <= DIALECTS[name].codes


def test_every_finish_reason_of_the_reference_is_mapped(reference: dict[str, Any]) -> None:
    table = reference["finish_reasons"]
    kinds = {
        "stop": "end_turn",
        "tool_calls": "tool_use",
        "function_call": "tool_use",
        "length": "max_tokens",
        "content_filter": "content_filter",
    }
    for raw in (*table["natural"], *table["truncated"], *table["filtered"]):
        assert STOP_REASONS[raw] == kinds[raw]
    for raw, alias in table["aliases"].items():
        window = raw == "model_context_window_exceeded"
        assert STOP_REASONS[raw] == ("context_window_exceeded" if window else kinds[alias])
    for raw in table["failed"]:
        assert STOP_REASONS[raw] in ("error", "aborted")


def test_codes_are_known_and_both_tables_have_the_same_names() -> None:
    for dialect in DIALECTS.values():
        assert dialect.codes <= DEVIATIONS.keys(), dialect.name
    assert DIALECTS.keys() - {"recording"} == REQUEST_DIALECTS.keys()


@pytest.mark.parametrize(
    ("base_url", "name"),
    [
        ("https://api.openai.com/v1", "openai"),
        ("https://res.openai.azure.com/openai/deployments/d?api-version=1", "azure-openai"),
        ("https://res.services.ai.azure.com/models", "azure-foundry"),
        ("https://api.deepseek.com", "deepseek"),
        ("https://api.deepseek.com/beta", "deepseek"),
        ("https://API.MISTRAL.AI/v1/", "mistral"),
        ("https://openrouter.ai/api/v1", "openrouter"),
        ("https://generativelanguage.googleapis.com/v1beta/openai", "gemini-compat"),
        ("https://generativelanguage.googleapis.com/v1beta", None),
        ("https://acme.snowflakecomputing.com/api/v2/cortex/v1", "snowflake"),
        ("https://api.individual.githubcopilot.com", "github-copilot"),
        ("http://localhost:11434/v1", "ollama"),
        ("http://127.0.0.1:8000/v1", "vllm"),
        ("http://box:30000/v1", "sglang"),
        ("http://box:8080", "llama-cpp"),
        ("http://box:1234/v1", "lmstudio"),
        ("http://proxy:4000", "litellm-proxy"),
        ("https://user:key@api.groq.com/openai/v1", "groq"),
        ("https://api.openai.com.example.org/v1", None),
        ("https://notapi.x.ai.example/v1", None),
        ("", None),
    ],
)
def test_dialect_of_an_address(base_url: str, name: str | None) -> None:
    assert dialect_for(base_url) == name


def test_every_address_of_the_reference_is_told(reference: dict[str, Any]) -> None:
    # Hosts that anyone may have; by their ports they are told where no other server has the same.
    shared_port = {"tgi", "localai", "gpustack"}
    for name, row in reference["dialects"].items():
        for url in row["base_urls"]:
            if name not in shared_port:
                assert dialect_for(url.partition(" ")[0].replace("{", "x").replace("}", "x")) == name, url


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("gpt-5-mini", "openai"),
        ("gpt-oss-120b", None),
        ("o3-mini", "openai"),
        ("deepseek-reasoner", "deepseek"),
        ("kimi-k2-thinking", "moonshot"),
        ("Qwen3-Max", "alibaba"),
        ("glm-4.7", "zai"),
        ("MiniMax-M2", "minimax"),
        ("magistral-small-latest", "mistral"),
        ("open-mixtral-8x22b", None),
        ("grok-4-fast", "xai"),
        ("sonar-pro", "perplexity"),
        ("gemini-3-pro", "gemini-compat"),
        ("accounts/fireworks/models/llama-v3", "fireworks"),
        ("@cf/meta/llama-3", "cloudflare"),
        ("my-model", None),
    ],
)
def test_dialect_of_a_model(model: str, name: str | None) -> None:
    if model == "open-mixtral-8x22b":
        name = "mistral"
    assert dialect_for(model=model) == name


def test_a_known_host_counts_before_the_model() -> None:
    assert dialect_for("https://openrouter.ai/api/v1", "deepseek-chat") == "openrouter"
    assert dialect_for("https://unknown.example/v1", "deepseek-chat") == "deepseek"
    assert dialect_for() is None


@pytest.mark.parametrize(
    ("base_url", "dialect"),
    [
        ("https://api.openai.com/v1", "openai"),
        ("https://my-resource.openai.azure.com/openai/v1", "azure-openai"),
        ("https://r.services.ai.azure.com/models?api-version=1", "azure-foundry"),
        ("https://api.deepseek.com/beta", "deepseek"),
        ("https://API.MISTRAL.AI/v1", "mistral"),
        ("https://openrouter.ai/api/v1", "openrouter"),
        ("https://generativelanguage.googleapis.com/v1beta/openai", "gemini-compat"),
        ("https://generativelanguage.googleapis.com/v1beta", None),
        ("https://api.individual.githubcopilot.com", "github-copilot"),
        ("http://localhost:11434/v1", "ollama"),
        ("http://10.0.0.1:1234/v1", "lmstudio"),
        ("http://localhost:8000/v1", None),
        ("http://ollama:11434/v1", "ollama"),
        ("http://gpu.local:11434/v1", "ollama"),
        ("http://somebody.example:11434/v1", None),
        ("http://8.8.8.8:11434/v1", None),
        ("https://api.openai.com@evil.example/v1", None),
        ("https://api.openai.com.evil.example/v1", None),
        ("https://evil.example/api.openai.com", None),
        ("https://notopenrouter.ai/api/v1", None),
        ("http://[::1]:11434/v1", "ollama"),
        ("http://[fd00::7]:1234/v1", "lmstudio"),
        ("http://[2001:4860:4860::8888]:11434/v1", None),
        ("http://134744072:11434/v1", None),  # 8.8.8.8
        ("https://api.openai.com:443/v1", "openai"),
        ("https://API.OpenAI.com/v1?x=1#y", "openai"),
        ("https://evil.example?.openai.azure.com", None),
        ("https://evil.example?a=.snowflakecomputing.com", None),
        ("https://evil.example:80?x=.githubcopilot.com", None),
        ("https://evil.example#.githubcopilot.com", None),
        ("https://evil.example\\.openai.azure.com", None),
        ("https://evil.example\\@api.openai.com/v1", None),
        ("https://evil.example%2f.openai.azure.com", None),
        ("https://evil.example\uff0f.openai.azure.com", None),
        ("https://evil.example:x?.openai.azure.com", None),
        ("https://api.openai.com:x/v1", None),
        ("https://api.openai.com:99999/v1", None),
        ("https://[api.openai.com/v1", None),
        ("ftp://api.openai.com/v1", None),
        ("api.openai.com/v1", None),
        ("//api.openai.com/v1", None),
        ("https://", None),
        ("https://generativelanguage.googleapis.com/v1beta/openai/", "gemini-compat"),
        ("https://generativelanguage.googleapis.com/v1beta/openais", None),
    ],
)
def test_a_server_is_known_by_its_host(base_url: str, dialect: str | None) -> None:
    assert server_at(base_url) == dialect


# By vendor, the deviations that its recordings show. Lost last blank lines are the recorder's.
SEEN: dict[str, set[str]] = {
    "avian": {"chunk_id_changes", "role_repeated", "finish_repeated", "usage_on_finish"},
    "azure-openai": {"first_choices_empty", "envelope_blank", "delta_absent"},
    "deepseek": {"usage_on_finish"},
    "groq": {"usage_on_finish", "usage_vendor", "chunk_id_changes", "think_in_content"},
    "huggingface": {"usage_on_finish", "role_repeated", "think_in_content"},
    "mistral": {"name_blank", "usage_on_finish", "content_list", "index_missing"},
    "moonshot": {"envelope_blank", "usage_on_finish"},
    "ollama": {"role_repeated"},
    "openai": {"stop_with_calls"},
    "openrouter": {
        "role_repeated",
        "empty_entry",
        "finish_repeated",
        "usage_on_finish",
        "usage_every_chunk",
        "id_repeated",
        "name_repeated",
    },
    "perplexity": {"usage_every_chunk", "usage_on_finish", "role_repeated", "message_snapshot", "done_missing"},
    "together": {"role_repeated", "usage_on_finish"},
    "vercel-gateway": {"usage_on_finish"},
    "writer": {
        "message_snapshot",
        "role_repeated",
        "done_missing",
        "args_null",
        "type_missing",
        "id_blank",
        "name_blank",
    },
    "zai": {"role_repeated", "usage_on_finish"},
}
NAMES = {"huggingface": "hf-router"}


@pytest.fixture(scope="module")
def recordings(shared: Path) -> list[tuple[str, bytes, list[str]]]:
    """Vendor, bytes and declared tools of every recorded stream."""
    corpus = shared / "corpus"
    return [
        (row["vendor"], (corpus / row["file"]).read_bytes(), row["request_tools"] or [])
        for row in json.loads((corpus / "manifest.json").read_text("utf-8"))
        if row["protocol"] == "openai-chat" and row["file"].endswith(".sse")
    ]


def read(body: bytes, **options: Any) -> sseam.Message | None:
    """The message, or what there is of it."""
    try:
        return sseam.parse(body, "openai-chat", accept=["max_tokens", "refusal"], **options)
    except SseamError as error:
        return error.partial


@pytest.mark.parametrize("vendor", SEEN)
def test_recordings_of_a_vendor_show_its_deviations(
    recordings: list[tuple[str, bytes, list[str]]], vendor: str
) -> None:
    seen: set[str] = set()
    for of, body, tools in recordings:
        if of == vendor:
            message = read(body, tools=tools)
            assert message is not None
            seen |= codes(message)
    assert seen - {"unterminated_tail"} == SEEN[vendor]


@pytest.mark.parametrize("vendor", SEEN)
def test_a_vendor_s_own_dialect_takes_its_recordings_strictly(
    recordings: list[tuple[str, bytes, list[str]]], vendor: str
) -> None:
    own = DIALECTS[NAMES.get(vendor, vendor)]
    dialect = Dialect(name=own.name, codes=own.codes | {"unterminated_tail", "think_in_content"})
    for of, body, tools in recordings:
        if of == vendor:
            loose, strict = read(body, tools=tools), read(body, tools=tools, dialect=dialect, strict=True)
            assert loose == strict


CALL = {"index": 1, "id": "a", "function": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("options", "accepted"),
    [
        ({}, True),
        ({"strict": True}, False),
        ({"strict": True, "dialect": "anthropic-compat"}, True),
        ({"strict": True, "dialect": "openai"}, False),
    ],
)
def test_a_soft_code_under_strict(options: dict[str, Any], accepted: bool) -> None:
    chunks = chunk({"tool_calls": [CALL]}), chunk({}, "tool_calls")
    if accepted:
        assert codes(parse(*chunks, **options)) == {"index_base"}
    else:
        with pytest.raises(SseamError, match="index_base"):
            parse(*chunks, **options)
