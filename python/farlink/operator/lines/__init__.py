"""Lines of a bundle behind one interface: what the operator orders, and what a line reports."""

from __future__ import annotations

from farlink.operator.lines.at_line import AtLine
from farlink.operator.lines.line import Line, Pins, Report

__all__ = ["AtLine", "Line", "Pins", "Report"]
