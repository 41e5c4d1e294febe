"""The engine `model`: which closed form answers for a flow, and what is refused."""

import copy
import math

import numpy as np
import pytest

import farlink
from farlink.errors import ArgumentError, ScenarioError
from farlink.models import arq
from farlink.models.tcp_goodput import selective, short_buffer
from farlink.models.tcp_latency import padhye, slow_link

LINK = {"rate_bps": 1e6, "delay_s": 0.25, "channel": {"kind": "loss", "loss": 1e-2}}
TCP = {"kind": "tcp", "variant": "reno", "segment_bytes": 960, "delayed_ack": False}
UDP = {"kind": "udp"}
BULK = {"kind": "bulk"}
FILE = {"kind": "file", "bytes": 96_000}
CBR = {"kind": "cbr", "rate_bps": 1e5, "payload_bytes": 1000}
FAST_BACK = {**LINK, "return": {"rate_bps": 1e12}}
# A round trip of segments and acknowledgements over LINK.
ROUND_TRIP_S = 0.5 + 8 * 1040 / 1e6


def scenario(transport=TCP, traffic=BULK, link=LINK, flow=None, **more):
    return {
        "engines": ["model"],
        "duration_s": 1e4,
        "link": link,
        "transport": {"t": transport},
        "flow": {"f": {"transport": "t", "traffic": traffic, **(flow or {})}},
        **more,
    }


def run(data, **options):
    (entry,) = [entry for entry in farlink.run(data, **options).summary() if entry["flow"] == "all"]
    return {name: value["mean"] for name, value in entry.items() if isinstance(value, dict)}


def refusal(data, **options):
    with pytest.raises(ScenarioError) as caught:
        farlink.run(data, **options)
    return caught.value


def test_rows_have_the_columns_of_the_packet_engine():
    data = scenario(flow={"count": 2})
    result = farlink.run(data)

    assert set(farlink.run(data, engine="packet", set={"duration_s": 5}, runs=1).rows) == set(result.rows)
    assert result.rows["flow"] == ["f.1", "f.2", "all"]
    assert result.rows["engine"] == ["model"] * 3
    assert result.rows["timeouts"] == [None] * 3
    assert result.rows["reason"] == ["Padhye et al. (2000), eq. (32) with what arrives"] * 3
    assert result.rows["goodput_bps"][2] == pytest.approx(2 * result.rows["goodput_bps"][0])
    assert result.rows["loss_fraction"] == pytest.approx([0.01] * 3)
    assert result.summary()[0]["goodput_bps"]["ci95"] is None
    assert [note.partition(":")[0] for note in result.notes] == ["model"]


def test_many_flows_have_one_row():
    (one, every) = farlink.run(scenario(flow={"count": 300})).summary()

    assert (one["flow"], every["flow"]) == ("f", "all")
    assert one["goodput_bps"] == every["goodput_bps"]


def test_a_point_has_its_own_form():
    result = farlink.run(scenario(grid={"transport.t.variant": ["reno", "sack"], "link.channel.loss": [1e-2, 1e-6]}))

    assert len(result.notes) == 3
    assert "at 2 of 4 points" in "".join(result.notes)
    assert len(result.points) == result.finished_runs == 4


def test_a_short_run_of_the_forms_changes_nothing():
    assert farlink.run(scenario(), threads=1, seed=1).rows["goodput_bps"] == farlink.run(scenario(), seed=2).rows["goodput_bps"]


def test_a_cancelled_run_says_so():
    cancel = farlink.Cancel()
    cancel.set()
    result = farlink.run(scenario(), cancel=cancel)

    assert result.interrupted
    assert result.finished_runs == 0


