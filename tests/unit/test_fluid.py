"""The fluid engine from Python: scenarios, arrays, refusals."""

import numpy as np
import pytest

import farlink
from farlink.engines import fluid
from farlink.errors import ScenarioError

SCENARIO = {
    "engines": ["fluid"],
    "link": {"rate_bps": 1e6, "delay_s": 0.25, "queue_packets": 40, "channel": {"kind": "loss", "loss": 1e-3}},
    "transport": {"sack": {"kind": "tcp", "variant": "sack", "segment_bytes": 960}},
    "flow": {"bulk": {"transport": "sack", "count": 2, "traffic": {"kind": "bulk"}}},
}


def changed(**settings):
    return farlink.run(SCENARIO, set={path.replace("__", "."): value for path, value in settings.items()})


def entry(result, flow="all"):
    (found,) = [entry for entry in result.summary() if entry["flow"] == flow]
    return found


def test_rows_have_the_columns_of_the_packet_engine():
    result = farlink.run(SCENARIO)

    assert result.rows["engine"] == ["fluid"] * 3
    assert result.rows["flow"] == ["bulk.1", "bulk.2", "all"]
    assert set(farlink.run({**SCENARIO, "duration_s": 5, "runs": 1}, engine="packet").rows) == set(result.rows)
    assert result.rows["delay_mean_s"] == [None] * 3
    both = entry(result)
    assert both["goodput_bps"]["mean"] == pytest.approx(both["goodput_fraction"]["mean"] * 1e6)
    assert 0 < both["goodput_bps"]["ci95"] < 0.01 * both["goodput_bps"]["mean"]
    assert both["goodput_bps"]["mean"] == pytest.approx(sum(result.rows["goodput_bps"][:2]))
    assert both["loss_fraction"]["mean"] >= 1e-3
    assert not result.notes


def test_the_result_does_not_depend_on_threads():
    grid = {**SCENARIO, "grid": {"link.channel.loss": [1e-4, 1e-3, 1e-2]}}

    assert farlink.run(grid, threads=1).to_json() == farlink.run(grid, threads=2).to_json()


def test_another_seed_is_another_run_within_the_interval():
    one, other = entry(farlink.run(SCENARIO, seed=1)), entry(farlink.run(SCENARIO, seed=2))

    assert one["goodput_bps"]["mean"] != other["goodput_bps"]["mean"]
    assert one["goodput_bps"]["mean"] == pytest.approx(other["goodput_bps"]["mean"], rel=0.02)


def test_both_engines_of_a_scenario_are_in_one_result():
    result = farlink.run({**SCENARIO, "engines": ["packet", "fluid"], "duration_s": 400, "runs": 20})
    packet, ours = [entry for entry in result.summary() if entry["flow"] == "all"]

    assert (packet["engine"], ours["engine"]) == ("packet", "fluid")
    assert ours["goodput_bps"]["mean"] == pytest.approx(packet["goodput_bps"]["mean"], rel=0.05)
    assert result.finished_runs == 21
    assert "engine" in [heading for heading, _ in result.cells()[0]]


def test_the_precision_rule_ends_the_run():
    def half_width(ci):
        found = entry(farlink.run({**SCENARIO, "precision": {"quantity": "goodput_bps", "ci": ci, "level": 0.95}}))
        return found["goodput_bps"]["ci95"] / found["goodput_bps"]["mean"]

    assert half_width(0.002) <= 0.002 < half_width(0.02) <= 0.02


def test_a_bit_error_rate_is_a_loss_rate_of_packets():
    by_bits = changed(**{"link.channel": {"kind": "ber", "ber": 1e-6}})
    by_packets = changed(**{"link.channel": {"kind": "loss", "loss": 1 - (1 - 1e-6) ** 8000}})

    assert entry(by_bits)["goodput_bps"]["mean"] == pytest.approx(entry(by_packets)["goodput_bps"]["mean"], rel=1e-6)


def test_flows_with_separate_shares_do_not_interact():
    ours = changed(**{"fluid.own_buffers": True})
    alone = farlink.run(
        SCENARIO, set={"flow.bulk.count": 1, "link.rate_bps": 5e5, "link.queue_packets": 20, "link.delay_s": 0.25 - 0.00424}
    )

    assert entry(ours)["goodput_fraction"]["mean"] == pytest.approx(entry(alone)["goodput_fraction"]["mean"], rel=0.02)


