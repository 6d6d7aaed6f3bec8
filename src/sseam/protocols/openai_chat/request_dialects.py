"""What servers of Chat Completions want in a request, one row a server, as data.

Sources: the vendors' API references and SDK types, server sources and the adapters of `vercel/ai`,
`pydantic/pydantic-ai` and `litellm`, read 2026-11-29. Where a server is not known to take a field
it is not sent.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from ...context import KeySource
from ...request.calls import IdRule

__all__ = ["DIALECTS", "LOW_HIGH", "UNKNOWN", "RequestDialect", "Switch"]

Switch: TypeAlias = Literal[
    "none",
    "effort",  # reasoning_effort
    "thinking_type",  # thinking: {type: enabled | disabled}, with an effort where the dialect has them
    "thinking_budget",  # thinking: {type, budget_tokens}
    "thinking_off",  # the same, of a model that can only be told not to
    "enable_thinking",  # enable_thinking, thinking_budget
    "reasoning_object",  # reasoning: {effort} or {enabled: false}
    "reasoning_enabled",  # reasoning: {enabled}
    "reasoning_split",  # reasoning_split: true
    "template",  # chat_template_kwargs: {enable_thinking}
    "template_args",  # chat_template_args: {enable_thinking}
]

_ANY_CHOICE = ("none", "auto", "required", "named")
_ANY_FORMAT = ("json_object", "json_schema")
LOW_HIGH = ("low", "medium", "high")


class RequestDialect(msgspec.Struct, frozen=True, kw_only=True):
    """What one server wants in a request.

    Attributes:
        name: as it stands in `Model.dialect`.
        keys, key_optional: see `Model`.
        path: of the endpoint, behind the base URL.
        limit: name of the output limit.
        developer: the system prompt of reasoning models has the role developer.
        ask_usage: `stream_options.include_usage` is taken and usage may not come without it.
        strict: takes strict tool schemas.
        tools: takes tools.
        choices: what `tool_choice` may say; required: its word for "some call must be made".
        choice_with_thinking: a tool may be forced while the model thinks. thinks: its models do so unasked.
        formats: what `response_format` may say; format_with_tools: also in a request with tools.
        switch: how reasoning is switched; efforts: the efforts that it knows; can_disable: it can be switched off.
        switch_on: further fields that go with reasoning switched on.
        replay: field in which an assistant turn's reasoning goes back: a name of plain text, "thinking_parts" for parts
            of the content; None: it stays out.
        replay_with_calls: only on turns with calls. replay_blank: also where there is none, as "".
        proofs: the calls of the open turn must have Google's thought signatures.
        ids: the ids of tool calls that it takes.
        null_content: the content of a turn with calls and no text: null, else "".
        tool_name: a tool's result also has the tool's name.
        image_urls: takes images by address.
        files: takes documents as file parts.
        parallel: name of the field that allows parallel calls, None where it has none.
        seed: name of the field of the seed, None where it has none.
        top_k: takes top_k.
        sampling: takes `temperature` and `top_p`: "all", "one" (not both) or "none"; sampling_with_thinking: also while
            the model thinks.
        stop: takes stop sequences; max_stops: at most so many, 0 where no limit is known.
        alternate: user and assistant must alternate.
        maker: the tables of OpenAI's own models apply, and its fields metadata and prompt_cache_key are known.
    """

    name: str
    keys: tuple[KeySource, ...] = ()
    key_optional: bool = False
    path: str = "/chat/completions"
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    developer: bool = False
    ask_usage: bool = True
    strict: bool = False
    tools: bool = True
    choices: tuple[str, ...] = _ANY_CHOICE
    required: str = "required"
    choice_with_thinking: bool = True
    thinks: bool = False
    formats: tuple[str, ...] = _ANY_FORMAT
    format_with_tools: bool = True
    switch: Switch = "none"
    efforts: tuple[str, ...] = ()
    can_disable: bool = True
    switch_on: dict[str, object] = {}
    replay: str | None = None
    replay_with_calls: bool = False
    replay_blank: bool = False
    proofs: bool = False
    ids: IdRule = IdRule()
    null_content: bool = True
    tool_name: bool = False
    image_urls: bool = True
    files: bool = False
    parallel: str | None = "parallel_tool_calls"
    seed: str | None = "seed"
    top_k: bool = False
    sampling: Literal["all", "one", "none"] = "all"
    sampling_with_thinking: bool = True
    stop: bool = True
    max_stops: int = 0
    alternate: bool = False
    maker: bool = False


def _keys(*variables: str, header: str = "authorization") -> tuple[KeySource, ...]:
    return tuple(KeySource(variable, header) for variable in variables)


UNKNOWN = RequestDialect(name="", ask_usage=False, parallel=None, replay=None)

_OPENAI = RequestDialect(
    name="openai",
    keys=_keys("OPENAI_API_KEY"),
    limit="max_completion_tokens",
    developer=True,
    strict=True,
    switch="effort",
    ids=IdRule(max_length=40),
    files=True,
    max_stops=4,
    maker=True,
)

_LOCAL = RequestDialect(name="", key_optional=True, parallel=None, top_k=True, image_urls=False)

_ROWS: tuple[RequestDialect, ...] = (
    _OPENAI,
    msgspec.structs.replace(
        _OPENAI,
        name="azure-openai",
        keys=_keys("AZURE_OPENAI_API_KEY", header="api-key"),
        files=False,
    ),
    RequestDialect(
        name="azure-foundry",
        keys=_keys("AZURE_AI_API_KEY", header="api-key"),
        replay="reasoning_content",
    ),
    RequestDialect(
        name="deepseek",
        keys=_keys("DEEPSEEK_API_KEY"),
        choice_with_thinking=False,
        thinks=True,
        formats=("json_object",),
        switch="thinking_type",
        efforts=(*LOW_HIGH, "max"),
        replay="reasoning_content",
        replay_blank=True,
        parallel=None,
        seed=None,
    ),
    RequestDialect(
        name="moonshot",
        keys=_keys("MOONSHOT_API_KEY"),
        strict=True,
        choices=("none", "auto", "required"),
        switch="thinking_type",
        switch_on={"keep": "all"},
        replay="reasoning_content",
        replay_with_calls=True,
        image_urls=False,
        parallel=None,
    ),
    RequestDialect(
        name="alibaba",
        keys=_keys("DASHSCOPE_API_KEY"),
        choices=("none", "auto", "named"),
        switch="enable_thinking",
        switch_on={"preserve_thinking": True},
        replay="reasoning_content",
        top_k=True,
    ),
    RequestDialect(
        name="zai",
        keys=_keys("ZAI_API_KEY"),
        choices=("auto",),
        switch="thinking_type",
        switch_on={"clear_thinking": False},
        replay="reasoning_content",
        parallel=None,
        seed=None,
    ),
    RequestDialect(
        name="minimax",
        keys=_keys("MINIMAX_API_KEY"),
        choices=("none", "auto"),
        formats=("json_object",),
        switch="reasoning_split",
        replay="reasoning_details",
        parallel=None,
        seed=None,
    ),
    RequestDialect(
        name="mistral",
        keys=_keys("MISTRAL_API_KEY"),
        ask_usage=False,
        strict=True,
        required="any",
        switch="effort",
        efforts=("none", "high"),
        replay="thinking_parts",
        ids=IdRule(alphabet="a-zA-Z0-9", max_length=9, exact=True),
        null_content=False,
        tool_name=True,
        seed="random_seed",
    ),
    RequestDialect(
        name="groq",
        keys=_keys("GROQ_API_KEY"),
        limit="max_completion_tokens",
        ask_usage=False,
        format_with_tools=False,
        switch="effort",
        efforts=("none", *LOW_HIGH),
        replay="reasoning",
        null_content=False,
    ),
    RequestDialect(
        name="xai",
        keys=_keys("XAI_API_KEY"),
        limit="max_completion_tokens",
        switch="effort",
        efforts=LOW_HIGH,
    ),
    RequestDialect(
        name="cerebras",
        keys=_keys("CEREBRAS_API_KEY"),
        limit="max_completion_tokens",
        strict=True,
        switch="effort",
        efforts=LOW_HIGH,
        replay="reasoning",
    ),
    RequestDialect(
        name="fireworks",
        keys=_keys("FIREWORKS_API_KEY"),
        switch="effort",
        efforts=("none", *LOW_HIGH),
        replay="reasoning_content",
        parallel=None,
        top_k=True,
    ),
    RequestDialect(
        name="together",
        keys=_keys("TOGETHER_API_KEY"),
        switch="reasoning_enabled",
        efforts=LOW_HIGH,
        top_k=True,
    ),
    RequestDialect(
        name="perplexity",
        keys=_keys("PERPLEXITY_API_KEY"),
        ask_usage=False,
        tools=False,
        choices=(),
        formats=("json_schema",),
        switch="effort",
        efforts=LOW_HIGH,
        parallel=None,
        seed=None,
        stop=False,
        alternate=True,
    ),
    RequestDialect(
        name="openrouter",
        keys=_keys("OPENROUTER_API_KEY"),
        limit="max_completion_tokens",
        strict=True,
        switch="reasoning_object",
        efforts=("minimal", *LOW_HIGH, "xhigh"),
        replay="reasoning_details",
        files=True,
        top_k=True,
    ),
    RequestDialect(
        name="vercel-gateway",
        keys=_keys("AI_GATEWAY_API_KEY"),
        strict=True,
        switch="reasoning_object",
        efforts=("minimal", *LOW_HIGH, "xhigh"),
        replay="reasoning_details",
    ),
    RequestDialect(name="hf-router", keys=_keys("HF_TOKEN"), parallel=None),
    RequestDialect(
        name="gemini-compat",
        keys=_keys("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        switch="effort",
        efforts=("none", "minimal", *LOW_HIGH),
        replay="extra_content",
        image_urls=False,
        parallel=None,
        seed=None,
    ),
    RequestDialect(
        name="anthropic-compat",
        keys=_keys("ANTHROPIC_API_KEY"),
        choice_with_thinking=False,
        formats=(),
        switch="thinking_budget",
        seed=None,
        sampling_with_thinking=False,
    ),
    RequestDialect(
        name="github-copilot",
        keys=_keys("COPILOT_API_KEY"),
        formats=("json_object",),
        switch="effort",
        efforts=LOW_HIGH,
        replay="reasoning_text",
    ),
    RequestDialect(
        name="nvidia-nim",
        keys=_keys("NVIDIA_API_KEY"),
        switch="template",
        null_content=False,
        parallel=None,
    ),
    RequestDialect(name="sambanova", keys=_keys("SAMBANOVA_API_KEY"), parallel=None, seed=None),
    RequestDialect(
        name="cloudflare",
        keys=_keys("CLOUDFLARE_API_TOKEN", "CLOUDFLARE_API_KEY"),
        switch="effort",
        efforts=LOW_HIGH,
        parallel=None,
    ),
    RequestDialect(
        name="snowflake",
        keys=_keys("SNOWFLAKE_API_KEY"),
        limit="max_completion_tokens",
        ask_usage=False,
        choices=("auto", "named"),
        formats=("json_schema",),
        parallel=None,
        seed=None,
    ),
    RequestDialect(
        name="writer",
        keys=_keys("WRITER_API_KEY"),
        path="/chat",
        formats=("json_schema",),
        parallel=None,
        seed=None,
    ),
    msgspec.structs.replace(_LOCAL, name="vllm", replay="reasoning", switch="template", image_urls=True),
    msgspec.structs.replace(_LOCAL, name="sglang", replay="reasoning_content", switch="template", image_urls=True),
    msgspec.structs.replace(
        _LOCAL,
        name="llama-cpp",
        choices=("none", "auto", "required"),
        replay="reasoning_content",
        switch="template",
    ),
    msgspec.structs.replace(
        _LOCAL,
        name="ollama",
        keys=_keys("OLLAMA_API_KEY"),
        choices=(),
        switch="effort",
        efforts=("none", "minimal", *LOW_HIGH, "xhigh", "max"),
        replay="reasoning",
        top_k=False,
    ),
    msgspec.structs.replace(
        _LOCAL,
        name="lmstudio",
        choices=("none", "auto", "required"),
        formats=("json_schema",),
        switch="effort",
        efforts=LOW_HIGH,
    ),
    msgspec.structs.replace(_LOCAL, name="tgi", format_with_tools=False, top_k=False),
    RequestDialect(
        name="litellm-proxy",
        keys=_keys("LITELLM_API_KEY"),
        key_optional=True,
        switch="effort",
        efforts=("none", "minimal", *LOW_HIGH),
        replay="reasoning_content",
    ),
    RequestDialect(
        name="deepinfra",
        keys=_keys("DEEPINFRA_API_KEY", "DEEPINFRA_TOKEN"),
        choices=("none", "auto", "required"),
        switch="effort",
        efforts=("none", *LOW_HIGH),
        parallel=None,
        top_k=True,
    ),
    RequestDialect(
        name="baseten",
        keys=_keys("BASETEN_API_KEY"),
        switch="template_args",
        replay="reasoning_content",
        parallel=None,
    ),
    msgspec.structs.replace(_LOCAL, name="localai", ask_usage=False, top_k=False),
    RequestDialect(
        name="gpustack",
        keys=_keys("GPUSTACK_API_KEY"),
        key_optional=True,
        choices=("none", "auto"),
        formats=("json_object",),
        switch="template",
        parallel=None,
    ),
    RequestDialect(
        name="hyper",
        keys=_keys("HYPER_API_KEY"),
        choices=("none", "auto"),
        formats=(),
        parallel=None,
        seed=None,
    ),
    RequestDialect(
        name="avian",
        keys=_keys("AVIAN_API_KEY"),
        choices=("none", "auto"),
        formats=(),
        parallel=None,
        seed=None,
    ),
    RequestDialect(
        name="volcengine",
        keys=_keys("ARK_API_KEY"),
        switch="thinking_type",
        parallel=None,
        seed=None,
    ),
)

DIALECTS: dict[str, RequestDialect] = {row.name: row for row in _ROWS}
