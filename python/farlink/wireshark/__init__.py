"""AeroTP for Wireshark."""

from __future__ import annotations

from pathlib import Path

DISSECTOR = Path(__file__).with_name("aerotp.lua")
"""The dissector, in Lua."""
