"""Recordings damaged in named ways: `sseam.recording.faults` under its short name."""

from .recording.faults import *  # noqa: F403
from .recording.faults import __all__ as __all__
