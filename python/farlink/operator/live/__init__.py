"""The live operator: the dialler of the core moves real lines, and everything is recorded."""

from __future__ import annotations

from farlink.operator.live.control import ask
from farlink.operator.live.loop import Operator, operate
from farlink.operator.live.status import shown
from farlink.operator.live.teller import Teller

__all__ = ["Operator", "Teller", "ask", "operate", "shown"]
