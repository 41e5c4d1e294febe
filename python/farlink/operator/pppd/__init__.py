"""Configuration of pppd for a bundle, and the seam behind which another way to carry PPP would stand."""

from __future__ import annotations

from farlink.operator.pppd.needs import Need, needs_of, program_of
from farlink.operator.pppd.options import BackEnd, Pppd, file_stem

__all__ = ["BackEnd", "Need", "Pppd", "file_stem", "needs_of", "program_of"]
