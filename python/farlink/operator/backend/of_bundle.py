"""Which back end a bundle has."""

from __future__ import annotations

from pathlib import Path

from farlink.operator.backend.link import BackEnd
from farlink.operator.backend.pppd import PppdBackEnd
from farlink.operator.backend.stand_in import StandIn
from farlink.operator.config.bundle import Bundle
from farlink.operator.config.secrets_file import Secrets

FOLDER = Path("/run/farlink")
"""Where options and logs of pppd are."""


def back_end_of(bundle: Bundle, secrets: Secrets, *, profiles_folder: Path) -> BackEnd:
    """The back end of a bundle."""
    if bundle.back_end == "stand-in":
        return StandIn(bundle)
    return PppdBackEnd(bundle, secrets, folder=FOLDER, profiles_folder=profiles_folder)
