"""No code."""

from __future__ import annotations

from typing import Literal

from farlink.tune.codes.code import Code, ModemKeys
from farlink.tune.description import Description
from farlink.tune.inner import Inner


class UncodedFamily(Description):
    """Bits as they are."""

    kind: Literal["uncoded"]

    def codes(self, packet_bytes: int, modem: ModemKeys) -> list[Code]:  # noqa: ARG002
        """The one that there is."""
        return [Code(Inner.uncoded())]
