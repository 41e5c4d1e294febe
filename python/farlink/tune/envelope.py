"""The best goodput of each family of codes against C/N0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from farlink.tune.evaluate import Rated, best, rated, worth_a_look
from farlink.tune.impaired.impairment import Impairment
from farlink.tune.offered import DEFAULT_PRECISION, Path, Precision, Progress
from farlink.tune.points import Point

UNCODED = "uncoded"


def envelopes(
    rows: Sequence[Sequence[Point]],
    families: Sequence[str],
    *,
    name: str,
    flows: int,
    path: Path,
    precision: Precision = DEFAULT_PRECISION,
    progress: Progress | None = None,
    impairment: Impairment | None = None,
) -> Mapping[str, list[Rated | None]]:
    """The best point of each family at each C/N0; sending without a code belongs to all of them.

    Parameters
    ----------
    rows
        Settings, for each C/N0.
    families
        Families of codes.
    name, flows, path, precision, progress, impairment
        See `farlink.tune.evaluate.rated`.

    Returns
    -------
    mapping
        For each family the best of each row; None if it has no setting.
    """
    chosen = {
        family: [worth_a_look([point for point in row if _is_of(point, family)], impairment) for row in rows]
        for family in families
    }
    # All at once: an engine may share its work.
    flat = list({id(point): point for kept in chosen.values() for row in kept for point in row}.values())
    judged = rated(flat, name=name, flows=flows, path=path, precision=precision, progress=progress, impairment=impairment)
    found = {id(point): one for point, one in zip(flat, judged, strict=True)}
    return {family: [best([found[id(point)] for point in row]) for row in kept] for family, kept in chosen.items()}


def _is_of(point: Point, family: str) -> bool:
    return point.setting.family == family or point.setting.code_name == UNCODED
