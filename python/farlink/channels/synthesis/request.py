"""Request to a generator of synthetic traces: how long, with which seed, in how many samples."""

from __future__ import annotations

import math

from farlink.errors import TraceError

MOST_SAMPLES = 10**8
"""In one trace; more would take gigabytes."""


def check_request(duration_s: float | None, seed: int, *, for_example_s: float = 100) -> None:
    """Check duration and seed.

    Parameters
    ----------
    duration_s
        How long, in s; None for the usual length.
    seed
        Seed of the random streams.
    for_example_s
        A duration that the error proposes.

    Raises
    ------
    TraceError
        If the duration is not a number above 0, or the seed not a whole number from 0 to 2^64 - 1.
    """
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**64:
        raise TraceError(f"seed: {seed!r} is not a whole number from 0 to 2^64 - 1", "give for example seed=1")
    if duration_s is not None and not (math.isfinite(duration_s) and duration_s > 0):
        raise TraceError(
            f"duration_s: {duration_s:g} is not above 0", f"give a number of seconds, for example {for_example_s:g}"
        )


def check_samples(samples: int, duration_s: float, *, least: int, step: str) -> None:
    """Check the number of samples.

    Parameters
    ----------
    samples
        How many.
    duration_s
        In how many s.
    least
        How few are allowed.
    step
        The parameter that sets their distance.

    Raises
    ------
    TraceError
        If there are too few or too many.
    """
    if not least <= samples <= MOST_SAMPLES:
        raise TraceError(
            f"duration_s: {duration_s:g} s are {samples:,} samples, not {least} to {MOST_SAMPLES:,}",
            f"give another duration_s or {step}",
        )
