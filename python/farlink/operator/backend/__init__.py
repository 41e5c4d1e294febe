"""Back ends that carry PPP over a call: Linux' pppd, farlink's own, or a stand-in without kernel PPP and root."""

from __future__ import annotations

from farlink.operator.backend.link import BackEnd, Carried, Down, Link, Probe, Said, Up
from farlink.operator.backend.of_bundle import back_end_of
from farlink.operator.backend.own_ppp import OwnPpp
from farlink.operator.backend.pppd import PppdBackEnd
from farlink.operator.backend.stand_in import StandIn

__all__ = ["BackEnd", "Carried", "Down", "Link", "OwnPpp", "PppdBackEnd", "Probe", "Said", "StandIn", "Up", "back_end_of"]