def test_a_longer_round_trip_gets_less():
    two = {name: {"transport": "sack", "traffic": {"kind": "bulk"}} for name in ("near", "far")}
    result = farlink.run({**SCENARIO, "flow": two, "fluid": {"extra_round_trip_s": {"far": 0.5}}})

    assert entry(result, "near")["goodput_bps"]["mean"] > 1.4 * entry(result, "far")["goodput_bps"]["mean"]


def test_too_short_a_duration_is_noted():
    (note,) = changed(**{"fluid.max_time_s": 50}).notes

    assert "1 of 1 points" in note
    assert "fluid.max_time_s = 50 s" in note


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"link.channel": {"kind": "round-loss", "loss": 1e-3, "round_s": 0.5}}, "does not support"),
        ({"link.return.channel": {"kind": "loss", "loss": 1e-3}}, "does not support"),
        ({"transport.sack.variant": "tahoe"}, "tahoe"),
        ({"transport.sack.congestion_control": "vegas"}, "vegas"),
        ({"flow.bulk.traffic": {"kind": "file", "bytes": 1e6}}, "traffic"),
        ({"link.channel.loss": 1}, "every segment"),
        ({"precision": {"quantity": "timeouts", "ci": 0.1}}, "goodput"),
        ({"transport.sack": {"kind": "stp"}}, "tcp"),
        ({"transport.sack.delayed_ack": True, "transport.sack.delayed_ack_timeout_s": [0, 0.2]}, "does not support"),
    ],
)
def test_unsupported_features_are_refused(settings, words):
    with pytest.raises(ScenarioError, match=words) as refused:
        farlink.run(SCENARIO, set=settings)

    assert refused.value.remedy


def test_ignored_keys_are_named():
    result = farlink.run(SCENARIO, set={"unsupported": "approximate", "transport.sack.pacing": True})

    assert ("fluid", "transport.sack.pacing") in result.approximations


def test_arrays_are_broadcast():
    found = fluid.goodput(1000.0, 0.1, [[10], [100]], [1e-4, 1e-3, 1e-2], 3)

    assert found.goodput.shape == found.half_width.shape == found.is_precise.shape == (2, 3)
    assert found.is_precise.all()
    assert (found.half_width <= 0.01 * found.goodput).all()
    assert (np.diff(found.goodput, axis=1) < 0.02).all()


def test_each_point_keeps_its_own_random_stream():
    alone = fluid.goodput(1000.0, 0.1, 50, 1e-3, 2)
    beside = fluid.goodput(1000.0, 0.1, 50, [1e-3, 1e-3], 2)

    assert alone.goodput == beside.goodput[0] != beside.goodput[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"rate_segments_per_s": 0}, "rate_segments_per_s must be positive"),
        ({"round_trip_s": -1}, "round_trip_s must be positive"),
        ({"buffer_segments": -1}, "buffer_segments must be at least 0"),
        ({"loss": 1}, "loss must be from 0 to below 1"),
        ({"flows": 1.5}, "flows must be a whole number"),
        ({"max_window_segments": 0}, "max_window_segments must be at least 1"),
        ({"growth": "vegas"}, "growth must be one of reno, cubic"),
        ({"repair": "tahoe"}, "repair must be one of"),
        ({"level": 1}, "level must be"),
        ({"precision": 0}, "precision must be positive"),
        ({"max_time_s": 0}, "max_time_s must be positive"),
        ({"timeout_round_trips": -1}, "timeout_round_trips must be at least 0"),
        ({"rate_segments_per_s": np.inf}, "finite"),
        ({"round_trip_s": np.nan}, "round_trip_s must be positive"),
    ],
)
def test_values_out_of_range_are_refused(arguments, words):
    fine = {"rate_segments_per_s": 100.0, "round_trip_s": 0.1, "buffer_segments": 10, "loss": 1e-3}

    with pytest.raises(ValueError, match=words):
        fluid.goodput(**{**fine, **arguments})
