"""Figure 4: one connection on the whole carrier, and eight on an eighth of it each."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from farlink.papers.celandroni.setting import (
    CODES_IN_WORDS,
    GOODPUT,
    PATH,
    SENSIBLY,
    Envelopes,
    all_points,
    drawn,
    envelopes,
    told,
)
from farlink.papers.check import Check
from farlink.papers.item import Drawing, Workbench

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FLOWS = 8
_ALONE = ("CV", "RS", "ER23", "ER46")
_CONCATENATED = ("RS+CV", "ER23+CV", "ER46+CV")
_FAMILIES = (*_ALONE, *_CONCATENATED)
_FEW_LOSSES = (
    "with concatenated codes the best setting for one connection loses about 1e-5 of the segments at most, which leaves it "
    "95 % of the rate or more; the rates that the paper chooses from are not printed"
)
# "Many": more than a third.
_MANY = 1 / 3


# Buffers for the comparison of one link with eight, over what the link carries in a round trip.
_BUFFERS_BDP = (0.5, 1.0, 2.0)


def _apart(bench: Workbench, buffer_bdp: float) -> float:
    """Largest difference between eight connections on one link and eight links, over C/N0 and families."""
    path = replace(PATH, buffer_bdp=buffer_bdp)
    shared, own = envelopes(bench, 1.0, _FLOWS, path), envelopes(bench, 1.0 / _FLOWS, 1, path)
    return max(
        abs(together / (_FLOWS * each) - 1)
        for name in _FAMILIES
        for together, each in zip(shared[name], own[name], strict=True)
        if each > 0
    )


def _coded(bench: Workbench, share: float) -> dict[str, list[bool]]:
    """Whether the best setting of each family has a code, at each C/N0."""
    from farlink.tune import envelope

    found = envelope.envelopes(all_points(bench, share), _FAMILIES, name=GOODPUT, flows=1, path=PATH)
    return {
        name: [one is not None and one.point.setting.code_name != envelope.UNCODED for one in row]
        for name, row in found.items()
    }


def figure_4(bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """The sum of eight over one, by family and C/N0; eight on one link beside eight links."""
    one, eighth = envelopes(bench, 1.0), envelopes(bench, 1.0 / _FLOWS)
    eight = {name: [_FLOWS * value for value in row] for name, row in eighth.items()}
    by_family = {
        name: [several / single for several, single in zip(eight[name], one[name], strict=True) if single > 0]
        for name in _FAMILIES
    }
    ratios = [ratio for row in by_family.values() for ratio in row]
    coded = _coded(bench, 1.0 / _FLOWS)
    most = {
        name: max(
            several / single
            for several, single, is_coded in zip(eight[name], one[name], coded[name], strict=True)
            if is_coded and single > 0
        )
        for name in _FAMILIES
    }
    differing = {name: sum(ratio > 1 + SENSIBLY for ratio in row) / len(row) for name, row in by_family.items()}
    printed = (
        "the total goodput sensibly differs in the two cases [...] for many of the C/N0 values considered and for all "
        "coding types"
    )
    apart = {buffer: _apart(bench, buffer) for buffer in _BUFFERS_BDP}
    checks = [
        told(
            "figure-4",
            f"share of C/N0 and families at which eight connections together have over {SENSIBLY:.0%} more than one",
            printed,
            sum(ratio > 1 + SENSIBLY for ratio in ratios) / len(ratios),
            at_least=_MANY,
            rule="many: agrees above a third; " + ", ".join(f"{share:.2f} with {name}" for name, share in differing.items()),
            cause=_FEW_LOSSES,
        ),
        told(
            "figure-4",
            "goodput of eight connections with a code together over that of one, most over C/N0, least over families",
            printed,
            min(most.values()),
            at_least=1 + SENSIBLY,
            rule=f"all coding types: agrees above {1 + SENSIBLY:g}; "
            + ", ".join(f"{ratio:.2f} with {name}" for name, ratio in most.items()),
            cause=_FEW_LOSSES,
        ),
        told(
            "figure-4",
            "goodput of eight connections together over that of one, least over C/N0 and families",
            "the difference is null when the selection of the transmission parameters only allows excessively low values of "
            "the SER",
            min(ratios),
            at_least=0.999,
            rule="agrees if eight never have less: above 0.999",
        ),
        told(
            "figure-4",
            "goodput of eight connections on one link over that of eight links with an eighth of its rate, largest difference",
            "do not sensibly differ: it is sufficient to divide the allocated bandwidth by the number of connections",
            apart[PATH.buffer_bdp],
            at_most=SENSIBLY,
            rule=f"agrees below {SENSIBLY:.0%}; by relation (1) they differ by the time that a segment takes to be sent",
        ),
        told(
            "figure-4",
            f"the same with a buffer of {_BUFFERS_BDP[-1]:g} over that with {_BUFFERS_BDP[0]:g} bandwidth-delay products",
            "the difference of the two results decreases as the size of the buffer increases",
            apart[_BUFFERS_BDP[-1]] / apart[_BUFFERS_BDP[0]],
            at_most=1.0,
            rule="agrees below 1; largest difference "
            + ", ".join(f"{apart[buffer]:.3f} with {buffer:g}" for buffer in _BUFFERS_BDP),
        ),
    ]
    caption = (
        f"{CODES_IN_WORDS} "
        "The whole carrier, by the rule of the paper. Solid: one connection; dashed: eight, each with an eighth of the carrier."
    )
    drawings = [
        Drawing(name, title, caption, partial(_drawn, one, eight, families))
        for name, title, families in (
            ("figure-4", "One connection and eight, each code alone", _ALONE),
            ("figure-4-concatenated", "One connection and eight, concatenated codes", _CONCATENATED),
        )
    ]
    return checks, drawings


def _drawn(one: Envelopes, eight: Envelopes, families: tuple[str, ...]) -> Figure:
    several = {f"{name}, 8 flows": eight[name] for name in families}
    return drawn({name: one[name] for name in families}, dashed=several)
