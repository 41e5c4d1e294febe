"""Lines over modems that ModemManager has (QMI, MBIM), by way of D-Bus."""

from __future__ import annotations

from farlink.operator.lines.modem_manager.here import modems_here
from farlink.operator.lines.modem_manager.line import ModemManagerLine
from farlink.operator.lines.modem_manager.modem import listed, meant

__all__ = ["ModemManagerLine", "listed", "meant", "modems_here"]
