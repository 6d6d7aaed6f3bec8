"""What several test modules need."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import pytest

# A busy machine is no failure; tests that are about time measure CPU time themselves.
hypothesis.settings.register_profile("sseam", deadline=None)
hypothesis.settings.load_profile("sseam")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of recorded streams and test vectors that SSEAM_CORPUS names; skips the test where it is unset."""
    folder = os.environ.get("SSEAM_CORPUS")
    if not folder:
        pytest.skip("SSEAM_CORPUS is not set: the recorded streams and vectors are not at hand")
    return Path(folder)