class TestBulkOverTcp:
    def test_losses_limit_reno(self):
        expected = padhye.throughput(1e-2, rtt_s=ROUND_TRIP_S, timeout_s=1.0, segments_per_ack=1)

        assert run(scenario())["goodput_bps"] == pytest.approx(960 * 8 * float(expected))

    @pytest.mark.parametrize(("variant", "share"), [("newreno", 1), ("sack", 1), ("rack", 0)])
    def test_losses_limit_other_versions(self, variant, share):
        expected = selective.throughput(
            1e-2, rtt_s=ROUND_TRIP_S, timeout_s=1.0, segments_per_ack=1, timeouts_per_lost_repair=share
        )

        assert run(scenario({**TCP, "variant": variant}))["goodput_bps"] == pytest.approx(960 * 8 * float(expected))

    def test_delayed_acknowledgements_slow_growth_unless_bytes_are_counted(self):
        plain = run(scenario())["goodput_bps"]
        delayed = run(scenario({**TCP, "delayed_ack": True}))["goodput_bps"]
        counted = run(scenario({**TCP, "delayed_ack": True, "byte_counting": True}))["goodput_bps"]

        assert delayed < 0.8 * plain
        assert counted == pytest.approx(plain)

    def test_a_short_queue_limits(self):
        link = {**LINK, "queue_packets": 25, "channel": {"kind": "none"}}
        beta = 25 / (125 * ROUND_TRIP_S)

        found = run(scenario(link=link))

        assert found["goodput_fraction"] == pytest.approx(0.96 * float(short_buffer.utilisation(beta)))
        assert found["loss_fraction"] is None

    def test_a_window_that_fits_never_overflows_the_queue(self):
        link = {**LINK, "queue_packets": 25, "channel": {"kind": "none"}}

        assert run(scenario({**TCP, "max_window_segments": 80}, link=link))["goodput_fraction"] == pytest.approx(0.96)
        found = run(scenario({**TCP, "max_window_segments": 30}, link=link))
        assert found["goodput_bps"] == pytest.approx(30 * 7680 / ROUND_TRIP_S)

    def test_equal_flows_share(self):
        link = {**LINK, "channel": {"kind": "none"}}

        assert run(scenario(link=link))["goodput_bps"] == run(scenario(link=link, flow={"count": 5}))["goodput_bps"]

    def test_hops_multiply_what_arrives_and_add_delays(self):
        hop = {"rate_bps": 1e6, "delay_s": 0.25, "channel": {"kind": "loss", "loss": 1e-2}}
        near = {"rate_bps": 1e8, "delay_s": 0.01, "channel": {"kind": "ber", "ber": 1e-6}}
        data = scenario() | {"path": ["near", "far"], "hop": {"near": near, "far": hop}}
        del data["link"]

        loss = 1 - (1 - 1e-2) * (1 - float(arq.packet_loss(1e-6, packet_bytes=1000)))
        assert run(data)["loss_fraction"] == pytest.approx(loss)
        expected = padhye.throughput(loss, rtt_s=ROUND_TRIP_S + 0.02 + 8 * 1040 / 1e8, timeout_s=1.0, segments_per_ack=1)
        assert run(data)["goodput_bps"] == pytest.approx(7680 * float(expected))


class TestFileOverTcp:
    def test_without_loss_it_is_that_of_packets(self):
        data = scenario({**TCP, "max_window_segments": 40}, FILE, {**LINK, "channel": {"kind": "none"}})
        packets = run({**data, "engines": ["packet"], "runs": 1})

        found = run(data)

        assert found["duration_s"] == pytest.approx(packets["duration_s"], rel=1e-3)
        assert found["transfer_time_mean_s"] == pytest.approx(packets["transfer_time_mean_s"], rel=1e-3)
        assert found["delivered_bytes"] == 96_000

    def test_its_parts_are_setup_and_transfer(self):
        segment_s, ack_s = 8e3 / 1e6, 320 / 1e6
        transfer = slow_link.lossy_transfer_time_s(
            100,
            loss_rate=1e-2,
            rtt_s=ROUND_TRIP_S,
            segment_s=segment_s,
            timeout_s=1.0,
            segments_per_ack=1,
            initial_window_segments=10,
            window_segments=1118481,
        )
        without = run(scenario({**TCP, "handshake": False}, FILE))["duration_s"]

        assert without == pytest.approx(float(transfer) - 0.25 - ack_s)
        with_setup = run(scenario(traffic=FILE))["duration_s"] - without
        assert with_setup == pytest.approx(0.5 + 2 * ack_s + 0.01 / 0.98, rel=1e-3)

    def test_many_losses_are_refused(self):
        assert refusal(scenario(traffic=FILE, link={**LINK, "channel": {"kind": "loss", "loss": 0.06}})).message.startswith(
            'link.channel: the engine "model" has equations for losses of up to 0.05'
        )

    def test_losses_that_are_found_by_time_are_refused(self):
        assert refusal(scenario({**TCP, "variant": "rack"}, FILE)).message.startswith("transport.t.variant: ")

    @pytest.mark.parametrize(("key", "value"), [("hystart", True), ("initial_ssthresh_segments", 20)])
    def test_another_end_of_slow_start_is_refused(self, key, value):
        assert refusal(scenario({**TCP, key: value}, FILE)).message.startswith(f"transport.t.{key}: ")

    def test_a_run_that_ends_before_is_refused(self):
        error = refusal(scenario(traffic=FILE, duration_s=1))

        assert error.message.startswith('duration_s: the engine "model" finds that the file takes')

    def test_a_queue_that_slow_start_overflows_is_refused(self):
        link = {**LINK, "channel": {"kind": "none"}, "queue_packets": 10}
        error = refusal(scenario(traffic={"kind": "file", "bytes": 1e6}, link=link))

        assert error.message.startswith("link.queue_packets: ")
        assert "transport.t.max_window_segments" in error.remedy


