"""Recordings served over loopback HTTP: `sseam.recording.serve` under its short name."""

from .recording.serve import *  # noqa: F403
from .recording.serve import __all__ as __all__
