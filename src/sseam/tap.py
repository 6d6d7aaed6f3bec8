"""Recordings of a client's own answers: `sseam.recording.tap` under its short name."""

from .recording.tap import *  # noqa: F403
from .recording.tap import __all__ as __all__
