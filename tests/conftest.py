"""What several test modules need."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

import schemas

# A busy machine is no failure; tests that are about time measure CPU time themselves.
hypothesis.settings.register_profile("sseam", deadline=None)
hypothesis.settings.load_profile("sseam")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "unusual_body: makes bodies on purpose that no service is known to take")
    schemas.watch()


@pytest.fixture(autouse=True)
def _bodies_are_valid(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every request body that the test makes is held against the schema of its protocol."""
    schemas.watching = request.node.get_closest_marker("unusual_body") is None
    yield
    schemas.watching = False


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of recorded streams and test vectors that SSEAM_CORPUS names; skips the test where it is unset."""
    folder = os.environ.get("SSEAM_CORPUS")
    if not folder:
        pytest.skip("SSEAM_CORPUS is not set: the recorded streams and vectors are not at hand")
    return Path(folder)
