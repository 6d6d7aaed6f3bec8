"""The public names, and what importing them loads."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import sseam

FIXED = [
    "Parser",
    "parse",
    "parse_response",
    "detect",
    "iter_events",
    "aiter_events",
    "model_events",
    "EventStream",
    "Stream",
    "AsyncStream",
    "Message",
    "ToolCall",
    "Usage",
    "Limits",
    "Framer",
    "Frame",
    "Tail",
    "SseamError",
    "ProtocolError",
    "FramingError",
    "TruncatedStream",
    "StopReasonError",
    "InvalidToolCall",
    "StreamSequenceError",
    "OutputProtocolViolation",
    "ApiError",
    "TransportError",
    "Start",
    "TextStart",
    "TextDelta",
    "TextEnd",
    "ThinkingStart",
    "ThinkingDelta",
    "ThinkingEnd",
    "ToolCallStart",
    "ToolCallDelta",
    "ToolCallEnd",
    "ServerTool",
    "Opaque",
    "UsageUpdate",
    "Done",
    "Failed",
    "Context",
    "Model",
    "Options",
    "SystemPart",
    "TextContent",
    "ImageContent",
    "DocumentContent",
    "NamedTool",
    "OutputSchema",
    "CachePolicy",
    "ToolResultMessage",
    "Tool",
    "ToolResult",
    "AsyncClient",
    "Client",
    "ToolExecutor",
    "run_agent",
    "ModelClient",
    "sse",
    "protocols",
    "sequence",
]


@pytest.mark.parametrize("name", FIXED)
def test_a_promised_name_is_there(name: str) -> None:
    assert name in sseam.__all__
    assert getattr(sseam, name) is not None


def test_every_listed_name_is_there_once() -> None:
    assert len(set(sseam.__all__)) == len(sseam.__all__)
    assert all(hasattr(sseam, name) for name in sseam.__all__)


def test_the_edges_are_loaded_when_they_are_asked_for() -> None:
    code = (
        "import sys, sseam; before = [name for name in ('recording', 'replay') if f'sseam.{name}' in sys.modules];"
        "print(before, sseam.replay.transport(b'').requests, sseam.faults.Drop(1).frame)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] [] 1"


@pytest.mark.parametrize("name", sorted(sseam._MODULES))
def test_a_module_can_be_imported_as_one(name: str) -> None:
    module = importlib.import_module(f"sseam.{name}")
    assert module is getattr(sseam, name)
    assert all(hasattr(module, part) for part in module.__all__)


@pytest.mark.parametrize("name", ["agent", "content", "context", "cost", "testing", "tools"])
def test_a_module_is_there_after_a_bare_import(name: str) -> None:
    code = f"import sseam; print(sseam.{name}.__name__, {name!r} in dir(sseam))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"sseam.{name} True"


def test_no_other_name() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        sseam.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_the_core_loads_neither_a_client_nor_a_loop() -> None:
    code = (
        "import sys, sseam; sseam.Parser('anthropic-messages');"
        "print(sorted({'asyncio', 'httpx', 'anyio', 'trio', 'rich', 'jsonschema', 'pydantic'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", sseam.protocols.NAMES.values())
def test_a_protocol_is_there_when_it_is_asked_for(name: str) -> None:
    code = f"import sseam; print(sseam.protocols.{name}.NAME, sseam.protocols.{name}.initial())"
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    with pytest.raises(AttributeError, match="soap"):
        _ = sseam.protocols.soap
