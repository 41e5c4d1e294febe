"""Which back end a bundle has."""

from __future__ import annotations

import os
from pathlib import Path

from farlink.operator.backend.link import BackEnd
from farlink.operator.backend.no_ppp import NoPpp
from farlink.operator.backend.own_ppp import OwnPpp
from farlink.operator.backend.pppd import PppdBackEnd
from farlink.operator.backend.stand_in import StandIn
from farlink.operator.config.bundle import Bundle
from farlink.operator.config.secrets_file import Secrets

_FOLDER = Path("/run/farlink")


def folder() -> Path:
    """Where options and logs of PPP are: of a user who may not write there, below the folder of the session."""
    session = os.environ.get("XDG_RUNTIME_DIR")
    if os.geteuid() == 0 or os.access(_FOLDER, os.W_OK) or not session:
        return _FOLDER
    return Path(session) / "farlink"


def back_end_of(bundle: Bundle, secrets: Secrets, *, profiles_folder: Path) -> BackEnd:
    """The back end of a bundle."""
    if not bundle.ppp_lines:
        return NoPpp()
    if bundle.back_end == "stand-in":
        return StandIn(bundle)
    if bundle.back_end == "farlink":
        return OwnPpp(bundle, secrets, folder=folder())
    return PppdBackEnd(bundle, secrets, folder=folder(), profiles_folder=profiles_folder)
