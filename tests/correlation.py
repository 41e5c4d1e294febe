"""Correlation of a sampled path with itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def autocorrelation_at(path: NDArray[np.float64], lag: int) -> float:
    """Autocorrelation of a path at a lag in samples."""
    centred = path - path.mean()
    return float((centred[:-lag] * centred[lag:]).mean() / centred.var())
