"""Named random streams: each part of a synthetic channel draws from its own, so that settings of one leave others alone."""

from __future__ import annotations

import zlib

import numpy as np


def stream(seed: int, name: str) -> np.random.Generator:
    """A random generator that depends on the seed and on the name of its user.

    Parameters
    ----------
    seed
        Seed of the whole realisation, at least 0.
    name
        Which part draws, for example ``"fast-0"``.

    Examples
    --------
    >>> stream(1, "fast-0").random() == stream(1, "fast-0").random()
    True
    >>> stream(1, "fast-0").random() == stream(1, "slow-0").random()
    False
    """
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(zlib.crc32(name.encode()),))))


def root_seed(seed: int, preset: str) -> int:
    """A seed of its own for each preset, so that two presets with the same seed do not fade together.

    Parameters
    ----------
    seed
        Seed that the user gives, below 2^64.
    preset
        Name of the preset.

    Examples
    --------
    >>> root_seed(1, "kiodo") == root_seed(1, "fasolt")
    False
    """
    return seed | zlib.crc32(preset.encode()) << 64
