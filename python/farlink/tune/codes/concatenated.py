"""A code around another one, each from its own family."""

from __future__ import annotations

from typing import Literal

from farlink.errors import TuneError
from farlink.near_names import instead
from farlink.tune.codes.code import Code, ModemKeys
from farlink.tune.codes.convolutional import ConvolutionalFamily
from farlink.tune.codes.erasure import ErasureFamily
from farlink.tune.codes.reed_solomon import ReedSolomonFamily
from farlink.tune.description import Description, Text


class ConcatenatedFamily(Description):
    """Every code of the one family around every code of the other.

    Attributes
    ----------
    outer
        Name of a family of Reed-Solomon or erasure codes.
    inner
        Name of a family of convolutional codes.
    """

    kind: Literal["concatenated"]
    outer: Text
    inner: Text

    def codes(self, packet_bytes: int, modem: ModemKeys) -> list[Code]:
        """All pairs."""
        outer, inner = (modem.families.get(name) for name in (self.outer, self.inner))
        for name, found in ((self.outer, outer), (self.inner, inner)):
            if found is None:
                raise TuneError(f"there is no family {name!r} to concatenate", instead(name, list(modem.families)))
        if not isinstance(outer, ReedSolomonFamily | ErasureFamily):
            raise TuneError(f"outer: {self.outer!r} cannot be around a code", "name a family of reed-solomon or erasure codes")
        if not isinstance(inner, ConvolutionalFamily):
            raise TuneError(f"inner: {self.inner!r} cannot be next to the channel", "name a family of convolutional codes")
        return [Code(within, around) for around in outer.outers(packet_bytes) for within in inner.inners(modem.decision)]
