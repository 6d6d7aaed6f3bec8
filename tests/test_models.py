from __future__ import annotations

import msgspec
import pytest

from sseam import models
from sseam.context import KeySource, Model
from sseam.errors import RequestError

SECRET = "sk-very-secret"
GOOGLE = "https://generativelanguage.googleapis.com"


@pytest.mark.parametrize(
    ("model", "protocol", "base_url", "dialect"),
    [
        (models.anthropic("claude-opus-5"), "anthropic-messages", "https://api.anthropic.com", None),
        (models.openai("gpt-5"), "openai-chat", "https://api.openai.com/v1", "openai"),
        (models.openai_responses("gpt-5"), "openai-responses", "https://api.openai.com/v1", None),
        (models.gemini("gemini-3-pro"), "gemini-generate", "https://generativelanguage.googleapis.com/v1beta", None),
        (
            models.gemini_interactions("g"),
            "gemini-interactions",
            "https://generativelanguage.googleapis.com/v1beta",
            None,
        ),
        (models.compatible("m", base_url="http://x/v1/"), "openai-chat", "http://x/v1", None),
        (
            models.compatible("m", base_url="http://x", protocol="anthropic-messages"),
            "anthropic-messages",
            "http://x",
            None,
        ),
        (models.compatible("m", base_url="http://x", dialect="vllm"), "openai-chat", "http://x", "vllm"),
    ],
)
def test_factories(model, protocol, base_url, dialect):
    assert (model.protocol, model.base_url, model.dialect) == (protocol, base_url, dialect)


def test_a_gemini_model_may_have_its_name_from_the_list_of_models():
    assert models.gemini("models/gemini-3-pro").id == models.gemini_interactions("gemini-3-pro").id == "gemini-3-pro"
    assert models.gemini_interactions("models/gemini-3-pro").id == "gemini-3-pro"
    assert models.gemini("tunedModels/x").id == "tunedModels/x"


def test_fields_replace_what_the_factory_sets():
    model = models.anthropic("claude-3-opus", base_url="http://proxy", input=(), max_output_tokens=7)
    assert (model.base_url, model.input, model.max_output_tokens) == ("http://proxy", (), 7)


@pytest.mark.parametrize(
    ("id", "limit"),
    [("claude-3-opus-20240229", 4_096), ("claude-3-5-haiku-latest", 8_192), ("claude-opus-4-1", 32_000)],
)
def test_the_output_limit_that_anthropic_demands(id, limit):
    assert models.anthropic(id).max_output_tokens == limit


@pytest.mark.parametrize(
    ("model", "environ", "header"),
    [
        (models.anthropic("c"), {"ANTHROPIC_API_KEY": SECRET}, {"x-api-key": SECRET}),
        (models.anthropic("c"), {"ANTHROPIC_AUTH_TOKEN": SECRET}, {"authorization": f"Bearer {SECRET}"}),
        (
            models.anthropic("c"),
            {"ANTHROPIC_API_KEY": " ", "ANTHROPIC_AUTH_TOKEN": SECRET},
            {"authorization": f"Bearer {SECRET}"},
        ),
        (models.openai("g"), {"OPENAI_API_KEY": f"{SECRET}\n"}, {"authorization": f"Bearer {SECRET}"}),
        (models.gemini("g"), {"GOOGLE_API_KEY": SECRET}, {"x-goog-api-key": SECRET}),
        (
            models.compatible("m", base_url="https://r.openai.azure.com/openai/v1"),
            {"AZURE_OPENAI_API_KEY": SECRET},
            {"api-key": SECRET},
        ),
        (
            models.compatible("m", base_url="https://openrouter.ai/api/v1"),
            {"OPENROUTER_API_KEY": SECRET},
            {"authorization": f"Bearer {SECRET}"},
        ),
        (
            models.compatible("m", base_url="http://x", key_variable="MINE"),
            {"MINE": SECRET},
            {"authorization": f"Bearer {SECRET}"},
        ),
        (models.compatible("m", base_url="http://localhost:11434/v1"), {}, {}),
        # The header is the server's in that protocol, whatever the variable.
        (
            models.compatible("m", base_url="https://r.openai.azure.com/openai/v1", key_variable="MINE"),
            {"MINE": SECRET},
            {"api-key": SECRET},
        ),
        (
            models.compatible("m", base_url="https://api.anthropic.com", protocol="anthropic-messages"),
            {"ANTHROPIC_API_KEY": SECRET},
            {"x-api-key": SECRET},
        ),
        (
            models.compatible("m", base_url="https://api.anthropic.com/v1"),
            {"ANTHROPIC_API_KEY": SECRET},
            {"authorization": f"Bearer {SECRET}"},
        ),
        (
            models.compatible("m", base_url=f"{GOOGLE}/v1beta", protocol="gemini-generate"),
            {"GEMINI_API_KEY": SECRET},
            {"x-goog-api-key": SECRET},
        ),
        (
            models.compatible("m", base_url=f"{GOOGLE}/v1beta", protocol="gemini-interactions", key_variable="MINE"),
            {"MINE": SECRET},
            {"x-goog-api-key": SECRET},
        ),
        (
            models.compatible("m", base_url="https://evil.example?.googleapis.com", protocol="gemini-generate"),
            {"GEMINI_API_KEY": SECRET},
            {},
        ),
        # A key is for the service it was made for.
        (models.compatible("m", base_url="https://unknown.example/v1"), {"OPENAI_API_KEY": SECRET}, {}),
    ],
)
def test_the_key_comes_from_the_usual_variable(model, environ, header):
    assert models.credential(model, environ=environ) == header


