"""Write the table of `docs/design/tuning.md` on models of goodput beside packets under bursts: `make papers`. Takes minutes.

A hundred random links lose segments in bursts. Every model is asked twice: with the share of lost segments as if each were lost
for itself, and with the rate of bursts, as if a burst were one loss.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import page

from farlink.tune.goodput import goodput
from farlink.tune.offered import Offered, Path, Precision
from farlink.tune.packet_goodput import link, ran

CELLS, SEED, RUNS = 100, 7, 6
# Drawn at random in the logarithm: segments of a burst and between bursts, segments per second, round trip in s.
BURST, GAP, RATE, ROUND_TRIP_S = (1.0, 50.0), (50.0, 20_000.0), (30.0, 1500.0), (0.02, 0.6)
# At least so many segments in a round trip.
LEAST_BDP = 4.0
# Goodput at which a link counts as full, and below which it carries nothing of note, as shares of its rate.
FULL, NOTHING = 0.9, 0.01
MODELS = ("relation", "padhye", "fluid")
NEAR = 0.1
# Where a model came nearest: drawn anew, with longer round trips in segments and bursts of this many at most.
CLOSE_SEED, CLOSE_BURST, CLOSE_BDP = 11, 1.5, 20.0
CLOSE_MODEL = ("padhye", "every loss")
CLASSES = ((1.0, 1.5), (1.5, 3.0), (3.0, 10.0), (10.0, 50.0))


@dataclass(frozen=True)
class Cell:
    """A link with bursts.

    Attributes
    ----------
    burst, gap
        Mean segments of a burst, and from one to the next.
    bdp
        Segments in a round trip.
    packet
        Share of the rate that packets deliver.
    found
        What the models say, by name and by what counts as a loss.
    """

    burst: float
    gap: float
    bdp: float
    packet: float
    found: dict[tuple[str, str], float]


def main() -> None:
    """Run all cells and write the table."""
    page.start(__doc__)
    rng, close_rng = np.random.default_rng(SEED), np.random.default_rng(CLOSE_SEED)
    cells, close = [], []
    with page.steps("links with bursts", 2 * CELLS) as told:
        for number in range(CELLS):
            cells.append(cell(rng, number))
            told()
        for number in range(CELLS):
            close.append(cell(close_rng, number, (BURST[0], CLOSE_BURST), CLOSE_BDP))
            told()
    page.write("../design/tuning.md", {}, **of_page(cells, close))


def cell(rng: np.random.Generator, number: int, bursts: tuple[float, float] = BURST, least_bdp: float = LEAST_BDP) -> Cell:
    """Draw a link and run everything over it."""
    burst, gap, rate, round_trip_s = (math.exp(rng.uniform(*map(math.log, ends))) for ends in (bursts, GAP, RATE, ROUND_TRIP_S))
    rate = max(rate, least_bdp / round_trip_s)
    path, rates = Path(round_trip_s), np.array([rate])
    loss = {"every loss": burst / (burst + gap), "a burst": 1 / (burst + gap)}
    offered = {kind: Offered(rates, np.array([value]), 1, path, Precision(0.02, 0.95)) for kind, value in loss.items()}
    channel = {"kind": "gilbert-elliott", "p_good_to_bad": 1 / gap, "p_bad_to_good": 1 / burst, "loss_bad": 1.0}
    packet, _ = ran(link(offered["every loss"], 0, channel, runs=RUNS, seed=number))
    found = {(name, kind): float(goodput(name, one)[0][0]) for name in MODELS for kind, one in offered.items()}
    return Cell(burst, gap, rate * float(path.rtt_s(rates)[0]), packet, found)


def of_page(cells: list[Cell], close: list[Cell]) -> page.Values:
    """Values of the page."""
    partly = [one for one in close if NOTHING <= one.packet < FULL]
    errors = np.array([one.found[CLOSE_MODEL] / one.packet - 1 for one in partly])
    return {
        "close_partly": len(partly),
        "close_near": int(np.count_nonzero(np.abs(errors) <= NEAR)),
        "close_lowest": -100 * float(errors.min()),
        "close_highest": 100 * float(errors.max()),
        "bursts_beside": page.table(
            ["bursts of segments", "links", "model", "a loss is", "error: lowest, median, highest", "within 10 %"],
            rows(cells),
            "lrl",
        ),
        "bursts_partly": sum(NOTHING <= one.packet < FULL for one in cells),
    }


def rows(cells: list[Cell]) -> Iterator[list[str]]:
    """Rows of the table: all links that are neither full nor as good as down, by the length of their bursts."""
    partly = [one for one in cells if NOTHING <= one.packet < FULL]
    for low, high in CLASSES:
        those = [one for one in partly if low <= one.burst < high]
        words = f"{low:g} to {high:g}"
        for number, (name, kind) in enumerate((name, kind) for name in MODELS for kind in ("every loss", "a burst")):
            errors = np.array([one.found[name, kind] / one.packet - 1 for one in those])
            ends = ", ".join(percent(float(value)) for value in (errors.min(), np.median(errors), errors.max()))
            near = int(np.count_nonzero(np.abs(errors) <= NEAR))
            place = [words, str(len(those))] if number == 0 else ["", ""]
            yield [*place, f"`{name}`", kind, ends, f"{near} of {len(those)}"]


def percent(share: float) -> str:
    """A share for a cell of the table; large ones as a factor."""
    return f"{share:+.0%}".replace("%", " %") if share < 9 else f"{share + 1:.0f} times"


if __name__ == "__main__":
    main()
