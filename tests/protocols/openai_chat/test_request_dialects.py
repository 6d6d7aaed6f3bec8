from __future__ import annotations

import pytest

from sseam.protocols.openai_chat.request_dialects import DIALECTS, UNKNOWN, detect, request_dialect


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
        ("https://api.openai.com.evil.example/v1", None),
        ("https://evil.example/api.openai.com", None),
        ("https://notopenrouter.ai/api/v1", None),
    ],
)
def test_a_dialect_is_known_by_its_host(base_url, dialect):
    assert detect(base_url) == dialect


def test_a_name_without_a_row_is_an_unknown_server():
    assert request_dialect(None) is UNKNOWN
    assert request_dialect("nobody") is UNKNOWN
    assert request_dialect("groq") is DIALECTS["groq"]


def test_names_and_hosts_are_used_once():
    hosts = [host for row in DIALECTS.values() for host in row.hosts]
    assert len(set(hosts)) == len(hosts)
    assert all(name == row.name for name, row in DIALECTS.items())
