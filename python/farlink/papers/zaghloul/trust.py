"""Which closed form to trust where: derived from predictions over what is simulated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from farlink.models.ranges import Floats
from farlink.papers.estimate import Estimate
from farlink.papers.zaghloul.transfers import MODELS, Path, Point

# A prediction is good within the first factor of the truth, either way, and fair within the second.
GOOD, FAIR = 1.1, 1.25


@dataclass(frozen=True)
class Compared:
    """Predictions beside the truth, on a path.

    Attributes
    ----------
    path
        The path.
    segments, loss_rates
        The grid.
    ratio
        By model, prediction over mean simulated time: a row for each loss, a column for each length.
    half_width
        Of the 95 % interval of the mean simulated time, as a share of it; of the same shape.
    """

    path: Path
    segments: tuple[int, ...]
    loss_rates: tuple[float, ...]
    ratio: Mapping[str, Floats]
    half_width: Floats

    def factor(self, model: str) -> Floats:
        """How many times too long or too short a prediction may be, with the interval on the worse side."""
        return np.asarray(np.exp(np.abs(np.log(self.ratio[model]))) * (1 + self.half_width))


def compare(
    path: Path,
    segments: Sequence[int],
    loss_rates: Sequence[float],
    times: Mapping[Point, Estimate],
    models: Sequence[str] = (),
) -> Compared:
    """Put the models that are made for a path beside what was simulated on it.

    Parameters
    ----------
    path
        The path.
    segments, loss_rates
        The grid.
    times
        Simulated, for every point of it.
    models
        Keys of `MODELS`; all by default.
    """
    loss, number = np.meshgrid(np.asarray(loss_rates), np.asarray(segments), indexing="ij")
    mean = np.array([[times[n, p].mean for n in segments] for p in loss_rates])
    half = np.array([[times[n, p].half_width for n in segments] for p in loss_rates])
    made = [key for key in models or MODELS if MODELS[key].is_made_for(path)]
    ratio = {key: np.asarray(MODELS[key].time_s(path, number, loss) / mean) for key in made}
    return Compared(path, tuple(segments), tuple(loss_rates), ratio, half / mean)


def worst_in(compared: Compared, segments: tuple[float, float], loss_rates: tuple[float, float]) -> dict[str, float]:
    """Largest factor of each model in a block of the grid, the best model first.

    Parameters
    ----------
    compared
        The comparison.
    segments, loss_rates
        First and last of the block, both included.
    """
    rows = [i for i, loss in enumerate(compared.loss_rates) if loss_rates[0] <= loss <= loss_rates[1]]
    columns = [i for i, number in enumerate(compared.segments) if segments[0] <= number <= segments[1]]
    worst = {model: float(compared.factor(model)[np.ix_(rows, columns)].max()) for model in compared.ratio}
    return dict(sorted(worst.items(), key=lambda item: item[1]))


def share_within(compared: Compared, model: str, factor: float) -> float:
    """Share of the grid at which a model is so near."""
    return float(np.mean(compared.factor(model) <= factor))
