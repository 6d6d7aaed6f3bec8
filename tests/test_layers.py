"""The flow goes one way: a module imports only what lies before it, and the core only what it needs."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "src" / "sseam"

# From the bytes on: each module, or package of modules, may import those before it.
CHAIN = [
    "errors",
    "_enums",
    "_persistent",
    "_text",
    "decoding",
    "sse",
    "jsonarray",
    "dialect",
    "message",
    "events",
    "declared",
    "toolargs",
    "stop",
    "release",
    "_compare",
    "sequence",
    "fold",
    "protocols",
    "_broken",
    "detect",
    "parser",
    "model",
]
PROTOCOLS = sorted(path.parent.name for path in ROOT.glob("protocols/*/reducer.py"))


def imports(path: Path) -> Iterator[str]:
    """The absolute names of what a module imports as it is loaded, its type-checking imports left out."""
    package = ["sseam", *path.relative_to(ROOT).parent.parts]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = [*base, *(node.module or "").split(".")] if node.module else base
            if node.module is None:
                yield from (".".join([*base, alias.name]) for alias in node.names)
            else:
                yield ".".join(origin)


def modules(name: str) -> list[Path]:
    folder = ROOT / name
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [ROOT / f"{name}.py"]


def is_of_the_chain(path: Path) -> bool:
    # A request is made from what came out of the chain: it stands behind it, beside the protocol that it is for.
    return path.stem not in {
        "request",
        "request_dialects",
        "request_models",
        "caching",
        "reasoning",
        "results",
        "_openai",
    }


@pytest.mark.parametrize("name", CHAIN)
def test_the_chain_goes_one_way(name: str) -> None:
    before = set(CHAIN[: CHAIN.index(name) + 1])
    for path in filter(is_of_the_chain, modules(name)):
        for origin in imports(path):
            top, _, rest = origin.partition(".")
            if top == "sseam":
                assert rest.partition(".")[0] in before, f"{path.name} imports {origin}"
            else:
                assert top in sys.stdlib_module_names | {"msgspec"}, f"{path.name} imports {origin}"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_protocol_imports_another(protocol: str) -> None:
    others = {f"sseam.protocols.{other}" for other in PROTOCOLS if other != protocol}
    for path in (ROOT / "protocols" / protocol).glob("*.py"):
        assert not others & {".".join(origin.split(".")[:3]) for origin in imports(path)}, path.name


def test_the_chain_does_no_io() -> None:
    forbidden = {"socket", "asyncio", "threading", "time", "os", "logging", "random"}
    for name in CHAIN:
        for path in modules(name):
            assert not forbidden & set(imports(path)), path.name
