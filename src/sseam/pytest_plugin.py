"""The fixture `sse_replay` for pytest, which loads this module by its entry point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .replay import Source, Transport

__all__ = ["sse_replay"]


@pytest.fixture
def sse_replay(request: pytest.FixtureRequest) -> Callable[..., Transport]:
    """`sseam.replay.transport`, with relative paths taken from the folder of the test's own file.

    ::

        def test_answer(sse_replay):
            client = httpx.Client(transport=sse_replay("answer.sse", cuts=1))
    """

    def replay(recordings: Source | Sequence[Source], **options: Any) -> Transport:
        from .replay import transport  # a run that replays nothing does not pay for it

        options.setdefault("folder", request.path.parent)
        return transport(recordings, **options)

    return replay