class TestArq:
    def arq(self, mode, **keys):
        keys = {"window_frames": 64, "buffer_frames": 600, "rate_bps": 1e6} | keys
        if mode != "selective-repeat":
            del keys["buffer_frames"]
        if mode == "stop-and-wait":
            del keys["window_frames"]
        rto = {"algorithm": "fixed", "initial_s": 0.509}
        return {"kind": "arq", "mode": mode, "segment_bytes": 980, "rto": rto, **keys}

    def test_each_mode_has_its_equation(self):
        lengths = {"payload_bytes": 980, "header_bytes": 20}
        found = {
            mode: run(scenario(self.arq(mode), link=FAST_BACK))["goodput_fraction"]
            for mode in ("stop-and-wait", "go-back-n", "selective-repeat")
        }

        assert found["stop-and-wait"] == pytest.approx(
            float(arq.goodput_stop_and_wait(0.01, capacity=62.5, **lengths)), rel=1e-3
        )
        assert found["go-back-n"] == pytest.approx(float(arq.goodput_go_back_n(0.01, capacity=62.5, **lengths)), rel=1e-3)
        assert found["selective-repeat"] == pytest.approx(float(arq.goodput_selective_repeat(0.01, **lengths)), rel=1e-3)

    def test_a_lost_acknowledgement_costs_a_frame_if_each_has_its_own(self):
        link = {**FAST_BACK, "return": {"rate_bps": 1e12, "channel": {"kind": "loss", "loss": 0.02}}}

        found = run(scenario(self.arq("selective-repeat", ack="per-packet"), link=link))["goodput_fraction"]

        assert found == pytest.approx(0.98 * 0.99 * 0.98)
        error = refusal(scenario(self.arq("selective-repeat"), link=link))
        assert error.message.startswith("link.return.channel: ")

    @pytest.mark.parametrize(
        ("keys", "path"),
        [
            ({"rto": {"algorithm": "rfc6298"}}, "transport.t.rto.algorithm"),
            ({"rto": {"algorithm": "fixed", "initial_s": 0.6}}, "transport.t.rto.initial_s"),
            ({"rto": {"algorithm": "fixed", "initial_s": 0.4}}, "transport.t.rto.initial_s"),
            ({"window_frames": 60}, "transport.t.window_frames"),
            ({"buffer_frames": 100}, "transport.t.buffer_frames"),
        ],
    )
    def test_what_the_equations_do_not_know_is_refused(self, keys, path):
        assert refusal(scenario(self.arq("selective-repeat", **keys), link=FAST_BACK)).message.startswith(f"{path}: ")

    def test_a_window_at_once_needs_a_queue(self):
        transport = self.arq("selective-repeat")
        del transport["rate_bps"]

        assert refusal(scenario(transport, link={**FAST_BACK, "queue_bytes": 5000})).message.startswith("link.queue_bytes: ")

    def test_a_way_back_too_slow_is_refused(self):
        link = {**LINK, "return": {"rate_bps": 1e4}}
        rto = {"algorithm": "fixed", "initial_s": 0.525}

        assert refusal(scenario(self.arq("selective-repeat", rto=rto), link=link)).message.startswith("link.return.rate_bps: ")


