"""How much each parameter of a drawn study matters: Sobol's indices of sensitivity, by SALib."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from farlink.errors import StudyError
from farlink.extras import require
from farlink.near_names import instead
from farlink.study.sample import flat_ranges

if TYPE_CHECKING:
    from farlink.scenario import Point
    from farlink.study.opened import OpenedStudy

# With fewer points RBD-FAST, which looks at ten harmonics, has nothing to work on.
_LEAST_POINTS = 65


@dataclass(frozen=True)
class Index:
    """Share of one parameter in the variance of a quantity over a sample.

    Attributes
    ----------
    path
        Dotted path of the parameter.
    first
        First-order index: the share of the variance that would vanish, on average, if this parameter were known. In [0, 1], but
        for the error of the estimate.
    first_ci95
        Half-width of its 95 % interval, by the bootstrap.
    total
        Total index: the share that would be left if all other parameters were known; more than `first` by what it does together
        with others. None unless the points are of Saltelli's design.
    total_ci95
        Half-width of its 95 % interval.
    """

    path: str
    first: float
    first_ci95: float
    total: float | None = None
    total_ci95: float | None = None


def indices_of(sample: Mapping[str, Any], points: Sequence[Point], values: Sequence[float]) -> list[Index]:
    """Indices of the parameters of a sample.

    Parameters
    ----------
    sample
        The table ``[sample]`` that the points were drawn from.
    points
        Values of its parameters at each point, in the order in which they were drawn.
    values
        The quantity at each point, of any unit.

    Returns
    -------
    list of Index
        In the order of the sample's ranges. The bootstrap is seeded with the sample's seed.

    Raises
    ------
    StudyError
        If a value is missing, all are equal, or points are too few.
    MissingExtraError
        If SALib is not installed.

    Notes
    -----
    Random parts of the values, such as those of few runs at a point, count as variance that no parameter explains. Saltelli's
    design gives first-order and total indices; of other samples the first-order ones are estimated by RBD-FAST.

    References
    ----------
    Saltelli, Annoni, Azzini, Campolongo, Ratto, Tarantola, "Variance based sensitivity analysis of model output", Computer
    Physics Communications 181 (2010), table 2; Tarantola, Gatelli, Mara, "Random balance designs for the estimation of first
    order global sensitivity indices", Reliability Engineering and System Safety 91 (2006).
    """
    found = np.asarray(values, dtype=np.float64)
    paths = list(flat_ranges(sample["range"]))
    kind, seed = sample.get("kind", "latin-hypercube"), int(sample.get("seed", 1))
    drawn = int(sample["points"]) * (len(paths) + 2 if kind == "saltelli" else 1)
    if not len(found) == len(points) == drawn:
        message = f"{len(found)} points are not the {drawn} of the sample"
        raise StudyError(message, "what [grid] varies besides has no indices: begin a study without it")
    missing = [point for point, value in enumerate(found) if not math.isfinite(value)]
    if missing:
        message = f"{len(missing)} of {len(found)} points have no value, the first of them point {missing[0]}"
        raise StudyError(message, "give a quantity that every point has, or finish the study")
    problem = {"num_vars": len(paths), "names": paths, "bounds": [[0.0, 1.0]] * len(paths)}
    if np.ptp(found) == 0:
        raise StudyError("the quantity is the same at all points", "give another one, or wider ranges")
    if kind == "saltelli":
        analyze = require("SALib.analyze.sobol", "sensitivity indices")
        answer = analyze.analyze(problem, found, calc_second_order=False, seed=seed)
        columns = [answer[name] for name in ("S1", "S1_conf", "ST", "ST_conf")]
    else:
        if len(found) < _LEAST_POINTS:
            message = f"{len(found)} points are too few for indices of sensitivity"
            raise StudyError(message, f'give at least {_LEAST_POINTS}, or kind = "saltelli"')
        at = np.array([[point[path] for path in paths] for point in points], dtype=np.float64)
        answer = require("SALib.analyze.rbd_fast", "sensitivity indices").analyze(problem, at, found, seed=seed)
        columns = [answer[name] for name in ("S1", "S1_conf")]
    return [Index(path, *(float(column[number]) for column in columns)) for number, path in enumerate(paths)]


def study_indices(study: OpenedStudy, quantity: str, *, engine: str | None = None, flow: str = "all") -> list[Index]:
    """Indices of what varies in the study of a folder.

    Parameters
    ----------
    study
        Opened; its points were drawn by ``[sample]``.
    quantity
        A column of the summary, such as ``"goodput_bps"``: its mean over the runs of a point.
    engine
        Of which engine; by default the study's first.
    flow
        Of which flow; by default of all together.

    Raises
    ------
    StudyError
        If the points were not drawn, something is not known, or points are missing.
    """
    sample = study.store.description().get("drawn")
    if not isinstance(sample, dict):
        raise StudyError(f"{study.store.folder}: its points were not drawn", "indices need a table [sample] in place of [grid]")
    engine = study.plan.engines[0] if engine is None else engine
    result = study.result()
    if result.interrupted:
        raise StudyError(f"{study.store.folder} is not finished", f"see farlink sweep status {study.store.folder}")
    summary = result.summary()
    for what, given, known in (
        ("engine", engine, [str(entry["engine"]) for entry in summary]),
        ("flow", flow, [str(entry["flow"]) for entry in summary if entry["engine"] == engine]),
    ):
        if given not in known:
            raise StudyError(f"--{what} {given}: not in this study", instead(given, list(dict.fromkeys(known))))
    wanted = [entry for entry in summary if entry["engine"] == engine and entry["flow"] == flow]
    if quantity not in result.quantities:
        raise StudyError(f"--quantity {quantity}: not in this study", instead(quantity, result.quantities))
    means = [entry[quantity]["mean"] for entry in wanted]
    return indices_of(sample, result.points, [math.nan if mean is None else float(mean) for mean in means])
