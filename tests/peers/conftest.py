"""How thorough the peer tests are: FARLINK_PEERS=all runs every cell, at half the interval."""

from __future__ import annotations

import os

import pytest

ALL_CELLS = os.environ.get("FARLINK_PEERS") == "all"


@pytest.fixture(scope="session")
def relative_half_width() -> float:
    """Half-width, as a fraction of the mean, at which both sides stop adding runs."""
    return 0.01 if ALL_CELLS else 0.02
