"""Families of codes of a modem, as its description names them. A new one is a file here and a line in `Family`."""

from __future__ import annotations

from typing import Annotated

from farlink.tune.codes.code import Code, ModemKeys, Residue
from farlink.tune.codes.concatenated import ConcatenatedFamily
from farlink.tune.codes.convolutional import ConvolutionalFamily
from farlink.tune.codes.erasure import ErasureFamily
from farlink.tune.codes.measured import MeasuredCode, MeasuredFamily
from farlink.tune.codes.reed_solomon import ReedSolomonFamily
from farlink.tune.codes.uncoded import UncodedFamily
from farlink.tune.description import Field

__all__ = ["Code", "Family", "MeasuredCode", "MeasuredFamily", "ModemKeys", "Residue"]

Family = Annotated[
    UncodedFamily | ConvolutionalFamily | ReedSolomonFamily | ErasureFamily | ConcatenatedFamily | MeasuredFamily,
    Field(discriminator="kind"),
]
