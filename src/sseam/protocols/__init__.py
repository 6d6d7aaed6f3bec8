"""The protocols by name. Each is a package with the same names, loaded when it is first asked for."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol, cast

from ..dialect import Dialect, Grade
from ..fold import State, Step
from ..sse import Frame

__all__ = ["ARRAYS", "NAMES", "WireProtocol", "load"]

NAMES = {
    "anthropic-messages": "anthropic_messages",
    "openai-chat": "openai_chat",
    "openai-responses": "openai_responses",
    "gemini-generate": "gemini_generate",
    "gemini-interactions": "gemini_interactions",
}

ARRAYS = frozenset({"gemini-generate"})
"""The protocols whose stream may also come as one JSON array."""


class WireProtocol(Protocol):
    """What each protocol's package offers.

    `State` and wire events are the protocol's own; nothing outside looks into them.
    """

    NAME: str
    TITLE: str
    STOP_REASONS: Mapping[str, str]
    DEVIATIONS: Mapping[str, Grade]
    DIALECTS: Mapping[str, Dialect]

    @staticmethod
    def initial(
        *,
        dialect: str | Dialect | None = None,
        strict: bool = False,
        tools: Iterable[object] = (),
        accept: Collection[str] = (),
    ) -> State[Any]:
        """The state before the first event."""
        ...

    @staticmethod
    def decode(frame: Frame) -> Any:
        """The wire event in a frame. Raises `ProtocolError`."""
        ...

    @staticmethod
    def reduce(state: State[Any], event: Any) -> Step[Any]:
        """The next state, and the neutral events that a wire event caused. Never raises for its content."""
        ...

    @staticmethod
    def finish(state: State[Any]) -> Step[Any]:
        """The input ended: the next state, and the terminal event if there was none."""
        ...

    @staticmethod
    def read_response(body: Any) -> list[Any]:
        """A non-streaming body as wire events. Raises `ProtocolError`."""
        ...


@functools.cache
def load(name: str) -> WireProtocol:
    """The protocol called `name`. Raises `ValueError` for a name that is none."""
    module = NAMES.get(name)
    if module is None:
        raise ValueError(f"no protocol {name!r}. There are {', '.join(NAMES)}")
    return cast("WireProtocol", importlib.import_module(f"{__name__}.{module}"))


def __getattr__(name: str) -> Any:
    """`sseam.protocols.anthropic_messages` and so on, loaded when first asked for."""
    if name in NAMES.values():
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
