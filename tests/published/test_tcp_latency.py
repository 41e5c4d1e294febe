"""Closed forms of TCP's latency against the packet engine: where they are valid, where not, and why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import farlink
from farlink.models.tcp_latency import slow_link
from farlink.papers.zaghloul import slow_bundle
from farlink.papers.zaghloul.transfers import MODELS, WINDOW_SEGMENTS, Path, simulated
from farlink.scenario import from_data

LIMITED = Path("independent", 2, WINDOW_SEGMENTS)
ROUNDS = Path("correlated", 2, WINDOW_SEGMENTS)


def off(model: str, path: Path, segments: int, loss: float, runs: int, **changes: Any) -> tuple[float, float]:
    """Error of a model in per cent, and its half-width."""
    result = farlink.run(from_data(path.scenario([segments], [loss], runs=runs, changes=changes)))
    truth = simulated(path, result)[segments, loss]
    time = float(MODELS[model].time_s(path, np.array([segments]), np.array([loss]))[0])
    return 100 * (time / truth.mean - 1), 100 * time / truth.mean**2 * truth.half_width


@pytest.mark.published("Cardwell, Savage and Anderson (2000); Sikdar, Kalyanaraman and Vastola (2003)")
@pytest.mark.parametrize(
    ("model", "path", "segments", "loss", "runs", "within"),
    [
        ("cardwell", LIMITED, 50, 0.01, 3000, 10),
        ("cardwell", LIMITED, 5000, 0.01, 100, 10),
        ("whole-rounds", LIMITED, 20, 0.003, 3000, 10),
        ("whole-rounds", Path("independent", 1, WINDOW_SEGMENTS), 10, 0.01, 3000, 10),
        ("sikdar", LIMITED, 10, 0.03, 3000, 10),
        ("sikdar-recursion", LIMITED, 5000, 0.01, 100, 10),
        ("sikdar-recursion", ROUNDS, 1000, 0.03, 200, 10),
        ("padhye", LIMITED, 5000, 0.1, 60, 10),
    ],
)
def test_models_are_accurate_where_the_page_says(model, path, segments, loss, runs, within):
    error, half_width = off(model, path, segments, loss, runs)

    assert abs(error) + half_width < within


@pytest.mark.published("Padhye et al. (2000), section II: a loss takes the rest of its round, and halves the window once")
def test_padhye_halves_once_for_a_round_of_losses_and_reno_does_not():
    reno, _ = off("padhye", ROUNDS, 1000, 0.01, 200)
    sack, half_width = off("padhye", ROUNDS, 1000, 0.01, 200, variant="sack")

    assert reno == pytest.approx(-26, abs=4)
    assert abs(sack) - half_width < 3


@pytest.mark.published("Padhye et al. (2000), section II: a sequence of timeouts ends with the retransmission that arrives")
def test_back_off_outlasts_the_retransmission_until_timestamps_end_it():
    karn, _ = off("sikdar-recursion", ROUNDS, 300, 0.1, 600)
    stamped, half_width = off("sikdar-recursion", ROUNDS, 300, 0.1, 600, timestamps=True)

    assert karn == pytest.approx(-20, abs=4)
    assert abs(stamped) - half_width < 4


@pytest.mark.published("Padhye et al. (2000): slow start is left out")
def test_slow_start_without_a_threshold_outruns_the_rate_of_long_transfers():
    path = Path("independent", 2, None)
    free, _ = off("padhye", path, 10_000, 3e-4, 150)
    ended, half_width = off("padhye", path, 10_000, 3e-4, 150, initial_ssthresh_segments=67)

    assert free > 120
    assert abs(ended) - half_width < 8


def over_link(segments: list[int], *, per_ack: int, rtt_s: float, segment_s: float, window: int | None) -> farlink.Result:
    """Transfers of 1500-byte packets over a lossless link with this transmission time."""
    reno: dict[str, Any] = {"kind": "tcp", "variant": "reno", "initial_window_segments": 1, "handshake": False, "fin": False}
    reno |= {"delayed_ack": per_ack == 2, "rto": {"algorithm": "fixed", "initial_s": 60}}
    if window is not None:
        reno["max_window_segments"] = window
    data = {
        "runs": 1,
        "link": {"rate_bps": 12_000 / segment_s, "delay_s": (rtt_s - segment_s) / 2, "return": {"rate_bps": 1e12}},
        "transport": {"reno": reno},
        "flow": {"file": {"transport": "reno", "traffic": {"kind": "file", "bytes": 1460}}},
        "grid": {"flow.file.traffic.bytes": [1460 * number for number in segments]},
    }
    return farlink.run(from_data(data))


@pytest.mark.published("Kurose and Ross, TCP delay modeling")
@pytest.mark.parametrize("window", [None, 33, 5])
def test_slow_start_over_a_slow_link_matches_the_engine_to_the_nanosecond(window):
    numbers = [1, 2, 3, 5, 7, 8, 10, 20, 33, 50, 100, 300, 1000]
    path = {"rtt_s": 6.0, "segment_s": 0.625}
    found = [entry for entry in over_link(numbers, per_ack=1, window=window, **path).summary() if entry["flow"] == "file"]

    law = {"segments_per_ack": 1, "window_segments": window or np.inf, **path}
    back_s = (6.0 - 0.625) / 2
    times = [entry["transfer_time_mean_s"]["mean"] + back_s for entry in found]
    assert slow_link.transfer_time_s(numbers, **law) == pytest.approx(times, rel=1e-9)
    trips = [entry["arrival_delay_mean_s"]["mean"] + back_s for entry in found]
    assert slow_link.mean_rtt_s(numbers, **law) == pytest.approx(trips, rel=1e-9)


@pytest.mark.published("Kurose and Ross, TCP delay modeling, with delayed acknowledgements")
@pytest.mark.parametrize("window", [None, 20])
def test_with_delayed_acknowledgements_slow_start_is_within_a_round_trip(window):
    numbers = [2, 3, 5, 7, 8, 10, 20, 33, 50, 100, 300, 1000]
    path = {"rtt_s": 0.5, "segment_s": 0.01}
    found = [entry for entry in over_link(numbers, per_ack=2, window=window, **path).summary() if entry["flow"] == "file"]

    law = {"window_segments": window or np.inf, **path}
    times = np.array([entry["transfer_time_mean_s"]["mean"] for entry in found]) + (0.5 - 0.01) / 2
    predicted = slow_link.transfer_time_s(numbers, delayed_ack_s=0.2, **law)
    assert np.max(np.abs(predicted - times)) < 0.5
    assert predicted[:5] == pytest.approx(times[:5])
    trips = np.array([entry["arrival_delay_mean_s"]["mean"] for entry in found]) + (0.5 - 0.01) / 2
    assert slow_link.mean_rtt_s(numbers, **law) == pytest.approx(trips, rel=0.03)


@pytest.mark.published("Zaghloul, section 8: short transfers over a loaded bundle; Cardwell et al.")
def test_with_losses_only_rounds_with_a_queue_fit_all_lengths():
    numbers, losses = (10, 100, 500), (5e-4, 0.01, 0.05)
    result = farlink.run(from_data(slow_bundle.scenario(numbers, losses, runs=1500)))
    times, _ = slow_bundle.simulated(result)

    worst: dict[str, float] = {}
    for loss in losses:
        for name, predicted in slow_bundle.predictions_s(numbers, loss).items():
            errors = [abs(time / times[n, loss].mean - 1) for n, time in zip(numbers, predicted, strict=True)]
            worst[name] = max([worst.get(name, 0.0), *errors])
    assert worst.pop("slow_link") < 0.1
    assert min(worst.values()) > 0.3
