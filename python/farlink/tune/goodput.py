"""Goodput of long TCP connections over a link of constant rate that loses segments. A new model is a line in `GOODPUT`.

Each gives the share of the link's rate that all connections together deliver, and the half-width of its interval at the level
of `Offered.precision`, 0 for a closed form. No model exceeds what arrives, 1 less the loss: over a link without limit relation
(1) does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from farlink.arguments import checked_arguments
from farlink.errors import TuneError
from farlink.models.tcp_goodput import celandroni, mathis, selection, timeout
from farlink.models.tcp_latency import padhye
from farlink.near_names import instead
from farlink.tune.offered import Floats, Found, Offered, Progress
from farlink.tune.packet_goodput import packet_goodput


@dataclass(frozen=True)
class Goodput:
    """A way to find goodput.

    Attributes
    ----------
    title
        What it is.
    of
        Computes it.
    uses_buffer
        Whether it depends on the room in the queue.
    plays_losses
        Whether it runs packets over losses as they come. The others take each loss to be independent of all before.
    """

    title: str
    of: Callable[[Offered, Progress | None], Found]
    uses_buffer: bool = True
    plays_losses: bool = False


@checked_arguments
def goodput(name: str, offered: Offered, progress: Progress | None = None) -> Found:
    """Goodput by the model or engine of that name.

    Parameters
    ----------
    name
        A key of `GOODPUT`.
    offered
        The links.
    progress
        Called with the links done and planned, by engines.

    Returns
    -------
    ndarray, ndarray
        Share of the link's rate that all connections deliver, in [0, 1], and the half-width of its interval, of the shape of
        the rates.

    Raises
    ------
    TuneError
        If there is no model of that name; the error names the nearest.

    Examples
    --------
    >>> from farlink.tune.offered import Path
    >>> links = Offered(np.array([455.0, 455.0]), np.array([1e-4, 1e-2]), 5, Path())
    >>> share, _ = goodput("relation", links)
    >>> share.round(4)
    array([0.9999, 0.2496])
    """
    check(name)
    share, half_width = GOODPUT[name].of(offered, progress)
    return np.minimum(share, 1 - offered.loss), half_width


def check(name: str) -> None:
    """Refuse an unknown name.

    Raises
    ------
    TuneError
        It names the nearest.
    """
    if name not in GOODPUT:
        raise TuneError(f"goodput: there is no model or engine {name!r}", instead(name, list(GOODPUT)))


def check_impaired(name: str, kind: str) -> None:
    """Refuse a model that does not hold over an impairment.

    Parameters
    ----------
    name
        A key of `GOODPUT`.
    kind
        Of the channel that impairs the link.

    Raises
    ------
    TuneError
        If the model takes losses to be independent, which those of an impairment are not.
    """
    if not GOODPUT[name].plays_losses:
        able = ", ".join(f'goodput = "{one}"' for one, model in GOODPUT.items() if model.plays_losses)
        raise TuneError(
            f"goodput: {name!r} takes losses to be independent of each other, and those of the impairment {kind!r} are not",
            f"give {able}, or leave goodput out",
        )


def _relation(offered: Offered, _progress: Progress | None) -> Found:
    rate, rtt = offered.rate_segments_per_s, offered.rtt_s
    one = celandroni.relation_1(
        offered.loss,
        rtt_s=rtt,
        timeout_s=timeout.timeout_s(rtt),
        rate_segments_per_s=rate,
        segments_per_ack=offered.path.segments_per_ack,
    )
    return offered.flows * one, np.zeros_like(rate)


def _mathis(offered: Offered, _progress: Progress | None) -> Found:
    rate = offered.rate_segments_per_s
    path: dict[str, Any] = {"rtt_s": offered.rtt_s, "segments_per_ack": offered.path.segments_per_ack}
    return offered.flows * mathis.throughput(offered.loss, **path) / rate, np.zeros_like(rate)


def _padhye(rate_of: Callable[..., Floats]) -> Callable[[Offered, Progress | None], Found]:
    def of(offered: Offered, _progress: Progress | None) -> Found:
        rate, rtt = offered.rate_segments_per_s, offered.rtt_s
        path: dict[str, Any] = {"rtt_s": rtt, "timeout_s": timeout.timeout_s(rtt)}
        path["segments_per_ack"] = offered.path.segments_per_ack
        # Without loss the windows fill the link and its queue.
        full = np.maximum(1.0, (rate * rtt + offered.buffer_segments) / offered.flows)
        return offered.flows * rate_of(offered.loss, window_segments=full, **path) / rate, np.zeros_like(rate)

    return of


def _reno(offered: Offered, progress: Progress | None) -> Found:
    return _fluid(offered, progress, repair="reno")


def _fluid(offered: Offered, progress: Progress | None, **options: Any) -> Found:
    from farlink.engines import fluid

    rate = offered.rate_segments_per_s
    found = fluid.goodput(
        rate,
        offered.rtt_s,
        offered.buffer_segments,
        offered.loss,
        offered.flows,
        segments_per_ack=offered.path.segments_per_ack,
        precision=offered.precision.ci,
        level=offered.precision.level,
        progress=progress,
        **options,
    )
    # A full link is full except for rounding.
    return np.clip(np.asarray(found.goodput, dtype=np.float64), 0.0, 1.0), np.asarray(found.half_width, dtype=np.float64)


def _selection(offered: Offered, progress: Progress | None) -> Found:
    """Relation (1) below half of the rate, from there on the fluid engine with the omissions of the paper's simulator."""
    from farlink.engines import fluid

    small, _ = _relation(offered, None)
    is_large = small >= 0.5
    share, half_width = np.full_like(small, np.nan), np.zeros_like(small)
    if is_large.any():
        share[is_large], half_width[is_large] = _fluid(offered.some(is_large), progress, **fluid.TGEP)
    return selection.select(small, share), half_width


GOODPUT = {
    "relation": Goodput("relation (1) of Celandroni et al.", _relation, uses_buffer=False),
    "padhye": Goodput("the full model of Padhye et al.", _padhye(padhye.throughput)),
    "padhye-approximate": Goodput("the approximate model of Padhye et al.", _padhye(padhye.send_rate_approximate)),
    "mathis": Goodput("the law of the inverse square root", _mathis, uses_buffer=False),
    "fluid": Goodput("the fluid engine, Reno", _reno),
    "selection": Goodput("relation (1) below half of the rate, the fluid engine above", _selection),
    "packet": Goodput("the packet engine, Reno", packet_goodput, plays_losses=True),
}
