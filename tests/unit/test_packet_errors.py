"""Wrong bits mapped to lost packets, and the lists of them that other simulators read."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import farlink
from farlink.channels import trace_file
from farlink.channels.packet_errors import packet_errors, to_flags, to_ns2, to_ns3
from farlink.channels.trace import Trace
from farlink.cli import app
from farlink.errors import TraceError
from farlink.scenario import from_data


def wrong(position: list[int], bits: int) -> Trace:
    return Trace("bit-errors", {"position": position, "bits": bits})


@given(st.data(), st.integers(8, 4000), st.integers(1, 40), st.integers(0, 3))
def test_a_packet_is_lost_with_more_wrong_bits_than_are_corrected(data, bits, packet_bytes, corrected):
    position = sorted(data.draw(st.sets(st.integers(0, bits - 1), min_size=1, max_size=60)))
    length = 8 * packet_bytes
    if bits < length:
        with pytest.raises(TraceError, match="are no packet of"):
            packet_errors(wrong(position, bits), packet_bytes, corrected)
        return

    lost = packet_errors(wrong(position, bits), packet_bytes, corrected)["lost"]

    counts = [sum(start <= one < start + length for one in position) for start in range(0, bits - length + 1, length)]
    assert lost.tolist() == [int(count > corrected) for count in counts]


def test_trace_without_wrong_bits_loses_no_packet():
    assert packet_errors(wrong([], 8000), 100)["lost"].tolist() == [0] * 10


def test_loss_of_independent_errors_is_that_of_equation_1():
    rng = np.random.default_rng(5)
    bits, ber, packet_bytes = 40_000_000, 1e-4, 125
    position = np.flatnonzero(rng.random(bits) < ber)

    lost = packet_errors(Trace("bit-errors", {"position": position, "bits": bits}), packet_bytes)["lost"]

    expected = 1 - (1 - ber) ** (8 * packet_bytes)
    assert lost.mean() == pytest.approx(expected, abs=4 * np.sqrt(expected * (1 - expected) / lost.size))


@pytest.mark.parametrize(
    ("trace", "packet_bytes", "corrected", "message"),
    [
        (Trace("packet-loss", {"lost": [0, 1]}), 10, 0, "a packet-loss trace has no wrong bits"),
        (wrong([1], 100), 0, 0, "packets of 0 bytes"),
        (wrong([1], 100), 10, -1, "-1 corrected bits"),
        (wrong([1], 79), 10, 0, "79 bits are no packet of 10 bytes"),
        (wrong([1], 10**12), 1, 0, "125,000,000,000 packets are more than 1,000,000,000"),
    ],
)
def test_bad_input_is_refused(trace, packet_bytes, corrected, message):
    with pytest.raises(TraceError, match=message):
        packet_errors(trace, packet_bytes, corrected)


def test_lists_name_the_lost_packets():
    losses = packet_errors(wrong([0, 200, 201, 790], 800), 10)

    assert to_flags(losses) == "1\n0\n1\n0\n0\n0\n0\n0\n0\n1\n"
    assert to_ns3(losses) == "0\n2\n9\n"
    assert "$losses droplist {0 2 9}" in to_ns2(losses)


def test_ns2_takes_no_empty_list():
    with pytest.raises(TraceError, match="no packet is lost"):
        to_ns2(packet_errors(wrong([], 800), 10))


DROPS = """
set ns [new Simulator]
source losses.tcl
set file [open out.tr w]
$ns trace-all $file
set a [$ns node]
set b [$ns node]
$ns simplex-link $a $b 1Mb 10ms DropTail
$ns lossmodel $losses $a $b
set udp [new Agent/UDP]
$ns attach-agent $a $udp
set sink [new Agent/Null]
$ns attach-agent $b $sink
$ns connect $udp $sink
set cbr [new Application/Traffic/CBR]
$cbr set packetSize_ 100
$cbr set interval_ 0.01
$cbr set maxpkts_ 300
$cbr attach-agent $udp
$ns at 0 "$cbr start"
$ns at 10 "$ns flush-trace; close $file; exit 0"
$ns run
"""


@pytest.mark.skipif(shutil.which("ns") is None, reason="ns-2 is missing: apt-get install ns2")
def test_ns2_drops_the_packets_of_its_list(tmp_path):
    rng = np.random.default_rng(7)
    position = np.flatnonzero(rng.random(8 * 100 * 300) < 1e-4)
    losses = packet_errors(Trace("bit-errors", {"position": position, "bits": 8 * 100 * 300}), 100)
    (tmp_path / "losses.tcl").write_text(to_ns2(losses), encoding="utf-8")
    (tmp_path / "run.tcl").write_text(DROPS, encoding="utf-8")

    subprocess.run(["ns", "run.tcl"], cwd=tmp_path, check=True, capture_output=True, timeout=60)

    events = [line.split() for line in (tmp_path / "out.tr").read_text().splitlines()]
    received = {int(event[10]) for event in events if event[0] == "r"}
    assert sorted(set(range(300)) - received) == np.flatnonzero(losses["lost"]).tolist()


def test_a_scenario_loses_the_same_packets_with_either_trace(tmp_path):
    rng = np.random.default_rng(11)
    bits = Trace("bit-errors", {"position": np.flatnonzero(rng.random(8_000_000) < 2e-5), "bits": 8_000_000})
    trace_file.write(bits, tmp_path / "bits.npz")
    trace_file.write(packet_errors(bits, 1000), tmp_path / "packets.npz")

    def delivered(kind, name):
        channel = {"kind": kind, "file": str(tmp_path / name), "offset": 0}
        result = farlink.run(
            from_data(
                {
                    "duration_s": 20,
                    "link": {"rate_bps": 1e6, "delay_s": 0.25, "channel": channel},
                    "transport": {"udp": {"kind": "udp", "segment_bytes": 972}},
                    "flow": {"data": {"transport": "udp", "traffic": {"kind": "cbr", "rate_bps": 3e5, "payload_bytes": 972}}},
                }
            )
        )
        return result.rows["goodput_bps"]

    goodput = delivered("bit-trace", "bits.npz")
    assert goodput == delivered("packet-trace", "packets.npz")
    assert 1e5 < goodput[0] < 2.9e5


def test_command_writes_every_format(tmp_path):
    bits = tmp_path / "bits.npz"
    trace_file.write(wrong([0, 200, 201, 790], 800), bits)
    printed = {}
    for suffix in (".npz", ".txt", ".tcl", ".list"):
        out = tmp_path / f"losses{suffix}"
        result = CliRunner().invoke(app, ["trace", "packets", str(bits), "--packet-bytes", "10", "-o", str(out)])
        assert result.exit_code == 0, result.output
        printed[suffix] = result.stdout

    assert trace_file.read(tmp_path / "losses.npz")["lost"].tolist() == [1, 0, 1, 0, 0, 0, 0, 0, 0, 1]
    assert (tmp_path / "losses.list").read_text() == "0\n2\n9\n"
    assert len(set(printed.values())) == 1
    assert "30.0 %" in printed[".npz"] or "30 %" in printed[".npz"]


def test_command_refuses_a_name_of_no_known_format(tmp_path):
    bits = tmp_path / "bits.npz"
    trace_file.write(wrong([1], 800), bits)

    result = CliRunner().invoke(app, ["trace", "packets", str(bits), "--packet-bytes", "10", "-o", str(tmp_path / "x.csv")])

    assert result.exit_code != 0
    assert "no list of lost packets has the suffix '.csv'" in result.output
    assert list(tmp_path.iterdir()) == [bits]
