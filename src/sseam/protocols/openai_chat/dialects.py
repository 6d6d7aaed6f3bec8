"""What servers of Chat Completions do otherwise than OpenAI, as data, and which server is which.

Source: the wire reference's table of dialects, made from recorded streams, server sources, SDK types
and issue trackers (read 2026-11-29).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from ...dialect import Dialect, Grade

__all__ = ["DEVIATIONS", "DIALECTS", "dialect_for", "has_host", "host_of", "server_at"]

DEVIATIONS: dict[str, Grade] = {
    # an entry of `tool_calls`
    "id_blank": "harmless",  # "" or null: absent
    "id_repeated": "harmless",
    "id_late": "harmless",  # after the first fragment
    "id_changed": "soft",  # and nothing says that a call began: the first id stays
    "id_alternates": "fatal",  # two calls mixed under one index
    "index_missing": "soft",  # absent, null, or no integer
    "index_changed": "soft",  # of a known id whose call is open
    "name_blank": "harmless",
    "name_repeated": "harmless",
    "name_changed": "fatal",
    "type_missing": "harmless",  # null or "": function
    "type_unknown": "fatal",
    "args_null": "harmless",  # no text
    "args_object": "soft",  # an object in place of its text
    "args_type": "fatal",
    "empty_entry": "harmless",
    "orphan_to_open": "gated",  # unlabelled, and given to the latest call, the only open one
    "orphan_fragment": "fatal",
    "ambiguous_header": "fatal",  # another id at one index before any argument
    "ambiguous_repeat": "fatal",  # the same again without an id
    "after_complete": "fatal",  # another object behind whole arguments
    # a call
    "index_base": "soft",  # the first call's index is not 0
    "index_reused": "soft",  # by a new call
    "id_missing": "soft",  # one is made
    "id_duplicate": "soft",  # the later call gets one that is made
    "name_split": "soft",  # and only the whole is a declared tool
    "name_missing": "fatal",
    "tool_unknown": "fatal",
    "args_empty": "soft",  # no text, and the tool needs none
    "args_missing": "fatal",
    "args_repeated": "soft",  # the whole text again
    "args_placeholder": "gated",  # {} first, the arguments later
    "args_incomplete": "fatal",
    "args_trailing": "fatal",
    "args_not_object": "fatal",
    "call_repeated": "soft",  # at another index
    # a choice
    "stop_with_calls": "soft",
    "calls_missing": "fatal",
    "not_complete": "fatal",  # calls of a cut answer
    "finish_missing": "fatal",
    "finish_absent_ok": "gated",  # [DONE] ends a text answer
    "finish_blank": "harmless",
    "finish_repeated": "harmless",
    "finish_conflict": "soft",  # the worse one counts
    "delta_after_finish": "soft",
    "delta_absent": "harmless",
    "role_repeated": "harmless",
    "message_snapshot": "harmless",
    "content_list": "harmless",
    "reasoning_twice": "harmless",  # in two fields, of which one counts
    "think_in_content": "soft",
    "leaked_tool_text": "soft",  # text stays text; `OutputProtocolViolation` under strict
    "answer_empty": "harmless",  # neither text nor anything else
    "choices_joined": "gated",  # one answer's text and calls in two choices
    # the stream
    "usage_on_finish": "harmless",
    "usage_every_chunk": "harmless",
    "usage_in_choice": "harmless",
    "usage_vendor": "harmless",
    "number_as_text": "soft",
    "choices_absent": "soft",
    "choices_null": "soft",
    "envelope_blank": "harmless",
    "chunk_id_changes": "harmless",
    "first_choices_empty": "harmless",
    "done_missing": "soft",
    "done_variant": "soft",
    "data_after_done": "soft",  # never read
    "empty_frame": "harmless",
    "unterminated_tail": "soft",  # a recording that lost its last blank line
    "json_completion_body": "soft",
    "error_named_event": "fatal",
    "error_then_done": "fatal",
    "error_after_finish": "fatal",
    "error_json_body": "fatal",
}


def _row(name: str, *codes: str) -> Dialect:
    return Dialect(name=name, codes=frozenset(codes))


DIALECTS: dict[str, Dialect] = {
    row.name: row
    for row in (
        _row("openai", "stop_with_calls"),
        _row(
            "azure-openai",
            "first_choices_empty",
            "envelope_blank",
            "chunk_id_changes",
            "delta_absent",
            "stop_with_calls",
        ),
        _row("azure-foundry", "role_repeated"),
        _row("deepseek", "usage_on_finish"),
        _row("moonshot", "usage_in_choice", "usage_on_finish", "index_missing"),
        _row("alibaba", "id_blank", "name_blank", "empty_entry"),
        _row("zai", "role_repeated", "usage_on_finish"),
        _row("minimax", "think_in_content", "reasoning_twice", "args_object", "delta_absent"),
        _row("mistral", "index_missing", "name_blank", "content_list", "usage_on_finish", "args_object"),
        _row("groq", "usage_vendor", "usage_on_finish"),
        _row("xai", "finish_blank"),
        _row("cerebras", "usage_on_finish", "index_missing"),
        _row("fireworks", "usage_on_finish"),
        _row("together", "role_repeated", "usage_on_finish"),
        _row("perplexity", "usage_every_chunk", "message_snapshot", "done_missing"),
        _row("openrouter", "finish_repeated", "role_repeated", "empty_entry", "stop_with_calls"),
        _row("vercel-gateway", "usage_on_finish"),
        _row("hf-router", "role_repeated", "usage_vendor"),
        _row("gemini-compat", "index_missing", "stop_with_calls", "usage_every_chunk", "id_blank", "id_missing"),
        _row("anthropic-compat", "index_base", "args_empty"),
        _row("github-copilot", "choices_joined"),
        _row("nvidia-nim", "name_repeated"),
        _row("sambanova", "envelope_blank", "think_in_content"),
        _row("cloudflare", "empty_entry", "id_blank", "name_blank"),
        _row("snowflake", "finish_absent_ok", "envelope_blank"),
        _row("writer", "done_missing", "id_blank", "name_blank", "args_null", "message_snapshot"),
        _row("vllm", "stop_with_calls", "name_blank", "args_repeated", "empty_entry"),
        _row("sglang", "id_blank", "name_blank", "id_missing"),
        _row("llama-cpp", "id_duplicate", "name_repeated", "args_object"),
        _row("ollama", "role_repeated", "index_missing", "index_reused", "finish_blank", "stop_with_calls"),
        _row("lmstudio", "id_changed", "name_blank"),
        _row("tgi", "stop_with_calls", "id_repeated", "name_blank", "role_repeated", "envelope_blank"),
        _row("litellm-proxy", "index_base", "index_reused", "id_repeated", "id_changed", "chunk_id_changes"),
        _row("deepinfra"),
        _row("baseten"),
        _row("localai", "id_duplicate", "call_repeated"),
        _row("gpustack", "done_missing", "usage_on_finish"),
        _row("hyper"),
        _row("avian", "finish_repeated", "chunk_id_changes", "role_repeated"),
        _row("volcengine"),
        _row("recording", "unterminated_tail"),
    )
}

# Host, and path where that tells; a leading dot stands for any subdomain, a port for the server that alone has it
# by default, on a private network.
_ADDRESSES: tuple[tuple[str, str], ...] = (
    ("api.openai.com", "openai"),
    (".openai.azure.com", "azure-openai"),
    (".cognitiveservices.azure.com", "azure-openai"),
    (".services.ai.azure.com", "azure-foundry"),
    ("api.deepseek.com", "deepseek"),
    ("api.moonshot.ai", "moonshot"),
    ("api.moonshot.cn", "moonshot"),
    ("dashscope.aliyuncs.com", "alibaba"),
    ("dashscope-intl.aliyuncs.com", "alibaba"),
    ("dashscope-us.aliyuncs.com", "alibaba"),
    ("api.z.ai", "zai"),
    ("open.bigmodel.cn", "zai"),
    ("api.minimax.io", "minimax"),
    ("api.minimaxi.com", "minimax"),
    ("api.mistral.ai", "mistral"),
    ("api.groq.com", "groq"),
    ("api.x.ai", "xai"),
    ("api.cerebras.ai", "cerebras"),
    ("api.fireworks.ai", "fireworks"),
    ("api.together.xyz", "together"),
    ("api.together.ai", "together"),
    ("api.perplexity.ai", "perplexity"),
    ("openrouter.ai", "openrouter"),
    ("ai-gateway.vercel.sh", "vercel-gateway"),
    ("router.huggingface.co", "hf-router"),
    ("generativelanguage.googleapis.com/v1beta/openai", "gemini-compat"),
    ("api.anthropic.com", "anthropic-compat"),
    ("api.githubcopilot.com", "github-copilot"),
    (".githubcopilot.com", "github-copilot"),
    ("integrate.api.nvidia.com", "nvidia-nim"),
    ("api.sambanova.ai", "sambanova"),
    ("api.cloudflare.com", "cloudflare"),
    (".snowflakecomputing.com", "snowflake"),
    ("api.writer.com", "writer"),
    ("api.deepinfra.com", "deepinfra"),
    ("inference.baseten.co", "baseten"),
    ("hyper.charm.land", "hyper"),
    ("api.avian.io", "avian"),
    ("ark.cn-beijing.volces.com", "volcengine"),
    ("ollama.com", "ollama"),
    (":11434", "ollama"),
    (":1234", "lmstudio"),
)

# Ports that others have by default too: enough to know what may be forgiven, not for what is sent.
_COMMON_PORTS: tuple[tuple[str, str], ...] = (
    (":8000", "vllm"),
    (":30000", "sglang"),
    (":8080", "llama-cpp"),
    (":4000", "litellm-proxy"),
)

# How the makers of models call them; a gateway puts a prefix of its own before that.
_MODELS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        (r"openrouter/", "openrouter"),
        (r"accounts/fireworks/", "fireworks"),
        (r"@cf/|workers-ai/", "cloudflare"),
        (r"ft:gpt-|gpt-(?!oss)|chatgpt-|o[1-9](-|$)", "openai"),
        (r"deepseek-", "deepseek"),
        (r"moonshot-|kimi-", "moonshot"),
        (r"qwen|qwq|qvq", "alibaba"),
        (r"glm-", "zai"),
        (r"minimax-|abab", "minimax"),
        (r"(open-)?(mistral|mixtral|ministral|codestral|devstral|magistral|pixtral|voxtral)-", "mistral"),
        (r"grok-", "xai"),
        (r"sonar(-|$)", "perplexity"),
        (r"gemini-", "gemini-compat"),
        (r"claude-", "anthropic-compat"),
        (r"palmyra-", "writer"),
        (r"doubao-", "volcengine"),
    )
)


def dialect_for(base_url: str | None = None, model: str | None = None) -> str | None:
    """The name in `DIALECTS` of the server behind a base URL, or else of the maker that names a model so.

    None where neither tells. A known host counts before the model's name.
    """
    address = base_url or ""
    return server_at(address) or _find(address, _COMMON_PORTS) or (_by_model(model) if model else None)


def has_host(dialect: str) -> bool:
    """Whether a dialect is that of a service with an address of its own."""
    return any(name == dialect for _, name in _ADDRESSES)


def server_at(base_url: str) -> str | None:
    """The name of the server that is known to be behind a base URL, None where none is."""
    return _find(base_url, _ADDRESSES)


def host_of(base_url: str) -> str | None:
    """The host of an http or https address as every client reads it, None where they may differ."""
    address = _read_address(base_url)
    return None if address is None else address[0]


def _find(base_url: str, addresses: Iterable[tuple[str, str]]) -> str | None:
    address = _read_address(base_url)
    if address is None:
        return None
    host, port, path = address
    for known, name in addresses:
        wanted, _, folder = known.partition("/")
        if f"{path}/".startswith(f"/{folder}/" if folder else "") and _is_host(host, port, wanted):
            return name
    return None


# A key is chosen by the host, so this must read the host as every HTTP client does: what they read differently (a
# backslash ends the host for some) is no host that is known.
_HOST = re.compile(r"[a-z0-9._:-]+")


def _read_address(base_url: str) -> tuple[str, int | None, str] | None:
    """Host, port and path of an http or https address; None for anything else."""
    try:
        parts = urlsplit(base_url.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or "\\" in parts.netloc or not host or not _HOST.fullmatch(host):
        return None
    return host, port, parts.path.lower()


def _is_host(host: str, port: int | None, wanted: str) -> bool:
    if wanted.startswith(":"):
        return wanted == f":{port}" and _is_private(host)
    return host == wanted or (wanted.startswith(".") and host.endswith(wanted))


def _is_private(host: str) -> bool:
    """Whether a host is one's own: in the open anybody may listen on a port, and a key would go there."""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        # A name without a dot is one of the own network, but a number is an address in another form.
        return ("." not in host and host[0].isalpha()) or host.endswith((".local", ".localhost", ".internal", ".lan"))


def _by_model(model: str) -> str | None:
    name = model.strip().lower()
    return next((dialect for pattern, dialect in _MODELS if pattern.match(name)), None)