@pytest.mark.parametrize(
    "base_url",
    [
        "https://evil.example?.openai.azure.com",
        "https://evil.example#.openai.azure.com",
        "https://evil.example\\.openai.azure.com",
        "https://evil.example\\@x.openai.azure.com",
    ],
)
def test_a_look_alike_address_gets_no_key(base_url):
    assert models.credential(models.compatible("m", base_url=base_url), environ={"AZURE_OPENAI_API_KEY": SECRET}) == {}


def test_the_environment_is_looked_at_when_the_request_is_made(monkeypatch):
    model = models.openai("g")
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    assert models.credential(model) == {"authorization": f"Bearer {SECRET}"}


@pytest.mark.parametrize(
    ("model", "header"),
    [
        (models.anthropic("c"), {"x-api-key": SECRET}),
        (models.compatible("m", base_url="http://x"), {"authorization": f"Bearer {SECRET}"}),
        (
            models.compatible("m", base_url=f"{GOOGLE}/v1beta", protocol="gemini-generate"),
            {"x-goog-api-key": SECRET},
        ),
    ],
)
def test_the_callers_own_key_comes_first(model, header):
    assert models.credential(model, SECRET, {"ANTHROPIC_API_KEY": "other"}) == header


@pytest.mark.parametrize(
    ("key", "environ", "told"),
    [
        (None, {}, "ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN is not set"),
        (None, {"ANTHROPIC_API_KEY": f"{SECRET}\r\nx: y"}, "characters that a header cannot carry"),
        (f"{SECRET}\u2026", {}, "characters that a header cannot carry"),
        ("", {}, "characters that a header cannot carry"),
    ],
)
def test_a_key_that_is_missing_or_broken_is_told_without_it(key, environ, told):
    with pytest.raises(RequestError, match=told) as caught:
        models.credential(models.anthropic("c"), key, environ)
    assert SECRET not in f"{caught.value!r} {caught.value} {caught.value.__dict__}"


def test_a_model_never_holds_a_key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    model = models.openai("g")
    models.credential(model)
    assert SECRET not in repr(model)
    assert SECRET not in msgspec.json.encode(model).decode()
    assert model.keys == (KeySource("OPENAI_API_KEY"),)
    assert isinstance(model, Model)


@pytest.mark.parametrize(
    ("dialect", "base_url", "variables"),
    [
        ("openai", "http://localhost:9000/v1", []),
        ("openai", "https://api.openai.com/v1", ["OPENAI_API_KEY"]),
        ("groq", "https://proxy.example/v1", []),
        ("litellm-proxy", "https://proxy.example/v1", ["LITELLM_API_KEY"]),
    ],
)
def test_a_dialect_that_is_named_does_not_bring_another_services_key(
    dialect: str, base_url: str, variables: list[str]
) -> None:
    model = models.compatible("m", base_url=base_url, dialect=dialect)
    assert [source.variable for source in model.keys] == variables
    own = models.compatible("m", base_url=base_url, dialect=dialect, key_variable="MINE")
    assert [source.variable for source in own.keys] == ["MINE"]