class TestDatagrams:
    def test_rate_losses_and_delay(self):
        found = run(scenario(UDP, CBR))

        assert found["goodput_bps"] == pytest.approx(0.99e5)
        assert found["loss_fraction"] == pytest.approx(0.01)
        assert found["delay_mean_s"] == found["delay_p99_s"] == pytest.approx(0.25 + 8 * 1028 / 1e6)

    def test_it_is_that_of_packets(self):
        data = scenario(UDP, CBR, duration_s=2000)
        packets = run({**data, "engines": ["packet"], "runs": 4})
        found = run(data)

        assert found["goodput_bps"] == pytest.approx(packets["goodput_bps"], rel=3e-3)
        assert found["delay_mean_s"] == pytest.approx(packets["delay_mean_s"], rel=1e-6)

    def test_long_messages_are_cut(self):
        link = {**LINK, "channel": {"kind": "ber", "ber": 1e-5}}
        found = run(scenario(UDP, {**CBR, "payload_bytes": 2000}, link))
        first, last = (float(arq.packet_loss(1e-5, packet_bytes=length)) for length in (1500, 556))

        assert found["goodput_bps"] == pytest.approx(1e5 * (1472 * (1 - first) + 528 * (1 - last)) / 2000)
        assert found["loss_fraction"] == pytest.approx((first + last) / 2)
        assert found["delay_mean_s"] is None

    @pytest.mark.parametrize("energy", [{"ebn0_db": 8.0}, {"cn0_dbhz": 68.0}])
    def test_a_modulation_without_a_code_has_its_bit_errors(self, energy):
        coding = {"modulation": "qpsk", "code": {"kind": "uncoded"}, **energy}
        link = {**LINK, "channel": {"kind": "ber", "ber": 1e-5}, "coding": coding}
        ber = 0.5 * math.erfc(math.sqrt(10**0.8))

        loss = 1 - (1 - 1e-5) ** (8 * 1028) * (1 - ber) ** (8 * 1028)
        assert run(scenario(UDP, CBR, link))["loss_fraction"] == pytest.approx(loss)

    def test_what_a_decoder_leaves_is_refused(self):
        coding = {"ebn0_db": 5.0, "code": {"kind": "convolutional", "generators": "171,133"}}
        data = scenario(UDP, CBR, {**LINK, "coding": coding}, unsupported="approximate")

        assert refusal(data).message.startswith("link.coding.code.kind: ")

    def test_too_much_is_refused(self):
        error = refusal(scenario(UDP, CBR, flow={"count": 10}))

        assert error.message.startswith("flow.f.traffic.rate_bps: ")
        assert "1.028e+06" in error.message

    def test_a_queue_too_short_for_all_at_once_is_refused(self):
        error = refusal(scenario(UDP, CBR, {**LINK, "queue_packets": 3}, {"count": 5}))

        assert error.message.startswith("link.queue_packets: ")


