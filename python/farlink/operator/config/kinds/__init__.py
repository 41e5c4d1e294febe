"""Kinds of lines: one entry each. A kind says its keys, what `check` asks of them, and how a line of it is made."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from farlink.operator.config.bundle import Bundle
from farlink.operator.config.kinds.at import At
from farlink.operator.config.kinds.interface import Interface
from farlink.operator.config.kinds.kind import Kind, Parts, Row, Traits
from farlink.operator.config.kinds.modem_manager import ModemManager

__all__ = ["KINDS", "Kind", "Parts", "Row", "Traits", "traits_of"]

KINDS: Mapping[str, Kind] = {"at": At(), "interface": Interface(), "modemmanager": ModemManager()}
"""Value of the key ``kind`` -> what there is to know of it."""


def traits_of(bundle: Bundle, folder: Path) -> dict[str, Traits]:
    """Name -> what dialler and recorder are told of each line.

    Parameters
    ----------
    bundle
        Whose lines.
    folder
        That of ``bundle.toml``, for profiles that are files.

    Raises
    ------
    OperatorError
        If a profile cannot be read.
    """
    return {line.name: KINDS[line.kind].traits(line, bundle, folder) for line in bundle.lines}
