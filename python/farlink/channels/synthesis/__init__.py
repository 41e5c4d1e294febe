"""Synthetic fading of free-space optical links, where no measurement is published: received power over time, by preset."""

from __future__ import annotations

from farlink.channels.synthesis.generate import Synthesis, settle, synthesize
from farlink.channels.synthesis.parameters import PARAMETERS
from farlink.channels.synthesis.presets import PRESETS, Preset
from farlink.channels.synthesis.text import is_synthetic, synthetic_file, synthetic_trace

__all__ = [
    "PARAMETERS",
    "PRESETS",
    "Preset",
    "Synthesis",
    "is_synthetic",
    "settle",
    "synthesize",
    "synthetic_file",
    "synthetic_trace",
]
