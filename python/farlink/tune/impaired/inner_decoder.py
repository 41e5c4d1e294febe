"""The decoder next to the channel, run over wrong bits of the channel."""

from __future__ import annotations

import json

import numpy as np
from numpy.typing import NDArray

from farlink.errors import TuneError
from farlink.tune.impaired.viterbi import USUAL, Trellis, decoded
from farlink.tune.inner import Inner

# A step of the decoder takes as long as there are states.
_LONGEST = 9


def trellis_of(inner: Inner) -> Trellis:
    """The trellis of a convolutional code as in ``[link.coding]``.

    Raises
    ------
    TuneError
        If it has too many states.
    """
    code = json.loads(inner.code)
    outputs = code["generators"].count(",") + 1
    # Checked before, by the core.
    pattern = code.get("puncture") or USUAL.get(str(code.get("rate", "")).strip()) or "/".join(["1"] * outputs)
    if pattern == USUAL["1/2"]:
        pattern = "/".join(["1"] * outputs)
    found = Trellis.of(code["generators"], pattern)
    if found.constraint_length > _LONGEST:
        raise TuneError(
            f"{inner.name}: K = {found.constraint_length} has {1 << found.constraint_length - 1:,} states, and under bursts "
            f"decoders of up to K = {_LONGEST} are run",
            "leave the family out by families = [...], or take a shorter code",
        )
    return found


def left_by(inner: Inner, wrong: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """Positions of wrong data bits that it leaves of wrong bits on the channel, ascending: hard decisions, no interleaver.

    Parameters
    ----------
    inner
        The code.
    wrong
        Ascending positions on the channel.
    seed
        Decides between paths of equal metric.
    """
    return decoded(wrong, trellis_of(inner), seed) if inner.name else wrong
