"""Beyond the paper: bulk transfer and long files over frequent losses, near and far, beside the bounds of any scheme."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from farlink.models.bounds import completion_bound_s
from farlink.papers.check import Check, claimed
from farlink.papers.curves import estimate
from farlink.papers.estimate import Curve, Estimate, as_points
from farlink.papers.item import Drawing, Workbench
from farlink.papers.pathapati.path import PACKET_BYTES, RATE_BPS, reliable, trailer
from farlink.plot.curves import Line
from farlink.plot.lines import lines

ITEM = "bulk"
DELAYS_S = (0.05, 0.5, 10.0)
LOSSES = (0.0, 0.001, 0.01, 0.03, 0.1, 0.2, 0.3)
DURATION_S = 4000.0
RUNS = 3
_FAR_WARMUP_S = 500.0
_LEAST = 0.97
_FILE_BYTES = 500_000_000
_LOSS = "link.channel.loss"

# Behind the first round trip no packet opens the connection any more: four bytes more of user data.
PAYLOAD_BYTES = trailer().payload_bytes + 4
PAYLOAD_SHARE = PAYLOAD_BYTES / PACKET_BYTES


def transport(delay_s: float) -> dict[str, Any]:
    """Reliable mode with room for ten bandwidth-delay products at the receiver, and for 16 MiB at least.

    At the end of a file it repeats what is likely to be missing.
    """
    buffer_bytes = max(16 * 2**20, round(10 * RATE_BPS / 8 * 2 * delay_s))
    return reliable(receive_buffer_bytes=buffer_bytes, initial_rto_s=max(1.0, 4 * delay_s), spare_copies=True)


def shares(bench: Workbench, delay_s: float, losses: tuple[float, ...] = LOSSES, duration_s: float = DURATION_S) -> Curve:
    """In-order goodput of bulk transfer over (1 - loss) times the payload's share of the rate, against the loss."""
    warmup_s = _FAR_WARMUP_S if delay_s > 1 else 0.0
    scenario = _link(f"bulk transfer over {delay_s:g} s", delay_s, losses, {"kind": "bulk"})
    scenario |= {"duration_s": duration_s, "measure": {"warmup_s": warmup_s}}
    result = bench.run(f"{ITEM}-{delay_s:g}-s", scenario, runs=bench.repetitions(RUNS))
    return _relative(result.summary(), "goodput_bps", lambda loss, bps: bps / (RATE_BPS * (1 - loss) * PAYLOAD_SHARE))


def file_shares(
    bench: Workbench, delay_s: float, losses: tuple[float, ...] = LOSSES, *, runs: int = RUNS, coded: bool = False
) -> Curve:
    """Bound of any scheme on the time for a long file over the time taken, against the loss."""
    scenario = _link(f"a file over {delay_s:g} s", delay_s, losses, {"kind": "file", "bytes": _FILE_BYTES})
    if coded:
        scenario["transport"]["reliable"] |= {"coded": {}, "spare_copies": False}
    result = bench.run(f"{ITEM}-file-{delay_s:g}-s{'-coded' * coded}", scenario, runs=bench.repetitions(runs))

    def of_bound(loss: float, time_s: float) -> float:
        bound = completion_bound_s(
            _FILE_BYTES,
            loss_rate=loss,
            rate_bps=RATE_BPS,
            delay_s=delay_s,
            payload_bytes=PAYLOAD_BYTES,
            header_bytes=PACKET_BYTES - PAYLOAD_BYTES,
        )
        return float(bound) / time_s

    return _relative(result.summary(), "transfer_time_mean_s", of_bound)


def bulk(bench: Workbench) -> tuple[list[Check], list[Drawing]]:
    """Every delay and loss."""
    checks = []
    curves = {}
    for delay_s in DELAYS_S:
        curves[delay_s] = shares(bench, delay_s)
        steady = f", in the steady state after {_FAR_WARMUP_S:g} s" if delay_s > 1 else ""
        checks += [
            claimed(
                ITEM,
                f"{delay_s:g} s one way, loss {loss:g}: in-order goodput{steady}, over rate x (1 - loss) x payload share",
                "beyond the paper: at least 0.97; any scheme: 1",
                share,
                at_least=_LEAST,
                rule=f"agrees from {_LEAST} up; {DURATION_S:g} s at 5 Mb/s, packets of 1500 bytes with {PAYLOAD_BYTES} of data",
            )
            for loss, share in curves[delay_s]
        ]
        checks += [
            claimed(
                ITEM,
                f"{delay_s:g} s one way, loss {loss:g}: bound of any scheme for a file of 500 MB, over the time taken",
                "beyond the paper: at least 0.97; any scheme: 1",
                share,
                at_least=_LEAST,
                rule=f"agrees from {_LEAST} up; the bound is delay + file / (rate x (1 - loss) x payload share); "
                "what is likely to be missing at the end is sent again before it is found lost",
            )
            for loss, share in file_shares(bench, delay_s)
        ]
    return checks, [_drawing(curves)]


def _link(title: str, delay_s: float, losses: tuple[float, ...], traffic: dict[str, Any]) -> dict[str, Any]:
    return {
        "title": f"Pathapati, {title}",
        "runs": RUNS,
        "link": {"rate_bps": RATE_BPS, "delay_s": delay_s, "channel": {"kind": "loss", "loss": losses[0]}},
        "transport": {"reliable": transport(delay_s)},
        "flow": {"data": {"transport": "reliable", "traffic": traffic}},
        "grid": {_LOSS: list(losses)},
    }


def _relative(entries: list[dict[str, Any]], quantity: str, share: Callable[[float, float], float]) -> Curve:
    curve = []
    for entry in entries:
        if entry["flow"] == "all":
            loss, found = float(entry[_LOSS]), estimate(entry[quantity])
            mean = share(loss, found.mean)
            curve.append((loss, Estimate(mean, mean * found.half_width / found.mean)))
    return curve


def _drawing(curves: dict[float, Curve]) -> Drawing:
    drawn = [Line(f"{delay_s:g} s one way", as_points(points)) for delay_s, points in curves.items()]

    return Drawing(
        ITEM,
        "Bulk transfer in the reliable mode, of what any scheme can deliver",
        f"{DURATION_S:g} s at 5 Mb/s, packets of 1500 bytes; over 10 s after the first {_FAR_WARMUP_S:g} s. 95 % intervals.",
        lambda: lines(
            drawn,
            x_label="packet loss",
            y_label="goodput over rate x (1 - loss) x payload share",
            y_bottom=0.9,
            marked=[(1.0, "any scheme"), (_LEAST, f"{_LEAST}")],
        ),
    )