class TestAerotp:
    def test_the_bound_is_what_arrives(self):
        found = run(scenario({"kind": "aerotp"}))

        assert found["goodput_fraction"] == pytest.approx(0.99 * 1456 / 1500)

    def test_a_rate_of_its_own(self):
        assert run(scenario({"kind": "aerotp", "rate_bps": 5e5}))["goodput_bps"] == pytest.approx(0.99 * 1456 / 1500 * 5e5)
        assert refusal(scenario({"kind": "aerotp", "rate_bps": 2e6})).message.startswith("transport.t.rate_bps: ")

    def test_a_file_takes_between_the_bound_and_twice_as_long(self):
        data = scenario({"kind": "aerotp", "rate_bps": 1e6}, {"kind": "file", "bytes": 1e6})
        packets = run({**data, "engines": ["packet"], "runs": 10})["duration_s"]

        found = run(data)["duration_s"]

        assert 8.2 < packets < 1.02 * found < 2 * packets

    def test_a_file_at_a_rate_that_is_learnt_is_refused(self):
        assert refusal(scenario({"kind": "aerotp"}, FILE)).message.startswith("transport.t.rate_bps: ")

    @pytest.mark.parametrize("keys", [{"mode": "unreliable"}, {"rate_control": "friendly"}, {"alone": False}])
    def test_other_modes_and_rates_are_refused(self, keys):
        (key,) = keys
        assert refusal(scenario({"kind": "aerotp", **keys})).message.startswith(f"transport.t.{key}: ")


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (
            {"link": {**LINK, "channel": {"kind": "outage", "schedule": [[1, 2]]}}},
            "link.channel",
        ),
        ({"link": {**LINK, "policer": {"rate_bps": 1e6, "burst_bytes": 1e4}}}, "link.policer"),
        ({"link": {**LINK, "service": "strict"}}, "link.service"),
        ({"link": {**LINK, "return": {"channel": {"kind": "loss", "loss": 0.1}}}}, "link.return.channel"),
        ({"link": {**LINK, "channel": {"kind": "loss", "loss": 1}}}, "link.channel"),
        ({"link": {**LINK, "channel": {"kind": "loss", "loss": 0.2}}}, "link.channel"),
        ({"transport": {"t": {**TCP, "congestion_control": "cubic"}}}, "transport.t.congestion_control"),
        ({"transport": {"t": {**TCP, "variant": "tahoe"}}}, "transport.t.variant"),
        (
            {"transport": {"t": {**TCP, "variant": "sack"}}, "link": {**LINK, "channel": {"kind": "loss", "loss": 0.1}}},
            "transport.t.variant",
        ),
        ({"transport": {"t": {**TCP, "duplicate_ack_threshold": 2}}}, "transport.t.duplicate_ack_threshold"),
        ({"transport": {"t": {**TCP, "pacing": True}}}, "transport.t.pacing"),
        ({"transport": {"t": {"kind": "stp"}}}, "transport.t.kind"),
        (
            {"flow": {"f": {"transport": "t", "traffic": {"kind": "cbr", "rate_bps": 1e4, "payload_bytes": 100}}}},
            "flow.f.traffic.kind",
        ),
        ({"flow": {"f": {"transport": "t", "count": 2, "traffic": {"kind": "file", "bytes": 1e5}}}}, "flow.f.count"),
    ],
)
def test_what_no_form_covers_is_refused_by_name(change, path):
    error = refusal({**scenario(), **change})

    assert error.message.startswith(path), error.message
    assert '"model"' in error.message
    assert error.remedy


def test_other_flows_beside_each_other_are_refused_by_name():
    data = scenario()
    other = copy.deepcopy(data)
    other["transport"]["u"] = {**TCP, "variant": "sack"}
    other["flow"]["g"] = {"transport": "u", "traffic": BULK}
    assert refusal(other).message.startswith("flow.g.transport: ")

    other["transport"]["u"] = {"kind": "udp"}
    other["flow"]["g"]["traffic"] = CBR
    assert refusal(other).message.startswith("flow.g: ")


def test_a_key_that_no_form_knows_may_be_left_out_by_name():
    data = scenario({**TCP, "pacing": True}, unsupported="approximate")
    result = farlink.run(data)

    assert result.approximations == [("model", "transport.t.pacing")]
    assert result.rows["goodput_bps"] == farlink.run(scenario()).rows["goodput_bps"]


def test_a_transport_that_no_flow_has_needs_no_form():
    data = scenario()
    data["transport"]["spare"] = {"kind": "stp"}

    assert run(data) == run(scenario())


class TestSeveralEngines:
    def test_their_results_are_one(self):
        data = scenario(duration_s=200, runs=2)
        result = farlink.run(data, engine="model, fluid,packet")

        assert [entry["engine"] for entry in result.summary() if entry["flow"] == "all"] == ["model", "fluid", "packet"]
        listed = farlink.run(data, engine=["model", "fluid", "packet"])
        assert np.array_equal(result.columns["goodput_bps"], listed.columns["goodput_bps"])
        assert any(note.startswith("model: ") for note in result.notes)
        assert result.plot().axes

    def test_an_unknown_one_is_named_with_the_nearest(self):
        with pytest.raises(ScenarioError, match="engine 'modle' is not known") as caught:
            farlink.run(scenario(), engine="packet,modle")
        assert "model" in caught.value.remedy

    @pytest.mark.parametrize("engine", [[], 5, ""])
    def test_none_is_refused(self, engine):
        with pytest.raises((ArgumentError, ScenarioError)):
            farlink.run(scenario(), engine=engine)

    def test_one_twice_is_refused(self):
        assert "named twice" in refusal(scenario(), engine="model,model").message

    def test_pieces_are_refused(self):
        with pytest.raises(ArgumentError, match="no runs to divide"):
            farlink.Study(scenario())
