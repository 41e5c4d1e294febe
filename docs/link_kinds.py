"""Write `docs/validation/link-kinds.md`: which kind a link is, by its round trips: `make papers`. Takes a minute or two."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import page
from numpy.typing import NDArray
from scipy.optimize import minimize

from farlink.channels.calls.clusters import wilson
from farlink.engines import packet
from farlink.models.multilink.link_kind import FEWEST, WEIGHTS, Features, features
from farlink.papers.zaghloul.round_trips import tcptrace_samples
from farlink.scenario import from_data
from farlink.series import Series

Values = NDArray[np.float64]

FITTED = range(300)
HELD_OUT = range(300, 600)
PINGS = 600
# Round trips are read by a clock with so much noise, in s.
NOISE_S = 5e-4
_HEADER_BYTES = 60
_QUANTITIES = ("sent_sequence", "retransmitted_sequence", "acknowledged")


@dataclass
class Ping:
    """One flow of a trace, where `tcptrace_samples` expects a trace of one flow."""

    trace: Series

    def select(self, name: str) -> tuple[Values, Values]:
        """A quantity of the PINGs."""
        return self.trace.select(name, "ping")


def wireless(seed: int, *, crossed: bool = False) -> Values:
    """Round trips over a line with go-back-N and random settings; `crossed`: behind other traffic."""
    rng = np.random.default_rng([seed, 0, crossed])
    rate_bps, delay_s, payload, busy = _common(rng)
    loss = float(10 ** rng.uniform(-2.3, -0.8))
    again = float(rng.uniform(loss, 0.6))
    frame, window = int(rng.integers(15, 80)), int(rng.integers(2, 16))
    arq = {"frame_bytes": frame, "window_frames": window, "loss": loss, "loss_again": again}
    net_bps = rate_bps / (1 + window * loss / (1 - again))
    link = {"rate_bps": rate_bps, "delay_s": delay_s, "bundle": {"lines": 1, "line_packets": 3, "arq": arq}}
    return _rtts(rng, link, net_bps, payload, 0.3 * busy if crossed else busy, 0.7 * busy if crossed else 0.0)


def wired(seed: int) -> Values:
    """Round trips over a link without repetitions that PINGs share with transfers of a random length."""
    rng = np.random.default_rng([seed, 1])
    rate_bps, delay_s, payload, busy = _common(rng)
    return _rtts(rng, {"rate_bps": rate_bps, "delay_s": delay_s}, rate_bps, payload, busy, float(rng.uniform(0.1, 0.8)))


KINDS: dict[str, Callable[[int], Values]] = {
    "wireless": wireless,
    "wireless behind a queue": lambda seed: wireless(seed, crossed=True),
    "wired": wired,
}


def series(kind: str, seeds: range, told: Callable[[], None] = lambda: None) -> Iterator[Features]:
    """Features of the round trips of each link of which there are enough."""
    for seed in seeds:
        rtts = KINDS[kind](seed)[:500]
        told()
        if rtts.size >= FEWEST:
            noise = np.random.default_rng([seed, 2]).uniform(0, NOISE_S, rtts.size)
            yield features(rtts + noise)


def main() -> None:
    """Draw links, fit the weights, and write the page."""
    page.start(__doc__)
    found: dict[tuple[str, range], Values] = {}
    with page.steps("links", len(KINDS) * (len(FITTED) + len(HELD_OUT)), "links") as told:
        for kind in KINDS:
            for seeds in (FITTED, HELD_OUT):
                found[kind, seeds] = np.array([(1.0, *one) for one in series(kind, seeds, told)])
    page.write("link-kinds.md", {}, **page_values(found))


def page_values(found: dict[tuple[str, range], Values]) -> page.Values:
    """Values of the page."""
    weights = fitted(found["wireless", FITTED], found["wired", FITTED])
    every = fitted(
        np.concatenate((found["wireless", FITTED], found["wireless behind a queue", FITTED])), found["wired", FITTED]
    )
    shares = [f"{100 * np.mean(found[kind, HELD_OUT] @ every > 0):.0f} %" for kind in KINDS]
    rows = []
    for kind in KINDS:
        values = found[kind, HELD_OUT]
        said = int(np.count_nonzero(values @ np.array(WEIGHTS) > 0))
        low, high = wilson(said, len(values))
        middle = np.median(values[:, 1:], axis=0)
        rows.append(
            (
                kind,
                f"{len(values)}",
                f"{100 * said / len(values):.1f} %",
                f"{100 * low:.1f} to {100 * high:.1f} %",
                *(f"{one:.2f}" for one in middle),
            )
        )
    head = ("link", "held out", "called wireless", "95 %", *(name.replace("_", " ") for name in Features._fields))
    names = ("constant", *(name.replace("_", " ") for name in Features._fields))
    return {
        "errors": page.table(head, rows, "lr"),
        "weights": page.table(
            ("feature", "weight in farlink", "fitted now"),
            [(name, f"{kept:g}", f"{now:.2f}") for name, kept, now in zip(names, WEIGHTS, weights, strict=True)],
            "lr",
        ),
        "every": page.paragraph(
            "A queue of other traffic hides the ARQ: the waiting times no longer stand on steps. Fitted to such links too, the "
            f"function would call {shares[0]} of the wireless links wireless, {shares[1]} of those behind a queue, and "
            f"{shares[2]} of the wired ones. It stays with the clear cases."
        ),
        "pairs": f"{len(found['wireless', FITTED])} and {len(found['wired', FITTED])}",
    }


def fitted(of_wireless: Values, of_wired: Values) -> Values:
    """Weights of a logistic function, by maximum likelihood with a weak pull to 0; both kinds count alike."""
    values = np.concatenate((of_wireless, of_wired))
    sign = np.concatenate((np.ones(len(of_wireless)), -np.ones(len(of_wired))))
    count = np.where(sign > 0, len(of_wired) / len(of_wireless), 1.0)

    def loss(weights: Values) -> float:
        each = np.logaddexp(0, -sign * (values @ weights))
        return float((count * each).sum() + 0.01 * (weights[1:] ** 2).sum())

    return np.asarray(minimize(loss, np.zeros(values.shape[1])).x)


def _common(rng: np.random.Generator) -> tuple[float, float, int, float]:
    rate_bps, delay_s = float(10 ** rng.uniform(3.4, 6.5)), float(10 ** rng.uniform(-2, -0.3))
    return rate_bps, delay_s, int(rng.integers(40, 400)), float(rng.uniform(0.02, 0.4))


def _rtts(
    rng: np.random.Generator, link: dict[str, object], net_bps: float, payload: int, busy: float, crossing: float
) -> Values:
    """Round trips of PINGs that take a share of a link, beside transfers that take another."""
    rate_bps = busy * net_bps * payload / (payload + _HEADER_BYTES)
    tcp = {
        "kind": "tcp", "variant": "sack", "segment_bytes": 1448, "timestamps": True, "delayed_ack": False,
        "max_window_segments": 64, "rto": {"minimum_s": 1, "initial_s": 60, "maximum_s": 2000},
    }  # fmt: skip
    traffic = {"kind": "cbr", "rate_bps": rate_bps, "payload_bytes": payload, "bytes": payload * PINGS}
    flows: dict[str, object] = {"ping": {"transport": "tcp", "traffic": traffic}}
    if crossing:
        size = int(10 ** rng.uniform(2.5, 4.5))
        on_link = 8 * (size + 40 * np.ceil(size / 1448))
        flows["crossing"] = {
            "transport": "tcp",
            "traffic": {"kind": "transfers", "rate_per_s": float(crossing * net_bps / on_link), "bytes": size},
        }
    data = {
        "title": "round trips of PINGs",
        "duration_s": 8 * payload * PINGS / rate_bps + 60,
        "seed": int(rng.integers(1, 10**9)),
        "runs": 1,
        "link": link,
        "transport": {"tcp": tcp},
        "flow": flows,
    }
    return tcptrace_samples(Ping(packet.trace(from_data(data), run=0, quantities=_QUANTITIES)))  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
